"""The composite objective of NumColBERT and its four parts."""

from numcolbert.losses.cached import CachedNumColBERTLoss
from numcolbert.losses.numcolbert import NumColBERTLoss

__all__ = ["CachedNumColBERTLoss", "NumColBERTLoss"]
