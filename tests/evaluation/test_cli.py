import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from datasets import Dataset

from numcolbert.evaluation.cli import main
from numcolbert.modeling.model_card import read_card_data
from tests.evaluation.conftest import tables, write_benchmark_folder

ROOT = Path(__file__).parents[2]


def test_two_models_are_evaluated_compared_and_written(model_folder, benchmark_folder, tmp_path, capsys):
    output = tmp_path / "results"
    arguments = ["--model", f"first={model_folder}", "--model", str(model_folder), "--benchmark", str(benchmark_folder)]
    assert main([*arguments, "--output", str(output), "--device", "cpu", "--batch_size", "4", "--seed", "3"]) == 0
    printed = capsys.readouterr().out
    assert "companies: 6 queries over 10 documents, exact search" in printed
    report = json.loads((output / "results.json").read_text(encoding="utf-8"))
    assert [model["label"] for model in report["models"]] == ["first", "minilm"]
    assert report["models"][0]["metrics"] == report["models"][1]["metrics"]
    assert report["seed"] == 3
    assert [test["p_holm"] for test in report["significance"]["ndcg@10"]] == [1.0]
    rows = Dataset.from_parquet(str(output / "per_query.parquet"), keep_in_memory=True)
    assert len(rows) == 12
    assert (output / "results.md").read_text(encoding="utf-8").startswith("**companies")


def test_results_and_their_tests_reach_the_cards(model_folder, benchmark_folder, tmp_path, capsys):
    for name in ("baseline", "ours"):
        shutil.copytree(model_folder, tmp_path / name)
    models = [f"ColBERT_ft={tmp_path / 'baseline'}", f"Ours={tmp_path / 'ours'}"]
    arguments = ["--benchmark", str(benchmark_folder), "--device", "cpu", "--update_cards"]
    for _ in range(2):  # the second time replaces the results, and adds none
        assert main(["--model", models[0], "--model", models[1], *arguments]) == 0
        results = read_card_data(tmp_path / "ours").results
        assert [(result.benchmark, result.model) for result in results] == [("companies", "Ours")]
        assert {test.baseline for test in results[0].tests} == {"ColBERT_ft"}
        assert "ColBERT\\_ft" in (tmp_path / "ours" / "README.md").read_text(encoding="utf-8")
    assert "Card updated" in capsys.readouterr().out


def test_help_teaches():
    done = subprocess.run(
        [sys.executable, "evaluate.py", "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for word in (
        "--model",
        "--benchmark",
        "{exact,plaid,voyager}",
        "examples:",
        "python -m numcolbert.evaluation.report",
    ):
        assert word in done.stdout


@pytest.mark.parametrize("arguments", [["--benchmrk", "x"], ["--index", "faiss"], ["--batch_size", "0"], []])
def test_bad_options_are_refused(arguments, benchmark_folder, capsys):
    given = ["--model", "m", "--benchmark", str(benchmark_folder), *arguments] if arguments else []
    with pytest.raises(SystemExit) as stopped:
        main(given)
    assert stopped.value.code == 2
    expected = arguments[0].lstrip("-") if arguments else "model"
    assert expected in capsys.readouterr().err


def test_unknown_keys_of_a_configuration_are_refused_by_name(tmp_path, benchmark_folder, capsys):
    config = tmp_path / "evaluate.yaml"
    config.write_text(f"model: [m]\nbenchmark: {benchmark_folder}\nbatchsize: 3\n", encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["--config", str(config)])
    assert "batchsize" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("models", "benchmark", "message"),
    [
        (["./none"], None, "There is no model folder ./none"),
        (["a=x/y", "a=x/z"], None, "Two models are called 'a'"),
        (["=x"], None, "--model =x lacks a label"),
        (["x/y"], "missing", "There is no benchmark folder"),
        (["x/y"], "empty", "lacks corpus.parquet"),
        (["x/y"], "no documents", "corpus.parquet holds no row"),
        (["x/y"], "no queries", "queries.parquet holds no row"),
        (["x/y"], "broken", "corpus.parquet is no Parquet file"),
    ],
)
def test_bad_input_is_named(models, benchmark, message, benchmark_folder, tmp_path, capsys):
    corpus, queries, qrels = tables()
    folder = tmp_path / "benchmark"
    if benchmark is None:
        folder = benchmark_folder
    elif benchmark == "empty":
        folder.mkdir()
    elif benchmark == "no documents":
        write_benchmark_folder(folder, [], queries, qrels)
    elif benchmark == "no queries":
        write_benchmark_folder(folder, corpus, [], [])
    elif benchmark == "broken":
        write_benchmark_folder(folder, corpus, queries, qrels)
        (folder / "corpus.parquet").write_text("no table", encoding="utf-8")
    capsys.readouterr()  # what writing printed
    options = [option for model in models for option in ("--model", model)]
    assert main([*options, "--benchmark", str(folder)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert message in error
