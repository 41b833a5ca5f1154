r"""Qdrant as a ColBERT index: one multivector a document, scored by the server with MaxSim over dot products.

Dot products, never cosine: Qdrant normalises every vector of a cosine collection, queries included, and would undo the
gate of a numerical token without a word. Document tokens have norm 1 already, so nothing is lost.

Needs the extra ``qdrant``: ``pip install 'numcolbert[qdrant]'``.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import grpc
import httpx
import numpy as np
from pylate.indexes.base import Base
from pylate.rank import RerankResult
from qdrant_client import QdrantClient, models
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse
from torch import Tensor

from numcolbert.retrieval.embeddings import Embeddings, as_float32, shared_dimensions

__all__ = ["DOCUMENT_ID", "QdrantIndex", "payload_filter", "point_id"]

logger = logging.getLogger(__name__)

DOCUMENT_ID = "document_id"
"""Key of the payload that holds a document's own id."""

_NAMESPACE = uuid.UUID("6f1c9f0e-4a57-5c0b-9d0e-2f6f0b8a7a51")
_LONGEST_PAUSE = 30.0
_TRANSIENT_STATUS = {408, 429, 500, 502, 503, 504}
_TRANSIENT_CODES = {
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.ABORTED,
}

T = TypeVar("T")


def point_id(document_id: str) -> str:
    """Name the point of a document: Qdrant takes numbers and UUIDs only, and the same document must hit the same point.

    Parameters
    ----------
    document_id
        The document's own id.

    Returns
    -------
    str
        A UUID that depends on nothing else.

    Examples
    --------
    >>> point_id("reuters-12#3") == point_id("reuters-12#3") != point_id("reuters-12#4")
    True
    """
    return str(uuid.uuid5(_NAMESPACE, document_id))


def payload_filter(conditions: Mapping[str, Any]) -> models.Filter:
    """Write a payload filter in short.

    Parameters
    ----------
    conditions
        For each key of the payload a value it must have, a list of values of which it must have one, or a mapping of
        ``gt``, ``gte``, ``lt``, ``lte`` to the bounds it must keep. All must hold.

    Returns
    -------
    qdrant_client.models.Filter
        The same for Qdrant, whose own filters say more.

    Raises
    ------
    ValueError
        If a bound is called otherwise.

    Examples
    --------
    >>> [condition.key for condition in payload_filter({"topic": ["earn", "acq"], "year": {"gte": 1987}}).must]
    ['topic', 'year']
    """
    must: list[Any] = []
    for key, wanted in conditions.items():
        if isinstance(wanted, Mapping):
            unknown = set(wanted) - {"gt", "gte", "lt", "lte"}
            if unknown:
                raise ValueError(f"the filter of {key!r} has {sorted(unknown)}: bounds are gt, gte, lt and lte")
            must.append(models.FieldCondition(key=key, range=models.Range(**wanted)))
        elif isinstance(wanted, list | tuple | set):
            must.append(models.FieldCondition(key=key, match=models.MatchAny(any=list(wanted))))
        else:
            must.append(models.FieldCondition(key=key, match=models.MatchValue(value=wanted)))
    return models.Filter(must=must)


class QdrantIndex(Base):
    """An index of PyLate's kind in a Qdrant collection, which it creates or opens.

    ``pylate.retrieve.ColBERT`` takes it as it takes PLAID. Queries are sent as ``encode`` returns them.

    Parameters
    ----------
    client
        A connected client: of a server or cluster, or of the client's own local mode (``":memory:"`` or ``path=``),
        which scores every document and suits up to some 20,000.
    collection
        Name of the collection.
    embedding_size
        Dimensions of a token embedding.
    override
        Whether to drop a collection of that name and begin anew.
    shard_number, replication_factor
        Shards of a new collection over the nodes of a cluster, and copies of each; None leaves it to the server.
    on_disk
        Whether a new collection keeps its vectors on disk.
    payload_schema
        Keys of the payload that the server should index for filters, with their types (``"keyword"``, ``"integer"``,
        ``"float"`` and so on).
    exact
        Whether searches score every document instead of walking the graph (HNSW).
    batch_tokens
        Token vectors in one request. At 128 dimensions the default makes some 10 MB; a server takes 32 MB.
    retries, pause
        How often a request that the network or a busy server failed is sent again, and after how many seconds: the
        pause doubles each time, up to 30 s, and is never shorter than the server asks for.
    **collection_options
        Whatever else ``QdrantClient.create_collection`` takes: ``hnsw_config``, ``quantization_config``,
        ``write_consistency_factor`` and so on.

    Raises
    ------
    ValueError
        If a collection of that name exists and is no index for such embeddings, or Qdrant refuses a request.
    ConnectionError
        If no answer comes after all retries.

    Examples
    --------
    >>> index = QdrantIndex(QdrantClient(":memory:"), "demo", embedding_size=2)
    >>> documents = [np.array([[1.0, 0.0]]), np.array([[0.6, 0.8], [0.0, 1.0]])]
    >>> _ = index.add_documents(["a", "b"], documents, payloads=[{"year": 1986}, {"year": 1987}])
    >>> gated = [np.array([[0.0, 2.0], [1.0, 0.0]])]
    >>> [(hit["id"], round(hit["score"], 3)) for hit in index(gated)[0]]
    [('b', 2.6), ('a', 1.0)]
    >>> [hit["id"] for hit in index(gated, query_filter={"year": {"lt": 1987}})[0]]
    ['a']
    """

    is_end_to_end_index = True

    def __init__(
        self,
        client: QdrantClient,
        collection: str = "numcolbert",
        embedding_size: int = 128,
        *,
        override: bool = False,
        shard_number: int | None = None,
        replication_factor: int | None = None,
        on_disk: bool | None = None,
        payload_schema: Mapping[str, str] | None = None,
        exact: bool = False,
        batch_tokens: int = 4096,
        retries: int = 5,
        pause: float = 0.5,
        **collection_options: Any,
    ) -> None:
        self.client = client
        self.collection = collection
        self.embedding_size = embedding_size
        self.exact = exact
        self.batch_tokens = batch_tokens
        self.retries = retries
        self.pause = pause
        if override:
            self._send(client.delete_collection, collection)
        if self._send(client.collection_exists, collection):
            self._check()
            return
        vectors = models.VectorParams(
            size=embedding_size,
            distance=models.Distance.DOT,
            on_disk=on_disk,
            multivector_config=models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM),
        )
        self._send(
            client.create_collection,
            collection,
            vectors_config=vectors,
            shard_number=shard_number,
            replication_factor=replication_factor,
            **collection_options,
        )
        for key, kind in (payload_schema or {}).items():
            self._send(client.create_payload_index, collection, key, models.PayloadSchemaType(kind))

    def _check(self) -> None:
        """Refuse a collection that would rank otherwise."""
        found = self._send(self.client.get_collection, self.collection).config.params.vectors
        cure = "choose another collection, or override=True to drop it"
        if not isinstance(found, models.VectorParams) or found.multivector_config is None:
            raise ValueError(f"the collection {self.collection!r} does not hold one multivector a document: {cure}")
        if found.distance != models.Distance.DOT:
            raise ValueError(
                f"the collection {self.collection!r} compares by {found.distance.value}, which would undo the norms of "
                f"gated query tokens; MaxSim needs Dot: {cure}"
            )
        if found.size != self.embedding_size:
            raise ValueError(
                f"the collection {self.collection!r} holds {found.size} dimensions, not {self.embedding_size}: {cure}"
            )

    def __len__(self) -> int:
        """Return the number of documents."""
        return self._send(self.client.count, self.collection, exact=True).count

    def add_documents(
        self,
        documents_ids: str | Sequence[str],
        documents_embeddings: Embeddings,
        payloads: Sequence[Mapping[str, Any]] | None = None,
    ) -> QdrantIndex:
        """Add documents; one whose id is there already is replaced.

        Parameters
        ----------
        documents_ids
            Names of the documents.
        documents_embeddings
            One array of shape (tokens, embedding_size) for each.
        payloads
            What to keep with each document and filter by.

        Returns
        -------
        QdrantIndex
            The index.

        Raises
        ------
        ValueError
            If the arguments differ in number, an embedding has no token or other dimensions, or a payload has the key
            ``document_id``.
        ConnectionError
            If no answer comes after all retries. What was sent until then is kept: adding all again is safe.
        """
        ids = [documents_ids] if isinstance(documents_ids, str) else list(documents_ids)
        payloads = [{}] * len(ids) if payloads is None else payloads
        if not len(ids) == len(documents_embeddings) == len(payloads):
            raise ValueError(
                f"{len(ids)} document ids, {len(documents_embeddings)} embeddings, {len(payloads)} payloads; give as "
                "many of each."
            )
        if not ids:
            return self
        if any(DOCUMENT_ID in payload for payload in payloads):
            raise ValueError(f"a payload has the key {DOCUMENT_ID!r}, which holds the document's id: rename it")
        self._check_dimensions(documents_embeddings, "document")
        points = (
            models.PointStruct(
                id=point_id(name), vector=as_float32(tokens).tolist(), payload={**payload, DOCUMENT_ID: name}
            )
            for name, tokens, payload in zip(ids, documents_embeddings, payloads, strict=True)
        )
        for batch in self._batches(points):
            self._send(self.client.upsert, self.collection, batch, wait=True)
        return self

    def _batches(self, points: Iterator[models.PointStruct]) -> Iterator[list[models.PointStruct]]:
        batch: list[models.PointStruct] = []
        tokens = 0
        for point in points:
            size = len(point.vector)  # type: ignore[arg-type]
            if batch and tokens + size > self.batch_tokens:
                yield batch
                batch, tokens = [], 0
            batch.append(point)
            tokens += size
        if batch:
            yield batch

    def remove_documents(self, documents_ids: Sequence[str]) -> QdrantIndex:
        """Remove documents; ids that are not there are passed over.

        Parameters
        ----------
        documents_ids
            Names of the documents.

        Returns
        -------
        QdrantIndex
            The index.
        """
        points = [point_id(name) for name in documents_ids]
        self._send(self.client.delete, self.collection, points_selector=points, wait=True)
        return self

    def __call__(
        self,
        queries_embeddings: Embeddings | np.ndarray | Tensor,
        k: int = 10,
        subset: Sequence[str] | Sequence[Sequence[str]] | None = None,
        query_filter: models.Filter | Mapping[str, Any] | None = None,
    ) -> list[list[RerankResult]]:
        """Search for several queries.

        Parameters
        ----------
        queries_embeddings
            One array of shape (tokens, embedding_size) for each query, or a single one; used as given, without
            normalisation.
        k
            Documents to return for each query.
        subset
            Ids of the documents to search in: one list for all queries, or one for each.
        query_filter
            A filter on the payload, as Qdrant writes it or as :func:`payload_filter` takes it.

        Returns
        -------
        list[list[RerankResult]]
            For each query, ``{"id": ..., "score": ...}`` of the best documents, best first.

        Raises
        ------
        ValueError
            If an embedding has no token or other dimensions, or there are not as many subsets as queries.
        ConnectionError
            If no answer comes after all retries.
        """
        single = isinstance(queries_embeddings, np.ndarray | Tensor) and queries_embeddings.ndim == 2
        queries: Embeddings = [queries_embeddings] if single else list(queries_embeddings)  # type: ignore[list-item]
        if not queries:
            return []
        self._check_dimensions(queries, "query")
        filters = self._filters(len(queries), subset, query_filter)
        return [
            self._search(as_float32(query).tolist(), k, wanted) for query, wanted in zip(queries, filters, strict=True)
        ]

    def _filters(
        self,
        queries: int,
        subset: Sequence[str] | Sequence[Sequence[str]] | None,
        query_filter: models.Filter | Mapping[str, Any] | None,
    ) -> list[models.Filter | None]:
        if isinstance(query_filter, Mapping):
            query_filter = payload_filter(query_filter)
        if subset is None:
            return [query_filter] * queries
        subsets: Sequence[Any] = [subset] * queries if all(isinstance(name, str) for name in subset) else subset
        if len(subsets) != queries:
            raise ValueError(f"{len(subsets)} subsets for {queries} queries; give one list for all, or one for each.")
        inside = [
            models.Filter(must=[models.HasIdCondition(has_id=[point_id(name) for name in names])]) for names in subsets
        ]
        return [models.Filter(must=[query_filter, one]) if query_filter else one for one in inside]

    def _search(self, query: list[list[float]], k: int, wanted: models.Filter | None) -> list[RerankResult]:
        response = self._send(
            self.client.query_points,
            self.collection,
            query=query,
            query_filter=wanted,
            limit=k,
            with_payload=[DOCUMENT_ID],
            search_params=models.SearchParams(exact=self.exact),
        )
        return [RerankResult(id=(point.payload or {})[DOCUMENT_ID], score=point.score) for point in response.points]

    def get_documents_embeddings(self, documents_ids: Sequence[Sequence[str]]) -> list[list[np.ndarray]]:
        """Fetch the embeddings of documents.

        Parameters
        ----------
        documents_ids
            Lists of names of documents.

        Returns
        -------
        list[list[np.ndarray]]
            In the same structure, float32 arrays of shape (tokens, embedding_size).

        Raises
        ------
        KeyError
            If there is no document of that name.
        """
        points = list(dict.fromkeys(point_id(name) for names in documents_ids for name in names))
        records = self._send(self.client.retrieve, self.collection, points, with_payload=False, with_vectors=True)
        found = {str(record.id): np.array(record.vector, dtype=np.float32) for record in records}
        return [[found[point_id(name)] for name in names] for names in documents_ids]

    def _check_dimensions(self, embeddings: Embeddings, what: str) -> None:
        dimensions = shared_dimensions(embeddings, what)
        if dimensions != self.embedding_size:
            raise ValueError(
                f"{what} embeddings have {dimensions} dimensions, the collection {self.collection!r} has "
                f"{self.embedding_size}; encode both with one model."
            )

    def _send(self, request: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Send a request, again after a pause if it may yet succeed. Every request here may be sent twice."""
        attempt = 0
        while True:
            try:
                return request(*args, **kwargs)
            except Exception as error:
                if not _is_transient(error):
                    if isinstance(error, UnexpectedResponse):
                        raise ValueError(f"Qdrant refused a request on {self.collection!r}: {error}") from error
                    raise
                if attempt == self.retries:
                    raise ConnectionError(
                        f"Qdrant did not answer after {attempt + 1} tries ({error}): check its address and its log"
                    ) from error
                pause = min(self.pause * 2**attempt, _LONGEST_PAUSE)
                if isinstance(error, ResourceExhaustedResponse):
                    pause = max(pause, error.retry_after_s)
                logger.warning("Qdrant: %s; trying again in %.1f s", error, pause)
                time.sleep(pause)
                attempt += 1


def _is_transient(error: Exception) -> bool:
    if isinstance(error, ResponseHandlingException):
        return isinstance(error.source, httpx.TransportError)
    if isinstance(error, UnexpectedResponse):
        return error.status_code in _TRANSIENT_STATUS
    if isinstance(error, grpc.RpcError):
        return error.code() in _TRANSIENT_CODES
    return isinstance(error, ResourceExhaustedResponse)
