"""Concept–unit pairs: which noun phrases a corpus gives numbers for, and in which unit.

A concept is a noun phrase that a quantity is said of. Candidates stand next to a quantity in one of two places: the
nearest noun phrase before it that is no point in time ("net profit in the first quarter rose to 5 mln dlrs") or the
noun phrase directly after it, with or without "of", "in" or "for" ("1.2 bln dlrs in assets", "25 mg metformin").
A phrase becomes a concept of a unit when enough sentences link the two, when normalised pointwise mutual information
says that the link is no accident, and when it does not live only inside a longer concept (C-value).
"""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from datasets import Dataset

from numcolbert.corpus.words import FUNCTION_WORDS, GENERIC_HEADS, TIME_WORDS, is_adjective, is_break, lemma

MAX_CONCEPT_WORDS = 4
_TOKEN = re.compile(r"[^\W\d_][\w'&/+-]*(?:\.[^\W\d_]+)*|\d[\d.,/]*|[^\w\s]")
_RIGHT_LINK = frozenset(["of", "in", "for", "worth", "the", "its", "their", "total"])
_CLAUSE_END = frozenset(";:.?!")


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


def linked_phrases(text: str, quantities: Sequence[dict[str, Any]]) -> Iterator[tuple[list[str], str]]:
    """Noun phrases that quantities of a sentence are said of.

    Parameters
    ----------
    text
        A sentence.
    quantities
        Its quantities, in the columns of `schema.QUANTITY`.

    Yields
    ------
    (list of str, str)
        Words of a noun phrase and the canonical unit of the quantity.
    """
    if all(quantity["unit"] is None for quantity in quantities):
        return
    tokens = tokenize(text)
    covered, ranges = _cover(tokens, quantities)
    phrases = noun_phrases(tokens, covered)
    for quantity, (first, last) in zip(quantities, ranges, strict=True):
        unit = quantity["canonical_unit"]
        if unit is None or first == last:
            continue
        for start, end in reversed(phrases):
            if end > first:
                continue
            if first - end > 10 or any(token.text in _CLAUSE_END for token in tokens[end:first]):
                break
            if lemma(tokens[end - 1].text) not in GENERIC_HEADS and tokens[end - 1].text.lower() not in GENERIC_HEADS:
                yield _words(tokens, start, end), unit
                break
        position = last
        while position < len(tokens) and tokens[position].text.lower() in _RIGHT_LINK and position - last < 3:
            position += 1
        for start, end in phrases:
            if start == position:
                yield _words(tokens, start, end), unit


def _words(tokens: Sequence[Token], start: int, end: int) -> list[str]:
    return [token.text for token in tokens[max(start, end - MAX_CONCEPT_WORDS) : end]]


def _is_name(words: Sequence[str], capitalised: Counter[str], lowered: Counter[str]) -> bool:
    """Whether a word of the phrase is written with a capital in most places of the corpus."""
    for word in words:
        form = word.lower()
        if capitalised[form] > lowered[form] and not (word.isupper() and len(word) <= 6 and len(words) == 1):
            return True
    return False


def mine_pairs(
    corpus: Dataset | Iterable[dict[str, Any]],
    *,
    min_support: int = 6,
    min_association: float = 0.03,
    min_linked: float = 0.08,
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
    maximal: Counter[tuple[str, ...]] = Counter()
    for text, quantities in rows:
        for number, token in enumerate(_TOKEN.finditer(text)):
            word = token.group()
            if number and word[0].isalpha():
                (lowered if word[0].islower() else capitalised)[word.lower()] += 1
        if not quantities:
            continue
        found: dict[tuple[tuple[str, ...], str], None] = {}  # a set whose order no hash decides
        for words, unit in linked_phrases(text, quantities):
            lemmas = tuple(lemma(word) for word in words)
            maximal[lemmas] += 1
            for start in range(len(lemmas)):
                found[(lemmas[start:], unit)] = None
                spelled[lemmas[start:]][" ".join(words[start:])] += 1
        for link in found:
            links[link] += 1
    by_concept: Counter[tuple[str, ...]] = Counter()
    by_unit: Counter[str] = Counter()
    longer: Counter[tuple[tuple[str, ...], str]] = Counter()
    total = 0
    for (concept, unit), count in links.items():
        by_concept[concept] += count
        by_unit[unit] += count
        total += count
    for (concept, unit), count in links.items():
        if count >= min_support and len(concept) > 1:
            longer[(concept[1:], unit)] = max(longer[(concept[1:], unit)], count)
    pairs = []
    for (concept, unit), count in links.items():
        if count < min_support or not _well_formed(concept):
            continue
        # C-value's idea: a phrase that one longer phrase accounts for is a fragment of that phrase.
        if longer[(concept, unit)] > 0.8 * count:
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
    return all(len(word) > 1 and "/" not in word for word in concept)


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

    A quantity belongs to no concept that another one stands in front of: in "revenue of $5 mln and net profit of
    $1 mln" each has its own, although all are near each other. Only concepts known with the quantity's unit count, and
    a concept does not shut out one it is joined to ("exports of wheat").

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
    for number, (quantity, (first, last)) in enumerate(zip(quantities, ranges, strict=True)):
        unit = quantity["canonical_unit"]
        if unit is None:
            continue
        # "a 5 mln share offer": words of the quantity itself are no concept of it.
        known = [
            (concept, start, end)
            for concept, start, end in concepts
            if unit in finder.units.get(concept, ()) and (end <= first or start >= last)
        ]
        for concept, start, end in known:
            if max(first - end, start - last) <= window and not _shut_out(
                tokens, (concept, start, end), known, first, last
            ):
                positions = near[(concept, unit)]
                if number not in positions:
                    positions.append(number)
    return near


_JOINT = frozenset(["of", "in", "for", "on", "from", "to", "by", "at"])


def _shut_out(
    tokens: Sequence[Token],
    mention: tuple[str, int, int],
    known: Sequence[tuple[str, int, int]],
    first: int,
    last: int,
) -> bool:
    """Whether the quantity of tokens `first` to `last` belongs to another concept than the mention's."""
    concept, start, end = mention
    for rival, rival_start, rival_end in known:
        if rival == concept or (rival_start < end and rival_end > start):
            continue
        joined = (rival_start == end or start == rival_end) or (
            0 < rival_start - end <= 3 and tokens[end].text.lower() in _JOINT
        )
        if joined:
            continue
        between_before = end <= rival_start and rival_end <= first
        between_after = last <= rival_start and rival_end <= start
        # "net profit was 5 mln dlrs and sales 9 mln": what directly precedes the quantity owns it.
        owns = start > last + 1 and rival_end <= first and first - rival_end <= 3
        if between_before or between_after or owns:
            return True
    return False


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
