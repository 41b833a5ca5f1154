"""What a checkpoint must be before it is loaded: no code, no pickles, weights that are finite and fit."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NoReturn

import sentence_transformers.models
import torch
import transformers
from pylate.models import Dense
from safetensors import SafetensorError, safe_open
from transformers import AutoConfig, AutoModel
from transformers.conversion_mapping import get_checkpoint_conversion_mapping
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from numcolbert.modeling.numerical_gate import FORMAT_VERSION, NumericalGate

__all__ = ["GATE_REFERENCE", "check_checkpoint", "hub_id", "module_class", "refuse_missing_weights"]

GATE_REFERENCE = "numerical_gate.NumericalGate"
"""How ``modules.json`` names the gate: file and class in the repository root, as plain PyLate resolves it."""

_PICKLES = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.pickle", "*.ckpt", "*.h5", "*.msgpack")
_MODULE_CLASSES = ("Transformer", "Dense", "Pooling", "Normalize")
"""Modules of Sentence Transformers that are loaded; PyLate leaves Pooling and Normalize out of a ColBERT."""
_HARMLESS_FILE_KEYS = ("special_tokens_map_file", "tokenizer_config_file")
"""Keys of a tokenizer's configuration that tell where it once came from; nothing is read from there."""


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def module_class(reference: str) -> type | None:
    """Return our own class for a module that ``modules.json`` names; no code of the repository is ever looked at.

    Parameters
    ----------
    reference
        Value of ``type``.

    Returns
    -------
    type or None
        None for a class that is not known here.

    Examples
    --------
    >>> module_class("numerical_gate.NumericalGate").__name__
    'NumericalGate'
    """
    if reference == GATE_REFERENCE:
        return NumericalGate
    if reference == "pylate.models.Dense.Dense":
        return Dense
    package, _, name = reference.rpartition(".")
    if package.split(".")[0] == "sentence_transformers" and name in _MODULE_CLASSES:
        return getattr(sentence_transformers.models, name)
    return None


def hub_id(folder: str | os.PathLike[str]) -> str | None:
    """Return the Hub id of a snapshot in the Hub's cache, None for any other folder.

    Parameters
    ----------
    folder
        The folder.

    Examples
    --------
    >>> hub_id("cache/models--org--name/snapshots/0123456789abcdef0123456789abcdef01234567")
    'org/name'
    """
    path = Path(folder)
    repository = path.parent.parent.name
    if path.parent.name != "snapshots" or not repository.startswith("models--"):
        return None
    return repository.removeprefix("models--").replace("--", "/")


def check_checkpoint(folder: str | os.PathLike[str], *, trust_remote_code: bool = False, weights: bool = True) -> str:
    """Check everything that loading a checkpoint relies on, before any of it is loaded.

    Parameters
    ----------
    folder
        The folder.
    trust_remote_code
        Whether modules and encoders that need code of the repository pass.
    weights
        Whether the weights are there to be checked too.

    Returns
    -------
    str
        What it is: ``"NumColBERT"``, ``"PyLate ColBERT"``, ``"Stanford ColBERT"``, ``"Sentence Transformers model"``
        or ``"plain encoder"``.

    Raises
    ------
    ValueError
        If a file is missing, malformed or of a newer format; if a path leads out of the folder; if the weights are
        pickled, do not fit the configuration, or are not finite; if code of the repository would be needed.
    """
    return _Check(Path(folder), hub_id(folder) or os.fspath(folder), trust_remote_code, weights).run()


def refuse_missing_weights(label: str, files: Iterable[str]) -> NoReturn:
    """Say why there are no weights to load.

    Parameters
    ----------
    label
        What to call the checkpoint.
    files
        The files it has.

    Raises
    ------
    ValueError
        Always: the weights are pickled, or absent.
    """
    pickled = sorted(file for file in files if any(fnmatchcase(file, pattern) for pattern in _PICKLES))
    if pickled:
        raise ValueError(
            f"{label} holds its weights as {pickled[0]}, a format that can run code when it is read; only safetensors "
            "are loaded. Convert them at https://huggingface.co/spaces/safetensors/convert, or with torch.load(..., "
            "weights_only=True) and safetensors.torch.save_file."
        )
    raise ValueError(f"{label} holds no weights (model.safetensors): the upload or the copy is incomplete.")


class _Check:
    """The checks of one checkpoint."""

    def __init__(self, folder: Path, label: str, trust_remote_code: bool, weights: bool) -> None:
        self.folder = folder
        self.label = label
        self.trusted = trust_remote_code
        self.with_weights = weights

    def run(self) -> str:
        if (self.folder / "adapter_config.json").exists():
            raise ValueError(
                f"{self.label} holds an adapter (adapter_config.json), whose base model lies elsewhere: merge the two "
                "(merge_and_unload in peft) and save the result."
            )
        if (self.folder / "modules.json").exists():
            return self.check_modules()
        if not (self.folder / "config.json").exists():
            raise ValueError(
                f"{self.label} is not a model: it holds neither modules.json nor config.json. Is the path right?"
            )
        config = self.read_json("config.json")
        width, shapes = self.check_encoder("")
        if (config.get("architectures") or [None])[0] != "HF_ColBERT":
            return "plain encoder"
        if (self.folder / "artifact.metadata").exists():
            self.check_settings(self.read_json("artifact.metadata"), "artifact.metadata")
        if shapes is not None:
            found = shapes.get("linear.weight")
            if found is None or len(found) != 2 or found[1] != width:
                raise ValueError(
                    f"{self.label} is a Stanford ColBERT, but linear.weight in model.safetensors has shape {found} "
                    f"where (any, {width}) is expected: the checkpoint is damaged."
                )
        return "Stanford ColBERT"

    def check_modules(self) -> str:
        modules = self.read_json("modules.json", list)
        kinds: list[str] = []
        width: int | None = None
        for position, module in enumerate(modules):
            where = f"entry {position} of modules.json in {self.label}"
            if not isinstance(module, dict) or not all(
                isinstance(module.get(k), str) for k in ("name", "path", "type")
            ):
                raise ValueError(f"{_capital(where)} lacks a name, path or type: save the model again.")
            path, reference = module["path"], module["type"]
            self.check_path(path, where)
            known = module_class(reference)
            if known is None:
                if self.trusted:
                    kinds.append(reference)
                    width = None
                    continue
                raise ValueError(
                    f"{_capital(where)} is a {reference}, which is none of the modules that are loaded "
                    "here (Transformer, Dense, Pooling, Normalize, PyLate's Dense, the numerical gate): read its code "
                    "in the repository, and pass trust_remote_code=True if you trust it."
                )
            if (position == 0) != (known.__name__ == "Transformer"):
                raise ValueError(
                    f"{_capital(where)} is a {reference}: the first module, and no other, is the Transformer."
                )
            if known is NumericalGate and position != len(modules) - 1:
                raise ValueError(f"{_capital(where)} is the numerical gate, which comes last: save the model again.")
            if known.__name__ == "Transformer":
                width, _ = self.check_encoder(path)
            elif known is NumericalGate:
                self.check_gate(path, width)
            elif known.__name__ == "Dense":
                width = self.check_dense(path, width)
            kinds.append("NumericalGate" if known is NumericalGate else f"{reference.split('.')[0]}.{known.__name__}")
        if not kinds:
            raise ValueError(f"modules.json of {self.label} is empty: save the model again.")
        if (self.folder / "config_sentence_transformers.json").exists():
            file = "config_sentence_transformers.json"
            self.check_settings(self.read_json(file), file)
        if kinds[-1] == "NumericalGate":
            self.check_vocabulary()
            return "NumColBERT"
        return "PyLate ColBERT" if "pylate.Dense" in kinds else "Sentence Transformers model"

    def check_path(self, path: str, where: str) -> None:
        parts = Path(path).parts
        if os.path.isabs(path) or ".." in parts or "\\" in path or ":" in path or "\0" in path:
            raise ValueError(f"{_capital(where)} points out of the model's folder ({path!r}): refused.")

    def check_settings(self, config: dict[str, Any], file: str) -> None:
        for key in ("query_length", "document_length", "query_maxlen", "doc_maxlen"):
            value = config.get(key)
            if value is not None and (type(value) is not int or not 2 <= value <= 1_000_000):
                raise ValueError(f"{key} in {file} of {self.label} is {value!r}: a number of tokens is expected.")
        for key in ("query_prefix", "document_prefix"):
            if not isinstance(config.get(key), str | None):
                raise ValueError(f"{key} in {file} of {self.label} is {config[key]!r}: a text is expected.")

    def check_encoder(self, path: str) -> tuple[int | None, dict[str, tuple[int, ...]] | None]:
        """Return the width of the token embeddings, and the shapes of the weights if they are there."""
        settings = self.read_json(Path(path) / "sentence_bert_config.json", missing={})
        unknown = {key for key, value in settings.items() if value} - {"max_seq_length", "do_lower_case"}
        if unknown and not self.trusted:
            # model_args could ask for pickles, tokenizer_name_or_path for another repository.
            raise ValueError(
                f"sentence_bert_config.json of {self.label} sets {', '.join(sorted(unknown))}, which is not loaded "
                "from a repository: pass it as model_kwargs, tokenizer_kwargs or config_kwargs, or "
                "trust_remote_code=True."
            )
        config = self.read_json(Path(path) / "config.json")
        for key in ("attn_implementation", "_attn_implementation", "transformers_weights"):
            for part in (config, *(value for value in config.values() if isinstance(value, dict))):
                if (key == "transformers_weights" and key in part) or "/" in str(part.get(key, "")):
                    raise ValueError(f"config.json of {self.label} sets {key} to {part[key]!r}: remove the key.")
        model_type = config.get("model_type")
        if not isinstance(model_type, str) or model_type not in CONFIG_MAPPING:
            if "auto_map" not in config:
                raise ValueError(
                    f"config.json of {self.label} names the encoder {model_type!r}, which this version of transformers "
                    f"({transformers.__version__}) does not know: upgrade transformers."
                )
            if not self.trusted:
                raise ValueError(
                    f"The encoder of {self.label} ({model_type!r}) is code in its repository: read it, and pass "
                    "trust_remote_code=True if you trust it."
                )
            return None, None
        try:
            parsed = AutoConfig.from_pretrained(self.folder / path, trust_remote_code=False, local_files_only=True)
            width = int(parsed.get_text_config().hidden_size)
        except Exception as error:
            raise ValueError(f"config.json of {self.label} is no valid {model_type} configuration ({error}).") from None
        self.check_tokenizer(path)
        if not self.with_weights:
            return width, None
        shapes = self.read_weights(path)
        self.check_encoder_shapes(parsed, shapes)
        return width, shapes

    def check_tokenizer(self, path: str) -> None:
        """Refuse paths: transformers would read the vocabulary from there instead of from the model's folder."""
        for name in ("tokenizer_config.json", "special_tokens_map.json"):
            for key, value in self.read_json(Path(path) / name, missing={}).items():
                if not key.endswith(("_file", "_files")) or key in _HARMLESS_FILE_KEYS or value is None:
                    continue
                files = value if key == "fast_tokenizer_files" and isinstance(value, list) else [value]
                # A path is taken relative to the working folder, except that of a versioned tokenizer.json.
                if key != "fast_tokenizer_files" or not all(
                    isinstance(file, str) and re.fullmatch(r"tokenizer[\w.-]*\.json", file) for file in files
                ):
                    raise ValueError(f"{name} of {self.label} sets {key} to {value!r}, a path: remove the key.")

    def check_encoder_shapes(self, config: Any, shapes: dict[str, tuple[int, ...]]) -> None:
        layers = getattr(config, "num_hidden_layers", 0)
        if not isinstance(layers, int) or layers > len(shapes):
            raise ValueError(
                f"The weights of {self.label} do not fit its config.json, which says {layers} layers, while there are "
                f"{len(shapes)} tensors: the checkpoint is damaged or mixed."
            )
        try:
            with torch.device("meta"):
                encoder = AutoModel.from_config(config, trust_remote_code=False)
        except Exception as error:
            raise ValueError(
                f"config.json of {self.label} is no valid {config.model_type} configuration ({error})."
            ) from None
        prefix = f"{encoder.base_model_prefix}."
        found = {
            name.removeprefix(prefix)
            .replace("LayerNorm.gamma", "LayerNorm.weight")
            .replace("LayerNorm.beta", "LayerNorm.bias"): shape
            for name, shape in shapes.items()
        }
        expected = {name: tuple(parameter.shape) for name, parameter in encoder.named_parameters()}
        for name, shape in expected.items():
            if name in found and found[name] != shape:
                raise ValueError(
                    f"The weights of {self.label} do not fit its config.json: {name} has shape {found[name]}, "
                    f"expected {shape}. The checkpoint is damaged or mixed."
                )
        # Architectures whose weights are renamed while they are loaded cannot be told complete by their names.
        renamed = config.is_encoder_decoder or get_checkpoint_conversion_mapping(config.model_type)
        missing = [name for name in expected if name not in found and not name.startswith("pooler.")]
        if missing and not renamed:
            raise ValueError(
                f"The weights of {self.label} lack {len(missing)} of {len(expected)} tensors of its encoder, such as "
                f"{missing[0]}: the checkpoint is incomplete."
            )

    def check_dense(self, path: str, width: int | None) -> int:
        file = f"{path}/config.json"
        config = self.read_json(file)
        sizes = [config.get("in_features"), config.get("out_features")]
        if not all(type(size) is int and size > 0 for size in sizes):
            raise ValueError(f"{file} of {self.label} gives in_features and out_features as {sizes}.")
        if width is not None and sizes[0] != width:
            raise ValueError(
                f"{file} of {self.label} takes embeddings of size {sizes[0]}, but gets them of size {width}: the "
                "checkpoint is mixed from two models."
            )
        activation = config.get("activation_function", "")
        if not re.fullmatch(r"torch\.nn\.modules\.(activation\.\w+|linear\.Identity)", str(activation)):
            raise ValueError(
                f"{file} of {self.label} names the activation function {activation!r}; only those of torch.nn are "
                "loaded."
            )
        if self.with_weights:
            expected: dict[str, tuple[int, ...]] = {"linear.weight": (sizes[1], sizes[0])}
            if config.get("bias", True):
                expected["linear.bias"] = (sizes[1],)
            if config.get("use_residual") and sizes[0] != sizes[1]:
                expected["residual.weight"] = (sizes[1], sizes[0])
            self.compare(self.read_weights(path), expected, path)
        return int(sizes[1])

    def check_gate(self, path: str, width: int | None) -> None:
        file = f"{path}/config.json"
        config = self.read_json(file)
        version, size = config.get("format_version", FORMAT_VERSION), config.get("embedding_size")
        if type(version) is not int or version > FORMAT_VERSION:
            raise ValueError(
                f"{self.label} was saved in format {version}; formats up to {FORMAT_VERSION} are understood here: "
                "upgrade numcolbert."
            )
        hidden = config.get("hidden_size") or size
        if type(size) is not int or type(hidden) is not int or size <= 0 or hidden <= 0:
            raise ValueError(f"{file} of {self.label} gives embedding_size and hidden_size as {[size, hidden]}.")
        if width is not None and size != width:
            raise ValueError(
                f"{file} of {self.label} takes embeddings of size {size}, but gets them of size {width}: the "
                "checkpoint is mixed from two models."
            )
        if self.with_weights:
            mlp: dict[str, tuple[int, ...]] = {
                "0.weight": (hidden, size),
                "0.bias": (hidden,),
                "2.weight": (1, hidden),
                "2.bias": (1,),
            }
            expected = {f"{part}.{name}": shape for part in ("detector", "gate") for name, shape in mlp.items()}
            self.compare(self.read_weights(path), expected, path)

    def check_vocabulary(self) -> None:
        """PyLate would silently add random rows to an embedding matrix that is too short for its tokenizer."""
        rows = self.read_json("config.json").get("vocab_size")
        if not (self.folder / "tokenizer.json").exists() or rows is None:
            return
        tokenizer = self.read_json("tokenizer.json")
        try:
            added = [token["id"] for token in tokenizer.get("added_tokens", [])]
            vocabulary = tokenizer["model"]["vocab"]
            last = max([*added, *(vocabulary.values() if isinstance(vocabulary, dict) else [len(vocabulary) - 1])])
        except (KeyError, TypeError, ValueError):
            raise ValueError(
                f"tokenizer.json of {self.label} holds no vocabulary: the checkpoint is damaged."
            ) from None
        if last >= rows:
            raise ValueError(
                f"The tokenizer of {self.label} has a token {last}, but its encoder only {rows} token embeddings "
                "(vocab_size in config.json): the checkpoint is mixed from two models."
            )

    def compare(self, found: dict[str, tuple[int, ...]], expected: dict[str, tuple[int, ...]], path: str) -> None:
        if found != expected:
            raise ValueError(
                f"The weights in {path} of {self.label} do not fit its config.json (expected {expected}, found "
                f"{found}): the checkpoint is damaged or mixed."
            )

    def read_weights(self, path: str) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the tensors in a folder, having made sure that all are finite."""
        folder = self.folder / path
        files = ["model.safetensors"]
        if not (folder / files[0]).exists():
            index = self.read_json(Path(path) / "model.safetensors.index.json", missing={})
            files = sorted({str(file) for file in index.get("weight_map", {}).values()})
            for file in files:
                if not re.fullmatch(r"[\w.-]+\.safetensors", file):
                    raise ValueError(f"model.safetensors.index.json of {self.label} names the file {file!r}: refused.")
        if not files or not all((folder / file).exists() for file in files):
            refuse_missing_weights(
                f"{self.label}{f' ({path})' if path else ''}", [file.name for file in folder.glob("*")]
            )
        shapes: dict[str, tuple[int, ...]] = {}
        for file in files:
            try:
                with safe_open(folder / file, framework="pt", device="cpu") as tensors:
                    for key in tensors.keys():  # noqa: SIM118 - no mapping
                        tensor = tensors.get_tensor(key)
                        shapes[key] = tuple(tensor.shape)
                        # In single precision, as most models are loaded: a double beyond it turns infinite.
                        if tensor.is_floating_point() and not bool(tensor.float().isfinite().all()):
                            raise ValueError(
                                f"{key} in {Path(path) / file} of {self.label} holds NaN or infinite values: the "
                                "training run broke; take an earlier checkpoint."
                            )
            except SafetensorError as error:
                raise ValueError(
                    f"{Path(path) / file} of {self.label} is no complete safetensors file ({error}): copy or download "
                    "it again."
                ) from None
        return shapes

    def read_json(self, file: str | Path, kind: type = dict, missing: Any = None) -> Any:
        path = self.folder / file
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            if missing is not None:
                return missing
            raise ValueError(f"{self.label} lacks {file}: the upload or the copy is incomplete.") from None
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{file} of {self.label} is no valid JSON ({error}).") from None
        if not isinstance(content, kind):
            raise ValueError(f"{file} of {self.label} holds a {type(content).__name__}, expected a {kind.__name__}.")
        return content
