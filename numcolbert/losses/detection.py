"""L_det: which query tokens belong to a numerical expression."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from numcolbert.losses.distributed import global_mean

__all__ = ["detection_loss"]


def detection_loss(logits: Tensor, quantity_mask: Tensor, scoring: Tensor, across_devices: bool = False) -> Tensor:
    """Binary cross entropy of the detector over all query tokens that score.

    Parameters
    ----------
    logits
        Detector logits, shape (queries, tokens).
    quantity_mask
        Tokens inside the query's quantity mention, bool, same shape.
    scoring
        Tokens that score, bool, same shape; the others are left out.
    across_devices
        Whether to average over the tokens of all processes.

    Returns
    -------
    Tensor
        Scalar.

    Examples
    --------
    >>> import torch
    >>> mask = torch.tensor([[True, False]])
    >>> detection_loss(torch.tensor([[9.0, -9.0]]), mask, torch.ones_like(mask)) < 0.001
    tensor(True)
    """
    losses = F.binary_cross_entropy_with_logits(logits, quantity_mask.to(logits.dtype), reduction="none")
    return global_mean(losses, scoring, across_devices)
