import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numcolbert.evaluation.metrics import METRICS, QueryResult, average, groups_of, ordered_pairs, ranking_metrics
from tests.evaluation.references import loop_metrics, loop_ordered_pairs


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    documents=st.integers(1, 150),
    queries=st.integers(1, 12),
    grades=st.integers(1, 3),
    ties=st.booleans(),
)
def test_ranking_metrics_equal_loops_over_the_formulas(seed, documents, queries, grades, ties):
    rng = np.random.default_rng(seed)
    qrels, rankings = {}, {}
    for number in rng.permutation(queries):  # not in the order of the ids
        query = f"q{number}"
        judged = rng.choice(documents, size=rng.integers(1, documents + 1), replace=False)
        qrels[query] = {f"d{document}": int(rng.integers(0, grades + 1)) for document in judged}
        qrels[query][f"d{judged[0]}"] = 1
        order = rng.permutation(documents)[: rng.integers(0, documents + 1)]
        scores = np.zeros(len(order)) if ties else np.sort(rng.normal(size=len(order)))[::-1]
        rankings[query] = [(f"d{document}", float(score)) for document, score in zip(order, scores, strict=True)]
    found = ranking_metrics(qrels, rankings)
    assert list(found) == list(qrels)
    for query, judged in qrels.items():
        assert found[query] == pytest.approx(loop_metrics(judged, [document for document, _ in rankings[query]]))


def test_more_relevant_documents_than_ranks():
    qrels = {"q": {f"d{number}": 1 for number in range(150)}}
    ranking = [(f"d{number}", -float(number)) for number in range(100)]
    assert ranking_metrics(qrels, {"q": ranking})["q"] == pytest.approx(
        {"ndcg@10": 1.0, "mrr@10": 1.0, "p@10": 1.0, "r@100": 100 / 150}
    )


def test_queries_without_relevant_documents_or_ranking_are_refused():
    with pytest.raises(ValueError, match="'q' has no relevant document"):
        ranking_metrics({"q": {"a": 0}}, {"q": []})
    with pytest.raises(ValueError, match="'q' has no ranking"):
        ranking_metrics({"q": {"a": 1}}, {})
    assert ranking_metrics({}, {}) == {}


values = st.lists(st.integers(-3, 3).map(float), max_size=8)


@given(satisfying=values, violating=values)
def test_ordered_pairs_equal_a_loop(satisfying, violating):
    expected = loop_ordered_pairs(satisfying, violating)
    assert ordered_pairs(satisfying, violating) == pytest.approx(expected, nan_ok=True)


def result(query_id, operator, seen, value, share=None):
    metrics = dict.fromkeys(METRICS[:-1], value) | ({} if share is None else {"ordered_pairs": share})
    return QueryResult(query_id, "text", operator, "pair", seen, metrics, [])


def test_groups_and_their_means():
    results = [
        result("a", "<", True, 0.2, 0.5),
        result("b", "=", True, 0.4),
        result("c", ">", False, 0.9, 1.0),
        result("d", "between", True, 0.1, 0.0),
        result("e", "=", False, 0.6),
    ]
    groups = groups_of(results)
    assert list(groups) == ["overall", "=", ">", "<", "between", "inequalities", "seen", "unseen"]
    assert {name: "".join(member.query_id for member in members) for name, members in groups.items()} == {
        "overall": "abcde",
        "=": "be",
        ">": "c",
        "<": "a",
        "between": "d",
        "inequalities": "acd",
        "seen": "abd",
        "unseen": "ce",
    }
    means = average(results)
    for name, members in groups.items():
        assert means[name]["queries"] == len(members)
        assert means[name]["ndcg@10"] == pytest.approx(math.fsum(m.metrics["ndcg@10"] for m in members) / len(members))
    assert means["overall"]["ordered_pairs"] == pytest.approx(0.5)
    assert means["overall"]["ordered_pairs_queries"] == 3
    assert means["="]["ordered_pairs"] is None
    assert means["="]["ordered_pairs_queries"] == 0


def test_groups_without_a_query_are_left_out():
    assert list(groups_of([result("a", "=", True, 1.0)])) == ["overall", "=", "seen"]
