"""The command line of ``evaluate.py``."""

from __future__ import annotations

import sys
from argparse import RawDescriptionHelpFormatter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from jsonargparse import ArgumentParser
from jsonargparse.typing import PositiveInt
from rich.console import Console

from numcolbert.evaluation.search import INDEXES

__all__ = ["main"]

_DESCRIPTION = """\
Evaluate models on a benchmark: nDCG@10, MRR@10, P@10 and R@100, and the share of document pairs that stand in the order
the condition asks for; overall, per operator (=, >, <), and for concept-unit pairs seen and unseen in training.
With several models, each is compared with the first by a paired t-test with Holm's correction."""

_EPILOG = """\
examples:
  python evaluate.py --model outputs/quickstart --benchmark outputs/quickstart/benchmark
  python evaluate.py --model ColBERT_ft=outputs/colbert --model NumColBERT=outputs/numcolbert \\
      --benchmark outputs/numcolbert/benchmark --output results/quickstart

--output DIR receives results.json (figures, versions, machine), results.md (the tables) and per_query.parquet.
Several seeds: label the models NAME-seed1=DIR, NAME-seed2=DIR ... and put the files together with
  python -m numcolbert.evaluation.report results/*/results.json --output results/table.md
"""


def _labels(arguments: Sequence[str]) -> dict[str, str]:
    """Read ``LABEL=SOURCE`` or ``SOURCE`` and give every model a label of its own."""
    sources: dict[str, str] = {}
    for argument in arguments:
        label, equals, source = argument.partition("=")
        if not equals or Path(argument).exists():
            source = argument
            label = Path(argument).name if Path(argument).is_dir() else argument
        if not label or not source:
            raise ValueError(f"--model {argument} lacks a label or a source; write DIR, HUB_ID or LABEL=DIR_OR_ID.")
        if label in sources:
            raise ValueError(f"Two models are called {label!r}; tell them apart with --model LABEL=DIR_OR_ID.")
        # A folder that is missing must not be taken for a Hub id: "user/name" is one, a deeper or dotted path is not.
        looks_like_path = source.startswith((".", "/", "~")) or source.count("/") > 1
        if looks_like_path and not Path(source).expanduser().is_dir():
            raise ValueError(f"There is no model folder {source}; give a saved model or a Hub id such as user/name.")
        sources[label] = source
    return sources


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="evaluate.py",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--config", action="config", help="YAML file with any of the options below")
    parser.add_argument(
        "--model",
        action="append",
        required=True,
        metavar="[LABEL=]DIR_OR_ID",
        help="model folder or Hub id; repeat to compare several, the first being the reference",
    )
    parser.add_argument("--benchmark", type=str, required=True, metavar="DIR", help="benchmark folder")
    parser.add_argument("--index", choices=INDEXES, default="exact", help="how to search")
    parser.add_argument("--output", type=str | None, metavar="DIR", help="folder for the results; none: print only")
    parser.add_argument(
        "--update_cards",
        action="store_true",
        help="write the results, with the tests against the first model, into the cards of the model folders",
    )
    parser.add_argument("--device", type=str | None, help="such as cpu or cuda:0; chosen for you if not given")
    parser.add_argument("--batch_size", type=PositiveInt, default=32, help="texts encoded at once")
    parser.add_argument("--seed", type=int, default=42, help="seed recorded with the results, and of PLAID's k-means")
    return parser


def _check_tables(folder: Path) -> None:
    """Refuse tables that cannot be read or hold nothing, in words of this program."""
    for table in ("corpus", "queries", "qrels"):
        path = folder / f"{table}.parquet"
        if not path.is_file():
            continue  # the loader names what is missing
        try:
            rows = pq.read_metadata(path).num_rows
        except pa.ArrowInvalid as error:
            raise ValueError(f"{path} is no Parquet file; build the benchmark again.") from error
        if rows == 0:
            raise ValueError(f"{path} holds no row; build the benchmark again.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Evaluate models as the command line asks.

    Parameters
    ----------
    arguments
        Command line; defaults to that of the process.

    Returns
    -------
    int
        Exit status: 0, or 2 for input that cannot be used.

    """
    options = _parser().parse_args(arguments)
    try:
        _run(options)
    except (ValueError, OSError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _run(options: Any) -> None:
    from transformers import set_seed  # noqa: PLC0415  (seconds to import; --help stays quick)

    from numcolbert import ColBERT  # noqa: PLC0415
    from numcolbert.corpus.benchmark import load_benchmark  # noqa: PLC0415
    from numcolbert.evaluation.evaluator import evaluate_model, fingerprint, judgements  # noqa: PLC0415
    from numcolbert.evaluation.report import build_report, print_tables, write_report  # noqa: PLC0415
    from numcolbert.modeling.model_card import BenchmarkResult, CardData  # noqa: PLC0415

    console = Console()
    sources = _labels(options.model)
    if not Path(options.benchmark).is_dir():
        raise ValueError(f"There is no benchmark folder {options.benchmark}; give one that train.py wrote.")
    _check_tables(Path(options.benchmark))
    benchmark = load_benchmark(options.benchmark)
    judgements(benchmark)  # a faulty benchmark is refused before a model is loaded
    evaluations = {}
    for label, source in sources.items():
        set_seed(options.seed)
        console.print(f"[bold]{label}[/bold] from {source}")
        model = ColBERT.from_pretrained(source, device=options.device)
        evaluations[label] = evaluate_model(
            model, benchmark, options.index, options.batch_size, seed=options.seed, show_progress=True
        )
    report = build_report(
        evaluations,
        sources,
        benchmark=benchmark.information.get("name", Path(options.benchmark).resolve().name),
        benchmark_sha256=fingerprint(benchmark),
        documents=len(benchmark.corpus),
        index=options.index,
        seed=options.seed,
    )
    print_tables(report, console)
    if options.output:
        for path in write_report(report, evaluations, options.output):
            console.print(f"Written: {path}")
    if options.update_cards:
        for label, source in sources.items():
            if Path(source).is_dir():
                model = ColBERT.from_pretrained(source, device="cpu")
                result = BenchmarkResult.from_report(report, label)
                card = model.card or CardData()
                others = [kept for kept in card.results if kept.benchmark != result.benchmark]
                model.card = replace(card, results=[*others, result])
                model.save_pretrained(source)
                console.print(f"Card updated: {Path(source) / 'README.md'}")
