"""Reports of an evaluation: tables for the terminal and for Markdown, JSON, per-query Parquet, means over seeds.

Several runs are put together by ``python -m numcolbert.evaluation.report results/*/results.json --output TABLE.md``.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import math
import os
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jsonargparse import ArgumentParser
from rich.console import Console
from rich.table import Table

from numcolbert.evaluation.evaluator import DEPTH, Evaluation
from numcolbert.evaluation.metrics import METRICS, OVERALL
from numcolbert.evaluation.significance import compare

__all__ = [
    "aggregate",
    "build_report",
    "machine",
    "markdown",
    "method_and_seed",
    "print_tables",
    "read_report",
    "versions",
    "write_report",
]

Cells = tuple[list[str], list[list[str]]]
"""Header and rows of a table."""

TITLES = {"ndcg@10": "nDCG@10", "mrr@10": "MRR@10", "p@10": "P@10", "r@100": "R@100", "ordered_pairs": "Ordered pairs"}
"""Metrics as tables write them."""

SIGNIFICANCE_LEVEL = 0.05

MARK = "†"
"""Stands behind a figure that differs from the first model's by more than chance."""

_SEED_SUFFIX = re.compile(r"^(?P<method>.+?)[-_ ](?:seed[-_ ]?|s)(?P<seed>\d+)$", re.IGNORECASE)
_PACKAGES = ("numcolbert", "pylate", "sentence-transformers", "transformers", "torch", "ranx", "numpy")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that a result depends on."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:  # run from a checkout that is not installed
            continue
    return found


def _cpu_model() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def machine() -> dict[str, Any]:
    """Describe the machine: system, processor, cores, threads of torch and, if there is one, the GPU."""
    found: dict[str, Any] = {
        "system": platform.system(),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
    }
    if torch.cuda.is_available():
        found["gpu"] = torch.cuda.get_device_name()
    return found


def method_and_seed(label: str, seed: int) -> tuple[str, int]:
    """Split a label such as ``numcolbert-seed3`` into method and seed.

    Parameters
    ----------
    label
        Name of a model in a report.
    seed
        Seed of the report, for a label that names none.

    Returns
    -------
    tuple[str, int]
        Method and seed.

    Examples
    --------
    >>> method_and_seed("numcolbert-digits-seed3", 42)
    ('numcolbert-digits', 3)
    >>> method_and_seed("colbert_s2", 42)
    ('colbert', 2)
    >>> method_and_seed("colbertv2", 42)
    ('colbertv2', 42)

    """
    match = _SEED_SUFFIX.match(label)
    return (match["method"], int(match["seed"])) if match else (label, seed)


def _significance(evaluations: Mapping[str, Evaluation]) -> dict[str, list[dict[str, Any]]]:
    """Compare every model with the first, metric by metric, on the queries for which all models have the metric."""
    reference = next(iter(evaluations))
    tests: dict[str, list[dict[str, Any]]] = {}
    for metric in METRICS:
        rows = zip(*(evaluation.results for evaluation in evaluations.values()), strict=True)
        complete = [row for row in rows if all(metric in result.metrics for result in row)]
        if len(complete) < 2:
            continue
        values = {name: [row[column].metrics[metric] for row in complete] for column, name in enumerate(evaluations)}
        tests[metric] = [asdict(comparison) for comparison in compare(values, reference=reference)]
    return tests


def build_report(
    evaluations: Mapping[str, Evaluation],
    sources: Mapping[str, str],
    benchmark: str,
    benchmark_sha256: str,
    documents: int,
    index: str,
    seed: int,
) -> dict[str, Any]:
    """Gather all that an evaluation found, and on what, into one JSON-ready dictionary.

    Parameters
    ----------
    evaluations
        Label of a model to its evaluation; the first is the reference of the significance tests.
    sources
        Label to the folder or Hub id that the model was loaded from.
    benchmark, benchmark_sha256, documents
        Name, fingerprint and number of documents of the benchmark.
    index
        Index that was searched.
    seed
        Seed of this evaluation.

    Returns
    -------
    dict[str, Any]
        What ``results.json`` holds.

    """
    first = next(iter(evaluations.values()))
    return {
        "created": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "benchmark": {
            "name": benchmark,
            "sha256": benchmark_sha256,
            "documents": documents,
            "queries": len(first.results),
        },
        "index": index,
        "depth": DEPTH,
        "seed": seed,
        "versions": versions(),
        "machine": machine(),
        "models": [
            {
                "label": label,
                "source": sources[label],
                "metrics": evaluation.averages,
                "seconds": {step: round(value, 3) for step, value in evaluation.seconds.items()},
            }
            for label, evaluation in evaluations.items()
        ],
        "significance": _significance(evaluations) if len(evaluations) > 1 else {},
    }


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _significant(report: Mapping[str, Any]) -> set[tuple[str, str]]:
    return {
        (test["model"], metric)
        for metric, tests in report["significance"].items()
        for test in tests
        if test["p_holm"] < SIGNIFICANCE_LEVEL
    }


def _counts(report: Mapping[str, Any]) -> dict[str, int]:
    return {group: row["queries"] for group, row in report["models"][0]["metrics"].items()}


def _overall_cells(report: Mapping[str, Any]) -> Cells:
    marked = _significant(report)
    rows = [
        [model["label"]]
        + [
            _number(model["metrics"][OVERALL][metric]) + (MARK if (model["label"], metric) in marked else "")
            for metric in METRICS
        ]
        for model in report["models"]
    ]
    return ["Model", *TITLES.values()], rows


def _group_cells(report: Mapping[str, Any], metric: str) -> Cells:
    counts = {group: count for group, count in _counts(report).items() if group != OVERALL}
    header = ["Model", *(f"{group} ({count})" for group, count in counts.items())]
    rows = [
        [model["label"], *(_number(model["metrics"][group][metric]) for group in counts)] for model in report["models"]
    ]
    return header, rows


def _significance_cells(report: Mapping[str, Any]) -> Cells:
    header = ["Model", "Metric", "Difference", "t", "p", "p (Holm)"]
    rows = [
        [
            test["model"],
            TITLES[metric],
            f"{test['difference']:+.3f}",
            f"{test['t']:.2f}",
            f"{test['p']:.2g}",
            f"{test['p_holm']:.2g}",
        ]
        for metric, tests in report["significance"].items()
        for test in tests
    ]
    return header, rows


def _sections(report: Mapping[str, Any]) -> list[tuple[str, Cells]]:
    """Return titled tables of a report, as terminal and Markdown both show them."""
    benchmark = report["benchmark"]
    where = f"{benchmark['name']}: {benchmark['queries']} queries over {benchmark['documents']} documents"
    sections = [(f"{where}, {report['index']} search", _overall_cells(report))]
    sections += [
        (f"{TITLES[metric]} by operator and pair (queries)", _group_cells(report, metric))
        for metric in METRICS
        if any(model["metrics"][OVERALL][metric] is not None for model in report["models"])
    ]
    if report["significance"]:
        first = report["models"][0]["label"]
        sections.append(
            (f"Against {first}: paired t-test, Holm-corrected ({MARK} below 0.05)", _significance_cells(report))
        )
    return sections


def _rich_table(title: str, cells: Cells) -> Table:
    header, rows = cells
    table = Table(title=title, title_justify="left")
    for column, name in enumerate(header):
        table.add_column(name, justify="left" if column == 0 or name == "Metric" else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def _markdown_table(cells: Cells) -> str:
    header, rows = cells
    lines = [header, ["---", *(["---:"] * (len(header) - 1))], *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def print_tables(report: Mapping[str, Any], console: Console | None = None) -> None:
    """Print a report's tables to the terminal.

    Parameters
    ----------
    report
        As `build_report` or `read_report` returns it.
    console
        Where to print. Defaults to standard output.

    """
    console = console or Console()
    for title, cells in _sections(report):
        console.print(_rich_table(title, cells))


def markdown(report: Mapping[str, Any]) -> str:
    """Write a report's tables as Markdown.

    Parameters
    ----------
    report
        As `build_report` or `read_report` returns it.

    Returns
    -------
    str
        The same tables that `print_tables` prints.

    """
    return "\n\n".join(f"**{title}**\n\n{_markdown_table(cells)}" for title, cells in _sections(report)) + "\n"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def write_report(report: Mapping[str, Any], evaluations: Mapping[str, Evaluation], folder: str | Path) -> list[Path]:
    """Write ``results.json``, ``results.md`` and ``per_query.parquet``.

    Parameters
    ----------
    report
        As `build_report` returns it.
    evaluations
        The same evaluations, for the per-query results.
    folder
        Where to write; made if it does not exist.

    Returns
    -------
    list[Path]
        The files written.

    """
    from datasets import Dataset  # noqa: PLC0415  (seconds to import, not needed to read a report)

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {
            "model": label,
            "query_id": result.query_id,
            "query": result.text,
            "operator": result.operator,
            "pair": result.pair,
            "seen": result.seen,
            **{metric: result.metrics.get(metric) for metric in METRICS},
            "retrieved": [document for document, _ in result.ranking[:10]],
            "scores": [score for _, score in result.ranking[:10]],
        }
        for label, evaluation in evaluations.items()
        for result in evaluation.results
    ]
    per_query = folder / "per_query.parquet"
    temporary = folder / f".per_query.{os.getpid()}.tmp"
    Dataset.from_list(rows).to_parquet(temporary)
    temporary.replace(per_query)
    _write(folder / "results.md", markdown(report))
    _write(folder / "results.json", json.dumps(report, indent=2, ensure_ascii=False, allow_nan=True) + "\n")
    return [folder / "results.json", folder / "results.md", per_query]


def read_report(path: str | Path) -> dict[str, Any]:
    """Read a ``results.json``.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    dict[str, Any]
        As `build_report` returned it.

    Raises
    ------
    ValueError
        If the file is no results file of ``evaluate.py``.

    """
    try:
        report = json.loads(Path(path).read_text(encoding="utf-8"))
        for model in report["models"]:
            assert {"label", "metrics"} <= set(model)
        report["benchmark"]["sha256"], report["seed"], report["index"]
    except (ValueError, KeyError, TypeError, AssertionError) as error:
        raise ValueError(f"{path} is no results.json of evaluate.py; give the file that it wrote.") from error
    return dict(report)


def aggregate(reports: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, dict[str, dict[str, float | None]]]]:
    """Average the same method over its seeds.

    The seed of a model is read from its label (``numcolbert-seed2`` is method ``numcolbert``); a label without a seed
    takes the seed of its report.

    Parameters
    ----------
    reports
        Name (such as the file's path) to report.

    Returns
    -------
    dict[str, dict[str, dict[str, dict[str, float | None]]]]
        Method to group to metric to ``mean``, ``std`` (of the sample, None for one seed) and ``n``.

    Raises
    ------
    ValueError
        If reports were made on different benchmarks or indexes, or hold the same method and seed twice.

    """
    grounds: dict[tuple[str, str], str] = {}
    values: dict[str, dict[int, Mapping[str, Any]]] = {}
    origin: dict[tuple[str, int], str] = {}
    for name, report in reports.items():
        grounds.setdefault((report["benchmark"]["sha256"], report["index"]), name)
        if len(grounds) > 1:
            first, second = grounds.values()
            raise ValueError(f"{first} and {second} differ in benchmark or index; put together like with like.")
        for model in report["models"]:
            method, seed = method_and_seed(model["label"], report["seed"])
            if (method, seed) in origin:
                raise ValueError(
                    f"{origin[method, seed]} and {name} both hold {method!r} with seed {seed}; leave one out, "
                    "or tell them apart by --seed or by a label such as 'NAME-seed1=FOLDER'."
                )
            origin[method, seed] = name
            values.setdefault(method, {})[seed] = model["metrics"]
    table: dict[str, dict[str, dict[str, dict[str, float | None]]]] = {}
    for method, seeds in values.items():
        groups = next(iter(seeds.values()))
        table[method] = {
            group: {metric: _spread([metrics[group][metric] for metrics in seeds.values()]) for metric in METRICS}
            for group in groups
        }
    return table


def _spread(values: Sequence[float | None]) -> dict[str, float | None]:
    numbers = [value for value in values if value is not None and not math.isnan(value)]
    return {
        "mean": float(np.mean(numbers)) if numbers else None,
        "std": float(np.std(numbers, ddof=1)) if len(numbers) > 1 else None,
        "n": len(numbers),
    }


def _spread_cell(spread: Mapping[str, float | None]) -> str:
    if spread["std"] is None:
        return _number(spread["mean"])
    return f"{spread['mean']:.3f} ± {spread['std']:.3f}"


def _aggregate_sections(
    table: Mapping[str, Mapping[str, Mapping[str, Mapping[str, float | None]]]], report: Mapping[str, Any]
) -> list[tuple[str, Cells]]:
    benchmark, counts = report["benchmark"], _counts(report)
    where = f"{benchmark['name']}: {benchmark['queries']} queries over {benchmark['documents']} documents"
    overall = [
        [method, str(groups[OVERALL]["ndcg@10"]["n"]), *(_spread_cell(groups[OVERALL][metric]) for metric in METRICS)]
        for method, groups in table.items()
    ]
    title = f"{where}, {report['index']} search; mean ± sample standard deviation over n seeds"
    sections = [(title, (["Method", "n", *TITLES.values()], overall))]
    for metric in METRICS:
        groups = [group for group in counts if group != OVERALL]
        rows = [
            [method, *(_spread_cell(spreads[group][metric]) for group in groups)] for method, spreads in table.items()
        ]
        header = ["Method", *(f"{group} ({counts[group]})" for group in groups)]
        sections.append((f"{TITLES[metric]} by operator and pair (queries)", (header, rows)))
    return sections


def main(arguments: Sequence[str] | None = None) -> int:
    """Average several results.json by method over their seeds, print the tables and write them.

    Parameters
    ----------
    arguments
        Command line; defaults to that of the process.

    Returns
    -------
    int
        Exit status: 0, or 2 for input that cannot be used.

    """
    parser = ArgumentParser(
        prog="python -m numcolbert.evaluation.report",
        description=(
            "Put several results.json of evaluate.py together: mean and standard deviation of each method over its "
            "seeds. A label such as numcolbert-seed2 names method and seed; other labels take the seed of their file."
        ),
        allow_abbrev=False,
    )
    parser.add_argument("results", nargs="+", type=str, metavar="RESULTS.json", help="files that evaluate.py wrote")
    parser.add_argument(
        "--output", type=str, metavar="TABLE.md", help="Markdown file to write; the figures go to TABLE.json beside it"
    )
    options = parser.parse_args(arguments)
    try:
        for path in options.results:
            if not Path(path).is_file():
                raise ValueError(f"There is no file {path}; give the results.json that evaluate.py wrote.")
        reports = {path: read_report(path) for path in options.results}
        table = aggregate(reports)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    sections = _aggregate_sections(table, next(iter(reports.values())))
    console = Console()
    for title, cells in sections:
        console.print(_rich_table(title, cells))
    if options.output:
        path = Path(options.output)
        _write(path, "\n\n".join(f"**{title}**\n\n{_markdown_table(cells)}" for title, cells in sections) + "\n")
        _write(path.with_suffix(".json"), json.dumps(table, indent=2, ensure_ascii=False) + "\n")
        console.print(f"Written to {path} and {path.with_suffix('.json')}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
