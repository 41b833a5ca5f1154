"""A Hub of our own, and models to send to it."""

import os
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub
import pytest
import torch
from huggingface_hub import constants

from numcolbert import ColBERT
from tests.hub.server import HubServer, User

TOKEN = "hf_AliceWritesHere"
READER = "hf_BobReadsOnly"
STRANGER = "hf_CarolIsNobody"
ROOT = Path(__file__).parents[2]


def hub_environment(hub: HubServer, home: Path, token: str | None = TOKEN) -> dict[str, str]:
    """Environment of a process that knows no other Hub than ours."""
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("HF_", "HUGGING", "TRANSFORMERS"))
    }
    environment |= {
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(home),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": "",
    }
    return environment | ({"HF_TOKEN": token} if token else {})


@pytest.fixture(scope="session")
def gated_model(tiny_base: str) -> ColBERT:
    """A small model whose detector finds about half of the tokens numerical, as a trained one finds some."""
    torch.manual_seed(5)
    model = ColBERT(tiny_base, device="cpu", embedding_size=16, query_length=16, split_digits=True)
    gate = model.numerical_gate
    assert gate is not None
    batch = model.tokenize(["over 5 kg of 12 apples", "revenue below $3 million"], is_query=True)
    with torch.no_grad():
        gate.gate[-1].weight.mul_(200)
        logits = model({**batch})["numerical_logits"]
        gate.detector[-1].bias.sub_(logits.median())
        is_gated = model({**batch})["is_gated"]
    assert 0 < int(is_gated.sum()) < is_gated.numel()
    return model


@pytest.fixture(scope="session")
def saved(gated_model: ColBERT, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model on disk, with what training leaves beside it."""
    folder = tmp_path_factory.mktemp("run") / "model"
    gated_model.save_pretrained(str(folder))
    for name in ("checkpoints/checkpoint-1/model.safetensors", "optimizer.pt", "table.parquet", "run.json"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"left by training")
    return folder


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    """The Hub, as the only one this process knows, with an empty cache and Alice logged in."""
    store = tmp_path / "hub"
    store.mkdir()
    with HubServer(store) as server:
        server.users = {
            TOKEN: User("alice", ("org",)),
            READER: User("bob", ("org",), can_write=False),
            STRANGER: User("carol"),
        }
        # What the environment variables of the same names set at import.
        monkeypatch.setattr(constants, "ENDPOINT", server.url)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", server.url + "/{repo_id}/resolve/{revision}/{filename}"
        )
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
        monkeypatch.setattr(constants, "HF_STORED_TOKENS_PATH", str(tmp_path / "tokens"))
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        huggingface_hub.close_session()
        yield server
        huggingface_hub.close_session()
