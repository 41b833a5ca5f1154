"""PLAID files that the scaling benchmark writes are those that fast-plaid would have written."""

import importlib
from pathlib import Path

import numpy as np
import pytest
import torch

from numcolbert.retrieval.engines import build_index, open_index, search_index

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def unit(vectors):
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("nbits", [1, 2, 4, 8])
def test_given_the_same_cells_they_hold_the_same(nbits, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    plaid_files = importlib.import_module("plaid_files")
    rng = np.random.default_rng(0)
    documents = [unit(rng.normal(size=(length, 16))) for length in rng.integers(4, 12, size=80)]
    names = [str(number) for number in range(80)]
    build_index("plaid", tmp_path, "theirs", names, documents, 16, nbits=nbits)
    theirs = tmp_path / "theirs" / "fast_plaid_index"
    centroids = torch.from_numpy(np.load(theirs / "centroids.npy").astype(np.float16))
    monkeypatch.setattr(plaid_files, "compute_kmeans", lambda *_, **__: centroids)
    monkeypatch.setattr(plaid_files, "NEAREST", len(centroids))

    ours = tmp_path / "ours" / "fast_plaid_index"
    lengths = np.array([len(document) for document in documents])
    tokens = np.concatenate(documents).astype(np.float16)
    found = plaid_files.write_plaid(ours, tokens, lengths, documents, np.arange(80), len(centroids), nbits)
    plaid_files.write_names(tmp_path / "ours", 80)

    assert found["nearest cell"] == 1
    codes = [np.load(folder / "0.codes.npy") for folder in (ours, theirs)]
    assert codes[0].dtype == codes[1].dtype
    assert np.mean(codes[0] == codes[1]) > 0.95  # fast-plaid compares in float16
    # The cutoffs come from other tokens, so compare the bytes that theirs give.
    cutoffs = torch.from_numpy(np.load(theirs / "bucket_cutoffs.npy"))
    residuals = torch.from_numpy(tokens.astype(np.float32)) - centroids.float()[torch.from_numpy(codes[1])]
    packed = plaid_files.pack(torch.bucketize(residuals, cutoffs), nbits)
    assert np.mean(packed == np.load(theirs / "0.residuals.npy")) > 0.95
    for file in ("ivf_lengths.npy", "centroids.npy", "bucket_cutoffs.npy", "bucket_weights.npy", "avg_residual.npy"):
        assert np.load(ours / file).shape == np.load(theirs / file).shape

    queries = [unit(rng.normal(size=(6, 16))) for _ in range(10)]
    answers = {
        name: search_index(open_index("plaid", tmp_path, name, 16, n_ivf_probe=len(centroids)), queries, 20)
        for name in ("ours", "theirs")
    }
    for mine, other in zip(answers["ours"], answers["theirs"], strict=True):
        shared = {name for name, _ in mine} & {name for name, _ in other}
        assert len(shared) >= (12 if nbits == 1 else 15)
