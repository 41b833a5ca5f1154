"""How cost grows with the corpus: index size, memory, time to build and time to search, from 10^4 sentences on.

Sentences are simulated: token embeddings of real sentences, encoded once, are drawn again with a little noise, so that
sizes beyond what can be encoded in an afternoon have the lengths and the clusters of real text. Every engine and size
runs in a process of its own, whose peak memory counts. A power law is fitted to all sizes but the largest and then
asked about the largest; points and laws are drawn::

    python benchmarks/scaling.py --model outputs/reuters/numcolbert-digits-seed1 \
        --benchmark outputs/reuters/data/benchmark --sizes 10000 30000 100000 --cache outputs/scaling \
        --output results/scaling --figure docs/scaling.svg
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
from measuring import Row, encode_documents, peak_memory, write

from numcolbert import ColBERT
from numcolbert.corpus.benchmark import load_benchmark
from numcolbert.retrieval import ExactIndex
from numcolbert.retrieval.engines import build_index, open_index, search_index

NOISE = 0.02
"""Standard deviation added to every coordinate: the copies of a token lie some 0.2 apart, like its uses in context."""

ENGINES = ("exact", "plaid 4 bits", "plaid 2 bits", "voyager")
QUANTITIES = ("build s", "search ms", "index MiB", "peak MiB")
DEPTH = 10


def simulate(source: list[np.ndarray], sentences: int, file: Path) -> np.ndarray:
    """Write the tokens of simulated sentences to a file, as float16; return their lengths."""
    generator = np.random.default_rng(sentences)
    chosen = generator.integers(len(source), size=sentences)
    lengths = np.array([len(source[i]) for i in chosen])
    with file.open("wb") as stream:
        for start in range(0, sentences, 1000):
            tokens = np.concatenate([source[i] for i in chosen[start : start + 1000]])
            tokens = tokens + generator.normal(scale=NOISE, size=tokens.shape)
            tokens /= np.linalg.norm(tokens, axis=-1, keepdims=True)
            tokens.astype(np.float16).tofile(stream)
    return lengths


def measure(engine: str, tokens: Path, lengths: np.ndarray, queries: list[np.ndarray], folder: Path) -> Row:
    """Build one index and ask it one query after the other."""
    dimensions = queries[0].shape[-1]
    stored = np.memmap(tokens, dtype=np.float16, mode="r").reshape(-1, dimensions)
    documents = np.split(stored, np.cumsum(lengths)[:-1])
    ids = [str(number) for number in range(len(documents))]
    kind, _, bits = engine.partition(" ")
    start = time.perf_counter()
    index: Any
    if kind == "exact":
        index = ExactIndex(documents)
        size = 4 * stored.size

        def search(query: np.ndarray) -> object:
            return index.search([query], DEPTH)
    else:
        options = {"nbits": int(bits.split()[0])} if bits else {}
        build_index(kind, folder, engine, ids, documents, dimensions, **options)
        size = sum(file.stat().st_size for file in (folder / engine).rglob("*") if file.is_file())
    built = time.perf_counter() - start
    if kind != "exact":
        index = open_index(kind, folder, engine, dimensions)

        def search(query: np.ndarray) -> object:
            return search_index(index, [query], DEPTH)

    search(queries[0])
    seconds = []
    for query in queries:
        start = time.perf_counter()
        search(query)
        seconds.append(time.perf_counter() - start)
    return {
        "engine": engine,
        "sentences": len(documents),
        "tokens": int(lengths.sum()),
        "build s": built,
        "search ms": 1000 * statistics.median(seconds),
        "index MiB": size / 2**20,
        "bytes a token": size / int(lengths.sum()),
        "peak MiB": peak_memory(),
    }


def power_law(rows: list[Row], quantity: str) -> tuple[float, float]:
    """Fit quantity = factor * sentences ** exponent."""
    exponent, logarithm = np.polyfit(
        np.log([row["sentences"] for row in rows]), np.log([row[quantity] for row in rows]), 1
    )
    return float(np.exp(logarithm)), float(exponent)


def laws_of(rows: list[Row]) -> list[Row]:
    """Fit a law to all sizes of an engine but the largest, and compare it there."""
    laws = []
    for engine in dict.fromkeys(row["engine"] for row in rows):
        *smaller, largest = sorted((row for row in rows if row["engine"] == engine), key=lambda row: row["sentences"])
        if len(smaller) < 2:
            continue
        for quantity in QUANTITIES:
            factor, exponent = power_law(smaller, quantity)
            expected = factor * largest["sentences"] ** exponent
            laws.append(
                {"engine": engine, "quantity": quantity, "factor": f"{factor:.3g}", "exponent": exponent,
                 "at sentences": largest["sentences"], "law": expected, "measured": largest[quantity],
                 "measured / law": largest[quantity] / expected}
            )  # fmt: skip
    return laws


def draw(rows: list[Row], laws: list[Row], file: Path) -> None:
    figure, axes = plt.subplots(2, 2, figsize=(10, 7), layout="constrained")
    for axis, quantity in zip(axes.flat, QUANTITIES, strict=True):
        for number, engine in enumerate(dict.fromkeys(row["engine"] for row in rows)):
            mine = [row for row in rows if row["engine"] == engine]
            sizes = np.array(sorted(row["sentences"] for row in mine), dtype=float)
            axis.scatter([row["sentences"] for row in mine], [row[quantity] for row in mine], label=engine, s=18)
            for law in laws:
                if (law["engine"], law["quantity"]) == (engine, quantity):
                    axis.plot(sizes, float(law["factor"]) * sizes ** law["exponent"], color=f"C{number}", linewidth=1)
        axis.set(xscale="log", yscale="log", xlabel="sentences", ylabel=quantity)
    axes.flat[0].legend()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--model", required=True, help="folder or Hub id of a trained NumColBERT")
    parser.add_argument("--benchmark", required=True, help="benchmark with the queries and the real sentences")
    parser.add_argument("--real-sentences", type=int, default=5000, help="real sentences to draw from")
    parser.add_argument("--queries", type=int, default=50, help="queries to ask")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 30_000, 100_000], help="simulated sentences")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES), help="engines to measure")
    parser.add_argument("--threads", type=int, default=2, help="threads of torch")
    parser.add_argument("--cache", type=Path, required=True, help="folder for embeddings, indexes and single results")
    parser.add_argument("--output", type=Path, help="folder for tables")
    parser.add_argument("--figure", type=Path, help="file for the figure")
    parser.add_argument("--one", nargs=2, metavar=("ENGINE", "SIZE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    if options.one:
        engine, size = options.one
        base = options.cache / f"simulated-{size}"
        queries = list(np.load(options.cache / "queries.npy"))
        row = measure(engine, base.with_suffix(".f16"), np.load(base.with_suffix(".npy")), queries, options.cache)
        (options.cache / f"{engine} {size}.json").write_text(json.dumps(row), encoding="utf-8")
        return

    benchmark = load_benchmark(options.benchmark)
    model = ColBERT.from_pretrained(options.model, device="cpu")
    texts = list(benchmark.corpus["text"])[: options.real_sentences]
    source = encode_documents(model, texts, options.cache / f"documents-{Path(options.model).name}")
    questions = list(benchmark.queries["text"])[: options.queries]
    np.save(options.cache / "queries.npy", np.stack(model.encode(questions, is_query=True, show_progress_bar=False)))
    rows = []
    for size in sorted(options.sizes):
        file = options.cache / f"simulated-{size}.f16"
        for engine in options.engines:
            result = options.cache / f"{engine} {size}.json"
            if not result.exists():  # measured already: a killed run goes on here
                if not file.with_suffix(".npy").exists():
                    np.save(file.with_suffix(".npy"), simulate(source, size, file))
                subprocess.run([sys.executable, *sys.argv, "--one", engine, str(size)], check=True)
            rows.append(json.loads(result.read_text(encoding="utf-8")))
            print(rows[-1], flush=True)
        file.unlink(missing_ok=True)
        file.with_suffix(".npy").unlink(missing_ok=True)
    laws = laws_of(rows)
    tables = {"Measured": rows} | ({"Laws, fitted without the largest size": laws} if laws else {})
    write(options.output, "scaling", "Growth of cost with the corpus", tables, noise=NOISE, queries=len(questions))
    if options.figure:
        draw(rows, laws, options.figure)


if __name__ == "__main__":
    main()
