"""Showing how the quantities of a text stand to the condition of a query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from rich.text import Text

from numcolbert.quantities import Condition, compatible, extract_quantities, parse_conditions

__all__ = ["Verdict", "describe", "highlight", "query_conditions"]

Verdict = Literal["met", "violated", "unknown"]
"""Whether a text meets all conditions, violates one, or holds nothing that could be compared."""


def query_conditions(query: str) -> list[Condition]:
    """Read the conditions that a document must satisfy.

    Parameters
    ----------
    query
        A search query.

    Returns
    -------
    list of Condition
        All that words or signs mark; else the first quantity as an equality, as `parse_condition` has it; none where
        the query asks for no quantity.

    Examples
    --------
    >>> [describe(condition) for condition in query_conditions("laptops under 2 kg with at least 16 GB")]
    ['< 2 kilogram', '>= 16 gigabyte']
    >>> query_conditions("who founded the company")
    []
    """
    conditions = parse_conditions(query)
    return [condition for condition in conditions if condition.operator_span is not None] or conditions[:1]


def describe(condition: Condition) -> str:
    """Say a condition in short.

    Examples
    --------
    >>> describe(query_conditions("revenue above 1.2 billion dollars")[0])
    '> 1,200,000,000 USD'
    >>> describe(query_conditions("between 5 and 10 mg")[0])
    'between 5 and 10 milligram'
    """
    value = f"{condition.value:,.10g}"
    if condition.upper is not None:
        value = f"{value} and {condition.upper:,.10g}"
    return " ".join(part for part in (condition.operator, value, condition.unit) if part)


def highlight(text: str, conditions: Sequence[Condition]) -> tuple[Text, Verdict]:
    """Colour the quantities of a text: green where they satisfy the conditions, red where they violate one.

    Parameters
    ----------
    text
        Text of a document.
    conditions
        What the query asks. A quantity is held against those whose unit can be compared with its own.

    Returns
    -------
    tuple of (Text, Verdict)
        The coloured text, quantities of other kinds left plain; and how the text as a whole stands.

    Examples
    --------
    >>> highlight("Of 30 laptops one weighs 1.1 kg.", query_conditions("laptops under 2 kg"))[1]
    'met'
    """
    coloured = Text(text)
    if not conditions:
        return coloured, "unknown"
    quantities = extract_quantities(text)
    for quantity in quantities:
        comparable = [condition for condition in conditions if compatible(condition.unit, quantity.unit)]
        if comparable:
            satisfied = all(condition.satisfied_by(quantity) for condition in comparable)
            coloured.stylize("bold green" if satisfied else "bold red", *quantity.span)
    if all(condition.satisfied_by_any(quantities) for condition in conditions):
        return coloured, "met"
    violated = any(
        not condition.satisfied_by_any(quantities)
        and any(compatible(condition.unit, quantity.unit) for quantity in quantities)
        for condition in conditions
    )
    return coloured, "violated" if violated else "unknown"
