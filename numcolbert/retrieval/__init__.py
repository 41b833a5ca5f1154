"""Retrieval: exact MaxSim, PyLate's indexes, Qdrant, and the index folder of the command line."""

from numcolbert.retrieval.exact import ExactIndex, maxsim_scores

__all__ = ["ExactIndex", "maxsim_scores"]
