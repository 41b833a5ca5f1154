"""The number grammar: digits, words, fractions and scales, read from a given place in a text, and written back.

Every reader starts at one position and only moves forward, so reading a whole text takes linear time.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import NamedTuple


class Number(NamedTuple):
    """A number read from text."""

    value: float
    start: int
    end: int
    plain: bool
    """Nothing but digits: the only form that years, labels and model names take."""
    mantissa: float
    """The value before scale words."""
    scale: int
    """Power of ten of the scale words, 0 if there are none."""
    words: bool
    """Written in words."""


SCALES = {
    "hundred": 2, "thousand": 3, "thousands": 3, "thous": 3, "thou": 3,
    "million": 6, "millions": 6, "mln": 6, "mlns": 6, "mn": 6, "mio": 6, "mill": 6,
    "billion": 9, "billions": 9, "bln": 9, "blns": 9, "bn": 9,
    "trillion": 12, "trillions": 12, "trn": 12, "tln": 12, "tn": 12,
    "lakh": 5, "lakhs": 5, "lac": 5, "lacs": 5, "crore": 7, "crores": 7,
}  # fmt: skip
"""Scale words and the power of ten each stands for."""
LETTER_SCALES = {"k": 3, "K": 3, "m": 6, "M": 6, "MM": 6, "b": 9, "B": 9, "t": 12, "T": 12, "cr": 7}
"""Letters that scale money ("$10k", "£5m") and, attached, a few other things; elsewhere they are units."""

_ONES = (
    "zero one two three four five six seven eight nine ten eleven "
    "twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_SMALL = {word: i for i, word in enumerate(_ONES.split())} | {w: 10 * i for i, w in enumerate(_TENS.split(), start=2)}
_SMALL["fourty"] = 40
NUMBER_WORDS = frozenset(_SMALL)
"""Words below a hundred."""
_PARTS = {
    "half": 2, "halves": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4, "fourth": 4, "fourths": 4,
    "fifth": 5, "fifths": 5, "sixth": 6, "sixths": 6, "seventh": 7, "sevenths": 7, "eighth": 8, "eighths": 8,
    "tenth": 10, "tenths": 10, "sixteenth": 16, "sixteenths": 16,
}  # fmt: skip
_VULGAR = {
    "½": (1, 2), "⅓": (1, 3), "⅔": (2, 3), "¼": (1, 4), "¾": (3, 4), "⅕": (1, 5), "⅖": (2, 5), "⅗": (3, 5),
    "⅘": (4, 5), "⅙": (1, 6), "⅚": (5, 6), "⅛": (1, 8), "⅜": (3, 8), "⅝": (5, 8), "⅞": (7, 8),
}  # fmt: skip
_DENOMINATORS = frozenset({2, 3, 4, 5, 6, 7, 8, 10, 16, 32, 64, 100})
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺−–", "0123456789-+--")

SPACES = " \u00a0\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f"
"""Spaces that may stand within a quantity, the thin ones of typesetting among them."""
_RUN = re.compile(r"[0-9]+(?:[.,][0-9]+){0,12}")  # bounded: a longer chain is read piece by piece, in linear time
_FIRST_ITEM = re.compile(r"[0-9]+(?:\.[0-9]+)?(?=,)")
_SPACE_GROUP = re.compile(rf"[{SPACES}]([0-9]{{3}})(?![0-9]|,[0-9]{{3}}|[–-][0-9])")
_TABLE_CELLS = re.compile(r"[ ][0-9]")  # "152 120 78.9": cells of a table, no groups of a number
_DASH_DIGIT = re.compile(r"[0-9][-–]")
_APOSTROPHE_GROUP = re.compile(r"['’]([0-9]{3})(?![0-9])")
_DECIMALS = re.compile(r"[.,]([0-9]+)")
_EXPONENT = re.compile(r"[eE]([+\-−]?[0-9]{1,3})(?![0-9A-Za-z])")
_TIMES_TEN = re.compile(
    rf"[{SPACES}]?[×xX*·⋅][{SPACES}]?10(?:(?:\^|\*\*)\(?([+\-−–]?[0-9]{{1,3}})\)?|\(([0-9]{{1,2}})\)|([⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{{1,3}})"
    r"|([0-9]{1,2}(?=[ ]?/)))"
)
_POWER = re.compile(r"(?:\^|\*\*)\(?([+\-−–]?[0-9]{1,3})\)?|([⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3})")
_MIXED = re.compile(r"[ \u00a0-]([0-9]{1,2})[/⁄]([0-9]{1,3})(?![0-9/])(?!\.[0-9])")
_FRACTION = re.compile(r"[/⁄]([0-9]{1,3})(?![0-9/])(?![.,:][0-9])")
_PERCENT_AFTER = re.compile(r"[ -]?(?:%|pct\b|per[ ]?cent\b)")
_AND_PART = re.compile(r"[ -]and[ -](?:an?|one)[ -](half|quarter|third)(?![A-Za-z])", re.IGNORECASE)
_NEXT_WORD = re.compile(rf"[{SPACES}\n-]?([A-Za-z]{{1,12}})(?![A-Za-z])")
_WORD = re.compile(r"[A-Za-z]{1,12}(?![A-Za-z])")
_DOZEN = re.compile(r"[ -]dozen(?![A-Za-z])", re.IGNORECASE)

ANCHOR = re.compile(
    r"[0-9½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞]"
    rf"|\b(?=[aefhnostzAEFHNOSTZ])(?i:(?:{'|'.join(sorted([*_SMALL, 'half'], key=len, reverse=True))})(?![a-z])"
    r"|an?[ -](?:hundred|thousand|million|billion|trillion|lakh|crore|dozen|half|third|quarter|fifth|tenth)(?![a-z]))"
)
"""Where a number may begin. The look at the first letter halves the time of the search."""


def _literal(run: str) -> tuple[str, bool] | None:
    """Turn a run of digits, commas and points into a Python literal and whether its only comma may be a list's."""
    points, commas = run.count("."), run.count(",")
    if not points and not commas:
        return run, False
    if not commas:
        if points == 1:
            return run, False
        groups = run.split(".")
        return ("".join(groups), False) if _western(groups) else None
    if not points:
        groups = run.split(",")
        if _western(groups) or _indian(groups):
            return "".join(groups), False
        return (".".join(groups), True) if commas == 1 else None
    if points == 1 and run.rindex(",") < run.index("."):  # 1,234.56 and 1,25,000.50
        whole, _, decimals = run.partition(".")
        groups = whole.split(",")
        return ("".join(groups) + "." + decimals, False) if _western(groups) or _indian(groups) else None
    if commas == 1 and run.rindex(".") < run.index(","):  # 1.234,56
        whole, _, decimals = run.partition(",")
        groups = whole.split(".")
        return ("".join(groups) + "." + decimals, False) if _western(groups) else None
    return None


def _western(groups: list[str]) -> bool:
    return 0 < len(groups[0]) <= 3 and groups[0][0] != "0" and all(len(group) == 3 for group in groups[1:])


def _indian(groups: list[str]) -> bool:
    return (
        len(groups) > 2
        and len(groups[0]) <= 2
        and len(groups[-1]) == 3
        and all(len(group) == 2 for group in groups[1:-1])
    )


def skip_run(text: str, start: int) -> int:
    """Find the end of the digits, points and commas at `start`.

    Parameters
    ----------
    text
        Any text.
    start
        Where a digit stands.

    Returns
    -------
    int
        Position after the run.
    """
    found = _RUN.match(text, start)
    return found.end() if found else start + 1


def read_number(text: str, start: int) -> Number | None:
    """Read the number that begins at `start`, digits or words, with its scale words.

    Parameters
    ----------
    text
        Any text.
    start
        Where `ANCHOR` matched, or the point of a decimal such as ".05".

    Returns
    -------
    Number or None
        None if what stands there is no number (a version such as 3.11.7, "one third" of nothing).

    Examples
    --------
    >>> read_number("45-1/4 dlrs", 0).value
    45.25
    >>> read_number("two hundred and fifty employees", 0).value
    250.0
    >>> read_number("3.11.7", 0) is None
    True
    """
    first = text[start]
    if "0" <= first <= "9" or first == ".":
        number = _read_digits(text, start)
        return number if number is not None and math.isfinite(number.value) else None
    if first in _VULGAR:
        above, below = _VULGAR[first]
        return _scaled(text, start, start + 1, repr(above / below), plain=False, words=False)
    return _read_words(text, start)


def _read_digits(text: str, start: int) -> Number | None:
    size = len(text)
    decimal_point = text[start] == "."
    run = _RUN.match(text, start + decimal_point)
    if run is None:
        return None
    digits, end = run.group(), run.end()
    if len(digits) > 280:  # beyond any float
        return None
    if decimal_point:
        if not digits.isdigit():
            return None
        literal, listed = "0." + digits, False
    else:
        read = _literal(digits)
        if read is None:  # "(-0.96,2.10)": two numbers
            first = _FIRST_ITEM.match(text, start)
            if first is None:
                return None
            digits, end = first.group(), first.end()
            read = digits, False
        literal, listed = read
    plain = not decimal_point and digits.isdigit()
    if plain and len(digits) <= 3 and end < size:
        following = text[end]
        group = (
            _SPACE_GROUP
            if following in SPACES and not _DASH_DIGIT.match(text, start - 2)
            else _APOSTROPHE_GROUP
            if following in "'’"
            else None
        )
        if group is not None and digits[0] != "0":
            pieces = [digits]
            while end < size and len(pieces) < 12 and text[end] == following and (found := group.match(text, end)):
                pieces.append(found.group(1))
                end = found.end()
            if following == " " and _TABLE_CELLS.match(text, end):
                pieces, end = [digits], run.end()
            if len(pieces) > 1:
                literal, plain = "".join(pieces), False
                if found := _DECIMALS.match(text, end):
                    literal += "." + found.group(1)
                    end = found.end()
    following = text[end] if end < size else ""
    if listed:  # "12,5 %" is a decimal, "figures 1,2" is not: the caller decides by what follows
        return _scaled(text, start, end, literal, plain=False, words=False)
    if plain and following and following in "/⁄ \u00a0-½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞":
        fraction = _read_fraction(text, end, literal)
        if fraction is not None:
            value, end = fraction
            return _scaled(text, start, end, value, plain=False, words=False)
    if following and following in "eE":
        if found := _EXPONENT.match(text, end):
            literal += "e" + found.group(1).replace("−", "-")
            return Number(float(literal), start, found.end(), False, float(literal), 0, False)
    elif literal == "10" and (found := _POWER.match(text, end)):
        power = (found.group(1) or found.group(2)).translate(_SUPERSCRIPTS)
        value_ = float("1e" + power)
        return Number(value_, start, found.end(), False, value_, 0, False)
    elif following and (following in "×xX*·⋅" or following in SPACES) and (found := _TIMES_TEN.match(text, end)):
        power = next(filter(None, found.groups())).translate(_SUPERSCRIPTS)
        value_ = float(f"{literal}e{power}")
        return Number(value_, start, found.end(), False, value_, 0, False)
    return _scaled(text, start, end, literal, plain=plain, words=False)


def _read_fraction(text: str, end: int, literal: str) -> tuple[str, int] | None:
    """Read what turns the integer before `end` into a fraction or a mixed number."""
    if len(literal) > 1 and literal[0] == "0":
        return None
    position = end + 1 if text[end] in " \u00a0-" else end
    if position < len(text) and text[position] in _VULGAR:
        above, below = _VULGAR[text[position]]
        return repr(int(literal) + above / below), position + 1
    if found := _MIXED.match(text, end):
        above, below = int(found.group(1)), int(found.group(2))
        if 0 < above < below and _is_denominator(text, found.end(), below):
            return repr(int(literal) + above / below), found.end()
    if (found := _FRACTION.match(text, end)) and len(literal) < 3:
        above, below = int(literal), int(found.group(1))
        if 0 < above < below and _is_denominator(text, found.end(), below):
            return repr(above / below), found.end()
    return None


def _is_denominator(text: str, end: int, below: int) -> bool:
    """Tell a fraction from two counts ("16/18"): by its usual denominator, or because a per cent follows."""
    return below in _DENOMINATORS or _PERCENT_AFTER.match(text, end) is not None


def _scaled(text: str, start: int, end: int, literal: str, *, plain: bool, words: bool) -> Number:
    """Apply "and a half", scale words and "dozen" after a number."""
    mantissa = float(literal)
    if text.startswith((" and a", "-and-a", " and o"), end) and (found := _AND_PART.match(text, end)):
        mantissa += 1 / _PARTS[found.group(1).lower()]
        literal, end, plain = repr(mantissa), found.end(), False
    exponent = 0
    for _ in range(3):
        found = _NEXT_WORD.match(text, end)
        power = SCALES.get(found.group(1).lower()) if found else None
        if found is None or power is None or found.group(1) == "mN":  # a millinewton
            break
        exponent += power
        end, plain = found.end(), False
    value = float(f"{literal}e{exponent}") if exponent else mantissa
    if text.startswith((" dozen", "-dozen"), end) and (found := _DOZEN.match(text, end)):
        value, end, plain = value * 12, found.end(), False
    return Number(value, start, end, plain, mantissa, exponent, words)


def power_of_ten(value: float, exponent: int) -> float:
    """Multiply by a power of ten without a rounding error of its own.

    Parameters
    ----------
    value
        A finite number.
    exponent
        The power of ten.

    Returns
    -------
    float

    Examples
    --------
    >>> power_of_ten(4.35, 2), 4.35 * 10**2
    (435.0, 434.99999999999994)
    """
    return float(Decimal(repr(value)).scaleb(exponent))


def rescale(number: Number, letters: str, end: int) -> Number:
    """Apply a scale letter ("$10k") that stands between the number and `end`.

    Parameters
    ----------
    number
        A number without scale words.
    letters
        A key of `LETTER_SCALES`.
    end
        Position after the letters.

    Returns
    -------
    Number
    """
    scale = LETTER_SCALES[letters]
    return number._replace(value=power_of_ten(number.mantissa, scale), end=end, plain=False, scale=scale)


_PART_OF = re.compile(
    r"(?:[ -]of)?[ -](?:an?|one)[ -](?=(hundred|thousand|million|billion|trillion|dozen)(?![a-z]))", re.I
)
_HALF_A = re.compile(r"[ -]an?(?= )", re.IGNORECASE)
_OF_NEXT = re.compile(r"[ ](?:of|the|a|an|its|their|his|her)[ ]", re.IGNORECASE)


def _read_words(text: str, start: int) -> Number | None:
    found = _WORD.match(text, start)
    if found is None:
        return None
    word, end = found.group().lower(), found.end()
    if word == "half":
        return _read_part(text, start, end, 0.5, loose=True)
    if word in ("a", "an"):
        following = _NEXT_WORD.match(text, end)
        if following is None:
            return None
        word = following.group(1).lower()
        if word in _PARTS:
            return _read_part(text, start, following.end(), 1 / _PARTS[word], loose=word == "half")
        return _scaled(text, start, end, "1", plain=False, words=True)
    return _read_cardinal(text, start)


def _read_part(text: str, start: int, end: int, value: float, *, loose: bool) -> Number | None:
    """Read on after "half", "a third", "three quarters": "of a million", "an hour", "of"; halves stand alone too."""
    if found := _PART_OF.match(text, end):
        return _scaled(text, start, found.end() - 1, repr(value), plain=False, words=True)
    if loose and (found := _HALF_A.match(text, end)):
        return Number(value, start, found.end(), False, value, 0, True)
    if loose or _OF_NEXT.match(text, end):
        return Number(value, start, end, False, value, 0, True)
    return None


def _read_cardinal(text: str, start: int) -> Number | None:
    total, current, last_scale = 0.0, -1.0, 100
    position, end, after_big = start, start, False
    tens, small_count = False, 0
    one_scale: tuple[float, int] | None = None  # "three mln" is 3 and 6, which "two to three mln" shares
    while found := _WORD.match(text, position):
        word = found.group().lower()
        if word in _SMALL:
            small = _SMALL[word]
            if current < 0:
                current = small
            elif (tens and 0 < small < 10) or (current >= 100 and current % 100 == 0):
                current += small
            else:
                break
            tens = small >= 20
            small_count += 1
            after_big = False
        elif word == "hundred" and 0 < current < 100:
            current, tens, after_big = current * 100, False, True
        elif (
            word in SCALES
            and word != "hundred"
            and found.group() != "mN"
            and current >= 0
            and SCALES[word] < last_scale
        ):
            last_scale = SCALES[word]
            one_scale = (current, last_scale) if total == 0 else None
            total += current * 10.0**last_scale
            current, tens, after_big = -1.0, False, True
        elif (
            word == "and"
            and after_big
            and (ahead := _NEXT_WORD.match(text, found.end()))
            and ahead[1].lower() in _SMALL
        ):
            position = ahead.start(1)
            continue
        elif word == "point" and current >= 0 and (decimals := _read_point(text, found.end())):
            digits, end = decimals
            return _scaled(text, start, end, f"{int(total + current)}.{digits}", plain=False, words=True)
        elif word in _PARTS and small_count == 1 and 0 < current < 10 and total == 0:
            hyphened = text[position - 1] == "-" or word in ("thirds", "fifths", "eighths")
            part = _read_part(text, start, found.end(), current / _PARTS[word], loose=False)
            if part is not None or not hyphened:
                if part is not None:
                    return part
                break
            return Number(current / _PARTS[word], start, found.end(), False, current / _PARTS[word], 0, True)
        else:
            break
        end = found.end()
        position = end + 1
        if position >= len(text) or text[end] not in " -\u00a0\n":
            break
    value = total + max(current, 0)
    if end == start:
        return None
    number = _scaled(text, start, end, repr(value), plain=False, words=True)
    if one_scale is not None and number.value == total and number.scale == 0:
        return number._replace(mantissa=one_scale[0], scale=one_scale[1])
    return number


def _read_point(text: str, end: int) -> tuple[str, int] | None:
    digits = ""
    while (found := _NEXT_WORD.match(text, end)) and _SMALL.get(found.group(1).lower(), 99) < 10 and len(digits) < 20:
        digits += str(_SMALL[found.group(1).lower()])
        end = found.end()
    return (digits, end) if digits else None


# --- writing --------------------------------------------------------------------------------------------------------


def plain_digits(value: float) -> str:
    """Write a value with digits alone, exactly.

    Parameters
    ----------
    value
        A finite number.

    Returns
    -------
    str

    Examples
    --------
    >>> plain_digits(1200000.0), plain_digits(0.45), plain_digits(1e-07)
    ('1200000', '0.45', '0.0000001')
    """
    text = f"{Decimal(repr(value)):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _grouped(digits: str) -> str:
    whole, point, decimals = digits.partition(".")
    sign = "-" if whole.startswith("-") else ""
    return f"{sign}{int(whole.lstrip('-')):,}{point}{decimals}"


def number_forms(value: float) -> tuple[str, ...]:
    """Write one value in the ways text writes it.

    Parameters
    ----------
    value
        A finite number.

    Returns
    -------
    tuple of str
        Different forms, each of which reads back as exactly this value.

    Examples
    --------
    >>> number_forms(1200000.0)
    ('1200000', '1,200,000', '1.2 million', '1.2 mln', '1,200 thousand')
    >>> number_forms(45.25)
    ('45.25', '45-1/4', '45 1/4')
    >>> number_forms(3.0)
    ('3', 'three')
    """
    digits = plain_digits(value)
    forms = [digits]
    size = abs(value)
    if size >= 1000:
        forms.append(_grouped(digits))
    for exponent, names in ((9, ("billion", "bln", "bn")), (6, ("million", "mln")), (3, ("thousand",))):
        low, high = (10.0**exponent, 10.0 ** (exponent + 3)) if exponent > 3 else (10_000.0, 10_000_000.0)
        if low <= size < high * (1000 if exponent == 9 else 1):
            mantissa = _shift(digits, exponent)
            if len(mantissa.replace("-", "").replace(".", "")) <= 5:
                written = _grouped(mantissa)
                forms.extend(f"{written} {name}" for name in names)
    if value > 0 and value != int(value) and value * 16 == int(value * 16) and size < 1000:
        whole, above, below = int(value), int((value % 1) * 16), 16
        while above % 2 == 0:
            above, below = above // 2, below // 2
        forms.extend([f"{whole}-{above}/{below}", f"{whole} {above}/{below}"] if whole else [f"{above}/{below}"])
    if value in _WORDS_OF:
        forms.append(_WORDS_OF[value])
    return tuple(form for form in forms if _reads_as(form, value))


def _shift(digits: str, exponent: int) -> str:
    text = f"{Decimal(digits).scaleb(-exponent):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _reads_as(form: str, value: float) -> bool:
    negative = form.startswith("-")
    number = read_number(form, 1 if negative else 0)
    return number is not None and number.end == len(form) and (-number.value if negative else number.value) == value


_WORDS_OF = {float(i): word for word, i in _SMALL.items() if 2 <= i <= 12 or i in (20, 50)}
