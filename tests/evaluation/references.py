"""Slow references: the formulas, written as loops."""

import math


def loop_maxsim(query, document):
    total = 0.0
    for q in query:
        best = -math.inf
        for d in document:
            best = max(best, sum(float(a) * float(b) for a, b in zip(q, d, strict=True)))
        total += best
    return total


def loop_metrics(judged, ranking):
    """Metrics of one query; relevance is the gain, and the discount of rank r is log2(r + 1)."""
    gain = 0.0
    for rank, document in enumerate(ranking[:10], start=1):
        gain += max(judged.get(document, 0), 0) / math.log2(rank + 1)
    ideal = 0.0
    for rank, relevance in enumerate(sorted((r for r in judged.values() if r > 0), reverse=True)[:10], start=1):
        ideal += relevance / math.log2(rank + 1)
    reciprocal = 0.0
    for rank, document in enumerate(ranking[:10], start=1):
        if judged.get(document, 0) > 0:
            reciprocal = 1 / rank
            break
    relevant = {document for document, relevance in judged.items() if relevance > 0}
    return {
        "ndcg@10": gain / ideal,
        "mrr@10": reciprocal,
        "p@10": sum(document in relevant for document in ranking[:10]) / 10,
        "r@100": sum(document in relevant for document in ranking[:100]) / len(relevant),
    }


def loop_ordered_pairs(satisfying, violating):
    right, pairs = 0.0, 0
    for better in satisfying:
        for worse in violating:
            pairs += 1
            right += 1.0 if better > worse else 0.5 if better == worse else 0.0
    return right / pairs if pairs else math.nan
