"""The official files: read as they are, judged as they say, refused when spoilt."""

from __future__ import annotations

import csv
import json
import random
import re
from pathlib import Path

import pytest
import yaml
from datasets import Dataset

from numcolbert.corpus.annotation import annotate
from numcolbert.corpus.benchmark import load_benchmark
from numcolbert.corpus.official import FILES, name_pairs, query_rows, read_official, read_unit, sentences_of
from numcolbert.corpus.prepare import DataConfig, main, prepare_data
from numcolbert.corpus.storage import rows_sha256

CONCEPTS = {  # keyword: unit as the files name it, a quantity as text writes it, values
    "net profit": ("dollar", "${} million", 1e6, range(5, 400)),
    "wheat exports": ("tonne", "{},000 tonnes", 1e3, range(20, 900)),
    "interest rate": ("percentage", "{} percent", 1.0, range(2, 60)),
}
SIGNS = {"=": "of exactly", ">": "above", "<": "below"}
WORDS = {"=": "equal", ">": "greater", "<": "less"}


def make_sentence(rng: random.Random, concept: str) -> tuple[str, float]:
    _, form, scale, values = CONCEPTS[concept]
    number = rng.choice(values) // 5 * 5 + 5
    name = rng.choice(("Acme", "Borealis", "Cobalt", "Dorado", "Elm", "Fjord", "Gamma", "Harbor"))
    pattern = rng.choice(("{} said {} was {} in the quarter, {} up.", "{}, “the best”: {} rose to {} on Monday, {}."))
    return pattern.format(name, concept, form.format(number), f"nº {rng.randrange(10**6)}"), number * scale


def satisfies(operator: str, value: float, bound: float) -> bool:
    return {"=": value == bound, ">": value > bound, "<": value < bound}[operator]


def write_csv(path: Path, rows: list[dict[str, object]], delimiter: str = ",") -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["", *rows[0]], delimiter=delimiter)  # a table of pandas: the index comes first
        writer.writeheader()
        for number, row in enumerate(rows):
            writer.writerow({"": number, **row})


def write_official(directory: Path) -> Path:
    """A small data set of the official shape."""
    directory.mkdir(parents=True)
    rng = random.Random(3)
    documents = [(concept, *make_sentence(rng, concept)) for _ in range(20) for concept in CONCEPTS]
    write_csv(
        directory / "collection.csv",
        [
            {
                "sentence": text,
                "normalized_sentence": text.lower(),
                "values": [value],
                "units": [CONCEPTS[concept][0]],
                "value_char_indices": [[(0, 1)]],
                "unit_char_indices": [[(2, 3)]],
            }
            for concept, text, value in documents
        ],
    )
    queries, qrels = [], {}
    for concept, (unit, form, scale, _) in CONCEPTS.items():
        values = sorted(value for other, _, value in documents if other == concept)
        for operator, bound in (("=", values[3]), (">", values[12]), ("<", values[7])):
            judged = {
                str(number): 1
                for number, (other, _, value) in enumerate(documents)
                if other == concept and satisfies(operator, value, bound)
            }
            qrels[str(len(queries))] = judged
            quantity = form.format(f"{bound / scale:g}")
            queries.append(
                {
                    "query_text": f"{concept} {SIGNS[operator]} {quantity}",
                    "keywords": concept,
                    "unit": unit,
                    "value": bound,
                    "condition": operator,
                }
            )
    queries.append(
        {**queries[0], "query_text": "dividend over 3 dollars", "keywords": "dividend", "value": 3.0, "condition": ">"}
    )
    write_csv(directory / "queries.tsv", queries, delimiter="\t")
    (directory / "qrel_compelete.json").write_text(json.dumps(qrels), encoding="utf-8")
    for operator, word in WORDS.items():
        part = {query: judged for query, judged in qrels.items() if queries[int(query)]["condition"] == operator}
        (directory / f"qrels_{word}.json").write_text(json.dumps(part), encoding="utf-8")
    rows = []
    for concept, (unit, *_) in CONCEPTS.items():
        # One sentence of the test set, which answers a query, is among those of the training file.
        relevant = [int(document) for judged in qrels.values() for document in judged]
        answer = next(number for number in relevant if documents[number][0] == concept)
        sentences = [make_sentence(rng, concept) for _ in range(70)] + [documents[answer][1:]]
        for spelled, chosen in ((concept, sentences[:50]), (concept.title(), sentences[50:])):
            rows.append(
                {
                    "keyword": spelled,
                    "unit": unit,
                    "values": [value for _, value in chosen],
                    "sentences": [text for text, _ in chosen],
                    "values_char": [[(0, 1)] for _ in chosen],
                    "unit_char": [[(2, 3)] for _ in chosen],
                }
            )
    write_csv(directory / "train_concepts_units_extended.csv", rows)
    return directory


@pytest.fixture(scope="module")
def official(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_official(tmp_path_factory.mktemp("official") / "SmallQuant")


@pytest.fixture
def spoilt(tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    return write_official(tmp_path / "SmallQuant")


def options(directory: Path, output: Path, **changes: object) -> DataConfig:
    return DataConfig(
        output_dir=str(output),
        official_dir=str(directory),
        triplets=90,
        development_queries=9,
        development_share=0.4,
        unseen_pair_share=0.0,
        **changes,
    )


@pytest.fixture(scope="module")
def prepared(official: Path, tmp_path_factory: pytest.TempPathFactory):
    return prepare_data(options(official, tmp_path_factory.mktemp("data")))


def rows_of(path: Path, delimiter: str = ",") -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter=delimiter))


def test_the_benchmark_is_the_official_one(official, prepared):
    benchmark = load_benchmark(prepared.benchmark)
    collection, queries = rows_of(official / "collection.csv"), rows_of(official / "queries.tsv", "\t")
    assert benchmark.corpus["id"] == [row[""] for row in collection]
    assert benchmark.corpus["text"] == [row["sentence"] for row in collection]
    assert benchmark.qrels == json.loads((official / "qrel_compelete.json").read_text())
    assert benchmark.queries["id"] == [str(number) for number in range(9)]  # the tenth has no relevant document
    for row, expected in zip(benchmark.queries, queries, strict=False):
        assert row["text"] == expected["query_text"]
        condition = row["condition"]
        assert condition["operator"] == expected["condition"]
        assert condition["value"] == float(expected["value"])
        assert row["seen"]
        mention = row["text"][condition["start"] : condition["end"]]
        assert re.sub(r"\D", "", mention) in row["text"].replace(",", "")
    assert benchmark.information["name"] == "SmallQuant"
    assert benchmark.information["queries_without_relevant_document"] == 1
    for operator, word in WORDS.items():
        ids = [row["id"] for row in benchmark.queries if row["condition"]["operator"] == operator]
        assert {query: benchmark.qrels[query] for query in ids} == json.loads(
            (official / f"qrels_{word}.json").read_text()
        )


def test_judgements_agree_with_the_quantities_read(prepared):
    benchmark = load_benchmark(prepared.benchmark)
    documents = dict(zip(benchmark.corpus["id"], benchmark.corpus["quantities"], strict=True))
    for row in benchmark.queries:
        condition = row["condition"]
        for document in benchmark.qrels[row["id"]]:
            assert any(
                quantity["canonical_unit"] == condition["canonical_unit"]
                and satisfies(condition["operator"], quantity["canonical_value"], condition["canonical_value"])
                for quantity in documents[document]
            )


def test_triplets_come_from_the_training_file_and_ask_no_test_query(official, prepared):
    triplets = Dataset.from_parquet(str(prepared.triplets), keep_in_memory=True)
    benchmark = load_benchmark(prepared.benchmark)
    development = load_benchmark(prepared.development)
    training = " ".join(row["sentences"] for row in rows_of(official / "train_concepts_units_extended.csv"))
    documents = dict(zip(benchmark.corpus["id"], benchmark.corpus["text"], strict=True))
    answers = {documents[document] for judged in benchmark.qrels.values() for document in judged}
    held_out = set(development.corpus["text"])
    asked = benchmark.query_keys() | development.query_keys()
    assert len(triplets) == 90
    assert {row["pair"] for row in triplets} == {"net profit | USD", "wheat exports | gram", "interest rate | percent"}
    for row in triplets:
        condition = row["query_condition"]
        assert (row["pair"], condition["operator"], condition["canonical_value"]) not in asked
        for side, wanted in (("positive", True), ("negative", False)):
            if row[f"{side}_source"] == "original":
                assert row[side] in training
                assert row[side] not in answers
                assert row[side] not in held_out
            assert wanted == any(
                quantity["canonical_unit"] == condition["canonical_unit"]
                and satisfies(condition["operator"], quantity["canonical_value"], condition["canonical_value"])
                for quantity in row[f"{side}_quantities"]
            )
    assert prepared.statistics["training_file"] == {"rows": 6, "rows_without_pair": 0, "answers_left_out": 3}


def test_spellings_of_one_concept_are_one_pair(official):
    data = read_official(official)
    pairs = name_pairs(annotate(sentences_of(data.training.texts)), data.training)
    assert [pair.key for pair in pairs] == [
        key for key in ("net profit | USD", "wheat exports | gram", "interest rate | percent") for _ in range(2)
    ]
    assert pairs[0].variants == ("net profit", "Net Profit")
    assert pairs[0].support == 71


def test_grouping_of_the_file_counts_where_the_concept_is_not_named(spoilt, tmp_path):
    rows = rows_of(spoilt / "train_concepts_units_extended.csv")
    for row in rows:
        del row[""]
        row["sentences"] = row["sentences"].replace(row["keyword"].lower(), "it")
    write_csv(spoilt / "train_concepts_units_extended.csv", rows)
    statistics = prepare_data(options(spoilt, tmp_path / "data")).statistics
    assert statistics["triplets"]["pairs"] == 3


def test_the_same_again_is_the_same_and_other_content_is_not(official, spoilt, prepared, tmp_path):
    again = prepare_data(options(spoilt, tmp_path / "again"))
    assert rows_sha256(again.triplets) == rows_sha256(prepared.triplets)
    assert again.statistics["fingerprint"] == prepared.statistics["fingerprint"]
    for name in FILES:
        file = spoilt / name
        content = file.read_bytes()
        file.write_bytes(content + b"\n")
        assert options(spoilt, tmp_path).fingerprint() != prepared.statistics["fingerprint"], name
        file.write_bytes(content)


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def without_column(name: str, column: str, delimiter: str = ","):
    def spoil(folder: Path) -> None:
        rows = rows_of(folder / name, delimiter)
        write_csv(folder / name, [{k: v for k, v in row.items() if k not in (column, "")} for row in rows], delimiter)

    return spoil


def with_cells(name: str, number: int, cells: dict[str, str], delimiter: str = ","):
    def spoil(folder: Path) -> None:
        rows = rows_of(folder / name, delimiter)
        rows[number].update(cells)
        write_csv(folder / name, [{k: v for k, v in row.items() if k} for row in rows], delimiter)

    return spoil


def with_cell(name: str, number: int, column: str, value: str, delimiter: str = ","):
    return with_cells(name, number, {column: value}, delimiter)


def with_qrels(qrels: object):
    return lambda folder: (folder / "qrel_compelete.json").write_text(json.dumps(qrels), encoding="utf-8")


TRAINING = "train_concepts_units_extended.csv"
SPOILERS = {
    "no column of the collection": (
        without_column("collection.csv", "sentence"),
        r"collection\.csv has no column sentence, only normalized_sentence, values",
    ),
    "no column of the training file": (without_column(TRAINING, "values"), TRAINING + " has no column values"),
    "no column of the queries": (
        without_column("queries.tsv", "condition", "\t"),
        r"queries\.tsv has no column condition",
    ),
    "no literal": (
        with_cell(TRAINING, 2, "values", "[1.0, 2.0"),
        rf"row 2 of .*{TRAINING} \(line 4\) has values that do not parse.*mend or drop the row",
    ),
    "code instead of a literal": (
        with_cell(TRAINING, 1, "sentences", "[__import__('os').getcwd()]"),
        rf"row 1 of .*{TRAINING} .* has sentences that do not parse",
    ),
    "nan in a literal": (
        with_cell(TRAINING, 0, "values", "[nan]"),
        r"row 0 of .* has values that do not parse, nan is",
    ),
    "an endless value": (
        with_cells(TRAINING, 0, {"values": "[1e999]", "sentences": "['Net profit was $5 million.']"}),
        "row 0 of .* has inf among its values",
    ),
    "a number as sentence": (
        with_cells(TRAINING, 0, {"values": "[1]", "sentences": "[5]"}),
        "row 0 of .* has 5 among its sentences",
    ),
    "a string as value": (
        with_cells(TRAINING, 0, {"values": "['1']", "sentences": "['Net profit was $5 million.']"}),
        "row 0 of .* has '1' among its values",
    ),
    "no list": (with_cell(TRAINING, 0, "values", "12.0"), r"row 0 of .* has values that are 12\.0, not a list"),
    "lists of two lengths": (with_cell(TRAINING, 5, "values", "[1.0]"), r"row 5 of .* has 1 values for 21 sentences"),
    "no keyword": (with_cell(TRAINING, 3, "keyword", ""), r"row 3 of .* has no keyword"),
    "no sentence": (
        with_cell("collection.csv", 7, "sentence", " "),
        r"row 7 of .*collection\.csv \(line 9\) has no sentence",
    ),
    "nan as value": (with_cell("queries.tsv", 4, "value", "nan", "\t"), r"row 4 of .*queries\.tsv .* the value 'nan'"),
    "no value": (with_cell("queries.tsv", 4, "value", "", "\t"), r"row 4 of .*queries\.tsv .* the value ''"),
    "condition": (
        with_cell("queries.tsv", 6, "condition", "around", "\t"),
        r"row 6 of .*queries\.tsv .* has the condition 'around': write one of '=', ",
    ),
    "query without row": (
        with_qrels({"10": {"0": 1}}),
        r"judges query '10', but the ids of queries\.tsv run from 0 to 9",
    ),
    "no query id": (with_qrels({"01": {"0": 1}}), "judges query '01'"),
    "document without row": (with_qrels({"0": {"60": 1}}), r"judges document '60' for query '0'.* from 0 to 59"),
    "relevance": (with_qrels({"0": {"0": 0.5}}), "query '0' has the relevance 0.5"),
    "nan as relevance": (with_qrels({"0": {"0": float("nan")}}), "query '0' has the relevance nan"),
    "no judgements": (with_qrels({}), "judges no document relevant"),
    "a list of judgements": (with_qrels([1]), "must hold {query id"),
    "judgements cut off": (
        lambda folder: (folder / "qrel_compelete.json").write_text('{"0": {"0"'),
        "is not JSON in UTF-8",
    ),
    "other encoding": (
        lambda folder: (folder / "collection.csv").write_bytes(
            (folder / "collection.csv").read_bytes().replace("nº 1".encode(), b"n\xba 1", 1)
        ),
        r"line \d+ of .*collection\.csv is not UTF-8: convert",
    ),
    "cells": (
        lambda folder: (folder / "queries.tsv").open("a", encoding="utf-8").write("10\tone\ttwo\r\n") and None,
        r"row 10 of .*queries\.tsv \(line 12\) has 3 cells, the header 6",
    ),
    "header alone": (
        lambda folder: (folder / "queries.tsv").write_text("query_text\tkeywords\tunit\tvalue\tcondition\n"),
        r"queries\.tsv holds no row",
    ),
}


@pytest.mark.parametrize(("spoil", "message"), SPOILERS.values(), ids=SPOILERS.keys())
def test_spoilt_files_are_named_and_nothing_is_written(spoil, message, spoilt, tmp_path):
    read_official(spoilt)
    spoil(spoilt)
    with pytest.raises(ValueError, match=message):
        prepare_data(options(spoilt, tmp_path / "data"))
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("name", FILES)
def test_missing_files_are_named(name, spoilt, tmp_path):
    (spoilt / name).unlink()
    with pytest.raises(FileNotFoundError, match=rf"SmallQuant lacks {re.escape(name)}: put the official files there"):
        prepare_data(options(spoilt, tmp_path / "data"))
    assert not (tmp_path / "data").exists()


def test_spoilt_files_leave_what_was_prepared_before(spoilt, tmp_path):
    before = prepare_data(options(spoilt, tmp_path / "data"))
    content = before.triplets.read_bytes()
    with_cell(TRAINING, 0, "values", "[nan]")(spoilt)
    with pytest.raises(ValueError, match="nan"):
        prepare_data(options(spoilt, tmp_path / "data"))
    assert before.triplets.read_bytes() == content


def test_sources_beside_the_official_files_are_refused(official, tmp_path):
    for name in ("train_source", "test_source"):
        with pytest.raises(ValueError, match=f"official_dir is .* and {name} 'a.txt': give one of them"):
            options(official, tmp_path, **{name: "a.txt"})


def test_from_the_command_line(official, prepared, tmp_path, capsys):
    arguments = ["--triplets", "90", "--development_queries", "9", "--development_share", "0.4"]
    main(["--output_dir", str(tmp_path), "--official_dir", str(official), "--unseen_pair_share", "0", *arguments])
    printed = json.loads(capsys.readouterr().out)
    assert printed["triplets_sha256"] == prepared.statistics["triplets_sha256"]


def test_the_paper_configuration_reads_them(official, tmp_path):
    file = Path(__file__).parents[2] / "configs" / "paper-finquant.yaml"
    data = yaml.safe_load(file.read_text(encoding="utf-8"))["data"]
    assert data["triplets"] == 2_400_000
    assert Path(data["official_dir"]).parts == ("data", "finquant")
    small = {"official_dir": str(official), "output_dir": str(tmp_path), "triplets": 30, "development_queries": 6}
    prepared = prepare_data(DataConfig(**{**data, **small, "development_share": 0.4}))
    assert prepared.statistics["triplets"]["triplets"] == 30
    assert prepared.statistics["pairs"] == {"train": 3, "withheld": 0}


def test_long_cells_line_breaks_and_a_byte_order_mark(spoilt):
    rows = [{k: v for k, v in row.items() if k} for row in rows_of(spoilt / "collection.csv")]
    rows[0]["sentence"] = "Net profit\nwas $5 million."
    rows[1]["normalized_sentence"] = "x" * 300_000  # the module's limit is 131,072
    write_csv(spoilt / "collection.csv", rows)
    file = spoilt / "collection.csv"
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    before = csv.field_size_limit()
    data = read_official(spoilt)
    assert csv.field_size_limit() == before
    assert len(data.documents) == 60
    assert data.documents[0] == rows[0]["sentence"]


def test_bounds_on_training_sentences(official):
    everything = read_official(official).training
    few = read_official(official, max_sentences=10).training
    assert few.texts == everything.texts[:10]
    assert few.entries == everything.entries[:10]
    longest = max(map(len, everything.texts))
    shorter = read_official(official, max_characters=longest - 1).training
    assert max(map(len, shorter.texts)) < longest
    with pytest.raises(ValueError, match="widen min_characters and max_characters"):
        read_official(official, min_characters=10_000)


def test_a_query_whose_number_cannot_be_found_keeps_the_official_condition(spoilt):
    with_cell("queries.tsv", 1, "query_text", "net profit above a lot", "\t")(spoilt)
    data = read_official(spoilt)
    row = query_rows(data.queries, [])[1]
    assert row["condition"]["canonical_unit"] == "USD"
    assert row["condition"]["value"] == data.queries[1].value
    assert row["condition"]["start"] is None
    assert not row["seen"]


@pytest.mark.parametrize("name", ["", "-"])
def test_no_unit(name):
    assert read_unit(name) is None


def test_memory_does_not_grow_with_columns_that_are_not_read(spoilt):
    import tracemalloc

    rows = [{k: v for k, v in row.items() if k} for row in rows_of(spoilt / "collection.csv")]
    for row in rows:
        row["normalized_sentence"] = "x" * 500_000
    write_csv(spoilt / "collection.csv", rows)
    tracemalloc.start()
    read_official(spoilt)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8_000_000  # the file has 30 MB
