"""Conditions of queries: operators before and behind, bounds, what asks for no quantity."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from numcolbert.quantities import Condition, Quantity, extract_quantities, parse_condition, parse_conditions

CASES = Path(os.environ.get("NUMCOLBERT_CASES") or Path(__file__).resolve().parents[3] / "shared" / "cases")

# query -> operator, value, unit, upper
READ = {
    "more than one billion dollars of R&D": (">", 1000000000.0, "USD", None),
    "revenue over $5bn": (">", 5000000000.0, "USD", None),
    "price under €20": ("<", 20.0, "EUR", None),
    "patients older than 65 years": (">", 65.0, "year", None),
    "children younger than 5 years": ("<", 5.0, "year", None),
    "trials lasting longer than 6 months": (">", 6.0, "month", None),
    "no longer than 30 minutes": ("<=", 30.0, "minute", None),
    "not less than 10%": (">=", 10.0, "percent", None),
    "not more than 3 kg": ("<=", 3.0, "kilogram", None),
    "no more than 3 kg": ("<=", 3.0, "kilogram", None),
    "a minimum of 4 GB of RAM": (">=", 4.0, "gigabyte", None),
    "minimum 4 GB": (">=", 4.0, "gigabyte", None),
    "max 2 kg": ("<=", 2.0, "kilogram", None),
    "5 kg or more": (">=", 5.0, "kilogram", None),
    "5 kg or less": ("<=", 5.0, "kilogram", None),
    "65 years and older": (">=", 65.0, "year", None),
    "65+ years": (">=", 65.0, "year", None),
    "18 years or older": (">=", 18.0, "year", None),
    "200 patients or fewer": ("<=", 200.0, "patient", None),
    "at least 12.5 mln tonnes": (">=", 12500000.0, "metric_ton", None),
    "> 5 mg/dL": (">", 5.0, "milligram / deciliter", None),
    ">=5 mg": (">=", 5.0, "milligram", None),
    "BMI≥30 kg/m2": (">=", 30.0, "kilogram / meter ** 2", None),
    "p<0.05": ("<", 0.05, None, None),
    "between 5 and 10 km": ("between", 5.0, "kilometer", 10.0),
    "from 5 to 10 km": ("between", 5.0, "kilometer", 10.0),
    "5-10 km runs": ("between", 5.0, "kilometer", 10.0),
    "5 to 10 km": ("between", 5.0, "kilometer", 10.0),
    "$5-10 million deals": ("between", 5000000.0, "USD", 10000000.0),
    "between $5 and $10 million": ("between", 5000000.0, "USD", 10000000.0),
    "in excess of 40 pct": (">", 40.0, "percent", None),
    "upwards of 100 employees": (">", 100.0, "employee", None),
    "exceeding 3 m": (">", 3.0, "meter", None),
    "that exceeds 3 m": (">", 3.0, "meter", None),
    "exactly 5 bags": ("=", 5.0, "bag", None),
    "equal to 5 percent": ("=", 5.0, "percent", None),
    "about 5 percent": ("=", 5.0, "percent", None),
    "with 5 doors": ("=", 5.0, "door", None),
    "as much as 50 dollars": ("<=", 50.0, "USD", None),
    "within 10 miles": ("<=", 10.0, "mile", None),
    "less than or equal to 5": ("<=", 5.0, None, None),
    "greater than or equal to 5 mm": (">=", 5.0, "millimeter", None),
    "fewer than half a million people": ("<", 500000.0, "person", None),
    "below -10 °C": ("<", -10.0, "degree_Celsius", None),
    "colder than minus 10 degrees Celsius": ("<", -10.0, "degree_Celsius", None),
    "cheaper than 100 dollars": ("<", 100.0, "USD", None),
    "heavier than 2 tonnes": (">", 2.0, "metric_ton", None),
    "weighing less than 1.5kg": ("<", 1.5, "kilogram", None),
    "laptops with more than 16GB RAM under $1000": (">", 16.0, "gigabyte", None),
    "more than a dozen people": (">", 12.0, "person", None),
    "over a hundred million barrels": (">", 100000000.0, "barrel", None),
    "not exceeding 40 cts": ("<=", 40.0, "USD_cent", None),
    "companies that lost more than 20 mln dlrs in 1986": (">", 20000000.0, "USD", None),
    "at least three of the following": (">=", 3.0, None, None),
    "dose of no less than 5 mg/kg": (">=", 5.0, "milligram / kilogram", None),
    "unemployment higher than 10 pct": (">", 10.0, "percent", None),
    "did not exceed 10 mg": ("<=", 10.0, "milligram", None),
    "never more than 10 mg": ("<=", 10.0, "milligram", None),
    "50 mg at most": ("<=", 50.0, "milligram", None),
    "at least 10 but no more than 20 patients": (">=", 10.0, "patient", None),
    "more than 10 and less than 20 kg": (">", 10.0, "kilogram", None),
    "over 1.5 million b/d": (">", 1500000.0, "barrel / day", None),
    "a loss of less than 5 mln stg": ("<", 5000000.0, "GBP", None),
    "under 30 seconds": ("<", 30.0, "second", None),
    "larger than 3.5-inch": (">", 3.5, "inch", None),
    "up more than 5 percent": (">", 5.0, "percent", None),
    "rose by at least 5 pct": (">=", 5.0, "percent", None),
    "approximately 20 patients": ("=", 20.0, "patient", None),
    "around $20": ("=", 20.0, "USD", None),
    "beyond 100 km": (">", 100.0, "kilometer", None),
    "a maximum of three doses": ("<=", 3.0, "dose", None),
    "shares worth over 3 pounds sterling": (">", 3.0, "GBP", None),
    "≤ 7.0%": ("<=", 7.0, "percent", None),
    "minimum age of 18 years": (">=", 18.0, "year", None),
    "maximum dose of 40 mg": ("<=", 40.0, "milligram", None),
    "5 mg minimum": (">=", 5.0, "milligram", None),
}

NO_CONDITION = [
    "above 90th percentile",
    "iPhone 12 release date",
    "Boeing 747 crash 1985",
    "world war 2",
    "type 1 diabetes",
    "COVID-19 vaccine phase 3",
    "half or more of patients",
]


@pytest.mark.parametrize("query", READ)
def test_read(query: str) -> None:
    condition = parse_condition(query)
    assert condition is not None
    assert (condition.operator, condition.value, condition.unit, condition.upper) == READ[query]


@pytest.mark.parametrize("query", NO_CONDITION)
def test_no_condition(query: str) -> None:
    assert parse_condition(query) is None


def test_spans_name_the_words() -> None:
    query = "profit no less than 3 mln dlrs"
    condition = parse_condition(query)
    assert condition is not None
    assert condition.operator_span is not None
    assert query[slice(*condition.operator_span)] == "no less than"
    assert query[slice(*condition.quantity_span)] == "3 mln dlrs"
    query = "5 kg or more"
    condition = parse_condition(query)
    assert condition is not None
    assert condition.operator_span is not None
    assert query[slice(*condition.operator_span)] == "or more"


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("more than 10 and less than 20 kg", [(">", 10.0, "kilogram"), ("<", 20.0, "kilogram")]),
        ("laptops with more than 16GB RAM under $1000", [(">", 16.0, "gigabyte"), ("<", 1000.0, "USD")]),
        ("between 5 and 10 km and under 3 hours", [("between", 5.0, "kilometer"), ("<", 3.0, "hour")]),
    ],
)
def test_several(query: str, wanted: list[tuple[str, float, str]]) -> None:
    assert [(c.operator, c.value, c.unit) for c in parse_conditions(query)] == wanted


@pytest.mark.parametrize(
    ("query", "text", "satisfied"),
    [
        ("over 500 GB", "1 TB", True),
        ("over 500 GB", "256 GB", False),
        ("over 500 GB", "600 Mbps", False),
        ("over 500 GB", "600", False),
        ("exactly 1 km", "1000 m", True),
        ("exactly 1 km", "1001 m", False),
        ("at least 0.45 dollars", "45 cents", True),
        ("over 0.45 dollars", "45 cents", False),
        ("under 0.45 dollars", "45 cents", False),
        ("below 1 percent", "25 basis points", True),
        ("between 1 and 2 hours", "90 minutes", True),
        ("between 1 and 2 hours", "120 minutes", True),
        ("between 1 and 2 hours", "121 minutes", False),
        ("above 37 °C", "100 °F", True),
        ("above 38 °C", "100 °F", False),
        ("over 5 dollars", "10 euros", False),
        ("over 5", "10", True),
        ("over 5", "10 dollars", False),
        ("at least 200 patients", "250 eligible patients", True),
        ("at least 200 patients", "250 employees", False),
    ],
)
def test_satisfied(query: str, text: str, satisfied: bool) -> None:
    condition = parse_condition(query)
    assert condition is not None
    assert condition.satisfied_by_any(extract_quantities(text)) is satisfied


def test_equal_values_satisfy_neither_strict_operator_after_conversion() -> None:
    # 0.1 + 0.2 is no exact 0.3 and must not count as more
    quantity = Quantity(0.1 + 0.2, "meter", (0, 1), "x", (0, 1), None)
    assert not Condition(">", 0.3, "meter", None, None, (0, 1)).satisfied_by(quantity)
    assert Condition("<=", 0.3, "meter", None, None, (0, 1)).satisfied_by(quantity)


def _cases() -> list[dict]:
    path = CASES / "conditions.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []


@pytest.mark.skipif(not _cases(), reason=f"no case file in {CASES}: set NUMCOLBERT_CASES")
def test_case_file() -> None:
    for case in _cases():
        condition, wanted = parse_condition(case["query"]), case["condition"]
        if wanted is None:
            assert condition is None, case["query"]
            continue
        assert condition is not None, case["query"]
        assert condition.operator == wanted["operator"], case["query"]
        assert condition.value == wanted["value"], case["query"]
        assert condition.unit in wanted["unit"], case["query"]
        assert condition.upper == wanted.get("upper"), case["query"]
