"""Triplets keep what they promise: positives satisfy, negatives violate, test queries stay out."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import pytest
from datasets import Dataset

from numcolbert.corpus import queries
from numcolbert.corpus.annotation import quantity_rows
from numcolbert.corpus.pairs import ConceptFinder, index_pairs, near_values
from numcolbert.corpus.schema import TRIPLETS
from numcolbert.corpus.storage import rows_sha256
from numcolbert.corpus.triplets import TripletOptions, build_triplets, query_key
from numcolbert.quantities import canonicalize, parse_condition

COUNT = 240


def load(path) -> list[dict]:
    return Dataset.from_parquet(str(path), keep_in_memory=True).to_list()


@pytest.fixture(scope="module")
def built(corpus, pairs, tmp_path_factory):
    path = tmp_path_factory.mktemp("triplets") / "a.parquet"
    # Every augmentation often enough to be looked at.
    options = TripletOptions(positive_permutation=0.4, negative_permutation=0.4, unit_permutation=0.3)
    related = {"net profit": ("earnings",)}
    statistics = build_triplets(corpus, pairs, path, count=COUNT, seed=1, options=options, related=related)
    return load(path), statistics, path, options


def satisfies(condition: dict, quantity: dict) -> bool:
    if quantity["canonical_unit"] != condition["canonical_unit"]:
        return False
    value, bound = quantity["canonical_value"], condition["canonical_value"]
    if math.isclose(value, bound, rel_tol=1e-9):
        return condition["operator"] == "="
    return {"=": False, ">": value > bound, "<": value < bound}[condition["operator"]]


def test_labels_hold_when_all_is_read_again(built, pairs):
    rows, *_ = built
    finder = ConceptFinder.of_pairs(pairs)
    for row in rows:
        condition = row["query_condition"]
        asked = parse_condition(row["query"])
        assert asked is not None
        assert asked.operator == condition["operator"]
        value, unit = canonicalize(asked.value, asked.unit)
        assert unit == condition["canonical_unit"]
        assert math.isclose(value, condition["canonical_value"], rel_tol=1e-9)
        assert (condition["start"], condition["end"]) == asked.quantity_span
        positive, negative = quantity_rows(row["positive"]), quantity_rows(row["negative"])
        assert positive == row["positive_quantities"]
        assert negative == row["negative_quantities"]
        near = near_values(row["positive"], positive, finder, 10)[row["concept"], condition["canonical_unit"]]
        assert any(satisfies(condition, positive[n]) for n in near), row
        assert not any(satisfies(condition, quantity) for quantity in negative), row
        assert row["concept"] in row["positive"].lower()
        assert row["concept"] in row["negative"].lower()
        assert row["pair"] == f"{row['concept']} | {condition['canonical_unit']}"


def test_columns_counts_and_balance(built, pairs):
    rows, statistics, path, _ = built
    assert Dataset.from_parquet(str(path), keep_in_memory=True).features == TRIPLETS
    assert len(rows) == statistics.triplets == COUNT
    assert Counter(row["query_condition"]["operator"] for row in rows) == {"=": 80, ">": 80, "<": 80}
    assert statistics.as_dict()["operators"] == {"=": 80, ">": 80, "<": 80}
    assert {row["pair"] for row in rows} == {pair.key for pair in pairs}
    assert len({(row["query"], row["positive"], row["negative"]) for row in rows}) == COUNT


def test_sources_say_what_was_done(built, corpus):
    rows, statistics, _, _ = built
    originals = set(corpus["text"])
    for side in ("positive", "negative"):
        sources = Counter(row[f"{side}_source"] for row in rows)
        assert sources == (statistics.positive_sources if side == "positive" else statistics.negative_sources)
        assert set(sources) == {"original", "value_permutation", "unit_permutation"}
        assert min(sources.values()) > 0.08 * COUNT
        for row in rows:
            if row[f"{side}_source"] == "original":
                assert row[side] in originals
            elif side == "positive" or row["negative_source"] == "unit_permutation":
                assert row[side] != row["negative" if side == "positive" else "positive"]
    for row in rows:
        if row["negative_source"] == "unit_permutation":
            unit = row["query_condition"]["canonical_unit"]
            assert all(quantity["canonical_unit"] != unit for quantity in row["negative_quantities"])
            values = [[q["value"] for q in row[f"{side}_quantities"]] for side in ("positive", "negative")]
            assert values[0] == values[1]


def test_units_of_every_kind_are_permuted(built):
    rows, *_ = built
    permuted = {row["pair"] for row in rows if row["negative_source"] == "unit_permutation"}
    assert permuted == {row["pair"] for row in rows}


def test_concepts_are_expanded(built):
    rows, *_ = built
    about = [row for row in rows if row["concept"] == "net profit"]
    expanded = [row for row in about if "earnings" in row["query"].lower()]
    assert 0 < len(expanded) < 0.3 * len(about)
    assert not any("earnings" in row["query"].lower() for row in rows if row["concept"] != "net profit")


def test_without_augmentation_all_is_original(corpus, pairs, tmp_path):
    options = TripletOptions(
        positive_permutation=0, negative_permutation=0, unit_permutation=0, concept_expansion=0, near_threshold=0
    )
    statistics = build_triplets(corpus, pairs, tmp_path / "a.parquet", count=60, options=options)
    assert statistics.positive_sources == statistics.negative_sources == {"original": 60}
    assert statistics.permutations == 0
    originals = set(corpus["text"])
    assert all(row["positive"] in originals and row["negative"] in originals for row in load(tmp_path / "a.parquet"))


def test_the_same_seed_gives_the_same_file_and_another_does_not(built, corpus, pairs, tmp_path):
    _, _, path, options = built
    related = {"net profit": ("earnings",)}
    for name, seed in (("b", 1), ("c", 2)):
        build_triplets(corpus, pairs, tmp_path / name, count=COUNT, seed=seed, options=options, related=related)
    assert (tmp_path / "b").read_bytes() == path.read_bytes()
    assert rows_sha256(tmp_path / "c") != rows_sha256(path)


def test_excluded_pairs_and_queries_never_occur(corpus, pairs, tmp_path):
    build_triplets(corpus, pairs, tmp_path / "a", count=COUNT, seed=3)
    keys = [
        query_key(row["pair"], row["query_condition"]["operator"], row["query_condition"]["canonical_value"])
        for row in load(tmp_path / "a")
    ]
    forbidden, shut = set(keys[::2]), {pairs[0].key}
    statistics = build_triplets(
        corpus, pairs, tmp_path / "b", count=COUNT, seed=3, exclude_pairs=shut, exclude_queries=forbidden
    )
    for row in load(tmp_path / "b"):
        condition = row["query_condition"]
        assert row["pair"] not in shut
        assert query_key(row["pair"], condition["operator"], condition["canonical_value"]) not in forbidden
    assert statistics.rejected["held-out query"] > 0
    assert shut.isdisjoint(statistics.pairs)


def test_a_given_index_is_used(corpus, pairs, tmp_path):
    index = index_pairs(corpus, pairs)
    build_triplets(corpus, pairs, tmp_path / "a", count=30)
    build_triplets(corpus, pairs, tmp_path / "b", count=30, index=index)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    only = pairs[2].key
    statistics = build_triplets(corpus, pairs, tmp_path / "c", count=30, index={only: index[only]})
    assert statistics.pairs == {only}


def test_a_sentence_that_says_the_quantity_of_another_concept_too_is_left_out(corpus, pairs, tmp_path):
    # Which of the two equal quantities is the concept's cannot be told once the sentence is rewritten.
    texts = [f"Net profit was ${n} million and wheat exports were worth ${n} million." for n in range(3, 60)]
    rows = [{"id": f"e{n}#0", "text": text, "quantities": quantity_rows(text)} for n, text in enumerate(texts)]
    profit = next(pair for pair in pairs if pair.concept == "net profit")
    rival = replace(profit, concept="wheat exports", variants=("wheat exports",))
    both = Dataset.from_list([*corpus.to_list(), *rows], features=corpus.features)
    statistics = build_triplets(both, [profit, rival], tmp_path / "a", count=60, exclude_pairs={rival.key})
    assert statistics.rejected["another concept has the same quantity"] > 0
    assert not {row["positive"] for row in load(tmp_path / "a")} & set(texts)


def test_a_corpus_that_is_too_small_is_an_error_and_leaves_no_file(corpus, pairs, tmp_path, monkeypatch):
    monkeypatch.setattr(queries, "TEMPLATES", {operator: forms[:1] for operator, forms in queries.TEMPLATES.items()})
    index = index_pairs(corpus, pairs)
    small = Dataset.from_list([corpus[index[pairs[0].key].sentences[n]] for n in range(3)], features=corpus.features)
    options = TripletOptions(positive_permutation=0, negative_permutation=0, unit_permutation=0)
    with pytest.raises(ValueError, match=r"yields only \d+ distinct triplets, not 5000: lower the count of triplets"):
        build_triplets(small, pairs, tmp_path / "a", count=5000, options=options)
    one = small.select([0])
    with pytest.raises(ValueError, match="no concept–unit pair has sentences with different values"):
        build_triplets(one, pairs, tmp_path / "a", count=1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"near_threshold": 1.5}, "near_threshold is 1.5: it is a share"),
        ({"concept_expansion": -0.1}, "concept_expansion is -0.1"),
        ({"negative_permutation": 0.8, "unit_permutation": 0.3}, "at most 1 together"),
    ],
)
def test_shares_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        TripletOptions(**options)


def test_query_keys_forget_the_noise_of_binary_fractions():
    assert query_key("a | USD", "=", 0.1 + 0.2) == query_key("a | USD", "=", 0.3)
    assert len({query_key(*key) for key in [("a", "=", 1.0), ("b", "=", 1.0), ("a", ">", 1.0), ("a", "=", 2.0)]}) == 4
