"""Benchmarks judge as a slow reference does, and survive being written and read."""

from __future__ import annotations

import json
import shutil
from collections import Counter

import pyarrow.parquet as pq
import pytest

from numcolbert.corpus.annotation import quantity_rows
from numcolbert.corpus.benchmark import build_benchmark, load_benchmark
from numcolbert.corpus.pairs import ConceptFinder, index_pairs, near_values
from numcolbert.corpus.schema import BENCHMARK_CORPUS, BENCHMARK_QUERIES
from numcolbert.quantities import extract_quantities, parse_condition

QUERIES = 24
BOUNDS = {"min_relevant": 3, "max_relevant": 30, "min_violating": 5}


@pytest.fixture(scope="module")
def built(corpus, pairs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("benchmarks") / "small"
    seen = {pair.key for pair in pairs[:2]}
    return build_benchmark(corpus, pairs, folder, queries=QUERIES, seen_pairs=seen, seed=4, **BOUNDS), folder, seen


def test_judgements_equal_a_brute_force_reference(built, corpus, pairs):
    benchmark, _, _ = built
    finder = ConceptFinder.of_pairs(pairs)
    for query in benchmark.queries:
        condition = parse_condition(query["text"])
        assert condition is not None
        expected = {}
        for document in corpus:
            quantities = extract_quantities(document["text"])
            near = near_values(document["text"], quantity_rows(document["text"]), finder, 10)
            own = [quantities[n] for n in near.get((query["concept"], query["condition"]["canonical_unit"]), [])]
            if own:
                expected[document["id"]] = int(any(condition.satisfied_by(quantity) for quantity in own))
        assert benchmark.qrels[query["id"]] == expected
        relevant, violating = sum(expected.values()), len(expected) - sum(expected.values())
        least = 1 if condition.operator == "=" else BOUNDS["min_relevant"]
        assert least <= relevant <= BOUNDS["max_relevant"]
        assert violating >= BOUNDS["min_violating"]


def test_a_violating_document_is_one_of_the_same_pair(built):
    benchmark, _, _ = built
    texts = dict(zip(benchmark.corpus["id"], benchmark.corpus["text"], strict=True))
    zeros = 0
    for query in benchmark.queries:
        for document, relevance in benchmark.qrels[query["id"]].items():
            assert query["concept"] in texts[document].lower()
            assert any(
                row["canonical_unit"] == query["condition"]["canonical_unit"] for row in quantity_rows(texts[document])
            )
            zeros += relevance == 0
    assert zeros >= QUERIES * BOUNDS["min_violating"]


def test_queries_are_balanced_distinct_and_marked(built):
    benchmark, _, seen = built
    assert Counter(row["condition"]["operator"] for row in benchmark.queries) == {"=": 8, ">": 8, "<": 8}
    assert len(benchmark.query_keys()) == QUERIES
    assert [row["seen"] for row in benchmark.queries] == [row["pair"] in seen for row in benchmark.queries]
    assert 0 < benchmark.information["queries_about_unseen_pairs"] < QUERIES
    for row in benchmark.queries:
        condition = row["condition"]
        mention = row["text"][condition["start"] : condition["end"]]
        assert [(q.value, q.unit) for q in extract_quantities(mention)] == [(condition["value"], condition["unit"])]


def test_save_and_load_round_trip(built, corpus):
    benchmark, folder, _ = built
    loaded = load_benchmark(folder)
    assert loaded.corpus.features == BENCHMARK_CORPUS
    assert loaded.queries.features == BENCHMARK_QUERIES
    assert loaded.corpus.to_list() == corpus.to_list()
    assert loaded.queries.to_list() == benchmark.queries.to_list()
    assert loaded.qrels == benchmark.qrels
    assert loaded.information == benchmark.information == json.loads((folder / "benchmark.json").read_text())
    assert loaded.information["judgements"] == sum(map(len, loaded.qrels.values()))
    assert sorted(file.name for file in folder.parent.iterdir()) == ["small"]


def test_the_same_seed_asks_the_same_and_another_does_not(built, corpus, pairs, tmp_path):
    benchmark, _, seen = built
    again, other = (
        build_benchmark(corpus, pairs, tmp_path / str(seed), queries=QUERIES, seen_pairs=seen, seed=seed, **BOUNDS)
        for seed in (4, 5)
    )
    assert again.queries.to_list() == benchmark.queries.to_list()
    assert again.qrels == benchmark.qrels
    assert other.queries["text"] != benchmark.queries["text"]


def test_a_given_index_is_used(corpus, pairs, tmp_path):
    only = pairs[1].key
    index = {only: index_pairs(corpus, pairs)[only]}
    benchmark = build_benchmark(corpus, pairs, tmp_path / "a", queries=6, index=index, **BOUNDS)
    assert set(benchmark.queries["pair"]) == {only}


def test_building_again_replaces_what_was_there(corpus, pairs, tmp_path):
    for queries in (9, 6):
        build_benchmark(corpus, pairs, tmp_path / "a", queries=queries, **BOUNDS)
        (tmp_path / "a" / "left over").write_text("")
        assert len(load_benchmark(tmp_path / "a").queries) == queries
    build_benchmark(corpus, pairs, tmp_path / "a", queries=3, **BOUNDS)
    assert not (tmp_path / "a" / "left over").exists()


def test_too_small_a_corpus_is_an_error_and_leaves_the_old(corpus, pairs, tmp_path):
    before = build_benchmark(corpus, pairs, tmp_path / "a", queries=3, **BOUNDS)
    with pytest.raises(ValueError, match=r"corpus of 12 sentences yields only \d+ of 50 queries: lower the number"):
        build_benchmark(corpus.select(range(12)), pairs, tmp_path / "a", queries=50, **BOUNDS)
    assert load_benchmark(tmp_path / "a").qrels == before.qrels


@pytest.mark.parametrize("name", ["corpus.parquet", "queries.parquet", "qrels.parquet", "benchmark.json"])
def test_a_missing_table_is_named(built, tmp_path, name):
    folder = shutil.copytree(built[1], tmp_path / "copy")
    (folder / name).unlink()
    with pytest.raises(FileNotFoundError, match=f"it lacks {name}: build it with prepare_data"):
        load_benchmark(folder)


@pytest.mark.parametrize("name", ["corpus.parquet", "queries.parquet", "qrels.parquet"])
def test_an_empty_table_is_named(built, tmp_path, name):
    folder = shutil.copytree(built[1], tmp_path / "copy")
    pq.write_table(pq.read_table(folder / name).slice(0, 0), folder / name)
    with pytest.raises(ValueError, match=rf"{name} holds no rows: build the benchmark again"):
        load_benchmark(folder)


@pytest.mark.parametrize("name", ["corpus.parquet", "queries.parquet", "qrels.parquet", "benchmark.json"])
def test_a_table_cut_off_is_named(built, tmp_path, name):
    folder = shutil.copytree(built[1], tmp_path / "copy")
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match=rf"{name} is damaged.*: build the benchmark again"):
        load_benchmark(folder)


def test_a_table_without_a_column_is_named(built, tmp_path):
    folder = shutil.copytree(built[1], tmp_path / "copy")
    table = pq.read_table(folder / "queries.parquet")
    pq.write_table(table.drop_columns(["condition"]), folder / "queries.parquet")
    with pytest.raises(ValueError, match=r"queries\.parquet lacks the column condition: build the benchmark again"):
        load_benchmark(folder)
