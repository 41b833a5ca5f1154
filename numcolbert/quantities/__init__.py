"""Quantities in English text and conditions on them: reading, converting, comparing, writing."""

from numcolbert.quantities.conditions import parse_condition, parse_conditions
from numcolbert.quantities.extraction import extract_quantities
from numcolbert.quantities.formatting import STYLES, format_quantity
from numcolbert.quantities.numbers import number_forms
from numcolbert.quantities.quantity import OPERATORS, Condition, Operator, Quantity
from numcolbert.quantities.units import (
    IncompatibleUnitsError,
    canonicalize,
    compatible,
    convert,
    incompatible_units,
    prefix_forms,
    surface_forms,
    unit_class,
)

__all__ = [
    "OPERATORS",
    "STYLES",
    "Condition",
    "IncompatibleUnitsError",
    "Operator",
    "Quantity",
    "canonicalize",
    "compatible",
    "convert",
    "extract_quantities",
    "format_quantity",
    "incompatible_units",
    "number_forms",
    "parse_condition",
    "parse_conditions",
    "prefix_forms",
    "surface_forms",
    "unit_class",
]
