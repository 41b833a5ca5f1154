"""Reading quantities: one pass over the places where a number may begin, then one pass over neighbours.

The first pass reads number, unit and context of each mention, and marks what only looks like a quantity: years, dates,
labels, names. The second pass joins neighbours: ranges and lists share the unit at one of their ends, chains of hyphens
or slashes are dates and telephone numbers.
"""

from __future__ import annotations

import itertools
import re

from numcolbert.quantities.nouns import word_set
from numcolbert.quantities.numbers import ANCHOR, SPACES, Number, power_of_ten, read_number, rescale, skip_run
from numcolbert.quantities.quantity import Quantity
from numcolbert.quantities.unit_grammar import read_noun_after, read_unit
from numcolbert.quantities.unit_tables import CLASSES, PREFIXES

_SIGNS = frozenset("¢$£€¥₹₩₪₽₺₴₦₱₫฿₿₤")
_SIGN_BEFORE = re.compile(rf"(?:[A-Z][A-Za-z.]{{0,3}})?[¢$£€¥₹₩₪₽₺₴₦₱₫฿₿₤][{SPACES}]?$")
_CODE_BEFORE = re.compile(rf"(?:^|[^A-Za-z0-9])([A-Z][A-Za-z]{{1,3}}\.?)[{SPACES}]?$")
_LAST_WORD = re.compile(r"([A-Za-z][A-Za-z'’-]*)(\.?)[ \u00a0]$")
_SCALE_LETTERS = re.compile(r"[ ]?(k|K|m|MM|M|b|B|t|T|cr)(?![A-Za-z0-9])")
_ATTACHED_SCALE = re.compile(r"(k|K|m|M)(?![A-Za-z0-9/²³^])")
_DASHES = "-–—−‐‑"
_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC)"
)
_MONTHS = frozenset(_MONTH[3:-1].split("|"))
_MONTH_AFTER = re.compile(rf"(?:[ -]|[ ]of[ ]){_MONTH}(?![A-Za-z])")
_CLOCK_AFTER = re.compile(r"[ ]?(?:a\.m\.|p\.m\.|am\b|pm\b|AM\b|PM\b|gmt\b|GMT\b|hrs GMT|EST\b|EDT\b|o'clock|o’clock)")
_HYPHEN_NAME = re.compile(r"[-‐‑](?!to-|to |and-|or-)[A-Za-z]")
_LISTED = re.compile(r"([0-9]{1,15}),(?:[0-9]{1,2}|[0-9]{4,15})(?![0-9.,])")
_ORDINAL_SCALE = re.compile(r"[ -](?:hundred|thousand|million|billion)th")
_ATTACHED_CODES = word_set("""
EUR USD GBP Rs Rs. INR AUD CAD CHF JPY SEK NOK DKK DM CNY RMB HKD SGD NZD ZAR BRL SFr FFr
""")
_SHARE_OF = re.compile(r"[ ](?:of|the|its|their|his|her|our|all)[ ]")
_TABLE_ROW = re.compile(r"[ ](?:[0-9]|±|\([0-9]{1,3}(?:\.[0-9]+)?%?\))")
_SQUARE = re.compile(r"\[[0-9]{1,3}(?:[ ]?[,;–-][ ]?[0-9]{1,3}){0,20}\]")
_BRACKETED = re.compile(r"\([0-9]{1,3}(?:[ ]?[,;–-][ ]?[0-9]{1,3}){0,20}\)")
_PHONE = re.compile(r"[0-9]{1,3}(?:[ .()-]{1,2}[0-9]{2,4}){2,5}(?![0-9])")
_AREA_PHONE = re.compile(r"[0-9]{3}\)[ ]?[0-9]{3}[-. ][0-9]{4}(?![0-9])")
_HALF_PERIOD = re.compile(
    r"(?:first|second|1st|2nd|latter|other|better|last|next|this|each|every|prior|previous)[ -]$", re.I
)
_DATED_PERIOD = re.compile(
    r"\b(?:last|next|this|that|each|every|prior|previous|past|same|one|a|per) (?:day|week|month|session|cycle)[ ]$",
    re.I,
)
_DOI = re.compile(r"10\.[0-9]{4,9}/\S{1,100}")
_ACCOUNTING = re.compile(r"\(([0-9][0-9.,]*)\)")

_LABELS = word_set("""
type section sections sec figure figures fig figs table tables phase phases group groups grade grades stage chapter
page pages pp no nos number numbers version versions class level model step visit appendix article articles rule
regulation act flight route highway interstate room suite channel volume vol issue equation eq eqs ref refs
reference references box part title block paragraph schedule example note annex clause item question exhibit form
file panel protocol day days week weeks month months year cycle cycles period cohort study experiment trial arm line
lane platform gate files blocks tranche channel tables figs unit building apartment apt district division zone area
chapter lot series size factor category tier theme aim hypothesis objective session module mark release patch
edition chapter verse psalm windows ios android quarter q additional supplementary war iphone ipad galaxy boeing
airbus nokia playstation xbox kindle
""")
_DECIMAL_LABELS = word_set("""
section sections sec chapter version versions release table tables figure figures fig figs appendix article v
paragraph clause item step rule software equation eq exhibit annex
""")
_SOFTWARE = word_set("""
SPSS SAS Stata STATA R Python Windows Java Linux Android iOS Ubuntu MATLAB Matlab Prism Excel Chrome Firefox RevMan
macOS PHP Ruby MedDRA CTCAE Debian Fedora Kubernetes Node PostgreSQL MySQL TensorFlow PyTorch Perl
""")
_SENTENCE_WORDS = word_set("""
a an the in on at to for from with by as of and or but if when while after before during since until about over
under between among all both only some more most less least nearly almost around approximately exactly roughly than
up down net shr shrs revs sales avg qtr mths year profit loss assets loans deposits oper revenue revenues total
income turnover dividend div pay record payout earnings ebitda eps production output age aged mean median sd se n
bmi ci or hr rr iqr range score is was were are has had have that which who it he she they we there these those this
its their our says said plus minus versus vs was totals totaling rose fell gained lost closed up down another every
each per nine male female men women patients participants of
""")


class _Mention:
    __slots__ = (
        "end",
        "keep",
        "label",
        "number",
        "number_end",
        "prefix",
        "start",
        "unit",
        "unit_span",
        "value",
        "value_start",
    )

    def __init__(self, number: Number, start: int) -> None:
        self.number = number
        self.value = number.value
        self.value_start = number.start
        self.number_end = number.end
        self.start = start
        self.end = number.end
        self.unit: str | None = None
        self.unit_span: tuple[int, int] | None = None
        self.prefix = False
        self.keep = True
        self.label = False


def extract_quantities(text: str) -> list[Quantity]:
    """Read the quantities of a text.

    Parameters
    ----------
    text
        English text of any length.

    Returns
    -------
    list of Quantity
        In the order of the text. Years, dates, times of day, section numbers, telephone numbers, model and version
        names are no quantities.

    Examples
    --------
    >>> [(q.value, q.unit, q.surface) for q in extract_quantities("Net rose to 1.2 mln dlrs, up 12.5 % from 1986.")]
    [(1200000.0, 'USD', '1.2 mln dlrs'), (12.5, 'percent', '12.5 %')]
    >>> [(q.value, q.unit, q.surface) for q in extract_quantities("Patients received 5-10 mg/kg.")]
    [(5.0, 'milligram / kilogram', '5'), (10.0, 'milligram / kilogram', '10 mg/kg')]
    """
    mentions: list[_Mention] = []
    position = 0
    search = ANCHOR.search
    while found := search(text, position):
        mention, position = _read_mention(text, found.start(), mentions[-1] if mentions else None, position)
        if mention is not None:
            mentions.append(mention)
    if len(mentions) > 1:
        _join_neighbours(text, mentions)
    return [
        Quantity(m.value, m.unit, (m.start, m.end), text[m.start : m.end], (m.value_start, m.number_end), m.unit_span)
        for m in mentions
        if m.keep
    ]


def _read_mention(text: str, start: int, previous: _Mention | None, floor: int) -> tuple[_Mention | None, int]:
    """Read the mention whose number begins at `start`; give it (or None) and where to go on."""
    before = text[start - 1] if start else ""
    if before == "." and start >= floor + 1 and not (start > 1 and text[start - 2].isalnum()):
        start -= 1
        before = text[start - 1] if start else ""
    if text.startswith("10.", start) and (doi := _DOI.match(text, start)):
        return None, doi.end()
    number = read_number(text, start)
    if number is None:
        if text[start].isalpha():
            return None, start + 1
        return None, skip_run(text, start + (text[start] == "."))
    adjacent = previous is not None and previous.end == start - 1
    mention = _Mention(number, start)

    # what stands before
    prefix = _read_prefix(text, start, floor)
    if prefix is not None:
        mention.unit, mention.start = prefix
        mention.unit_span = (prefix[0] and mention.start, start) and _trim(text, mention.start, start)
        mention.prefix = True
        before = text[mention.start - 1] if mention.start else ""
        if before in _DASHES and before and not (mention.start > 1 and text[mention.start - 2].isalnum()):
            mention.start -= 1
            mention.value = -mention.value
        elif text[start - 1] in "-−–" and text[start - 2] in _SIGNS:
            mention.value = -mention.value
            mention.value_start = start - 1
            mention.unit_span = _trim(text, mention.start, start - 1)
    elif before == "(" and start > 1 and (closing := _ACCOUNTING.match(text, start - 1)):
        outer = _read_prefix(text, start - 1, floor)
        if outer is not None:
            inner = read_number(text, start)
            if inner is not None and inner.end == closing.end() - 1:
                padded = _scaled_after(text, inner, closing.end())
                mention = _Mention(padded, start - 1)
                mention.value = -padded.value
                mention.value_start = start - 1
                mention.unit, mention.start = outer
                mention.unit_span = _trim(text, mention.start, start - 1)
                mention.prefix = True
                number = padded
    elif before and (before.isalnum() or before == "_"):
        return None, _past_name(text, number)
    elif before in _DASHES and before:
        two_back = text[start - 2] if start > 1 else ""
        if adjacent:
            pass
        elif two_back.isalnum() or two_back in (")", "]", "%"):
            return None, _past_name(text, number)
        elif before in "-−–":
            mention.value = -mention.value
            mention.start = mention.value_start = start - 1
    elif before == " " and text.startswith("minus ", start - 6) and not (previous and previous.end >= start - 7):
        mention.value = -mention.value
        mention.start = mention.value_start = start - 6
    elif (before == "+" and (phone := _PHONE.match(text, start))) or (
        before == "(" and (phone := _AREA_PHONE.match(text, start))
    ):
        return None, phone.end()
    elif before in "'’#^;" and before:
        return None, _past_name(text, number)
    elif before == "/" and not adjacent:
        if start > 1 and text[start - 2].isalnum():
            return None, _past_name(text, number)
    elif before == ":" and start > 1 and text[start - 2].isdigit():
        if previous is not None and previous.end == start - 1 and previous.unit is None:
            previous.keep = False
        return None, _past_name(text, number)
    elif before == "." and start > 1 and text[start - 2].isalpha():
        return None, _past_name(text, number)

    # scale letters: "$10k", "3.5m people"
    if number.scale == 0 and not number.words:
        if mention.prefix:
            letters = _SCALE_LETTERS.match(text, number.end)
            if letters is not None and not (letters.group(1) == "t" and text[number.end] == " "):
                number = rescale(number, letters.group(1), letters.end())
        elif letters := _ATTACHED_SCALE.match(text, number.end):
            scaled = rescale(number, letters.group(1), letters.end())
            if letters.group(1) in "kK":
                number = scaled
            else:
                unit = read_unit(text, scaled)
                if unit is not None and (CLASSES.get(unit[0], "count") in ("money", "count") or len(unit[0]) > 1):
                    number = scaled
        if number.scale:
            mention.number = number
            mention.value = -number.value if mention.value < 0 else number.value
            mention.end = mention.number_end = number.end

    # the unit behind
    signed = mention.value < 0 and (previous is None or previous.end < mention.start - 1)
    yearlike = (
        number.plain
        and not (mention.prefix or signed)
        and 1400 <= number.value <= 2100
        and number.end - number.start == 4
    )
    if not mention.prefix:
        unit = read_unit(text, number, sentence_year=yearlike)
        if unit is not None:
            mention.unit = unit[0]
            mention.unit_span = unit[1], unit[2]
            mention.end = unit[2]
    else:  # "$5 dollars", "US$ 5 million U.S. dollars" say the unit twice
        unit = read_unit(text, number)
        if (unit is not None and unit[0] == mention.unit) or (
            unit is not None and unit[0] in ("USD", "USD_cent") and CLASSES[mention.unit or ""] == "money"
        ):
            mention.end = unit[2]

    if mention.unit is None and number.scale == 0 and (comma := _LISTED.match(text, number.start)):
        number = Number(float(comma.group(1)), number.start, comma.end(1), True, float(comma.group(1)), 0, False)
        sign = -1 if mention.value < 0 else 1
        mention.number, mention.value, mention.end, mention.number_end = (
            number,
            sign * number.value,
            number.end,
            number.end,
        )
    if (mention.unit is None and not _bare_number_stands(text, number, mention, yearlike)) or (
        mention.unit is not None and not mention.prefix and not _unit_stands(text, number, mention)
    ):
        mention.keep = False
    if mention.keep and mention.start == number.start and _labelled(text, start, mention, previous):
        mention.keep = False
        mention.label = True
    if mention.keep and number.plain and mention.unit is None and before == "," and _follows_word(text, start, number):
        mention.keep, mention.label = False, True
    if mention.keep and number.plain and mention.unit is None and _is_reference(text, start, number, previous):
        mention.keep = False
    return mention, max(mention.end, number.end)


def _scaled_after(text: str, number: Number, end: int) -> Number:
    """Give the number of "(4.2) million" its scale word, which stands behind the bracket."""
    stand_in = read_number("1" + text[end : end + 24], 0)
    if stand_in is None or stand_in.scale == 0:
        return number._replace(end=end, plain=False)
    value = power_of_ten(number.mantissa, stand_in.scale)
    return number._replace(value=value, end=end + stand_in.end - 1, plain=False, scale=stand_in.scale)


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    while end > start and text[end - 1] in SPACES:
        end -= 1
    return start, end


def _past_name(text: str, number: Number) -> int:
    return number.end


def _read_prefix(text: str, start: int, floor: int) -> tuple[str, int] | None:
    """Read a currency sign or code that ends at `start`."""
    if not start:
        return None
    last = text[start - 1]
    if last in "-−–" and start > 1 and text[start - 2] in _SIGNS:
        start -= 1
        last = text[start - 1]
    if last in SPACES:
        if start < 2:
            return None
        last = text[start - 2]
    if last in _SIGNS:
        window = max(floor, start - 7)
        found = _SIGN_BEFORE.search(text[window:start])
        if found is None:
            return None
        written = found.group().rstrip(SPACES)
        for skip in range(len(written)):
            if written[skip:] in PREFIXES and (skip == 0 or not written[skip - 1].isalpha()):
                return PREFIXES[written[skip:]], window + found.start() + skip
        return PREFIXES.get(written[-1], "USD"), start - len(found.group()) + len(written) - 1
    if last.isalpha() or last == ".":
        window = max(floor, start - 8)
        found = _CODE_BEFORE.search(text[window:start])
        if found is not None and found.group(1) in PREFIXES:
            if text[start - 1] not in SPACES and not _attached_code(text, found.group(1), start):
                return None
            if found.group(1) == "INR" and _small(text, start):
                return None  # the international normalized ratio
            return PREFIXES[found.group(1)], window + found.start(1)
    return None


def _small(text: str, start: int) -> bool:
    number = read_number(text, start)
    return number is not None and number.value < 20 and not number.scale


def _attached_code(text: str, code: str, start: int) -> bool:
    """Tell "EUR10" and "Rs.500" from gene names such as CYP2C19."""
    if code not in _ATTACHED_CODES:
        return False
    end = skip_run(text, start)
    return end >= len(text) or not text[end].isalpha() or text[end] in "kmbt"


def _bare_number_stands(text: str, number: Number, mention: _Mention, yearlike: bool) -> bool:
    """Tell whether a number without a unit is a quantity at all."""
    end = number.end
    after = text[end] if end < len(text) else ""
    if after.isalpha() or after in ("_", "€") or (after == ":" and end + 1 < len(text) and text[end + 1].isdigit()):
        return False
    if after == "." and end + 1 < len(text) and text[end + 1].isalpha() and number.plain:
        return False
    if after and after in "-‐‑" and _HYPHEN_NAME.match(text, end):
        return not number.plain and not number.words
    if _ORDINAL_SCALE.match(text, end):
        return False
    if number.value == 0.5 and text[number.start : end].lower().endswith("half"):
        return (
            _SHARE_OF.match(text, end) is not None
            and _HALF_PERIOD.search(text[max(0, number.start - 10) : number.start]) is None
        )
    if number.words:
        return number.scale > 0 or number.value != 1
    if after == "(" and end + 1 < len(text) and text[end + 1].isalpha():
        return False
    if not number.plain:
        return not (number.scale == 3 and text[end - 1] == "K" and number.value < 10_000)  # "4K video"
    start = number.start
    digits = text[start:end]
    if len(digits) > 1 and digits[0] == "0":
        return False
    if yearlike and not _measured(text, start):
        return False
    if number.value <= 31 and _MONTH_AFTER.match(text, end):
        return False
    if _CLOCK_AFTER.match(text, end):
        return False
    if after == ")" and number.value < 100 and _is_item(text, start):
        return False  # "5) diabetes"
    before = text[start - 1] if start else ""
    if (before == "\n" and after in ("\n", "")) or (after == "\n" and not start):
        return False  # alone on its line: a reference or a page
    return not (before == "[" or after == "]" or len(digits) > 15)


def _is_item(text: str, start: int) -> bool:
    """Tell whether an integer before a closing bracket begins a line or sentence, as the number of an item does."""
    if start and text[start - 1] != "\n" and text[max(0, start - 2) : start] not in (". ", "! ", "? "):
        return False
    return text.rfind("(", max(0, start - 40), start) <= text.rfind(")", max(0, start - 40), start)


def _follows_word(text: str, start: int, number: Number) -> bool:
    """Tell whether a small integer hangs on a word by a comma, as references do: "in sclerosis,29,30 and"."""
    return number.value < 1000 and start > 1 and text[start - 2].isalpha()


def _is_reference(text: str, start: int, number: Number, previous: _Mention | None) -> bool:
    """Tell whether a bare integer stands in a bracket of references: "shown before (12, 14-16)"."""
    if number.value >= 1000:
        return False
    if previous is not None and not previous.keep and previous.label and previous.end >= start - 2:
        return False
    opening = max(text.rfind("(", max(0, start - 40), start), text.rfind("[", max(0, start - 40), start))
    if opening < 0:
        return False
    bracket = _BRACKETED.match(text, opening) or _SQUARE.match(text, opening)
    if bracket is None or bracket.end() < number.end:
        return False
    before = text[max(0, opening - 2) : opening].rstrip()
    return not (before[-1:].isdigit() or before[-1:] in ("%", "°", "=") or before == "CI")


def _measured(text: str, start: int) -> bool:
    """Tell whether "=", "<", ">" or the like stands before a bare number."""
    window = text[max(0, start - 2) : start].rstrip()
    return window.endswith(("=", "<", ">", "≥", "≤", "±"))


def _unit_stands(text: str, number: Number, mention: _Mention) -> bool:
    """Tell whether number and unit together are a quantity ("12 March" is a date)."""
    if (
        number.words
        and number.value == 0.5
        and text[number.end - 1] == "f"
        and mention.unit in ("year", "quarter", "month", "season")
    ):
        return False  # "half year" is a period; "half a year" reads "half a"
    if not number.plain:
        return True
    if number.value <= 31 and _MONTH_AFTER.match(text, number.end):
        return False
    return not (text[number.start] == "0" and number.end - number.start > 1)


def _is_month(word: str) -> bool:
    """Tell whether a word is a month; "may" and "march" are one with a capital only."""
    return word.capitalize() in _MONTHS and (word[0].isupper() or (len(word) > 3 and word not in ("may", "march")))


def _labelled(text: str, start: int, mention: _Mention, previous: _Mention | None) -> bool:
    """Tell whether the word before makes the number a name: "type 2", "Nokia 3310", "section 4.2", "February 22"."""
    if start < 2 or text[start - 1] not in SPACES:
        return False
    found = _LAST_WORD.search(text[max(0, start - 24) : start])
    if found is None:
        return False
    if _DATED_PERIOD.search(text[max(0, start - 17) : start]):
        return False  # "last week three exchanges"
    word, point = found.group(1), found.group(2)
    lower = word.lower()
    if lower in _LABELS and previous is not None and previous.unit is not None and previous.end == start - 1:
        return False  # "8 weeks 15 patients": the word belongs to the quantity before
    number, unit = mention.number, mention.unit
    unit_class = None if unit is None else CLASSES.get(unit, "count" if " " not in unit else "rate")
    if not number.plain:
        if number.words and number.scale == 0 and number.value <= 31:
            if unit_class != "time" and text[start].isupper() and word != "and" and not point:
                return word[0].isupper() or lower in ("of", "the")  # "Group of Seven", "the Big Three"
            return _is_month(word) or (lower in _LABELS and unit_class in (None, "count"))
        return unit is None and number.scale == 0 and (lower in _DECIMAL_LABELS or word in _SOFTWARE)
    if _is_month(word):
        return mention.value <= 31 and (unit_class in (None, "count") or unit in ("week", "quarter", "day", "month"))
    if lower in _LABELS:
        if unit_class not in (None, "count"):
            return mention.end == mention.number_end + 1 and text[mention.end - 1].isupper()  # "Rule 144A"
        return unit is None or lower not in ("year", "month", "months", "unit", "line", "number", "area", "size")
    if unit is not None or (point and lower not in ("no", "fig")):
        return False
    if word in _SOFTWARE:
        return True
    if _TABLE_ROW.match(text, number.end):
        return False
    return (word[0].isupper() and lower not in _SENTENCE_WORDS) or (
        any(c.isupper() for c in word[1:]) and not word.isupper()
    )


# --- neighbours -----------------------------------------------------------------------------------------------------

_RANGE = frozenset(
    {
        "-",
        "–",
        "—",
        "−",
        "‐",
        "‑",
        " - ",
        " – ",
        " — ",
        "- ",
        " -",
        " to ",
        "-to-",
        "- to ",
        "-\u00a0to ",
        " to",
        "to ",
        "~",
        " through ",
    }
)
_DASH_ONLY = frozenset({"-", "–", "—", "−", "‐", "‑"})
_SPREAD = frozenset({"±", " ± ", " ±", "± ", "+/-", " +/- ", " +/ - ", "+/−", " +/− ", " +- ", "+-"})
_EITHER = frozenset(
    {
        " and ",
        " or ",
        "/",
        " x ",
        " × ",
        "x",
        "×",
        " by ",
        "-by-",
        " and/or ",
        "-or-",
        "-and-",
        "- or ",
        "- and ",
        ", or ",
        ", and ",
    }
)
_LIST = frozenset({", ", ","})


def _join_neighbours(text: str, mentions: list[_Mention]) -> None:
    joints = [""]
    for left, right in itertools.pairwise(mentions):
        gap = right.start - left.end
        joints.append(text[left.end : right.start] if 0 < gap <= 9 else "")
    joints.append("")
    _drop_chains(text, mentions, joints)
    for i in range(1, len(mentions)):
        left, right = mentions[i - 1], mentions[i]
        if (
            left.label
            and right.keep
            and right.unit is None
            and joints[i]
            and (joints[i] in _LIST or joints[i] in _EITHER or joints[i] in _RANGE)
        ):
            right.keep, right.label = False, not right.number.scale
    shared = False
    for i in range(len(mentions) - 1, 0, -1):
        left, right, joint = mentions[i - 1], mentions[i], joints[i]
        if right.keep and not left.keep and _is_measure(right) and (joint in _RANGE or joint in _EITHER):
            left.keep = _no_year_after_all(left, right)
        if right.keep and right.unit is not None and _is_bare_one(left) and (joint in _RANGE or joint == " or "):
            left.keep = True  # "one to four days"
        if not joint or not (left.keep and right.keep):
            shared = False
            continue
        if joint in (" ", " (") and left.unit is None and right.unit is not None:
            noun = read_noun_after(text, right.end + text.startswith(")", right.end))
            if noun is not None and (left.number.plain or left.number.words):
                left.unit = noun
            shared = False
            continue
        in_range = joint in _RANGE
        was_shared, shared = shared, False
        if in_range and left.unit is not None and left.prefix and not right.prefix and not _is_measure(right):
            right.unit, right.unit_span, right.end = left.unit, None, right.number_end  # "$5-10 million deals"
            _share_scale(left, right)
        elif left.unit is None and right.unit is not None:
            if (
                in_range
                or joint in _SPREAD
                or joint in _EITHER
                or (joint in _LIST and (was_shared or _listed(mentions, joints, i)))
            ):
                if (right.prefix and not in_range) or (right.unit == "percent" and abs(left.value) >= 1000):
                    continue
                if not in_range and right.unit == "percent" and _measured(text, left.start):
                    continue  # "α = 0.05 and 80% power"
                left.unit = right.unit
                shared = True
                _share_scale(left, right)
        elif left.unit == right.unit and (
            in_range or (joint == " and " and text[max(0, left.start - 8) : left.start].lower() == "between ")
        ):
            _share_scale(left, right)


def _is_bare_one(mention: _Mention) -> bool:
    number = mention.number
    return number.words and number.value == 1 and number.scale == 0 and mention.unit is None and not mention.label


def _no_year_after_all(left: _Mention, right: _Mention) -> bool:
    """Tell whether what looked like a year is the first of two like values: "1921 and 1812 mg"."""
    alike = right.value / 3 < left.value < right.value * 3
    return alike and not left.label and left.number.plain and 1400 <= left.value <= 2100


def _listed(mentions: list[_Mention], joints: list[str], i: int) -> bool:
    """Tell "0, 1, 2, 3 points" (a list) from "n = 40, 12 weeks" (two things side by side)."""
    return joints[i - 1] in _LIST and mentions[i - 2].keep and mentions[i - 2].unit is None


def _share_scale(left: _Mention, right: _Mention) -> None:
    """Read "10 to 15 mln" as two millions; "900 to 1.2 mln" names its first end in full."""
    a, b = left.number, right.number
    if a.scale == 0 and b.scale >= 3 and abs(a.mantissa) < abs(b.mantissa) and a.mantissa < 1000:
        left.value = power_of_ten(left.value, b.scale)


def _drop_chains(text: str, mentions: list[_Mention], joints: list[str]) -> None:
    """Drop dates, telephone numbers and year ranges: numbers chained by hyphens or slashes."""
    i = 1
    while i < len(mentions):
        joint = joints[i]
        if joint not in _DASH_ONLY and joint != "/":
            i += 1
            continue
        first = i - 1
        while (
            i < len(mentions)
            and joints[i]
            and (joints[i] == joint or (joints[i] in _DASH_ONLY and joint in _DASH_ONLY))
        ):
            i += 1
        chain = mentions[first:i]
        left, right = chain[0], chain[1]
        if len(chain) > 2:
            if not any(m.unit for m in chain):
                for m in chain:
                    m.keep = False
        elif not left.keep and left.unit is None and (right.unit is None or not _is_measure(right)):
            right.keep = False
        elif left.unit is None and right.unit is None and left.number.plain and right.number.plain:
            a, b = (text[m.number.start : m.number.end] for m in chain)
            idiom = joint == "/" and (a, b) in (("24", "7"), ("9", "11"))
            years = len(a) == 4 and 1400 <= left.value <= 2100 and len(b) in (2, 4)
            phone = joint in _DASH_ONLY and len(b) == 4 and len(a) == 3
            if years or phone or idiom or not right.keep or not left.keep:
                left.keep = right.keep = False
        elif left.unit is None and right.unit is not None and left.number.plain and _is_measure(right):
            left.keep = True  # "1000-2000 mg": no year after all


def _is_measure(mention: _Mention) -> bool:
    return mention.unit is not None and (CLASSES.get(mention.unit, "count") != "count" or " " in mention.unit)
