"""Publishing a saved model to the Hugging Face Hub: one commit with what has changed, or none."""

from __future__ import annotations

import hashlib
import logging
import os
from dataclasses import dataclass, field
from pathlib import Path

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi
from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError
from huggingface_hub.hf_api import ModelInfo
from huggingface_hub.utils import validate_repo_id

from numcolbert.modeling.model_card import PLACEHOLDER
from numcolbert.modeling.persistence import clean_token, explain_hub_errors, frozen, is_model_file, model_files, recover

__all__ = ["Publication", "publish"]

logger = logging.getLogger(__name__)


@dataclass
class Publication:
    """What was sent, or would be sent; prints as a list.

    Attributes
    ----------
    repo_id
        The repository.
    revision
        The branch, None for the main one.
    sent
        New and changed files and their sizes in bytes.
    unchanged
        Files the Hub holds already.
    deleted
        Files of an earlier model that this one does not have.
    left_out
        Entries of the folder that are not part of the model.
    creates
        Whether the repository is new.
    dry_run
        Whether nothing was sent in fact.
    url
        Address of the commit or pull request; None if nothing had to be committed.
    notes
        What to know, such as a main branch that holds no model.
    """

    repo_id: str
    revision: str | None = None
    sent: dict[str, int] = field(default_factory=dict)
    unchanged: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    creates: bool = False
    dry_run: bool = False
    url: str | None = None
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        where = self.repo_id + (f" at {self.revision}" if self.revision else "")
        lines = []
        if self.creates:
            lines.append(f"{'Would create' if self.dry_run else 'Created'} the repository {self.repo_id}.")
        if self.sent or self.deleted:
            total = sum(self.sent.values())
            verb = "Would send" if self.dry_run else "Sent"
            lines.append(f"{verb} to {where} in one commit, {_megabytes(total)}:")
            lines += [f"  + {name} ({_megabytes(size)})" for name, size in self.sent.items()]
            lines += [f"  - {name}" for name in self.deleted]
        else:
            lines.append(f"Nothing has changed: {where} holds this model already.")
        if self.unchanged and (self.sent or self.deleted):
            lines.append(f"Unchanged on the Hub: {', '.join(self.unchanged)}")
        if self.left_out:
            lines.append(f"Not part of the model, left here: {', '.join(self.left_out)}")
        lines += self.notes
        if self.url:
            lines.append(self.url)
        return "\n".join(lines)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 100_000 else f"{size / 1e3:.1f} kB"


def publish(
    folder: str | os.PathLike[str],
    repo_id: str,
    *,
    private: bool | None = None,
    token: bool | str | None = None,
    revision: str | None = None,
    create_pr: bool = False,
    commit_message: str | None = None,
    dry_run: bool = False,
) -> Publication:
    """Send a saved model to the Hub: weights, configuration, tokenizer, card and the gate's code in one commit.

    Files that the Hub holds already are not sent; if nothing has changed there is no commit. What lies beside the
    model (checkpoints, optimizer states, tables) is never sent. A broken connection leaves the repository as it was;
    running again sends only what had not arrived.

    Parameters
    ----------
    folder
        A folder that ``save_pretrained`` wrote.
    repo_id
        Hub id, ``org/name``; created if there is none.
    private
        Whether a new repository is private. Defaults to the setting of the organization.
    token
        Access token with write permission. Defaults to ``HF_TOKEN`` or the stored one.
    revision
        Branch to commit to, created from the main one if there is none.
    create_pr
        Whether to open a pull request instead of committing.
    commit_message
        Title of the commit.
    dry_run
        Whether only to find out what would be sent.

    Returns
    -------
    Publication
        What was sent.

    Raises
    ------
    ValueError
        If the folder holds no valid model, the name is none, the repository holds something else, or ``private``
        contradicts an existing repository.
    PermissionError
        If there is no token, or it may not write there.
    FileNotFoundError
        If a pull request is to be opened in a repository that does not exist.
    ConnectionError
        If the connection broke.
    """
    root = Path(folder)
    if repo_id.count("/") != 1:
        raise ValueError(f"{repo_id!r} is no Hub id: it reads org/name (or user/name).")
    if create_pr and revision is not None:
        raise ValueError("A pull request goes to the main branch: pass revision or create_pr, not both.")
    recover(root)
    if not root.is_dir():
        raise FileNotFoundError(f"There is no folder {folder}: pass one that save_pretrained wrote.")
    with frozen(root) as whole:  # whatever is saved into the folder while the weights travel
        contents = {name: _content(whole, name, repo_id) for name in model_files(whole)}
        left_out = sorted(
            entry.name + ("/" if entry.is_dir() else "")
            for entry in os.scandir(root)
            if not any(name.split("/")[0] == entry.name for name in contents)
        )
        return _send(contents, left_out, repo_id, private, token, revision, create_pr, commit_message, dry_run)


def _send(
    contents: dict[str, Path | bytes],
    left_out: list[str],
    repo_id: str,
    private: bool | None,
    token: bool | str | None,
    revision: str | None,
    create_pr: bool,
    commit_message: str | None,
    dry_run: bool,
) -> Publication:
    api = HfApi(token=clean_token(token))
    with explain_hub_errors(repo_id, revision):
        validate_repo_id(repo_id)
        if not dry_run:
            api.whoami()
        info, has_branch = _remote(api, repo_id, revision)
    _check_remote(info, repo_id, private, create_pr)

    remote = {sibling.rfilename: sibling for sibling in (info.siblings or [])} if info else {}
    publication = Publication(
        repo_id,
        revision,
        left_out=left_out,
        creates=info is None,
        dry_run=dry_run,
    )
    card = contents.get("README.md", b"")
    if isinstance(card, bytes) and b"\nlicense:" not in card:
        publication.notes.append("The card names no licence: set the license of model.card, save, publish again.")
    for name, content in contents.items():
        if name in remote and _is_same(content, remote[name]):
            publication.unchanged.append(name)
        else:
            publication.sent[name] = len(content) if isinstance(content, bytes) else content.stat().st_size
    publication.deleted = sorted(name for name in remote if is_model_file(name) and name not in contents)
    if dry_run:
        return publication

    with explain_hub_errors(repo_id, revision):
        if info is None:
            api.create_repo(repo_id, private=private, exist_ok=True)
        if revision is not None and not has_branch:
            api.create_branch(repo_id, branch=revision, exist_ok=True)
        if not publication.sent and not publication.deleted:
            return publication
        try:
            commit = api.create_commit(
                repo_id,
                operations=[
                    *(CommitOperationAdd(name, contents[name]) for name in publication.sent),
                    *(CommitOperationDelete(name) for name in publication.deleted),
                ],
                commit_message=commit_message or f"{'Update' if any(map(_is_model, remote)) else 'Add'} the model",
                revision=revision,
                create_pr=create_pr,
                parent_commit=info.sha if info is not None else None,
            )
        except Exception:
            logger.warning(
                "%s was not changed, or was changed as a whole: a commit is never taken in part. Run the same command "
                "again; files that have arrived are not sent twice.",
                repo_id,
            )
            raise
        publication.url = commit.pr_url if create_pr else commit.commit_url
        main, _ = _remote(api, repo_id, None)
        if main is not None and not any(_is_model(sibling.rfilename) for sibling in main.siblings or []):
            publication.notes.append("The main branch holds no model yet: publish once without a revision, too.")
    return publication


def _content(root: Path, name: str, repo_id: str) -> Path | bytes:
    path = root / name
    if name != "README.md":
        return path
    return path.read_text(encoding="utf-8").replace(PLACEHOLDER, repo_id).encode("utf-8")


def _remote(api: HfApi, repo_id: str, revision: str | None) -> tuple[ModelInfo | None, bool]:
    """Return what the Hub holds, and whether it holds the branch; a new branch starts from the main one."""
    try:
        try:
            return api.model_info(repo_id, revision=revision, files_metadata=True), True
        except RevisionNotFoundError:
            return api.model_info(repo_id, files_metadata=True), False
    except RepositoryNotFoundError:
        return None, False


def _check_remote(info: ModelInfo | None, repo_id: str, private: bool | None, create_pr: bool) -> None:
    if info is None:
        if create_pr:
            raise FileNotFoundError(
                f"There is no repository {repo_id} to open a pull request in: publish without create_pr first, or "
                "check the name."
            )
        return
    files = [sibling.rfilename for sibling in info.siblings or []]
    others = [name for name in files if name not in (".gitattributes", "README.md")]
    if others and not any(map(_is_model, files)):
        raise ValueError(
            f"The repository {repo_id} exists and holds something other than a model ({', '.join(others[:3])}): choose "
            "another name."
        )
    if private and not info.private:
        raise ValueError(
            f"The repository {repo_id} exists and is public: make it private in its settings first, choose another "
            "name, or publish without private."
        )


def _is_model(name: str) -> bool:
    """Whether the file is one that every model has."""
    return name in ("modules.json", "config.json")


def _is_same(content: Path | bytes, remote: object) -> bool:
    lfs = getattr(remote, "lfs", None)
    size = len(content) if isinstance(content, bytes) else content.stat().st_size
    if getattr(remote, "size", size) not in (None, size):
        return False
    digest = hashlib.sha256() if lfs else hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
    if isinstance(content, bytes):
        digest.update(content)
    else:
        with content.open("rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
    return digest.hexdigest() == (lfs.sha256 if lfs else getattr(remote, "blob_id", None))
