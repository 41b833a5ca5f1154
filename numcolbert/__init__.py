"""NumColBERT: a late-interaction retriever that obeys numbers."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numcolbert.modeling import ColBERT

__all__ = ["ColBERT"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # Reading quantities or preparing data needs no torch, whose import takes seconds and hundreds of megabytes.
    if name == "ColBERT":
        from numcolbert.modeling import ColBERT  # noqa: PLC0415

        return ColBERT
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
