"""Models on disk and from the Hub: folders that are replaced as a whole, repositories that are fetched and checked."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fnmatch
import glob
import logging
import os
import re
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import httpx
from huggingface_hub import HfApi, get_token, snapshot_download
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    LocalTokenNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from numcolbert.modeling.checkpoint import check_checkpoint, refuse_missing_weights

try:
    import fcntl
except ImportError:  # Windows: folders are replaced all the same, only leftovers of a kill are not cleared away
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "check_destination",
    "clean_token",
    "explain_hub_errors",
    "fetch",
    "frozen",
    "is_model_file",
    "is_path",
    "model_files",
    "read_whole",
    "recover",
    "replace_folder",
]

logger = logging.getLogger(__name__)

T = TypeVar("T")

_READ_ATTEMPTS = 5

_TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "tokenizer.model",
    "spiece.model",
    "spm.model",
    "sentencepiece.bpe.model",
    "chat_template.jinja",
)
_WEIGHTS = ("model*.safetensors", "model.safetensors.index.json")
_CONFIGURATION = (
    "modules.json",
    "config.json",
    "config_sentence_transformers.json",
    "sentence_*_config.json",
    "model_card.json",
)
_SAVED = (*_CONFIGURATION, *_TOKENIZER_FILES, *_WEIGHTS, "README.md", "numerical_gate.py")
_TERMS = ("LICENSE*", "NOTICE*")
_MODULE_FOLDER = re.compile(r"\d+_(Transformer|Dense|NumericalGate|Pooling|Normalize)")


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _is_saved(name: str) -> bool:
    """Whether an entry in the root of a folder is one that saving a model writes (or once wrote)."""
    return _matches(name, (*_SAVED, "pytorch_model*.bin")) or _MODULE_FOLDER.fullmatch(name) is not None


def is_model_file(path: str) -> bool:
    """Tell whether a file of a repository belongs to a saved model, this one or an earlier one.

    Parameters
    ----------
    path
        Its path in the repository.

    Examples
    --------
    >>> is_model_file("2_NumericalGate/model.safetensors"), is_model_file("checkpoints/optimizer.pt")
    (True, False)
    """
    return _is_saved(path.split("/", maxsplit=1)[0])


def model_files(folder: str | os.PathLike[str]) -> list[str]:
    """List the files of a saved model: weights, configuration, tokenizer, card, the gate's code, and its licence.

    Parameters
    ----------
    folder
        The folder.

    Returns
    -------
    list of str
        Paths relative to the folder, with forward slashes, sorted. What training leaves beside a model (checkpoints,
        optimizer states, tables) is not among them.
    """
    root = Path(folder)
    files = [path.name for path in root.iterdir() if path.is_file() and _matches(path.name, (*_SAVED, *_TERMS))]
    for path in root.iterdir():
        if path.is_dir() and _MODULE_FOLDER.fullmatch(path.name):
            files += [
                f"{path.name}/{file.name}" for file in path.iterdir() if file.is_file() and _matches(file.name, _SAVED)
            ]
    return sorted(files)


# --- Saving: the folder is replaced as a whole ---


def check_destination(path: str | os.PathLike[str]) -> None:
    """Refuse, before any work is done, a folder that a model could not be saved into.

    Parameters
    ----------
    path
        The folder; it need not exist.

    Raises
    ------
    OSError
        If the path is a file, a mount point or the working folder, or its parent folder is not writable.

    Examples
    --------
    >>> check_destination("models/my-model")
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_dir():
        raise NotADirectoryError(f"{path} is a file, not a folder: choose another output folder.")
    if target.exists() and os.path.ismount(target):
        raise OSError(
            f"{path} is a mount point, which cannot be replaced in one step: save into a folder inside it, such as "
            f"{Path(path) / 'model'}."
        )
    if target == Path.cwd() or target in Path.cwd().parents:
        raise OSError(
            f"{path} is the working folder, or holds it, and cannot be replaced: save into a folder inside it, such as "
            "model."
        )
    parent = next(folder for folder in target.parents if folder.exists())
    if not os.access(parent, os.W_OK | os.X_OK):
        raise PermissionError(f"{parent} is not writable: choose another output folder.")


@contextlib.contextmanager
def replace_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Build a folder beside the old one and put it in its place in one step.

    Whatever happens, a kill included, the path holds the old model or the new one. Entries of the old folder that
    saving a model does not write (checkpoints, optimizer states, tables) are kept: they are hard-linked into the new
    folder, or copied where the file system knows no hard links.

    Parameters
    ----------
    path
        The folder to replace; it need not exist.

    Yields
    ------
    Path
        The folder to write the new model into.

    Raises
    ------
    OSError
        If the disk is full (the old model is left as it was), if the path cannot be replaced (see
        :func:`check_destination`), or if another process is saving into it.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "model"
    >>> with replace_folder(path) as folder:
    ...     _ = (folder / "config.json").write_text("{}")
    >>> [file.name for file in path.iterdir()]
    ['config.json']
    """
    check_destination(path)
    target = Path(os.path.realpath(path))
    recover(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    token = secrets.token_hex(4)
    staging = target.with_name(f".{target.name}.saving-{token}")
    previous = target.with_name(f".{target.name}.previous-{token}")
    old = staging  # where the old folder ends up after an exchange
    with contextlib.ExitStack() as locks:
        try:
            staging.mkdir()
            locks.enter_context(_lock(staging))
            yield staging
            _sync(staging)
            if target.exists():
                # The old folder keeps its lock under its new name: nobody clears it away before it is done with.
                locks.enter_context(_lock(target))
                os.chmod(staging, target.stat().st_mode & 0o7777)
                _carry_over(target, staging)
                for folder, _, _ in os.walk(staging):
                    _sync_folder(Path(folder))
            if not target.exists():
                os.rename(staging, target)
            elif not _exchange(staging, target):
                old = previous
                os.rename(target, previous)
                os.rename(staging, target)
        except BaseException as error:
            if previous.exists() and not target.exists():
                os.rename(previous, target)
            shutil.rmtree(staging, ignore_errors=True)
            if _is_disk_full(error):
                raise OSError(
                    errno.ENOSPC,
                    f"The disk is full: the model was not saved, and what {path} held before is untouched. Free some "
                    "space and save again",
                ) from error
            raise
        _sync_folder(target.parent)
        if old.exists():
            _carry_over(old, target)  # what another thread wrote there in the meantime
            shutil.rmtree(old, ignore_errors=True)


def recover(path: str | os.PathLike[str]) -> None:
    """Clear away what a killed save left beside a folder, and put the folder back if it is missing.

    Parameters
    ----------
    path
        The folder of a model. Saves that are still running are left alone.
    """
    target = Path(os.path.realpath(path))
    pattern = f".{glob.escape(target.name)}."
    deadline = time.monotonic() + 5
    while not target.exists() and (previous := list(target.parent.glob(pattern + "previous-*"))):
        try:
            with _lock(previous[0]):
                os.rename(previous[0], target)
                logger.warning("A save into %s was interrupted: the model it held before is back.", path)
        except OSError:  # its save is running: between its two renames there is no folder for a moment
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    for leftover in [*target.parent.glob(pattern + "saving-*"), *target.parent.glob(pattern + "previous-*")]:
        with contextlib.suppress(OSError), _lock(leftover) as locked:
            if locked:
                shutil.rmtree(leftover, ignore_errors=True)
                logger.warning("Removed what an interrupted save into %s had left.", path)


def read_whole(path: str | os.PathLike[str], read: Callable[[], T]) -> T:
    """Read a folder that another process may replace meanwhile: all of the result is of one folder, never a mixture.

    Parameters
    ----------
    path
        The folder of a model.
    read
        What reads it; called again if the folder was replaced while it did.

    Returns
    -------
    T
        What ``read`` returned.

    Raises
    ------
    OSError
        If the folder was replaced every time it was read.

    Examples
    --------
    >>> read_whole(".", lambda: "read")
    'read'
    """
    for _ in range(_READ_ATTEMPTS):
        recover(path)
        with contextlib.ExitStack() as opened:
            before = _identity(path)
            with contextlib.suppress(OSError):  # held open, it cannot give its number to a later folder
                descriptor = os.open(path, os.O_RDONLY)
                opened.callback(os.close, descriptor)
                before = _identity(descriptor)
            try:
                result = read()
            except Exception:  # perhaps for a file that went with the old folder
                if before == _identity(path):
                    raise
            else:
                if before == _identity(path):
                    return result
    raise OSError(f"{path} was replaced {_READ_ATTEMPTS} times while it was read: wait until nobody saves into it.")


def _identity(path: str | os.PathLike[str] | int) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


@contextlib.contextmanager
def frozen(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Check a saved model and yield a copy of its files, hard-linked where possible, which no later save changes.

    Parameters
    ----------
    path
        The folder of the model.

    Raises
    ------
    ValueError
        If it is no valid model; see :func:`~numcolbert.modeling.checkpoint.check_checkpoint`.
    """
    target = Path(os.path.realpath(path))
    beside = os.access(target.parent, os.W_OK | os.X_OK)
    # Named as a save in progress: should this process be killed, the next save clears it away.
    whole = Path(tempfile.mkdtemp(prefix=f".{target.name}.saving-", dir=target.parent if beside else None))

    def link() -> Path:
        check_checkpoint(path)
        copy = Path(tempfile.mkdtemp(dir=whole))
        for name in model_files(path):
            (copy / name).parent.mkdir(exist_ok=True)
            try:
                os.link(target / name, copy / name)
            except OSError:  # another disk, or no hard links here
                shutil.copy2(target / name, copy / name)
        return copy

    try:
        with _lock(whole):
            yield read_whole(path, link)
    finally:
        shutil.rmtree(whole, ignore_errors=True)


@contextlib.contextmanager
def _lock(folder: Path) -> Iterator[bool]:
    """Hold a folder for one process; yields False where the file system cannot say."""
    if fcntl is None:
        yield False
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            locked = True
        except BlockingIOError:
            raise OSError(
                f"Another process is saving into {folder}: wait until it is done, or choose another folder."
            ) from None
        except OSError:
            locked = False
        yield locked
    finally:
        os.close(descriptor)


def _carry_over(old: Path, new: Path) -> None:
    """Link what is not part of a saved model from the old folder into the new one."""
    for entry in os.scandir(old):
        if not _is_saved(entry.name):
            _link(entry, new / entry.name)


def _link(entry: os.DirEntry[str], target: Path) -> None:
    with contextlib.suppress(FileNotFoundError):  # another thread has removed it in the meantime
        if entry.is_dir(follow_symlinks=False):
            target.mkdir(exist_ok=True)
            for child in os.scandir(entry):
                _link(child, target / child.name)
            shutil.copystat(entry, target)
        elif not os.path.lexists(target):
            try:
                os.link(entry, target, follow_symlinks=False)
            except FileNotFoundError:
                raise
            except OSError:  # no hard links here
                shutil.copy2(entry, target, follow_symlinks=False)


def _sync(folder: Path) -> None:
    """Bring a fresh folder to disk, every file with the rights of the folder (safetensors are born private)."""
    mode = folder.stat().st_mode & 0o666
    for root, _, files in os.walk(folder):
        for file in files:
            os.chmod(os.path.join(root, file), mode)
            descriptor = os.open(os.path.join(root, file), os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        _sync_folder(Path(root))


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":  # folders cannot be opened there
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _exchange(first: Path, second: Path) -> bool:
    """Swap two folders in one step; False where the system or the file system cannot."""
    if not sys.platform.startswith("linux"):
        return False
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        return False
    at_fdcwd, rename_exchange = -100, 2
    if renameat2(at_fdcwd, os.fsencode(first), at_fdcwd, os.fsencode(second), rename_exchange) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
        return False
    raise OSError(code, os.strerror(code), str(second))


def _is_disk_full(error: BaseException | None) -> bool:
    codes = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
    while error is not None:
        # safetensors and tokenizers, written in Rust, give the number in their text only.
        text = re.search(r"os error (\d+)", str(error))
        if getattr(error, "errno", None) in codes or (text and int(text[1]) in codes):
            return True
        error = error.__cause__ or error.__context__
    return False


# --- Loading: from a folder or the Hub, checked before it is read ---


def fetch(
    name: str | os.PathLike[str],
    *,
    revision: str | None = None,
    token: bool | str | None = None,
    cache_folder: str | os.PathLike[str] | None = None,
    local_files_only: bool = False,
    trust_remote_code: bool = False,
) -> Path:
    """Return the folder of a model: a folder as it is, a Hub repository from the cache, downloaded if needed.

    Only safetensors, JSON, tokenizer files and the card are downloaded, the weights last, when everything else has
    passed :func:`~numcolbert.modeling.checkpoint.check_checkpoint`. What an interrupted save left is put in order.

    Parameters
    ----------
    name
        A folder or a Hub id.
    revision
        Branch, tag or commit.
    token
        Access token; True for the stored one, False for none.
    cache_folder
        Cache of the Hub's files. Defaults to that of huggingface_hub, or ``SENTENCE_TRANSFORMERS_HOME``.
    local_files_only
        Whether to use the cache alone.
    trust_remote_code
        Whether modules and encoders that need code of the repository pass; their code is downloaded then.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    FileNotFoundError
        If there is no such folder, repository or revision, or no cached copy while offline.
    PermissionError
        If the repository is gated or the token is refused.
    ConnectionError
        If the Hub cannot be reached.
    ValueError
        If the repository fails a check.
    """
    name = os.fspath(name)
    if is_path(name):
        folder = Path(name).expanduser()
        recover(folder)
        if not folder.is_dir():
            raise FileNotFoundError(f"There is no folder {name}: check the path, or pass a Hub id such as org/name.")
        return folder
    options: dict[str, Any] = {
        "repo_id": name,
        "token": clean_token(token),
        "cache_dir": cache_folder or os.getenv("SENTENCE_TRANSFORMERS_HOME"),
        "local_files_only": local_files_only,
    }
    small = [*_CONFIGURATION, *_TOKENIZER_FILES, "model.safetensors.index.json", "README.md", "artifact.metadata"]
    small += ["adapter_config.json", "[0-9]*_*/*config.json", *(f"[0-9]*_*/{file}" for file in _TOKENIZER_FILES)]
    small += ["[0-9]*_*/model.safetensors.index.json", *(["*.py"] if trust_remote_code else [])]
    weights = ["model*.safetensors", "[0-9]*_*/model*.safetensors"]
    with explain_hub_errors(name, revision):
        folder = Path(snapshot_download(revision=revision, allow_patterns=small, **options))
        check_checkpoint(folder, trust_remote_code=trust_remote_code, weights=False)
        # The same commit, should the branch have moved on in between.
        folder = Path(snapshot_download(revision=folder.name, allow_patterns=weights, **options))
        if not local_files_only and not any(folder.rglob("*.safetensors")):
            files = HfApi(token=options["token"]).list_repo_files(name, revision=folder.name)
            refuse_missing_weights(name, files)
    return folder


def is_path(name: str) -> bool:
    """Tell a path from a Hub id.

    Parameters
    ----------
    name
        Either.

    Examples
    --------
    >>> is_path("org/name"), is_path("./models/name")
    (False, True)
    """
    return (
        os.path.isabs(name)
        or name.startswith((".", "~"))
        or name.count("/") > 1
        or "\\" in name
        or os.path.exists(name)
        or any(Path(name).parent.glob(f".{glob.escape(Path(name).name)}.previous-*"))
    )


def clean_token(token: bool | str | None) -> bool | str | None:
    r"""Strip an access token and refuse one that could not travel in a request, without showing it.

    Parameters
    ----------
    token
        The token; None or True for the stored one, which is checked too.

    Returns
    -------
    bool or str or None
        The token.

    Raises
    ------
    PermissionError
        If it holds blanks, line breaks or characters beyond ASCII.

    Examples
    --------
    >>> clean_token(" hf_abc\n")
    'hf_abc'
    """
    if isinstance(token, str):
        token = token.strip()
    used = get_token() if token is None or token is True else token
    if isinstance(used, str) and not re.fullmatch(r"[\x21-\x7e]+", used):
        raise PermissionError(
            "The access token is empty or holds blanks or foreign characters: copy it again from "
            "https://huggingface.co/settings/tokens."
        )
    return token


@contextlib.contextmanager
def explain_hub_errors(name: str, revision: str | None = None) -> Iterator[None]:
    """Turn what huggingface_hub raises into one sentence with the cure.

    Parameters
    ----------
    name
        The repository.
    revision
        The revision that was asked for.

    Raises
    ------
    FileNotFoundError, PermissionError, ConnectionError, ValueError
        See :func:`fetch`.
    """
    try:
        yield
    except (HfHubHTTPError, httpx.HTTPError, OSError, RuntimeError, HFValidationError) as error:
        raise _explained(error, name, revision) from None


def _explained(error: BaseException, name: str, revision: str | None) -> BaseException:
    login = "pass token=..., set HF_TOKEN, or run `hf auth login`"
    if isinstance(error, HFValidationError):
        return ValueError(f"{name!r} is neither a folder nor a Hub id: a Hub id reads org/name.")
    if isinstance(error, LocalTokenNotFoundError):
        return PermissionError(f"No access token is stored on this machine: {login}.")
    if isinstance(error, GatedRepoError):
        return PermissionError(
            f"{name} is gated: ask for access at https://huggingface.co/{name}, then {login} with that account."
        )
    if isinstance(error, RevisionNotFoundError):
        return FileNotFoundError(
            f"{name} has no branch, tag or commit {revision}: see https://huggingface.co/{name}/tree/main."
        )
    if isinstance(error, RepositoryNotFoundError):
        if "/" not in name:  # Sentence Transformers puts its own organization in front; the Hub does not
            return FileNotFoundError(
                f"There is no folder {name}, and the Hub shows no repository {name}: most Hub ids read org/name, such "
                f"as sentence-transformers/{name}."
            )
        return FileNotFoundError(
            f"The Hub shows no repository {name}: check the name; if it is private, {login} with an account that may "
            "see it."
        )
    if isinstance(error, HfHubHTTPError):
        status = error.response.status_code
        if status == 401:
            return PermissionError(
                f"The Hub refused the access token for {name}: create one at https://huggingface.co/settings/tokens, "
                f"then {login}."
            )
        if status == 403:
            return PermissionError(
                f"This access token may not do that to {name}: use a token with write permission of an account that "
                "is a member of its organization, or open a pull request instead (create_pr)."
            )
        if status == 412:
            return ConnectionError(f"Somebody else committed to {name} in the meantime: run again.")
        said = re.sub(r"hf_\w+", "hf_...", error.server_message or "no reason given")
        return ConnectionError(f"The Hub answered {status} for {name} ({said}): try again.")
    # Uploads that fail in their thread, and downloads that fall back to the cache in vain, arrive wrapped.
    if isinstance(error, LocalEntryNotFoundError | RuntimeError) and isinstance(
        error.__cause__, HfHubHTTPError | httpx.ReadError | httpx.WriteError | httpx.RemoteProtocolError
    ):
        return _explained(error.__cause__, name, revision)
    if isinstance(error, LocalEntryNotFoundError | OfflineModeIsEnabled):
        return FileNotFoundError(
            f"{name} is not (or not completely) in the cache and the Hub is out of reach or switched off: load it "
            "once while online (HF_HUB_OFFLINE unset, local_files_only=False), or pass a folder."
        )
    if isinstance(error, httpx.HTTPError | ConnectionError):
        return ConnectionError(
            f"The connection to the Hub broke ({type(error).__name__}) while working on {name}: try again."
        )
    if _is_disk_full(error):
        return OSError(
            errno.ENOSPC,
            f"The disk is full: the files of {name} did not fit. Free some space, or pass a cache_folder on another "
            "disk; what has arrived is not loaded again",
        )
    return error
