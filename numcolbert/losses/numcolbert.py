"""The composite objective of NumColBERT."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from numcolbert.losses.detection import detection_loss
from numcolbert.losses.distributed import GradientSynchronizer, gather, global_mean, is_distributed, pad_width
from numcolbert.losses.numerical_contrastive import (
    POSITIVE_SETS,
    PositiveSet,
    multi_positive_info_nce,
    positive_masks,
    quantity_similarity,
)
from numcolbert.losses.properties import PropertyHeads
from numcolbert.losses.retrieval import retrieval_loss
from numcolbert.modeling import ColBERT

__all__ = ["NumColBERTLoss"]


ENCODER_INPUTS = ("input_ids", "attention_mask", "token_type_ids", "is_query")
"""Features the model reads; the annotations stay out of its way."""


class NumColBERTLoss(nn.Module):
    """L_ret + 0.05 L_cont + 0.05 L_det + 0.05 L_prop (Fujimaki and Kato 2026).

    A PyLate-style loss for the Sentence Transformers trainer: its ``forward`` returns the weighted components as a
    dict, which the trainer sums and logs. Batches come from
    :class:`~numcolbert.training.NumericalCollator`, which adds the annotations.

    With ``positive_set=None``, all weights 0 and a model without a gate it equals ``pylate.losses.Contrastive``
    (ColBERT_ft).

    Parameters
    ----------
    model
        The model to train.
    temperature
        tau_ret.
    contrastive_temperature
        tau_cont.
    positive_set
        Positives of L_cont: ``"unit"``, ``"numeric"``, ``"joint"``, ``"separate"``, or None to leave L_cont out.
    contrastive_weight, detection_weight, property_weight
        Weights of L_cont, L_det and L_prop.
    gather_across_devices
        Whether the documents of all processes are candidates.
    gate_selection
        Which query tokens the gate scales in training: ``"gold"`` (the annotated quantity mention, so that a
        detector still learning does not disturb the gate) or ``"detected"`` (as at search time).
    document_property_weight
        Weight of mantissa and exponent heads on the quantities of documents; 0, the paper's choice, leaves them out.
    mask_false_negatives
        Whether a document of another query about the same concept–unit pair that satisfies this query too is left
        out of L_ret, instead of counting as a negative. Needs the annotation ``pair``.
    encoding_batch_size
        Documents per forward pass, taken in the order of their length so that little of a pass is padding; None
        encodes all at once. The result is the same; on a CPU a quarter of the documents is a good choice.

    Raises
    ------
    ValueError
        If an option is out of range, or a batch holds no annotations though a part needs them.

    Examples
    --------
    >>> from numcolbert.modeling.base_model import packaged_base_model
    >>> model = ColBERT(packaged_base_model(), numerical_gate=False, device="cpu")
    >>> loss = NumColBERTLoss(model, positive_set=None, detection_weight=0, property_weight=0)
    >>> features = [model.tokenize([text], is_query=query) for text, query in
    ...             [("over 5 kg", True), ("It weighs 6 kg.", False), ("It weighs 4 kg.", False)]]
    >>> list(loss(features))
    ['retrieval']
    """

    def __init__(
        self,
        model: ColBERT,
        temperature: float = 0.02,
        contrastive_temperature: float = 0.02,
        positive_set: PositiveSet | None = "unit",
        contrastive_weight: float = 0.05,
        detection_weight: float = 0.05,
        property_weight: float = 0.05,
        gather_across_devices: bool = False,
        gate_selection: Literal["gold", "detected"] = "gold",
        document_property_weight: float = 0.0,
        mask_false_negatives: bool = False,
        encoding_batch_size: int | None = None,
    ) -> None:
        super().__init__()
        if positive_set is not None and positive_set not in POSITIVE_SETS:
            raise ValueError(f"positive_set must be None or one of {', '.join(POSITIVE_SETS)}, got {positive_set!r}.")
        if gate_selection not in ("gold", "detected"):
            raise ValueError(f"gate_selection must be 'gold' or 'detected', got {gate_selection!r}.")
        for name, number in (("temperature", temperature), ("contrastive_temperature", contrastive_temperature)):
            if not number > 0:
                raise ValueError(f"{name} must be above 0, got {number}.")
        self.model = model
        self.temperature = temperature
        self.contrastive_temperature = contrastive_temperature
        self.positive_set = positive_set if contrastive_weight else None
        self.contrastive_weight = contrastive_weight
        self.detection_weight = detection_weight
        self.property_weight = property_weight
        self.document_property_weight = document_property_weight
        self.gather_across_devices = gather_across_devices
        self.gate_selection = gate_selection
        self.mask_false_negatives = mask_false_negatives
        self.encoding_batch_size = encoding_batch_size
        self.heads: PropertyHeads | None = None
        if property_weight or document_property_weight:
            self.heads = PropertyHeads(model[1].out_features if len(model) == 2 else model[-1].out_features)
            self._synchronizer = GradientSynchronizer(self.heads)

    @property
    def _colbert(self) -> ColBERT:
        # The trainer puts the wrapped model in our place on several processes.
        model: Any = self.model
        return getattr(model, "module", model)

    def forward(
        self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None
    ) -> dict[str, Tensor]:
        """Compute the weighted components.

        Parameters
        ----------
        sentence_features
            Features of the queries, the positives and any number of negatives per query, with the annotations of
            :mod:`numcolbert.losses.annotations`. All document features are padded to one length.
        labels
            Unused; part of the trainer's protocol.

        Returns
        -------
        dict
            Scalars ``retrieval``, ``contrastive``, ``detection``, ``property`` and ``document_property``, those
            with weight 0 left out; their sum is the loss.
        """
        query_features, *document_features = sentence_features
        self._check(query_features)
        if self.heads is not None:
            self._synchronizer.start()
        query, queries, ungated = self._encode_queries(query_features)
        documents = self._encode_documents(document_features)
        documents_mask = torch.stack([self._document_mask(features) for features in document_features], dim=1)

        with torch.autocast(queries.device.type, enabled=False):
            return self._components(query, queries, ungated, documents, documents_mask, document_features)

    def _components(
        self,
        query: dict[str, Tensor],
        queries: Tensor,
        ungated: Tensor,
        documents: Tensor,
        documents_mask: Tensor,
        document_features: list[dict[str, Tensor]],
        score_batch_size: int | None = None,
    ) -> dict[str, Tensor]:
        across = self.gather_across_devices and is_distributed()
        scoring = torch.ones_like(query["input_ids"], dtype=torch.bool)
        if not self._colbert.do_query_expansion:
            scoring = query["attention_mask"].bool()
        candidates, candidates_mask, rank = documents, documents_mask, 0
        if across:
            candidates = gather(pad_width(documents, dim=2))
            candidates_mask = gather(pad_width(documents_mask, dim=2))
            rank = torch.distributed.get_rank()
        quantities = {}
        if self._needs_annotations:
            quantities = {
                key: torch.stack([features[key] for features in document_features], dim=1)
                for key in ("values", "units", "written_values", "quantity_present", "quantity_index")
            }
        annotations = {key: quantities[key] for key in ("values", "units", "quantity_present") if quantities}
        if across:
            annotations = {key: gather(pad_width(value, dim=2)) for key, value in annotations.items()}
        annotations = {key: value.flatten(0, 1) for key, value in annotations.items()}
        false_negatives = None
        if self.mask_false_negatives:
            pairs = gather(query["pair"]) if across else query["pair"]
            same_pair = (query["pair"][:, None] == pairs).repeat_interleave(len(document_features), dim=1)
            false_negatives = same_pair & positive_masks("joint", query, annotations)[0]
        components = {
            "retrieval": retrieval_loss(
                queries,
                candidates,
                candidates_mask,
                queries_mask=None if self._colbert.do_query_expansion else scoring,
                temperature=self.temperature,
                first_label=rank * len(queries),
                false_negatives=false_negatives,
                batch_size=score_batch_size,
            )
        }
        if "numerical_logits" in query and "quantity_mask" in query:
            # Present even with weight 0, so that every parameter takes part in every step (DDP counts on it).
            components["detection"] = self.detection_weight * detection_loss(
                query["numerical_logits"], query["quantity_mask"], scoring, across
            )
        if self.positive_set is None and self.heads is None:
            return components

        quantity_mask = query["quantity_mask"].unsqueeze(-1).to(ungated.dtype)
        q_num = (ungated * quantity_mask).sum(dim=1) / quantity_mask.sum(dim=1).clamp(min=1)
        if self.positive_set is not None:
            similarity = quantity_similarity(q_num, candidates.flatten(0, 1), candidates_mask.flatten(0, 1))
            losses = [
                global_mean(*multi_positive_info_nce(similarity, positives, self.contrastive_temperature), across)
                for positives in positive_masks(self.positive_set, query, annotations)
            ]
            components["contrastive"] = self.contrastive_weight * torch.stack(losses).sum()
        if self.heads is not None and self.property_weight:
            components["property"] = self.property_weight * self.heads.query_loss(q_num, query, across)
        if self.heads is not None and self.document_property_weight:
            means = _quantity_means(
                documents.flatten(0, 1),
                quantities["quantity_index"].flatten(0, 1),
                quantities["quantity_present"].shape[-1],
            )
            local = {key: value.flatten(0, 1) for key, value in quantities.items()}
            components["document_property"] = self.document_property_weight * self.heads.document_loss(
                means, local, across
            )
        return components

    @property
    def _needs_annotations(self) -> bool:
        return bool(
            self.positive_set is not None
            or self.property_weight
            or self.document_property_weight
            or self.mask_false_negatives
        )

    def _check(self, query_features: dict[str, Tensor]) -> None:
        gated = self._colbert.numerical_gate is not None
        needed = self._needs_annotations or (gated and (self.detection_weight or self.gate_selection == "gold"))
        if needed and "quantity_mask" not in query_features:
            raise ValueError(
                "This batch holds no numerical annotations: give the trainer "
                "data_collator=numcolbert.training.NumericalCollator(model), or set positive_set=None, all weights to "
                "0 and mask_false_negatives=False."
            )

    def _encode_queries(self, features: dict[str, Tensor]) -> tuple[dict[str, Any], Tensor, Tensor]:
        if self._colbert.numerical_gate is None:
            output = self.model(features)
            queries = F.normalize(output["token_embeddings"].float(), p=2, dim=-1)
            return output, queries, queries
        if self.gate_selection == "gold" and "quantity_mask" in features:
            features = {**features, "gate_mask": features["quantity_mask"]}
        output = self.model(features)
        return output, output["token_embeddings"], output["ungated_embeddings"]

    def _encode_documents(self, document_features: list[dict[str, Tensor]]) -> Tensor:
        """Unit-norm embeddings of all documents, shape (queries, documents per query, tokens, size)."""
        passes = _by_length(document_features, self.encoding_batch_size)
        return _assemble([self._encode_pass(tokens) for _, tokens in passes], passes, document_features)

    def _encode_pass(self, tokens: dict[str, Tensor]) -> Tensor:
        return F.normalize(self.model(tokens)["token_embeddings"].float(), p=2, dim=-1)

    def _document_mask(self, features: dict[str, Tensor]) -> Tensor:
        skiplist = torch.tensor(self._colbert.skiplist, device=features["input_ids"].device)
        return features["attention_mask"].bool() & ~torch.isin(features["input_ids"], skiplist)


_Passes = list[tuple[Tensor, dict[str, Tensor]]]
"""Which documents a forward pass encodes, and their tokens."""


def _by_length(document_features: list[dict[str, Tensor]], batch_size: int | None) -> _Passes:
    """Cut documents into passes of similar length; one pass, padded as it came, if ``batch_size`` is None."""
    tokens = {
        key: torch.cat([features[key] for features in document_features])
        for key in document_features[0]
        if key in ENCODER_INPUTS
    }
    lengths = tokens["attention_mask"].sum(dim=1)
    # Longest first: the largest pass comes before memory is fragmented by the others.
    order = torch.argsort(lengths, descending=True)
    passes = []
    for chunk in order.split(batch_size or len(order)):
        width = int(lengths[chunk[0]]) if batch_size else tokens["input_ids"].shape[1]
        part = {key: value[chunk] for key, value in tokens.items()}
        passes.append((chunk, {key: value[:, :width] if value.ndim > 1 else value for key, value in part.items()}))
    return passes


def _assemble(embeddings: list[Tensor], passes: _Passes, document_features: list[dict[str, Tensor]]) -> Tensor:
    """Put the embeddings of all passes in the order of the batch."""
    total = document_features[0]["input_ids"].shape[1]
    padded = torch.cat([F.pad(part, (0, 0, 0, total - part.shape[1])) for part in embeddings])
    documents = padded[torch.argsort(torch.cat([chunk for chunk, _ in passes]))]
    return documents.unflatten(0, (len(document_features), -1)).transpose(0, 1)


def _quantity_means(documents: Tensor, quantity_index: Tensor, quantities: int) -> Tensor:
    """Mean token embedding of every quantity, shape (documents, quantities, size)."""
    numbers = torch.arange(1, quantities + 1, device=documents.device)
    members = (quantity_index.unsqueeze(1) == numbers[None, :, None]).to(documents.dtype)
    return members @ documents / members.sum(dim=-1, keepdim=True).clamp(min=1)
