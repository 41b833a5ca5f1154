"""The unit grammar: reads the unit that follows a number, products and quotients included."""

from __future__ import annotations

import re

from numcolbert.quantities.nouns import COUNT_NOUNS, word_set
from numcolbert.quantities.numbers import NUMBER_WORDS, SPACES, Number
from numcolbert.quantities.unit_tables import CLASSES, MULTIWORD, SYMBOLS, WORDS
from numcolbert.quantities.units import compose, decompose

UnitMatch = tuple[str, int, int]
"""Unit name, start and end."""

_LETTERS = re.compile(r"[A-Za-zµμΩÅ]{1,30}")
_WATER = re.compile(r"(?:cm|mm|in)[ ]?H2O(?![A-Za-z0-9])")
_SLASHED = re.compile(r"[A-Za-z]{1,4}/[A-Za-z]{1,3}(?![A-Za-z0-9])")
_SIGN = re.compile(rf"°[{SPACES}]?[CFK](?![A-Za-z])|[%‰€£¥₹$¢℃℉°]")
_PHRASE = re.compile(r"[A-Za-z.]{1,20}(?:[ -][A-Za-z.]{1,20}){1,3}")
_PHRASE_SEPARATOR = re.compile(r"[ -]")
_EXPONENT = re.compile(r"(?:\^|\*\*)?([23])(?![0-9]|[.,][0-9]|[A-Za-z])|([²³])")
_INVERSE = re.compile(r"(?:\^|\*\*)?\(?[-−–⁻]([1-3¹²³])\)?(?![0-9])")
_PER = re.compile(r"[ -]per[ -](?=[A-Za-zµμ])", re.IGNORECASE)
_SLASH = re.compile(r"[ ]?/[ ]?(\()?(?=[A-Za-zµμ])")
_TIMES = re.compile(r"[ ]?[·⋅*×•∙][ ]?(?=[A-Za-zµμ])|\.(?=[A-Za-zµμ]{1,3}[/)])")
_SPACE_FACTOR = re.compile(rf"[{SPACES}·⋅.*](?=[A-Za-zµμ]{{1,4}}(?:\^|\*\*)?[-−–⁻][123¹])")
_DIGIT_OF = {"²": 2, "³": 3, "¹": 1, "1": 1, "2": 2, "3": 3}
_INCH_NEXT = re.compile(
    r"(?:[.,;)]|$)|[ -](?:thick|wide|long|deep|high|tall|in diameter|diameter|of rain|of snow|x|×|by)\b"
)
_PHRASE_WORD = re.compile(r"[ ]([A-Za-z][A-Za-z0-9®™'’‐‑-]{0,30})(?![A-Za-z0-9])")
_HYPHENED = re.compile(r"(?:[-‐‑][A-Za-z]{1,30}){1,3}(?![A-Za-z0-9])")
_DOTTED = re.compile(r"(?:[A-Za-z]\.){2,3}[ ][A-Za-z]{2,10}(?![A-Za-z])")
_WORD_GOES_ON = ("-", "'", "’", "‐", "‑")
_HEADINGS = word_set("""
assets loans deposits orders results sales revs shrs earnings revenues profits loss reuters series six dividends
losses funds methods patients participants subjects groups measures values reserves stocks exports imports bookings
avg oper net shr year qtr mths note note qtly prior backlog half turnover div pretax current first second third
fourth receipts premiums investments backlogs operations figures totals notes reuter
""")
_PEOPLES = ("ans", "crats", "ists", "cans")
_PRONOMINAL = word_set("""
dealer trader analyst source official economist banker broker time day year thing way man woman person side hand
country company firm bank city state country question point area case factor group unit executive
""")
_COMPARING = word_set("fewer more other additional")
_HYPHEN_NOT_NOUNS = word_set("way fold time tier off plus stop size shot third half some fits thirds quarters")

_NEED_ATTACHED = frozenset(
    {"A", "C", "F", "p", "M", "N", "B", "cd", "st", "a", "c", "mi", "at", "kb", "Mb", "gr", "bl"}
)
"""Symbols that are a unit after a space only where a sentence or clause ends behind them."""
_CLAUSE_END = re.compile(r"[.,;:)\]]|$|/[A-Za-z]|[ ](?:and|or|to|for|at|in|of|was|is|with|from|per)\b")
_RATE_NOUNS = frozenset(
    {"beat", "breath", "cell", "copy", "revolution", "cycle", "stroke", "step", "count", "particle"}
)
_FUNCTION_WORDS = word_set("""
a an the and or but nor of in on at to for from with by as than that which who whom whose when where while if then
is are was were be been being has have had do does did will would can could may might shall should must not no it
its he she they we you i his her their our your this these those there here so yet also only each per over under
between during after before since until about into out up down off vs versus compared plus minus more less fewer all
both either neither said says according because against among within without through via such same other others et
including later earlier ago percent pct following due using including whose thereof vs. ones verses tues thurs
respectively today yesterday tomorrow
""")


def read_unit(text: str, number: Number, *, sentence_year: bool = False) -> UnitMatch | None:
    """Read the unit that follows a number.

    Parameters
    ----------
    text
        Any text.
    number
        The number, already read.
    sentence_year
        Whether the number looks like a year; then only what cannot follow a year counts as its unit.

    Returns
    -------
    (str, int, int) or None
        Unit name, start and end in the text; None where no unit follows.
    """
    position = number.end
    if position >= len(text):
        return None
    if text[position] == "+" and position + 1 < len(text):  # "65+ years"
        position += 1
    gap = text[position]
    hyphen = gap in "-‐"
    attached = not (hyphen or gap in SPACES or gap == "\n")
    if not attached:
        position += 1
        if position < len(text) and text[position] in SPACES and not hyphen:
            position += 1
        if position >= len(text):
            return None
    first = text[position]
    if first == "/":
        return None if hyphen else _read_tail(text, {}, position, number.end)
    if not first.isalpha():
        if hyphen:
            return None
        sign = _SIGN.match(text, position)
        if sign is None:
            return None
        name = SYMBOLS.get(sign.group().replace(" ", "").replace("\u00a0", ""))
        if name is None or (CLASSES[name] == "money" and not attached and _digit_at(text, sign.end())):
            return None
        return name, position, sign.end()
    atom = _read_atom(text, position, number, attached=attached, hyphen=hyphen)
    if atom is None and not attached and text.startswith("per ", position):
        return _read_tail(text, {}, position, position - 1)
    if atom is None or (sentence_year and not _fits_year(text, position, atom, number)):
        return None
    name, end, symbol = atom
    if CLASSES.get(name) in ("money", "percent"):
        return name, position, end
    counted = name not in CLASSES and " " not in name and name not in _RATE_NOUNS
    if counted and not symbol and not text.startswith("/", end):
        return name, position, end
    factors, end = _with_exponent(text, name, end, symbol)
    tail = _read_tail(text, factors, position, end)
    if tail is not None:
        return tail if tail[0] != "1" else None
    return compose(factors), position, end


def read_noun_after(text: str, position: int) -> str | None:
    """Read the counted noun of a number from which another quantity parts it: "Sixteen (93%) patients".

    Parameters
    ----------
    text
        Any text.
    position
        Where the other quantity ends.

    Returns
    -------
    str or None
        The singular noun, None where no plural noun follows at once.
    """
    found = _PHRASE_WORD.match(text, position)
    if found is None or not found.group(1).islower():
        return None
    return COUNT_NOUNS.singular_of(found.group(1)) if found.group(1) not in _FUNCTION_WORDS else None


def _digit_at(text: str, position: int) -> bool:
    return position < len(text) and text[position].isdigit()


def _fits_year(text: str, position: int, atom: tuple[str, int, bool], number: Number) -> bool:
    """After "1987", a plural or a symbol makes a unit ("2000 days", "2000 mg"); a singular word does not."""
    name, end, symbol = atom
    if symbol:
        return True
    written = text[position:end].lower()
    if (" " in written and name in CLASSES) or " " in name:
        return True
    if name in CLASSES:
        return written + "s" not in WORDS and written + "es" not in WORDS
    if not 1900 <= number.value <= 2030:  # "about 1600 pregnant women"
        return name in COUNT_NOUNS.common
    return written in COUNT_NOUNS.common and written != name


def _read_atom(
    text: str, position: int, number: Number, *, attached: bool, hyphen: bool
) -> tuple[str, int, bool] | None:
    """Read one unit without tail: its name, its end and whether it is written as a symbol."""
    found = _LETTERS.match(text, position)
    if found is None:
        return None
    word, end = found.group(), found.end()
    if end < len(text) and text[end].isalnum() and not text[end].isdigit() and text[end] not in "²³¹":
        return None
    lower = word.lower()
    if lower in MULTIWORD and (phrase := _PHRASE.match(text, position)):
        pieces = _PHRASE_SEPARATOR.split(phrase.group().lower())
        for size in range(min(MULTIWORD[lower], len(pieces)), 1, -1):
            candidate = " ".join(pieces[:size])
            for trimmed in (candidate, candidate.rstrip(".")):
                if trimmed in WORDS:
                    return WORDS[trimmed], position + len(trimmed), False
    if lower in ("cm", "mm", "in", "cmh") and (water := _WATER.match(text, position)):
        return "centimeter_H2O" if word[0] == "c" else "inch_H2O", water.end(), True
    if (
        end < len(text)
        and text[end] == "/"
        and (slashed := _SLASHED.match(text, position))
        and slashed.group() in SYMBOLS
    ):
        return SYMBOLS[slashed.group()], slashed.end(), True
    dotted = _DOTTED.match(text, position) if end < len(text) and text[end] == "." else None
    if dotted is not None and (name := WORDS.get(dotted.group().lower())) is not None:
        return name, dotted.end(), False
    name = SYMBOLS.get(word)
    if len(word) == 1 and text.startswith(".", end) and end + 1 < len(text) and text[end + 1].isalpha():
        name = None  # "U.S."
    if name is not None and _symbol_fits(text, word, end, attached=attached, hyphen=hyphen, number=number):
        return name, end, True
    name = WORDS.get(lower)
    if name is not None and (len(word) > 1 or attached) and not _digit_at(text, end):
        heading = word[0].isupper() and not word.isupper() and CLASSES[name] == "time" and not lower.endswith("s")
        if not heading and (word not in ("p", "ct") or attached or (word == "ct" and number.words)):
            return name, end, False
    if _digit_at(text, end):  # "80 CF6-80C2 engines"
        if attached or hyphen:
            return None
        word, end = "", position - 1
    return _read_noun(text, position, word, end, number, attached=attached, hyphen=hyphen)


def _symbol_fits(text: str, word: str, end: int, *, attached: bool, hyphen: bool, number: Number) -> bool:
    if word == "in":
        if attached or hyphen:
            return True
        return not number.words and _INCH_NEXT.match(text, end) is not None and not text.startswith(".", end)
    if hyphen and len(word) == 1:
        return word in "mgLhVs"
    if word in _NEED_ATTACHED:
        if word in ("p", "A", "M"):
            return attached
        return attached or _CLAUSE_END.match(text, end) is not None
    if word == "s" and attached and number.plain and number.value % 10 == 0:
        return False  # the 1980s, her 20s
    if len(word) == 1 and number.words:
        return _CLAUSE_END.match(text, end) is not None
    return True


def _read_noun(
    text: str, position: int, word: str, end: int, number: Number, *, attached: bool, hyphen: bool
) -> tuple[str, int, bool] | None:
    """Read a counted noun: the first plural of the noun phrase that follows, whatever describes it."""
    if attached:
        return None
    lower = word.lower()
    if hyphen:
        if lower in _FUNCTION_WORDS:
            return None
        while end < len(text) and text[end] == "-" and (following := _LETTERS.match(text, end + 1)):
            word, end = following.group(), following.end()  # "a seven-calendar-day average"
            lower = word.lower()
            if lower in WORDS:
                return WORDS[lower], end, False
            if lower in ("old", "long", "term"):
                return None
        if COUNT_NOUNS.common.get(lower) == lower or (number.words and number.value >= 1 and _hyphenated_noun(word)):
            return lower, end, False
        return None
    if lower in _COMPARING and (following := _PHRASE_WORD.match(text, end)):  # "1,000 fewer jobs"
        word, end = following.group(1), following.end()
        lower = word.lower()
    if _ends_phrase(word, lower):
        return None
    if number.value == 1 and word:
        if COUNT_NOUNS.common.get(lower) == lower and not (number.words and lower in _PRONOMINAL):
            return lower, end, False
        if number.words:
            return None
    if lower == "times":
        return "time", end, False
    capital_decimal = word[:1].isupper() and not number.plain and not number.words and number.value % 1 != 0
    if word and not text.startswith(_WORD_GOES_ON, end):
        singular = COUNT_NOUNS.singular_of(lower)
        if singular is not None and (word.islower() or lower in COUNT_NOUNS.common):
            return singular, end, False
        if singular is not None and word[1:].islower() and word.endswith(_PEOPLES):
            return word[:-1], end, False
        if singular is not None and word[-1] == "s" and word[-2].isupper() and not word.isupper():
            return word[:-1], end, False  # "two pIOLs", "31 MPs"
    if word.islower() and (rest := _HYPHENED.match(text, end)):  # "seven medium-depth rigs", "12 non-smokers"
        word, end = word + rest.group(), rest.end()
        singular = COUNT_NOUNS.singular_of(word)
        if singular is not None:
            return singular, end, False
    for _ in range(6):
        following = _PHRASE_WORD.match(text, end)
        if following is None:
            return None
        word, end = following.group(1), following.end()
        lower = word.lower()
        if CLASSES.get(WORDS.get(lower, "")) == "time" and len(lower) > 3 and lower.endswith("s"):
            return WORDS[lower], end, False  # "two fiscal years"
        if _ends_phrase(word, lower):
            return None
        if word.islower():
            singular = COUNT_NOUNS.singular_of(lower)
            if singular is not None:
                return None if capital_decimal and lower not in COUNT_NOUNS.common else (singular, end, False)
    return None


def _ends_phrase(word: str, lower: str) -> bool:
    """Tell whether a word cannot belong to the noun phrase of a number."""
    if (word[:1].isupper() and lower in _HEADINGS) or lower in WORDS or lower in NUMBER_WORDS:
        return True
    return lower in _FUNCTION_WORDS and not (len(word) == 1 and word.isupper())  # "Class A shares"


def _hyphenated_noun(word: str) -> bool:
    """Tell whether the word behind "four-" is a noun: "four-layer", but not "two-sided" or "two-way"."""
    if not word.islower() or len(word) < 3 or word in _FUNCTION_WORDS or word in _HYPHEN_NOT_NOUNS:
        return False
    return not word.endswith(("ed", "ing", "ly", "al", "th", "er", "ths", "ive", "ic"))


def _with_exponent(text: str, name: str, end: int, symbol: bool) -> tuple[dict[str, int], int]:
    if " " in name:
        return dict(decompose(name)), end
    if symbol:
        if (found := _EXPONENT.match(text, end)) and (text[end] in "^*²³" or CLASSES.get(name) == "length"):
            return {name: _DIGIT_OF[found.group(1) or found.group(2)]}, found.end()
        if found := _INVERSE.match(text, end):
            return {name: -_DIGIT_OF[found.group(1)]}, found.end()
    return {name: 1}, end


def _read_tail(text: str, factors: dict[str, int], start: int, end: int) -> UnitMatch | None:
    """Read "/kg/min", " per day", "·m", " kg-1" behind the first factor."""
    factors = dict(factors)
    grew, open_group = False, False
    for _ in range(6):
        sign = -1
        found = _SLASH.match(text, end)
        if found is not None:
            opened = found.group(1) is not None
            open_group = open_group or opened
        elif found := _PER.match(text, end):
            if not factors:
                start = end + 1
        elif factors and (found := _SPACE_FACTOR.match(text, end)):
            sign = 1
        elif factors and (found := _TIMES.match(text, end)):
            sign = -1 if open_group else 1
        else:
            break
        factor = _read_factor(text, found.end(), slash="/" in found.group())
        if factor is not None and not factors and sign == -1 and not (factor[2] or start == end):
            break
        if factor is None or (sign == 1 and not factor[2] and not open_group):
            break
        name, stop, _ = factor
        if (
            CLASSES.get(name) == "time"
            and any(CLASSES.get(piece) == "time" for piece in factors)
            and "/" not in found.group()
            and sign < 0
        ):
            break  # "5 days per week" are 5 days
        more, stop = _with_exponent(text, name, stop, True)
        for piece, exponent in more.items():
            factors[piece] = factors.get(piece, 0) + sign * exponent
        end, grew = stop, True
        if open_group and text.startswith(")", end):
            end, open_group = end + 1, False
    if not grew or open_group:
        return None
    return compose({k: v for k, v in factors.items() if v}), start, end


def _read_factor(text: str, position: int, *, slash: bool) -> tuple[str, int, bool] | None:
    found = _LETTERS.match(text, position)
    if found is None:
        return None
    word, end = found.group(), found.end()
    name = SYMBOLS.get(word)
    if (
        name is not None
        and CLASSES.get(name) not in ("money", "percent")
        and " " not in name
        and word not in ("in", "at")
    ):
        return name, end, True
    name = WORDS.get(word.lower())
    if name is not None and CLASSES.get(name) not in ("money", "percent"):
        return name, end, False
    if slash and COUNT_NOUNS.common.get(word) == word:
        return word, end, False
    return None
