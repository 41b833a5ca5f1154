"""Unit vectors, one dimension longer, rank exactly as the gated MaxSim, also in a cosine-only index."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pylate import indexes, retrieve

from numcolbert import ColBERT
from numcolbert.modeling.colbert import _to_unit_norm

QUERIES = ["over 5 kg of 12 apples", "revenue below $3 million", "12"]
DOCUMENTS = [
    "It weighs 6 kg.",
    "It weighs 4 kg.",
    "Revenue was $2 million in 1987, down from $12 million.",
    "Revenue was $5 billion.",
    "The company gave no figures at all.",
    "12 apples and 5 pears",
]


@pytest.fixture(scope="module")
def model(base_model: str) -> ColBERT:
    """The real encoder with a gate that finds about half of the tokens numerical."""
    torch.manual_seed(6)
    model = ColBERT(base_model, device="cpu", query_length=16)
    gate = model.numerical_gate
    assert gate is not None
    with torch.no_grad():
        features = model(model.tokenize(QUERIES, is_query=True))
        gate.detector[-1].bias.sub_(features["numerical_logits"].median())
        values = gate.gate(features["ungated_embeddings"])
        gate.gate[-1].weight.mul_(3 / values.std())
        gate.gate[-1].bias.sub_(3 * values.mean() / values.std())
    return model


def maxsim(query: np.ndarray, document: np.ndarray) -> float:
    return float((query.astype(np.float64) @ document.astype(np.float64).T).max(axis=1).sum())


def test_unit_vectors_rank_as_the_gated_maxsim(model: ColBERT) -> None:
    gated = model.encode(QUERIES, is_query=True)
    documents = model.encode(DOCUMENTS, is_query=False)
    norms = np.linalg.norm(gated[0], axis=-1)
    assert norms.max() > 2
    assert norms.min() < 0.5
    unit_queries = model.encode(QUERIES, is_query=True, unit_norm=True)
    unit_documents = model.encode(DOCUMENTS, is_query=False, unit_norm=True)
    for vectors in (*unit_queries, *unit_documents):
        assert vectors.shape[1] == 129
        assert vectors.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=-1), 1, atol=2e-6)
    for query, unit_query in zip(gated, unit_queries, strict=True):
        scores = [maxsim(query, document) for document in documents]
        unit_scores = [maxsim(unit_query, document) for document in unit_documents]
        assert np.argsort(scores).tolist() == np.argsort(unit_scores).tolist()
        np.testing.assert_allclose(np.array(unit_scores) * len(query), scores, rtol=1e-5, atol=1e-5)


@given(
    query=hnp.arrays(np.float64, (5, 4), elements=st.floats(-1, 1)),
    gates=hnp.arrays(np.float64, 5, elements=st.floats(0, 5)),
    documents=hnp.arrays(np.float64, (3, 6, 4), elements=st.floats(-1, 1)),
)
@settings(max_examples=100, deadline=None)
def test_for_any_gate_the_scores_are_those_of_the_gated_maxsim_divided_by_the_query_length(
    query: np.ndarray, gates: np.ndarray, documents: np.ndarray
) -> None:
    def normalised(vectors: np.ndarray) -> np.ndarray:
        norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
        return np.where(norms > 1e-3, vectors / np.maximum(norms, 1e-3), np.eye(4)[0])

    gated = gates[:, None] * normalised(query)
    unit_query = _to_unit_norm(gated, is_query=True)
    np.testing.assert_allclose(np.linalg.norm(unit_query, axis=-1), 1, atol=1e-9)
    for document in normalised(documents):
        unit_document = _to_unit_norm(document, is_query=False)
        np.testing.assert_allclose(np.linalg.norm(unit_document, axis=-1), 1, atol=1e-9)
        assert abs(maxsim(unit_query, unit_document) * 5 - maxsim(gated, document)) < 1e-9


def test_a_cosine_only_database_ranks_by_the_gated_maxsim(model: ColBERT) -> None:
    """Dividing by the norms, as such an engine does, changes nothing; without unit_norm it loses the gate."""

    def cosine_ranking(query: np.ndarray, documents: list[np.ndarray]) -> list[int]:
        unit = query / np.linalg.norm(query, axis=-1, keepdims=True)
        return np.argsort([-maxsim(unit, d / np.linalg.norm(d, axis=-1, keepdims=True)) for d in documents]).tolist()

    gated, documents = model.encode(QUERIES, is_query=True), model.encode(DOCUMENTS, is_query=False)
    unit = model.encode(QUERIES, is_query=True, unit_norm=True)
    unit_documents = model.encode(DOCUMENTS, is_query=False, unit_norm=True)
    expected = [np.argsort([-maxsim(query, document) for document in documents]).tolist() for query in gated]
    assert [cosine_ranking(query, unit_documents) for query in unit] == expected
    assert [cosine_ranking(query, documents) for query in gated] != expected


def test_voyager_in_its_cosine_space(model: ColBERT, tmp_path: Path) -> None:
    pytest.importorskip("voyager", reason="the extra numcolbert[voyager] is not installed")
    from voyager import Index, Space

    unit_documents = model.encode(DOCUMENTS, is_query=False, unit_norm=True)
    unit_queries = model.encode(QUERIES, is_query=True, unit_norm=True)
    gated, documents = model.encode(QUERIES, is_query=True), model.encode(DOCUMENTS, is_query=False)
    expected = [np.array([maxsim(query, document) for document in documents]) for query in gated]

    # The bare index: one entry per document token, MaxSim from the cosine distances it returns.
    owners = np.concatenate([np.full(len(vectors), index) for index, vectors in enumerate(unit_documents)])
    index = Index(Space.Cosine, num_dimensions=129, M=32, ef_construction=400)
    index.add_items(np.concatenate(unit_documents))
    for query, scores in zip(unit_queries, expected, strict=True):
        found = np.full((len(query), len(DOCUMENTS)), -np.inf)
        neighbours, distances = index.query(query, k=len(owners), query_ef=2 * len(owners))
        for row in range(len(query)):
            np.maximum.at(found[row], owners[neighbours[row]], 1 - distances[row])
        np.testing.assert_allclose(found.sum(axis=1).shape, len(query))
        np.testing.assert_allclose(found.sum(axis=0) * len(query), scores, rtol=1e-4, atol=1e-3)

    # PyLate's retriever on top of it.
    voyager = indexes.Voyager(index_folder=str(tmp_path), index_name="unit", override=True, embedding_size=129)
    voyager.add_documents([str(number) for number in range(len(DOCUMENTS))], unit_documents)
    results = retrieve.ColBERT(index=voyager).retrieve(unit_queries, k=len(DOCUMENTS))
    for ranking, scores in zip(results, expected, strict=True):
        assert [int(result["id"]) for result in ranking] == np.argsort(-scores).tolist()


def test_refuses_output_that_is_no_unit_vector(model: ColBERT) -> None:
    for options in ({"precision": "int8"}, {"output_value": None}, {"padding": True}, {"normalize_embeddings": False}):
        with pytest.raises(ValueError, match="unit_norm=True gives"):
            model.encode(QUERIES, is_query=True, unit_norm=True, **options)
