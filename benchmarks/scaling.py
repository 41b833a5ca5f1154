"""How cost grows with the corpus: index size, memory, time to build and time to search, from 10^4 sentences on.

Sentences are simulated: token embeddings of real sentences, encoded once, are drawn again with a little noise, so that
sizes beyond what can be encoded in an afternoon have the lengths and the clusters of real text. Building and searching
run in processes of their own, whose peak memory counts, pages of mapped files among it.

What each engine does is known, so its cost is a sum of known terms (``LAWS``); how much each weighs is fitted to all
sizes but the largest, which the law has to foretell. Fitted to all sizes, it then says what a shard costs.

Building a large PLAID index takes a GPU. Where there is none, ``--written`` measures searching alone at such sizes: the
files are then written by ``plaid_files`` and searched by fast-plaid; where it built the same size, both are compared::

    python benchmarks/scaling.py --model outputs/reuters/numcolbert-digits-seed1 \
        --benchmark outputs/reuters/data/benchmark --engines exact "plaid 4 bits" voyager \
        --sizes 10000 30000 100000 300000 --limit voyager=10000 --limit "plaid 4 bits=30000" \
        --written 10000 30000 100000 300000 1000000 \
        --cache outputs/scaling --output results/scaling --figure docs/scaling.svg
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
from measuring import Row, encode_documents, peak_memory, write
from plaid_files import write_names, write_plaid
from scipy.optimize import nnls

from numcolbert import ColBERT
from numcolbert.corpus.benchmark import load_benchmark
from numcolbert.retrieval import ExactIndex
from numcolbert.retrieval.engines import build_index, open_index, search_index

NOISE = 0.02
"""Standard deviation added to every coordinate: the copies of a token lie some 0.2 apart, like its uses in context."""

ENGINES = ("exact", "plaid 4 bits", "plaid 2 bits", "voyager")
BUILT, WRITTEN, WRITTEN_BITS = "plaid 4 bits", "plaid 4 bits, written", 4
QUANTITIES = ("build s", "search ms", "index MiB", "build MiB", "search MiB")
OF_SEARCHING = ("search ms", "index MiB", "search MiB")
DEPTH = 10


def cells(tokens: float) -> float:
    """Cells that fast-plaid makes for so many tokens."""
    return float(2 ** math.floor(math.log2(16 * math.sqrt(tokens))))


Terms = Callable[[float], list[float]]
PROPORTIONAL: Terms = lambda tokens: [tokens]  # noqa: E731
WITH_START: Terms = lambda tokens: [1, tokens]  # noqa: E731
SIZES: dict[str, Terms] = {"index MiB": PROPORTIONAL, "build MiB": WITH_START, "search MiB": WITH_START}
LAWS: dict[str, dict[str, Terms]] = {
    "exact": {"build s": PROPORTIONAL, "search ms": PROPORTIONAL, **SIZES},
    # Every token is compared with every cell. A search compares its own with the cells, scores the documents of the
    # lists it reads, each as long as there are tokens in a cell, and touches marks and pages of all documents.
    "plaid": {
        "build s": lambda tokens: [tokens * cells(tokens)],
        "search ms": lambda tokens: [1, tokens / cells(tokens), tokens],
        **SIZES,
    },
    "voyager": {
        "build s": lambda tokens: [tokens * math.log2(tokens)],
        "search ms": lambda tokens: [1, math.log2(tokens)],
        **SIZES,
    },
}
"""Terms of the number of tokens whose weighted sum a cost is."""


def terms_of(engine: str, quantity: str) -> Terms:
    return LAWS[engine.partition(" ")[0]][quantity]


def simulate(source: list[np.ndarray], sentences: int, file: Path) -> None:
    """Write the tokens of simulated sentences to a file, as float16; next to it their lengths and what they copy."""
    generator = np.random.default_rng(sentences)
    chosen = generator.integers(len(source), size=sentences)
    lengths = np.array([len(source[i]) for i in chosen])
    with file.open("wb") as stream:
        for start in range(0, sentences, 1000):
            tokens = np.concatenate([source[i] for i in chosen[start : start + 1000]])
            tokens = tokens + generator.normal(scale=NOISE, size=tokens.shape)
            tokens /= np.linalg.norm(tokens, axis=-1, keepdims=True)
            tokens.astype(np.float16).tofile(stream)
    np.savez(file.with_suffix(".npz"), lengths=lengths, chosen=chosen)


def stored(base: Path, dimensions: int) -> tuple[np.ndarray, np.ndarray]:
    """Tokens of simulated sentences, on disk, and the sentences' lengths."""
    tokens = np.memmap(base.with_suffix(".f16"), dtype=np.float16, mode="r").reshape(-1, dimensions)
    return tokens, np.load(base.with_suffix(".npz"))["lengths"]


def measure_written(base: Path, folder: Path, source: list[np.ndarray]) -> Row:
    """Write PLAID's files ourselves; open them once, as that writes the merged ones."""
    dimensions = source[0].shape[-1]
    tokens, lengths = stored(base, dimensions)
    copied = np.load(base.with_suffix(".npz"))["chosen"]
    target = folder / WRITTEN
    shutil.rmtree(target, ignore_errors=True)
    found = write_plaid(target / "fast_plaid_index", tokens, lengths, source, copied,
                        int(cells(len(tokens))), WRITTEN_BITS)  # fmt: skip
    write_names(target, len(lengths))
    open_index("plaid", folder, WRITTEN, dimensions)
    size = sum(file.stat().st_size for file in target.rglob("*") if file.is_file())
    return {"engine": WRITTEN, "sentences": len(lengths), "tokens": len(tokens), "index MiB": size / 2**20,
            "cells": int(cells(len(tokens))), **found}  # fmt: skip


def measure_building(engine: str, documents: list[np.ndarray], dimensions: int, folder: Path) -> Row:
    """Build one index; exact search has none, and holds float32 embeddings."""
    tokens = sum(map(len, documents))
    kind, _, bits = engine.partition(" ")
    seconds, size = 0.0, 4 * tokens * dimensions
    if kind != "exact":
        ids = [str(number) for number in range(len(documents))]
        options = {"nbits": int(bits.split()[0])} if bits else {}
        start = time.perf_counter()
        build_index(kind, folder, engine, ids, documents, dimensions, **options)
        seconds = time.perf_counter() - start
        size = sum(file.stat().st_size for file in (folder / engine).rglob("*") if file.is_file())
    return {
        "engine": engine, "sentences": len(documents), "tokens": tokens, "build s": seconds, "build MiB": peak_memory(),
        "index MiB": size / 2**20, "bytes a token": size / tokens,
    }  # fmt: skip


def measure_searching(
    engine: str, documents: list[np.ndarray], dimensions: int, folder: Path, queries: list[np.ndarray]
) -> Row:
    """Ask one query after the other."""
    kind = engine.partition(" ")[0]
    start = time.perf_counter()
    index: Any = ExactIndex(documents) if kind == "exact" else open_index(kind, folder, engine, dimensions)
    opened = time.perf_counter() - start

    def search(query: np.ndarray) -> object:
        return index.search([query], DEPTH) if kind == "exact" else search_index(index, [query], DEPTH)

    search(queries[0])
    seconds = []
    for query in queries:
        start = time.perf_counter()
        search(query)
        seconds.append(time.perf_counter() - start)
    row: Row = {"search ms": 1000 * statistics.median(seconds), "search MiB": peak_memory()}
    return row | ({"build s": opened} if kind == "exact" else {})


def fit(rows: list[Row], engine: str, quantity: str) -> np.ndarray:
    """Weights, none negative, of an engine's terms: least squares of the relative error."""
    terms = terms_of(engine, quantity)
    shares = np.array([np.array(terms(row["tokens"])) / row[quantity] for row in rows])
    scale = shares.max(axis=0)
    return nnls(shares / scale, np.ones(len(rows)))[0] / scale


def points(rows: list[Row], engine: str, quantity: str) -> list[Row]:
    """Collect what a law is fitted to, smallest first; of searching PLAID, files written here if there are any."""
    written = [row for row in rows if row["engine"] == WRITTEN]
    if engine == BUILT and quantity in OF_SEARCHING and written:
        engine = WRITTEN
    return sorted((row for row in rows if row["engine"] == engine), key=lambda row: row["sentences"])


def foretold(rows: list[Row]) -> list[Row]:
    """Fit each engine's laws to all sizes but its largest, and compare them there."""
    laws = []
    for engine in dict.fromkeys(row["engine"] for row in rows if row["engine"] != WRITTEN):
        for quantity in QUANTITIES:
            *smaller, largest = points(rows, engine, quantity)
            terms = terms_of(engine, quantity)(largest["tokens"])
            if len(smaller) < len(terms):
                continue
            law = float(fit(smaller, engine, quantity) @ terms)
            laws.append(
                {"engine": engine, "quantity": quantity, "sentences": largest["sentences"], "law": law,
                 "measured": largest[quantity], "measured / law": largest[quantity] / law}
            )  # fmt: skip
    return laws


def as_built(rows: list[Row]) -> list[Row]:
    """Hold searching in written files against searching in built ones of the same size."""
    built = {row["sentences"]: row for row in rows if row["engine"] == BUILT}
    return [
        {"sentences": row["sentences"], "quantity": quantity, "written": row[quantity],
         "built by fast-plaid": built[row["sentences"]][quantity],
         "ratio": row[quantity] / built[row["sentences"]][quantity]}
        for row in rows if row["engine"] == WRITTEN and row["sentences"] in built for quantity in OF_SEARCHING
    ]  # fmt: skip


def plan(rows: list[Row], shards: list[int], totals: tuple[int, ...] = (10**6, 10**7, 10**8, 10**9)) -> list[Row]:
    """Foretell, by laws fitted to all that was measured, what shards of some sizes cost and what they add up to."""
    table = []
    for engine in dict.fromkeys(row["engine"] for row in rows if row["engine"] != WRITTEN):
        measured = {quantity: points(rows, engine, quantity) for quantity in QUANTITIES}
        if any(len(measured[quantity]) < len(terms_of(engine, quantity)(2)) for quantity in QUANTITIES):
            continue
        mine = measured["build s"]
        for shard in shards:
            tokens = shard * sum(row["tokens"] for row in mine) / sum(row["sentences"] for row in mine)
            cost = {quantity: float(fit(measured[quantity], engine, quantity) @ terms_of(engine, quantity)(tokens))
                    for quantity in QUANTITIES}  # fmt: skip
            for total in totals:
                count = math.ceil(total / shard)
                table.append(
                    {"sentences": total, "engine": engine, "in a shard": shard, "shards": count,
                     "index GiB": count * cost["index MiB"] / 1024, "a shard: index GiB": cost["index MiB"] / 1024,
                     "memory to build GiB": cost["build MiB"] / 1024, "to search GiB": cost["search MiB"] / 1024,
                     "build h": cost["build s"] / 3600, "search ms": cost["search ms"],
                     "all shards: build h": count * cost["build s"] / 3600}
                )  # fmt: skip
    return sorted(table, key=lambda row: row["sentences"])


def draw(rows: list[Row], file: Path) -> None:
    """Draw what was measured and the laws fitted to all sizes but the largest."""
    figure, axes = plt.subplots(2, 3, figsize=(13, 7), layout="constrained")
    largest = max(row["sentences"] for row in rows)
    for axis, quantity in zip(axes.flat, QUANTITIES, strict=False):
        for number, engine in enumerate(dict.fromkeys(row["engine"] for row in rows if row["engine"] != WRITTEN)):
            mine = points(rows, engine, quantity)
            for name, face in ((engine, f"C{number}"), (WRITTEN, "none")):
                shown = [row for row in rows if row["engine"] == name and quantity in row]
                if shown and (name != WRITTEN or engine == BUILT):
                    axis.scatter([row["sentences"] for row in shown], [row[quantity] for row in shown], s=24,
                                 label=name, facecolors=face, edgecolors=f"C{number}")  # fmt: skip
            if len(mine) <= len(terms_of(engine, quantity)(2)):
                continue
            line = np.geomspace(mine[0]["sentences"], largest, 400)
            tokens = line * sum(row["tokens"] for row in mine) / sum(row["sentences"] for row in mine)
            weights = fit(mine[:-1], engine, quantity)
            costs = np.array([float(weights @ terms_of(engine, quantity)(count)) for count in tokens])
            fitted = line <= mine[-2]["sentences"]
            for part, style in ((fitted, "-"), (~fitted, ":")):
                axis.plot(line[part], costs[part], style, color=f"C{number}", linewidth=1)
        axis.set(xscale="log", yscale="log", xlabel="sentences", ylabel=quantity)
    axes.flat[-1].axis("off")
    axes.flat[-1].legend(
        *axes.flat[1].get_legend_handles_labels(),
        loc="center",
        title="points: measured\nlines: laws, dotted beyond what they were fitted to",
    )
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
    parser.add_argument("--limit", action="append", default=[], metavar="ENGINE=SIZE",
                        help="largest size of an engine, for the memory or the patience there is")  # fmt: skip
    parser.add_argument("--written", type=int, nargs="*", default=[], metavar="SIZE",
                        help="sizes to search also in PLAID files that this script writes")  # fmt: skip
    parser.add_argument(
        "--shard", type=int, nargs="+", default=[100_000, 1_000_000], help="sentences of a shard in the plan"
    )
    parser.add_argument("--threads", type=int, default=2, help="threads of torch")
    parser.add_argument("--cache", type=Path, required=True, help="folder for embeddings, indexes and single results")
    parser.add_argument("--output", type=Path, help="folder for tables")
    parser.add_argument("--figure", type=Path, help="file for the figure")
    parser.add_argument("--one", nargs=3, metavar=("WHAT", "ENGINE", "SIZE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    if options.one:
        what, engine, size = options.one
        queries = list(np.load(options.cache / "queries.npy"))
        dimensions = queries[0].shape[-1]
        base = options.cache / f"simulated-{size}"
        tokens, lengths = stored(base, dimensions)
        documents = np.split(tokens, np.cumsum(lengths)[:-1])
        if what == "build" and engine == WRITTEN:
            real = np.load(options.cache / "source.npz")
            row = measure_written(base, options.cache, np.split(real["tokens"], np.cumsum(real["lengths"])[:-1]))
        elif what == "build":
            row = measure_building(engine, documents, dimensions, options.cache)
        else:
            row = measure_searching(engine, documents, dimensions, options.cache, queries)
        (options.cache / f"{what} {engine} {size}.json").write_text(json.dumps(row), encoding="utf-8")
        return

    limits = {engine: int(size) for engine, _, size in (limit.partition("=") for limit in options.limit)}
    if unknown := set(limits) - set(ENGINES):
        parser.error(f"--limit {min(unknown)}: the engines are {', '.join(ENGINES)}")
    benchmark = load_benchmark(options.benchmark)
    model = ColBERT.from_pretrained(options.model, device="cpu")
    texts = list(benchmark.corpus["text"])[: options.real_sentences]
    source = encode_documents(model, texts, options.cache / f"documents-{Path(options.model).name}")
    np.savez(options.cache / "source.npz", tokens=np.concatenate(source), lengths=[len(tokens) for tokens in source])
    questions = list(benchmark.queries["text"])[: options.queries]
    np.save(options.cache / "queries.npy", np.stack(model.encode(questions, is_query=True, show_progress_bar=False)))
    rows: list[Row] = []
    for size in sorted({*options.sizes, *options.written}):
        file = options.cache / f"simulated-{size}.f16"
        engines = [engine for engine in options.engines if size in options.sizes and size <= limits.get(engine, size)]
        for engine in [*engines, WRITTEN] if size in options.written else engines:
            row: Row = {}
            for what in ("build", "search"):
                result = options.cache / f"{what} {engine} {size}.json"
                if not result.exists():  # else measured already: a killed run goes on here
                    if not file.with_suffix(".npz").exists():
                        simulate(source, size, file)
                    subprocess.run([sys.executable, *sys.argv, "--one", what, engine, str(size)], check=True)
                row |= json.loads(result.read_text(encoding="utf-8"))
            rows.append(row)
            print(row, flush=True)
        file.unlink(missing_ok=True)
        file.with_suffix(".npz").unlink(missing_ok=True)
    written = [row for row in rows if row["engine"] == WRITTEN]
    tables = {"Measured": [row for row in rows if row["engine"] != WRITTEN]}
    if written:
        tables["PLAID files written here: measured"] = written
    if compared := as_built(rows):
        tables["PLAID files written here, against those that fast-plaid built"] = compared
    if laws := foretold(rows):
        tables["The largest size, and what the smaller ones foretold"] = laws
    if planned := plan(rows, options.shard):
        tables["Shards, by laws fitted to all sizes"] = planned
    write(options.output, "scaling", "Growth of cost with the corpus", tables, noise=NOISE, queries=len(questions))
    if options.figure:
        draw(rows, options.figure)


if __name__ == "__main__":
    main()
