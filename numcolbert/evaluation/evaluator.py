"""Evaluation of a model on a benchmark, as a function and as an evaluator of Sentence Transformers."""

from __future__ import annotations

import csv
import hashlib
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from rich.progress import track
from sentence_transformers.evaluation import SentenceEvaluator

from numcolbert.evaluation.metrics import METRICS, ORDERED_PAIRS, QueryResult, average, ordered_pairs, ranking_metrics
from numcolbert.evaluation.search import IndexName, Ranking, check_index, maxsim_scores, retrieve

if TYPE_CHECKING:
    from pylate.models import ColBERT

    from numcolbert.corpus.benchmark import Benchmark

__all__ = ["DEPTH", "Evaluation", "Evaluator", "evaluate_model", "evaluate_rankings", "fingerprint", "judgements"]

DEPTH = 100
"""Documents retrieved for each query: R@100 looks no further."""

_GROUP_NAMES = {"=": "equal", ">": "greater", ">=": "at_least", "<": "less", "<=": "at_most"}


@dataclass(frozen=True)
class Evaluation:
    """Results of one model on one benchmark.

    Parameters
    ----------
    results
        One for each query, in the order of the benchmark.
    seconds
        How long each step took: ``encode_documents``, ``encode_queries``, ``search`` (index building included).
    """

    results: list[QueryResult]
    seconds: dict[str, float]

    @property
    def averages(self) -> dict[str, dict[str, Any]]:
        """Means of all metrics by group of queries; see :func:`~numcolbert.evaluation.metrics.average`."""
        return average(self.results)


def judgements(benchmark: Benchmark) -> dict[str, dict[str, int]]:
    """Check a benchmark and gather its judgements.

    Parameters
    ----------
    benchmark
        As :func:`numcolbert.corpus.benchmark.load_benchmark` returns it.

    Returns
    -------
    dict[str, dict[str, int]]
        Query id to document id to relevance, for every query, in the order of the queries. Relevance 0 marks a
        document of the same concept–unit pair that violates the condition.

    Raises
    ------
    ValueError
        If there is no document or query, an id occurs twice, a judgement names an unknown id, or a query has no
        relevant document.

    """
    documents, queries = list(benchmark.corpus["id"]), list(benchmark.queries["id"])
    for table, ids in (("corpus", documents), ("queries", queries)):
        if not ids:
            raise ValueError(f"The benchmark's {table}.parquet holds no row; build the benchmark again.")
        if len(set(ids)) < len(ids):
            raise ValueError(f"An id occurs twice in the benchmark's {table}.parquet; ids must be unique.")
    unknown = set(benchmark.qrels) - set(queries)
    unknown |= {document for judged in benchmark.qrels.values() for document in judged} - set(documents)
    if unknown:
        raise ValueError(
            f"qrels.parquet judges {min(unknown)!r}, which is in neither queries.parquet nor corpus.parquet; "
            "build the benchmark again."
        )
    qrels = {query: dict(benchmark.qrels.get(query, {})) for query in queries}
    for query, judged in qrels.items():
        if not any(relevance > 0 for relevance in judged.values()):
            raise ValueError(f"Query {query!r} has no relevant document in qrels.parquet; drop the query.")
    return qrels


def fingerprint(benchmark: Benchmark) -> str:
    """Return a SHA-256 over documents, queries and judgements, so that results of different benchmarks never mix.

    Parameters
    ----------
    benchmark
        Benchmark to identify.

    Returns
    -------
    str
        Hexadecimal digest; independent of where the benchmark lies.

    """
    digest = hashlib.sha256()
    for table in (benchmark.corpus, benchmark.queries):
        for row in zip(table["id"], table["text"], strict=True):
            digest.update(repr(row).encode())
    for query, judged in sorted(benchmark.qrels.items()):
        digest.update(repr((query, sorted(judged.items()))).encode())
    return digest.hexdigest()


def evaluate_rankings(
    benchmark: Benchmark,
    rankings: Mapping[str, Ranking],
    judged_scores: Mapping[str, Mapping[str, float]] | None = None,
) -> list[QueryResult]:
    """Score the rankings of any retriever on a benchmark.

    Parameters
    ----------
    benchmark
        Benchmark that was searched.
    rankings
        Query id to (document id, score), best first.
    judged_scores
        Query id to document id to score of every judged document, for the ordered pairs. None leaves them out.

    Returns
    -------
    list[QueryResult]
        One for each query, in the order of the benchmark.

    Raises
    ------
    ValueError
        If the benchmark is faulty (see `judgements`) or a query has no ranking.

    """
    qrels = judgements(benchmark)
    metrics = ranking_metrics(qrels, rankings)
    results = []
    for query in benchmark.queries:
        name = query["id"]
        values = dict(metrics[name])
        if judged_scores is not None:
            scores = judged_scores[name]
            share = ordered_pairs(
                [scores[document] for document, relevance in qrels[name].items() if relevance > 0],
                [scores[document] for document, relevance in qrels[name].items() if relevance <= 0],
            )
            if not math.isnan(share):
                values[ORDERED_PAIRS] = share
        results.append(
            QueryResult(
                query_id=name,
                text=query["text"],
                operator=query["condition"]["operator"],
                pair=query["pair"],
                seen=bool(query["seen"]),
                metrics=values,
                ranking=list(rankings[name]),
            )
        )
    return results


def evaluate_model(
    model: ColBERT,
    benchmark: Benchmark,
    index: IndexName = "exact",
    batch_size: int = 32,
    device: str | torch.device | None = None,
    seed: int = 42,
    show_progress: bool = False,
) -> Evaluation:
    """Encode a benchmark with a model, search it, and compute all metrics for every query.

    Ordered pairs compare exact MaxSim scores whatever the index: they tell about the model.

    Parameters
    ----------
    model
        NumColBERT or any PyLate ColBERT. Its query embeddings are used as ``encode`` returns them.
    benchmark
        As :func:`numcolbert.corpus.benchmark.load_benchmark` returns it.
    index
        ``"exact"``, ``"plaid"`` or ``"voyager"``.
    batch_size
        Texts encoded at once.
    device
        Where to encode and search. Defaults to the model's device.
    seed
        Seed of PLAID's k-means.
    show_progress
        Whether to draw progress bars.

    Returns
    -------
    Evaluation
        Per-query results and times.

    Raises
    ------
    ValueError
        If the benchmark is faulty (see `judgements`) or the index unknown.
    ImportError
        If the index needs a package that is not installed.

    """
    check_index(index)
    qrels = judgements(benchmark)
    device = str(device if device is not None else model.device)
    documents_ids, queries_ids = list(benchmark.corpus["id"]), list(benchmark.queries["id"])
    seconds: dict[str, float] = {}

    def encode(texts: Sequence[str], is_query: bool) -> list[np.ndarray]:
        embeddings: list[np.ndarray] = model.encode(
            list(texts), is_query=is_query, batch_size=batch_size, device=device, show_progress_bar=show_progress
        )
        return embeddings

    clock = time.perf_counter()
    documents = encode(benchmark.corpus["text"], is_query=False)
    seconds["encode_documents"] = time.perf_counter() - clock

    clock = time.perf_counter()
    queries = encode(benchmark.queries["text"], is_query=True)
    seconds["encode_queries"] = time.perf_counter() - clock

    clock = time.perf_counter()
    found = retrieve(queries, documents, documents_ids, index, DEPTH, device, seed, show_progress)
    seconds["search"] = time.perf_counter() - clock

    position = {document: number for number, document in enumerate(documents_ids)}
    judged_scores = {}
    pairs = track(list(zip(queries_ids, queries, strict=True)), description="Ordering pairs", disable=not show_progress)
    for query, embeddings in pairs:
        judged = list(qrels[query])
        scores = maxsim_scores(embeddings, [documents[position[document]] for document in judged])
        judged_scores[query] = dict(zip(judged, scores.tolist(), strict=True))

    rankings = dict(zip(queries_ids, found, strict=True))
    return Evaluation(evaluate_rankings(benchmark, rankings, judged_scores), seconds)


class Evaluator(SentenceEvaluator):
    """Evaluate on a benchmark while Sentence Transformers trains.

    Parameters
    ----------
    benchmark
        Benchmark to evaluate on; in training, the development one.
    name
        Prefix of the metrics' names, such as ``"dev"``.
    index
        ``"exact"``, ``"plaid"`` or ``"voyager"``.
    batch_size
        Texts encoded at once.
    write_csv
        Whether to append a row to a CSV file in the folder that the trainer gives.
    show_progress_bar
        Whether to draw progress bars.

    Raises
    ------
    ValueError
        If the benchmark is faulty or the index unknown; raised here, before any training.

    Notes
    -----
    Metrics are named ``ndcg@10``, ``mrr@10``, ``p@10``, ``r@100`` and ``ordered_pairs`` over all queries, and the same
    behind ``equal_``, ``greater_``, ``less_``, ``inequalities_``, ``seen_`` and ``unseen_``. The primary metric, which
    chooses the best checkpoint, is ``ndcg@10``.
    """

    def __init__(
        self,
        benchmark: Benchmark,
        name: str = "",
        index: IndexName = "exact",
        batch_size: int = 32,
        write_csv: bool = True,
        show_progress_bar: bool = False,
    ) -> None:
        super().__init__()
        check_index(index)
        judgements(benchmark)
        self.benchmark = benchmark
        self.name = name
        self.index = index
        self.batch_size = batch_size
        self.write_csv = write_csv
        self.show_progress_bar = show_progress_bar
        self.primary_metric = "ndcg@10"

    def __call__(
        self, model: ColBERT, output_path: str | None = None, epoch: int = -1, steps: int = -1
    ) -> dict[str, float]:
        """Evaluate a model.

        Parameters
        ----------
        model
            Model in training.
        output_path
            Folder for the CSV file; None writes nothing.
        epoch, steps
            Where training stands, for the CSV file; -1 after training.

        Returns
        -------
        dict[str, float]
            Metric name to value.

        """
        evaluation = evaluate_model(
            model, self.benchmark, self.index, self.batch_size, show_progress=self.show_progress_bar
        )
        metrics = {
            metric if group == "overall" else f"{_GROUP_NAMES.get(group, group)}_{metric}": row[metric]
            for group, row in evaluation.averages.items()
            for metric in METRICS
            if row[metric] is not None
        }
        if output_path is not None and self.write_csv:
            self._append_csv(Path(output_path), epoch, steps, metrics)
        metrics = self.prefix_name_to_metrics(metrics, self.name)
        self.store_metrics_in_model_card_data(model, metrics, epoch, steps)
        return metrics

    def _append_csv(self, folder: Path, epoch: int, steps: int, metrics: Mapping[str, float]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"evaluation{'_' + self.name if self.name else ''}_results.csv"
        fresh = not path.exists()
        with path.open("a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            if fresh:
                writer.writerow(["epoch", "steps", *metrics])
            writer.writerow([epoch, steps, *metrics.values()])

    @property
    def description(self) -> str:
        """What the model card calls this evaluation."""
        return "Numerical Retrieval"

    def get_config_dict(self) -> dict[str, Any]:
        """Return what the model card tells about this evaluation.

        Returns
        -------
        dict[str, Any]
            Sizes of the benchmark and the index used.

        """
        return {
            "documents": len(self.benchmark.corpus),
            "queries": len(self.benchmark.queries),
            "index": self.index,
        }
