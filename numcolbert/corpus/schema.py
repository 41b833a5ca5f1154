"""Columns of the data sets that this package writes and reads: triplets, and the three tables of a benchmark."""

from __future__ import annotations

from datasets import Features, Value

QUANTITY = {
    "value": Value("float64"),  # as written, scale words applied: "12 months" holds 12
    "unit": Value("string"),  # as written: "month"; None for a bare number
    "canonical_value": Value("float64"),  # in the canonical unit of the dimension; what conditions compare
    "canonical_unit": Value("string"),
    "start": Value("int32"),  # character span of the whole mention, number and unit
    "end": Value("int32"),
}
"""One quantity of a sentence."""

CONDITION = {
    "operator": Value("string"),  # one of numcolbert.quantities.OPERATORS
    "value": Value("float64"),
    "upper": Value("float64"),  # second bound of "between", else None
    "unit": Value("string"),
    "canonical_value": Value("float64"),
    "canonical_upper": Value("float64"),
    "canonical_unit": Value("string"),
    "start": Value("int32"),  # character span of the quantity mention in the query
    "end": Value("int32"),
}
"""The numerical condition of a query."""

TRIPLETS = Features(
    {
        "query": Value("string"),
        "positive": Value("string"),
        "negative": Value("string"),
        "query_condition": CONDITION,
        "positive_quantities": [QUANTITY],
        "negative_quantities": [QUANTITY],
        "concept": Value("string"),
        "pair": Value("string"),  # concept and unit, the group positives and negatives are drawn from
        "positive_source": Value("string"),  # "original", "value_permutation" or "unit_permutation"
        "negative_source": Value("string"),
    }
)
"""Training triplets; satisfies and violates are decided within one concept–unit pair."""

BENCHMARK_CORPUS = Features({"id": Value("string"), "text": Value("string"), "quantities": [QUANTITY]})
"""Documents of a benchmark."""

BENCHMARK_QUERIES = Features(
    {
        "id": Value("string"),
        "text": Value("string"),
        "condition": CONDITION,
        "concept": Value("string"),
        "pair": Value("string"),
        "seen": Value("bool"),  # whether the concept–unit pair occurs in the training triplets
    }
)
"""Queries of a benchmark."""

BENCHMARK_QRELS = Features({"query_id": Value("string"), "document_id": Value("string"), "relevance": Value("int32")})
"""Judgements of a benchmark."""
