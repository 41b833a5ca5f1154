"""Quantities and conditions as columns."""

from __future__ import annotations

import math

import pytest
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st

from numcolbert.corpus.annotation import annotate, condition_row, quantity_rows
from numcolbert.corpus.schema import BENCHMARK_CORPUS, CONDITION, QUANTITY
from numcolbert.corpus.sentences import SENTENCES
from numcolbert.quantities import canonicalize, extract_quantities, parse_condition

TEXTS = [
    "Revenue rose 12 percent to $3.4 billion in 1987.",
    "Nothing is counted here.",
    "",
    "A dose of 250 mg (0.5 ml) was given to 30 patients for 6 weeks.",
    "Größe: 5 km – 10 °C, „£2m“.",
]


def test_rows_hold_what_is_read():
    row, other = quantity_rows("It grew 5 km in 2 hours.")
    assert row == {
        "value": 5.0,
        "unit": "kilometer",
        "canonical_value": 5000.0,
        "canonical_unit": "meter",
        "start": 8,
        "end": 12,
    }
    assert (other["canonical_value"], other["canonical_unit"]) == (7200.0, "second")


@given(st.sampled_from(TEXTS) | st.text(max_size=80))
def test_rows_follow_the_extractor(text):
    rows = quantity_rows(text)
    quantities = extract_quantities(text)
    assert [set(row) for row in rows] == [set(QUANTITY)] * len(quantities)
    for row, quantity in zip(rows, quantities, strict=True):
        assert text[row["start"] : row["end"]] == quantity.surface
        assert (row["value"], row["unit"]) == (quantity.value, quantity.unit)
        assert (row["canonical_value"], row["canonical_unit"]) == canonicalize(quantity.value, quantity.unit)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("profit over 3 million dollars", (">", 3e6, None, "USD", 3e6, None, "USD", "3 million dollars")),
        ("tumours under 2 cm", ("<", 2.0, None, "centimeter", 0.02, None, "meter", "2 cm")),
        ("loads between 2 kg and 5 kg", ("between", 2.0, 5.0, "kilogram", 2e3, 5e3, "gram", "2 kg and 5 kg")),
        ("exactly 7", ("=", 7.0, None, None, 7.0, None, None, "7")),
    ],
)
def test_conditions(query, expected):
    condition = parse_condition(query)
    assert condition is not None
    row = condition_row(condition)
    assert set(row) == set(CONDITION)
    mention = query[row["start"] : row["end"]]
    found = (*(row[key] for key in ("operator", "value", "upper", "unit")), row["canonical_value"])
    found += (row["canonical_upper"], row["canonical_unit"], mention)
    for ours, wanted in zip(found, expected, strict=True):
        assert math.isclose(ours, wanted) if isinstance(wanted, float) else ours == wanted


@pytest.mark.parametrize("num_proc", [None, 2])
def test_a_column_for_every_sentence_in_order(num_proc):
    ids = [f"d{n}#0" for n in range(len(TEXTS))]
    corpus = annotate(Dataset.from_dict({"id": ids, "text": TEXTS}, features=SENTENCES), num_proc=num_proc)
    assert corpus.features == BENCHMARK_CORPUS
    assert corpus["id"] == ids
    assert corpus["text"] == TEXTS
    assert corpus["quantities"] == [quantity_rows(text) for text in TEXTS]
