"""Gradient caching: the gradients of the plain loss, whatever the mini-batch, the factor and the random state."""

import pytest
import torch

from numcolbert import ColBERT
from numcolbert.losses import CachedNumColBERTLoss, NumColBERTLoss
from tests.losses.features import features_of

ALL = {"contrastive_weight": 1.0, "detection_weight": 1.0, "property_weight": 1.0, "document_property_weight": 1.0}


def step(loss: NumColBERTLoss, rows: list[dict], factor: float = 1.0) -> tuple[dict[str, float], dict]:
    """Components and gradients of one batch, the heads as the first loss made with this seed has them."""
    loss.zero_grad(set_to_none=True)
    components = loss(features_of(loss.model, rows))
    (torch.stack(list(components.values())).sum() * factor).backward()
    gradients = {name: p.grad.clone() for name, p in loss.named_parameters() if p.grad is not None}
    return {name: float(value.detach()) for name, value in components.items()}, gradients


def assert_same(plain: tuple[dict, dict], cached: tuple[dict, dict]) -> None:
    assert cached[0] == pytest.approx(plain[0], rel=1e-5)
    assert cached[1].keys() == plain[1].keys()
    for name, gradient in plain[1].items():
        assert torch.allclose(cached[1][name], gradient, atol=1e-5, rtol=1e-5), name


def losses(model: ColBERT, mini_batch_size: int, **options: object) -> tuple[NumColBERTLoss, CachedNumColBERTLoss]:
    torch.manual_seed(0)
    plain = NumColBERTLoss(model, **options)
    torch.manual_seed(0)
    return plain, CachedNumColBERTLoss(model, mini_batch_size=mini_batch_size, **options)


@pytest.mark.parametrize("do_query_expansion", [True, False])
@pytest.mark.parametrize("mini_batch_size", [1, 3, 100])
def test_components_and_gradients_are_those_of_the_plain_loss(
    tiny_base, triplet_rows, mini_batch_size, do_query_expansion
):
    torch.manual_seed(3)
    model = ColBERT(
        tiny_base, device="cpu", embedding_size=16, query_length=16, do_query_expansion=do_query_expansion
    ).eval()
    plain, cached = losses(model, mini_batch_size, temperature=0.5, mask_false_negatives=True, **ALL)
    expected = step(plain, triplet_rows, factor=0.25)  # as the trainer scales the loss to accumulate gradients
    assert expected[1]["heads.unit.0.weight"].abs().sum() > 0
    assert expected[1]["model.2.gate.0.weight"].abs().sum() > 0
    assert_same(expected, step(cached, triplet_rows, factor=0.25))


@pytest.mark.parametrize("gate_selection", ["gold", "detected"])
def test_every_choice_of_the_gate_is_kept(tiny_model, triplet_rows, gate_selection):
    with torch.no_grad():
        tiny_model.numerical_gate.detector[-1].bias.zero_()
        tiny_model.numerical_gate.detector[-1].weight.mul_(30)
    plain, cached = losses(tiny_model.eval(), 2, temperature=0.5, gate_selection=gate_selection)
    assert_same(step(plain, triplet_rows), step(cached, triplet_rows))


def test_both_passes_of_a_mini_batch_drop_the_same_units(tiny_model, triplet_rows):
    """With one mini-batch of queries and one of documents the plain loss draws the same random numbers."""
    tiny_model.train()
    for module in tiny_model[0].auto_model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.3
    plain, cached = losses(tiny_model, 100, temperature=0.5, encoding_batch_size=None)
    torch.manual_seed(7)
    dropped = step(plain, triplet_rows)
    torch.manual_seed(7)
    assert_same(dropped, step(cached, triplet_rows))
    assert step(plain, triplet_rows)[0] != pytest.approx(dropped[0], rel=1e-4)  # dropout is on


def test_the_second_pass_computes_in_the_precision_of_the_first(tiny_model, triplet_rows):
    _, cached = losses(tiny_model, 100, temperature=0.5)
    precisions = []
    tiny_model[1].linear.register_forward_hook(lambda *arguments: precisions.append(arguments[-1].dtype))
    with torch.autocast("cpu", torch.bfloat16):
        total = torch.stack(list(cached(features_of(tiny_model, triplet_rows)).values())).sum()
    total.backward()
    assert precisions == [torch.bfloat16] * 4  # queries and documents, twice


def test_without_gradients_only_the_components_are_computed(tiny_model, triplet_rows):
    plain, cached = losses(tiny_model.eval(), 2)
    with torch.no_grad():
        components = cached(features_of(tiny_model, triplet_rows))
        expected = plain(features_of(tiny_model, triplet_rows))
    assert not any(value.requires_grad for value in components.values())
    assert {k: float(v) for k, v in components.items()} == pytest.approx(
        {k: float(v) for k, v in expected.items()}, rel=1e-5
    )


@pytest.mark.parametrize(
    ("options", "message"), [({"mini_batch_size": 0}, "mini_batch_size"), ({"encoding_batch_size": 8}, "leave")]
)
def test_options_that_make_no_sense_are_refused(tiny_model, options, message):
    with pytest.raises(ValueError, match=message):
        CachedNumColBERTLoss(tiny_model, **options)
