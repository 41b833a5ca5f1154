"""PyLate's approximate indexes, PLAID and Voyager: built, opened and searched with settings that suit gated queries.

Both take query embeddings as they come. PLAID scores with dot products throughout. Voyager looks for candidates by
cosine, which forgets norms, and then scores the candidates with dot products, which keeps them.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from packaging.version import Version

from numcolbert.retrieval.embeddings import Embeddings, Ranking, as_float32

__all__ = ["PylateEngine", "build_index", "check_voyager", "open_index", "search_index"]

PylateEngine = Literal["plaid", "voyager"]


def check_voyager() -> None:
    """Refuse a Voyager that cannot work here, before anything is encoded for it.

    Raises
    ------
    ImportError
        If Voyager is missing, or is one that PyLate 1.6 cannot call: from 2.2 on it takes no list of vectors.
    """
    try:
        version = importlib.metadata.version("voyager")
    except importlib.metadata.PackageNotFoundError as error:
        raise ImportError("Voyager is not installed; pip install 'voyager>=2.1,<2.2'.") from error
    if Version(version) >= Version("2.2"):
        raise ImportError(f"PyLate cannot call voyager {version}; pip install 'voyager>=2.1,<2.2'.")


def build_index(
    engine: PylateEngine,
    folder: str | Path,
    name: str,
    documents_ids: Sequence[str],
    documents_embeddings: Embeddings,
    dimensions: int,
    *,
    nbits: int = 4,
    seed: int = 42,
    device: str = "cpu",
    show_progress: bool = False,
) -> Any:
    """Build an index of PyLate from all documents at once.

    Parameters
    ----------
    engine
        ``"plaid"`` or ``"voyager"``.
    folder, name
        The index is written to ``folder/name``; what was there is replaced.
    documents_ids
        Names of the documents.
    documents_embeddings
        One array of shape (tokens, dimensions) for each; memory-mapped ones stay on disk.
    dimensions
        Dimensions of the embeddings.
    nbits
        Bits of a residual in PLAID; Voyager keeps whole vectors.
    seed
        Seed of PLAID's sampling and k-means. The global random state is left as it was.
    device
        Where PLAID computes.
    show_progress
        Whether PLAID draws progress bars.

    Returns
    -------
    pylate.indexes.PLAID or pylate.indexes.Voyager
        The index, ready for search with the defaults of `open_index`.

    Raises
    ------
    ValueError
        If PLAID finds too few tokens to learn its residuals from (some ten).
    """
    index = _pylate_index(
        engine, folder, name, override=True, dimensions=dimensions, nbits=nbits, seed=seed, device=device,
        show_progress=show_progress,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        # fast-plaid seeds its k-means, and draws the documents for it from the global generator.
        torch.manual_seed(seed)
        try:
            index.add_documents(documents_ids=list(documents_ids), documents_embeddings=list(documents_embeddings))
        except RuntimeError as error:
            if "Cannot train codec" not in str(error):
                raise
            tokens = sum(len(document) for document in documents_embeddings)
            raise ValueError(
                f"{tokens} tokens in {len(documents_ids)} documents are too few for PLAID: take voyager or index more"
            ) from error
    return index


def open_index(
    engine: PylateEngine,
    folder: str | Path,
    name: str,
    dimensions: int,
    *,
    n_ivf_probe: int = 8,
    n_full_scores: int | None = None,
    device: str = "cpu",
) -> Any:
    """Open an index of PyLate for search.

    What a search costs depends on the machine. PLAID computes in float16, for which most CPUs have no arithmetic:
    there nearly all of a query's time goes into the ``n_full_scores / 4`` documents that it scores in full, so on a CPU
    they are fewer than PyLate's (``results/plaid`` tells what that costs: time against overlap with exact search).
    The threads of torch share that work for each query. Of more than ten queries at once PLAID searches several side by
    side, a thread for every ten and no more than there are cores; a single query starts none. PyLate alone would search
    on every GPU it sees; here the device is named. It would also read its pickles of document ids again at every
    search; here they are kept until the files change. Voyager builds its graph on all cores, in an order that differs
    from run to run: of the two only PLAID gives the same files for the same seed, on one CPU with one number of
    threads.

    Parameters
    ----------
    engine
        ``"plaid"`` or ``"voyager"``.
    folder, name
        The index lies in ``folder/name``.
    dimensions
        Dimensions of the embeddings.
    n_ivf_probe
        Cells that PLAID looks into for each query token.
    n_full_scores
        Candidates that PLAID keeps after scoring by centroids alone; it scores a quarter of them in full. By default
        1,024 on a CPU and PyLate's 8,192 elsewhere. `search_index` keeps more where so many documents are asked for.
    device
        Where PLAID computes.

    Returns
    -------
    pylate.indexes.PLAID or pylate.indexes.Voyager
        The index.

    Raises
    ------
    ValueError
        If one of its files could run code: PyLate keeps document ids as pickles.
    """
    mappings = {path.name: _Mapping(path) for path in sorted(Path(folder, name).glob("*.pkl"))}
    for mapping in mappings.values():
        mapping()
    index = _pylate_index(
        engine, folder, name, override=False, dimensions=dimensions, device=device, n_ivf_probe=n_ivf_probe,
        n_full_scores=n_full_scores,
    )  # fmt: skip
    reader = index._index if engine == "plaid" else index
    for method, file in _READERS[engine].items():
        if file in mappings:
            setattr(reader, method, mappings[file])
    return index


_READERS = {
    "plaid": {
        "_load_documents_ids_to_plaid_ids": "documents_ids_to_plaid_ids.pkl",
        "_load_plaid_ids_to_documents_ids": "plaid_ids_to_documents_ids.pkl",
    },
    "voyager": {
        "_load_documents_ids_to_embeddings": "document_ids_to_embeddings.pkl",
        "_load_embeddings_to_documents_ids": "embeddings_to_documents_ids.pkl",
    },
}
"""PyLate's methods that read a pickle at every search, and the pickles."""


class _Mapping:
    """Document ids of an index, read without running code and kept until their file changes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.content: dict[Any, Any] = {}
        self.stamp: tuple[int, int] | None = None

    def __call__(self) -> dict[Any, Any]:
        status = self.path.stat()
        stamp = (status.st_mtime_ns, status.st_size)
        if stamp != self.stamp:
            with self.path.open("rb") as file:
                try:
                    self.content = _PlainData(file).load()
                except pickle.UnpicklingError as error:
                    raise ValueError(
                        f"{self.path} holds more than document ids ({error}): build the index again."
                    ) from error
            self.stamp = stamp
        return self.content


class _PlainData(pickle.Unpickler):
    """Reads dicts, lists, numbers and strings, and refuses whatever would look up code."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it refers to {module}.{name}")


def search_index(
    index: Any, queries_embeddings: Embeddings, k: int, *, device: str = "cpu", show_progress: bool = False
) -> list[Ranking]:
    """Search an index for several queries through ``pylate.retrieve.ColBERT``.

    Parameters
    ----------
    index
        An index of PyLate, or one that behaves like it.
    queries_embeddings
        One array of shape (tokens, dimensions) for each query; used as given, without normalisation.
    k
        Documents to return for each query.
    device
        Where candidates are scored.
    show_progress
        Whether to draw a progress bar.

    Returns
    -------
    list[Ranking]
        For each query, (document id, score), best first.
    """
    from pylate.retrieve import ColBERT as Retriever  # noqa: PLC0415  (seconds to import)

    queries = [as_float32(query) for query in queries_embeddings]
    retriever = Retriever(index=index)
    retriever._show_progress = lambda: show_progress
    with _candidates_for(index, k):
        results = retriever.retrieve(queries_embeddings=queries, k=k, device=device)
    return [[(str(hit["id"]), float(hit["score"])) for hit in ranking] for ranking in results]


@contextlib.contextmanager
def _candidates_for(index: Any, k: int) -> Iterator[None]:
    """Let PLAID keep the candidates that k documents take: it returns a quarter of them."""
    plaid: Any = getattr(index, "_index", None)
    candidates = getattr(plaid, "n_full_scores", None)
    if candidates is None or candidates >= 4 * k:
        yield
        return
    plaid.n_full_scores = 4 * k
    try:
        yield
    finally:
        plaid.n_full_scores = candidates


def _pylate_index(
    engine: PylateEngine,
    folder: str | Path,
    name: str,
    *,
    override: bool,
    dimensions: int,
    nbits: int = 4,
    seed: int = 42,
    device: str = "cpu",
    show_progress: bool = False,
    n_ivf_probe: int = 8,
    n_full_scores: int | None = None,
) -> Any:
    from pylate import indexes  # noqa: PLC0415  (seconds to import)

    where = {"index_folder": str(folder), "index_name": name, "override": override}
    if engine == "voyager":
        return indexes.Voyager(**where, embedding_size=dimensions)
    return indexes.PLAID(
        **where,
        nbits=nbits,
        seed=seed,
        show_progress=show_progress,
        device=device,
        n_ivf_probe=n_ivf_probe,
        n_full_scores=n_full_scores or (1024 if device == "cpu" else 8192),
    )
