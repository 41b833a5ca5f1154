"""Whether the engines of ColBERT find under gated queries what exact search finds.

First overlap@10 with exact search over the same sentences, once with the queries as the gate leaves them and once with
all of their tokens brought back to norm 1. The difference is what the gate costs an engine's approximation; the aim is
at most 1 point.

Then what PLAID's pruning does to scaled queries: gated tokens are scaled up to 16 times further while PLAID is given
ever fewer cells and candidates. fast-plaid has no absolute threshold: it takes the best cells of each query token and
the best candidates of the query, whatever their scores. Stanford's PLAID also leaves out centroids that score below
``centroid_score_threshold`` with every query token, a number meant for tokens of norm 1. "divided" queries are divided
by their largest norm, which leaves the exact ranking as it is and no token longer than 1::

    python benchmarks/engines.py --model outputs/reuters/numcolbert-digits-seed1 \
        --benchmark outputs/reuters/data/benchmark --corpus ../shared/data/reuters/train.jsonl.gz --sentences 20000 \
        --cache outputs/engines --output results/engines

The benchmark's sentences come first, those of the corpus fill up. Embeddings, indexes and every finished row are kept
in the cache folder: a killed run goes on where it stopped. An engine that is not installed or fails is left out, and
the report says why: ``pip install "voyager>=2.1,<2.2" qdrant-client scann`` brings all but Stanford's PLAID, which
PyLate holds and which compiles C++ code when first used.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib.util
import io
import json
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measuring import Row, encode_documents, write
from rich.progress import track
from transformers import set_seed

from numcolbert import ColBERT
from numcolbert.corpus.benchmark import load_benchmark
from numcolbert.corpus.sentences import read_sentences
from numcolbert.retrieval import ExactIndex
from numcolbert.retrieval.engines import build_index, check_voyager, open_index, search_index
from numcolbert.retrieval.index_folder import fingerprint

K = 10
FACTORS = (2, 4, 8, 16)
FAST_PLAID = ((8, 8192, 0), (8, 1024, 0), (8, 256, 0), (2, 1024, 0), (1, 1024, 0), (1, 64, 0))
"""Cells of a query token and candidates of a query; the first are PyLate's defaults."""
STANFORD = (
    *((8, 8192, threshold) for threshold in (0.35, 0)),
    *((2, 1024, threshold) for threshold in (0.45, 0)),
    *((1, 256, threshold) for threshold in (0.5, 0.7, 0)),
)
"""Cells, candidates and centroid_score_threshold; PyLate's defaults and those of its authors for 100 and 10 results."""

Queries = list[np.ndarray]
Search = Callable[[Queries], list[list[str]]]


def unit_norm(queries: Queries) -> Queries:
    """Give the queries that a plain ColBERT would have asked."""
    return [query / np.linalg.norm(query, axis=-1, keepdims=True) for query in queries]


def scaled(queries: Queries, factor: float) -> Queries:
    """Scale the gated tokens further; the others keep norm 1."""
    norms = [np.linalg.norm(query, axis=-1, keepdims=True) for query in queries]
    return [np.where(abs(norm - 1) > 1e-3, query * factor, query) for query, norm in zip(queries, norms, strict=True)]


def divided(queries: Queries) -> Queries:
    """Divide every query by its largest norm: the same ranking by MaxSim, no token longer than 1."""
    return [query / np.linalg.norm(query, axis=-1).max() for query in queries]


def overlaps(found: Sequence[Sequence[str]], exact: Sequence[Sequence[str]]) -> np.ndarray:
    """Share of the first K of exact search among the first K found, for every query."""
    return np.array([len(set(a[:K]) & set(b[:K])) / len(b[:K]) for a, b in zip(found, exact, strict=True)])


@dataclass
class Documents:
    """The sentences, encoded, and what engines are built with."""

    ids: list[str]
    embeddings: list[np.ndarray]
    dimensions: int
    folder: Path
    nbits: int
    seed: int


def searching(index: object) -> Search:
    return lambda queries: [[name for name, _ in ranking] for ranking in search_index(index, queries, K)]


def plaid(documents: Documents) -> Search:
    build_index(
        "plaid", documents.folder, "plaid", documents.ids, documents.embeddings, documents.dimensions,
        nbits=documents.nbits, seed=documents.seed,
    )  # fmt: skip
    return plaid_pruned(documents, *FAST_PLAID[0])


def plaid_pruned(documents: Documents, cells: int, candidates: int, threshold: float) -> Search:
    """Open the index that is there with less to look at; fast-plaid knows no threshold."""
    return searching(
        open_index(
            "plaid", documents.folder, "plaid", documents.dimensions, n_ivf_probe=cells, n_full_scores=candidates
        )
    )


def _stanford(documents: Documents, override: bool, cells: int, candidates: int, threshold: float) -> object:
    from pylate import indexes  # noqa: PLC0415

    # The extensions are compiled in a folder of their own: a killed compiler leaves a lock that stops all later runs.
    extensions = documents.folder.resolve() / "extensions"
    os.environ["TORCH_EXTENSIONS_DIR"] = str(extensions)
    for lock in extensions.glob("*/lock"):
        lock.unlink()
    with contextlib.redirect_stdout(io.StringIO()):  # it tells much
        return indexes.PLAID(
            str(documents.folder), "stanford", override=override, use_fast=False, nbits=documents.nbits, ncells=cells,
            embedding_size=documents.dimensions, centroid_score_threshold=threshold, ndocs=candidates,
        )  # fmt: skip


def stanford(documents: Documents) -> Search:
    """Search with the code of PLAID's authors."""
    index = _stanford(documents, True, *STANFORD[0])
    index.add_documents(documents_ids=documents.ids, documents_embeddings=documents.embeddings)  # type: ignore[attr-defined]
    return searching(index)


def stanford_pruned(documents: Documents, cells: int, candidates: int, threshold: float) -> Search:
    return searching(_stanford(documents, False, cells, candidates, threshold))


def voyager(documents: Documents) -> Search:
    check_voyager()
    index = build_index(
        "voyager", documents.folder, "voyager", documents.ids, documents.embeddings, documents.dimensions
    )
    return searching(index)


def scann(documents: Documents) -> Search:
    from pylate import indexes  # noqa: PLC0415

    index = indexes.ScaNN(index_folder=str(documents.folder), index_name="scann", override=True,
                          embedding_size=documents.dimensions)  # fmt: skip
    index.add_documents(documents_ids=documents.ids, documents_embeddings=documents.embeddings)
    return searching(index)


def qdrant(documents: Documents) -> Search:
    """Search in Qdrant's local mode: exact, and slow, as it scores every document in Python."""
    from qdrant_client import QdrantClient  # noqa: PLC0415

    from numcolbert.retrieval.qdrant import QdrantIndex  # noqa: PLC0415

    index = QdrantIndex(QdrantClient(":memory:"), "sentences", documents.dimensions)
    index.add_documents(documents.ids, documents.embeddings)
    return searching(index)


ENGINES: dict[str, tuple[str, Callable[[Documents], Search]]] = {
    "plaid": ("PLAID (fast-plaid)", plaid),
    "stanford": ("PLAID (Stanford)", stanford),
    "voyager": ("Voyager", voyager),
    "scann": ("ScaNN", scann),
    "qdrant": ("Qdrant, local mode", qdrant),
}
PRUNED: dict[str, tuple[tuple[tuple[int, int, float], ...], Callable[[Documents, int, int, float], Search]]] = {
    "plaid": (FAST_PLAID, plaid_pruned),
    "stanford": (STANFORD, stanford_pruned),
}
MODULES = {"voyager": "voyager", "scann": "scann", "qdrant": "qdrant_client"}


def compare(label: str, search: Search, queries: dict[str, Queries], expected: dict[str, list[list[str]]]) -> Row:
    """Overlap under gated and ungated queries, what the gate costs with its standard error, and the time."""
    found, milliseconds = {}, {}
    for variant in ("ungated", "gated"):
        start = time.perf_counter()
        found[variant] = overlaps(search(queries[variant]), expected[variant][: len(queries[variant])])
        milliseconds[variant] = 1000 * (time.perf_counter() - start) / len(queries[variant])
    cost = 100 * (found["ungated"] - found["gated"])
    return {
        "engine": label,
        "queries": len(cost),
        "ungated": float(found["ungated"].mean()),
        "gated": float(found["gated"].mean()),
        "cost, points": float(cost.mean()),
        "standard error": float(cost.std(ddof=1) / math.sqrt(len(cost))),
        "at most 1": "yes" if cost.mean() <= 1 else "NO",
        "ms ungated": milliseconds["ungated"],
        "ms gated": milliseconds["gated"],
    }


def built(
    documents: Documents,
    label: str,
    build: Callable[[Documents], Search],
    queries: dict[str, Queries],
    expected: dict[str, list[list[str]]],
) -> Row:
    """Build an index and compare its answers with the expected ones."""
    with contextlib.redirect_stdout(io.StringIO()):
        start = time.perf_counter()
        search = build(documents)
        seconds = time.perf_counter() - start
        search(queries["gated"][:1])  # whatever is loaded or compiled late
        return compare(label, search, queries, expected) | {"build s": seconds}


def pruned(
    documents: Documents,
    label: str,
    open_pruned: Callable[[Documents, int, int, float], Search],
    setting: tuple[int, int, float],
    queries: dict[str, Queries],
    expected: dict[str, list[list[str]]],
) -> Row:
    """Overlap of every kind of queries under one setting of the index that is there."""
    start = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):
        search = open_pruned(documents, *setting)
        found = {
            name: float(overlaps(search(asked), expected[name][: len(asked)]).mean()) for name, asked in queries.items()
        }
    spent = 1000 * (time.perf_counter() - start) / sum(map(len, queries.values()))
    cells, candidates, threshold = setting
    return {"engine": label, "cells": cells, "candidates": candidates, "threshold": threshold or "none"} | {
        **found,
        "ms a query": spent,
    }


def once(folder: Path, what: Any, measure: Callable[[], Row]) -> Row:
    """Measure, or read what an earlier run with the same inputs measured."""
    file = folder / f"{hashlib.sha256(json.dumps(what).encode()).hexdigest()[:32]}.json"
    if not file.exists():
        row = measure()
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(".tmp")
        unfinished.write_text(json.dumps(row), encoding="utf-8")
        unfinished.rename(file)
    row = json.loads(file.read_text(encoding="utf-8"))
    print(row, flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--model", required=True, help="folder or Hub id of a trained NumColBERT")
    parser.add_argument("--benchmark", required=True, help="benchmark with the queries and the first sentences")
    parser.add_argument("--corpus", nargs="+", default=[], help="further sentences: .txt, .jsonl or .jsonl.gz")
    parser.add_argument("--sentences", type=int, default=20_000, help="sentences to search (default: 20000)")
    parser.add_argument("--queries", type=int, default=300, help="queries to ask every engine (default: 300)")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES), help="engines to compare")
    parser.add_argument("--nbits", type=int, default=4, help="bits of a residual in PLAID (default: 4)")
    parser.add_argument("--qdrant-queries", type=int, default=50, help="queries for Qdrant's local mode (default: 50)")
    parser.add_argument("--sweep-queries", type=int, default=100,
                        help="queries for the study of pruning; 0 leaves it out (default: 100)")  # fmt: skip
    parser.add_argument("--threads", type=int, default=2, help="threads of torch (default: 2)")
    parser.add_argument("--seed", type=int, default=42, help="seed of PLAID's k-means (default: 42)")
    parser.add_argument("--cache", type=Path, required=True, help="folder for embeddings and indexes")
    parser.add_argument("--output", type=Path, help="folder for tables and figures as JSON and Markdown")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    set_seed(options.seed)

    benchmark = load_benchmark(options.benchmark)
    texts = list(benchmark.corpus["text"])
    for corpus in options.corpus:
        if len(texts) < options.sentences:
            texts += list(read_sentences(corpus)["text"][: options.sentences - len(texts)])
    texts = texts[: options.sentences]
    if len(texts) < options.sentences:
        print(f"There are {len(texts):,} sentences in all; name further ones with --corpus.")
    model = ColBERT.from_pretrained(options.model, device="cpu")
    gated = model.encode(list(benchmark.queries["text"])[: options.queries], is_query=True, show_progress_bar=False)
    norms = np.concatenate([np.linalg.norm(query, axis=-1) for query in gated])
    open_gates = norms[abs(norms - 1) > 1e-3]
    if len(open_gates) == 0:
        parser.error(f"{options.model} gates no token of these queries: give a trained model")
    embeddings = encode_documents(model, texts, options.cache / "documents")
    ids = [f"s{number}" for number in range(len(texts))]
    documents = Documents(
        ids, embeddings, embeddings[0].shape[-1], options.cache / "indexes", options.nbits, options.seed
    )
    index = ExactIndex(embeddings)
    variants = {"ungated": unit_norm(gated), "gated": gated, "divided": divided(gated)}
    variants |= {f"x{factor}": scaled(gated, factor) for factor in FACTORS}
    variants[f"x{FACTORS[-1]} divided"] = divided(variants[f"x{FACTORS[-1]}"])
    swept = {name: queries[: options.sweep_queries] for name, queries in variants.items()}
    needed = {**swept, "ungated": variants["ungated"], "gated": gated}
    expected = {
        name: [[ids[position] for position, _ in ranking] for ranking in index.search(needed[name], K)]
        for name in track(needed, description="Exact search")
    }

    kept = options.cache / "measured"
    inputs = [fingerprint(model), texts, list(benchmark.queries["text"]), options.nbits, options.seed]
    rows: list[Row] = []
    pruning: list[Row] = []
    left_out: list[str] = []
    for engine in options.engines:
        label, build = ENGINES[engine]
        if engine in MODULES and importlib.util.find_spec(MODULES[engine]) is None:
            left_out.append(f"{label}: {MODULES[engine]} is not installed")
            continue
        asked = options.qdrant_queries if engine == "qdrant" else options.queries
        part = {name: variants[name][:asked] for name in ("ungated", "gated")}
        try:
            rows.append(once(kept, [inputs, engine, asked], partial(built, documents, label, build, part, expected)))
        except Exception as error:  # an engine that fails here should not cost the others their figures
            left_out.append(f"{label}: {type(error).__name__}: {str(error).strip().splitlines()[0]}")
            print(left_out[-1], flush=True)
            continue
        settings, open_pruned = PRUNED.get(engine, ((), plaid_pruned))
        for setting in settings if options.sweep_queries else ():
            measure = partial(pruned, documents, label, open_pruned, setting, swept, expected)
            pruning.append(once(kept, [inputs, engine, *setting, options.sweep_queries], measure))
    if not rows:
        parser.error(f"no engine could be measured: {'; '.join(left_out)}")
    tables = {f"Overlap@10 with exact search over {len(texts):,} sentences": rows}
    if pruning:
        tables[f"Overlap@10 as gated tokens grow and PLAID sees less, {len(swept['gated'])} queries"] = pruning
    write(
        options.output,
        "engines",
        "Engines under gated queries",
        tables,
        sentences=len(texts),
        tokens=sum(map(len, embeddings)),
        queries=len(gated),
        bits=options.nbits,
        seed=options.seed,
        gates=f"{len(open_gates) / len(gated):.1f} open a query, norms {open_gates.min():.2f} to "
        f"{open_gates.max():.2f}, median {np.median(open_gates):.2f}",
        left_out="; ".join(left_out) or "nothing",
    )


if __name__ == "__main__":
    main()
