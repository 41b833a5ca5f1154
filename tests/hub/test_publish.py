"""Publishing and loading, over HTTP, with the unmodified huggingface_hub."""

import errno
import hashlib
import json
import logging
import shutil
import subprocess
import sys
import time
from pathlib import Path

import httpx
import numpy as np
import pytest
import torch
from huggingface_hub import HfApi, ModelCard, constants, snapshot_download
from huggingface_hub.utils import hf_raise_for_status
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer

from hub.publish import main
from numcolbert import ColBERT
from numcolbert.modeling.model_card import PLACEHOLDER
from numcolbert.modeling.persistence import explain_hub_errors, model_files
from numcolbert.modeling.publishing import publish
from tests.hub.conftest import READER, ROOT, STRANGER, TOKEN, hub_environment
from tests.hub.server import HubServer

NAME = "org/numcolbert-finquant"
LEFT_BEHIND = ["checkpoints/", "optimizer.pt", "run.json", "table.parquet"]


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """huggingface_hub waits up to 24 seconds before it gives a connection up."""
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda seconds: None)


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    """A model to change and publish."""
    return Path(shutil.copytree(saved, tmp_path / "model"))


def change_projection(folder: Path, value: float) -> None:
    file = folder / "1_Dense" / "model.safetensors"
    weights = load_file(file)
    save_file({name: torch.full_like(tensor, value) for name, tensor in weights.items()}, file)


def forget(tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "cache", ignore_errors=True)


# --- push ---


def test_publishes_all_of_the_model_and_nothing_else_in_one_commit(hub: HubServer, saved: Path) -> None:
    publication = publish(saved, NAME)
    repository = hub.repositories[NAME]
    assert repository.history() == ["Add the model", "initial commit"]
    sent = hub.files(NAME)
    assert sorted(sent) == sorted([".gitattributes", *model_files(saved)])
    assert not any(name.startswith(("checkpoints", "optimizer", "table", "run")) for name in sent)
    for name, content in sent.items():
        if name not in (".gitattributes", "README.md"):
            assert content == (saved / name).read_bytes(), name
    assert publication.url == f"{hub.url}/{NAME}/commit/{repository.refs['main']}"
    assert publication.creates
    assert publication.left_out == LEFT_BEHIND
    assert not repository.private


def test_the_published_card_loads_the_published_model(hub: HubServer, saved: Path) -> None:
    publish(saved, NAME)
    card = hub.files(NAME)["README.md"].decode()
    assert f'ColBERT.from_pretrained("{NAME}")' in card
    assert PLACEHOLDER not in card
    assert PLACEHOLDER in (saved / "README.md").read_text()  # the folder itself is left as it was
    assert ModelCard(card).data.library_name == "PyLate"


def test_publishing_again_changes_nothing(hub: HubServer, saved: Path, gated_model: ColBERT) -> None:
    publish(saved, NAME)
    before = len(hub.requests)
    again = publish(saved, NAME)
    assert again.url is None
    assert not again.sent
    assert str(again).startswith(f"Nothing has changed: {NAME} holds this model already.")
    gated_model.encode(["something else"], is_query=True)  # leaves no trace in what is saved
    assert gated_model.push_to_hub(NAME).url is None
    assert hub.repositories[NAME].history() == ["Add the model", "initial commit"]
    assert {method for method, _ in hub.requests[before:]} == {"GET"}


def test_sends_only_what_has_changed_and_deletes_what_is_gone(hub: HubServer, folder: Path) -> None:
    publish(folder, NAME)
    hub.upload(NAME, {"logo.png": b"png", "3_Dense/model.safetensors": b"old", "pytorch_model.bin": b"old"})
    (folder / "LICENSE").write_text("Do as you like.")
    change_projection(folder, 0.5)
    uploads = hub.count("PUT", "/lfs/")
    publication = publish(folder, NAME)
    assert list(publication.sent) == ["1_Dense/model.safetensors", "LICENSE"]
    assert publication.deleted == ["3_Dense/model.safetensors", "pytorch_model.bin"]
    assert hub.count("PUT", "/lfs/") == uploads + 1
    assert hub.repositories[NAME].history()[0] == "Update the model"
    files = hub.files(NAME)
    assert files["logo.png"] == b"png"  # not ours to delete
    assert "3_Dense/model.safetensors" not in files


def test_a_dry_run_prints_what_would_be_sent_and_sends_nothing(
    hub: HubServer, saved: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_TOKEN")
    assert main([str(saved), NAME, "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert "The card names no licence" in printed
    for name in model_files(saved):
        assert f"  + {name} (" in printed
    assert f"Would create the repository {NAME}." in printed
    assert "Not part of the model, left here: " + ", ".join(LEFT_BEHIND) in printed
    assert hub.repositories == {}
    assert {method for method, _ in hub.requests} == {"GET"}


def test_the_command_as_a_user_runs_it(hub: HubServer, saved: Path, tmp_path: Path) -> None:
    environment = hub_environment(hub, tmp_path / "home")
    command = [sys.executable, "-m", "hub.publish", str(saved), NAME, "--private", "--message", "First version"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"Created the repository {NAME}." in done.stdout
    assert hub.repositories[NAME].private
    assert hub.repositories[NAME].history()[0] == "First version"
    assert TOKEN not in done.stdout + done.stderr


def test_a_revision_is_a_branch_beside_the_main_one(hub: HubServer, folder: Path, tmp_path: Path) -> None:
    publish(folder, NAME)
    first = hub.repositories[NAME].refs["main"]
    change_projection(folder, 0.25)
    publish(folder, NAME, revision="v1.0")
    assert hub.repositories[NAME].refs["main"] == first
    assert hub.repositories[NAME].history("v1.0") == ["Update the model", "Add the model", "initial commit"]
    publish(folder, NAME, revision="v1.0")
    assert len(hub.repositories[NAME].history("v1.0")) == 3
    main_model = ColBERT.from_pretrained(NAME, device="cpu")
    branch_model = ColBERT.from_pretrained(NAME, revision="v1.0", device="cpu")
    commit_model = ColBERT.from_pretrained(NAME, revision=first, device="cpu")
    assert (branch_model[1].linear.weight == 0.25).all()
    assert not (main_model[1].linear.weight == 0.25).any()
    assert (main_model[1].linear.weight == commit_model[1].linear.weight).all()
    # The main branch moves on.
    change_projection(folder, 0.75)
    publish(folder, NAME)
    assert (ColBERT.from_pretrained(NAME, device="cpu")[1].linear.weight == 0.75).all()
    with pytest.raises(FileNotFoundError, match="has no branch, tag or commit v9"):
        ColBERT.from_pretrained(NAME, revision="v9", device="cpu")


def test_a_first_publication_under_a_revision_says_that_the_main_branch_is_empty(hub: HubServer, saved: Path) -> None:
    publication = publish(saved, NAME, revision="v1.0")
    assert list(hub.files(NAME)) == [".gitattributes"]
    assert "main branch holds no model yet" in str(publication)
    assert ColBERT.from_pretrained(NAME, revision="v1.0", device="cpu").numerical_gate is not None


def test_a_pull_request(hub: HubServer, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(folder, NAME)
    change_projection(folder, 0.5)
    monkeypatch.setenv("HF_TOKEN", STRANGER)
    publication = publish(folder, NAME, create_pr=True)
    assert publication.url == f"{hub.url}/{NAME}/discussions/1"
    assert hub.repositories[NAME].history("main") == ["Add the model", "initial commit"]
    assert hub.repositories[NAME].history("refs/pr/1")[0] == "Update the model"
    model = ColBERT.from_pretrained(NAME, revision="refs/pr/1", device="cpu")
    assert (model[1].linear.weight == 0.5).all()
    with pytest.raises(FileNotFoundError, match="no repository org/other to open a pull request in"):
        publish(folder, "org/other", create_pr=True)
    with pytest.raises(ValueError, match="revision or create_pr, not both"):
        publish(folder, NAME, create_pr=True, revision="v1.0")


# --- what stands in the way ---


def test_each_obstacle_gets_a_sentence(
    hub: HubServer, saved: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    hub.upload("org/data", {"train.csv": b"1,2"})
    publish(saved, "org/public")

    def refusal(*arguments: str, token: str | None = TOKEN) -> str:
        if token is None:
            monkeypatch.delenv("HF_TOKEN", raising=False)
        else:
            monkeypatch.setenv("HF_TOKEN", token)
        capsys.readouterr()
        assert main(list(arguments)) == 1
        message = capsys.readouterr().err
        assert message.count("\n") == 1
        for secret in (TOKEN, READER, STRANGER, "hf_Wrong"):
            assert secret not in message
        return message

    folder = str(saved)
    assert "No access token is stored" in refusal(folder, NAME, token=None)
    assert "`hf auth login`" in refusal(folder, NAME, token=None)
    assert "holds blanks or foreign characters" in refusal(folder, NAME, token="hf_Tökén")
    assert "refused the access token" in refusal(folder, NAME, token="hf_Wrong")
    assert "token with write permission" in refusal(folder, NAME, token=READER)
    assert "member of its organization" in refusal(folder, NAME, token=STRANGER)
    assert "member of its organization" in refusal(folder, "org/public", "--revision", "v2", token=STRANGER)
    assert "exists and holds something other than a model (train.csv)" in refusal(folder, "org/data")
    assert "exists and is public" in refusal(folder, "org/public", "--private")
    assert "is no Hub id" in refusal(folder, "just-a-name")
    assert "neither a folder nor a Hub id" in refusal(folder, "org/--bad--name..")
    assert "There is no folder" in refusal(folder + "-nowhere", NAME)
    assert "is not a model" in refusal(str(saved / "checkpoints"), NAME)
    assert NAME not in hub.repositories


def test_a_spoilt_model_is_not_published(hub: HubServer, folder: Path) -> None:
    change_projection(folder, float("nan"))
    with pytest.raises(ValueError, match="NaN or infinite"):
        publish(folder, NAME)
    assert hub.requests == []


def test_metadata_the_hub_would_not_take_stops_before_any_upload(hub: HubServer, folder: Path) -> None:
    card = (folder / "README.md").read_text()
    (folder / "README.md").write_text(card.replace("---\n", "---\nlicense: do-what-you-like\n", 1))
    with pytest.raises(ValueError, match='"license" must be one of'):
        publish(folder, NAME)
    assert hub.count("PUT", "/lfs/") == 0
    assert list(hub.files(NAME)) == [".gitattributes"]


def test_a_commit_of_somebody_else_in_the_meantime(
    hub: HubServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(folder, NAME)
    change_projection(folder, 0.5)
    model_info = HfApi.model_info

    def meanwhile(self: HfApi, *arguments: object, **options: object) -> object:
        info = model_info(self, *arguments, **options)
        hub.upload(NAME, {"theirs.txt": b"theirs"})
        return info

    monkeypatch.setattr(HfApi, "model_info", meanwhile)
    with pytest.raises(ConnectionError, match="Somebody else committed"):
        publish(folder, NAME)
    monkeypatch.setattr(HfApi, "model_info", model_info)
    publish(folder, NAME)
    assert hub.files(NAME)["theirs.txt"] == b"theirs"


def test_a_model_saved_while_another_is_being_published_does_not_mix_with_it(
    hub: HubServer, folder: Path, gated_model: ColBERT, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_projection(folder, 0.5)
    before = {name: (folder / name).read_bytes() for name in model_files(folder) if name != "README.md"}
    create_commit = HfApi.create_commit

    def meanwhile(self: HfApi, *arguments: object, **options: object) -> object:
        gated_model.save_pretrained(str(folder))
        return create_commit(self, *arguments, **options)

    monkeypatch.setattr(HfApi, "create_commit", meanwhile)
    publish(folder, NAME)
    assert (folder / "1_Dense/model.safetensors").read_bytes() != before["1_Dense/model.safetensors"]
    sent = hub.files(NAME)
    assert {name: sent[name] for name in before} == before


# --- broken connections ---


def test_a_dropped_upload_is_taken_up_again(hub: HubServer, saved: Path) -> None:
    hub.drop_uploads = 2
    publish(saved, NAME)
    assert hub.drop_uploads == 0
    assert hub.files(NAME)["model.safetensors"] == (saved / "model.safetensors").read_bytes()


def test_a_broken_connection_is_reported_and_leaves_no_half_repository(
    hub: HubServer, saved: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hub.drop_uploads = 1000
    with pytest.raises(ConnectionError, match=r"connection to the Hub broke .* try again"):
        publish(saved, NAME)
    assert "was not changed, or was changed as a whole" in caplog.text
    assert list(hub.files(NAME)) == [".gitattributes"]  # the empty repository, no part of the model
    hub.drop_uploads = 0
    arrived = {path.name for path in hub.folder.iterdir()}
    uploads = hub.count("PUT", "/lfs/")
    publish(saved, NAME)
    weights = [name for name in model_files(saved) if name.endswith(".safetensors")]
    missing = {hashlib.sha256((saved / name).read_bytes()).hexdigest() for name in weights} - arrived
    assert hub.count("PUT", "/lfs/") - uploads == len(missing)
    assert hub.repositories[NAME].history() == ["Add the model", "initial commit"]


def test_files_that_have_arrived_are_not_sent_twice(hub: HubServer, saved: Path) -> None:
    hub.store((saved / "model.safetensors").read_bytes())
    publish(saved, NAME)
    assert hub.count("PUT", "/lfs/") == 2  # projection and gate
    assert hub.files(NAME)["model.safetensors"] == (saved / "model.safetensors").read_bytes()


def test_a_commit_whose_answer_is_lost_is_not_made_twice(hub: HubServer, saved: Path) -> None:
    hub.drop_commits = 1
    with pytest.raises(ConnectionError):
        publish(saved, NAME)
    assert publish(saved, NAME).url is None
    assert hub.repositories[NAME].history() == ["Add the model", "initial commit"]


def test_a_dropped_download_is_taken_up_again(hub: HubServer, saved: Path, gated_model: ColBERT) -> None:
    publish(saved, NAME)
    hub.drop_downloads = 2
    same_embeddings(gated_model, ColBERT.from_pretrained(NAME, device="cpu"))
    assert hub.drop_downloads == 0


def test_a_download_that_breaks_for_good_is_reported_and_goes_on_later(
    hub: HubServer, saved: Path, gated_model: ColBERT
) -> None:
    publish(saved, NAME)
    hub.drop_downloads = 1000
    with pytest.raises(ConnectionError, match="connection to the Hub broke"):
        ColBERT.from_pretrained(NAME, device="cpu")
    hub.drop_downloads = 0
    same_embeddings(gated_model, ColBERT.from_pretrained(NAME, device="cpu"))


# --- pull ---


def same_embeddings(a: ColBERT, b: ColBERT) -> None:
    for is_query in (True, False):
        for x, y in zip(
            a.encode(["over 5 kg", "12 apples"], is_query=is_query),
            b.encode(["over 5 kg", "12 apples"], is_query=is_query),
            strict=True,
        ):
            np.testing.assert_array_equal(x, y)


def test_loads_from_the_hub_into_a_fresh_cache_and_then_without_the_hub(
    hub: HubServer, saved: Path, gated_model: ColBERT, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(saved, NAME)
    elsewhere = tmp_path / "elsewhere"
    same_embeddings(gated_model, ColBERT.from_pretrained(NAME, cache_folder=str(elsewhere), device="cpu"))
    assert not (tmp_path / "cache").exists() or not list((tmp_path / "cache").glob("models--*"))
    same_embeddings(gated_model, ColBERT.from_pretrained(NAME, device="cpu"))
    same_embeddings(gated_model, ColBERT(NAME, device="cpu"))  # the constructor takes a Hub id, too
    requests = len(hub.requests)
    offline = ColBERT.from_pretrained(NAME, local_files_only=True, device="cpu")
    assert len(hub.requests) == requests
    same_embeddings(gated_model, offline)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    same_embeddings(gated_model, ColBERT.from_pretrained(NAME, device="cpu"))
    assert len(hub.requests) == requests


def test_a_model_from_the_hub_can_be_trained_on_saved_and_published(
    hub: HubServer, saved: Path, tmp_path: Path
) -> None:
    publish(saved, NAME)
    model = ColBERT.from_pretrained(NAME, device="cpu")
    model.save_pretrained(str(tmp_path / "again"))
    for name in model_files(saved):
        assert (tmp_path / "again" / name).read_bytes() == (saved / name).read_bytes(), name


def test_without_a_cached_copy_offline_is_a_sentence(
    hub: HubServer, saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(saved, NAME)
    for options in ({"local_files_only": True}, {}):
        if not options:
            monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
        with pytest.raises(
            FileNotFoundError, match=r"not \(or not completely\) in the cache.*load it once while online"
        ):
            ColBERT.from_pretrained(NAME, device="cpu", **options)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    snapshot_download(NAME, allow_patterns=["*.json"])  # without the weights
    with pytest.raises(FileNotFoundError, match=r"not \(or not completely\) in the cache"):
        ColBERT.from_pretrained(NAME, local_files_only=True, device="cpu")


def test_a_hub_out_of_reach_is_a_sentence_or_the_cached_copy(
    hub: HubServer, saved: Path, gated_model: ColBERT, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    publish(saved, NAME)
    ColBERT.from_pretrained(NAME, device="cpu")
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:1")
    same_embeddings(gated_model, ColBERT.from_pretrained(NAME, device="cpu"))
    forget(tmp_path)
    start = time.monotonic()
    with pytest.raises(FileNotFoundError, match="the Hub is out of reach"):
        ColBERT.from_pretrained(NAME, device="cpu")
    assert time.monotonic() - start < 5


def test_private_repositories_need_the_right_token(
    hub: HubServer, saved: Path, monkeypatch: pytest.MonkeyPatch, gated_model: ColBERT
) -> None:
    publish(saved, NAME, private=True)
    same_embeddings(gated_model, ColBERT.from_pretrained(NAME, device="cpu"))
    monkeypatch.delenv("HF_TOKEN")
    same_embeddings(gated_model, ColBERT.from_pretrained(NAME, token=READER, device="cpu"))


@pytest.mark.parametrize(
    ("token", "error", "match"),
    [
        (False, FileNotFoundError, "shows no repository .* if it is private"),
        (None, FileNotFoundError, "shows no repository .* if it is private"),
        (STRANGER, FileNotFoundError, "shows no repository .* if it is private"),
        ("hf_WrongToken", PermissionError, "refused the access token"),
        ("hf_Broken\nToken", PermissionError, "holds blanks or foreign characters"),
        ("hf_Tökén", PermissionError, "holds blanks or foreign characters"),
        (" ", PermissionError, "is empty"),
    ],
)
def test_private_repositories_refuse_others(
    hub: HubServer,
    saved: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    token: str | bool | None,
    error: type[Exception],
    match: str,
) -> None:
    hub.upload(NAME, {name: (saved / name).read_bytes() for name in model_files(saved)}, private=True)
    monkeypatch.delenv("HF_TOKEN")
    with caplog.at_level(logging.DEBUG), pytest.raises(error, match=match) as caught:
        ColBERT.from_pretrained(NAME, token=token, device="cpu")
    if isinstance(token, str) and token.strip():
        for part in token.split():
            assert part not in str(caught.value)
            assert part not in caplog.text


def test_missing_and_gated_repositories(hub: HubServer, saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError, match="shows no repository org/nothing: check the name"):
        ColBERT.from_pretrained("org/nothing", device="cpu")
    publish(saved, NAME)
    hub.repositories[NAME].gated = True
    monkeypatch.setenv("HF_TOKEN", STRANGER)
    with pytest.raises(PermissionError, match=rf"{NAME} is gated: ask for access at https://huggingface.co/{NAME}"):
        ColBERT.from_pretrained(NAME, device="cpu")
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(PermissionError, match="is gated"):
        ColBERT.from_pretrained(NAME, device="cpu")
    ColBERT.from_pretrained(NAME, token=TOKEN, device="cpu")
    with pytest.raises(ValueError, match="neither a folder nor a Hub id"):
        ColBERT.from_pretrained("org/ bad name", device="cpu")
    with pytest.raises(
        FileNotFoundError,
        match=r"no folder all-MiniLM.*no repository.*such as sentence-transformers/all-MiniLM-L6-v2\.",
    ):
        ColBERT.from_pretrained("all-MiniLM-L6-v2", device="cpu")


def test_the_token_leaves_no_trace(
    hub: HubServer, saved: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        publish(saved, NAME, token=TOKEN)
        model = ColBERT.from_pretrained(NAME, token=TOKEN, device="cpu")
        model.save_pretrained(str(tmp_path / "again"))
        model.push_to_hub(NAME, token=TOKEN, revision="v2")
    assert TOKEN not in caplog.text
    for path in (tmp_path / "again").rglob("*"):
        assert path.is_dir() or TOKEN.encode() not in path.read_bytes()
    assert not any(TOKEN.encode() in content for content in hub.files(NAME, "v2").values())


def test_a_token_in_what_the_hub_answers_is_masked() -> None:
    answer = httpx.Response(
        500, headers={"X-Error-Message": f"cannot read {TOKEN}"}, request=httpx.Request("GET", "http://hub")
    )
    with pytest.raises(ConnectionError, match=r"answered 500 for org/name \(cannot read hf_\.\.\.\)") as caught:  # noqa: SIM117
        with explain_hub_errors("org/name"):
            hf_raise_for_status(answer)
    assert TOKEN not in str(caught.value)


# --- crafted repositories ---


def test_checks_before_it_downloads_the_weights(hub: HubServer, saved: Path, tmp_path: Path) -> None:
    files = {name: (saved / name).read_bytes() for name in model_files(saved)}
    evil = {**files, "modules.json": files["modules.json"].replace(b'"1_Dense"', b'"../1_Dense"')}
    hub.upload("org/evil", evil)
    with pytest.raises(ValueError, match=r"modules.json in org/evil points out of the model's folder"):
        ColBERT.from_pretrained("org/evil", device="cpu")
    assert hub.count("GET", "/lfs/") == 0
    code = {**files, "modules.json": files["modules.json"].replace(b"pylate.models.Dense.Dense", b"evil.Dense")}
    hub.upload("org/code", {**code, "evil.py": b"raise SystemExit"})
    with pytest.raises(ValueError, match=r"in org/code is a evil.Dense, which is none of the modules"):
        ColBERT.from_pretrained("org/code", device="cpu")
    assert hub.count("GET", "/lfs/") == 0
    assert hub.count("GET", "evil.py") == 0


def test_downloads_no_code_no_pickles_and_no_leftovers(hub: HubServer, saved: Path, tmp_path: Path) -> None:
    files = {name: (saved / name).read_bytes() for name in model_files(saved)}
    hub.upload(NAME, {**files, "pytorch_model.bin": b"x", "training_args.bin": b"x", "onnx/model.onnx": b"x"})
    ColBERT.from_pretrained(NAME, device="cpu")
    names = {path.name for path in (tmp_path / "cache").rglob("*")}
    assert not any(name.endswith((".py", ".bin", ".onnx")) for name in names)


def test_a_repository_with_pickled_weights_alone(hub: HubServer, saved: Path) -> None:
    files = {name: (saved / name).read_bytes() for name in model_files(saved) if not name.endswith(".safetensors")}
    hub.upload(NAME, {**files, "pytorch_model.bin": b"pickle", "1_Dense/pytorch_model.bin": b"pickle"})
    with pytest.raises(ValueError, match=rf"{NAME} holds its weights as .*pytorch_model.bin, .*Convert them"):
        ColBERT.from_pretrained(NAME, device="cpu")


def test_a_plain_encoder_of_the_hub_names_its_origin_in_the_card(
    hub: HubServer, tiny_base: str, tmp_path: Path
) -> None:
    base = Path(tiny_base)
    repository = hub.upload("org/encoder", {path.name: path.read_bytes() for path in base.iterdir()})
    model = ColBERT("org/encoder", device="cpu", embedding_size=16)
    model.save_pretrained(str(tmp_path / "model"))
    text = (tmp_path / "model" / "README.md").read_text()
    assert ModelCard(text).data.base_model == "org/encoder"
    assert repository.refs["main"][:12] in text


def test_a_model_whose_encoder_lies_in_a_folder_of_its_own(hub: HubServer, tiny_base: str, tmp_path: Path) -> None:
    """As the first versions of Sentence Transformers saved it."""
    folder = tmp_path / "old"
    SentenceTransformer(tiny_base, device="cpu").save_pretrained(str(folder), create_model_card=False)
    modules = json.loads((folder / "modules.json").read_text())
    modules[0]["path"] = "0_Transformer"
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "0_Transformer").mkdir()
    for file in folder.iterdir():
        if file.is_file() and file.name not in ("modules.json", "config_sentence_transformers.json"):
            file.rename(folder / "0_Transformer" / file.name)
    hub.upload("org/old", {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()})
    torch.manual_seed(0)
    local = ColBERT.from_pretrained(folder, embedding_size=16, device="cpu")
    torch.manual_seed(0)
    same_embeddings(local, ColBERT.from_pretrained("org/old", embedding_size=16, device="cpu"))


# --- full disks ---


def test_a_full_disk_while_downloading_is_a_sentence(hub: HubServer, saved: Path, tmp_path: Path) -> None:
    publish(saved, NAME)
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(disk)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("this process may not mount a file system")
    try:
        with pytest.raises(OSError, match="disk is full") as caught:
            ColBERT.from_pretrained(NAME, cache_folder=str(disk / "cache"), device="cpu")
        assert caught.value.errno == errno.ENOSPC
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)
