"""Evaluation: exact and approximate search, metrics by operator, significance, reports."""

from numcolbert.evaluation.evaluator import Evaluation, Evaluator, evaluate_model, evaluate_rankings
from numcolbert.evaluation.metrics import QueryResult
from numcolbert.evaluation.search import ExactIndex, retrieve
from numcolbert.evaluation.significance import Comparison, compare

__all__ = [
    "Comparison",
    "Evaluation",
    "Evaluator",
    "ExactIndex",
    "QueryResult",
    "compare",
    "evaluate_model",
    "evaluate_rankings",
    "retrieve",
]
