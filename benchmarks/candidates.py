"""How many candidates PLAID should score on a CPU: overlap with exact search and latency, for a finished index folder.

``n_full_scores`` candidates are kept after scoring by centroids alone, a quarter of them is scored in full, and on a
CPU that quarter takes the time. Ask it with the queries of a development benchmark, over a folder that ``numcolbert
index`` made::

    numcolbert index reuters.jsonl.gz indexes/reuters --model outputs/reuters/numcolbert-digits-seed1
    python benchmarks/candidates.py --index indexes/reuters --benchmark outputs/reuters/data/development \
        --cache outputs/candidates --output results/plaid

Exact search runs over embeddings that are computed again and kept in the cache folder. The settings take turns query by
query. With a benchmark's own sentences in the index, nDCG@10 would count sentences nobody judged, so only overlap is
reported: of the first 10 and 100.

A second table holds a search through this package (``open_index`` and ``search_index``) against PyLate's own classes
with nothing set (``indexes.PLAID`` and ``retrieve.ColBERT``) on the same index, again in turns: opening it, its first
search, one query at a time, many at once.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch
from measuring import Row, encode_documents, write
from rich.progress import track

from numcolbert.corpus.benchmark import load_benchmark
from numcolbert.retrieval import ExactIndex
from numcolbert.retrieval.engines import open_index, search_index
from numcolbert.retrieval.index_folder import OpenIndex

DEPTHS = (10, 100)


def against_defaults(folder: Path, dimensions: int, queries: list[np.ndarray], rounds: int) -> list[Row]:
    """Time a search through this package against PyLate with nothing set, in turns."""
    from pylate import indexes, retrieve  # noqa: PLC0415

    def ours_opened() -> Callable[[list[np.ndarray]], Any]:
        index = open_index("plaid", folder, "plaid", dimensions)
        return lambda queries: search_index(index, queries, DEPTHS[0])

    def theirs_opened() -> Callable[[list[np.ndarray]], Any]:
        retriever = retrieve.ColBERT(index=indexes.PLAID(str(folder), "plaid"))
        return lambda queries: retriever.retrieve(queries_embeddings=queries, k=DEPTHS[0])

    openers = {"ours": ours_opened, "theirs": theirs_opened}
    seconds: dict[str, dict[str, list[float]]] = {}

    def clock(what: str, side: str, action: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = action()
        seconds.setdefault(what, {}).setdefault(side, []).append(time.perf_counter() - start)
        return result

    one, many = queries[:1], (queries * 50)[:50]
    for number in track(range(rounds), description="Defaults"):
        for side in openers if number % 2 else reversed(openers):
            search = clock("opening", side, openers[side])
            clock("first search", side, lambda search=search: search(one))
            for query in queries[:10]:
                clock("one query", side, lambda search=search, query=query: search([query]))
            clock("50 queries at once", side, lambda search=search: search(many))
    rows = []
    for what, sides in seconds.items():
        ours, theirs = statistics.median(sides["ours"]), statistics.median(sides["theirs"])
        rows.append({"measured": what, "open_index, search_index ms": 1000 * ours,
                     "pylate.indexes.PLAID ms": 1000 * theirs, "ratio": ours / theirs})  # fmt: skip
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--index", required=True, type=Path, help="folder that numcolbert index made, with PLAID")
    parser.add_argument("--benchmark", required=True, help="development benchmark with the queries")
    parser.add_argument("--queries", type=int, default=150, help="queries to ask (default: 150)")
    parser.add_argument("--candidates", type=int, nargs="+", default=[8192, 4096, 2048, 1024, 512],
                        help="values of n_full_scores; the first is what the others are compared with")  # fmt: skip
    parser.add_argument("--rounds", type=int, default=3, help="rounds against PyLate's defaults (default: 3)")
    parser.add_argument("--threads", type=int, default=2, help="threads of torch (default: 2)")
    parser.add_argument("--cache", type=Path, required=True, help="folder for embeddings")
    parser.add_argument("--output", type=Path, help="folder for the table")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if min(options.candidates) < 4 * max(DEPTHS):
        parser.error(f"--candidates: PLAID returns a quarter of them, so at least {4 * max(DEPTHS)}")

    folder = OpenIndex(options.index, device="cpu")
    if folder.manifest.engine != "plaid":
        parser.error(f"{options.index} is an index of {folder.manifest.engine}: only PLAID has candidates")
    shards = [
        pq.read_table(file, columns=["id", "text"]) for file in sorted((options.index / "shards").glob("*.parquet"))
    ]
    ids = [name for shard in shards for name in shard["id"].to_pylist()]
    texts = [text for shard in shards for text in shard["text"].to_pylist()]
    questions = list(load_benchmark(options.benchmark).queries["text"])[: options.queries]
    queries = folder.model.encode(questions, is_query=True, show_progress_bar=False)
    exact = ExactIndex(encode_documents(folder.model, texts, options.cache / "documents"))
    expected = [[ids[position] for position, _ in ranking] for ranking in exact.search(queries, max(DEPTHS))]
    del exact

    indexes = {
        count: open_index("plaid", options.index, "plaid", folder.manifest.dimensions, n_full_scores=count)
        for count in options.candidates
    }
    seconds: dict[int, list[float]] = {count: [] for count in indexes}
    overlap: dict[tuple[int, int], list[float]] = {(count, depth): [] for count in indexes for depth in DEPTHS}
    for index in indexes.values():
        search_index(index, [queries[0]], max(DEPTHS))
    for number, query in enumerate(track(queries, description="Searching")):
        for count, index in reversed(indexes.items()) if number % 2 else indexes.items():
            start = time.perf_counter()
            (ranking,) = search_index(index, [query], max(DEPTHS))
            seconds[count].append(time.perf_counter() - start)
            for depth in DEPTHS:
                found = {name for name, _ in ranking[:depth]}
                overlap[count, depth].append(len(found & set(expected[number][:depth])) / depth)
    first = options.candidates[0]
    rows: list[Row] = []
    for count in indexes:
        difference = np.array(overlap[count, 10]) - np.array(overlap[first, 10])
        rows.append(
            {"n_full_scores": count, "scored in full": count // 4,
             **{f"overlap@{depth}": float(np.mean(overlap[count, depth])) for depth in DEPTHS},
             "overlap@10, points more": 100 * float(difference.mean()),
             "standard error": 100 * float(difference.std(ddof=1) / len(difference) ** 0.5),
             "median ms": 1000 * statistics.median(seconds[count]),
             "time, ratio": statistics.median(a / b for a, b in zip(seconds[count], seconds[first], strict=True))}
        )  # fmt: skip
    del indexes
    defaults = against_defaults(options.index, folder.manifest.dimensions, queries, options.rounds)
    tables = {"Candidates": rows, "A search by default": defaults}
    write(
        options.output, "candidates", "Candidates of PLAID on a CPU", tables,
        sentences=len(ids), queries=len(queries),
    )  # fmt: skip


if __name__ == "__main__":
    main()
