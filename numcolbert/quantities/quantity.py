"""The two things this package reads: a quantity in a text, a condition in a query."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from numcolbert.quantities.units import canonicalize, compatible, convert

Operator = Literal["=", "<", ">", "<=", ">=", "between"]
OPERATORS: tuple[Operator, ...] = get_args(Operator)
"""Operators of a condition."""

Span = tuple[int, int]
_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its unit, as a text mentions it.

    Attributes
    ----------
    value
        The number, scale words applied: "1.2 mln" is 1200000.0.
    unit
        Canonical name of the unit; None for a bare number.
    span
        Characters of the whole mention in the text.
    surface
        The mention itself, ``text[span[0]:span[1]]``.
    value_span
        Characters of the number with its scale words.
    unit_span
        Characters of the unit, before or after the number; None where there is no unit or where it stands at the other
        end of a range.

    Examples
    --------
    >>> from numcolbert.quantities import extract_quantities
    >>> quantity, = extract_quantities("an SSD of 1 TB")
    >>> quantity.value, quantity.unit, quantity.surface
    (1.0, 'terabyte', '1 TB')
    >>> quantity.to("gigabyte").value
    1000.0
    """

    value: float
    unit: str | None
    span: Span
    surface: str
    value_span: Span
    unit_span: Span | None

    def to(self, unit: str) -> Quantity:
        """Convert to another unit of the same dimension.

        Parameters
        ----------
        unit
            Name of the wanted unit.

        Returns
        -------
        Quantity
            The same mention, value and unit changed.

        Raises
        ------
        IncompatibleUnitsError
            If the units measure different things.
        """
        value = convert(self.value, self.unit, unit)
        return Quantity(value, unit, self.span, self.surface, self.value_span, self.unit_span)

    def canonical(self) -> tuple[float, str | None]:
        """Express the value in the canonical unit of its dimension.

        Returns
        -------
        tuple of (float, str or None)
            As `canonicalize` gives it.
        """
        return canonicalize(self.value, self.unit)

    def compatible(self, other: Quantity) -> bool:
        """Tell whether the two can be compared.

        Parameters
        ----------
        other
            Another quantity.

        Returns
        -------
        bool
        """
        return compatible(self.unit, other.unit)

    def _converted(self, other: Quantity) -> tuple[float, float]:
        return self.canonical()[0], convert(other.value, other.unit, self.canonical()[1])

    def __lt__(self, other: Quantity) -> bool:
        mine, theirs = self._converted(other)
        return mine < theirs

    def __gt__(self, other: Quantity) -> bool:
        mine, theirs = self._converted(other)
        return mine > theirs

    def __le__(self, other: Quantity) -> bool:
        mine, theirs = self._converted(other)
        return mine <= theirs

    def __ge__(self, other: Quantity) -> bool:
        mine, theirs = self._converted(other)
        return mine >= theirs


@dataclass(frozen=True, slots=True)
class Condition:
    """What a query asks of a quantity.

    Attributes
    ----------
    operator
        One of `OPERATORS`.
    value
        The bound; the lower one for "between".
    unit
        Canonical name of the unit; None for a bare number.
    upper
        The upper bound of "between", else None.
    operator_span
        Characters of the words or signs that give the operator; None where nothing does ("exports of 500,000 tonnes").
    quantity_span
        Characters of the quantity; from the first bound to the second for "between".

    Examples
    --------
    >>> from numcolbert.quantities import extract_quantities, parse_condition
    >>> condition = parse_condition("SSDs over 500 GB")
    >>> [condition.satisfied_by_any(extract_quantities(text)) for text in ("1 TB", "256 GB", "600 Mbps")]
    [True, False, False]
    """

    operator: Operator
    value: float
    unit: str | None
    upper: float | None
    operator_span: Span | None
    quantity_span: Span

    def satisfied_by(self, quantity: Quantity) -> bool:
        """Tell whether a quantity satisfies the condition.

        Values are compared in the canonical unit of their dimension, equality within a relative 1e-9. Incompatible
        units never satisfy; a condition without a unit ("over a billion") compares with bare numbers only, because
        nothing says that it means dollars rather than barrels.

        Parameters
        ----------
        quantity
            A quantity of a document.

        Returns
        -------
        bool
        """
        bound, unit = canonicalize(self.value, self.unit)
        value, other_unit = quantity.canonical()
        if unit != other_unit:
            return False
        equal = math.isclose(value, bound, rel_tol=_TOLERANCE)
        match self.operator:
            case "=":
                return equal
            case "<":
                return value < bound and not equal
            case ">":
                return value > bound and not equal
            case "<=":
                return value <= bound or equal
            case ">=":
                return value >= bound or equal
        upper = canonicalize(self.value if self.upper is None else self.upper, self.unit)[0]
        return bound <= value <= upper or equal or math.isclose(value, upper, rel_tol=_TOLERANCE)

    def satisfied_by_any(self, quantities: Iterable[Quantity]) -> bool:
        """Tell whether any of several quantities satisfies the condition.

        Parameters
        ----------
        quantities
            Quantities of a document.

        Returns
        -------
        bool
        """
        return any(self.satisfied_by(quantity) for quantity in quantities)
