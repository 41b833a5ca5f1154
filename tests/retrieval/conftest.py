import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def unit_texts(rng, count, longest, dimensions=16):
    """Token embeddings of unit norm, of random lengths."""
    embeddings = [rng.normal(size=(rng.integers(1, longest + 1), dimensions)) for _ in range(count)]
    return [(e / np.linalg.norm(e, axis=1, keepdims=True)).astype(np.float32) for e in embeddings]


def gated_queries(rng, count, tokens=12, dimensions=16):
    """Queries of which some tokens have norms anywhere in (0, |Q|), as a gate leaves them."""
    queries = [rng.normal(size=(tokens, dimensions)) for _ in range(count)]
    queries = [q / np.linalg.norm(q, axis=1, keepdims=True) for q in queries]
    scales = [np.where(rng.random(tokens) < 0.4, rng.uniform(0, tokens, tokens), 1.0) for _ in queries]
    return [(q * s[:, None]).astype(np.float32) for q, s in zip(queries, scales, strict=True)]


@pytest.fixture
def make_texts():
    return unit_texts


@pytest.fixture
def make_queries():
    return gated_queries
