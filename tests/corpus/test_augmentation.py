"""Every rewritten sentence, read again, says what its labels say."""

from __future__ import annotations

import itertools
import json
import math
import random
import re

import pytest

from numcolbert.corpus.annotation import quantity_rows
from numcolbert.corpus.augmentation import (
    draw_value,
    number_like,
    opposite,
    permute_values,
    read_expressions,
    related_expressions,
    replace_unit,
    replace_values,
)
from numcolbert.corpus.pairs import Pair
from numcolbert.corpus.queries import OPERATORS
from numcolbert.quantities import (
    canonicalize,
    compatible,
    extract_quantities,
    number_forms,
    prefix_forms,
    surface_forms,
)

SENTENCES = {  # text: canonical unit of the pair, positions near the concept, threshold
    "Net profit rose to 1.2 mln dlrs from 900,000 dlrs in 1986.": ("USD", [0, 1], 1e6),
    "Revenue of $3.4 billion, up 12 percent, beat the $3.1 billion expected.": ("USD", [0, 1], 3.2e9),
    "The dose was 250 mg twice a day for 6 weeks.": ("gram", [0], 0.2),
    "Wheat exports fell to 120,000 tonnes in May.": ("gram", [0], 1.5e11),
    "The rate fell to 7.5 pct from 8 pct.": ("percent", [0, 1], 7.8),
    "The trial had 48 patients, of whom 20 patients left.": ("patient", [0, 1], 30.0),
    "The pipe is 14.5 km long.": ("meter", [0], 20000.0),
}


def satisfies(operator: str, threshold: float, value: float) -> bool:
    if math.isclose(value, threshold, rel_tol=1e-9):
        return operator == "="
    return {"=": False, ">": value > threshold, "<": value < threshold}[operator]


def positions(text: str, unit: str, near: list[int]) -> list[int]:
    """Positions of the pair's quantities, given by rank among those of its unit."""
    of_unit = [n for n, row in enumerate(quantity_rows(text)) if row["canonical_unit"] == unit]
    return [of_unit[n] for n in near]


@pytest.mark.parametrize("text", SENTENCES)
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("satisfying", [True, False])
def test_permuted_values_flip_as_meant(text, operator, satisfying):
    unit, ranks, threshold = SENTENCES[text]
    near = positions(text, unit, ranks)
    before = quantity_rows(text)
    observed = [threshold * factor for factor in (0.2, 0.5, 1.0, 2.0, 4.0)]
    rng = random.Random(f"{text}{operator}{satisfying}")
    written = 0
    for _ in range(60):
        result = permute_values(
            text, unit, near, observed, operator, threshold, satisfying=satisfying, near_share=0.5, rng=rng
        )
        if result is None:
            continue
        written += 1
        changed, rows = result
        assert rows == quantity_rows(changed)
        assert changed != text
        assert [row["unit"] for row in rows] == [row["unit"] for row in before]
        for n, (row, old) in enumerate(zip(rows, before, strict=True)):
            if row["canonical_unit"] != unit:
                assert row["value"] == old["value"], n
        if satisfying:
            assert any(satisfies(operator, threshold, rows[n]["canonical_value"]) for n in near)
        else:
            assert not any(
                row["canonical_unit"] == unit and satisfies(operator, threshold, row["canonical_value"]) for row in rows
            )
    assert written >= 20, (text, operator, satisfying)


def test_all_forms_of_a_number_occur():
    rng = random.Random(0)
    text = "Net profit was 5 dollars."
    quantities = extract_quantities(text)
    for value in (1_200_000.0, 3_400_000_000.0, 12_500.0, 0.45, 7.0):
        written = set()
        for _ in range(400):
            result = replace_values(text, quantities, {0: value}, rng)
            if result is not None:
                assert result[1][0]["value"] == pytest.approx(value, rel=1e-9)
                assert result[1][0]["unit"] == "USD"
                written.add(result[0].removeprefix("Net profit was ").removesuffix(" dollars."))
        assert written == set(number_forms(value))
    assert {"1200000", "1,200,000", "1.2 million"} <= set(number_forms(1_200_000.0))


def test_new_numbers_are_mostly_written_like_the_old():
    rng = random.Random(0)
    alike = [number_like(3.4e6, "1.2 mln", rng) for _ in range(300)]
    assert sum(form.endswith("mln") for form in alike) > 200
    assert len(set(alike)) > 3


@pytest.mark.parametrize("text", SENTENCES)
@pytest.mark.parametrize("same_unit", [True, False])
def test_replaced_units(text, same_unit):
    unit, _, _ = SENTENCES[text]
    quantities = extract_quantities(text)
    places = [n for n, quantity in enumerate(quantities) if quantity.canonical()[1] == unit]
    results = [replace_unit(text, quantities, places, random.Random(seed), same_unit=same_unit) for seed in range(60)]
    if unit == "patient" and same_unit:
        assert set(results) == {None}  # counted things have one name
        return
    kept = [result for result in results if result is not None]
    assert len(kept) >= 20
    for changed, rows in kept:
        assert rows == quantity_rows(changed)
        assert changed != text
        for n, (row, old) in enumerate(zip(rows, quantities, strict=True)):
            assert math.isclose(row["value"], old.value, rel_tol=1e-9)
            if n not in places or same_unit:
                assert row["unit"] == old.unit
            else:
                assert not compatible(row["unit"], old.unit)
    if same_unit:
        assert len({changed for changed, _ in kept}) > 1


@pytest.mark.parametrize("unit", ["USD", "GBP", "percent", "kilogram", "milligram", "metric_ton", "barrel", "year"])
def test_all_surface_forms_of_a_unit_occur(unit):
    text = f"It came to 25 {surface_forms(unit)[0]} in the end."
    text = text.replace(" %", "%")
    quantities = extract_quantities(text)
    assert [quantity.unit for quantity in quantities] == [unit]
    results = [replace_unit(text, quantities, [0], random.Random(seed), same_unit=True) for seed in range(400)]
    written = {re.sub(r"^It came to 25\s?|\s?in the end\.$", "", changed) for changed, _ in filter(None, results)}
    expected = {form for form in surface_forms(unit) if form != surface_forms(unit)[0]}
    missing = expected - written
    assert not missing or all(not reads_alone(25, form, unit) for form in missing), missing


def reads_alone(number: int, form: str, unit: str) -> bool:
    found = extract_quantities(f"It came to {number} {form} in the end.")
    return [(quantity.value, quantity.unit) for quantity in found] == [(number, unit)]


def test_currency_signs_before_the_number():
    text = "Net profit was $5 million."
    changed = {
        result[0]
        for seed in range(50)
        if (result := replace_unit(text, extract_quantities(text), [0], random.Random(seed), same_unit=True))
    }
    assert changed == {f"Net profit was {form}5 million." for form in prefix_forms("USD") if form != "$"}


def test_a_number_without_unit_is_not_rewritten():
    text = "There were 5 of them."
    quantities = extract_quantities(text)
    assert replace_unit(text, quantities, [0], random.Random(0), same_unit=True) is None
    assert (
        permute_values(text, "USD", [0], [1.0], ">", 3.0, satisfying=True, near_share=0.5, rng=random.Random(0)) is None
    )


@pytest.mark.parametrize("near_share", [0.0, 1.0])
@pytest.mark.parametrize(("operator", "satisfying"), list(itertools.product(OPERATORS, [True, False])))
def test_drawn_values(operator, satisfying, near_share):
    rng = random.Random(0)
    milligrams = [100.0, 250.0, 500.0, 750.0, 5000.0]
    observed = [canonicalize(value, "milligram")[0] for value in milligrams]
    drawn = [
        draw_value(
            observed, operator, 0.5, "milligram", satisfying=satisfying, near_share=near_share, whole=True, rng=rng
        )
        for _ in range(200)
    ]
    found = [value for value in drawn if value is not None]
    assert len(found) > 150
    for value in found:
        assert value > 0
        assert value.is_integer()
        assert satisfies(operator, 0.5, canonicalize(value, "milligram")[0]) == satisfying
        if near_share and not (operator == "=" and satisfying):
            assert 0.69 * 500 <= value <= 1.31 * 500
        elif not (operator == "=" and satisfying):
            assert value in milligrams
    if operator == "=" and satisfying:
        assert set(found) == {500.0}


def test_no_value_where_none_can_be():
    rng = random.Random(0)
    assert draw_value([5.0], "=", 5.0, "USD", satisfying=False, near_share=0.0, whole=False, rng=rng) is None
    assert draw_value([5.0], "<", 1.0, "patient", satisfying=True, near_share=1.0, whole=True, rng=rng) is None


def test_related_expressions_share_contexts_and_units():
    texts = [
        template.format(concept=concept, value=value)
        for value in range(3, 40)
        for concept in ("revenue", "turnover", "net loss", "net profit")
        for template in (
            "Annual {concept} of the retail group climbed to {value} million dollars after strong Christmas trading.",
        )
    ]
    texts += [f"The warehouse floor measures {n} metres beside the river dock." for n in range(3, 30)]
    rows = [{"text": text, "quantities": quantity_rows(text)} for text in texts]
    concepts = ("revenue", "turnover", "net loss", "net profit")
    pairs = [Pair(concept, "USD", (concept,)) for concept in concepts] + [Pair("warehouse floor", "meter")]
    related = related_expressions(rows, pairs)
    assert "turnover" in related["revenue"]
    assert "revenue" in related["turnover"]
    assert "net loss" not in related.get("net profit", ())
    assert "net profit" not in related.get("net loss", ())
    assert "warehouse floor" not in related
    assert related_expressions(rows, pairs) == related
    assert related_expressions([], pairs) == {}


def test_opposites_either_way_round():
    assert opposite("profits", "loss")
    assert opposite("net losses", "net profit")
    assert not opposite("net profit", "net profit before tax")
    assert opposite("net profit", "gross profit")
    assert opposite("systolic blood pressure", "diastolic blood pressure")


def test_expressions_from_a_file(tmp_path):
    path = tmp_path / "e.json"
    path.write_text(json.dumps({"Größe": ["Höhe", "size"], "profit": []}), encoding="utf-8")
    assert read_expressions(path) == {"Größe": ("Höhe", "size"), "profit": ()}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "is not JSON in UTF-8"),
        (b'{"a": ["\xff"]}', "is not JSON in UTF-8"),
        (b"[]", "must hold an object"),
        (b'{"a": "b"}', "'a' must have a list of expressions, not 'b'"),
        (b'{"a": [""]}', "'a' must have a list"),
        (b'{"a": [1]}', "'a' must have a list"),
    ],
)
def test_spoilt_expressions_are_named(tmp_path, content, message):
    path = tmp_path / "e.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_expressions(path)
