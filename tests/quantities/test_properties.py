"""Properties over random input: round trips, spans, linear time."""

from __future__ import annotations

import itertools
import math
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numcolbert.quantities import (
    STYLES,
    extract_quantities,
    format_quantity,
    number_forms,
    parse_condition,
    parse_conditions,
)
from tests.quantities.test_units import UNITS

VALUES = st.one_of(
    st.integers(-(10**12), 10**12).map(float),
    st.decimals(-(10**6), 10**6, places=2, allow_nan=False).map(float),
    st.decimals(0, 10, places=4, allow_nan=False).map(float),
    st.builds(lambda m, e: float(f"{m}e{e}"), st.integers(1, 9999), st.integers(-6, 9)),
    st.builds(lambda whole, part: whole + part / 16, st.integers(0, 999), st.integers(0, 15)),
)
CARRIERS = ["{}", "The figure was {} then.", "It rose to {}, they said.", "({})", "a: {}; b"]
FRAGMENTS = [
    "1", "0", "12", "1987", "3,", "1.", ",", ".", "-", "–", "/", " ", "  ", "1/2", "½", "e5", "×10^", "$", "£", "(",
    ")",
    "EUR ", "Rs.", "%", " mg", "/kg", " per ", " m", "k", " mln", " million", " and ", " to ", "two ", "hundred ",
    "half ", "a ", "a half ", "an ", "one ", " patients", " x", "aaaa ", "a-", "A", "'", "\u2009", "\n", "° C", "µ",
    "é", "\u0130", "123 456 ", "U.S. ", "Section ", "May ", "+", "±", "[", "]", "=", "<", "10:30 ", "#", "^", "²", "‐",
]  # fmt: skip


@settings(deadline=None, max_examples=400)
@given(
    value=VALUES, unit=st.sampled_from([None, *UNITS]), style=st.sampled_from(STYLES), carrier=st.sampled_from(CARRIERS)
)
def test_what_we_format_we_read(value: float, unit: str | None, style: str, carrier: str) -> None:
    if unit is None and 1400 <= value <= 2100:
        return  # a bare "1987" is a year
    if unit is None and carrier == "({})":
        return  # a bare "(12)" is a reference
    written = format_quantity(value, unit, style)
    found = extract_quantities(carrier.format(written))
    assert [(q.value, q.unit, q.surface) for q in found] == [(value, unit, written)]


@settings(deadline=None, max_examples=400)
@given(value=VALUES)
def test_number_forms_read_exactly(value: float) -> None:
    for form in number_forms(value):
        found = extract_quantities(f"{form} kg")
        assert [(q.value, q.surface) for q in found] == [(value, f"{form} kg")]


@settings(deadline=None, max_examples=600)
@given(st.one_of(st.text(max_size=80), st.lists(st.sampled_from(FRAGMENTS), max_size=25).map("".join)))
def test_spans_index_the_text(text: str) -> None:
    end = 0
    for quantity in extract_quantities(text):
        start, stop = quantity.span
        assert end <= start < stop <= len(text)
        assert text[start:stop] == quantity.surface
        assert math.isfinite(quantity.value)
        assert start <= quantity.value_span[0] < quantity.value_span[1] <= stop
        if quantity.unit_span is not None:
            assert quantity.unit is not None
            assert start <= quantity.unit_span[0] < quantity.unit_span[1] <= stop
        end = stop


@settings(deadline=None, max_examples=300)
@given(st.lists(st.sampled_from([*FRAGMENTS, "more than ", "no ", "less than ", "between ", "at least "]), max_size=20))
def test_conditions_never_fail_and_index_the_query(pieces: list[str]) -> None:
    query = "".join(pieces)
    for condition in parse_conditions(query):
        spans = [condition.quantity_span, condition.operator_span or condition.quantity_span]
        assert all(0 <= start < end <= len(query) for start, end in spans)
        assert (condition.upper is not None) is (condition.operator == "between")
    parse_condition(query)


@pytest.mark.parametrize("digits", [5, 299, 301, 5_000])
@pytest.mark.parametrize(
    "form", ["{}", "${}k", "{} million", "{} 1/2 kg", "{}e308", "{}-{} mg", "1,{}", "{} 000 000", "{}m"]
)
def test_endless_digits_are_no_quantity(digits: int, form: str) -> None:
    text = form.replace("{}", "9" * digits)
    assert all(math.isfinite(quantity.value) for quantity in extract_quantities(text))
    parse_conditions(text)


def _seconds(text: str) -> float:
    best = math.inf
    for _ in range(2):
        started = time.process_time()
        extract_quantities(text)
        best = min(best, time.process_time() - started)
    return best


NASTY = sorted({a + b for a, b in itertools.product(FRAGMENTS, repeat=2)} | set(FRAGMENTS))


@pytest.mark.parametrize("part", range(4))
def test_time_is_linear(part: int) -> None:
    """Quadratic reading would take 16 times as long on four times the text; linear reading takes four times."""
    for fragment in NASTY[part::16]:
        short = _seconds(fragment * (3_000 // len(fragment)))
        long = _seconds(fragment * (12_000 // len(fragment)))
        if long > 9 * short and long > 0.05:  # look again before calling it a fault: the machine may have been busy
            short = min(short, _seconds(fragment * (3_000 // len(fragment))))
            long = min(long, _seconds(fragment * (12_000 // len(fragment))))
        assert long <= 9 * short + 0.03, fragment


@pytest.mark.parametrize(
    "fragment", ["1", "1,", "1.", "1 ", "123 ", "a ", "1-", "1/", "1 a ", "two ", "$", "(1,", "1:"]
)
def test_a_hundred_thousand_characters(fragment: str) -> None:
    text = fragment * (100_000 // len(fragment))
    started = time.process_time()
    extract_quantities(text)
    parse_condition(text)
    assert time.process_time() - started < 20
