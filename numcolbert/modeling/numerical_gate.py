"""The numerical gate: the detector and the gate of NumColBERT, applied to query token embeddings only.

A copy of this file lies in the root of every saved checkpoint, so that a plain PyLate opens it with
``trust_remote_code=True``. It therefore imports nothing of this package.
"""

from __future__ import annotations

import json
import math
import os
from typing import Any

import torch
from pylate.models import Dense
from safetensors.torch import load_file
from torch import Tensor, nn

__all__ = ["NumericalGate"]

FORMAT_VERSION = 1
"""Version of the saved configuration; a newer one is refused."""

UNTRAINED_DETECTION = 0.05
"""P(numerical) of an untrained detector: far below any sensible threshold, so that a fresh gate changes nothing."""


def _mlp(embedding_size: int, hidden_size: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(embedding_size, hidden_size), nn.ReLU(), nn.Linear(hidden_size, 1))


@torch.no_grad()
def _start_at(mlp: nn.Sequential, output: float) -> None:
    """Let an untrained MLP answer nearly the same for every token."""
    last = mlp[-1]
    assert isinstance(last, nn.Linear)
    last.bias.fill_(output)
    last.weight.mul_(0.1)


class NumericalGate(Dense):
    r"""Detect the numerical tokens of a query and scale their embeddings.

    Every query token embedding is brought to unit norm. Where the detector's probability exceeds ``threshold``,
    the embedding ``q_i`` becomes ``g_i q_i`` with ``g_i = |Q| sigmoid(MLP(q_i) + b)`` in ``(0, |Q|)``, ``|Q|`` being
    the number of query tokens that score (Fujimaki and Kato 2026, eq. 4). ``b`` is no parameter but the choice where
    an untrained gate starts: ``-log(|Q| - 1)`` for ``g = 1``, ``0`` for ``g = |Q| / 2``. Documents pass untouched.

    The class derives from PyLate's ``Dense`` because PyLate's loader keeps no other kind of module.

    Parameters
    ----------
    embedding_size
        Size of the token embeddings.
    hidden_size
        Width of the hidden layer of both two-layer MLPs. Defaults to ``embedding_size``.
    threshold
        Probability above which a query token counts as numerical (tau in the paper).
    start
        Where an untrained gate starts: ``"one"`` (g near 1, the ranking of the encoder is kept) or ``"half"``
        (g near |Q| / 2, as a plain sigmoid would).
    query_prefix_id
        Token id at position 1 of every query, by which a query is told from a document where the features hold no
        ``is_query`` mark. None for a model without prefixes.
    query_expansion
        Whether the padding of a query scores (ColBERT's query expansion); decides ``|Q|``.
    format_version
        Version of the configuration the module was saved with.

    Raises
    ------
    ValueError
        If ``start`` or ``threshold`` is out of range, or the configuration comes from a newer format.

    Examples
    --------
    >>> gate = NumericalGate(embedding_size=8, query_prefix_id=7)
    >>> features = {
    ...     "input_ids": torch.tensor([[1, 7, 5, 2]]),
    ...     "attention_mask": torch.ones(1, 4, dtype=torch.long),
    ...     "token_embeddings": torch.randn(1, 4, 8),
    ... }
    >>> gate(features)["token_embeddings"].norm(dim=-1).allclose(torch.ones(1, 4))
    True
    """

    def __init__(
        self,
        embedding_size: int,
        hidden_size: int | None = None,
        threshold: float = 0.5,
        start: str = "one",
        query_prefix_id: int | None = None,
        query_expansion: bool = True,
        format_version: int = FORMAT_VERSION,
    ) -> None:
        nn.Module.__init__(self)  # Dense's own linear layer has no place here
        if format_version > FORMAT_VERSION:
            raise ValueError(
                f"This numerical gate was saved in format {format_version}; formats up to {FORMAT_VERSION} are "
                "understood here: upgrade numcolbert."
            )
        if start not in ("one", "half"):
            raise ValueError(f"start must be 'one' or 'half', got {start!r}.")
        if not 0 < threshold < 1:
            raise ValueError(f"threshold must lie between 0 and 1, got {threshold}.")
        self.in_features = self.out_features = embedding_size
        self.hidden_size = hidden_size or embedding_size
        self.threshold = threshold
        self.start = start
        self.query_prefix_id = query_prefix_id
        self.query_expansion = query_expansion
        self.detector = _mlp(embedding_size, self.hidden_size)
        self.gate = _mlp(embedding_size, self.hidden_size)
        _start_at(self.detector, math.log(UNTRAINED_DETECTION / (1 - UNTRAINED_DETECTION)))
        _start_at(self.gate, 0.0)

    def is_query(self, features: dict[str, Any]) -> Tensor:
        """Tell queries from documents.

        Parameters
        ----------
        features
            Features of a batch; the mark ``is_query`` (bool, shape (batch,)) is preferred to the prefix token.

        Returns
        -------
        Tensor
            Bool, shape (batch,).
        """
        if "is_query" in features:
            return features["is_query"]
        input_ids = features["input_ids"]
        if self.query_prefix_id is None or input_ids.shape[1] < 2:
            return torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)
        return input_ids[:, 1] == self.query_prefix_id

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        """Gate the queries of a batch.

        Parameters
        ----------
        features
            ``token_embeddings`` of shape (batch, tokens, embedding_size), ``input_ids`` and ``attention_mask`` of
            shape (batch, tokens); optionally ``is_query`` (batch,) and ``gate_mask`` (batch, tokens, bool), which
            replaces the detector's decision (gold spans in training).

        Returns
        -------
        dict
            The features; for queries, ``token_embeddings`` are gated and these are added, all per token:
            ``ungated_embeddings`` (unit norm), ``numerical_logits``, ``gate_values`` and ``is_gated``.
        """
        is_query = self.is_query(features)
        if not is_query.any():
            return features
        token_embeddings = features["token_embeddings"]
        # The detector and the gate decide by small differences: never in a reduced autocast precision.
        with torch.autocast(token_embeddings.device.type, enabled=False):
            queries = nn.functional.normalize(token_embeddings.to(self.gate[-1].weight.dtype), p=2, dim=-1)
            logits = self.detector(queries).squeeze(-1)
            scoring = features["attention_mask"].bool()
            if self.query_expansion:
                scoring = torch.ones_like(scoring)
            size = scoring.sum(dim=1, keepdim=True).to(queries.dtype)
            offset = -torch.log((size - 1).clamp(min=1)) if self.start == "one" else torch.zeros_like(size)
            gate_values = size * torch.sigmoid(self.gate(queries).squeeze(-1) + offset)
            detected = features.get("gate_mask", torch.sigmoid(logits) > self.threshold)
            is_gated = detected & scoring & is_query.unsqueeze(1)
            gated = torch.where(is_gated.unsqueeze(-1), gate_values.unsqueeze(-1) * queries, queries)
        features["token_embeddings"] = (
            gated if bool(is_query.all()) else torch.where(is_query[:, None, None], gated, token_embeddings.to(gated))
        )
        features["ungated_embeddings"] = queries
        features["numerical_logits"] = logits
        features["gate_values"] = gate_values
        features["is_gated"] = is_gated
        return features

    def get_config_dict(self) -> dict[str, Any]:
        """Return what ``config.json`` holds: the arguments of the constructor."""
        return {
            "embedding_size": self.in_features,
            "hidden_size": self.hidden_size,
            "threshold": self.threshold,
            "start": self.start,
            "query_prefix_id": self.query_prefix_id,
            "query_expansion": self.query_expansion,
            "format_version": FORMAT_VERSION,
        }

    def __repr__(self) -> str:
        return f"NumericalGate({self.get_config_dict()})"

    @staticmethod
    def load(input_path: str | os.PathLike[str]) -> NumericalGate:
        """Load a saved gate from a folder holding ``config.json`` and ``model.safetensors``.

        Parameters
        ----------
        input_path
            The folder.

        Raises
        ------
        ValueError
            If the configuration holds an unknown key, or the weights do not fit it or are not finite.
        """
        with open(os.path.join(input_path, "config.json"), encoding="utf-8") as file:
            config = json.load(file)
        try:
            module = NumericalGate(**config)
        except TypeError as error:
            raise ValueError(
                f"The gate configuration in {input_path} does not fit this version of numcolbert ({error}): "
                "upgrade numcolbert, or restore config.json."
            ) from error
        weights = load_file(os.path.join(input_path, "model.safetensors"))
        expected = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
        found = {name: tuple(tensor.shape) for name, tensor in weights.items()}
        if expected != found:
            raise ValueError(
                f"The gate weights in {input_path} do not fit its config.json (expected {expected}, found {found}): "
                "the checkpoint is damaged or mixed; save it again."
            )
        if not all(bool(tensor.isfinite().all()) for tensor in weights.values()):
            raise ValueError(f"The gate weights in {input_path} hold NaN or infinite values: train it again.")
        module.load_state_dict(weights)
        return module
