"""NumColBERT: a late-interaction retriever that obeys numbers."""

from numcolbert.modeling import ColBERT

__all__ = ["ColBERT"]
__version__ = "0.1.0"
