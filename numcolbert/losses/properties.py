"""L_prop: heads that read unit, magnitude and operator off the embedding of a quantity."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from numcolbert.losses.distributed import global_mean
from numcolbert.quantities import OPERATORS

__all__ = ["PropertyHeads", "scientific_notation"]

MANTISSA_MEAN, MANTISSA_SCALE = 4.0, 2.5
EXPONENT_MEAN, EXPONENT_SCALE = 3.0, 4.0
"""Targets are standardised by these round constants: raw exponents would start the loss near 50 and drown the rest."""


def scientific_notation(values: Tensor) -> tuple[Tensor, Tensor]:
    """Split values into standardised mantissas and exponents.

    Parameters
    ----------
    values
        Any shape; the sign is left aside, 0 has mantissa 0 and exponent 0.

    Returns
    -------
    mantissa, exponent
        ``|v| = mantissa * 10 ** exponent`` with the mantissa in [1, 10), both standardised; float32.

    Examples
    --------
    >>> mantissa, exponent = scientific_notation(torch.tensor([1.4e9], dtype=torch.float64))
    >>> mantissa * MANTISSA_SCALE + MANTISSA_MEAN, exponent * EXPONENT_SCALE + EXPONENT_MEAN
    (tensor([1.4000]), tensor([9.]))
    """
    magnitude = values.abs().double()
    nonzero = torch.isfinite(magnitude) & (magnitude > 0)
    safe = torch.where(nonzero, magnitude, torch.ones_like(magnitude))
    exponent = torch.floor(torch.log10(safe))
    mantissa = safe / torch.pow(10.0, exponent)
    # log10 of a value just below a power of ten may round up to it, and the other way round.
    exponent = torch.where(mantissa >= 10, exponent + 1, torch.where(mantissa < 1, exponent - 1, exponent))
    mantissa = torch.where(mantissa >= 10, mantissa / 10, torch.where(mantissa < 1, mantissa * 10, mantissa))
    mantissa, exponent = torch.where(nonzero, mantissa, 0.0), torch.where(nonzero, exponent, 0.0)
    return (
        ((mantissa - MANTISSA_MEAN) / MANTISSA_SCALE).float(),
        ((exponent - EXPONENT_MEAN) / EXPONENT_SCALE).float(),
    )


def _head(embedding_size: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(embedding_size, embedding_size), nn.ReLU(), nn.Linear(embedding_size, outputs))


class PropertyHeads(nn.Module):
    """Two-layer MLPs on q_num: unit (CE), mantissa and exponent (MSE), operator (CE); training only.

    Parameters
    ----------
    embedding_size
        Size of the token embeddings.
    unit_buckets
        Number of classes of the unit head. Unit codes are taken modulo this (hashing trick), so no vocabulary is
        needed; two of n units share a class with probability of about n / unit_buckets.
    """

    def __init__(self, embedding_size: int, unit_buckets: int = 1024) -> None:
        super().__init__()
        self.unit_buckets = unit_buckets
        self.unit = _head(embedding_size, unit_buckets)
        self.mantissa = _head(embedding_size, 1)
        self.exponent = _head(embedding_size, 1)
        self.operator = _head(embedding_size, len(OPERATORS))

    def query_loss(self, quantity: Tensor, query: dict[str, Tensor], across_devices: bool = False) -> Tensor:
        """L_prop of the queries that hold a condition: the sum of the four parts.

        Parameters
        ----------
        quantity
            q_num, shape (queries, size).
        query
            ``operator``, ``written_value``, ``written_unit``, each of shape (queries,).
        across_devices
            Whether to average over the queries of all processes.

        Returns
        -------
        Tensor
            Scalar.
        """
        operator = query["operator"]
        losses = F.cross_entropy(
            self.unit(quantity), query["written_unit"] % self.unit_buckets, reduction="none"
        ) + F.cross_entropy(self.operator(quantity), operator.clamp(min=0), reduction="none")
        losses = losses + self._magnitude_losses(quantity, query["written_value"])
        return global_mean(losses, operator >= 0, across_devices)

    def document_loss(self, quantities: Tensor, document: dict[str, Tensor], across_devices: bool = False) -> Tensor:
        """Mantissa and exponent read off the quantities of documents, by the same heads.

        Parameters
        ----------
        quantities
            Mean token embedding of every quantity, shape (documents, quantities, size).
        document
            ``written_values`` and ``quantity_present``, shape (documents, quantities).
        across_devices
            Whether to average over the quantities of all processes.

        Returns
        -------
        Tensor
            Scalar.
        """
        losses = self._magnitude_losses(quantities, document["written_values"])
        return global_mean(losses, document["quantity_present"], across_devices)

    def _magnitude_losses(self, quantities: Tensor, written_values: Tensor) -> Tensor:
        mantissa, exponent = scientific_notation(written_values)
        return (self.mantissa(quantities).squeeze(-1) - mantissa).pow(2) + (
            self.exponent(quantities).squeeze(-1) - exponent
        ).pow(2)
