import functools
import json
import os
import pickle
import shutil

import pylate.indexes
import pylate.models
import pytest
import torch

from numcolbert import ColBERT
from numcolbert.retrieval.engines import build_index, check_voyager, open_index, search_index
from numcolbert.retrieval.exact import ExactIndex


@pytest.fixture(autouse=True)
def _voyager():
    try:
        check_voyager()
    except ImportError as error:
        pytest.skip(str(error))


def test_an_index_on_disk_ranks_gated_queries_as_exact_search(tmp_path, rng, make_texts, make_queries):
    # No more tokens than the 100 candidates of a query token: Voyager then misses none.
    # Positive vectors: PyLate's scoring takes 0 for a maximum below it, that of the padding.
    documents, queries = ([abs(e) for e in texts] for texts in (make_texts(rng, 25, 4), make_queries(rng, 4)))
    build_index("voyager", tmp_path, "v", [str(i) for i in range(25)], documents, 16)
    found = search_index(open_index("voyager", tmp_path, "v", 16), queries, 10)
    for hits, expected in zip(found, ExactIndex(documents).search(queries, k=10), strict=True):
        assert [int(name) for name, _ in hits] == [position for position, _ in expected]
        assert [score for _, score in hits] == pytest.approx([score for _, score in expected], rel=1e-4)


class OneThread:
    """A graph of Voyager that takes its vectors one after the other."""

    def __init__(self, graph):
        self.graph = graph

    def __getattr__(self, name):
        return getattr(self.graph, name)

    def add_items(self, vectors):
        return self.graph.add_items(vectors, num_threads=1)


def on_one_thread(voyager, **options):
    index = voyager(**options)
    index.index = OneThread(index.index)
    return index


@pytest.mark.parametrize("engine", ["plaid", "voyager"])
def test_an_index_is_that_of_a_plain_colbert_byte_for_byte(engine, tmp_path, tiny_model, monkeypatch):
    """Same encoder weights, once under a gate and through this package, once in PyLate alone."""
    tiny_model.save_pretrained(tmp_path / "gated")
    modules = json.loads((tmp_path / "gated" / "modules.json").read_text())
    shutil.copytree(tmp_path / "gated", tmp_path / "plain")
    (tmp_path / "plain" / "modules.json").write_text(json.dumps(modules[:2]))  # encoder and projection
    texts = [f"Net profit of company {n} rose by {n} pct to ${3 * n} million in 19{n + 40}." for n in range(50)]
    ids = [f"d{n}" for n in range(50)]

    gated = ColBERT.from_pretrained(tmp_path / "gated", device="cpu")
    assert gated.numerical_gate is not None
    if engine == "voyager":  # on several threads its graph depends on who comes first
        monkeypatch.setattr(pylate.indexes, "Voyager", functools.partial(on_one_thread, pylate.indexes.Voyager))
    build_index(engine, tmp_path / "indexes", "ours", ids, gated.encode(texts, is_query=False), 16)

    plain = pylate.models.ColBERT(str(tmp_path / "plain"), device="cpu")
    assert len(plain) == 2
    where = {"index_folder": str(tmp_path / "indexes"), "index_name": "theirs", "override": True}
    if engine == "voyager":
        theirs = pylate.indexes.Voyager(**where, embedding_size=16)
    else:
        theirs = pylate.indexes.PLAID(**where, nbits=4, seed=42, device="cpu", show_progress=False)
        torch.manual_seed(42)  # fast-plaid draws the documents for its k-means from the global generator
    theirs.add_documents(documents_ids=ids, documents_embeddings=plain.encode(texts, is_query=False))

    def files(name: str) -> dict[str, bytes]:
        folder = tmp_path / "indexes" / name
        return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}

    first, second = files("ours"), files("theirs")
    assert first.keys() == second.keys()
    # The manifests of merged files hold times.
    differing = [name for name in first if first[name] != second[name] and not name.endswith("manifest.json")]
    assert differing == []


@pytest.mark.parametrize("engine", ["plaid", "voyager"])
def test_ids_are_read_when_they_change_and_not_at_every_search(
    engine, tmp_path, rng, make_texts, make_queries, monkeypatch
):
    documents, (query,) = make_texts(rng, 30, 8), make_queries(rng, 1)
    build_index(engine, tmp_path, "i", [f"a{n}" for n in range(30)], documents, 16)
    index = open_index(engine, tmp_path, "i", 16)
    before = search_index(index, [query], 5)
    with monkeypatch.context() as patch:
        patch.setattr(pickle, "load", None)
        assert search_index(index, [query], 5) == before

    def new(value):
        return f"new {value}" if isinstance(value, str) else value

    for file in (tmp_path / "i").glob("*.pkl"):
        ids = pickle.loads(file.read_bytes())
        renamed = {new(key): new(value) for key, value in ids.items()}
        file.write_bytes(pickle.dumps(renamed))
    after = search_index(index, [query], 5)
    assert after == [[(f"new {name}", score) for name, score in before[0]]]


@pytest.mark.parametrize("engine", ["plaid", "voyager"])
def test_many_queries_find_what_each_finds_alone(engine, tmp_path, rng, make_texts, make_queries, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 4)  # PLAID then searches on two threads
    build_index(engine, tmp_path, "i", [str(n) for n in range(60)], make_texts(rng, 60, 8), 16)
    index = open_index(engine, tmp_path, "i", 16)
    queries = make_queries(rng, 25)
    alone = [search_index(index, [query], 5)[0] for query in queries]
    for together, one in zip(search_index(index, queries, 5), alone, strict=True):
        assert [name for name, _ in together] == [name for name, _ in one]
        assert [score for _, score in together] == pytest.approx([score for _, score in one], rel=1e-5)


def test_plaid_returns_as_many_as_asked_for(tmp_path, rng, make_texts, make_queries):
    build_index("plaid", tmp_path, "p", [str(n) for n in range(60)], make_texts(rng, 60, 8), 16)
    (query,) = make_queries(rng, 1)
    few = open_index("plaid", tmp_path, "p", 16, n_full_scores=20, n_ivf_probe=16)
    assert len(search_index(few, [query], 10)[0]) == 10
    assert few._index.n_full_scores == 20  # a deep search does not slow later ones
    wide = open_index("plaid", tmp_path, "p", 16, n_full_scores=240, n_ivf_probe=16)
    assert search_index(few, [query], 60) == search_index(wide, [query], 60)


def test_plaid_keeps_fewer_candidates_on_a_cpu(tmp_path, rng, make_texts):
    build_index("plaid", tmp_path, "p", [str(n) for n in range(60)], make_texts(rng, 60, 8), 16)
    assert open_index("plaid", tmp_path, "p", 16)._index.n_full_scores == 1024


class Code:
    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return os.mkdir, (self.file,)


def test_too_little_for_plaid_is_said_so(tmp_path, rng, make_texts):
    documents = make_texts(rng, 2, 3)
    with pytest.raises(ValueError, match=f"{sum(map(len, documents))} tokens in 2 documents are too few for PLAID"):
        build_index("plaid", tmp_path, "p", ["a", "b"], documents, 16)


def test_files_that_could_run_code_are_refused(tmp_path, rng, make_texts):
    build_index("voyager", tmp_path, "v", ["a", "b"], make_texts(rng, 2, 3), 16)
    mapping = tmp_path / "v" / "document_ids_to_embeddings.pkl"
    mapping.write_bytes(pickle.dumps({"a": Code(str(tmp_path / "ran"))}))
    with pytest.raises(ValueError, match=r"holds more than document ids \(it refers to posix.mkdir\)"):
        open_index("voyager", tmp_path, "v", 16)
    assert not (tmp_path / "ran").exists()
    pickle.loads(mapping.read_bytes())
    assert (tmp_path / "ran").exists()  # what was refused would have run
