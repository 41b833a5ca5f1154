"""The composite objective with gradient caching: large batches in little memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from pylate.losses.cached_contrastive import RandContext
from torch import Tensor

from numcolbert.losses.numcolbert import ENCODER_INPUTS, NumColBERTLoss, _assemble, _by_length

__all__ = ["CachedNumColBERTLoss"]

Features = dict[str, Tensor]

QUERY_OUTPUTS = ("token_embeddings", "ungated_embeddings", "numerical_logits")
"""What the objective reads of an encoded query."""


class CachedNumColBERTLoss(NumColBERTLoss):
    """The objective and gradients of :class:`NumColBERTLoss` in the memory of a mini-batch (Gao et al. 2021).

    All texts are encoded without gradients, a mini-batch at a time; the objective's gradients are taken with respect
    to these embeddings; on the way back every mini-batch is encoded once more, now with gradients, which are handed
    the cached ones. Memory for the encoder's activations then grows with ``mini_batch_size`` and no longer with the
    batch, for the price of a second forward pass. Scores are computed ``mini_batch_size`` queries at a time.

    Parameters
    ----------
    model
        The model to train.
    mini_batch_size
        Texts per forward pass. Documents are taken in the order of their length.
    **options
        As for :class:`NumColBERTLoss`, ``encoding_batch_size`` excepted.

    Raises
    ------
    ValueError
        If ``mini_batch_size`` is below 1, or as for :class:`NumColBERTLoss`.

    Notes
    -----
    The components are summed with equal weights, as the Sentence Transformers trainer does: ``retrieval`` carries the
    gradient of the sum, the others carry none.

    References
    ----------
    Gao, Zhang, Han and Callan (2021). Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup.

    Examples
    --------
    >>> from numcolbert import ColBERT
    >>> from numcolbert.modeling.base_model import packaged_base_model
    >>> model = ColBERT(packaged_base_model(), numerical_gate=False, device="cpu")
    >>> loss = CachedNumColBERTLoss(
    ...     model, mini_batch_size=1, positive_set=None, detection_weight=0, property_weight=0
    ... )
    >>> features = [model.tokenize([text], is_query=query) for text, query in
    ...             [("over 5 kg", True), ("It weighs 6 kg.", False), ("It weighs 4 kg.", False)]]
    >>> loss(features)["retrieval"].backward()
    >>> model[1].linear.weight.grad.shape
    torch.Size([128, 384])
    """

    def __init__(self, model: Any, mini_batch_size: int = 32, **options: Any) -> None:
        if mini_batch_size < 1:
            raise ValueError(f"mini_batch_size must be at least 1, got {mini_batch_size}.")
        if options.get("encoding_batch_size") is not None:
            raise ValueError("mini_batch_size is the number of texts per pass: leave encoding_batch_size out.")
        super().__init__(model, **options)
        self.mini_batch_size = mini_batch_size

    def forward(self, sentence_features: Iterable[Features], labels: Tensor | None = None) -> dict[str, Tensor]:
        """Compute the weighted components; see :meth:`NumColBERTLoss.forward`.

        Parameters
        ----------
        sentence_features
            As for :class:`NumColBERTLoss`.
        labels
            Unused; part of the trainer's protocol.

        Returns
        -------
        dict
            The components of :class:`NumColBERTLoss`.
        """
        query_features, *document_features = sentence_features
        self._check(query_features)
        if self.heads is not None:
            self._synchronizer.start()
        query_passes = self._query_passes(query_features)
        document_passes = _by_length(document_features, self.mini_batch_size)
        passes = query_passes + [tokens for _, tokens in document_passes]
        states: list[RandContext] = []
        cached: list[Features] = []
        with torch.no_grad():
            for number, tokens in enumerate(passes):
                states.append(RandContext(tokens["input_ids"]))
                cached.append(self._encode(tokens, is_query=number < len(query_passes)))
        training = torch.is_grad_enabled()
        if training:
            cached = [{key: value.requires_grad_() for key, value in outputs.items()} for outputs in cached]

        encoded = {key: torch.cat([part[key] for part in cached[: len(query_passes)]]) for key in cached[0]}
        query = {**query_features, **encoded}
        embeddings = [outputs["token_embeddings"] for outputs in cached[len(query_passes) :]]
        with torch.autocast(query["input_ids"].device.type, enabled=False):
            components = self._components(
                query,
                query["token_embeddings"],
                query.get("ungated_embeddings", query["token_embeddings"]),
                _assemble(embeddings, document_passes, document_features),
                torch.stack([self._document_mask(features) for features in document_features], dim=1),
                document_features,
                score_batch_size=self.mini_batch_size,
            )
        if not training:
            return components

        heads = [] if self.heads is None else list(self.heads.parameters())
        leaves = [value for outputs in cached for value in outputs.values()]
        total = torch.stack(list(components.values())).sum()
        gradients = torch.autograd.grad(total, [*leaves, *heads], allow_unused=True)
        leaf_gradients = iter(gradients[: len(leaves)])
        wanted = [{key: next(leaf_gradients) for key in outputs} for outputs in cached]
        no_sync = getattr(self.model, "no_sync", nullcontext)
        head_gradients = list(zip(heads, gradients[len(leaves) :], strict=True))

        device = query["input_ids"].device.type
        autocast = torch.autocast(device, torch.get_autocast_dtype(device), torch.is_autocast_enabled(device))

        def propagate(factor: Tensor) -> None:
            # Inside the trainer's backward pass, outside its autocast: factor holds what it scaled the loss by.
            with torch.enable_grad(), autocast:
                # Queries last: only they use every parameter, which DDP counts on in the pass it synchronises.
                for number in reversed(range(len(passes))):
                    with nullcontext() if number == 0 else no_sync():
                        with states[number]:
                            outputs = self._encode(passes[number], is_query=number < len(query_passes))
                        _hand_over([(outputs[key], gradient) for key, gradient in wanted[number].items()], factor)
                _hand_over(head_gradients, factor)

        result = {name: component.detach() for name, component in components.items()}
        result["retrieval"].requires_grad_().register_hook(propagate)
        return result

    def _query_passes(self, features: Features) -> list[Features]:
        kept = (*ENCODER_INPUTS, "quantity_mask")
        parts = {key: value.split(self.mini_batch_size) for key, value in features.items() if key in kept}
        return [dict(zip(parts, values, strict=True)) for values in zip(*parts.values(), strict=True)]

    def _encode(self, tokens: Features, is_query: bool) -> Features:
        """Encode a mini-batch as the plain loss does; of a gated query, all that the objective reads."""
        tokens = dict(tokens)  # the modules add their outputs
        if not is_query:
            return {"token_embeddings": self._encode_pass(tokens)}
        output, queries, _ = self._encode_queries(tokens)
        if self._colbert.numerical_gate is None:
            return {"token_embeddings": queries}
        return {key: output[key] for key in QUERY_OUTPUTS}


def _hand_over(targets: Sequence[tuple[Tensor, Tensor | None]], factor: Tensor) -> None:
    """Run the backward pass of these tensors, started with their cached gradients."""
    products = [(tensor * gradient).sum() for tensor, gradient in targets if gradient is not None]
    if products:
        (torch.stack(products).sum() * factor).backward()
