"""Queries with a numerical condition, written from templates and read back before they are used."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from numcolbert.corpus.annotation import condition_row
from numcolbert.quantities import canonicalize, number_forms, parse_condition, prefix_forms, surface_forms

TEMPLATES: dict[str, tuple[str, ...]] = {
    "=": (
        "{c} of {q}",
        "{c} of exactly {q}",
        "{c} equal to {q}",
        "{c} at {q}",
        "{c} {q}",
        "{q} {c}",
        "{c} = {q}",
        "exactly {q} {c}",
        "{c}: {q}",
        "{c} amounting to {q}",
        "{c} was {q}",
        "{c} precisely {q}",
        "{c} totalling {q}",
        "where was {c} {q}?",
        "which reports give {c} of {q}?",
        "who had {c} of exactly {q}?",
        "find {c} that is {q}",
        "{q} in {c}",
        "{c} came to {q}",
    ),
    ">": (
        "{c} above {q}",
        "{c} over {q}",
        "{c} more than {q}",
        "{c} of more than {q}",
        "{c} greater than {q}",
        "{c} higher than {q}",
        "{c} larger than {q}",
        "{c} exceeding {q}",
        "{c} in excess of {q}",
        "{c} > {q}",
        "more than {q} {c}",
        "more than {q} in {c}",
        "over {q} of {c}",
        "which {c} exceeded {q}?",
        "where was {c} above {q}?",
        "who had {c} of over {q}?",
        "when did {c} exceed {q}?",
        "find {c} that is greater than {q}",
        "reports of {c} topping {q}",
        "{c} surpassing {q}",
        "was {c} ever higher than {q}?",
    ),
    "<": (
        "{c} below {q}",
        "{c} under {q}",
        "{c} less than {q}",
        "{c} of less than {q}",
        "{c} lower than {q}",
        "{c} smaller than {q}",
        "{c} beneath {q}",
        "{c} fewer than {q}",
        "{c} < {q}",
        "less than {q} {c}",
        "less than {q} in {c}",
        "under {q} of {c}",
        "which {c} was below {q}?",
        "where was {c} under {q}?",
        "who had {c} of less than {q}?",
        "when did {c} fall below {q}?",
        "find {c} that is lower than {q}",
        "reports of {c} short of {q}",
        "{c} not reaching {q}",
        "was {c} ever lower than {q}?",
        "{c} that stayed below {q}",
    ),
}
"""Templates by operator: {c} is the concept, {q} the quantity."""

OPERATORS = tuple(TEMPLATES)
"""Operators that queries are written for."""


@dataclass(frozen=True)
class Query:
    """A query and what it asks.

    Parameters
    ----------
    text
        The query.
    condition
        Columns of `schema.CONDITION`.
    template
        The template it was written from.
    """

    text: str
    condition: dict[str, Any]
    template: str


def holds(operator: str, threshold: float, value: float) -> bool:
    """Whether a canonical value satisfies an operator and a canonical threshold.

    Examples
    --------
    >>> holds(">", 5.0, 5.0), holds("=", 0.3, 0.1 + 0.2)
    (False, True)
    """
    equal = math.isclose(value, threshold, rel_tol=1e-9)
    if operator == "=":
        return equal
    return not equal and (value > threshold if operator == ">" else value < threshold)


@lru_cache(maxsize=4096)
def _affine(unit: str) -> tuple[float, float]:
    zero = canonicalize(0.0, unit)[0]
    return zero, canonicalize(1.0, unit)[0] - zero


def from_canonical(value: float, unit: str) -> float:
    """Express a canonical value in a unit, rid of the noise of binary fractions.

    Examples
    --------
    >>> from_canonical(0.3, "meter"), from_canonical(1.2e6, "USD")
    (0.3, 1200000.0)
    """
    zero, factor = _affine(unit)
    return float(f"{(value - zero) / factor:.10g}")


def to_canonical(value: float, unit: str) -> float:
    """Express a value in the canonical unit of its dimension."""
    return canonicalize(value, unit)[0]


def round_between(low: float, high: float, rng: random.Random) -> float | None:
    """Draw a number of at most four significant digits, low <= number < high.

    Examples
    --------
    >>> round_between(1437.0, 1622.0, random.Random(0)) in (1500.0, 1600.0)
    True
    """
    if not low < high:
        return None
    largest = max(abs(low), abs(high))
    magnitude = math.floor(math.log10(largest)) if largest > 0 else 0
    for digits in range(4):
        exponent = magnitude - digits
        step = 10.0**exponent
        first, last = math.ceil(low / step - 1e-9), math.ceil(high / step - 1e-9) - 1
        if first <= last:
            chosen = rng.randint(first, last)
            return float(f"{chosen}e{exponent}")
    return None


_SLANG = frozenset(["bucks", "quid", "₤", "american dollars"])
"""Forms that are read but seldom searched for."""


def draw_bound(operator: str, low: float, high: float, unit: str, rng: random.Random) -> float | None:
    """Draw the bound of an inequality between two canonical values, as a searcher would write it.

    Parameters
    ----------
    operator
        `>`, which `high` is to satisfy and `low` to violate, or `<`, which `low` is to satisfy and `high` to violate.
    low, high
        Canonical values.
    unit
        Unit of the bound.
    rng
        Source of the random choices.

    Returns
    -------
    float or None
        At most four significant digits, one time in three the violating value itself if it has no more; None if no
        such number separates the two.

    Examples
    --------
    >>> draw_bound("<", 1.2e6, 1.3e6, "USD", random.Random(0)) in (1.21e6, 1.25e6, 1.3e6)
    True
    """
    greater = operator == ">"
    satisfying, violating = (high, low) if greater else (low, high)
    value: float | None = from_canonical(violating, unit)
    if rng.random() >= 0.35 or value != float(f"{value:.4g}"):
        first, second = from_canonical(low, unit), from_canonical(high, unit)
        drawn = round_between(first, second, rng) if greater else round_between(-second, -first, rng)
        value = drawn if drawn is None or greater else -drawn
    if value is None:
        return None
    bound = to_canonical(value, unit)
    return value if holds(operator, bound, satisfying) and not holds(operator, bound, violating) else None


def write_quantity(value: float, unit: str, rng: random.Random) -> str:
    """One of the ways to write a quantity, drawn at random."""
    number = rng.choice(_plain_forms(value))
    spelled = number[0].isalpha()  # "nine percent", but not "nine%"
    prefixes, suffixes = (
        [form for form in forms if form not in _SLANG and not (spelled and not form[-1].isalnum())] or forms
        for forms in (() if spelled else prefix_forms(unit), surface_forms(unit))
    )
    if prefixes and (not suffixes or rng.random() < 0.35):
        return rng.choice(prefixes) + number
    suffix = rng.choice(suffixes)
    return number + suffix if suffix in ("%", "°C", "°F") else f"{number} {suffix}"


@lru_cache(maxsize=50_000)
def _number_forms(value: float) -> tuple[str, ...]:
    return number_forms(value)


@lru_cache(maxsize=50_000)
def _plain_forms(value: float) -> tuple[str, ...]:
    """Keep the forms a searcher would type: "17.5 mln", not "17500000", "17,500 thousand" or "0.0175 bln"."""
    forms = _number_forms(value)
    plain = [form for form in forms if not ("thousand" in form and (abs(value) >= 1e6 or "." in form))]
    if abs(value) >= 1e6:
        scaled = [form for form in plain if form[-1].isalpha()]
        plain = [form for form in plain if form in scaled or ("," in form and (abs(value) < 1e9 or not scaled))]
    return tuple(plain) or forms


def write_query(
    concepts: Sequence[str],
    operator: str,
    value: float,
    unit: str,
    rng: random.Random,
    *,
    rejected: dict[str, int] | None = None,
    tries: int = 12,
) -> Query | None:
    """Write a query and read it back.

    Parameters
    ----------
    concepts
        Expressions to choose the concept's wording from.
    operator
        `=`, `<` or `>`.
    value, unit
        The threshold as it is to be written.
    rng
        Source of the random choices.
    rejected
        Counts, by template, of drafts that did not read back.
    tries
        Drafts to write before giving up.

    Returns
    -------
    Query or None
        None if no draft gave back operator, value and unit, or the value has more than nine digits.
    """
    if value != float(f"{value:.9g}"):
        return None  # "two-thirds of the votes": 66.66666666666667 percent is nothing to search for
    expected = canonicalize(value, unit)
    for _ in range(tries):
        template = rng.choice(TEMPLATES[operator])
        text = template.format(c=rng.choice(concepts), q=write_quantity(value, unit, rng))
        if rng.random() < 0.15:
            text = text[0].upper() + text[1:]
        condition = parse_condition(text)
        if condition is not None and condition.operator == operator and condition.upper is None:
            row = condition_row(condition)
            if row["canonical_unit"] == expected[1] and math.isclose(
                row["canonical_value"], expected[0], rel_tol=1e-9, abs_tol=1e-300
            ):
                return Query(text, row, template)
        if rejected is not None:
            rejected[template] = rejected.get(template, 0) + 1
    return None
