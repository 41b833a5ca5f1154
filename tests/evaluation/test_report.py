import io
import json
import math

import pytest
from datasets import Dataset
from rich.console import Console

from numcolbert.evaluation.evaluator import Evaluation
from numcolbert.evaluation.metrics import METRICS, QueryResult
from numcolbert.evaluation.report import (
    aggregate,
    build_report,
    main,
    markdown,
    print_tables,
    read_report,
    write_report,
)

VALUES = {"plain": [0.1, 0.4, 0.3, 0.2, 0.5, 0.1], "gated": [0.6, 0.8, 0.9, 0.7, 0.9, 0.7]}


def evaluation(values):
    results = []
    for number, value in enumerate(values):
        metrics = dict.fromkeys(METRICS, value)
        if number == 1:
            del metrics["ordered_pairs"]
        ranking = [(f"d{rank}", float(-rank)) for rank in range(20)]
        results.append(
            QueryResult(f"q{number}", f"query | {number}", "=><"[number % 3], "pair", number < 4, metrics, ranking)
        )
    return Evaluation(results, {"search": 0.123456})


def report_of(values, seed=1, sha="0" * 64):
    evaluations = {label: evaluation(row) for label, row in values.items()}
    report = build_report(
        evaluations,
        {label: f"models/{label}" for label in values},
        benchmark="companies",
        benchmark_sha256=sha,
        documents=50,
        index="exact",
        seed=seed,
    )
    return report, evaluations


def test_report_survives_the_disk_and_per_query_results_give_its_means(tmp_path):
    report, evaluations = report_of(VALUES)
    files = write_report(report, evaluations, tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(path.name for path in files)
    assert read_report(tmp_path / "out" / "results.json") == report
    rows = Dataset.from_parquet(str(tmp_path / "out" / "per_query.parquet"), keep_in_memory=True).to_list()
    assert len(rows) == 12
    for model in report["models"]:
        mine = [row for row in rows if row["model"] == model["label"]]
        for metric in METRICS:
            values = [row[metric] for row in mine if row[metric] is not None]
            assert len(values) == (5 if metric == "ordered_pairs" else 6)
            assert model["metrics"]["overall"][metric] == pytest.approx(sum(values) / len(values))
    assert rows[0]["retrieved"] == [f"d{rank}" for rank in range(10)]
    assert rows[0]["scores"] == [-float(rank) for rank in range(10)]
    assert {"python", "torch", "pylate"} <= set(report["versions"])
    assert report["machine"]["cores"] >= 1
    assert report["seed"] == 1


def test_every_model_is_tested_against_the_first():
    report, _ = report_of(VALUES | {"same": VALUES["plain"]})
    for metric, tests in report["significance"].items():
        assert [(test["reference"], test["model"]) for test in tests] == [("plain", "gated"), ("plain", "same")]
        assert tests[0]["p_holm"] < 0.05 < tests[1]["p_holm"]
        assert tests[0]["queries"] == (5 if metric == "ordered_pairs" else 6)
    assert set(report["significance"]) == set(METRICS)
    assert report_of({"plain": VALUES["plain"]})[0]["significance"] == {}


def test_terminal_and_markdown_show_the_same_figures():
    report, _ = report_of(VALUES)
    text = markdown(report)
    screen = io.StringIO()
    print_tables(report, Console(file=screen, width=200))
    table = [line.split("|") for line in text.splitlines() if line.startswith("| gated")]
    assert [cell.strip() for cell in table[0][2:-1]] == ["0.767†", "0.767†", "0.767†", "0.767†", "0.760†"]
    assert "| Model | = (2) | > (2) | < (2) | inequalities (4) | seen (4) | unseen (2) |" in text
    for row in table:
        for cell in row[1:-1]:
            assert cell.strip() in screen.getvalue()


def test_aggregate_equals_mean_and_sample_deviation(tmp_path):
    runs = {
        "a": report_of({"plain-seed1": [0.1] * 6, "gated-seed1": [0.5] * 6})[0],
        "b": report_of({"plain-seed2": [0.2] * 6, "gated-seed2": [0.9] * 6})[0],
        "c": report_of({"plain": [0.6] * 6, "one": [0.3] * 6}, seed=3)[0],
    }
    table = aggregate(runs)
    assert list(table) == ["plain", "gated", "one"]
    spread = table["plain"]["<"]["ndcg@10"]
    assert spread["n"] == 3
    assert spread["mean"] == pytest.approx(0.3)
    assert spread["std"] == pytest.approx(math.sqrt((0.2**2 + 0.1**2 + 0.3**2) / 2))
    assert table["gated"]["overall"]["mrr@10"]["std"] == pytest.approx(math.sqrt(2 * 0.2**2))
    assert table["one"]["overall"]["p@10"] == {"mean": pytest.approx(0.3), "std": None, "n": 1}

    for name, run in runs.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(run), encoding="utf-8")
    output = tmp_path / "tables" / "table.md"
    assert main([*(str(tmp_path / f"{name}.json") for name in runs), "--output", str(output)]) == 0
    written = output.read_text(encoding="utf-8")
    assert "| plain | 3 | 0.300 ± 0.265 |" in written
    assert "| gated | 2 | 0.700 ± 0.283 |" in written
    assert "| one | 1 | 0.300 |" in written
    assert json.loads(output.with_suffix(".json").read_text(encoding="utf-8")) == table


def test_unlike_or_repeated_results_are_refused(tmp_path, capsys):
    one = report_of(VALUES)[0]
    with pytest.raises(ValueError, match="a and b differ in benchmark or index"):
        aggregate({"a": one, "b": report_of(VALUES, seed=2, sha="1" * 64)[0]})
    with pytest.raises(ValueError, match="a and b both hold 'plain' with seed 1"):
        aggregate({"a": one, "b": one})
    assert main([str(tmp_path / "none.json")]) == 2
    assert "There is no file" in capsys.readouterr().err
    (tmp_path / "other.json").write_text('{"models": [{"name": "x"}]}', encoding="utf-8")
    assert main([str(tmp_path / "other.json")]) == 2
    assert f"{tmp_path / 'other.json'} is no results.json of evaluate.py" in capsys.readouterr().err


def test_a_benchmark_without_violating_documents_shows_no_ordered_pairs():
    results = evaluation(VALUES["plain"]).results
    for result in results:
        result.metrics.pop("ordered_pairs", None)
    report = build_report({"plain": Evaluation(results, {})}, {"plain": "x"}, "b", "0", 5, "exact", 1)
    assert report["models"][0]["metrics"]["overall"]["ordered_pairs"] is None
    assert "| plain | 0.267 | 0.267 | 0.267 | 0.267 | – |" in markdown(report)
    assert "Ordered pairs by operator" not in markdown(report)
    assert aggregate({"a": report})["plain"]["="]["ordered_pairs"] == {"mean": None, "std": None, "n": 0}
