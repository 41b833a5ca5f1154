"""The gate alone: its formula, its marks, its file format."""

import json

import pytest
import torch

from numcolbert.modeling import NumericalGate


def features(batch: int = 2, tokens: int = 5, size: int = 8, prefix: int = 7) -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    input_ids = torch.full((batch, tokens), 3)
    input_ids[:, 1] = prefix
    attention = torch.ones(batch, tokens, dtype=torch.long)
    attention[0, 3:] = 0
    return {"input_ids": input_ids, "attention_mask": attention, "token_embeddings": torch.randn(batch, tokens, size)}


@pytest.mark.parametrize("start", ["one", "half"])
@pytest.mark.parametrize("expansion", [True, False])
def test_gate_values_follow_equation_4(start, expansion):
    gate = NumericalGate(8, start=start, query_prefix_id=7, query_expansion=expansion)
    batch = features()
    batch["gate_mask"] = torch.ones(2, 5, dtype=torch.bool)
    raw = batch["token_embeddings"].clone()
    output = gate(batch)
    for row in range(2):
        size = 5 if expansion else int(batch["attention_mask"][row].sum())
        for token in range(5):
            query = raw[row, token] / raw[row, token].norm()
            offset = -torch.log(torch.tensor(size - 1.0)) if start == "one" else 0.0
            expected = size * torch.sigmoid(gate.gate(query)[0] + offset)
            scores = expansion or batch["attention_mask"][row, token]
            factor = expected if scores else 1.0
            assert torch.allclose(output["token_embeddings"][row, token], factor * query, atol=1e-5)


def test_the_threshold_decides_which_tokens_are_gated():
    gate = NumericalGate(8, threshold=0.3, query_prefix_id=7)
    with torch.no_grad():
        gate.detector[-1].weight.mul_(40)
    output = gate(features())
    assert torch.equal(output["is_gated"], torch.sigmoid(output["numerical_logits"]) > 0.3)


def test_documents_pass_untouched_also_in_a_mixed_batch():
    gate = NumericalGate(8, query_prefix_id=7)
    batch = features(prefix=9)
    raw = batch["token_embeddings"]
    assert gate(batch)["token_embeddings"] is raw
    mixed = features()
    mixed["input_ids"][1, 1] = 9
    raw = mixed["token_embeddings"].clone()
    output = gate(mixed)["token_embeddings"]
    assert torch.equal(output[1], raw[1])
    assert torch.allclose(output[0].norm(dim=-1), torch.ones(5))


def test_the_mark_is_preferred_to_the_prefix():
    gate = NumericalGate(8, query_prefix_id=7)
    batch = {**features(), "is_query": torch.zeros(2, dtype=torch.bool)}
    raw = batch["token_embeddings"]
    assert gate(batch)["token_embeddings"] is raw


def test_autocast_does_not_reach_the_gate():
    gate = NumericalGate(8, query_prefix_id=7)
    expected = gate(features())["gate_values"]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(gate(features())["gate_values"], expected)


def saved(tmp_path, **changes):
    gate = NumericalGate(8, query_prefix_id=7)
    gate.save(str(tmp_path))
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, **changes}))
    return gate


def test_save_and_load(tmp_path):
    gate = saved(tmp_path)
    loaded = NumericalGate.load(str(tmp_path))
    assert loaded.get_config_dict() == gate.get_config_dict()
    for name, tensor in gate.state_dict().items():
        assert torch.equal(tensor, loaded.state_dict()[name])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format_version": 99}, "upgrade numcolbert"),
        ({"surprise": 1}, "surprise"),
        ({"hidden_size": 9}, "do not fit"),
        ({"threshold": 2.0}, "threshold"),
        ({"start": "zero"}, "start"),
    ],
)
def test_a_foreign_configuration_is_refused(tmp_path, changes, message):
    saved(tmp_path, **changes)
    with pytest.raises(ValueError, match=message):
        NumericalGate.load(str(tmp_path))


def test_weights_that_are_not_numbers_are_refused(tmp_path):
    gate = NumericalGate(8)
    with torch.no_grad():
        gate.gate[0].weight[0, 0] = torch.nan
    gate.save(str(tmp_path))
    with pytest.raises(ValueError, match="NaN"):
        NumericalGate.load(str(tmp_path))
