"""Preparing data: once, whole, and with nothing of the test in the training."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import fields, replace
from pathlib import Path

import pytest
from datasets import Dataset

from numcolbert.corpus import prepare
from numcolbert.corpus.benchmark import load_benchmark
from numcolbert.corpus.builtin import generate_corpus
from numcolbert.corpus.prepare import DataConfig, main, prepare_data
from numcolbert.corpus.sentences import document_of, read_sentences
from numcolbert.corpus.triplets import query_key


@pytest.fixture(scope="module", autouse=True)
def _small_builtin_corpus():
    """The built-in corpus, less of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "numcolbert.corpus.builtin.generate_corpus", lambda seed: generate_corpus(seed, sentences_per_domain=250)
        )
        yield


def options(output: Path, **changes: object) -> DataConfig:
    small = DataConfig(
        output_dir=str(output),
        triplets=120,
        queries=18,
        development_queries=9,
        development_share=0.25,
        test_share=0.3,
        min_support=4,
        min_violating=3,
    )
    return replace(small, **changes)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    return prepare_data(options(tmp_path_factory.mktemp("prepared") / "data"))


def load(path: Path) -> list[dict]:
    return Dataset.from_parquet(str(path), keep_in_memory=True).to_list()


def files(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_all_parts_are_there(prepared):
    assert len(load(prepared.triplets)) == 120
    assert len(load_benchmark(prepared.benchmark).queries) == 18
    assert len(load_benchmark(prepared.development).queries) == 9
    assert json.loads((prepared.triplets.parent / "statistics.json").read_text()) == prepared.statistics
    assert sorted(os.listdir(prepared.triplets.parent)) == [
        "benchmark",
        "development",
        "statistics.json",
        "triplets.parquet",
    ]


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({}, "built-in corpus of the numcolbert package"),
        ({"train_source": "news/reports.jsonl.gz"}, "reports.jsonl.gz"),
        ({"official_dir": "data/finquant"}, "finquant"),
        ({"official_dir": "data/finquant", "name": "FinQuant"}, "FinQuant"),
    ],
)
def test_a_corpus_without_a_name_goes_by_its_file_or_folder(settings, name):
    assert DataConfig(output_dir="data", **settings).corpus_name == name


def test_benchmarks_carry_the_name_of_the_corpus(tmp_path):
    prepared = prepare_data(options(tmp_path, name="Annual reports", triplets=30))
    assert load_benchmark(prepared.benchmark).information["name"] == "Annual reports"
    assert load_benchmark(prepared.development).information["name"] == "Annual reports, development"


def test_parts_share_no_document_and_no_sentence(prepared):
    test, development = load_benchmark(prepared.benchmark), load_benchmark(prepared.development)
    owners = [{document_of(identifier) for identifier in part.corpus["id"]} for part in (test, development)]
    assert owners[0].isdisjoint(owners[1])
    corpus = generate_corpus(0, sentences_per_domain=250)
    rest = {
        row["text"]
        for row in read_sentences(corpus, split=False)
        if document_of(row["id"]) not in owners[0] | owners[1]
    }
    held_out = set(test.corpus["text"]) | set(development.corpus["text"])
    assert held_out.isdisjoint(rest)
    for row in load(prepared.triplets):
        for side in ("positive", "negative"):
            assert row[side] not in held_out
            assert row[f"{side}_source"] != "original" or row[side] in rest
    sizes = prepared.statistics["sentences"]
    assert sizes == {"train": len(rest), "development": len(development.corpus), "test": len(test.corpus)}


def test_no_query_of_a_benchmark_and_no_unseen_pair_is_trained_on(prepared):
    benchmarks = [load_benchmark(prepared.benchmark), load_benchmark(prepared.development)]
    asked = benchmarks[0].query_keys() | benchmarks[1].query_keys()
    unseen = {row["pair"] for benchmark in benchmarks for row in benchmark.queries if not row["seen"]}
    assert unseen
    rows = load(prepared.triplets)
    for row in rows:
        condition = row["query_condition"]
        assert query_key(row["pair"], condition["operator"], condition["canonical_value"]) not in asked
        assert row["pair"] not in unseen
    texts = {text for benchmark in benchmarks for text in benchmark.queries["text"]}
    assert texts.isdisjoint(row["query"] for row in rows)


def test_a_second_call_does_nothing(prepared, monkeypatch):
    folder = prepared.triplets.parent
    before = files(folder)
    monkeypatch.setattr(prepare, "read_sentences", lambda *_, **__: pytest.fail("the source was read again"))
    again = prepare_data(options(folder))
    assert again == prepared
    assert prepare_data(options(folder, num_proc=2)) == prepared  # no matter of content
    assert files(folder) == before


def test_the_same_configuration_elsewhere_gives_the_same(prepared, tmp_path):
    again = prepare_data(options(tmp_path / "other"))
    names = {name: content for name, (_, content) in files(tmp_path / "other").items() if name != "statistics.json"}
    assert names == {
        name: content for name, (_, content) in files(prepared.triplets.parent).items() if name != "statistics.json"
    }
    assert again.statistics["fingerprint"] == prepared.statistics["fingerprint"]


def test_a_changed_configuration_builds_again(tmp_path):
    first = prepare_data(options(tmp_path, triplets=30))
    second = prepare_data(options(tmp_path, triplets=33))
    assert first.triplets == second.triplets
    assert len(load(second.triplets)) == 33
    third = prepare_data(options(tmp_path, triplets=33, seed=1))
    assert third.statistics["triplets_sha256"] != second.statistics["triplets_sha256"]


@pytest.mark.parametrize("name", ["triplets.parquet", "development"])
def test_a_part_that_was_deleted_is_built_again(name, prepared, tmp_path):
    folder = shutil.copytree(prepared.triplets.parent, tmp_path / "data")
    (folder / name).rename(tmp_path / name)
    again = prepare_data(options(folder))
    assert again.statistics["triplets_sha256"] == prepared.statistics["triplets_sha256"]
    assert (folder / name).exists()


@pytest.mark.parametrize("step", ["build_benchmark", "build_triplets", "write_json"])
def test_an_interrupted_run_leaves_nothing_that_counts_as_prepared(step, prepared, tmp_path, monkeypatch):
    folder = shutil.copytree(prepared.triplets.parent, tmp_path / "data")
    assert prepare_data(options(folder)).statistics == prepared.statistics
    with monkeypatch.context() as patch:
        patch.setattr(prepare, step, lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            prepare_data(options(folder, triplets=33))
        assert not (folder / "statistics.json").exists()
        with pytest.raises(KeyboardInterrupt):  # neither the new data nor the old is taken for whole
            prepare_data(options(folder))
    if step == "build_triplets":
        again = prepare_data(options(folder))
        assert again.statistics["triplets_sha256"] == prepared.statistics["triplets_sha256"]


def test_fingerprints_follow_content_not_place(tmp_path):
    configurations = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / f"{folder}.txt"
        path.write_text("Net profit was 5 million dollars.\n", encoding="utf-8")
        configurations.append(DataConfig(output_dir=folder, train_source=str(path)))
    assert configurations[0].fingerprint() == configurations[1].fingerprint()
    Path(configurations[1].train_source).write_text("Net profit was 6 million dollars.\n", encoding="utf-8")
    assert configurations[0].fingerprint() != configurations[1].fingerprint()
    for field in fields(DataConfig):
        if field.name in ("output_dir", "num_proc", "train_source", "official_dir"):
            continue
        value = getattr(configurations[0], field.name)
        changed = value + 1 if isinstance(value, int | float) else "elsewhere" if field.name != "max_sentences" else 7
        assert replace(configurations[0], **{field.name: changed}).fingerprint() != configurations[0].fingerprint()


def test_a_test_source_of_its_own(tmp_path):
    corpus = generate_corpus(0, sentences_per_domain=250)
    for name, rows in (("train", corpus), ("test", corpus.select(range(0, 750, 3)))):
        lines = (json.dumps({"id": f"{name}-{n}", "text": row["text"]}) for n, row in enumerate(rows))
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    prepared = prepare_data(
        options(
            tmp_path / "data",
            train_source=str(tmp_path / "train.jsonl"),
            test_source=str(tmp_path / "test.jsonl"),
            min_support=3,
            queries=6,
            development_queries=3,
            development_share=0.4,
            triplets=60,
        )
    )
    test = load_benchmark(prepared.benchmark)
    assert {document_of(identifier).split("-")[0] for identifier in test.corpus["id"]} == {"test"}
    assert len(set(test.corpus["text"]) & set(corpus["text"])) > 100  # held by both sources
    trained_on = {row[side] for row in load(prepared.triplets) for side in ("positive", "negative")}
    assert trained_on.isdisjoint(test.corpus["text"])


def test_a_source_without_pairs_is_an_error_that_writes_nothing(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("\n".join(f"Nothing is counted in sentence {'x' * n} of it." for n in range(9)), encoding="utf-8")
    with pytest.raises(ValueError, match=r"no concept–unit pair found in .*a\.txt: give a larger corpus"):
        prepare_data(DataConfig(output_dir=str(tmp_path / "data"), train_source=str(path)))
    assert not (tmp_path / "data").exists()


def test_the_command_prints_what_it_did(tmp_path, capsys):
    main([f"--{name}={value}" for name, value in vars(options(tmp_path, triplets=30)).items() if value is not None])
    printed = json.loads(capsys.readouterr().out)
    assert printed["triplets"]["triplets"] == 30
    assert printed == {
        key: value for key, value in json.loads((tmp_path / "statistics.json").read_text()).items() if key != "config"
    }


def test_help_names_every_field(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["--help"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    for field in fields(DataConfig):
        assert f"--{field.name} " in shown
    assert "Raises" not in shown


@pytest.mark.parametrize("arguments", [["--trip", "5"], ["--output", "x"], ["--unknown", "1"], ["--seed", "one"], []])
def test_shortened_unknown_and_missing_options_are_refused(arguments, tmp_path, capsys):
    output = [] if not arguments else ["--output_dir", str(tmp_path / "data")]
    with pytest.raises(SystemExit) as stopped:
        main([*output, *arguments])
    assert stopped.value.code == 2
    message = capsys.readouterr().err
    assert (arguments[0] if arguments else "--output_dir") in message
    assert not (tmp_path / "data").exists()


def test_bad_input_on_the_command_line_is_one_sentence(tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["--output_dir", str(tmp_path / "data"), "--train_source", "nowhere.txt"])
    assert "there is no file nowhere.txt" in str(stopped.value.code)
