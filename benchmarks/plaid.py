"""PLAID at 8, 4, 2 and 1 bits a residual and without compression, for several models (paper, table 6 and figure 2).

Latency of one query at a time, size of the index on disk, and nDCG@10; 8 probes. "none" is exact search over float32
embeddings. Then the latency of PyLate's own defaults beside those of this package::

    python benchmarks/plaid.py --model ColBERT_ft=outputs/reuters/colbert-digits-seed1 \
        --model NumColBERT=outputs/reuters/numcolbert-digits-seed1 --benchmark outputs/reuters/data/benchmark \
        --cache outputs/plaid --output results/plaid
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
from measuring import Row, encode_documents, write

from numcolbert import ColBERT
from numcolbert.corpus.benchmark import Benchmark, load_benchmark
from numcolbert.evaluation.evaluator import evaluate_rankings
from numcolbert.retrieval import ExactIndex
from numcolbert.retrieval.engines import build_index, search_index

NBITS: tuple[int | None, ...] = (None, 8, 4, 2, 1)
DEPTH = 100


def quality(benchmark: Benchmark, rankings: dict[str, list[tuple[str, float]]]) -> float:
    return float(np.mean([result.metrics["ndcg@10"] for result in evaluate_rankings(benchmark, rankings)]))


def timed(search: Callable[[np.ndarray], Any], queries: list[np.ndarray]) -> tuple[list[Any], list[float]]:
    """Ask one query after the other."""
    search(queries[0])
    found, seconds = [], []
    for query in queries:
        start = time.perf_counter()
        found.append(search(query))
        seconds.append(time.perf_counter() - start)
    return found, seconds


def measure(name: str, folder: str, benchmark: Benchmark, cache: Path) -> tuple[list[Row], list[Row]]:
    """Rows of the study and of the comparison of defaults for one model."""
    from pylate import indexes, retrieve  # noqa: PLC0415

    model = ColBERT.from_pretrained(folder, device="cpu")
    ids = list(benchmark.corpus["id"])
    documents = encode_documents(model, list(benchmark.corpus["text"]), cache / f"documents-{Path(folder).name}")
    names = list(benchmark.queries["id"])
    queries = model.encode(list(benchmark.queries["text"]), is_query=True, show_progress_bar=False)
    tokens = sum(map(len, documents))
    rows, defaults = [], []
    for nbits in NBITS:
        if nbits is None:
            exact = ExactIndex(documents)

            def search(query: np.ndarray, exact: ExactIndex = exact) -> list[tuple[str, float]]:
                return [(ids[i], score) for i, score in exact.search([query], DEPTH)[0]]

            size = sum(document.nbytes for document in documents)
        else:
            folder_name = f"{Path(folder).name}-{nbits}"
            index = build_index("plaid", cache / "indexes", folder_name, ids, documents, model[1].out_features,
                                nbits=nbits)  # fmt: skip

            def search(query: np.ndarray, index: Any = index) -> list[tuple[str, float]]:
                return search_index(index, [query], DEPTH)[0]

            stored = (cache / "indexes" / folder_name).rglob("*")
            size = sum(file.stat().st_size for file in stored if file.is_file())
        found, seconds = timed(search, queries)
        rows.append(
            {
                "model": name,
                "bits": "none" if nbits is None else nbits,
                "median ms": 1000 * statistics.median(seconds),
                "95th percentile ms": 1000 * statistics.quantiles(seconds, n=20)[-1],
                "index MiB": size / 2**20,
                "bytes a token": size / tokens,
                "nDCG@10": quality(benchmark, dict(zip(names, found, strict=True))),
            }
        )
        print(rows[-1], flush=True)
        if nbits == 4:
            theirs = indexes.PLAID(str(cache / "indexes"), folder_name)
            retriever = retrieve.ColBERT(index=theirs)
            _, slow = timed(lambda query: retriever.retrieve(queries_embeddings=[query], k=DEPTH), queries[:20])  # noqa: B023
            _, fast = timed(search, queries[:20])
            ours, peers = statistics.median(fast), statistics.median(slow)
            defaults.append(
                {"model": name, "our defaults ms": 1000 * ours, "pylate.indexes.PLAID ms": 1000 * peers,
                 "ratio": ours / peers}
            )  # fmt: skip
    return rows, defaults


def draw(rows: list[Row], file: Path) -> None:
    """Draw nDCG@10 and latency over the size of the index."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for name in dict.fromkeys(row["model"] for row in rows):
        mine = [row for row in rows if row["model"] == name]
        sizes = [row["index MiB"] for row in mine]
        left.plot(sizes, [row["nDCG@10"] for row in mine], marker="o", label=name)
        right.plot(sizes, [row["median ms"] for row in mine], marker="o", label=name)
        for axes, key in ((left, "nDCG@10"), (right, "median ms")):
            for row in mine:
                axes.annotate(str(row["bits"]), (row["index MiB"], row[key]), textcoords="offset points", xytext=(4, 4))
    for axes, label in ((left, "nDCG@10"), (right, "median latency of a query, ms")):
        axes.set(xscale="log", xlabel="index, MiB (bits a residual at the points)", ylabel=label)
        axes.legend()
    figure.savefig(file, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--model", action="append", required=True, metavar="NAME=FOLDER", help="repeat for each model")
    parser.add_argument("--benchmark", required=True, help="folder of a benchmark")
    parser.add_argument("--threads", type=int, default=2, help="threads of torch")
    parser.add_argument("--cache", type=Path, required=True, help="folder for embeddings and indexes")
    parser.add_argument("--output", type=Path, help="folder for tables and figure")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    benchmark = load_benchmark(options.benchmark)
    rows: list[Row] = []
    defaults: list[Row] = []
    for argument in options.model:
        name, _, folder = argument.partition("=")
        study, compared = measure(name, folder, benchmark, options.cache)
        rows, defaults = rows + study, defaults + compared
    tables = {"Compression": rows, "Latency of one query by default, 4 bits": defaults}
    write(options.output, "plaid", "PLAID and compression", tables, sentences=len(benchmark.corpus), probes=8)
    if options.output:
        draw(rows, options.output / "plaid.png")


if __name__ == "__main__":
    main()
