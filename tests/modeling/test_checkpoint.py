"""Crafted checkpoints are refused with a sentence, before anything of them is run, unpickled or loaded."""

import json
import logging
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pylate import models
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer, BertConfig, BertModel

from numcolbert import ColBERT
from numcolbert.modeling.checkpoint import check_checkpoint, module_class


@pytest.fixture(scope="module")
def saved(tiny_base: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(1)
    folder = tmp_path_factory.mktemp("saved") / "model"
    ColBERT(tiny_base, device="cpu", embedding_size=16, query_length=16).save_pretrained(str(folder))
    return folder


@pytest.fixture
def checkpoint(saved: Path, tmp_path: Path) -> Path:
    """A good checkpoint to spoil."""
    return Path(shutil.copytree(saved, tmp_path / "model"))


def edit(file: Path, change: Callable[[Any], Any]) -> None:
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))


def edit_weights(file: Path, change: Callable[[dict[str, torch.Tensor]], Any]) -> None:
    weights = load_file(file)
    change(weights)
    save_file({name: tensor.contiguous() for name, tensor in weights.items()}, file, metadata={"format": "pt"})


def fill(name: str, value: float) -> Callable[[dict[str, torch.Tensor]], Any]:
    def change(weights: dict[str, torch.Tensor]) -> None:
        weights[name].view(-1)[3] = value

    return change


def refused(folder: Path, match: str) -> None:
    """Both ways to load a model refuse it, and the sentence names it."""
    for load in (ColBERT.from_pretrained, ColBERT):
        with pytest.raises(ValueError, match=match) as caught:
            load(str(folder), device="cpu")
        assert str(folder) in str(caught.value)
        assert "\n" not in str(caught.value)


class Bomb:
    """Says so when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return (Path.touch, (self.mark,))


# --- no code ---


@pytest.mark.parametrize(
    "reference",
    [
        "evil.Module",
        "org/other--evil.Module",
        "os.system",
        "sentence_transformers.models.CLIPModel",
        "sentence_transformers.util.http_get",
        "sentence_transformers_evil.Transformer",
        "numcolbert.modeling.colbert.ColBERT",
    ],
)
def test_refuses_module_classes_it_does_not_know(checkpoint: Path, reference: str) -> None:
    mark = checkpoint / "ran"
    (checkpoint / "evil.py").write_text(f"from pathlib import Path\nPath({str(mark)!r}).touch()\nclass Module: pass\n")
    edit(checkpoint / "modules.json", lambda modules: modules[1].update(type=reference))
    refused(checkpoint, "none of the modules that are loaded here.*trust_remote_code=True")
    assert not mark.exists()


def test_runs_an_unknown_module_only_when_trusted(checkpoint: Path) -> None:
    mark = checkpoint / "ran"
    (checkpoint / "scale.py").write_text(
        f"from pathlib import Path\nfrom pylate.models import Dense\nPath({str(mark)!r}).touch()\n"
        "class Scale(Dense): pass\n"
    )
    edit(checkpoint / "modules.json", lambda modules: modules[1].update(type="scale.Scale"))
    ColBERT.from_pretrained(checkpoint, trust_remote_code=True, device="cpu")
    assert mark.exists()


def test_never_runs_the_gate_of_the_repository(checkpoint: Path) -> None:
    mark = checkpoint / "ran"
    (checkpoint / "numerical_gate.py").write_text(f"from pathlib import Path\nPath({str(mark)!r}).touch()\n")
    for trusted in (False, True):
        model = ColBERT.from_pretrained(checkpoint, trust_remote_code=trusted, device="cpu")
        assert type(model[-1]) is module_class("numerical_gate.NumericalGate")
    assert not mark.exists()


def test_takes_the_module_names_of_other_versions_of_sentence_transformers(checkpoint: Path) -> None:
    edit(
        checkpoint / "modules.json",
        lambda modules: modules[0].update(type="sentence_transformers.base.modules.transformer.Transformer"),
    )
    assert ColBERT.from_pretrained(checkpoint, device="cpu").numerical_gate is not None


def test_refuses_activation_functions_beyond_torch(checkpoint: Path) -> None:
    for name in ("os.abort", "torch.nn.modules.linear.Linear", "torch.hub.load", ["torch.nn.modules.linear.Identity"]):
        edit(checkpoint / "1_Dense/config.json", lambda config, name=name: config.update(activation_function=name))
        refused(checkpoint, "activation function .*only those of torch.nn")


@pytest.mark.parametrize(
    "settings",
    [
        {"model_args": {"use_safetensors": False}},
        {"tokenizer_name_or_path": "somebody/else"},
        {"config_args": {"trust_remote_code": True}},
        {"backend": "onnx"},
    ],
)
def test_refuses_loading_arguments_in_the_repository(checkpoint: Path, settings: dict[str, Any]) -> None:
    edit(checkpoint / "sentence_bert_config.json", lambda config: config.update(settings))
    refused(checkpoint, f"sets {next(iter(settings))}, which is not loaded from a repository")


def test_refuses_kernels_and_weight_files_that_the_configuration_points_to(checkpoint: Path) -> None:
    edit(checkpoint / "config.json", lambda config: config.update(attn_implementation="evil/kernel"))
    refused(checkpoint, "attn_implementation .*remove the key")
    edit(
        checkpoint / "config.json",
        lambda config: (config.pop("attn_implementation"), config.update(transformers_weights="weights.bin")),
    )
    refused(checkpoint, "transformers_weights .*remove the key")


def test_refuses_kernels_of_a_nested_configuration(checkpoint: Path) -> None:
    edit(checkpoint / "config.json", lambda config: config.update(text_config={"attn_implementation": "evil/kernel"}))
    refused(checkpoint, "attn_implementation to 'evil/kernel': remove the key")


@pytest.mark.parametrize("file", ["tokenizer_config.json", "special_tokens_map.json"])
@pytest.mark.parametrize(
    "settings",
    [
        {"tokenizer_file": "../elsewhere/tokenizer.json"},
        {"vocab_file": "/etc/passwd"},
        {"vocab_file": "vocab.txt"},  # in the working folder
        {"merges_file": "merges.txt"},
        {"fast_tokenizer_files": ["../elsewhere/tokenizer.4.0.0.json"]},
        {"fast_tokenizer_files": "tokenizer/../../elsewhere/tokenizer.4.0.0.json"},
    ],
)
def test_refuses_a_tokenizer_whose_files_lie_elsewhere(checkpoint: Path, file: str, settings: dict[str, Any]) -> None:
    (checkpoint / file).touch()
    (checkpoint / file).write_text(json.dumps(json.loads((checkpoint / file).read_text() or "{}") | settings))
    refused(checkpoint, f"{file} of .* sets {next(iter(settings))} to .*, a path: remove the key")


def test_takes_tokenizers_that_only_tell_where_they_came_from(checkpoint: Path) -> None:
    shutil.copy(checkpoint / "tokenizer.json", checkpoint / "tokenizer.4.0.0.json")
    edit(
        checkpoint / "tokenizer_config.json",
        lambda config: config.update(
            special_tokens_map_file="/root/.cache/special_tokens_map.json",
            tokenizer_file=None,
            fast_tokenizer_files=["tokenizer.4.0.0.json", "tokenizer.json"],
        ),
    )
    ColBERT.from_pretrained(checkpoint, device="cpu")


def test_refuses_an_encoder_that_is_code(checkpoint: Path) -> None:
    edit(
        checkpoint / "config.json",
        lambda config: config.update(model_type="evil", auto_map={"AutoConfig": "evil.Config", "AutoModel": "evil.M"}),
    )
    refused(checkpoint, "is code in its repository: read it, and pass trust_remote_code=True")
    edit(checkpoint / "config.json", lambda config: config.pop("auto_map"))
    refused(checkpoint, "does not know: upgrade transformers")


def test_refuses_adapters(checkpoint: Path) -> None:
    (checkpoint / "adapter_config.json").write_text('{"base_model_name_or_path": "somebody/else"}')
    refused(checkpoint, "holds an adapter.*merge the two")


# --- no pickles ---


@pytest.mark.parametrize("part", ["", "1_Dense", "2_NumericalGate"])
@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "weights.pkl"])
def test_refuses_pickled_weights(checkpoint: Path, tmp_path: Path, part: str, name: str) -> None:
    mark = tmp_path / "unpickled"
    (checkpoint / part / "model.safetensors").unlink()
    (checkpoint / part / name).write_bytes(pickle.dumps(Bomb(mark)))
    refused(checkpoint, f"{name}, a format that can run code when it is read.*Convert them")
    assert not mark.exists()


def test_leaves_pickles_beside_good_weights_alone(checkpoint: Path, tmp_path: Path) -> None:
    mark = tmp_path / "unpickled"
    for name in ("pytorch_model.bin", "1_Dense/pytorch_model.bin", "training_args.bin", "optimizer.pt"):
        (checkpoint / name).write_bytes(pickle.dumps(Bomb(mark)))
    ColBERT.from_pretrained(checkpoint, device="cpu")
    assert not mark.exists()


# --- paths ---


@pytest.mark.parametrize("path", ["../other", "1_Dense/../../other", "/etc", "..\\other", "C:/other", "1_Dense\0"])
def test_refuses_paths_that_lead_out_of_the_folder(checkpoint: Path, path: str) -> None:
    shutil.copytree(checkpoint / "1_Dense", checkpoint.parent / "other")
    edit(checkpoint / "modules.json", lambda modules: modules[1].update(path=path))
    refused(checkpoint, "points out of the model's folder")


def test_refuses_shards_that_lead_out_of_the_folder(checkpoint: Path) -> None:
    (checkpoint / "model.safetensors").rename(checkpoint.parent / "shard.safetensors")
    index = {"metadata": {}, "weight_map": {"embeddings.word_embeddings.weight": "../shard.safetensors"}}
    (checkpoint / "model.safetensors.index.json").write_text(json.dumps(index))
    refused(checkpoint, "names the file '../shard.safetensors': refused")


def test_loads_sharded_weights(saved: Path, checkpoint: Path) -> None:
    weights = load_file(checkpoint / "model.safetensors")
    (checkpoint / "model.safetensors").unlink()
    names = sorted(weights)
    shards = {"model-00001-of-00002.safetensors": names[:10], "model-00002-of-00002.safetensors": names[10:]}
    for file, part in shards.items():
        save_file({name: weights[name] for name in part}, checkpoint / file, metadata={"format": "pt"})
    index = {"metadata": {}, "weight_map": {name: file for file, part in shards.items() for name in part}}
    (checkpoint / "model.safetensors.index.json").write_text(json.dumps(index))
    a = ColBERT.from_pretrained(saved, device="cpu").encode(["5 kg"], is_query=False)[0]
    b = ColBERT.from_pretrained(checkpoint, device="cpu").encode(["5 kg"], is_query=False)[0]
    np.testing.assert_array_equal(a, b)
    (checkpoint / "model-00002-of-00002.safetensors").unlink()
    refused(checkpoint, "holds no weights.*incomplete")


# --- weights that fit ---


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize(
    ("file", "tensor"),
    [
        ("model.safetensors", "encoder.layer.1.output.dense.weight"),
        ("1_Dense/model.safetensors", "linear.weight"),
        ("2_NumericalGate/model.safetensors", "gate.2.weight"),
    ],
)
def test_refuses_weights_that_are_not_finite(checkpoint: Path, file: str, tensor: str, value: float) -> None:
    edit_weights(checkpoint / file, fill(tensor, value))
    refused(checkpoint, f"{tensor} in {file} of .* holds NaN or infinite values")


@pytest.mark.parametrize(
    ("dtype", "value"), [(torch.float64, 1e300), (torch.float64, float("nan")), (torch.float8_e5m2, float("inf"))]
)
def test_refuses_weights_that_turn_infinite_where_they_are_converted(
    checkpoint: Path, dtype: torch.dtype, value: float
) -> None:
    def change(weights: dict[str, torch.Tensor]) -> None:
        tensor = weights["linear.weight"].double()
        tensor[0, 0] = value
        weights["linear.weight"] = tensor.to(dtype)

    edit_weights(checkpoint / "1_Dense/model.safetensors", change)
    refused(checkpoint, r"linear.weight in 1_Dense/model.safetensors of .* holds NaN or infinite values")


def test_refuses_weights_that_do_not_fit_the_configuration(checkpoint: Path) -> None:
    good = {
        name: (checkpoint / name).read_bytes()
        for name in (
            "config.json",
            "1_Dense/config.json",
            "2_NumericalGate/config.json",
            "2_NumericalGate/model.safetensors",
        )
    }

    def spoil(file: str, match: str, **values: Any) -> None:
        edit(checkpoint / file, lambda config: config.update(values))
        refused(checkpoint, match)
        for name, content in good.items():
            (checkpoint / name).write_bytes(content)

    spoil("config.json", "do not fit its config.json: embeddings.word_embeddings.weight", hidden_size=48)
    spoil("config.json", "do not fit its config.json", intermediate_size=128)
    spoil("config.json", "lack 16 of .* tensors of its encoder", num_hidden_layers=3)
    spoil("config.json", "says 1000000000 layers", num_hidden_layers=10**9)
    spoil("config.json", "is no valid bert configuration", hidden_size="large")
    spoil("1_Dense/config.json", "takes embeddings of size 48, but gets them of size 32", in_features=48)
    spoil("1_Dense/config.json", "The weights in 1_Dense .* do not fit", out_features=10**9)
    spoil("1_Dense/config.json", "gives in_features and out_features as", out_features=-16)
    spoil("2_NumericalGate/config.json", "takes embeddings of size 17", embedding_size=17)
    spoil("2_NumericalGate/config.json", "The weights in 2_NumericalGate .* do not fit", hidden_size=10**9)
    spoil("2_NumericalGate/config.json", "gives embedding_size and hidden_size as", hidden_size="16")
    edit_weights(checkpoint / "2_NumericalGate/model.safetensors", lambda weights: weights.pop("gate.0.bias"))
    refused(checkpoint, "The weights in 2_NumericalGate .* do not fit")


def test_refuses_a_truncated_file(checkpoint: Path) -> None:
    file = checkpoint / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1000])
    refused(checkpoint, "is no complete safetensors file .*download it again")


def test_refuses_a_tokenizer_of_another_model(checkpoint: Path) -> None:
    edit(
        checkpoint / "tokenizer.json",
        lambda tokenizer: tokenizer["added_tokens"].append({**tokenizer["added_tokens"][-1], "id": 40_000}),
    )
    refused(checkpoint, "has a token 40000, but its encoder only 30524 token embeddings")


@pytest.mark.parametrize(
    ("file", "content", "match"),
    [
        ("modules.json", "[{", "modules.json of .* is no valid JSON"),
        ("modules.json", "[" * 100_000, "modules.json of .* is no valid JSON"),
        ("modules.json", "{}", "holds a dict, expected a list"),
        ("modules.json", "[]", "modules.json of .* is empty"),
        ("modules.json", '[{"name": "0", "path": 5, "type": "x"}]', "lacks a name, path or type"),
        ("config.json", None, "lacks config.json"),
        ("1_Dense/config.json", None, "lacks 1_Dense/config.json"),
        ("config_sentence_transformers.json", '{"query_length": 1e99}', "query_length in .* a number of tokens"),
        ("config_sentence_transformers.json", '{"query_prefix": ["a"]}', "query_prefix in .* a text is expected"),
        ("tokenizer.json", '{"model": {}}', "tokenizer.json of .* holds no vocabulary"),
        ("model_card.json", '{"results": 5}', "no card data"),
    ],
)
def test_refuses_malformed_files(checkpoint: Path, file: str, content: str | None, match: str) -> None:
    if content is None:
        (checkpoint / file).unlink()
    else:
        (checkpoint / file).write_text(content)
    refused(checkpoint, match)


def test_refuses_a_newer_format(checkpoint: Path) -> None:
    edit(checkpoint / "2_NumericalGate/config.json", lambda config: config.update(format_version=99))
    refused(checkpoint, "saved in format 99; formats up to 1 are understood here: upgrade numcolbert")


def test_refuses_modules_in_the_wrong_order(checkpoint: Path) -> None:
    edit(checkpoint / "modules.json", lambda modules: modules.reverse())
    refused(checkpoint, "the first module, and no other, is the Transformer")
    edit(checkpoint / "modules.json", lambda modules: (modules.reverse(), modules.insert(1, modules.pop())))
    refused(checkpoint, "is the numerical gate, which comes last")


def test_refuses_a_folder_that_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("")
    refused(tmp_path, "is not a model: it holds neither modules.json nor config.json")


# --- other kinds of checkpoints ---


@pytest.fixture(scope="module")
def stanford(tiny_base: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The layout of stanford-nlp ColBERT: encoder and projection in one file, settings in artifact.metadata."""
    folder = tmp_path_factory.mktemp("stanford") / "model"
    shutil.copytree(tiny_base, folder)
    torch.manual_seed(2)
    weights = {f"bert.{name}": tensor for name, tensor in load_file(folder / "model.safetensors").items()}
    weights["linear.weight"] = torch.randn(16, 32)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    edit(folder / "config.json", lambda config: config.update(architectures=["HF_ColBERT"]))
    settings = {"query_token_id": "[unused0]", "doc_token_id": "[unused1]", "query_maxlen": 24, "doc_maxlen": 100}
    (folder / "artifact.metadata").write_text(json.dumps(settings))
    return folder


@pytest.fixture(scope="module")
def plain(tiny_base: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What pylate.models.ColBERT saves."""
    folder = tmp_path_factory.mktemp("plain") / "model"
    torch.manual_seed(3)
    models.ColBERT(tiny_base, device="cpu", embedding_size=16).save_pretrained(str(folder))
    return folder


def test_says_of_every_checkpoint_what_it_is(
    saved: Path, plain: Path, stanford: Path, base_model: str, tiny_base: str
) -> None:
    assert check_checkpoint(saved) == "NumColBERT"
    assert check_checkpoint(plain) == "PyLate ColBERT"
    assert check_checkpoint(stanford) == "Stanford ColBERT"
    assert check_checkpoint(base_model) == "Sentence Transformers model"
    assert check_checkpoint(tiny_base) == "plain encoder"


@pytest.mark.parametrize("source", ["plain", "stanford", "base_model"])
def test_other_checkpoints_get_a_gate_only_when_asked_and_the_log_says_so(
    source: str, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    folder = str(request.getfixturevalue(source))
    kind = {"plain": "PyLate ColBERT", "stanford": "Stanford ColBERT", "base_model": "Sentence Transformers model"}
    with caplog.at_level(logging.INFO):
        assert ColBERT.from_pretrained(folder, device="cpu").numerical_gate is None
    assert f"{folder} is a {kind[source]} without a numerical gate" in caplog.text
    with caplog.at_level(logging.INFO):
        gated = ColBERT.from_pretrained(folder, numerical_gate=True, device="cpu")
    assert gated.numerical_gate is not None
    assert f"{folder} is a {kind[source]}: a fresh, untrained numerical gate was added" in caplog.text


@pytest.mark.parametrize("source", ["plain", "stanford"])
def test_other_colberts_embed_as_in_pylate(source: str, request: pytest.FixtureRequest) -> None:
    folder = str(request.getfixturevalue(source))
    ours, theirs = ColBERT.from_pretrained(folder, device="cpu"), models.ColBERT(folder, device="cpu")
    assert ours.query_length == theirs.query_length
    for is_query in (True, False):
        a, b = (model.encode(["over 5 kg"], is_query=is_query)[0] for model in (ours, theirs))
        np.testing.assert_array_equal(a, b)


def test_a_numcolbert_says_so(saved: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        ColBERT.from_pretrained(saved, device="cpu")
    assert f"{saved} is a NumColBERT: loaded with its numerical gate" in caplog.text


def test_refuses_a_spoilt_stanford_checkpoint(stanford: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(stanford, tmp_path / "model"))
    edit(folder / "artifact.metadata", lambda settings: settings.update(query_maxlen="many"))
    refused(folder, "query_maxlen in artifact.metadata")
    shutil.copy(stanford / "artifact.metadata", folder)
    edit_weights(folder / "model.safetensors", lambda weights: weights.update({"linear.weight": torch.ones(16, 5)}))
    refused(folder, "linear.weight in model.safetensors has shape")


def test_takes_weights_in_the_names_of_old_berts(tiny_base: str, tmp_path: Path) -> None:
    """bert-base-uncased still calls its LayerNorm parameters gamma and beta, and prefixes everything with bert."""
    folder = tmp_path / "old"
    config = BertConfig(hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64)
    BertModel(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(tiny_base).save_pretrained(folder)
    old = {
        "bert."
        + name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
        for name, tensor in load_file(folder / "model.safetensors").items()
    }
    save_file(old, folder / "model.safetensors", metadata={"format": "pt"})
    assert check_checkpoint(folder) == "plain encoder"
    ColBERT.from_pretrained(folder, device="cpu")
