"""Units: their meaning, conversion, and how they are written.

Names are those of `numcolbert.quantities.unit_tables`. pint gives the factors of physical units; its registry is built
when the first one is asked for, and every factor is looked up once.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, cast

from numcolbert.quantities.nouns import COUNT_NOUNS
from numcolbert.quantities.unit_tables import CLASSES, FORMS, OWN, PREFIX_FORMS, SYMBOLS, WORDS

if TYPE_CHECKING:
    import pint

Dimensions = tuple[tuple[str, int | float], ...]


class IncompatibleUnitsError(ValueError):
    """Two units that cannot be converted into each other."""


_NAMED_DIMENSIONS = {
    "kilogram / meter / second ** 2": "pascal",
    "kilogram * meter ** 2 / second ** 2": "joule",
    "kilogram * meter ** 2 / second ** 3": "watt",
    "1 / second": "hertz",
    "kilogram * meter ** 2 / ampere / second ** 3": "volt",
    "kilogram * meter ** 2 / ampere ** 2 / second ** 3": "ohm",
    "kilogram * meter / second ** 2": "newton",
    "kilogram / ampere / second ** 2": "tesla",
    "bit": "bit",
}
"""Canonical units that have a name of their own; every other dimension is named by its root units."""


class Unit(NamedTuple):
    """What one unit name means: the factor (and offset) to its root dimensions."""

    unit_class: str
    factor: float
    offset: float
    dimensions: Dimensions


def compose(factors: dict[str, int]) -> str:
    """Name a product of units as pint does.

    Parameters
    ----------
    factors
        Exponent of each unit name.

    Returns
    -------
    str
        Names in alphabetical order, numerator first.

    Examples
    --------
    >>> compose({"milligram": 1, "kilogram": -1, "day": -1})
    'milligram / day / kilogram'
    >>> compose({"liter": -1})
    '1 / liter'
    """

    def power(name: str, exponent: int) -> str:
        return name if exponent == 1 else f"{name} ** {exponent}"

    above = [power(name, n) for name, n in sorted(factors.items()) if n > 0]
    below = [power(name, -n) for name, n in sorted(factors.items()) if n < 0]
    return " / ".join([" * ".join(above) or "1", *below])


@lru_cache(maxsize=65536)
def decompose(unit: str) -> tuple[tuple[str, int], ...]:
    """Split a unit name into its factors, the reverse of `compose`.

    Parameters
    ----------
    unit
        A unit name; ``"a/b"``, ``"a / b"``, ``"a/(b*c)"`` and ``"a**2"`` are understood.

    Returns
    -------
    tuple of (str, int)
        Unit names and exponents.

    Examples
    --------
    >>> decompose("watt/(meter*kelvin)")
    (('watt', 1), ('meter', -1), ('kelvin', -1))
    """
    factors: dict[str, int] = {}
    sign, group_sign = 1, 1
    for token in re.findall(r"\*\*\s*-?\d+|[/*()]|[^\s/*()](?:[^/*()]*[^\s/*()])?", unit):
        if token.startswith("**"):
            last = next(reversed(factors))
            factors[last] *= int(token[2:])
        elif token == "/":
            sign = -1
        elif token == "*":
            sign = 1
        elif token == "(":
            group_sign, sign = sign, 1
        elif token == ")":
            group_sign = 1
        elif token != "1":
            name = _resolve(token)
            factors[name] = factors.get(name, 0) + sign * group_sign
            sign = 1
        if token not in ("/", "("):
            sign = 1
    return tuple(factors.items())


def _resolve(name: str) -> str:
    if name in CLASSES:
        return name
    found = SYMBOLS.get(name) or WORDS.get(name.lower().replace("_", " "))
    return found if found and found in CLASSES else name


@lru_cache(maxsize=1)
def _registry() -> pint.UnitRegistry:
    import pint  # noqa: PLC0415  (a third of a second; reading text does not need it)

    return pint.UnitRegistry()


@lru_cache(maxsize=4096)
def _lookup(name: str) -> Unit:
    """Root factor of one unit name (no product)."""
    if name in OWN:
        factor, dimension = OWN[name]
        return Unit(CLASSES[name], factor, 0.0, ((dimension, 1),))
    unit_class = CLASSES.get(name, "count")
    if unit_class in ("money", "count"):
        return Unit(unit_class, 1.0, 0.0, ((name, 1),))
    registry = _registry()
    if unit_class == "temperature":
        zero, one = (registry.Quantity(x, name).to("kelvin").magnitude for x in (0.0, 1.0))
        return Unit(unit_class, one - zero, zero, (("kelvin", 1),))
    root = registry.Quantity(1.0, name).to_root_units()
    factor = float(root.magnitude)
    dimensions = tuple(sorted((str(k), cast(float, v)) for k, v in root.unit_items()))
    return Unit(unit_class, factor, 0.0, dimensions)


class _Meaning(NamedTuple):
    factor: float
    offset: float
    canonical: str
    unit_class: str


@lru_cache(maxsize=65536)
def _meaning(unit: str) -> _Meaning:
    parts = decompose(unit)
    if len(parts) == 1 and parts[0][1] == 1:
        only = _lookup(parts[0][0])
        return _Meaning(only.factor, only.offset, _canonical_name(dict(only.dimensions)), only.unit_class)
    factor, dimensions, classes = 1.0, dict[str, int | float](), []
    for name, exponent in parts:
        entry = _lookup(name)
        factor *= entry.factor**exponent
        classes.append(entry.unit_class)
        for dimension, power in entry.dimensions:
            dimensions[dimension] = dimensions.get(dimension, 0) + power * exponent
    canonical = _canonical_name({k: v for k, v in dimensions.items() if v})
    unit_class = _CLASS_OF_CANONICAL.get(canonical) or ("money" if classes[:1] == ["money"] else "rate")
    return _Meaning(factor, 0.0, canonical, unit_class)


_CLASS_OF_CANONICAL = {
    "meter ** 2": "area",
    "meter ** 3": "volume",
    "meter / second": "speed",
    "hertz": "frequency",
    "pascal": "pressure",
    "joule": "energy",
    "watt": "power",
    "bit / second": "data rate",
    "kilogram / meter ** 3": "concentration",
    "mole / meter ** 3": "concentration",
    "kilogram / meter ** 2": "body mass index",
    "meter ** 3 / second": "flow",
    "kilogram / second": "flow",
}


def _canonical_name(dimensions: dict[str, int | float]) -> str:
    name = compose({k: int(v) if v == int(v) else v for k, v in dimensions.items()})  # type: ignore[misc]
    return _NAMED_DIMENSIONS.get(name, name)


def canonicalize(value: float, unit: str | None) -> tuple[float, str | None]:
    """Express a value in the canonical unit of its dimension.

    Parameters
    ----------
    value
        Magnitude in `unit`.
    unit
        A unit name as `extract_quantities` returns it, or None for a bare number.

    Returns
    -------
    tuple of (float, str or None)
        Magnitude and canonical unit: root units of pint for physical dimensions, the ISO code for money, percent for
        shares, the noun itself for counted things, None for a bare number.

    Examples
    --------
    >>> canonicalize(12.0, "kilometer")
    (12000.0, 'meter')
    >>> canonicalize(45.0, "USD_cent")
    (0.45, 'USD')
    >>> canonicalize(25.0, "basis_point")
    (0.25, 'percent')
    >>> canonicalize(3.0, "patient")
    (3.0, 'patient')
    """
    if unit is None:
        return value, None
    factor, offset, canonical, _ = _meaning(unit)
    return value * factor + offset, canonical


def compatible(unit_a: str | None, unit_b: str | None) -> bool:
    """Tell whether two units measure the same dimension.

    Parameters
    ----------
    unit_a, unit_b
        Unit names, or None for a bare number.

    Returns
    -------
    bool

    Examples
    --------
    >>> compatible("gigabyte", "terabyte"), compatible("gigabyte", "megabit / second"), compatible("USD", "EUR")
    (True, False, False)
    """
    return canonicalize(1.0, unit_a)[1] == canonicalize(1.0, unit_b)[1]


def convert(value: float, unit: str | None, target: str | None) -> float:
    """Convert a value from one unit to another.

    Parameters
    ----------
    value
        Magnitude in `unit`.
    unit, target
        Unit names, or None for bare numbers.

    Returns
    -------
    float
        Magnitude in `target`.

    Raises
    ------
    IncompatibleUnitsError
        If the two units measure different things.

    Examples
    --------
    >>> convert(1.0, "terabyte", "gigabyte")
    1000.0
    """
    if unit == target:
        return value
    if not compatible(unit, target):
        raise IncompatibleUnitsError(f"cannot convert {unit!r} to {target!r}: they measure different things")
    if unit is None or target is None:
        return value
    a, b = _meaning(unit), _meaning(target)
    return (value * a.factor + a.offset - b.offset) / b.factor


def unit_class(unit: str | None) -> str:
    """Name the coarse class of a unit.

    Parameters
    ----------
    unit
        A unit name, or None.

    Returns
    -------
    str
        ``"money"``, ``"length"``, ``"mass"``, ``"time"``, ``"percent"``, ``"count"`` and so on; ``"number"`` for None.

    Examples
    --------
    >>> unit_class("JPY"), unit_class("millimeter_Hg"), unit_class("patient"), unit_class("meter / second")
    ('money', 'pressure', 'count', 'speed')
    """
    return "number" if unit is None else _meaning(unit).unit_class


# For each class, units that a reader could put in the same place and that yet measure something else.
_CONFUSABLE = {
    "money": ("USD", "EUR", "GBP", "JPY", "CAD", "CHF", "DEM"),
    "length": ("kilogram", "liter", "hour", "acre"),
    "mass": ("liter", "milliliter", "meter", "millimole"),
    "time": ("percent", "kilometer", "kilogram"),
    "percent": ("USD", "year", "kilogram"),
    "area": ("meter", "kilogram", "liter"),
    "volume": ("kilogram", "meter", "metric_ton"),
    "temperature": ("percent", "meter", "pascal"),
    "pressure": ("beat / minute", "degree_Celsius", "millimole / liter"),
    "energy": ("watt", "kilogram", "liter"),
    "power": ("joule", "kilowatt_hour", "volt"),
    "speed": ("meter", "hour", "hertz"),
    "data": ("megabit / second", "hertz", "hour"),
    "data rate": ("gigabyte", "hertz", "hour"),
    "frequency": ("gigabyte", "watt", "meter"),
    "electric": ("watt", "hertz", "meter"),
    "amount": ("milligram", "milliliter", "international_unit"),
    "concentration": ("millimeter_Hg", "percent", "milligram"),
    "activity": ("milligram", "milliliter", "millimole"),
    "count": ("percent", "USD", "kilogram", "year"),
}


def incompatible_units(unit: str) -> tuple[str, ...]:
    """List units that stand where this unit stands but cannot be compared with it.

    Parameters
    ----------
    unit
        A unit name.

    Returns
    -------
    tuple of str
        Other currencies for money; for the rest, common units of neighbouring dimensions.

    Examples
    --------
    >>> incompatible_units("USD")[:3]
    ('EUR', 'GBP', 'JPY')
    >>> incompatible_units("milligram")
    ('liter', 'milliliter', 'meter', 'millimole')
    """
    candidates = _CONFUSABLE.get(unit_class(unit), ("percent", "USD", "kilogram", "year"))
    return tuple(other for other in candidates if not compatible(unit, other))


def surface_forms(unit: str) -> tuple[str, ...]:
    """List how text writes a unit after a number.

    Parameters
    ----------
    unit
        A unit name.

    Returns
    -------
    tuple of str
        Forms that `extract_quantities` reads back as this unit when they follow a number and a space.

    Examples
    --------
    >>> surface_forms("USD")[:2]
    ('dollars', 'dlrs')
    >>> surface_forms("milligram / kilogram")
    ('mg/kg', 'milligrams per kilogram')
    >>> surface_forms("fatality")
    ('fatalities',)
    """
    return _surface_forms(unit)


@lru_cache(maxsize=4096)
def _surface_forms(unit: str) -> tuple[str, ...]:
    forms = [form for form in FORMS.get(unit, ()) if form not in _UNSAFE_FORMS]
    parts = decompose(unit)
    if not forms and len(parts) == 1 and parts[0][1] == 1:
        forms = [COUNT_NOUNS.plural_of(unit)]
    elif not forms or len(parts) > 1:
        symbols: list[str] = []
        words: list[str] = []
        for name, exponent in parts:
            names = _surface_forms(name)
            power = str(abs(exponent)) if abs(exponent) > 1 else ""
            slash = "/" if exponent < 0 else ("·" if symbols else "")
            symbols.append(slash + next((f for f in names if SYMBOLS.get(f) == name), names[0]) + power)
            words.append(
                next((f for f in names if f in WORDS), names[-1]) if exponent > 0 else f"per {name.replace('_', ' ')}"
            )
        forms.append("".join(symbols))
        if all(abs(exponent) == 1 for _, exponent in parts) and parts[0][1] > 0 and len(parts) == 2:
            forms.append(" ".join(words))
    return tuple(dict.fromkeys(forms))


_UNSAFE_FORMS = frozenset(
    {"N", "B", "cd", "mi", "kb", "Mb", "in", "a", "M", "A", "p", "MT", "torr", "Torr", "bl", "gr", "pc", "p.c."}
)
"""Forms we read in some contexts but never write: they have other readings."""


def prefix_forms(unit: str) -> tuple[str, ...]:
    """List how text writes a unit before a number.

    Parameters
    ----------
    unit
        A unit name.

    Returns
    -------
    tuple of str
        Currency signs and codes, the code with its space; empty for anything but money.

    Examples
    --------
    >>> prefix_forms("USD")
    ('$', 'US$', 'USD ')
    >>> prefix_forms("kilogram")
    ()
    """
    forms = (form for form in PREFIX_FORMS.get(unit, ()) if "." not in form and form != "INR")
    return tuple(dict.fromkeys(form + " " if form.isalpha() else form for form in forms))
