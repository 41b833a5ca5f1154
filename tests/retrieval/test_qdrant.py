import json
import os
import socket
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import numpy as np
import pytest

pytest.importorskip("qdrant_client")

from qdrant_client import QdrantClient, models
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from numcolbert.retrieval.exact import ExactIndex
from numcolbert.retrieval.qdrant import QdrantIndex, payload_filter


@pytest.fixture
def client():
    client = QdrantClient(":memory:")
    yield client
    client.close()


def names(hits):
    return [hit["id"] for hit in hits]


def exact_hits(queries, documents, k):
    return [[(f"d{p}", score) for p, score in ranking] for ranking in ExactIndex(documents).search(queries, k=k)]


def assert_exact(found, expected):
    for hits, ranking in zip(found, expected, strict=True):
        assert names(hits) == [name for name, _ in ranking]
        assert [hit["score"] for hit in hits] == pytest.approx([score for _, score in ranking], rel=1e-4, abs=1e-4)


def test_gated_queries_rank_as_exact_maxsim(client, rng, make_texts, make_queries):
    documents, queries = make_texts(rng, 150, 12), make_queries(rng, 12)
    assert max(np.linalg.norm(q, axis=1).max() for q in queries) > 5
    index = QdrantIndex(client, embedding_size=16, batch_tokens=100)
    index.add_documents([f"d{i}" for i in range(150)], documents)
    assert len(index) == 150
    expected = exact_hits(queries, documents, 20)
    assert_exact(index(queries, k=20), expected)
    # The order must depend on the norms, or the comparison above would prove nothing about them.
    normalised = [q / np.linalg.norm(q, axis=1, keepdims=True) for q in queries]
    assert [[n for n, _ in r] for r in exact_hits(normalised, documents, 20)] != [[n for n, _ in r] for r in expected]


def test_a_real_server_ranks_as_exact_maxsim(rng, make_texts, make_queries):
    url = os.environ.get("NUMCOLBERT_QDRANT_URL")
    if not url:
        pytest.skip("no server: set NUMCOLBERT_QDRANT_URL to its address")
    client = QdrantClient(url=url)
    documents, queries = make_texts(rng, 150, 12), make_queries(rng, 12)
    index = QdrantIndex(client, f"numcolbert-test-{uuid.uuid4()}", 16, exact=True, batch_tokens=100)
    try:
        index.add_documents([f"d{i}" for i in range(150)], documents)
        assert_exact(index(queries, k=20), exact_hits(queries, documents, 20))
    finally:
        client.delete_collection(index.collection)


def test_pylate_retrieves_from_it(client, rng, make_texts, make_queries):
    from pylate.retrieve import ColBERT as Retriever

    documents, queries = make_texts(rng, 40, 8), make_queries(rng, 3)
    index = QdrantIndex(client, embedding_size=16)
    index.add_documents([f"d{i}" for i in range(40)], documents)
    assert_exact(Retriever(index).retrieve(queries, k=5), exact_hits(queries, documents, 5))
    assert_exact(index(queries[0], k=5), exact_hits(queries[:1], documents, 5))


def test_a_folder_keeps_the_documents(tmp_path, rng, make_texts, make_queries):
    documents, queries = make_texts(rng, 30, 6), make_queries(rng, 2)
    for part in (slice(0, 20), slice(10, 30)):  # ten of them twice
        client = QdrantClient(path=str(tmp_path / "store"))
        index = QdrantIndex(client, "numbers", 16)
        index.add_documents([f"d{i}" for i in range(30)][part], documents[part])
        client.close()
    client = QdrantClient(path=str(tmp_path / "store"))
    index = QdrantIndex(client, "numbers", 16)
    assert len(index) == 30
    assert_exact(index(queries, k=30), exact_hits(queries, documents, 30))
    client.close()


def test_adding_again_replaces_and_removing_removes(client, rng, make_texts):
    documents = make_texts(rng, 5, 6)
    index = QdrantIndex(client, embedding_size=16)
    index.add_documents(["a", "b", "c"], documents[:3])
    index.add_documents(["b"], documents[3:4]).add_documents("d", documents[4:])
    fetched = index.get_documents_embeddings([["b", "d"], ["a"], []])
    assert [[len(tokens) for tokens in group] for group in fetched] == [
        [len(documents[3]), len(documents[4])],
        [len(documents[0])],
        [],
    ]
    np.testing.assert_allclose(fetched[0][0], documents[3], rtol=1e-6)
    assert len(index) == 4
    index.remove_documents(["a", "b", "nobody"])
    assert len(index) == 2
    with pytest.raises(KeyError):
        index.get_documents_embeddings([["a"]])
    assert len(QdrantIndex(client, embedding_size=16, override=True)) == 0


def test_payload_filters_and_subsets(client, rng, make_texts, make_queries):
    documents, (query, other) = make_texts(rng, 60, 6), make_queries(rng, 2)
    ids = [f"d{i}" for i in range(60)]
    payloads = [{"year": 1980 + i % 10, "topic": ["earn", "acq", "crude"][i % 3]} for i in range(60)]
    index = QdrantIndex(client, embedding_size=16)
    index.add_documents(ids, documents, payloads)
    ranked = names(index([query], k=60)[0])

    def kept(condition):
        return [name for name in ranked if condition(payloads[int(name[1:])])]

    for wanted, condition in [
        ({"year": 1987}, lambda p: p["year"] == 1987),
        ({"topic": ["earn", "acq"]}, lambda p: p["topic"] != "crude"),
        ({"year": {"gte": 1983, "lt": 1986}}, lambda p: 1983 <= p["year"] < 1986),
        (
            {"year": {"gt": 1983, "lte": 1986}, "topic": "acq"},
            lambda p: 1983 < p["year"] <= 1986 and p["topic"] == "acq",
        ),
    ]:
        expected = kept(condition)
        assert 0 < len(expected) < 60
        assert names(index([query], k=60, query_filter=wanted)[0]) == expected
        assert names(index([query], k=60, query_filter=payload_filter(wanted))[0]) == expected
    some = {"d3", "d17", "d41"}
    assert names(index([query], subset=sorted(some))[0]) == [n for n in ranked if n in some]
    assert [set(names(hits)) for hits in index([query, other], subset=[["d3"], ["d17", "d41"]])] == [
        {"d3"},
        {"d17", "d41"},
    ]
    assert names(index([query], subset=["d3", "d4"], query_filter={"year": 1983})[0]) == ["d3"]
    with pytest.raises(ValueError, match="3 subsets for 1 queries"):
        index([query], subset=[["a"], ["b"], ["c"]])
    with pytest.raises(ValueError, match=r"the filter of 'year' has \['above'\]"):
        index([query], query_filter={"year": {"above": 3}})


@pytest.mark.parametrize(
    ("configuration", "message"),
    [
        (models.VectorParams(size=16, distance=models.Distance.DOT), "not hold one multivector"),
        ({"tokens": models.VectorParams(size=16, distance=models.Distance.DOT)}, "not hold one multivector"),
        (
            models.VectorParams(
                size=16,
                distance=models.Distance.COSINE,
                multivector_config=models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM),
            ),
            "compares by Cosine, which would undo the norms",
        ),
    ],
)
def test_collections_that_rank_otherwise_are_refused(client, configuration, message):
    client.create_collection("numcolbert", vectors_config=configuration)
    with pytest.raises(ValueError, match=message):
        QdrantIndex(client, embedding_size=16)
    assert len(QdrantIndex(client, embedding_size=16, override=True)) == 0


def test_bad_input_is_refused(client):
    index = QdrantIndex(client, embedding_size=2)
    one = [np.ones((1, 2), dtype=np.float32)]
    with pytest.raises(ValueError, match="holds 2 dimensions, not 3"):
        QdrantIndex(client, embedding_size=3)
    with pytest.raises(ValueError, match="2 document ids, 1 embeddings, 2 payloads"):
        index.add_documents(["a", "b"], one)
    with pytest.raises(ValueError, match="document embeddings have 3 dimensions"):
        index.add_documents(["a"], [np.ones((1, 3))])
    with pytest.raises(ValueError, match="query embeddings have 3 dimensions"):
        index([np.ones((1, 3))])
    with pytest.raises(ValueError, match=r"document 0 has embeddings of shape \(0, 2\)"):
        index.add_documents(["a"], [np.ones((0, 2))])
    with pytest.raises(ValueError, match="'document_id'"):
        index.add_documents(["a"], one, [{"document_id": 3}])
    assert len(index) == 0
    assert index([]) == []
    assert index.add_documents([], []) is index


# --- failures on the way ---


def unexpected(status):
    return UnexpectedResponse(status, "", b"", httpx.Headers())


@pytest.fixture
def pauses(monkeypatch):
    slept = []
    monkeypatch.setattr("numcolbert.retrieval.qdrant.time.sleep", slept.append)
    return slept


def failing(client, monkeypatch, method, failures):
    """Let a method fail as listed before it works; None lets one call pass. Returns the sizes of all calls."""
    original, pending = getattr(client, method), list(failures)

    def call(*args, **kwargs):
        failure = pending.pop(0) if pending else None
        if failure is not None:
            raise failure
        return original(*args, **kwargs)

    monkeypatch.setattr(client, method, call)


def test_requests_are_sent_again_after_growing_pauses(client, monkeypatch, pauses, rng, make_texts):
    documents = make_texts(rng, 9, 1)
    index = QdrantIndex(client, embedding_size=16, batch_tokens=3, pause=0.5)
    network = ResponseHandlingException(httpx.ConnectError("no route"))
    timeout = ResponseHandlingException(httpx.ReadTimeout("slow"))
    failures = [None, network, unexpected(503), timeout, None, unexpected(429)]
    failing(client, monkeypatch, "upsert", failures)
    index.add_documents([f"d{i}" for i in range(9)], documents)
    assert pauses == [0.5, 1.0, 2.0, 0.5]
    assert len(index) == 9
    failing(client, monkeypatch, "query_points", [unexpected(500)])
    assert len(index(documents[:1], k=3)[0]) == 3


def test_pauses_have_a_limit_and_follow_the_server(client, monkeypatch, pauses, rng, make_texts):
    index = QdrantIndex(client, embedding_size=16, pause=10, retries=3)
    failing(client, monkeypatch, "upsert", [ResourceExhaustedResponse("slow down", 17), *[unexpected(503)] * 2])
    index.add_documents(["a"], make_texts(rng, 1, 3))
    assert pauses == [17, 20, 30.0]


def test_giving_up_names_the_last_failure_and_adding_again_completes(client, monkeypatch, pauses, rng, make_texts):
    documents, ids = make_texts(rng, 6, 1), list("abcdef")
    index = QdrantIndex(client, embedding_size=16, batch_tokens=2, retries=2)
    failing(client, monkeypatch, "upsert", [None, *[unexpected(503)] * 3])
    with pytest.raises(ConnectionError, match=r"after 3 tries .*503"):
        index.add_documents(ids, documents)
    assert len(index) == 2
    assert len(index.add_documents(ids, documents)) == 6


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (unexpected(400), ValueError),
        (unexpected(401), ValueError),
        (ResponseHandlingException(ValueError("an answer that is none")), ResponseHandlingException),
        (TypeError("ours"), TypeError),
    ],
)
def test_what_cannot_succeed_is_not_sent_again(client, monkeypatch, pauses, failure, error, rng, make_texts):
    index = QdrantIndex(client, embedding_size=16)
    failing(client, monkeypatch, "upsert", [failure])
    with pytest.raises(error):
        index.add_documents(["a"], make_texts(rng, 1, 3))
    assert pauses == []


def test_grpc_failures(client, monkeypatch, pauses, rng, make_texts):
    import grpc

    class Failure(grpc.RpcError):
        def __init__(self, code):
            self.code = lambda: code

    index = QdrantIndex(client, embedding_size=16)
    failing(client, monkeypatch, "upsert", [Failure(grpc.StatusCode.UNAVAILABLE)])
    index.add_documents(["a"], make_texts(rng, 1, 3))
    assert len(pauses) == len(index) == 1
    failing(client, monkeypatch, "upsert", [Failure(grpc.StatusCode.INVALID_ARGUMENT)])
    with pytest.raises(grpc.RpcError):
        index.add_documents(["b"], make_texts(rng, 1, 3))


def test_nobody_listens(pauses):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    client = QdrantClient(url=f"http://127.0.0.1:{port}", check_compatibility=False)
    with pytest.raises(ConnectionError, match="did not answer after 2 tries"):
        QdrantIndex(client, retries=1)
    assert pauses == [0.5]


# --- what is sent to a server ---


class Recorder(BaseHTTPRequestHandler):
    """Answers as a Qdrant server does and keeps what it was asked; fails each first upsert of a batch."""

    requests: list[tuple[str, str, dict]]
    failures: list[int]

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = self.path.split("?")[0]
        self.requests.append((self.command, path, json.loads(body) if body else {}))
        result: object = {"status": "completed", "operation_id": 1}
        if path.endswith("/exists"):
            result = {"exists": False}
        elif path.endswith("/query"):
            result = {"points": [{"id": 7, "version": 1, "score": 2.5, "payload": {"document_id": "seven"}}]}
        elif path == "/collections/numbers":
            result = True
        status = self.failures.pop() if path.endswith("/points") and self.failures else 200
        content = json.dumps({"result": result, "status": "ok", "time": 0.0}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PUT = do_POST = answer  # noqa: N815

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    handler = type("Handler", (Recorder,), {"requests": [], "failures": [503, 503]})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_requests_to_a_cluster(server, pauses, rng, make_texts, make_queries):
    client = QdrantClient(url=f"http://127.0.0.1:{server.server_port}", check_compatibility=False)
    index = QdrantIndex(
        client,
        "numbers",
        16,
        shard_number=6,
        replication_factor=2,
        on_disk=True,
        payload_schema={"year": "integer"},
        exact=True,
        hnsw_config=models.HnswConfigDiff(m=0),
        batch_tokens=4,
    )
    documents, queries = make_texts(rng, 4, 1), make_queries(rng, 1)
    index.add_documents(list("abcd"), [np.repeat(d, 2, axis=0) for d in documents], [{"year": y} for y in range(4)])
    assert index(queries, k=3, query_filter={"year": 2}) == [[{"id": "seven", "score": 2.5}]]

    sent = server.RequestHandlerClass.requests
    (created,) = [body for method, path, body in sent if (method, path) == ("PUT", "/collections/numbers")]
    assert created["shard_number"] == 6
    assert created["replication_factor"] == 2
    assert created["hnsw_config"]["m"] == 0
    vectors = created["vectors"]
    assert (vectors["size"], vectors["distance"], vectors["on_disk"]) == (16, "Dot", True)
    assert vectors["multivector_config"] == {"comparator": "max_sim"}
    assert ("PUT", "/collections/numbers/index", {"field_name": "year", "field_schema": "integer"}) in [
        (method, path, {key: body[key] for key in ("field_name", "field_schema") if key in body})
        for method, path, body in sent
    ]
    batches = [
        [point["payload"]["document_id"] for point in body["points"]]
        for method, path, body in sent
        if (method, path) == ("PUT", "/collections/numbers/points")
    ]
    assert batches == [["a", "b"], ["a", "b"], ["a", "b"], ["c", "d"]]
    assert pauses == [0.5, 1.0]
    (asked,) = [body for _, path, body in sent if path.endswith("/points/query")]
    np.testing.assert_allclose(asked["query"]["nearest"], queries[0], rtol=1e-6)
    assert asked["params"]["exact"] is True
    assert asked["limit"] == 3
