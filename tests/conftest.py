"""Models and batches that several test folders share."""

import os
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import pytest
import torch
from transformers import AutoTokenizer, BertConfig, BertModel

from numcolbert import ColBERT
from numcolbert.modeling.base_model import packaged_base_model


@pytest.fixture(scope="session")
def base_model() -> str:
    """Folder of the real base model."""
    return packaged_base_model()


@pytest.fixture(scope="session")
def tiny_base(tmp_path_factory: pytest.TempPathFactory, base_model: str) -> str:
    """Folder of a BERT with the real vocabulary and tiny random layers, without dropout."""
    folder = tmp_path_factory.mktemp("tiny") / "base"
    torch.manual_seed(0)
    config = BertConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    BertModel(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(base_model).save_pretrained(folder)
    return str(folder)


@pytest.fixture
def tiny_model(tiny_base: str) -> ColBERT:
    """A fresh gated model over the tiny base."""
    torch.manual_seed(1)
    return ColBERT(tiny_base, device="cpu", embedding_size=16, query_length=16)


def quantity(text: str, surface: str, value: float, unit: str | None) -> dict:
    """One annotated quantity of a text, already in its canonical unit."""
    start = text.index(surface)
    return {
        "value": value,
        "unit": unit,
        "canonical_value": value,
        "canonical_unit": unit,
        "start": start,
        "end": start + len(surface),
    }


def triplet(query: tuple, positive: tuple, negative: tuple) -> dict:
    """One training row: (text, operator, surface, value, unit) and twice (text, [(surface, value, unit), ...])."""
    text, operator, *mention = query
    condition = {**quantity(text, *mention), "operator": operator, "upper": None, "canonical_upper": None}
    return {
        "query": text,
        "positive": positive[0],
        "negative": negative[0],
        "query_condition": condition,
        "positive_quantities": [quantity(positive[0], *mention) for mention in positive[1]],
        "negative_quantities": [quantity(negative[0], *mention) for mention in negative[1]],
    }


@pytest.fixture(scope="session")
def make_triplet() -> Callable[..., dict]:
    """`triplet`, for tests that make rows of their own."""
    return triplet


@pytest.fixture(scope="session")
def triplet_rows() -> list[dict]:
    """Triplets with several units, a document without and one with two quantities, and a query without condition."""
    rows = [
        triplet(
            ("revenue above 2 million dollars", ">", "2 million dollars", 2e6, "USD"),
            (
                "Revenue rose to $3 million in 1987, up 12 percent.",
                [("$3 million", 3e6, "USD"), ("12 percent", 12.0, "percent")],
            ),
            ("Revenue was $1 million.", [("$1 million", 1e6, "USD")]),
        ),
        triplet(
            ("dose of at least 5 mg", ">=", "5 mg", 5.0, "milligram"),
            ("A dose of 5 mg was given (n = 30).", [("5 mg", 5.0, "milligram"), ("30", 30.0, None)]),
            ("A dose of 0.25 mg was given.", [("0.25 mg", 0.25, "milligram")]),
        ),
        triplet(
            ("sales below 500,000 dollars", "<", "500,000 dollars", 5e5, "USD"),
            ("Sales fell to 80,000 dlrs.", [("80,000 dlrs", 8e4, "USD")]),
            ("The company gave no figures.", []),
        ),
        triplet(
            ("exactly 12 percent", "=", "12 percent", 12.0, "percent"),
            ("The rate was 12 pct.", [("12 pct", 12.0, "percent")]),
            ("The rate was 13 pct.", [("13 pct", 13.0, "percent")]),
        ),
    ]
    rows.append({**rows[0], "query": "who founded the company", "query_condition": None})
    return rows


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of the real text, where present."""
    folder = Path(os.environ.get("NUMCOLBERT_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.exists():
        pytest.skip("the real text (../shared/data, or $NUMCOLBERT_DATA) is not here")
    return folder
