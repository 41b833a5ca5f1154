"""A published model in a plain PyLate, and in Sentence Transformers, on machines that do not have this package."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from pylate import models
from sentence_transformers import SentenceTransformer

from numcolbert import ColBERT
from numcolbert.modeling.publishing import publish
from tests.hub.conftest import hub_environment
from tests.hub.plain_pylate import TEXTS
from tests.hub.server import HubServer

NAME = "org/numcolbert"
SCRIPT = Path(__file__).with_name("plain_pylate.py")


@pytest.fixture
def results(hub: HubServer, saved: Path, tmp_path: Path) -> dict[str, np.ndarray]:
    """What a process without this package made of the repository."""
    publish(saved, NAME)
    output = tmp_path / "results.npz"
    done = subprocess.run(
        [sys.executable, "-I", str(SCRIPT), NAME, str(output)],
        cwd=tmp_path,
        env=hub_environment(hub, tmp_path / "home"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(np.load(output))


def test_a_plain_pylate_opens_a_published_model_and_keeps_its_gate(
    results: dict[str, np.ndarray], gated_model: ColBERT, hub: HubServer
) -> None:
    # Without the flag it refuses, rather than losing the gate in silence.
    assert "numerical_gate" in str(results["refusal"])
    assert list(results["modules"]) == ["Transformer", "Dense", "NumericalGate"]

    documents = gated_model.encode(TEXTS, is_query=False)
    queries = gated_model.encode(TEXTS, is_query=True)
    norms = np.concatenate([np.linalg.norm(query, axis=-1) for query in queries])
    assert (np.abs(norms - 1) > 0.01).any()
    assert (np.abs(norms - 1) < 1e-5).any()
    for index in range(len(TEXTS)):
        np.testing.assert_array_equal(results[f"document{index}"], documents[index])
        np.testing.assert_array_equal(results[f"query{index}"], queries[index])
        # What the card warns of: the default normalisation erases the gate.
        np.testing.assert_allclose(np.linalg.norm(results[f"unit_query{index}"], axis=-1), 1, atol=1e-5)

    # Encoder and projection alone are a whole ColBERT for documents (before punctuation is skipped).
    for index in range(len(TEXTS)):
        every = results[f"encoder_only{index}"]
        for row in documents[index]:
            assert np.abs(every - row).max(axis=-1).min() < 1e-5
    assert not any(method == "GET" and "checkpoints" in path for method, path in hub.requests)


def test_takes_what_pylate_and_sentence_transformers_published(
    hub: HubServer, tiny_base: str, caplog: pytest.LogCaptureFixture
) -> None:
    plain = models.ColBERT(tiny_base, device="cpu", embedding_size=16)
    plain.push_to_hub("org/plain")
    SentenceTransformer(tiny_base, device="cpu").push_to_hub("org/sentences", private=True)
    assert hub.repositories["org/sentences"].private

    loaded = ColBERT.from_pretrained("org/plain", device="cpu")
    assert loaded.numerical_gate is None
    assert "is a PyLate ColBERT without a numerical gate" in caplog.text
    for is_query in (True, False):
        for a, b in zip(plain.encode(TEXTS, is_query=is_query), loaded.encode(TEXTS, is_query=is_query), strict=True):
            np.testing.assert_array_equal(a, b)

    gated = ColBERT.from_pretrained("org/sentences", numerical_gate=True, embedding_size=16, device="cpu")
    assert gated.numerical_gate is not None
    assert "is a Sentence Transformers model: a fresh, untrained numerical gate was added" in caplog.text
    assert gated.card is not None
    assert gated.card.base_model == "org/sentences"
