"""PLAID at 8, 4, 2 and 1 bits a residual and without compression, for several models (paper, table 6 and figure 2).

Latency of one query at a time on a warm index (median and 95th percentile), size of the index on disk, and nDCG@10; 8
cells of each query token and 8,192 candidates, PyLate's defaults. "none" is exact search over float32 embeddings. The
models take turns query by query, so what else the machine does meets all alike::

    python benchmarks/plaid.py --model ColBERT_ft=outputs/reuters/colbert-digits-seed1 \
        --model NumColBERT=outputs/reuters/numcolbert-digits-seed1 --benchmark outputs/reuters/data/benchmark \
        --cache outputs/plaid --output results/plaid

Embeddings and indexes are kept in the cache folder, so a killed run does neither again. What takes the time of building
on a CPU is arithmetic in float16 on one core, so as many indexes are built side by side as ``--threads`` says.

fast-plaid stores codes and residuals twice: as written, and merged when the index is first opened; for up to 1,000
documents it also keeps the embeddings. The column "MiB once" leaves both out. On a CPU fewer bits are hardly faster:
what takes the time is arithmetic in float16 on decompressed documents, as many at any number of bits.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import shutil
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from measuring import Row, encode_documents, write
from rich.progress import track
from transformers import set_seed

from numcolbert import ColBERT
from numcolbert.corpus.benchmark import Benchmark, load_benchmark
from numcolbert.evaluation.evaluator import evaluate_rankings
from numcolbert.retrieval import ExactIndex
from numcolbert.retrieval.engines import build_index, open_index, search_index
from numcolbert.retrieval.index_folder import fingerprint

DEPTH = 100
Ranking = list[tuple[str, float]]
Search = Callable[[np.ndarray], Ranking]


@dataclass
class Encoded:
    """A benchmark as a model sees it."""

    ids: list[str]
    documents: list[np.ndarray]
    queries: list[np.ndarray]
    key: str
    """Of encoder and sentences."""

    @property
    def dimensions(self) -> int:
        """Dimensions of a token embedding."""
        return self.documents[0].shape[-1]

    @property
    def tokens(self) -> int:
        """Tokens of all documents."""
        return sum(map(len, self.documents))


def encode(folder: str, benchmark: Benchmark, cache: Path) -> Encoded:
    model = ColBERT.from_pretrained(folder, device="cpu")
    texts = list(benchmark.corpus["text"])
    documents = encode_documents(model, texts, cache / "documents")
    queries = model.encode(list(benchmark.queries["text"]), is_query=True, show_progress_bar=False)
    key = hashlib.sha256(json.dumps([fingerprint(model), texts]).encode()).hexdigest()[:16]
    return Encoded(list(benchmark.corpus["id"]), documents, queries, key)


def exact(encoded: Encoded) -> Search:
    index = ExactIndex(encoded.documents)
    return lambda query: [(encoded.ids[position], score) for position, score in index.search([query], DEPTH)[0]]


def build(encoded: Encoded, folder: Path, name: str, nbits: int, seed: int) -> None:
    """Build an index; its name stands for a whole one."""
    torch.set_num_threads(1)
    unfinished = f"{name}.part"
    build_index("plaid", folder, unfinished, encoded.ids, encoded.documents, encoded.dimensions, nbits=nbits, seed=seed)
    shutil.move(folder / unfinished, folder / name)


def compressed(encoded: Encoded, folder: Path, name: str) -> Search:
    index = open_index("plaid", folder, name, encoded.dimensions, n_full_scores=8192)
    return lambda query: search_index(index, [query], DEPTH)[0]


def sizes(folder: Path) -> tuple[int, int]:
    """Bytes of all files of an index, and of those that are no copies."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    once = [file for file in files if not file.name.startswith(("merged_", "embeddings."))]
    return sum(file.stat().st_size for file in files), sum(file.stat().st_size for file in once)


def in_turns(
    searches: dict[str, Search], encoded: dict[str, Encoded], what: str
) -> tuple[dict[str, list[Ranking]], dict[str, list[float]]]:
    """Ask every model its queries one after the other, the models in turns, and time each."""
    found: dict[str, list[Ranking]] = {name: [] for name in searches}
    seconds: dict[str, list[float]] = {name: [] for name in searches}
    for name, search in searches.items():
        search(encoded[name].queries[0])
    for number in track(range(len(next(iter(encoded.values())).queries)), description=what):
        for name in searches if number % 2 else reversed(searches):
            start = time.perf_counter()
            ranking = searches[name](encoded[name].queries[number])
            seconds[name].append(time.perf_counter() - start)
            found[name].append(ranking)
    return found, seconds


def quality(benchmark: Benchmark, rankings: list[Ranking]) -> float:
    results = evaluate_rankings(benchmark, dict(zip(benchmark.queries["id"], rankings, strict=True)))
    return float(np.mean([result.metrics["ndcg@10"] for result in results]))


def draw(rows: list[Row], file: Path) -> None:
    """Draw nDCG@10 and latency over the size of the index."""
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    first = [row for row in rows if row["model"] == rows[0]["model"]]
    ticks = [row["MiB once"] for row in first]
    labels = [f"{row['MiB once']:.3g}\n{row['bits']}" for row in first]
    for axes, key, label in zip(
        panels, ("nDCG@10", "median ms"), ("nDCG@10", "median latency of a query, ms"), strict=True
    ):
        for name in dict.fromkeys(row["model"] for row in rows):
            mine = sorted((row for row in rows if row["model"] == name), key=lambda row: row["MiB once"])
            axes.plot([row["MiB once"] for row in mine], [row[key] for row in mine], marker="o", label=name)
        axes.set(xscale="log", xlabel="size of the index, MiB, and bits a residual", ylabel=label)
        axes.set_xticks(ticks, labels)
        axes.minorticks_off()
        axes.set_ylim(bottom=0)
        axes.legend(loc="lower left")
    figure.savefig(file, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--model", action="append", required=True, metavar="NAME=FOLDER", help="repeat for each model")
    parser.add_argument("--benchmark", required=True, help="folder of a benchmark")
    parser.add_argument("--bits", nargs="+", type=int, default=[8, 4, 2, 1], help="bits a residual (default: 8 4 2 1)")
    parser.add_argument("--queries", type=int, help="ask the first queries only (default: all)")
    parser.add_argument("--threads", type=int, default=2, help="threads of torch (default: 2)")
    parser.add_argument("--seed", type=int, default=42, help="seed of PLAID's k-means (default: 42)")
    parser.add_argument("--cache", type=Path, required=True, help="folder for embeddings and indexes")
    parser.add_argument("--output", type=Path, help="folder for tables and figure")
    options = parser.parse_args()
    for argument in options.model:
        if "=" not in argument:
            parser.error(f"--model {argument}: write NAME=FOLDER, such as NumColBERT=outputs/reuters/numcolbert")
    torch.set_num_threads(options.threads)
    set_seed(options.seed)
    benchmark = load_benchmark(options.benchmark)
    if options.queries:
        asked = benchmark.queries.select(range(min(options.queries, len(benchmark.queries))))
        benchmark = replace(benchmark, queries=asked, qrels={name: benchmark.qrels[name] for name in asked["id"]})
    folders = dict(argument.split("=", 1) for argument in options.model)
    encoded = {name: encode(folder, benchmark, options.cache) for name, folder in folders.items()}
    indexes = options.cache / "indexes"
    names = {
        (name, nbits): f"plaid-{one.key}-{nbits}-{options.seed}"
        for name, one in encoded.items()
        for nbits in options.bits
    }
    with ProcessPoolExecutor(options.threads, mp_context=multiprocessing.get_context("spawn")) as pool:
        builds = [
            pool.submit(build, encoded[name], indexes, folder, nbits, options.seed)
            for (name, nbits), folder in names.items()
            if not (indexes / folder).exists()
        ]
        for finished in track(builds, description="Building indexes"):
            finished.result()

    rows: list[Row] = []
    for nbits in (None, *options.bits):
        if nbits is None:
            searches = {name: exact(one) for name, one in encoded.items()}
        else:
            searches = {name: compressed(one, indexes, names[name, nbits]) for name, one in encoded.items()}
        found, seconds = in_turns(searches, encoded, "exact" if nbits is None else f"{nbits} bits")
        for name, one in encoded.items():
            if nbits is None:
                size = once = sum(document.nbytes for document in one.documents)
            else:
                size, once = sizes(indexes / names[name, nbits])
            rows.append(
                {
                    "model": name,
                    "bits": "none" if nbits is None else nbits,
                    "median ms": 1000 * statistics.median(seconds[name]),
                    "95th percentile ms": 1000 * float(np.percentile(seconds[name], 95)),
                    "MiB on disk": size / 2**20,
                    "MiB once": once / 2**20,
                    "bytes a token, once": once / one.tokens,
                    "nDCG@10": quality(benchmark, found[name]),
                }
            )
            print(rows[-1], flush=True)
    write(
        options.output, "plaid", "PLAID and compression", {"Compression": rows}, sentences=len(benchmark.corpus),
        queries=len(benchmark.queries), tokens={name: one.tokens for name, one in encoded.items()}, cells=8,
        seed=options.seed,
    )  # fmt: skip
    if options.output:
        draw(rows, options.output / "plaid.png")


if __name__ == "__main__":
    main()
