"""Queries say what they are asked to say, or are not written."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from numcolbert.corpus.queries import (
    OPERATORS,
    TEMPLATES,
    draw_bound,
    from_canonical,
    holds,
    round_between,
    to_canonical,
    write_query,
)
from numcolbert.quantities import canonicalize, parse_condition

UNITS = ["USD", "GBP", "percent", "kilogram", "milligram", "metric_ton", "barrel", "year", "millimeter_Hg", "patient"]
UNITS += ["degree_Celsius", "milligram / kilogram", "kilometer / hour", "USD_cent", "gigabyte"]
CONCEPTS = ["net profit", "oil output", "body weight", "systolic blood pressure", "R&D spending"]

values = st.one_of(
    st.integers(1, 10**9).map(float),
    st.floats(1e-3, 1e12).map(lambda x: float(f"{x:.4g}")),
    st.floats(1e-3, 1e12),
)


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(OPERATORS), values, st.sampled_from(UNITS), st.sampled_from(CONCEPTS), st.integers(0, 10**6))
def test_a_query_reads_back_as_it_was_asked(operator, value, unit, concept, seed):
    query = write_query([concept], operator, value, unit, random.Random(seed))
    if query is None:
        return
    assert concept.lower() in query.text.lower()
    condition = parse_condition(query.text)
    assert condition is not None
    assert condition.operator == operator
    assert condition.upper is None
    ours, theirs = canonicalize(value, unit), canonicalize(condition.value, condition.unit)
    assert ours[1] == theirs[1]
    assert math.isclose(ours[0], theirs[0], rel_tol=1e-9)
    row = query.condition
    assert (row["operator"], row["canonical_unit"]) == (operator, ours[1])
    assert math.isclose(row["canonical_value"], ours[0], rel_tol=1e-9)
    assert (row["start"], row["end"]) == condition.quantity_span
    assert any(character.isalnum() for character in query.text[row["start"] : row["end"]])


def test_nearly_all_plain_values_can_be_asked_for():
    rng = random.Random(0)
    asked = [
        write_query(CONCEPTS, operator, float(value), unit, rng)
        for operator in OPERATORS
        for unit in UNITS
        for value in (1, 2.5, 12, 40, 125, 1500, 2_000_000)
    ]
    assert sum(query is None for query in asked) <= 0.02 * len(asked)


def test_a_query_is_none_rather_than_wrong():
    rng = random.Random(0)
    assert write_query(["votes"], "=", 200 / 3, "percent", rng) is None
    # Words of the concept that turn the condition around, or hold a quantity of their own.
    for concept in ("not", "no", "profit between 3 dollars and"):
        for _ in range(30):
            query = write_query([concept], ">", 5.0, "USD", rng)
            assert query is None or parse_condition(query.text).operator == ">"


def test_rejected_drafts_are_counted_by_template():
    rejected: dict[str, int] = {}
    assert (
        write_query(["profit of 7 kg of 9 kg of"], ">", 5.0, "no such unit", random.Random(0), rejected=rejected)
        is None
    )
    assert sum(rejected.values()) == 12
    assert set(rejected) <= set(TEMPLATES[">"])


def test_every_template_can_be_written():
    rng = random.Random(1)
    for operator, templates in TEMPLATES.items():
        written = {write_query(CONCEPTS, operator, 25.0, "kilogram", rng).template for _ in range(600)}
        assert written == set(templates)


def test_the_same_seed_writes_the_same():
    first, second = (
        [write_query(CONCEPTS, ">", float(n), "USD", rng).text for n in range(1, 40)]
        for rng in (random.Random(5), random.Random(5))
    )
    assert first == second


@given(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9))
def test_exactly_one_operator_holds(threshold, value):
    assert [holds(operator, threshold, value) for operator in OPERATORS].count(True) == 1


@given(st.floats(1e-3, 1e9), st.sampled_from(UNITS))
def test_conversion_round_trip(value, unit):
    assert math.isclose(from_canonical(to_canonical(value, unit), unit), value, rel_tol=1e-9, abs_tol=1e-6)


@given(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9), st.integers(0, 1000))
def test_a_round_number_between_two(low, high, seed):
    chosen = round_between(low, high, random.Random(seed))
    if chosen is None:
        return
    slack = 1e-8 * max(abs(low), abs(high))  # rounding of the division by the step
    assert low - slack <= chosen < high + slack
    assert chosen == float(f"{chosen:.5g}")


@given(
    st.sampled_from([">", "<"]),
    st.floats(1e-2, 1e9),
    st.floats(1.001, 5),
    st.sampled_from(UNITS),
    st.integers(0, 1000),
)
def test_a_bound_separates_the_two_values(operator, low, factor, unit, seed):
    high = low * factor
    bound = draw_bound(operator, low, high, unit, random.Random(seed))
    assume(bound is not None)
    satisfying, violating = (high, low) if operator == ">" else (low, high)
    assert holds(operator, to_canonical(bound, unit), satisfying)
    assert not holds(operator, to_canonical(bound, unit), violating)
    assert bound == float(f"{bound:.4g}")


@pytest.mark.parametrize("operator", [">", "<"])
def test_no_bound_between_equals(operator):
    assert draw_bound(operator, 5.0, 5.0, "USD", random.Random(0)) is None
