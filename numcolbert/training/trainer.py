"""The Sentence Transformers trainer, with what numbers and honest resuming ask for."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformerTrainer
from torch import Tensor

from numcolbert.losses import NumColBERTLoss
from numcolbert.training.collator import NumericalCollator

__all__ = ["NumColBERTTrainer", "last_checkpoint"]

HEADS_FILE = "property_heads.safetensors"


class NumColBERTTrainer(SentenceTransformerTrainer):
    """Train a :class:`~numcolbert.ColBERT` with :class:`~numcolbert.losses.NumColBERTLoss`.

    Differs from its parent in four things: the collator is a :class:`NumericalCollator` unless another is given;
    property heads are saved with every checkpoint and come back on resuming; no pickled arguments are written; the
    log holds ``tokens_per_second`` (tokens of queries and documents that are not padding, on this process).

    Parameters
    ----------
    *args, **kwargs
        As for ``SentenceTransformerTrainer``.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if kwargs.get("data_collator") is None:
            kwargs["data_collator"] = NumericalCollator(kwargs["model"])
        super().__init__(*args, **kwargs)
        self._tokens = 0
        self._tokens_since = time.monotonic()

    def training_step(self, model: torch.nn.Module, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Tensor:
        """Run one step and count its tokens."""
        self._tokens += sum(int(value.sum()) for key, value in inputs.items() if key.endswith("_attention_mask"))
        return super().training_step(model, inputs, *args, **kwargs)

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        """Log, with the training speed beside the loss."""
        if "loss" in logs and self._tokens:
            now = time.monotonic()
            logs = {**logs, "tokens_per_second": round(self._tokens / max(now - self._tokens_since, 1e-9))}
            self._tokens, self._tokens_since = 0, now
        super().log(logs, *args, **kwargs)

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        folder = Path(output_dir if output_dir is not None else self.args.output_dir)
        self.model.save_pretrained(str(folder))
        if isinstance(self.loss, NumColBERTLoss) and self.loss.heads is not None:
            save_file(self.loss.heads.state_dict(), folder / HEADS_FILE)

    def _load_from_checkpoint(self, checkpoint_path: str) -> None:
        loaded = type(self.model).from_pretrained(checkpoint_path, device="cpu")
        self.model.load_state_dict(loaded.state_dict())
        heads = Path(checkpoint_path) / HEADS_FILE
        if isinstance(self.loss, NumColBERTLoss) and self.loss.heads is not None:
            if not heads.exists():
                raise FileNotFoundError(
                    f"The checkpoint {Path(checkpoint_path).name} holds no {HEADS_FILE}: it was not written by this "
                    "loss; start the run anew in another output_dir."
                )
            self.loss.heads.load_state_dict(load_file(heads))


def last_checkpoint(folder: str | Path) -> str | None:
    """Find the newest checkpoint that was written to its end.

    The trainer writes ``trainer_state.json`` last, so a checkpoint without a readable one belongs to a run killed
    while saving, and the one before it counts.

    Parameters
    ----------
    folder
        Folder of the checkpoints.

    Returns
    -------
    str or None
        The checkpoint's folder, None if there is none.

    Examples
    --------
    >>> last_checkpoint("no-such-folder") is None
    True
    """
    checkpoints = [path for path in Path(folder).glob("checkpoint-*") if path.name.split("-")[-1].isdigit()]
    for checkpoint in sorted(checkpoints, key=lambda path: int(path.name.split("-")[-1]), reverse=True):
        try:
            state = json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if "global_step" in state and (checkpoint / "modules.json").exists():
            return str(checkpoint)
    return None
