"""Whether the engines of ColBERT find under gated queries what exact search finds.

Overlap@10 with exact search, over the same sentences and queries, once with the queries as the gate leaves them and
once with all of their tokens brought back to norm 1. The difference is what the gate costs an engine's approximation;
the aim is at most 1 point. Then what pruning does to scaled queries: gated tokens are scaled up further, and each
PLAID is given fewer candidates; dividing a query by its largest norm leaves every exact ranking as it is and tells
whether absolute thresholds matter::

    python benchmarks/engines.py --model outputs/reuters/numcolbert-digits-seed1 \
        --benchmark outputs/reuters/data/benchmark --corpus ../shared/data/reuters/train.jsonl.gz --sentences 20000 \
        --cache outputs/engines --output results/engines

The benchmark's sentences come first, those of the corpus fill up. Embeddings are kept in the cache folder. An engine
that is not installed is left out with a line that says so. Stanford's PLAID compiles C++ code when first used.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measuring import Row, encode_documents, write

from numcolbert import ColBERT
from numcolbert.corpus.benchmark import load_benchmark
from numcolbert.corpus.sentences import read_sentences
from numcolbert.retrieval import ExactIndex
from numcolbert.retrieval.engines import build_index, search_index

K = 10
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


def overlap(found: Sequence[Sequence[str]], exact: Sequence[Sequence[str]]) -> float:
    return float(np.mean([len(set(a[:K]) & set(b[:K])) / K for a, b in zip(found, exact, strict=True)]))


def ids_of(rankings: list[list[tuple[str, float]]]) -> list[list[str]]:
    return [[name for name, _ in ranking] for ranking in rankings]


def exact_search(documents: list[np.ndarray], ids: list[str]) -> Search:
    index = ExactIndex(documents)
    return lambda queries: [[ids[i] for i, _ in ranking] for ranking in index.search(queries, K)]


def fast_plaid(folder: Path, documents: list[np.ndarray], ids: list[str], nbits: int) -> dict[str, Search]:
    """Search PLAID as this package builds it, with its default candidates and with few."""
    from pylate import indexes  # noqa: PLC0415

    name = f"plaid-{nbits}"
    index = build_index("plaid", folder, name, ids, documents, documents[0].shape[-1], nbits=nbits)
    fewer: dict[str, Any] = {
        f"PLAID (fast-plaid), {nbits} bits, {probes} probes, {full} full scores": indexes.PLAID(
            str(folder), name, n_ivf_probe=probes, n_full_scores=full, num_threads=1, show_progress=False, device="cpu"
        )
        for probes, full in ((8, 256), (2, 8192), (1, 256))
    }
    return {
        label: lambda queries, index=one: ids_of(search_index(index, queries, K))
        for label, one in {f"PLAID (fast-plaid), {nbits} bits": index, **fewer}.items()
    }


def stanford_plaid(folder: Path, documents: list[np.ndarray], ids: list[str], nbits: int) -> dict[str, Search]:
    """Search with the code of PLAID's authors, which prunes centroids below an absolute score."""
    from pylate import indexes  # noqa: PLC0415

    searches: dict[str, Search] = {}
    for threshold in (0.35, 0.5, 0.7):
        index = indexes.PLAID(
            str(folder), f"stanford-{nbits}", override=not searches, use_fast=False, nbits=nbits, ncells=8,
            embedding_size=documents[0].shape[-1], centroid_score_threshold=threshold, ndocs=8192,
        )  # fmt: skip
        if not searches:
            index.add_documents(documents_ids=ids, documents_embeddings=documents)
        searches[f"PLAID (Stanford), {nbits} bits, centroid_score_threshold {threshold}"] = (
            lambda queries, index=index: ids_of(search_index(index, queries, K))
        )
    return searches


def voyager(folder: Path, documents: list[np.ndarray], ids: list[str], _: int) -> dict[str, Search]:
    index = build_index("voyager", folder, "voyager", ids, documents, documents[0].shape[-1])
    return {"Voyager": lambda queries: ids_of(search_index(index, queries, K))}


def scann(folder: Path, documents: list[np.ndarray], ids: list[str], _: int) -> dict[str, Search]:
    from pylate import indexes  # noqa: PLC0415

    index = indexes.ScaNN(str(folder), "scann", override=True, embedding_size=documents[0].shape[-1])
    index.add_documents(documents_ids=ids, documents_embeddings=documents)
    return {"ScaNN": lambda queries: ids_of(search_index(index, queries, K))}


def qdrant(_folder: Path, documents: list[np.ndarray], ids: list[str], _: int) -> dict[str, Search]:
    """Search in Qdrant's local mode: exact, and slow, as it scores every document in Python."""
    from qdrant_client import QdrantClient  # noqa: PLC0415

    from numcolbert.retrieval.qdrant import QdrantIndex  # noqa: PLC0415

    index = QdrantIndex(QdrantClient(":memory:"), "sentences", documents[0].shape[-1])
    index.add_documents(ids, documents)
    return {"Qdrant, local mode": lambda queries: ids_of(search_index(index, queries, K))}


ENGINES = {
    "plaid": fast_plaid,
    "stanford": stanford_plaid,
    "voyager": voyager,
    "scann": scann,
    "qdrant": qdrant,
}
NEEDS = {"voyager": "voyager", "scann": "scann", "qdrant": "qdrant_client"}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--model", required=True, help="folder or Hub id of a trained NumColBERT")
    parser.add_argument("--benchmark", required=True, help="benchmark with the queries and the first sentences")
    parser.add_argument("--corpus", help="further sentences: .txt, .jsonl or .jsonl.gz")
    parser.add_argument("--sentences", type=int, default=20_000, help="sentences to search")
    parser.add_argument("--queries", type=int, default=300, help="queries to ask")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES), help="engines to compare")
    parser.add_argument("--nbits", type=int, default=4, help="bits of a residual in PLAID")
    parser.add_argument("--qdrant-queries", type=int, default=50, help="queries for Qdrant's local mode, which is slow")
    parser.add_argument("--threads", type=int, default=2, help="threads of torch")
    parser.add_argument("--cache", type=Path, required=True, help="folder for embeddings and indexes")
    parser.add_argument("--output", type=Path, help="folder for table and figures as JSON and Markdown")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    benchmark = load_benchmark(options.benchmark)
    texts = list(benchmark.corpus["text"])
    if options.corpus:
        texts += list(read_sentences(options.corpus)["text"][: max(0, options.sentences - len(texts))])
    texts = texts[: options.sentences]
    ids = [f"s{number}" for number in range(len(texts))]
    model = ColBERT.from_pretrained(options.model, device="cpu")
    gated = model.encode(list(benchmark.queries["text"])[: options.queries], is_query=True, show_progress_bar=False)
    documents = encode_documents(model, texts, options.cache / f"documents-{Path(options.model).name}")
    variants = {
        "gated": gated,
        "ungated": unit_norm(gated),
        "divided": divided(gated),
        **{f"gate x{factor}": scaled(gated, factor) for factor in (2, 4, 8)},
    }
    exact = exact_search(documents, ids)
    expected = {name: exact(queries) for name, queries in variants.items()}

    rows: list[Row] = []
    notes: list[str] = []
    for engine in options.engines:
        if engine in NEEDS and importlib.util.find_spec(NEEDS[engine]) is None:
            notes.append(f"{engine} is not installed")
            continue
        asked = options.qdrant_queries if engine == "qdrant" else len(gated)
        start = time.perf_counter()
        searches = ENGINES[engine](options.cache / "indexes", documents, ids, options.nbits)
        print(f"{engine}: built in {time.perf_counter() - start:.0f} s", flush=True)
        for label, search in searches.items():
            start = time.perf_counter()
            found = {
                name: overlap(search(queries[:asked]), expected[name][:asked])
                for name, queries in variants.items()
                if engine != "qdrant" or name in ("gated", "ungated")
            }
            print(f"{label}: {found}, {time.perf_counter() - start:.0f} s", flush=True)
            cost = 100 * (found["ungated"] - found["gated"])
            rows.append({"engine": label, "queries": asked, **{v: found.get(v, "") for v in variants}, "points": cost})
    norms = np.concatenate([np.linalg.norm(query, axis=-1) for query in gated])
    open_gates = norms[abs(norms - 1) > 1e-3]
    write(
        options.output,
        "engines",
        "Engines under gated queries",
        {f"Overlap@10 with exact search over {len(texts):,} sentences; points = what the gate costs": rows},
        sentences=len(texts),
        queries=len(gated),
        gates=f"{len(open_gates) / len(gated):.1f} open a query, median {np.median(open_gates):.2f}, largest "
        f"{open_gates.max():.2f}",
        left_out="; ".join(notes) or "nothing",
    )


if __name__ == "__main__":
    main()
