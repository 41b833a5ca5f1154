"""An index in a folder: built from a corpus of any size in bounded memory, resumed after a kill, opened for search.

::

    index.json               what the index is of: engine, model, corpus
    shards/00000.parquet     ids, sentences and their numbers of tokens
    shards/00000.bin         their embeddings, until the engine holds them
    plaid/ voyager/ qdrant/  the engine's own files, those of any ColBERT index

A shard is written under another name and renamed when it is whole, its table last: what a kill leaves is whole or
counts for nothing, and the next run goes on with the first shard that is missing.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import itertools
import json
import logging
import os
import shutil
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import torch
from datasets import Features, Value
from filelock import FileLock, Timeout
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from torch import Tensor

from numcolbert.corpus.sentences import read_documents, split_sentences, splits
from numcolbert.corpus.storage import write_json, write_parquet
from numcolbert.modeling import ColBERT
from numcolbert.retrieval.engines import build_index, check_voyager, open_index, search_index

if TYPE_CHECKING:
    from numcolbert.retrieval.qdrant import QdrantIndex

__all__ = ["ENGINES", "Engine", "Hit", "Manifest", "OpenIndex", "build", "fingerprint", "read_entries"]

logger = logging.getLogger(__name__)

Engine = Literal["plaid", "voyager", "qdrant"]
ENGINES: tuple[Engine, ...] = get_args(Engine)
"""Engines that an index folder can hold."""

_FORMAT = 1
_MANIFEST = "index.json"
_SHARD = Features({"id": Value("string"), "text": Value("string"), "tokens": Value("int32")})
_CHUNK = 8
"""Batches encoded between two steps of the progress bar; within them texts are sorted by length."""


@dataclass(frozen=True)
class Manifest:
    """What an index folder holds.

    Attributes
    ----------
    engine
        One of `ENGINES`.
    model
        Folder or Hub id of the model.
    encoder_sha256
        `fingerprint` of the model.
    corpus
        Name of the corpus file.
    corpus_sha256
        Digest of its ids and sentences.
    sentences
        How many there are.
    dimensions
        Dimensions of a token embedding.
    shard_size
        Sentences in a shard.
    options
        Settings of the engine.
    sent
        Shards that Qdrant has taken; None before the first is sent.
    complete
        Whether the index can be searched.
    format
        Version of this layout.
    """

    engine: Engine
    model: str
    encoder_sha256: str
    corpus: str
    corpus_sha256: str
    sentences: int
    dimensions: int
    shard_size: int
    options: dict[str, Any] = field(default_factory=dict)
    sent: int | None = None
    complete: bool = False
    format: int = _FORMAT

    @property
    def shards(self) -> int:
        """Number of shards."""
        return -(-self.sentences // self.shard_size)

    @property
    def dtype(self) -> torch.dtype:
        """Precision of stored embeddings: that in which the engine takes them."""
        return torch.float16 if self.engine == "plaid" else torch.float32

    def write(self, folder: Path) -> None:
        """Write it into an index folder, in one step."""
        write_json(asdict(self), folder / _MANIFEST)

    @classmethod
    def read(cls, folder: Path) -> Manifest | None:
        """Read that of an index folder; None where there is none.

        Raises
        ------
        ValueError
            If it cannot be read.
        """
        path = folder / _MANIFEST
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content.get("format") == _FORMAT:
                return cls(**content)
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, AttributeError) as error:
            raise ValueError(f"{path} is damaged ({error}): delete {folder} and build the index again") from error
        raise ValueError(
            f"{path} has format {content.get('format')!r}, this version reads {_FORMAT}: build the index again"
        )


@dataclass(frozen=True)
class Hit:
    """A sentence found.

    Attributes
    ----------
    id
        Its id.
    text
        The sentence.
    score
        MaxSim as the engine computes it.
    """

    id: str
    text: str
    score: float


def fingerprint(model: ColBERT) -> str:
    """Digest of all that document embeddings depend on: encoder, projection, tokenizer, prefix, length, skip list.

    The gate is left out: it acts on queries alone, so models that differ in nothing else share an index.

    Parameters
    ----------
    model
        The model.

    Returns
    -------
    str
        SHA-256 in hexadecimal.
    """
    digest = hashlib.sha256()
    gate = model.numerical_gate
    for module in model:
        if module is gate:
            continue
        for name, weights in module.state_dict().items():
            digest.update(f"{name} {weights.dtype} {tuple(weights.shape)}".encode())
            digest.update(weights.detach().cpu().contiguous().view(torch.uint8).numpy())
    tokenizer = model.tokenizer
    if tokenizer.is_fast:
        content = json.loads(tokenizer.backend_tokenizer.to_str())
        content.update(truncation=None, padding=None)  # of the last batch
    else:
        content = tokenizer.get_vocab()
    settings = [content, model.document_prefix, model.document_length, sorted(model.skiplist_words)]
    digest.update(json.dumps(settings, sort_keys=True).encode())
    return digest.hexdigest()


def read_entries(
    corpus: str | Path, text_column: str = "text", id_column: str = "id", split: bool | None = None
) -> Iterator[tuple[str, str]]:
    """Stream a corpus as (id, sentence), empty ones left out.

    Parameters
    ----------
    corpus
        A `.txt` file with a sentence a line, or `.jsonl`; either may end in `.gz`.
    text_column, id_column
        Columns of `.jsonl` that hold the text and the document's id; rows without an id are named by their line.
    split
        Whether to split each text into sentences, whose ids are then ``document#number``; by default for all but
        `.txt` files.

    Yields
    ------
    tuple of (str, str)
        Id and sentence.

    Raises
    ------
    ValueError
        If a row cannot be read; the message names file and line.
    FileNotFoundError
        If there is no such file.
    """
    if split is None:
        split = splits(corpus)
    for document, text in read_documents(corpus, text_column, id_column):
        if split:
            yield from ((f"{document}#{number}", part) for number, part in enumerate(split_sentences(text)))
        elif sentence := " ".join(text.split()):
            yield document, sentence


def _scan(entries: Iterable[tuple[str, str]], corpus: str | Path, again: Iterable[tuple[str, str]]) -> tuple[int, str]:
    """Read a corpus once before hours go into it: count and digest it, refuse an empty one and ids that occur twice."""
    digest = hashlib.sha256()
    hashes = array("q")  # eight bytes an id
    for entry in entries:
        digest.update(json.dumps(entry).encode() + b"\n")
        hashes.append(hash(entry[0]))
    if not hashes:
        raise ValueError(f"{corpus} holds no text: there is nothing to index")
    values, counts = np.unique(np.frombuffer(hashes, dtype=np.int64), return_counts=True)
    suspects = set(values[counts > 1].tolist())
    seen: set[str] = set()
    for name, _ in again if suspects else ():
        if name in seen:
            raise ValueError(
                f"{corpus} has the id {name!r} twice: choose another id column, or one that does not exist to number "
                "the lines"
            )
        if hash(name) in suspects:
            seen.add(name)
    return len(hashes), digest.hexdigest()


def build(
    corpus: str | Path,
    folder: str | Path,
    model: ColBERT,
    model_name: str,
    engine: Engine = "plaid",
    *,
    text_column: str = "text",
    id_column: str = "id",
    split: bool | None = None,
    batch_size: int = 32,
    shard_size: int = 2000,
    options: dict[str, Any] | None = None,
    console: Console | None = None,
) -> Manifest:
    """Index a corpus, or go on where a killed run stopped.

    Parameters
    ----------
    corpus, text_column, id_column, split
        The sentences; see `read_entries`.
    folder
        Folder of the index; new, empty, or holding the same index unfinished.
    model
        The model.
    model_name
        Folder or Hub id it was loaded from, to be loaded again for search.
    engine
        One of `ENGINES`.
    batch_size
        Sentences encoded at once.
    shard_size
        Sentences in a shard: so many are held in memory, and at most so many encoded again after a kill.
    options
        For PLAID ``nbits`` and ``seed``; for Qdrant ``url`` (none: a local store in the folder), ``collection``,
        ``shard_number`` and ``replication_factor``.
    console
        Where to draw progress; none: nowhere.

    Returns
    -------
    Manifest
        Of the finished index.

    Raises
    ------
    ValueError
        If the corpus cannot be read, is empty or has an id twice; if the folder holds anything else.
    OSError
        If another process is writing into the folder, or a server cannot be reached.
    ImportError
        If the engine is not installed.
    """
    _check_engine(engine)
    columns = (corpus, text_column, id_column, split)
    console = console or Console(quiet=True)
    with console.status(f"Reading {corpus}"):
        sentences, corpus_sha256 = _scan(read_entries(*columns), corpus, read_entries(*columns))
    wanted = Manifest(
        engine=engine,
        model=model_name,
        encoder_sha256=fingerprint(model),
        corpus=Path(corpus).name,
        corpus_sha256=corpus_sha256,
        sentences=sentences,
        dimensions=model.get_sentence_embedding_dimension(),
        shard_size=shard_size,
        options=options or {},
    )
    root = Path(folder)
    with _locked(root):
        manifest = _agree(root, wanted)
        if manifest.complete:
            console.print(f"{folder} is complete already: {manifest.sentences:,} sentences.")
        else:
            _encode(read_entries(*columns), root, manifest, model, batch_size, console)
            with console.status(f"Building {engine}"):
                manifest = _fill_engine(root, manifest, str(model.device))
        for embeddings in (root / "shards").glob("*.bin*"):
            embeddings.unlink()
    return manifest


def _check_engine(engine: str) -> None:
    if engine not in ENGINES:
        raise ValueError(f"Unknown engine {engine!r}; choose one of {', '.join(ENGINES)}.")
    if engine == "voyager":
        check_voyager()
    if engine == "qdrant" and importlib.util.find_spec("qdrant_client") is None:
        raise ImportError("qdrant-client is not installed; pip install 'numcolbert[qdrant]'.")


@contextlib.contextmanager
def _locked(root: Path) -> Iterator[None]:
    if root.exists() and not root.is_dir():
        raise NotADirectoryError(f"{root} is a file: choose another folder for the index")
    if root.exists() and any(root.iterdir()) and not (root / _MANIFEST).exists() and not (root / ".lock").exists():
        raise ValueError(f"{root} is not empty and holds no index: choose another folder")
    root.mkdir(parents=True, exist_ok=True)
    lock = FileLock(root / ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise OSError(f"another process is writing into {root}: wait until it is done") from error
    try:
        yield
    finally:
        lock.release()


def _agree(root: Path, wanted: Manifest) -> Manifest:
    """Take up the index that the folder holds if it is the one wanted, begin it if there is none."""
    found = Manifest.read(root)
    if found is None:
        (root / "shards").mkdir(exist_ok=True)
        wanted.write(root)
        return wanted
    differences = [
        (found.encoder_sha256 != wanted.encoder_sha256, f"made with another model, {found.model}"),
        (found.corpus_sha256 != wanted.corpus_sha256, f"of another corpus, {found.corpus}, or of other columns of it"),
        (found.engine != wanted.engine, f"for another engine, {found.engine}"),
        (found.options != wanted.options, f"with other settings, {found.options}"),
    ]
    for differs, what in differences:
        if differs:
            raise ValueError(f"{root} holds an index {what}: choose another folder, or delete this one")
    return found


def _shard(root: Path, number: int) -> tuple[Path, Path]:
    table = root / "shards" / f"{number:05d}.parquet"
    return table, table.with_suffix(".bin")


def _is_whole(root: Path, number: int, manifest: Manifest) -> bool:
    table, embeddings = _shard(root, number)
    if not table.exists() or not embeddings.exists():
        return False
    tokens = sum(pq.read_table(table, columns=["tokens"])["tokens"].to_pylist())
    return embeddings.stat().st_size == tokens * manifest.dimensions * manifest.dtype.itemsize


def _encode(
    entries: Iterator[tuple[str, str]],
    root: Path,
    manifest: Manifest,
    model: ColBERT,
    batch_size: int,
    console: Console,
) -> None:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("Encoding", total=manifest.sentences)
        for number in range(manifest.shards):
            rows = list(itertools.islice(entries, manifest.shard_size))
            if _is_whole(root, number, manifest):
                progress.advance(task, len(rows))
                continue
            table, path = _shard(root, number)
            partial = path.with_suffix(".bin.part")
            lengths: list[int] = []
            with partial.open("wb") as file:
                for start in range(0, len(rows), _CHUNK * batch_size):
                    texts = [text for _, text in rows[start : start + _CHUNK * batch_size]]
                    embeddings: list[Tensor] = model.encode(
                        texts,
                        batch_size=batch_size,
                        is_query=False,
                        convert_to_tensor=True,
                        show_progress_bar=False,
                    )
                    for tokens in embeddings:
                        tokens.to("cpu", manifest.dtype).numpy().tofile(file)
                        lengths.append(len(tokens))
                    progress.advance(task, len(texts))
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, path)
            write_parquet(
                (
                    {"id": name, "text": text, "tokens": length}
                    for (name, text), length in zip(rows, lengths, strict=True)
                ),
                _SHARD,
                table,
            )


def _load(root: Path, number: int, manifest: Manifest) -> tuple[list[str], list[str], list[Tensor]]:
    """Ids, sentences and embeddings of a shard; the embeddings are memory-mapped."""
    table, path = _shard(root, number)
    rows = pq.read_table(table)
    lengths = rows["tokens"].to_pylist()
    size = sum(lengths) * manifest.dimensions
    flat = torch.from_file(str(path), shared=False, size=size, dtype=manifest.dtype)
    return rows["id"].to_pylist(), rows["text"].to_pylist(), list(flat.view(-1, manifest.dimensions).split(lengths))


def _fill_engine(root: Path, manifest: Manifest, device: str) -> Manifest:
    if manifest.engine == "qdrant":
        manifest = _fill_qdrant(root, manifest)
    else:
        ids: list[str] = []
        documents: list[Tensor] = []
        for number in range(manifest.shards):
            names, _, embeddings = _load(root, number, manifest)
            ids += names
            documents += embeddings
        partial = f"{manifest.engine}.part"
        build_index(
            manifest.engine, root, partial, ids, documents, manifest.dimensions, device=device, **manifest.options
        )
        shutil.rmtree(root / manifest.engine, ignore_errors=True)
        os.replace(root / partial, root / manifest.engine)
    manifest = replace(manifest, complete=True)
    manifest.write(root)
    return manifest


def _fill_qdrant(root: Path, manifest: Manifest) -> Manifest:
    with _open_qdrant(root, manifest) as index:
        if manifest.sent is None:
            if len(index):
                raise ValueError(
                    f"the collection {index.collection!r} holds {len(index):,} documents that are not of this index: "
                    "choose another collection"
                )
            manifest = replace(manifest, sent=0)
            manifest.write(root)
        # A shard that a kill cut short is sent again: the same ids are the same points.
        for number in range(manifest.sent or 0, manifest.shards):
            names, texts, embeddings = _load(root, number, manifest)
            index.add_documents(names, embeddings, [{"text": text} for text in texts])
            manifest = replace(manifest, sent=number + 1)
            manifest.write(root)
    return manifest


@contextlib.contextmanager
def _open_qdrant(root: Path, manifest: Manifest) -> Iterator[QdrantIndex]:
    from qdrant_client import QdrantClient  # noqa: PLC0415  (an extra)

    from numcolbert.retrieval.qdrant import QdrantIndex  # noqa: PLC0415

    options = dict(manifest.options)
    url = options.pop("url", None)
    if url:
        client = QdrantClient(url=url, api_key=os.environ.get("QDRANT_API_KEY"), check_compatibility=False)
    else:
        try:
            client = QdrantClient(path=str(root / "qdrant"))
        except RuntimeError as error:
            raise OSError(
                f"another process has {root / 'qdrant'} open: wait until it is done, or use a server"
            ) from error
    try:
        yield QdrantIndex(client, embedding_size=manifest.dimensions, **options)
    finally:
        client.close()


class OpenIndex:
    """A finished index, open for search.

    Parameters
    ----------
    folder
        The folder.
    model_name
        Model to encode queries with, if not the one that the index names: the same encoder elsewhere, or under another
        gate.
    device
        Where to encode and search; chosen if not given.

    Raises
    ------
    ValueError
        If the folder holds no finished index, or the model is another.
    """

    def __init__(self, folder: str | Path, model_name: str | None = None, device: str | None = None) -> None:
        self.folder = Path(folder)
        manifest = Manifest.read(self.folder) if self.folder.is_dir() else None
        if manifest is None:
            raise ValueError(f"there is no index in {folder}: make one with numcolbert index")
        if not manifest.complete:
            raise ValueError(f"the index in {folder} is not finished: run the same numcolbert index again")
        _check_engine(manifest.engine)
        self.manifest = manifest
        self.model = ColBERT.from_pretrained(model_name or manifest.model, device=device)
        if fingerprint(self.model) != manifest.encoder_sha256:
            raise ValueError(
                f"the encoder of {model_name or manifest.model} is not the one that the index in {folder} was made "
                f"with ({manifest.model} at the time): give that one as the model, or build the index again"
            )

    def search(self, query: str, k: int = 10) -> list[Hit]:
        """Find the best sentences.

        Parameters
        ----------
        query
            The query.
        k
            Sentences to return.

        Returns
        -------
        list of Hit
            Best first.
        """
        manifest, device = self.manifest, str(self.model.device)
        queries = self.model.encode([query], is_query=True, show_progress_bar=False)
        k = min(k, manifest.sentences)
        if manifest.engine == "qdrant":
            with _open_qdrant(self.folder, manifest) as index:
                (ranking,) = search_index(index, queries, k)
        else:
            (ranking,) = search_index(self._index, queries, k, device=device)
        texts = self._texts([name for name, _ in ranking])
        return [Hit(name, texts[name], score) for name, score in ranking]

    @functools.cached_property
    def _index(self) -> Any:
        """PLAID or Voyager, opened at the first search: loading takes longer than a search."""
        engine = self.manifest.engine
        assert engine != "qdrant"
        return open_index(engine, self.folder, engine, self.manifest.dimensions, device=str(self.model.device))

    def _texts(self, ids: list[str]) -> dict[str, str]:
        shards = pads.dataset(str(self.folder / "shards"), format="parquet")
        rows = shards.to_table(columns=["id", "text"], filter=pads.field("id").isin(ids))
        return dict(zip(rows["id"].to_pylist(), rows["text"].to_pylist(), strict=True))
