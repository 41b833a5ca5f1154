"""Concept–unit pairs: which noun phrases a corpus gives numbers for, and in which unit.

A concept is a noun phrase that quantities are said of (`find_links`): the noun they stand before ("a 40 mln dlr loan",
"25 mg of metformin") or what a measuring word joins them to ("net profit in the first quarter rose to 5 mln dlrs").
A phrase becomes a concept of a unit when enough sentences link the two, not less often than chance would, when the
values differ, and when the phrase also stands without a further word before it (the idea of the C-value).
"""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from datasets import Dataset

from numcolbert.corpus.words import (
    FUNCTION_WORDS,
    GENERIC_HEADS,
    MEASURING_VERBS,
    STATIVE_VERBS,
    TIME_WORDS,
    VERB_FORMS,
    is_adjective,
    is_break,
    lemma,
    split_words,
)

MAX_CONCEPT_WORDS = 4
_TOKEN = re.compile(r"[^\W\d_][\w'&/+-]*(?:\.[^\W\d_]+)*|\d[\d.,/]*|[^\w\s]")
_HYPHEN = re.compile(r"[-\u2010\u2011]")
_DETERMINERS = frozenset(split_words("a an the its his her their this that these those total new such"))
_PREPOSITIONS = frozenset(
    split_words(
        """
    of in on at to from by for with without within into onto upon between among amongst across through throughout
    during since until till after before against per via as than
    """
    )
)
_CONJUNCTIONS = frozenset(split_words("and or but nor if whether because although though while whereas which who that"))
_AUXILIARIES = frozenset(
    split_words(
        """
    is are was were be been being has have had having do does did can could may might must shall should will would
    """
    )
)
_MEASURING_MARKS = frozenset(["of", ":", "=", "(", "["])
_MEASURING_PREPOSITIONS = frozenset(["to", "at", "by", "from"])
_JOINING = frozenset(split_words("and or to from vs versus against compared with , ( - – ± + ; / between"))
"""Words between two quantities said of one thing."""
_AFTER_TIME = frozenset(split_words("ago after later earlier before prior following from post since until thereafter"))
"""Words that make a point in time of the span of time before them."""


class Token(NamedTuple):
    """A word or mark of a sentence."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Pair:
    """A concept–unit pair.

    Parameters
    ----------
    concept
        The noun phrase as it is most often written.
    unit
        Canonical unit.
    variants
        All spellings seen, the most frequent first.
    support
        Number of sentences that link the two.
    association
        Normalised pointwise mutual information of the two, in [-1, 1].
    """

    concept: str
    unit: str
    variants: tuple[str, ...] = ()
    support: int = 0
    association: float = 0.0

    @property
    def key(self) -> str:
        """Name of the pair, as tables hold it."""
        return f"{self.concept} | {self.unit}"


def tokenize(text: str) -> list[Token]:
    """Words, numbers and marks of a text, with character offsets.

    Examples
    --------
    >>> [token.text for token in tokenize("U.S. oil output: 8.3 mln bpd")]
    ['U.S', '.', 'oil', 'output', ':', '8.3', 'mln', 'bpd']
    """
    return [Token(match.group(), match.start(), match.end()) for match in _TOKEN.finditer(text)]


def noun_phrases(tokens: Sequence[Token], covered: Sequence[bool]) -> list[tuple[int, int]]:
    """Find the runs of words that can be a noun phrase.

    Parameters
    ----------
    tokens
        Tokens of a sentence.
    covered
        For each token whether a quantity covers it.

    Returns
    -------
    list of (int, int)
        First token and one past the last of each phrase.
    """
    phrases = []
    start = None
    for position, token in enumerate(tokens):
        stops = covered[position] or not token.text[0].isalpha() or is_break(token.text.lower())
        if stops and start is not None:
            phrases.append((start, position))
            start = None
        elif not stops and start is None:
            start = position
        if start is not None and token.text.lower().endswith(("'s", "s'")):
            start = None  # "the company's common stock": the owner is no part of the concept
    if start is not None:
        phrases.append((start, len(tokens)))
    return phrases


def _cover(tokens: Sequence[Token], quantities: Sequence[dict[str, Any]]) -> tuple[list[bool], list[tuple[int, int]]]:
    """Which tokens quantities cover, and the first and last token of each quantity."""
    covered = [False] * len(tokens)
    ranges = []
    for quantity in quantities:
        inside = [
            n for n, token in enumerate(tokens) if token.start < quantity["end"] and token.end > quantity["start"]
        ]
        for n in inside:
            covered[n] = True
        ranges.append((inside[0], inside[-1] + 1) if inside else (0, 0))
    return covered, ranges


def find_links(tokens: Sequence[Token], quantities: Sequence[dict[str, Any]]) -> list[tuple[int, int, int]]:
    """Find the noun phrases that the quantities of a sentence are said of.

    A quantity is said of the noun it stands before ("a 40 mln dlr loan", "25 mg metformin", "5 tonnes of barley") or
    of what a measuring word joins it to: "of", a colon, a bracket, or a verb that gives its subject a value ("output in
    the first quarter fell to 5 mln tonnes"). A span of time is more often said of nothing ("in two months").

    Parameters
    ----------
    tokens
        Tokens of the sentence.
    quantities
        Its quantities, in the columns of `schema.QUANTITY`.

    Returns
    -------
    list of (int, int, int)
        Position of the quantity, first token of the phrase and one past its last.

    Examples
    --------
    >>> from numcolbert.corpus.annotation import quantity_rows
    >>> text = "Sales of wheat in March rose to 5 mln tonnes within two months."
    >>> tokens = tokenize(text)
    >>> [tokens[start].text for _, start, _ in find_links(tokens, quantity_rows(text))]
    ['Sales']
    """
    return _Linker(tokens, quantities).links()


class _Linker:
    """The reading of one sentence behind `find_links`."""

    def __init__(self, tokens: Sequence[Token], quantities: Sequence[dict[str, Any]]) -> None:
        self.quantities = quantities
        self.words = [token.text.lower() for token in tokens]
        covered, self.ranges = _cover(tokens, quantities)
        phrases = noun_phrases(tokens, covered)
        self.phrase_from = dict(phrases)
        self.phrase_to = {end: start for start, end in phrases}
        self.quantity_to = {last: number for number, (first, last) in enumerate(self.ranges) if first < last}
        self.subjects: dict[int, tuple[int, int] | None] = {}
        """For each quantity read so far the phrase before it that it is said of."""

    def links(self) -> list[tuple[int, int, int]]:
        found: list[tuple[int, int, int]] = []
        for number, (quantity, (first, last)) in enumerate(zip(self.quantities, self.ranges, strict=True)):
            unit = quantity["canonical_unit"]
            if unit is None or first == last:
                continue
            is_time = unit == "second"
            if is_time and first and self.words[first - 1] in ("every", "within"):
                continue
            following = self._following(last, unit)
            # "auction of three-month bills": what is said of the noun after it is said of no noun before it.
            attributive = following is not None and following[0] == last
            subject = None if attributive else self._subject(first, unit, is_time and self._is_adverbial(last))
            self.subjects[number] = subject
            if is_time and attributive and not any(_HYPHEN.search(word) for word in self.words[first:last]):
                continue  # "six weeks postpartum", unlike "a six-week treatment"
            found.extend((number, *phrase) for phrase in (subject, following) if phrase is not None)
        return found

    def _is_adverbial(self, last: int) -> bool:
        return last < len(self.words) and self.words[last] in _AFTER_TIME

    def _following(self, last: int, unit: str) -> tuple[int, int] | None:
        """Noun phrase after a quantity that ends before token `last`."""
        start = last
        if start < len(self.words) and self.words[start] == "worth":
            start += 1
        if start < len(self.words) and (
            self.words[start] == "of" or (self.words[start] == "in" and unit not in ("percent", "second"))
        ):
            start = self._skip(start + 1, _DETERMINERS)
        end = self.phrase_from.get(start)
        if end is None or self.words[end - 1] in GENERIC_HEADS or lemma(self.words[end - 1]) in GENERIC_HEADS:
            return None
        return start, end

    def _skip(self, position: int, words: frozenset[str]) -> int:
        while position < len(self.words) and self.words[position] in words:
            position += 1
        return position

    def _back(self, position: int) -> int:
        """Step back over words that only shade a number or noun: "about", "a record", "the first"."""
        while position and position not in self.phrase_to and _only_shades(self.words[position - 1]):
            position -= 1
        return position

    def _subject(self, first: int, unit: str, adverbial: bool) -> tuple[int, int] | None:
        """Noun phrase before a quantity that starts at token `first`."""
        if adverbial:
            return None
        position = self._back(first)
        if position in self.phrase_to:
            return self._head(position)
        joined = self._same(position, unit)
        if joined is not None:
            return joined
        word = self.words[position - 1] if position else ""
        if word in _MEASURING_MARKS:
            return self._head(position - 1)
        if word in _MEASURING_PREPOSITIONS and unit != "second":
            position = self._back(position - 1)
            if position in self.phrase_to:
                return self._head(position)
            word = self.words[position - 1] if position else ""
        if word not in (STATIVE_VERBS if unit == "second" else MEASURING_VERBS):
            return None
        return self._head(self._back_over_verbs(position))

    def _same(self, position: int, unit: str) -> tuple[int, int] | None:
        """Subject of the quantity that this one is joined to: "from 5 pct to 6 pct"."""
        for end in range(position, max(position - 4, 0), -1):
            number = self.quantity_to.get(end)
            if number is not None:
                units = {unit, self.quantities[number]["canonical_unit"]}
                # "rose 5 pct to 8 mln dlrs" gives two units to one thing.
                same = len(units) == 1 or ("percent" in units and self.words[position - 1] == "to")
                return self.subjects.get(number) if same else None
            if self.words[end - 1] not in _JOINING:
                return None
        return None

    def _back_over_verbs(self, position: int) -> int:
        while position and position not in self.phrase_to:
            number = self.quantity_to.get(position)
            if number is not None and self.quantities[number]["canonical_unit"] == "second":
                # "pain at six months was reduced by": a point in time is passed over, preposition and all.
                position = self._back(self.ranges[number][0])
                position -= bool(position and self.words[position - 1] in _PREPOSITIONS)
                continue
            word = self.words[position - 1]
            if not (word in VERB_FORMS or word in _AUXILIARIES or word == "to" or _only_shades(word)):
                break
            position -= 1
        return position

    def _head(self, end: int) -> tuple[int, int] | None:
        """Noun phrase that the one before token `end` hangs on by prepositions: "sales" for "sales of wheat in May"."""
        chain = []
        while end in self.phrase_to:
            start = self.phrase_to[end]
            chain.append((start, end))
            before = self._back(start)
            if not before or self.words[before - 1] not in _PREPOSITIONS:
                break
            end = before - 1
            if end not in self.phrase_to:
                # "rose in the first quarter to": the phrase belongs to the verb.
                subject_end = self._back_over_verbs(end)
                if subject_end == end:
                    break
                chain.clear()
                end = subject_end
        for start, end in reversed(chain):
            if self.words[end - 1] not in GENERIC_HEADS and lemma(self.words[end - 1]) not in GENERIC_HEADS:
                return start, end
        return None


@lru_cache(maxsize=100_000)
def _only_shades(word: str) -> bool:
    if word in _PREPOSITIONS or word in _AUXILIARIES or word in _CONJUNCTIONS:
        return False
    return word in FUNCTION_WORDS or word in "<>≤≥~≈$£€" or (word.endswith("ly") and is_break(word))


def linked_phrases(text: str, quantities: Sequence[dict[str, Any]]) -> Iterator[tuple[list[str], str, float]]:
    """Noun phrases that quantities of a sentence are said of.

    Parameters
    ----------
    text
        A sentence.
    quantities
        Its quantities, in the columns of `schema.QUANTITY`.

    Yields
    ------
    (list of str, str, float)
        Words of a noun phrase, canonical unit and canonical value of the quantity.
    """
    if all(quantity["unit"] is None for quantity in quantities):
        return
    tokens = tokenize(text)
    for number, start, end in find_links(tokens, quantities):
        quantity = quantities[number]
        yield _words(tokens, start, end), quantity["canonical_unit"], quantity["canonical_value"]


def _words(tokens: Sequence[Token], start: int, end: int) -> list[str]:
    return [token.text for token in tokens[max(start, end - MAX_CONCEPT_WORDS) : end]]


def _is_name(words: Sequence[str], capitalised: Counter[str], lowered: Counter[str]) -> bool:
    """Whether a word of the phrase is written with a capital in most places of the corpus."""
    for word in words:
        form = word.lower()
        if capitalised[form] > lowered[form] and not (word.isupper() and len(word) <= 6 and len(words) == 1):
            return True
    return False


_BEFORE_VERB = frozenset(split_words("will would may might could should can must did does not who they he we"))


def mine_pairs(
    corpus: Dataset | Iterable[dict[str, Any]],
    *,
    min_support: int = 6,
    min_association: float = 0.0,
    min_linked: float = 0.03,
    min_alone: float = 0.1,
    max_repeated: float = 0.6,
    max_pairs: int | None = None,
    allow_names: bool = False,
) -> list[Pair]:
    """Mine the concept–unit pairs of a corpus.

    Parameters
    ----------
    corpus
        Rows with `text` and `quantities` (`annotate`).
    min_support
        Sentences that must link concept and unit.
    min_association
        Least normalised pointwise mutual information.
    min_linked
        Least share of the sentences with the concept that link it to a quantity; words of all purposes fall below it.
    min_alone
        Least share of the links whose noun phrase is the concept and no longer one.
    max_repeated
        Largest share of the links that may hold one and the same value.
    max_pairs
        Keep the pairs of largest support only.
    allow_names
        Whether proper names ("Saudi Arabia", "IBM") may be concepts.

    Returns
    -------
    list of Pair
        Sorted by support, then by key.
    """
    rows = list(_columns(corpus))
    lowered: Counter[str] = Counter()
    capitalised: Counter[str] = Counter()
    links: dict[tuple[tuple[str, ...], str], int] = Counter()
    spelled: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    alone: Counter[tuple[tuple[str, ...], str]] = Counter()
    values: dict[tuple[tuple[str, ...], str], Counter[float]] = defaultdict(Counter)
    nouns: Counter[str] = Counter()
    verbs: Counter[str] = Counter()
    for text, quantities in rows:
        before = ""
        for token in _TOKEN.finditer(text):
            word = token.group()
            # After a mark, a number or a title a capital says nothing.
            if before.islower() and word[0].isalpha():
                form = word.lower()
                (lowered if word[0].islower() else capitalised)[form] += 1
                if before in _BEFORE_VERB:
                    verbs[form] += 1
                elif before in _DETERMINERS:
                    nouns[form] += 1
            before = word
        if not quantities:
            continue
        found: dict[tuple[tuple[str, ...], str], None] = {}  # a set whose order no hash decides
        for words, unit, value in linked_phrases(text, quantities):
            lemmas = tuple(lemma(word) for word in words)
            alone[(lemmas, unit)] += 1
            for start in range(len(lemmas)):
                found[(lemmas[start:], unit)] = None
                values[(lemmas[start:], unit)][value] += 1
                spelled[lemmas[start:]][" ".join(words[start:])] += 1
        for link in found:
            links[link] += 1
    by_concept: Counter[tuple[str, ...]] = Counter()
    by_unit: Counter[str] = Counter()
    total = 0
    for (concept, unit), count in links.items():
        by_concept[concept] += count
        by_unit[unit] += count
        total += count
    pairs = []
    for (concept, unit), count in links.items():
        if count < min_support or not _well_formed(concept):
            continue
        # C-value's idea: what hardly ever stands without a further word before it is a fragment of a longer phrase.
        measured = values[(concept, unit)]
        mentions = measured.total()
        if alone[(concept, unit)] < min_alone * mentions:
            continue
        # A measure varies; "95 pct confidence interval" and "1.73 m2" are names.
        if len(measured) < 3 or measured.most_common(1)[0][1] > max_repeated * mentions:
            continue
        joint = count / total
        association = math.log(joint * total * total / (by_concept[concept] * by_unit[unit])) / -math.log(joint)
        if association < min_association:
            continue
        spelling = spelled[concept]
        if not allow_names and _is_name(spelling.most_common(1)[0][0].split(), capitalised, lowered):
            continue
        if unit in concept or lemma(unit) in concept:
            continue
        variants: Counter[str] = Counter()
        for form, frequency in spelling.items():
            variants[_lower(form)] += frequency
        ranked = tuple(form for form, _ in sorted(variants.items(), key=lambda item: (-item[1], item[0])))
        head = ranked[0].split()[-1].lower()
        if verbs[head] > nouns[head]:
            continue
        pairs.append(Pair(ranked[0], unit, ranked, count, association))
    # Concepts that are seldom given a number ("talks", "policy") stand beside one by accident.
    finder = ConceptFinder(pair.concept for pair in pairs)
    mentioned: Counter[str] = Counter()
    for text, _ in rows:
        mentioned.update({concept for concept, _, _ in finder.find(tokenize(text))})
    linked: Counter[str] = Counter()
    for pair in pairs:
        linked[pair.concept] += pair.support
    pairs = [pair for pair in pairs if linked[pair.concept] >= min_linked * mentioned[pair.concept]]
    pairs.sort(key=lambda pair: (-pair.support, pair.key))
    return pairs[:max_pairs]


def _columns(corpus: Dataset | Iterable[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    if isinstance(corpus, Dataset):
        for batch in corpus.select_columns(["text", "quantities"]).iter(1000):
            yield from zip(batch["text"], batch["quantities"], strict=True)
    else:
        for row in corpus:
            yield row["text"], row["quantities"]


def _well_formed(concept: tuple[str, ...]) -> bool:
    head = concept[-1]
    if concept[0] in TIME_WORDS or any(word.endswith("'") or "'s" in word for word in concept):
        return False
    if head in GENERIC_HEADS or head in FUNCTION_WORDS or len(head) < 3 or is_adjective(head):
        return False
    return all(len(word) > 1 and "/" not in word and word[-1].isalnum() for word in concept)


def _lower(form: str) -> str:
    """Lower case, acronyms kept."""
    return " ".join(
        word if sum(map(str.isupper, word)) > 1 and len(word) < 6 else word.lower() for word in form.split()
    )


@dataclass
class Mentions:
    """Where a pair occurs: sentences that mention the concept with a compatible quantity near it."""

    sentences: array[int] = field(default_factory=lambda: array("l"))
    values: list[tuple[float, ...]] = field(default_factory=list)
    """For each sentence the canonical values near the concept."""
    written: list[tuple[tuple[float, str], ...]] = field(default_factory=list)
    """The same values and their units as the sentences write them."""
    units: Counter[str] = field(default_factory=Counter)
    """Sentences by unit as written."""
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Smallest and largest canonical value written in each unit."""

    def add(self, sentence: int, quantities: Sequence[dict[str, Any]]) -> None:
        """Add a sentence with its quantities near the concept."""
        self.sentences.append(sentence)
        self.values.append(tuple(quantity["canonical_value"] for quantity in quantities))
        self.written.append(tuple((quantity["value"], quantity["unit"]) for quantity in quantities))
        self.units.update(dict.fromkeys(quantity["unit"] for quantity in quantities).keys())
        for quantity in quantities:
            value, unit = quantity["canonical_value"], quantity["unit"]
            low, high = self.ranges.get(unit, (value, value))
            self.ranges[unit] = min(low, value), max(high, value)

    def usual_unit(self, value: float) -> str:
        """Find the unit that most sentences write values of this size in: pence for a price, pounds for a profit.

        Parameters
        ----------
        value
            A canonical value that occurs.

        Returns
        -------
        str
            The unit.
        """
        return next(
            unit for unit, _ in self.units.most_common() if self.ranges[unit][0] <= value <= self.ranges[unit][1]
        )


class ConceptFinder:
    """Find mentions of given concepts in sentences.

    Parameters
    ----------
    concepts
        Noun phrases; singular and plural are one.

    Examples
    --------
    >>> finder = ConceptFinder(["net profit", "profit"])
    >>> finder.find(tokenize("Net profits rose"))
    [('net profit', 0, 2), ('profit', 1, 2)]
    """

    def __init__(self, concepts: Iterable[str]) -> None:
        self._concepts = {tuple(lemma(word) for word in concept.split()): concept for concept in concepts}
        self._lengths: dict[str, set[int]] = defaultdict(set)
        for words in self._concepts:
            self._lengths[words[0]].add(len(words))
        self.units: dict[str, set[str]] = defaultdict(set)

    @classmethod
    def of_pairs(cls, pairs: Iterable[Pair]) -> ConceptFinder:
        """Make a finder that knows the units of its concepts."""
        pairs = list(pairs)
        finder = cls(pair.concept for pair in pairs)
        for pair in pairs:
            finder.units[pair.concept].add(pair.unit)
        return finder

    def find(self, tokens: Sequence[Token]) -> list[tuple[str, int, int]]:
        """Concepts of a sentence with first token and one past the last."""
        lemmas = [lemma(token.text) for token in tokens]
        found = []
        for start, first in enumerate(lemmas):
            for length in sorted(self._lengths.get(first, ()), reverse=True):
                concept = self._concepts.get(tuple(lemmas[start : start + length]))
                if concept is not None and start + length <= len(lemmas):
                    found.append((concept, start, start + length))
        return found


def near_values(
    text: str, quantities: Sequence[dict[str, Any]], finder: ConceptFinder, window: int
) -> dict[tuple[str, str], list[int]]:
    """Quantities near each concept of a sentence.

    A quantity counts if it is said of the concept (`find_links`): in "revenue of $5 mln and net profit of $1 mln" each
    has its own. Only concepts known with the quantity's unit count.

    Parameters
    ----------
    text
        A sentence.
    quantities
        Its quantities, in the columns of `schema.QUANTITY`.
    finder
        The concepts and units to look for (`ConceptFinder.of_pairs`).
    window
        Most words between concept and quantity.

    Returns
    -------
    dict
        (concept, canonical unit) to the positions of those quantities in `quantities`.
    """
    near: dict[tuple[str, str], list[int]] = defaultdict(list)
    if all(quantity["unit"] is None for quantity in quantities):
        return near
    tokens = tokenize(text)
    concepts = finder.find(tokens)
    if not concepts:
        return near
    _, ranges = _cover(tokens, quantities)
    for number, start, end in find_links(tokens, quantities):
        unit, (first, last) = quantities[number]["canonical_unit"], ranges[number]
        if max(first - end, start - last) > window:
            continue
        for concept, concept_start, concept_end in concepts:
            if concept_end == end and concept_start >= start and unit in finder.units.get(concept, ()):
                positions = near[(concept, unit)]
                if number not in positions:
                    positions.append(number)
    return near


def index_pairs(
    corpus: Dataset | Iterable[dict[str, Any]], pairs: Sequence[Pair], *, window: int = 10
) -> dict[str, Mentions]:
    """Find all mentions of the pairs in a corpus.

    Parameters
    ----------
    corpus
        Rows with `text` and `quantities`.
    pairs
        Pairs to look for.
    window
        Most words between concept and quantity.

    Returns
    -------
    dict
        Pair key to its mentions; pairs without mention are left out.
    """
    finder = ConceptFinder.of_pairs(pairs)
    known = {(pair.concept, pair.unit): pair.key for pair in pairs}
    index: dict[str, Mentions] = {}
    for number, (text, quantities) in enumerate(_columns(corpus)):
        if not quantities:
            continue
        for link, positions in near_values(text, quantities, finder, window).items():
            key = known.get(link)
            if key is None:
                continue
            index.setdefault(key, Mentions()).add(number, [quantities[n] for n in positions])
    return index
