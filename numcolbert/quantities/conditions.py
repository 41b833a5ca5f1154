"""Reading conditions: the words and signs around a quantity that say how a document's value must compare."""

from __future__ import annotations

import re
from dataclasses import replace

from numcolbert.quantities.extraction import extract_quantities
from numcolbert.quantities.nouns import word_set
from numcolbert.quantities.quantity import Condition, Operator, Quantity

_BEFORE_TEXT: dict[Operator, str] = {
    ">": """more than, over, above, greater than, higher than, larger than, bigger than, exceeding, exceed, exceeds,
        exceeded, in excess of, upwards of, upward of, beyond, north of, surpassing, surpass, surpasses, topping, tops,
        better than, well over, well above, >, &gt;, not just""",
    "<": """less than, fewer than, under, below, lower than, smaller than, beneath, south of, short of, well under,
        well below, not even, shy of, inferior to, <, &lt;""",
    ">=": """at least, no less than, not less than, no fewer than, not fewer than, minimum of, minimum, min, min.,
        a minimum of, at minimum, no lower than, not lower than, not below, not under, no smaller than, starting at,
        starting from, from at least, greater than or equal to, more than or equal to, equal to or greater than,
        equal to or more than, equal or greater than, as little as, as few as, >=, =>, ≥, ⩾, &gt;=, ≧, not smaller than,
        no shorter than, no younger than, no cheaper than, above or equal to, higher than or equal to, or more than,
        reaching, reach, at the least""",
    "<=": """at most, no more than, not more than, no greater than, not greater than, not exceeding, not to exceed,
        does not exceed, do not exceed, up to, maximum of, maximum, max, max., a maximum of, not above, not over,
        no higher than, not higher than, no larger than, not larger than, less than or equal to, fewer than or equal to,
        equal to or less than, as much as, as many as, as high as, limited to, capped at, within, <=, =<, ≤, ⩽, ≦,
        &lt;=, not in excess of, no longer than,
        not longer than, no older than, lower than or equal to, below or equal to,
        ceiling of, limit of, until, not beyond, at the most, not exceed, never exceed, never exceeding, no over""",
    "=": """exactly, equal to, equals, equal, precisely, =, ==, just, of exactly""",
}
_AFTER_TEXT: dict[Operator, str] = {
    ">=": """or more, or above, and above, or higher, or greater, or over, and over, and up, and more, or better,
        or longer, or older, and older, or larger, or bigger, minimum, min, at least, at minimum, +, or heavier,
        or faster, or up, upwards,
        upward, and upwards, plus, at a minimum, or later, and higher, and greater, or taller""",
    "<=": """or less, or fewer, or below, and below, or lower, or under, and under, or smaller, or shorter, or younger,
        and younger, maximum, max, at most, at maximum, or cheaper, and less, or lighter, or slower, or earlier, tops,
        at the most, at a maximum, and lower, and fewer""",
    "=": "exactly, precisely",
}
_BEFORE = {phrase.strip(): operator for operator, text in _BEFORE_TEXT.items() for phrase in text.split(",")}
_AFTER = {phrase.strip(): operator for operator, text in _AFTER_TEXT.items() for phrase in text.split(",")}
_BEFORE = {" ".join(phrase.split()): operator for phrase, operator in _BEFORE.items()}
_AFTER = {" ".join(phrase.split()): operator for phrase, operator in _AFTER.items()}
_LONGEST = max(len(phrase.split()) for phrase in (*_BEFORE, *_AFTER))

_TOKEN = re.compile(r"[A-Za-z][A-Za-z'’]*\.?|&[gl]t;=?|[<>=≤≥≦≧⩽⩾]{1,2}|[+~≈]|[^\sA-Za-z]")
_FILLERS = word_set("""
a an the of about around approximately roughly nearly almost some only total approx. circa c. ~ ≈ just
""")
_DOWNWARD = word_set("""
fewer less lower smaller shorter younger cheaper slower lighter earlier thinner nearer closer colder cooler weaker
narrower shallower sooner poorer worse rarer briefer tinier newer softer quieter darker lesser
""")
_LIMITS: dict[str, Operator] = {"minimum": ">=", "min": ">=", "maximum": "<=", "max": "<="}
_NEGATIONS = word_set("no not never")
_NEGATED: dict[Operator, Operator] = {">": "<=", "<": ">=", ">=": "<", "<=": ">", "=": "="}

Tokens = list[tuple[str, int, int]]


def parse_condition(query: str) -> Condition | None:
    """Read the numerical condition of a query.

    Parameters
    ----------
    query
        A search query.

    Returns
    -------
    Condition or None
        The first condition that words or signs mark, else the first quantity as an equality; None where the query asks
        for no quantity.

    Examples
    --------
    >>> condition = parse_condition("profit no less than 3 mln dlrs")
    >>> condition.operator, condition.value, condition.unit
    ('>=', 3000000.0, 'USD')
    >>> parse_condition("who founded the company that makes the Nokia 3310") is None
    True
    """
    conditions = parse_conditions(query)
    for condition in conditions:
        if condition.operator_span is not None:
            return condition
    return conditions[0] if conditions else None


def parse_conditions(query: str) -> list[Condition]:
    """Read all numerical conditions of a query.

    Parameters
    ----------
    query
        A search query.

    Returns
    -------
    list of Condition
        In the order of the query.

    Examples
    --------
    >>> [(c.operator, c.value, c.unit) for c in parse_conditions("laptops under 2 kg with at least 16 GB")]
    [('<', 2.0, 'kilogram'), ('>=', 16.0, 'gigabyte')]
    """
    quantities = extract_quantities(query)
    conditions = []
    floor = 0
    i = 0
    while i < len(quantities):
        quantity = quantities[i]
        following = quantities[i + 1] if i + 1 < len(quantities) else None
        ceiling = following.span[0] if following else len(query)
        between = _between(query, floor, quantity, following) if following else None
        if between is not None:
            conditions.append(between)
            floor = between.quantity_span[1]
            i += 2
            continue
        operator, span = _operator(query, floor, quantity, ceiling)
        if conditions and span is not None:
            conditions[-1] = _with_unit_of_next(query, conditions[-1], quantity, span)
        conditions.append(Condition(operator, quantity.value, quantity.unit, None, span, quantity.span))
        floor = max(quantity.span[1], span[1] if span else 0)
        i += 1
    return conditions


def _with_unit_of_next(query: str, condition: Condition, quantity: Quantity, span: tuple[int, int]) -> Condition:
    """Give the first bound of "more than 10 and less than 20 kg" the unit that stands behind the second."""
    joint = query[condition.quantity_span[1] : span[0]].strip(" ,").lower()
    if condition.unit is None and condition.operator_span is not None and joint in ("and", "but", "or", ""):
        return replace(condition, unit=quantity.unit)
    return condition


def _tokens(query: str, start: int, end: int) -> Tokens:
    return [(m.group().lower(), m.start(), m.end()) for m in _TOKEN.finditer(query, start, end)]


def _between(query: str, floor: int, low: Quantity, high: Quantity) -> Condition | None:
    """Read "between A and B", "from A to B", "A to B", "A-B"."""
    joint = query[low.span[1] : high.span[0]].strip().lower()
    if low.unit != high.unit or joint not in (
        "and",
        "to",
        "-",
        "–",
        "—",
        "through",
        "and at most",
        "up to",
        "to at most",
    ):
        return None
    tokens = _tokens(query, max(floor, low.span[0] - 40), low.span[0])
    while tokens and tokens[-1][0] in _FILLERS:
        tokens.pop()
    word = tokens[-1][0] if tokens else ""
    if joint == "and" and word not in ("between", "betwixt"):
        return None
    first, second = sorted((low, high), key=lambda q: q.value)
    marked = word in ("between", "from", "ranging", "of") and word != "of"
    span = tokens[-1][1:] if marked else (low.span[1], high.span[0])
    return Condition("between", first.value, first.unit, second.value, span, (low.span[0], high.span[1]))


def _operator(query: str, floor: int, quantity: Quantity, ceiling: int) -> tuple[Operator, tuple[int, int] | None]:
    tokens = _tokens(query, max(floor, quantity.span[0] - 60), quantity.span[0])
    if found := _ends_in_operator(tokens):
        return found
    if query.startswith("+", quantity.value_span[1]):
        return ">=", (quantity.value_span[1], quantity.value_span[1] + 1)
    behind = _tokens(query, quantity.span[1], min(ceiling, quantity.span[1] + 40))
    for size in range(min(_LONGEST, len(behind)), 0, -1):
        operator = _AFTER.get(" ".join(token for token, *_ in behind[:size]))
        if operator is not None:
            return operator, (behind[0][1], behind[size - 1][2])
    return "=", None


def _ends_in_operator(tokens: Tokens) -> tuple[Operator, tuple[int, int]] | None:
    """Find the longest operator phrase at the end of the words before a quantity, fillers aside."""
    while tokens:
        for size in range(min(_LONGEST, len(tokens)), 0, -1):
            phrase = " ".join(token for token, *_ in tokens[-size:])
            operator = _BEFORE.get(phrase)
            if operator is None and size == 3 and tokens[-1][0] == "of":  # "minimum age of"
                operator = _LIMITS.get(tokens[-3][0])
            if operator is None and size == 2 and tokens[-1][0] == "than" and tokens[-2][0].endswith("er"):
                operator = "<" if tokens[-2][0] in _DOWNWARD else ">"
            if operator is None:
                continue
            start, end = tokens[-size][1], tokens[-1][2]
            if len(tokens) > size and tokens[-size - 1][0] in _NEGATIONS and operator in (">", "<", ">=", "<="):
                return _NEGATED[operator], (tokens[-size - 1][1], end)
            return operator, (start, end)
        if tokens[-1][0] not in _FILLERS:
            return None
        tokens = tokens[:-1]
    return None
