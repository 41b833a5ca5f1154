"""The gated ColBERT: model, numerical gate, tokenization of numbers, explanations."""

from numcolbert.modeling.colbert import ColBERT
from numcolbert.modeling.explanation import Explanation, TokenExplanation
from numcolbert.modeling.numerical_gate import NumericalGate

__all__ = ["ColBERT", "Explanation", "NumericalGate", "TokenExplanation"]
