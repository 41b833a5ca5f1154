"""Metrics of a ranking: nDCG@10, MRR@10, P@10 and R@100 by ranx, and the share of correctly ordered pairs.

A metric is computed for each query and then averaged over groups of queries: all, one operator, the inequalities,
the concept–unit pairs seen in training and those unseen.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from numcolbert.evaluation.search import Ranking

__all__ = [
    "METRICS",
    "ORDERED_PAIRS",
    "OVERALL",
    "RANKING_METRICS",
    "QueryResult",
    "average",
    "groups_of",
    "ordered_pairs",
    "ranking_metrics",
]

RANKING_METRICS = {"ndcg@10": "ndcg@10", "mrr@10": "mrr@10", "p@10": "precision@10", "r@100": "recall@100"}
"""Our names of the ranking metrics, and those of ranx."""

ORDERED_PAIRS = "ordered_pairs"
"""Share of (satisfying, violating) document pairs of the query's concept–unit pair that stand in the right order."""

METRICS = (*RANKING_METRICS, ORDERED_PAIRS)
"""All metrics, in the order in which tables show them."""

OVERALL = "overall"
INEQUALITIES = "inequalities"
SEEN = "seen"
UNSEEN = "unseen"

_OPERATOR_ORDER = ("=", ">", ">=", "<", "<=", "between")

_NO_DOCUMENT = "\0"  # stands in for an empty ranking, which ranx cannot hold; no document has this id


@dataclass(frozen=True)
class QueryResult:
    """What one model did on one query.

    Parameters
    ----------
    query_id, text
        The query.
    operator
        Operator of its condition.
    pair
        Its concept–unit pair.
    seen
        Whether the pair occurs in training.
    metrics
        Metric name to value; ``ordered_pairs`` is missing where no violating document is judged.
    ranking
        The best documents with their scores.
    """

    query_id: str
    text: str
    operator: str
    pair: str
    seen: bool
    metrics: Mapping[str, float]
    ranking: Ranking


def ranking_metrics(
    qrels: Mapping[str, Mapping[str, int]], rankings: Mapping[str, Sequence[tuple[str, float]]]
) -> dict[str, dict[str, float]]:
    """Compute nDCG@10, MRR@10, P@10 and R@100 of each query with ranx.

    Parameters
    ----------
    qrels
        Query id to document id to relevance; 0 means judged and not relevant, as good as not judged.
    rankings
        Query id to documents, best first. Their order counts, so that equal scores stay as they were ranked.

    Returns
    -------
    dict[str, dict[str, float]]
        Query id to metric name (keys of `RANKING_METRICS`) to value.

    Raises
    ------
    ValueError
        If a query has no relevant document or no ranking.

    Examples
    --------
    >>> metrics = ranking_metrics({"q": {"a": 1, "b": 0}}, {"q": [("b", 2.0), ("a", 1.0)]})
    >>> metrics["q"]["mrr@10"], metrics["q"]["p@10"], metrics["q"]["r@100"]
    (0.5, 0.1, 1.0)

    """
    from numba.core.errors import NumbaTypeSafetyWarning  # noqa: PLC0415  (seconds to import)
    from ranx import Qrels, Run, evaluate  # noqa: PLC0415

    relevant = {
        query: {document: int(relevance) for document, relevance in judged.items() if relevance > 0}
        for query, judged in qrels.items()
    }
    for query, documents in relevant.items():
        if not documents:
            raise ValueError(
                f"Query {query!r} has no relevant document; drop it or judge one with relevance 1 or more."
            )
        if query not in rankings:
            raise ValueError(f"Query {query!r} has no ranking; search it before computing metrics.")
    if not relevant:
        return {}
    queries = list(relevant)
    run = {
        # Ranks instead of scores: ranx sorts again, and would break ties in its own way.
        query: {document: float(-rank) for rank, (document, _) in enumerate(rankings[query])} or {_NO_DOCUMENT: 0.0}
        for query in queries
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumbaTypeSafetyWarning)
        values = evaluate(Qrels(relevant), Run(run), list(RANKING_METRICS.values()), return_mean=False)
    # ranx orders its results by query id.
    row = {query: position for position, query in enumerate(sorted(queries))}
    return {
        query: {name: float(values[theirs][row[query]]) for name, theirs in RANKING_METRICS.items()}
        for query in queries
    }


def ordered_pairs(satisfying: Sequence[float] | np.ndarray, violating: Sequence[float] | np.ndarray) -> float:
    """Return the share of (satisfying, violating) pairs in which the satisfying document scores higher.

    A tie counts one half, so that a model that cannot tell values apart stands at 0.5.

    Parameters
    ----------
    satisfying
        Scores of documents that satisfy the condition.
    violating
        Scores of documents of the same concept–unit pair that violate it.

    Returns
    -------
    float
        Share in [0, 1]; NaN if either side is empty.

    Examples
    --------
    >>> ordered_pairs([3.0, 1.0], [2.0, 1.0])
    0.625

    """
    if len(satisfying) == 0 or len(violating) == 0:
        return math.nan
    violating = np.sort(np.asarray(violating))
    below = np.searchsorted(violating, satisfying, side="left")
    not_above = np.searchsorted(violating, satisfying, side="right")
    return float((below + not_above).sum() / (2 * len(satisfying) * len(violating)))


def groups_of(results: Sequence[QueryResult]) -> dict[str, list[QueryResult]]:
    """Group queries for the breakdown.

    Parameters
    ----------
    results
        Results of one model.

    Returns
    -------
    dict[str, list[QueryResult]]
        ``"overall"``, each operator that occurs, ``"inequalities"`` (every operator but ``=``), ``"seen"`` and
        ``"unseen"``; groups without a query are left out.

    """
    operators = sorted({result.operator for result in results})
    operators.sort(key=lambda name: _OPERATOR_ORDER.index(name) if name in _OPERATOR_ORDER else len(_OPERATOR_ORDER))
    groups = {OVERALL: list(results)}
    groups |= {name: [result for result in results if result.operator == name] for name in operators}
    groups[INEQUALITIES] = [result for result in results if result.operator != "="]
    groups[SEEN] = [result for result in results if result.seen]
    groups[UNSEEN] = [result for result in results if not result.seen]
    return {name: members for name, members in groups.items() if members}


def average(results: Sequence[QueryResult]) -> dict[str, dict[str, Any]]:
    """Average every metric over every group of queries.

    Parameters
    ----------
    results
        Results of one model.

    Returns
    -------
    dict[str, dict[str, Any]]
        Group to ``{"queries": count, metric: mean, ..., "ordered_pairs_queries": count}``; ``ordered_pairs`` is the
        mean over the queries that have judged violating documents, None if there is none.

    """
    averages: dict[str, dict[str, Any]] = {}
    for group, members in groups_of(results).items():
        row: dict[str, Any] = {"queries": len(members)}
        for metric in METRICS:
            values = [result.metrics[metric] for result in members if metric in result.metrics]
            row[metric] = float(np.mean(values)) if values else None
        row[f"{ORDERED_PAIRS}_queries"] = sum(ORDERED_PAIRS in result.metrics for result in members)
        averages[group] = row
    return averages
