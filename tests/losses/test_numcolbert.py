"""Every part of the objective against its formula written as loops, on batches with masks, padding and annotations."""

import math

import pylate.losses
import pytest
import torch
import torch.nn.functional as F

from numcolbert import ColBERT
from numcolbert.losses import NumColBERTLoss
from numcolbert.losses.annotations import OPERATOR_CODES
from numcolbert.losses.properties import EXPONENT_MEAN, EXPONENT_SCALE, MANTISSA_MEAN, MANTISSA_SCALE
from tests.losses.features import features_of

ALL = {"contrastive_weight": 1.0, "detection_weight": 1.0, "property_weight": 1.0, "document_property_weight": 1.0}


def copies(features: list[dict[str, torch.Tensor]]) -> list[dict[str, torch.Tensor]]:
    return [dict(feature) for feature in features]


class Reference:
    """The same quantities, one token, query and document at a time."""

    def __init__(self, model: ColBERT, rows: list[dict], gate_selection: str = "gold") -> None:
        self.rows = rows
        query, positive, negative = features_of(model, rows)
        if gate_selection == "gold":
            query["gate_mask"] = query["quantity_mask"]
        with torch.no_grad():
            output = model(dict(query))
            self.query_tokens = output["token_embeddings"]
            self.ungated = output.get("ungated_embeddings", F.normalize(self.query_tokens, dim=-1))
            self.logits = output.get("numerical_logits")
            if self.logits is None:
                self.query_tokens = F.normalize(self.query_tokens, dim=-1)
            documents = [F.normalize(model(dict(part))["token_embeddings"], dim=-1) for part in (positive, negative)]
        self.quantity_mask = query["quantity_mask"]
        self.scoring = (
            torch.ones_like(self.quantity_mask) if model.do_query_expansion else query["attention_mask"].bool()
        )
        self.documents, self.document_quantities, self.document_spans, self.pads = [], [], [], []
        for index in range(len(rows)):
            for part, features, column in zip(documents, (positive, negative), ("positive", "negative"), strict=True):
                ids, attention = features["input_ids"][index].tolist(), features["attention_mask"][index].tolist()
                kept = [i for i in range(len(ids)) if attention[i] and ids[i] not in model.skiplist]
                self.documents.append([part[index][i] for i in kept])
                self.pads.append(len(kept) < len(ids))
                self.document_quantities.append(rows[index][f"{column}_quantities"])
                self.document_spans.append(
                    [
                        [part[index][i] for i in range(len(ids)) if features["quantity_index"][index][i] == number + 1]
                        for number in range(len(rows[index][f"{column}_quantities"]))
                    ]
                )

    def q_num(self, index: int) -> torch.Tensor:
        tokens = [self.ungated[index][i] for i in range(self.ungated.shape[1]) if self.quantity_mask[index][i]]
        return sum(tokens) / len(tokens)

    def retrieval(self, temperature: float) -> float:
        total = 0.0
        for index in range(len(self.rows)):
            scores = []
            for document, padded in zip(self.documents, self.pads, strict=True):
                score = 0.0
                for i in range(self.query_tokens.shape[1]):
                    if self.scoring[index][i]:
                        best = max(float(self.query_tokens[index][i] @ token) for token in document)
                        score += max(best, 0.0) if padded else best  # PyLate scores a masked token as 0
                scores.append(score / temperature)
            total -= scores[2 * index] - math.log(sum(math.exp(s - max(scores)) for s in scores)) - max(scores)
        return total / len(self.rows)

    def contrastive(self, temperature: float, positive_set: str) -> float:
        losses = []
        for index, row in enumerate(self.rows):
            condition = row["query_condition"]
            if condition is None:
                continue
            similarities = [
                max(float(self.q_num(index) @ t) for t in document) / temperature for document in self.documents
            ]
            log_total = math.log(sum(math.exp(s - max(similarities)) for s in similarities)) + max(similarities)
            positives = []
            for number, quantities in enumerate(self.document_quantities):
                compare = {
                    ">": lambda v, c: v > c,
                    ">=": lambda v, c: v >= c,
                    "<": lambda v, c: v < c,
                    "=": lambda v, c: v == c,
                }[condition["operator"]]
                checks = {
                    "unit": lambda q, c=condition: q["unit"] == c["unit"],
                    "numeric": lambda q, c=condition, compare=compare: compare(q["value"], c["value"]),
                }
                checks["joint"] = lambda q, checks=checks: checks["unit"](q) and checks["numeric"](q)
                if any(checks[positive_set](q) for q in quantities):
                    positives.append(number)
            if positives:
                losses.append(-sum(similarities[p] - log_total for p in positives) / len(positives))
        return sum(losses) / len(losses)

    def detection(self) -> float:
        losses = []
        for index in range(len(self.rows)):
            for i in range(self.logits.shape[1]):
                if self.scoring[index][i]:
                    probability = 1 / (1 + math.exp(-float(self.logits[index][i])))
                    losses.append(-math.log(probability if self.quantity_mask[index][i] else 1 - probability))
        return sum(losses) / len(losses)

    def magnitude(self, heads: torch.nn.Module, embedding: torch.Tensor, value: float) -> float:
        exponent = math.floor(math.log10(abs(value)))
        mantissa = abs(value) / 10**exponent
        return (float(heads.mantissa(embedding)) - (mantissa - MANTISSA_MEAN) / MANTISSA_SCALE) ** 2 + (
            float(heads.exponent(embedding)) - (exponent - EXPONENT_MEAN) / EXPONENT_SCALE
        ) ** 2

    def properties(self, heads: torch.nn.Module, unit_codes: torch.Tensor) -> float:
        losses = []
        for index, row in enumerate(self.rows):
            condition = row["query_condition"]
            if condition is None:
                continue
            unit = heads.unit(self.q_num(index))
            operator = heads.operator(self.q_num(index))
            loss = -float(torch.log_softmax(unit, 0)[int(unit_codes[index]) % len(unit)])
            loss -= float(torch.log_softmax(operator, 0)[OPERATOR_CODES[condition["operator"]]])
            losses.append(loss + self.magnitude(heads, self.q_num(index), condition["value"]))
        return sum(losses) / len(losses)

    def document_properties(self, heads: torch.nn.Module) -> float:
        losses = []
        for spans, quantities in zip(self.document_spans, self.document_quantities, strict=True):
            for tokens, quantity in zip(spans, quantities, strict=True):
                losses.append(self.magnitude(heads, sum(tokens) / len(tokens), quantity["value"]))
        return sum(losses) / len(losses)


@pytest.mark.parametrize("do_query_expansion", [True, False])
@pytest.mark.parametrize("gate_selection", ["gold", "detected"])
@pytest.mark.parametrize("positive_set", ["unit", "numeric", "joint"])
def test_every_part_equals_its_formula(tiny_base, triplet_rows, positive_set, gate_selection, do_query_expansion):
    torch.manual_seed(3)
    model = ColBERT(
        tiny_base,
        device="cpu",
        embedding_size=16,
        query_length=16,
        do_query_expansion=do_query_expansion,
        split_digits=True,
    ).eval()
    with torch.no_grad():  # a detector that detects some tokens, a gate that differs between tokens
        model.numerical_gate.detector[-1].bias.zero_()
        for mlp in (model.numerical_gate.detector, model.numerical_gate.gate):
            mlp[-1].weight.mul_(30)
    loss = NumColBERTLoss(
        model,
        temperature=0.5,
        contrastive_temperature=0.1,
        positive_set=positive_set,
        gate_selection=gate_selection,
        **ALL,
    )
    features = features_of(model, triplet_rows)
    written_unit = features[0]["written_unit"]
    components = {name: float(value) for name, value in loss(copies(features)).items()}
    reference = Reference(model, triplet_rows, gate_selection)
    assert components == pytest.approx(
        {
            "retrieval": reference.retrieval(0.5),
            "contrastive": reference.contrastive(0.1, positive_set),
            "detection": reference.detection(),
            "property": reference.properties(loss.heads, written_unit),
            "document_property": reference.document_properties(loss.heads),
        },
        rel=1e-4,
    )
    gates = model(features[0])
    assert 0 < int(gates["is_gated"].sum()) < gates["is_gated"].numel()


def test_separate_is_the_sum_of_unit_and_numeric(tiny_model, triplet_rows):
    def contrastive(positive_set):
        loss = NumColBERTLoss(tiny_model.eval(), positive_set=positive_set)
        return float(loss(features_of(tiny_model, triplet_rows))["contrastive"])

    assert contrastive("separate") == pytest.approx(contrastive("unit") + contrastive("numeric"), rel=1e-5)


@pytest.mark.parametrize("do_query_expansion", [True, False])
def test_without_gate_and_weights_it_is_pylates_contrastive(tiny_base, triplet_rows, do_query_expansion):
    model = ColBERT(
        tiny_base, device="cpu", numerical_gate=False, query_length=16, do_query_expansion=do_query_expansion
    ).eval()
    features = features_of(model, triplet_rows)
    ours = NumColBERTLoss(
        model, temperature=0.02, positive_set=None, contrastive_weight=0, detection_weight=0, property_weight=0
    )
    theirs = pylate.losses.Contrastive(model, temperature=0.02)
    components = ours(copies(features))
    assert set(components) == {"retrieval"}
    loss = theirs(copies(features))
    assert float(components["retrieval"].detach()) == pytest.approx(float(loss.detach()), rel=1e-6)
    components["retrieval"].backward()
    gradients = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    loss.backward()
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            assert torch.allclose(gradients[name], parameter.grad, rtol=1e-4, atol=1e-6), name


def test_satisfying_documents_of_the_same_pair_are_no_negatives(tiny_model, make_triplet):
    """Against the sum written as loops: own positive, own negative, and of the other documents those that count."""
    tiny_model.eval()

    def row(pair: str, bound: float, positive: float, negative: float) -> dict:
        return {"pair": pair} | make_triplet(
            (f"profit above {bound:.0f} dollars", ">", f"{bound:.0f} dollars", bound, "USD"),
            (f"Profit was ${positive:.0f}.", [(f"${positive:.0f}", positive, "USD")]),
            (f"Profit was ${negative:.0f}.", [(f"${negative:.0f}", negative, "USD")]),
        )

    rows = [row("profit | USD", 10, 20, 5), row("profit | USD", 30, 40, 15), row("loss | USD", 10, 70, 3)]
    excluded = {0: {2, 3}, 1: set(), 2: set()}  # 40 and 15 satisfy the first query, whose pair the third does not share
    loss = NumColBERTLoss(tiny_model, temperature=0.5, mask_false_negatives=True)
    reference = Reference(tiny_model, rows)
    expected = 0.0
    for index in range(3):
        scores = [
            sum(max(float(q @ t) for t in document) for q in reference.query_tokens[index]) / 0.5
            for document in reference.documents
        ]
        kept = [score for number, score in enumerate(scores) if number not in excluded[index]]
        expected += math.log(sum(math.exp(s - max(kept)) for s in kept)) + max(kept) - scores[2 * index]
    result = float(loss(features_of(tiny_model, rows))["retrieval"].detach())
    assert result == pytest.approx(expected / 3, rel=1e-4)
    unmasked = NumColBERTLoss(tiny_model, temperature=0.5)(features_of(tiny_model, rows))["retrieval"]
    assert float(unmasked.detach()) > result


def test_the_gate_learns_through_retrieval_and_the_detector_through_detection_alone(tiny_model, triplet_rows):
    loss = NumColBERTLoss(tiny_model)
    components = loss(features_of(tiny_model, triplet_rows))
    gate = tiny_model.numerical_gate
    components["retrieval"].backward(retain_graph=True)
    assert gate.gate[0].weight.grad.abs().sum() > 0
    assert gate.detector[0].weight.grad is None
    components["detection"].backward()
    assert gate.detector[0].weight.grad.abs().sum() > 0


def test_a_batch_without_annotations_is_refused_with_the_cure(tiny_model):
    features = [tiny_model.tokenize(["over 5 kg"], is_query=True), tiny_model.tokenize(["6 kg"], is_query=False)]
    with pytest.raises(ValueError, match="NumericalCollator"):
        NumColBERTLoss(tiny_model)(features)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"positive_set": "both"}, "positive_set"),
        ({"temperature": 0.0}, "temperature"),
        ({"contrastive_temperature": -1.0}, "contrastive_temperature"),
        ({"gate_selection": "silver"}, "gate_selection"),
    ],
)
def test_options_out_of_range_are_refused(tiny_model, option, message):
    with pytest.raises(ValueError, match=message):
        NumColBERTLoss(tiny_model, **option)


def test_encoding_documents_by_length_in_small_passes_changes_nothing(tiny_model, triplet_rows):
    components = []
    for encoding_batch_size in (None, 3, 1):
        torch.manual_seed(0)
        loss = NumColBERTLoss(tiny_model.eval(), encoding_batch_size=encoding_batch_size, **ALL)
        components.append(
            {name: float(value.detach()) for name, value in loss(features_of(tiny_model, triplet_rows)).items()}
        )
    assert components[1] == pytest.approx(components[0], rel=1e-4)
    assert components[2] == pytest.approx(components[0], rel=1e-4)
