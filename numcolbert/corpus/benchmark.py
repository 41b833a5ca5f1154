"""Benchmarks: queries with a condition over all sentences of a corpus, judged by the data."""

from __future__ import annotations

import json
import math
import os
import random
import shutil
from bisect import bisect
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Dataset
from datasets.exceptions import DatasetGenerationError

from numcolbert.corpus.pairs import Mentions, Pair, index_pairs
from numcolbert.corpus.queries import OPERATORS, draw_bound, holds, to_canonical, write_query
from numcolbert.corpus.schema import BENCHMARK_CORPUS, BENCHMARK_QRELS, BENCHMARK_QUERIES
from numcolbert.corpus.storage import write_json, write_parquet
from numcolbert.corpus.triplets import QueryKey, query_key


@dataclass
class Benchmark:
    """A benchmark.

    Parameters
    ----------
    corpus
        Columns `id`, `text`, `quantities`.
    queries
        Columns `id`, `text`, `condition`, `concept`, `pair`, `seen`.
    qrels
        Query id to document id to relevance.
    information
        How it was built.
    """

    corpus: Dataset
    queries: Dataset
    qrels: dict[str, dict[str, int]]
    information: dict[str, Any] = field(default_factory=dict)

    def query_keys(self) -> set[QueryKey]:
        """Keys of the queries, to keep them out of training (`build_triplets(exclude_queries=)`)."""
        return {
            query_key(row["pair"], row["condition"]["operator"], row["condition"]["canonical_value"])
            for row in self.queries
        }


def build_benchmark(
    corpus: Dataset,
    pairs: Sequence[Pair],
    output: str | Path,
    *,
    queries: int = 300,
    seen_pairs: AbstractSet[str] = frozenset(),
    unseen_share: float = 0.3,
    min_relevant: int = 3,
    max_relevant: int = 50,
    min_violating: int = 5,
    window: int = 10,
    seed: int = 0,
    name: str = "benchmark",
    index: Mapping[str, Mentions] | None = None,
) -> Benchmark:
    """Build a benchmark and write it to a directory.

    A sentence is relevant to a query when it mentions the concept and a compatible quantity near it satisfies the
    condition. Queries are balanced over operators; each has at least `min_relevant` relevant sentences (an equality
    two, one where values said twice run out) and at least `min_violating` sentences of the same pair that violate it.

    Parameters
    ----------
    corpus
        Annotated sentences; all of them become documents.
    pairs
        Pairs to ask about.
    output
        Directory to write: `corpus.parquet`, `queries.parquet`, `qrels.parquet`, `benchmark.json`.
    queries
        Number of queries.
    seen_pairs
        Keys of the pairs that training triplets are drawn from.
    unseen_share
        Share of the queries that ask about other pairs, as far as there are enough.
    min_relevant, max_relevant
        Bounds on the number of relevant sentences.
    min_violating
        Least number of violating sentences.
    window
        Most words between concept and quantity.
    seed
        Seed of all random choices.
    name
        Name of the benchmark in reports.
    index
        Where the pairs occur in the corpus; found by their concepts (`index_pairs`) if None.

    Returns
    -------
    Benchmark
        As `load_benchmark` reads it.

    Raises
    ------
    ValueError
        If the corpus does not yield so many queries.
    """
    rng = random.Random(seed)
    if index is None:
        index = index_pairs(corpus, pairs, window=window)
    groups = {
        seen: [
            pair
            for pair in pairs
            if (pair.key in seen_pairs) == seen and pair.key in index and len(index[pair.key].sentences) > min_violating
        ]
        for seen in (True, False)
    }
    weights = {
        seen: list(accumulate(len(index[pair.key].sentences) ** 0.25 for pair in group))
        for seen, group in groups.items()
    }
    ids = corpus["id"]
    query_rows: list[dict[str, Any]] = []
    qrels: list[dict[str, Any]] = []
    used: set[QueryKey] = set()
    asked: Counter[tuple[str, str]] = Counter()
    for number in range(queries):
        operator = OPERATORS[number % len(OPERATORS)]
        want_seen = rng.random() >= unseen_share
        for attempt in range(4000):
            seen = want_seen if attempt < 2000 else not want_seen
            if not groups[seen]:
                continue
            pair = groups[seen][bisect(weights[seen], rng.random() * weights[seen][-1])]
            # No pair fills the benchmark: a second query about it only after many others failed.
            if asked[(pair.key, operator)] > attempt // 200:
                continue
            mentions = index[pair.key]
            threshold = _threshold(operator, mentions, min_relevant, max_relevant, min_violating, rng)
            if threshold is None:
                continue
            value, unit = threshold
            canonical = to_canonical(value, unit)
            key = query_key(pair.key, operator, canonical)
            relevant = _relevant(operator, canonical, mentions)
            # Values said only once are asked for when values said twice run out.
            least = min_relevant if operator != "=" else 2 if attempt < 400 else 1
            if (
                key in used
                or not least <= len(relevant) <= max_relevant
                or len(mentions.sentences) - len(relevant) < min_violating
            ):
                continue
            query = write_query(pair.variants[:2] or (pair.concept,), operator, value, unit, rng)
            if query is None:
                continue
            break
        else:
            raise ValueError(
                f"the corpus of {len(corpus)} sentences yields only {number} of {queries} queries: lower the number of "
                "queries, min_relevant or min_violating, or give a larger corpus"
            )
        used.add(key)
        asked[(pair.key, operator)] += 1
        query_id = f"q{number}"
        query_rows.append(
            {
                "id": query_id,
                "text": query.text,
                "condition": query.condition,
                "concept": pair.concept,
                "pair": pair.key,
                "seen": seen,
            }
        )
        satisfying = set(relevant)
        qrels += [
            {"query_id": query_id, "document_id": ids[n], "relevance": int(n in satisfying)} for n in mentions.sentences
        ]
    information = {
        "name": name,
        "documents": len(corpus),
        "queries": len(query_rows),
        "queries_by_operator": dict(Counter(row["condition"]["operator"] for row in query_rows)),
        "queries_about_unseen_pairs": sum(not row["seen"] for row in query_rows),
        "pairs": len({row["pair"] for row in query_rows}),
        "judgements": len(qrels),
        "seed": seed,
        "window": window,
        "min_relevant": min_relevant,
        "max_relevant": max_relevant,
        "min_violating": min_violating,
    }
    return write_benchmark(corpus, query_rows, qrels, information, output)


def write_benchmark(
    corpus: Dataset,
    queries: Sequence[dict[str, Any]],
    qrels: Sequence[dict[str, Any]],
    information: dict[str, Any],
    output: str | Path,
) -> Benchmark:
    """Write the tables of a benchmark to a directory, which appears when it is whole, and load it."""
    output = Path(output)
    temporary = output.with_name(output.name + ".part")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        write_parquet(
            (row for batch in corpus.select_columns(["id", "text", "quantities"]).iter(1000) for row in _rows(batch)),
            BENCHMARK_CORPUS,
            temporary / "corpus.parquet",
        )
        write_parquet(queries, BENCHMARK_QUERIES, temporary / "queries.parquet")
        write_parquet(qrels, BENCHMARK_QRELS, temporary / "qrels.parquet")
        write_json(information, temporary / "benchmark.json")
        if output.exists():
            shutil.rmtree(output)
        os.replace(temporary, output)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return load_benchmark(output)


def _rows(batch: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(batch, values, strict=True)) for values in zip(*batch.values(), strict=True)]


def load_benchmark(directory: str | Path) -> Benchmark:
    """Load a benchmark that `build_benchmark` wrote.

    Parameters
    ----------
    directory
        The directory.

    Returns
    -------
    Benchmark
        Its tables.

    Raises
    ------
    FileNotFoundError
        If a table is missing.
    ValueError
        If a table is empty, damaged or lacks a column.
    """
    directory = Path(directory)
    tables = {}
    for name, features in _TABLES.items():
        path = _present(directory, name)
        try:
            schema = pq.read_schema(path)
            table = Dataset.from_parquet(str(path), keep_in_memory=True) if pq.read_metadata(path).num_rows else None
        except (pa.ArrowException, OSError, DatasetGenerationError) as error:
            raise ValueError(f"{path} is damaged ({error}): {_CURE}") from error
        missing = [column for column in features if column not in schema.names]
        if missing:
            raise ValueError(f"{path} lacks the column {', '.join(missing)}: {_CURE}")
        if table is None:
            raise ValueError(f"{path} holds no rows: {_CURE}")
        tables[name] = table
    path = _present(directory, "benchmark.json")
    try:
        information = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is damaged ({error}): {_CURE}") from error
    judgements: dict[str, dict[str, int]] = {}
    table = tables["qrels.parquet"]
    for query, document, relevance in zip(table["query_id"], table["document_id"], table["relevance"], strict=True):
        judgements.setdefault(query, {})[document] = relevance
    return Benchmark(tables["corpus.parquet"], tables["queries.parquet"], judgements, information)


_TABLES = {
    "corpus.parquet": BENCHMARK_CORPUS,
    "queries.parquet": BENCHMARK_QUERIES,
    "qrels.parquet": BENCHMARK_QRELS,
}
_CURE = "build the benchmark again with prepare_data"


def _present(directory: Path, name: str) -> Path:
    if not (directory / name).is_file():
        raise FileNotFoundError(f"{directory} is no benchmark, it lacks {name}: build it with prepare_data")
    return directory / name


def _relevant(operator: str, threshold: float, mentions: Mentions) -> list[int]:
    return [
        sentence
        for sentence, values in zip(mentions.sentences, mentions.values, strict=True)
        if any(holds(operator, threshold, value) for value in values)
    ]


def _threshold(
    operator: str, mentions: Mentions, min_relevant: int, max_relevant: int, min_violating: int, rng: random.Random
) -> tuple[float, str] | None:
    """Draw a threshold with about as many relevant sentences as wanted, in value and unit as the pair is written."""
    if operator == "=":
        counts = Counter(value for values in mentions.values for value in set(values))
        candidates = [value for value, count in counts.items() if 2 <= count <= max_relevant]
        candidates = candidates or [value for value, count in counts.items() if count <= max_relevant]
        if not candidates:
            return None
        value = rng.choice(candidates)
        occurrences = [
            written
            for values, forms in zip(mentions.values, mentions.written, strict=True)
            for canonical, written in zip(values, forms, strict=True)
            if canonical == value
        ]
        return rng.choice(occurrences)
    greater = operator == ">"
    best = sorted((max(v) if greater else min(v) for v in mentions.values), reverse=greater)
    most = min(max_relevant, len(best) - min_violating)
    if most < min_relevant:
        return None
    # Log-uniform: most queries ask for few sentences, some for many.
    wanted = round(math.exp(rng.uniform(math.log(min_relevant), math.log(most))))
    low, high = sorted((best[wanted - 1], best[wanted]))
    if low == high:
        return None
    unit = mentions.usual_unit(high)
    bound = draw_bound(operator, low, high, unit, rng)
    return None if bound is None else (bound, unit)
