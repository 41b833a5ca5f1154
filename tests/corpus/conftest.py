"""Corpora small enough to look through."""

from __future__ import annotations

import random

import pytest
from datasets import Dataset

from numcolbert.corpus.annotation import annotate
from numcolbert.corpus.pairs import Pair, mine_pairs
from numcolbert.corpus.sentences import SENTENCES

CONCEPTS = {
    "net profit": ("{value} million dollars", (5, 400)),
    "wheat exports": ("{value},000 tonnes", (20, 900)),
    "interest rate": ("{value}.5 percent", (2, 60)),
    "copper output": ("{value},000 tonnes", (10, 700)),
}
PATTERNS = (
    "{name} said {concept} was {quantity} in the quarter.",
    "{concept} of {name} rose to {quantity} on Monday.",
    "At {name}, {concept} fell to {quantity}, officials said.",
)
NAMES = ("Acme", "Borealis", "Cobalt", "Dorado", "Elm", "Fjord", "Gamma", "Harbor")


def make_sentences(count: int, seed: int = 0) -> list[str]:
    """Sentences that give one quantity of one concept each, no two alike."""
    rng = random.Random(seed)
    sentences: dict[str, None] = {}
    while len(sentences) < count:
        concept = rng.choice(list(CONCEPTS))
        form, bounds = CONCEPTS[concept]
        quantity = form.format(value=rng.randint(*bounds) // 5 * 5 or 5)
        text = rng.choice(PATTERNS).format(name=rng.choice(NAMES), concept=concept, quantity=quantity)
        sentences[text[0].upper() + text[1:]] = None
    return list(sentences)


def as_corpus(texts: list[str]) -> Dataset:
    """Annotated sentences, each a document."""
    ids = [f"d{number}#0" for number in range(len(texts))]
    return annotate(Dataset.from_dict({"id": ids, "text": texts}, features=SENTENCES))


@pytest.fixture(scope="session")
def corpus() -> Dataset:
    return as_corpus(make_sentences(240))


@pytest.fixture(scope="session")
def pairs(corpus: Dataset) -> list[Pair]:
    return mine_pairs(corpus)
