"""PLAID index files for simulated sentences, written without comparing every token with every cell.

fast-plaid finds a token's cell among all of them, in float16: what a CPU cannot do for tens of millions of tokens. Here
every token is a noisy copy of a real one, whose nearest cells hold the copy's: the search is among those only, and the
k-means sees fewer tokens. All else (cells, lists, buckets of residuals, files) is as fast-plaid writes it, so searching
costs the same, and is done by fast-plaid itself.
"""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import torch
from fast_plaid.search.fast_plaid import compute_kmeans
from torch import Tensor

NEAREST = 64
"""Cells of a real token among which the cell of its copies is looked for."""
POINTS = 8
"""Tokens per cell in the k-means; fast-plaid takes up to 256."""
CHUNK = 50_000
"""Documents in one file, as fast-plaid does."""
BATCH = 256


def write_plaid(
    folder: Path,
    tokens: np.ndarray,
    lengths: np.ndarray,
    real_tokens: np.ndarray,
    copied: np.ndarray,
    cells: int,
    nbits: int,
    seed: int = 42,
) -> dict[str, float]:
    """Write an index that fast-plaid and PyLate open.

    Parameters
    ----------
    folder
        Where to write to.
    tokens
        Token embeddings of all documents, shape (tokens, dimensions).
    lengths
        Tokens of every document.
    real_tokens
        The real tokens, shape (real tokens, dimensions).
    copied
        For every token, which real one it copies.
    cells
        Number of cells.
    nbits
        Bits of a residual.
    seed
        Seed of the k-means.

    Returns
    -------
    dict of str to float
        Of 2,000 tokens: the share whose cell is the nearest of all, and by how much the inner product with the cell
        that was found falls short of the nearest's, on average.
    """
    folder.mkdir(parents=True)
    dimensions = tokens.shape[1]
    generator = np.random.default_rng(seed)
    torch.manual_seed(seed)
    sample = np.sort(generator.choice(len(tokens), size=min(len(tokens), POINTS * cells), replace=False))
    centroids = compute_kmeans(
        [torch.from_numpy(tokens[sample])], dim=dimensions, device="cpu", kmeans_niters=4,
        max_points_per_centroid=POINTS, seed=seed, num_partitions=cells,
    )  # fmt: skip
    exact = centroids.float()
    nearest = torch.cat(
        [
            (torch.from_numpy(part) @ exact.T).topk(NEAREST).indices
            for part in np.array_split(real_tokens, 1 + cells // 64)
        ]
    )

    def codes_of(start: int, end: int) -> Tensor:
        found = []
        for first in range(start, end, BATCH):
            part = slice(first, min(first + BATCH, end))
            candidates = nearest[torch.from_numpy(copied[part])]
            scores = torch.bmm(
                exact[candidates], torch.from_numpy(tokens[part].astype(np.float32)).unsqueeze(2)
            ).squeeze(2)
            found.append(candidates.gather(1, scores.argmax(dim=1, keepdim=True)).squeeze(1))
        return torch.cat(found)

    def residuals_of(start: int, codes: Tensor) -> Tensor:
        return torch.from_numpy(tokens[start : start + len(codes)].astype(np.float32)) - exact[codes]

    held_out = generator.integers(len(tokens) - BATCH, size=100)
    held_out_residuals = torch.cat([residuals_of(start, codes_of(start, start + BATCH)) for start in held_out])
    levels = 2**nbits
    flat = held_out_residuals.flatten()
    cutoffs = torch.quantile(flat, torch.arange(1, levels) / levels)
    weights = torch.quantile(flat, (torch.arange(levels) + 0.5) / levels)

    offsets = np.concatenate([[0], np.cumsum(lengths)])
    bits = np.arange(nbits, dtype=np.uint8)
    all_codes = np.empty(len(tokens), dtype=np.int64)
    chunks = range(0, len(lengths), CHUNK)
    for number, first in enumerate(chunks):
        last = min(first + CHUNK, len(lengths))
        start, end = offsets[first], offsets[last]
        codes = codes_of(start, end)
        all_codes[start:end] = codes.numpy()
        packed = np.empty((end - start, dimensions * nbits // 8), dtype=np.uint8)
        for begin in range(0, len(codes), 100 * BATCH):
            part = codes[begin : begin + 100 * BATCH]
            buckets = torch.bucketize(residuals_of(start + begin, part), cutoffs).to(torch.uint8).numpy()
            # A bucket's bits from the lowest to the highest, bytes filled from the highest.
            unpacked = (buckets[..., None] >> bits) & 1
            packed[begin : begin + len(part)] = np.packbits(unpacked.reshape(len(part), -1), axis=1)
        np.save(folder / f"{number}.codes.npy", codes.numpy())
        np.save(folder / f"{number}.residuals.npy", packed)
        (folder / f"doclens.{number}.json").write_text(json.dumps(lengths[first:last].tolist()), encoding="utf-8")

    documents = np.repeat(np.arange(len(lengths)), lengths)
    pairs = np.unique(all_codes * len(lengths) + documents)  # every document once in a cell's list
    np.save(folder / "ivf.npy", pairs % len(lengths))
    np.save(folder / "ivf_lengths.npy", np.bincount(pairs // len(lengths), minlength=cells).astype(np.int32))
    np.save(folder / "centroids.npy", centroids.numpy())
    np.save(folder / "avg_residual.npy", held_out_residuals.abs().mean(dim=0).numpy())
    np.save(folder / "bucket_cutoffs.npy", cutoffs.numpy())
    np.save(folder / "bucket_weights.npy", weights.numpy())
    metadata = {
        "num_chunks": len(chunks), "nbits": nbits, "num_partitions": cells, "num_embeddings": len(tokens),
        "num_documents": len(lengths), "avg_doclen": float(np.mean(lengths)), "compress_only": False,
    }  # fmt: skip
    (folder / "metadata.json").write_text(json.dumps(metadata), encoding="utf-8")

    checked = np.sort(generator.choice(len(tokens), size=min(len(tokens), 2000), replace=False))
    scores = torch.from_numpy(tokens[checked].astype(np.float32)) @ exact.T
    best = scores.max(dim=1).values
    chosen = scores.gather(1, torch.from_numpy(all_codes[checked]).unsqueeze(1)).squeeze(1)
    return {"nearest cell": float((chosen == best).float().mean()), "short of it": float((best - chosen).mean())}


def write_names(folder: Path, documents: int) -> None:
    """Write PyLate's two files of document ids next to fast-plaid's folder; a number is a name."""
    names = {str(number): number for number in range(documents)}
    numbers = {number: name for name, number in names.items()}
    (folder / "documents_ids_to_plaid_ids.pkl").write_bytes(pickle.dumps(names))
    (folder / "plaid_ids_to_documents_ids.pkl").write_bytes(pickle.dumps(numbers))
