"""Writing quantities in the styles that text uses, so that they read back exactly."""

from __future__ import annotations

from numcolbert.quantities.numbers import number_forms, plain_digits
from numcolbert.quantities.units import prefix_forms, surface_forms

STYLES = ("plain", "grouped", "words", "wire", "prefix")
"""Styles of `format_quantity`."""


def format_quantity(value: float, unit: str | None, style: str = "plain") -> str:
    """Write a quantity.

    Parameters
    ----------
    value
        A finite number.
    unit
        A unit name, or None for a bare number.
    style
        "plain": digits and the first surface form, "1200000 dollars"; "grouped": "1,200,000 dollars"; "words": scale
        words, "1.2 million dollars"; "wire": "1.2 mln dlrs"; "prefix": "$1.2 million".

    Returns
    -------
    str
        `extract_quantities` reads it back as exactly this value and unit.

    Raises
    ------
    ValueError
        If the style is unknown.

    Examples
    --------
    >>> [format_quantity(1200000.0, "USD", style) for style in STYLES]
    ['1200000 dollars', '1,200,000 dollars', '1.2 million dollars', '1.2 mln dlrs', '$1.2 million']
    >>> format_quantity(5.0, "milligram / kilogram")
    '5 mg/kg'
    """
    if style not in STYLES:
        raise ValueError(f"unknown style {style!r}: choose one of {', '.join(STYLES)}")
    forms = number_forms(value)
    number = plain_digits(value)
    wanted = {"grouped": ",", "words": "illion", "prefix": "illion", "wire": "ln"}.get(style)
    if wanted is not None:
        number = next((form for form in forms if wanted in form), next((f for f in forms if "," in f), number))
    if unit is None:
        return number
    if style == "prefix" and (prefixes := prefix_forms(unit)):
        sign = "-" if number.startswith("-") else ""
        return f"{sign}{prefixes[0]}{number.removeprefix('-')}"
    after = surface_forms(unit)
    form = next((f for f in after if f in ("dlrs", "pct", "mln", "cts")), after[0]) if style == "wire" else after[0]
    return f"{number}{'' if form in ('%', '°C', '°F') else ' '}{form}"
