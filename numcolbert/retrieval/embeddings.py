"""Token embeddings of several texts, as models give them and indexes take them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

__all__ = ["Embeddings", "Ranking", "as_float32", "shared_dimensions"]

Embeddings: TypeAlias = Sequence[np.ndarray | Tensor]
"""Token embeddings of several texts, each of shape (tokens, dimensions)."""

Ranking: TypeAlias = list[tuple[str, float]]
"""Documents of one query with their scores, best first."""


def as_float32(embeddings: np.ndarray | Tensor) -> Tensor:
    """Give the embeddings of one text as a float32 tensor, without copying what is one already.

    Parameters
    ----------
    embeddings
        Array or tensor of shape (tokens, dimensions).

    Returns
    -------
    Tensor
        The same shape; norms are left as they are.
    """
    return torch.as_tensor(embeddings).detach().to(torch.float32)


def shared_dimensions(embeddings: Embeddings, what: str) -> int:
    """Check the embeddings of several texts and tell how many dimensions they have.

    Parameters
    ----------
    embeddings
        At least one array of shape (tokens, dimensions).
    what
        What to call a text in errors: "query" or "document".

    Returns
    -------
    int
        The dimensions.

    Raises
    ------
    ValueError
        If a text has no token, or dimensions differ.

    Examples
    --------
    >>> shared_dimensions([np.ones((3, 128)), np.ones((7, 128))], "query")
    128
    """
    for position, tokens in enumerate(embeddings):
        if tokens.ndim != 2 or len(tokens) == 0:
            raise ValueError(
                f"{what} {position} has embeddings of shape {tuple(tokens.shape)}; "
                "give one (tokens, dimensions) array with at least one token for each."
            )
    sizes = {int(tokens.shape[1]) for tokens in embeddings}
    if len(sizes) > 1:
        raise ValueError(f"{what} embeddings have different dimensions {sorted(sizes)}; encode all with one model.")
    return sizes.pop()
