import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pylate.scores import colbert_scores

from numcolbert.evaluation.search import ExactIndex, check_index, maxsim_scores, retrieve
from tests.evaluation.references import loop_maxsim


def texts(rng, count, longest, dimensions=8):
    """Token embeddings of unit norm, of random lengths."""
    embeddings = [rng.normal(size=(rng.integers(1, longest + 1), dimensions)) for _ in range(count)]
    return [(e / np.linalg.norm(e, axis=1, keepdims=True)).astype(np.float32) for e in embeddings]


def gated(rng, queries):
    """Query tokens with norms anywhere in (0, |Q|), as a gate leaves them."""
    return [(q * rng.uniform(0, len(q), size=(len(q), 1))).astype(np.float32) for q in queries]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    documents=st.integers(1, 12),
    queries=st.integers(1, 4),
    block_tokens=st.integers(1, 40),
)
def test_scores_equal_a_loop_over_the_formula(seed, documents, queries, block_tokens):
    rng = np.random.default_rng(seed)
    documents, queries = texts(rng, documents, 9), gated(rng, texts(rng, queries, 6))
    scores = ExactIndex(documents, block_tokens=block_tokens).scores(queries).numpy()
    expected = [[loop_maxsim(query, document) for document in documents] for query in queries]
    np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-5)
    assert scores.dtype == np.float32


def test_padding_never_wins_where_all_similarities_are_negative():
    query = np.array([[1.0, 0.0]])
    documents = [np.array([[-1.0, 0.0]]), np.array([[-0.5, 0.1], [-0.2, 0.0], [-0.9, 0.0]])]
    assert ExactIndex(documents).scores([query, np.concatenate([query, query])]).tolist() == [
        pytest.approx([-1.0, -0.2]),
        pytest.approx([-2.0, -0.4]),
    ]


def test_scores_equal_those_of_pylate(rng):
    documents, queries = texts(rng, 50, 20, 128), gated(rng, texts(rng, 7, 12, 128))
    padded = torch.nn.utils.rnn.pad_sequence([torch.tensor(d) for d in documents], batch_first=True)
    mask = torch.nn.utils.rnn.pad_sequence([torch.ones(len(d)) for d in documents], batch_first=True)
    for query, scores in zip(queries, ExactIndex(documents).scores(queries), strict=True):
        expected = colbert_scores(torch.tensor(query)[None], padded, documents_mask=mask)[0]
        # PyLate zeroes masked similarities instead of dropping them, so only positive maxima can be compared.
        sims = torch.einsum("qd,ntd->nqt", torch.tensor(query), padded).masked_fill(mask[:, None] == 0, -9).amax(-1)
        comparable = (sims > 0).all(dim=1)
        assert comparable.sum() > 5
        torch.testing.assert_close(scores[comparable], expected[comparable])


def test_norms_of_query_tokens_count(rng):
    documents, (query,) = texts(rng, 30, 9), texts(rng, 1, 6)
    scores = ExactIndex(documents).scores([query, 3 * query])
    torch.testing.assert_close(scores[1], 3 * scores[0])
    lifted = query.copy()
    lifted[0] *= 5
    expected = [loop_maxsim(query, d) + 4 * loop_maxsim(query[:1], d) for d in documents]
    np.testing.assert_allclose(ExactIndex(documents).scores([lifted])[0], expected, rtol=1e-4)


def test_search_sorts_by_score_and_keeps_document_order_in_ties(rng):
    distinct = texts(rng, 20, 9)
    documents = distinct + distinct  # every score occurs twice
    queries = texts(rng, 40, 5)
    index = ExactIndex(documents, block_tokens=16)
    scores = index.scores(queries).numpy()
    for row, ranking in zip(scores, index.search(queries, k=100), strict=True):
        assert len(ranking) == len(documents) == len(index)
        assert [position for position, _ in ranking] == sorted(range(len(documents)), key=lambda d: (-row[d], d))
        assert [score for _, score in ranking] == pytest.approx(sorted(row, reverse=True))
    assert [hits[:3] for hits in index.search(queries, k=100)] == index.search(queries, k=3)


def test_one_query_against_some_documents(rng):
    documents, (query,) = texts(rng, 6, 9), texts(rng, 1, 6)
    np.testing.assert_allclose(
        maxsim_scores(query, documents), [loop_maxsim(query, d) for d in documents], rtol=1e-5, atol=1e-6
    )


def test_half_precision_and_tensors_are_scored_in_float32(rng):
    documents, queries = texts(rng, 9, 9), texts(rng, 3, 5)
    tensors = [torch.tensor(d, dtype=torch.bfloat16) for d in documents]
    scores = ExactIndex(tensors).scores([torch.tensor(q) for q in queries])
    assert scores.dtype == torch.float32
    torch.testing.assert_close(scores, ExactIndex([t.float() for t in tensors]).scores(queries))


@pytest.mark.parametrize("index", ["plaid", "voyager"])
def test_approximate_indexes_find_what_exact_search_finds(rng, index):
    if index == "voyager":
        try:
            check_index(index)
        except ImportError as error:
            pytest.skip(str(error))
    documents = texts(rng, 60, 12, 128)
    ids = [f"d{number}" for number in range(len(documents))]
    # A query asks for one document; the gate lifts half of its tokens.
    queries = [np.concatenate([d, texts(rng, 1, 3, 128)[0]]) for d in documents[:12]]
    queries = [q * np.where(np.arange(len(q)) % 2, 6.0, 1.0)[:, None].astype(np.float32) for q in queries]
    exact = retrieve(queries, documents, ids, "exact", k=5)
    found = retrieve(queries, documents, ids, index, k=5)
    for number, (expected, hits) in enumerate(zip(exact, found, strict=True)):
        assert hits[0][0] == expected[0][0] == f"d{number}"
        # 4-bit residuals of PLAID move scores a little; dropping the norms would shrink them several times.
        assert hits[0][1] == pytest.approx(expected[0][1], rel=1e-4 if index == "voyager" else 0.1)


@pytest.mark.parametrize(
    ("documents", "queries", "message"),
    [
        ([], [np.ones((1, 2))], "no document"),
        ([np.ones((2, 2)), np.ones((0, 2))], [np.ones((1, 2))], r"document 1 has embeddings of shape \(0, 2\)"),
        ([np.ones((2, 2)), np.ones((2, 3))], [np.ones((1, 2))], r"different dimensions \[2, 3\]"),
        ([np.ones((2, 2))], [np.ones((1, 3))], "Queries have 3 dimensions, documents 2"),
        ([np.ones((2, 2))], [np.ones(2)], r"query 0 has embeddings of shape \(2,\)"),
    ],
)
def test_bad_embeddings_are_refused(documents, queries, message):
    with pytest.raises(ValueError, match=message):
        ExactIndex(documents).scores(queries)


def test_bad_requests_are_refused():
    one = [np.ones((1, 2), dtype=np.float32)]
    with pytest.raises(ValueError, match="Unknown index 'faiss'; choose one of exact, plaid, voyager"):
        retrieve(one, one, ["a"], "faiss")
    with pytest.raises(ValueError, match="2 document ids for 1 documents"):
        retrieve(one, one, ["a", "b"])
