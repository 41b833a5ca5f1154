"""Contracts 1 to 3 of the design, PyLate's signature, and what users throw at an encoder."""

import numpy as np
import pylate.models
import pytest
import torch
from pylate import evaluation, indexes, rank, retrieve

from numcolbert import ColBERT

TEXTS = [
    "revenue above 1.2 billion dollars",
    "",
    "😀 مرحبا 12 שלום",
    "9" * 400,
    " over 5 kg ",
    "a query " * 60 + "over 5 kg",
]
DOCUMENTS = ["Revenue was $1,400 million.", "", "The parcel weighs 6 kg.", "word " * 600, "٣ كيلو 😀"]


def same(first: list, second: list) -> bool:
    return len(first) == len(second) and all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def open_gate(model: ColBERT) -> ColBERT:
    """Let the detector take about half of all tokens for numbers, and the gate differ between them."""
    with torch.no_grad():
        gate = model.numerical_gate
        gate.detector[-1].bias.zero_()
        for mlp in (gate.detector, gate.gate):
            mlp[-1].weight.mul_(30)
    return model


@pytest.fixture
def gated(tiny_model: ColBERT) -> ColBERT:
    return open_gate(tiny_model)


def plain_twin(model: ColBERT, folder) -> pylate.models.ColBERT:
    """The same encoder and projection in PyLate's own class."""
    torch.manual_seed(0)
    twin = pylate.models.ColBERT(
        str(folder), device="cpu", embedding_size=model[1].out_features, query_length=model.query_length
    )
    twin[0].load_state_dict(model[0].state_dict())
    twin[1].load_state_dict(model[1].state_dict())
    return twin


@pytest.mark.parametrize("split_digits", [False, True])
def test_save_then_load_gives_the_same_embeddings_to_the_bit(tiny_base, tmp_path, split_digits):
    model = open_gate(ColBERT(tiny_base, device="cpu", embedding_size=16, split_digits=split_digits))
    model.save_pretrained(str(tmp_path / "model"))
    loaded = ColBERT.from_pretrained(tmp_path / "model", device="cpu")
    assert loaded.split_digits is split_digits
    assert same(model.encode(TEXTS, is_query=True), loaded.encode(TEXTS, is_query=True))
    assert same(model.encode(DOCUMENTS, is_query=False), loaded.encode(DOCUMENTS, is_query=False))
    saved = {path.suffix for path in (tmp_path / "model").rglob("*") if path.is_file()}
    assert saved <= {".safetensors", ".json", ".md", ".py", ".txt"}
    loaded.save_pretrained(str(tmp_path / "again"))
    again = ColBERT.from_pretrained(tmp_path / "again", device="cpu")
    assert same(model.encode(TEXTS, is_query=True), again.encode(TEXTS, is_query=True))


def test_documents_equal_pylates_to_the_bit(gated, tiny_base):
    twin = plain_twin(gated, tiny_base)
    for options in ({}, {"pool_factor": 2}, {"normalize_embeddings": False}, {"batch_size": 2}):
        assert same(
            gated.encode(DOCUMENTS, is_query=False, **options), twin.encode(DOCUMENTS, is_query=False, **options)
        )


@pytest.mark.parametrize("do_query_expansion", [True, False])
def test_queries_without_a_detected_number_equal_pylates_to_the_bit(tiny_base, do_query_expansion):
    model = ColBERT(tiny_base, device="cpu", embedding_size=16, query_length=16, do_query_expansion=do_query_expansion)
    twin = plain_twin(model, tiny_base)
    twin.do_query_expansion = do_query_expansion
    assert same(model.encode(TEXTS, is_query=True), twin.encode(TEXTS, is_query=True))


@pytest.mark.parametrize("do_query_expansion", [True, False])
def test_detected_tokens_have_the_gates_norm_and_all_others_norm_one(tiny_base, do_query_expansion):
    torch.manual_seed(2)
    model = open_gate(
        ColBERT(tiny_base, device="cpu", embedding_size=16, query_length=16, do_query_expansion=do_query_expansion)
    )
    detected_somewhere = False
    for text in TEXTS:
        (query,) = model.encode([text], is_query=True)
        norms = np.linalg.norm(query, axis=1)
        features = model.tokenize([text], is_query=True)
        with torch.no_grad():
            output = model(features)
        kept = torch.ones_like(output["is_gated"][0]) if do_query_expansion else output["attention_mask"][0].bool()
        gates = torch.where(output["is_gated"][0], output["gate_values"][0], 1.0)[kept].numpy()
        assert len(norms) == int(kept.sum())
        assert np.allclose(norms, gates, atol=1e-5)
        assert np.all(norms > 0)
        assert np.all(norms[gates != 1] < len(norms))
        detected_somewhere |= bool(output["is_gated"].any())
    assert detected_somewhere


def test_an_untrained_gate_that_starts_at_one_barely_moves_a_gated_token(tiny_model):
    features = tiny_model.tokenize(["revenue above 5 dollars"], is_query=True)
    features["gate_mask"] = torch.ones_like(features["input_ids"], dtype=torch.bool)
    gates = tiny_model(features)["gate_values"]
    assert torch.allclose(gates, torch.ones_like(gates), atol=0.2)


def test_a_gate_may_start_at_half_of_the_query_tokens(tiny_base):
    model = ColBERT(tiny_base, device="cpu", query_length=16, gate_start="half")
    features = model.tokenize(["revenue above 5 dollars"], is_query=True)
    gates = model(features)["gate_values"]
    assert torch.allclose(gates, torch.full_like(gates, 8.0), atol=1.0)


def test_from_pretrained_adds_a_gate_only_when_asked(tiny_base):
    assert ColBERT.from_pretrained(tiny_base, device="cpu").numerical_gate is None
    assert ColBERT.from_pretrained(tiny_base, device="cpu", numerical_gate=True).numerical_gate is not None


def test_prefix_free_models_are_gated_too(tiny_base, tmp_path):
    torch.manual_seed(2)
    model = open_gate(ColBERT(tiny_base, device="cpu", query_prefix="", document_prefix="", embedding_size=16))
    query, document = model.encode("over 5 kg", is_query=True), model.encode("over 5 kg", is_query=False)
    assert not np.allclose(np.linalg.norm(query, axis=1), 1)
    assert np.allclose(np.linalg.norm(document, axis=1), 1, atol=1e-5)
    model.save_pretrained(str(tmp_path / "model"))
    loaded = ColBERT.from_pretrained(tmp_path / "model", device="cpu")
    assert np.array_equal(loaded.encode("over 5 kg", is_query=True), query)


def test_encode_takes_what_pylates_encode_takes(gated):
    one = gated.encode("over 5 kg", is_query=True)
    assert isinstance(one, np.ndarray)
    assert isinstance(gated.encode("over 5 kg", is_query=True, convert_to_tensor=True), torch.Tensor)
    nested = gated.encode([["over 5 kg", "under 3 kg"], ["no number"]], is_query=True)
    assert [len(part) for part in nested] == [2, 1]
    assert np.array_equal(nested[0][0], gated.encode(["over 5 kg", "under 3 kg"], is_query=True)[0])
    detail = gated.encode("over 5 kg", is_query=True, output_value=None)
    assert set(detail) == {"token_embeddings", "input_ids", "attention_mask", "masks"}
    assert np.array_equal(detail["token_embeddings"][detail["masks"]], one)
    assert gated.encode([], is_query=True) == []
    padded = gated.encode(DOCUMENTS, is_query=False, padding=True, convert_to_tensor=True)
    assert len({embedding.shape for embedding in padded}) == 1
    prompted = gated.encode("5 kg", is_query=True, prompt="over ")
    assert np.array_equal(prompted, one)


def test_encoding_in_several_processes_gives_the_same(gated):
    pool = gated.start_multi_process_pool(["cpu", "cpu"])
    try:
        parallel = gated.encode_multi_process(TEXTS * 2, pool, batch_size=4, is_query=True)
    finally:
        gated.stop_multi_process_pool(pool)
    together = np.concatenate([np.atleast_3d(part).reshape(-1, 16) for part in parallel])
    alone = np.concatenate(gated.encode(TEXTS * 2, is_query=True))
    assert np.allclose(together, alone, atol=1e-5)


def test_explain_adds_up_to_maxsim(gated):
    query, document = "revenue above 12 kg", "Revenue was $1,400 million and 13 kg."
    explanation = gated.explain(query, document)
    embeddings = gated.encode([query], is_query=True)[0] @ gated.encode([document], is_query=False)[0].T
    assert explanation.score == pytest.approx(embeddings.max(axis=1).sum(), rel=1e-5)
    assert sum(token.share for token in explanation.tokens) == pytest.approx(1, rel=1e-5)
    assert len(explanation.tokens) == gated.query_length
    assert [token.token for token in explanation.tokens[:6]] == ["[CLS]", "[Q] ", "revenue", "above", "12", "kg"]
    norms = np.linalg.norm(gated.encode([query], is_query=True)[0], axis=1)
    assert [token.gate for token in explanation.tokens] == pytest.approx(norms.tolist(), abs=1e-5)
    text = str(explanation)
    assert "P(numerical)" in text
    assert "1,400" in text


def test_explain_works_without_document_and_without_gate(gated, tiny_base):
    assert gated.explain("over 5 kg").score is None
    plain = ColBERT.from_pretrained(tiny_base, device="cpu", do_query_expansion=False)
    rows = plain.explain("over 5 kg", "5 kg").tokens
    assert [row.gate for row in rows] == [1.0] * len(rows)
    assert rows[0].probability is None


@pytest.fixture
def retrieval(gated):
    documents = [f"The parcel weighs {number} kg." for number in range(40)]
    ids = [str(number) for number in range(40)]
    queries = ["over 5 kg", "weighs 7 kg"]
    return gated.encode(queries, is_query=True), gated.encode(documents, is_query=False), ids


def exact_ranking(queries, documents):
    return [np.argsort([-(query @ document.T).max(axis=1).sum() for document in documents]) for query in queries]


@pytest.mark.parametrize("engine", ["voyager", "plaid"])
def test_pylates_indexes_retrieve_what_exact_search_finds(retrieval, engine, tmp_path):
    queries, documents, ids = retrieval
    if engine == "voyager":
        pytest.importorskip("voyager")
        index = indexes.Voyager(index_folder=str(tmp_path), index_name="index", override=True, embedding_size=16)
    else:
        index = indexes.PLAID(
            index_folder=str(tmp_path), index_name="index", override=True, embedding_size=16, show_progress=False
        )
    index.add_documents(documents_ids=ids, documents_embeddings=documents)
    results = retrieve.ColBERT(index=index).retrieve(queries_embeddings=queries, k=10)
    for found, expected in zip(results, exact_ranking(queries, documents), strict=True):
        assert len({result["id"] for result in found} & {str(i) for i in expected[:10]}) >= (
            8 if engine == "voyager" else 7
        )


def test_pylates_reranking_orders_by_gated_maxsim(retrieval):
    queries, documents, ids = retrieval
    ranked = rank.rerank(
        documents_ids=[ids] * len(queries), queries_embeddings=queries, documents_embeddings=[documents] * len(queries)
    )
    for found, query in zip(ranked, queries, strict=True):
        scores = {i: (query @ document.T).max(axis=1).sum() for i, document in zip(ids, documents, strict=True)}
        assert [result["score"] for result in found] == pytest.approx(sorted(scores.values(), reverse=True), rel=1e-4)


def test_pylates_triplet_evaluator_runs_on_it(gated):
    evaluator = evaluation.ColBERTTripletEvaluator(
        anchors=["over 5 kg"], positives=["It weighs 6 kg."], negatives=["It weighs 4 kg."]
    )
    assert 0 <= evaluator(gated)["accuracy"] <= 1
