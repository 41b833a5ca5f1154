"""Conversion against pint itself, money, shares and counted nouns; what we write as a unit is read as that unit."""

from __future__ import annotations

import math

import pint
import pytest

from numcolbert.quantities import (
    IncompatibleUnitsError,
    canonicalize,
    compatible,
    convert,
    extract_quantities,
    incompatible_units,
    number_forms,
    prefix_forms,
    surface_forms,
    unit_class,
)
from numcolbert.quantities.unit_tables import CLASSES, CURRENCIES

COMPOUNDS = [
    "milligram / kilogram",
    "microgram / kilogram / minute",
    "watt / kelvin / meter",
    "kilogram / meter ** 2",
    "barrel / day",
    "metric_ton / day",
    "kilometer / hour",
    "mile / hour",
    "megabit / second",
    "meter ** 2",
    "foot ** 2",
    "meter ** 3",
    "1 / liter",
    "millimole / liter",
    "milligram / deciliter",
]
NOUNS = ["patient", "fatality", "company", "person", "child", "box", "share", "bag", "analysis"]
UNITS = sorted(set(CLASSES) | set(COMPOUNDS) | set(NOUNS))
REGISTRY = pint.UnitRegistry()
OUTSIDE_PINT = {"money", "count", "percent", "fraction", "activity", "optics", "level"}
PHYSICAL = [unit for unit in UNITS if unit_class(unit) not in OUTSIDE_PINT and unit in REGISTRY and unit != "decade"]


@pytest.mark.parametrize("unit", PHYSICAL)
def test_factors_are_pints(unit: str) -> None:
    value, canonical = canonicalize(3.0, unit)
    assert canonical is not None
    assert value == pytest.approx(REGISTRY.Quantity(3.0, unit).to(canonical).magnitude, rel=1e-12)
    assert canonicalize(value, canonical) == (pytest.approx(value, rel=1e-12), canonical)


@pytest.mark.parametrize(
    ("a", "b"), [(PHYSICAL[i], PHYSICAL[(7 * i + 3) % len(PHYSICAL)]) for i in range(len(PHYSICAL))]
)
def test_compatible_as_pint_says(a: str, b: str) -> None:
    a_root, b_root = (REGISTRY.Quantity(1.0, unit).to_root_units().units for unit in (a, b))
    assert compatible(a, b) is (a_root == b_root)


def test_there_are_many_physical_units() -> None:
    assert len(PHYSICAL) > 120


def test_information_is_not_a_share() -> None:
    assert not compatible("gigabyte", "percent")
    assert not compatible("bit", None)
    assert not compatible("percent", None)
    assert compatible("basis_point", "percentage_point")


def test_money() -> None:
    assert canonicalize(45.0, "USD_cent") == (0.45, "USD")
    assert canonicalize(50.0, "GBP_penny") == (0.5, "GBP")
    assert not compatible("USD", "EUR")
    assert unit_class("USD") == unit_class("EUR_cent") == "money"
    with pytest.raises(IncompatibleUnitsError, match=r"'USD'.*'EUR'"):
        convert(1.0, "USD", "EUR")


def test_every_iso_currency_is_known() -> None:
    assert len(CURRENCIES) > 290
    assert all(canonicalize(2.0, code) == (2.0, code) for code in CURRENCIES)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("watt/(meter*kelvin)", "watt / kelvin / meter"),
        ("barrel/day", "barrel / day"),
        ("centimeter**3", "cubic_centimeter"),
        ("mg/kg", "milligram / kilogram"),
        ("tonne", "metric_ton"),
        ("mmHg", "millimeter_Hg"),
        ("meter ** 2 / meter", "meter"),
    ],
)
def test_spellings_mean_the_same(a: str, b: str) -> None:
    assert compatible(a, b)
    assert convert(1.0, a, b) == pytest.approx(1.0, rel=1e-12)


def test_temperatures_have_an_offset() -> None:
    assert convert(37.0, "degree_Celsius", "degree_Fahrenheit") == pytest.approx(98.6)
    assert math.isclose(canonicalize(0.0, "degree_Celsius")[0], 273.15)


@pytest.mark.parametrize("unit", UNITS)
def test_forms_read_back(unit: str) -> None:
    for value in (5.0, 1234.0, 1.5e6, 2.25, 1987.0, -3.0, 20.0, 0.05):
        for number in number_forms(value):
            if number == "1987" and unit in NOUNS:
                continue  # "1987 analyses" may be those of a year
            texts = [f"{number} {form}" for form in surface_forms(unit)]
            if value > 0:
                texts += [f"{form}{number}" for form in prefix_forms(unit)]
            for text in texts:
                assert [(q.value, q.unit, q.surface) for q in extract_quantities(text)] == [(value, unit, text)]


@pytest.mark.parametrize("unit", UNITS)
def test_incompatible_units_are_incompatible(unit: str) -> None:
    others = incompatible_units(unit)
    assert others
    assert not any(compatible(unit, other) for other in others)
    assert all(surface_forms(other) for other in others)
