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
"""Documents in one file, as in fast-plaid."""


def write_plaid(
    folder: Path,
    tokens: np.ndarray,
    lengths: np.ndarray,
    real: list[np.ndarray],
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
    real
        The real documents, each of shape (its tokens, dimensions).
    copied
        For every document, which real one it copies.
    cells
        Number of cells.
    nbits
        Bits of a residual: 1, 2, 4 or 8.
    seed
        Seed of the k-means.

    Returns
    -------
    dict of str to float
        Of 2,000 tokens: the share whose cell is the nearest of all, and by how much the inner product with the cell
        that was found falls short of the nearest's, on average.
    """
    folder.mkdir(parents=True)
    generator = np.random.default_rng(seed)

    def draw(count: int) -> np.ndarray:
        return np.sort(generator.choice(len(tokens), size=min(len(tokens), count), replace=False))

    torch.manual_seed(seed)
    centroids = compute_kmeans(
        [torch.from_numpy(tokens[draw(POINTS * cells)])], dim=tokens.shape[1], device="cpu", kmeans_niters=4,
        max_points_per_centroid=POINTS, seed=seed, num_partitions=cells,
    )  # fmt: skip
    codes = cells_of(tokens, lengths, real, copied, centroids.float())

    def residuals(chosen: slice | np.ndarray) -> Tensor:
        return _float(tokens[chosen]) - centroids.float()[torch.from_numpy(codes[chosen])]

    held_out = residuals(draw(25_000))
    levels = 2**nbits
    cutoffs = torch.quantile(held_out.flatten(), torch.arange(1, levels) / levels)
    weights = torch.quantile(held_out.flatten(), (torch.arange(levels) + 0.5) / levels)

    offsets = np.concatenate([[0], np.cumsum(lengths)])
    chunks = range(0, len(lengths), CHUNK)
    for number, first in enumerate(chunks):
        last = min(first + CHUNK, len(lengths))
        parts = np.array_split(np.arange(offsets[first], offsets[last]), 1 + (offsets[last] - offsets[first]) // 50_000)
        packed = [pack(torch.bucketize(residuals(slice(part[0], part[-1] + 1)), cutoffs), nbits) for part in parts]
        np.save(folder / f"{number}.codes.npy", codes[offsets[first] : offsets[last]])
        np.save(folder / f"{number}.residuals.npy", np.concatenate(packed))
        (folder / f"doclens.{number}.json").write_text(json.dumps(lengths[first:last].tolist()), encoding="utf-8")

    documents = np.repeat(np.arange(len(lengths)), lengths)
    pairs = np.unique(codes * len(lengths) + documents)  # every document once in a cell's list
    np.save(folder / "ivf.npy", pairs % len(lengths))
    np.save(folder / "ivf_lengths.npy", np.bincount(pairs // len(lengths), minlength=cells).astype(np.int32))
    np.save(folder / "centroids.npy", centroids.numpy())
    np.save(folder / "avg_residual.npy", held_out.abs().mean(dim=0).numpy())
    np.save(folder / "bucket_cutoffs.npy", cutoffs.numpy())
    np.save(folder / "bucket_weights.npy", weights.numpy())
    metadata = {
        "num_chunks": len(chunks), "nbits": nbits, "num_partitions": cells, "num_embeddings": len(tokens),
        "num_documents": len(lengths), "avg_doclen": float(np.mean(lengths)), "compress_only": False,
    }  # fmt: skip
    (folder / "metadata.json").write_text(json.dumps(metadata), encoding="utf-8")

    checked = draw(2000)
    scores = _float(tokens[checked]) @ centroids.float().T
    best = scores.max(dim=1).values
    chosen = scores.gather(1, torch.from_numpy(codes[checked]).unsqueeze(1)).squeeze(1)
    return {"nearest cell": float((chosen == best).float().mean()), "short of it": float((best - chosen).mean())}


def cells_of(
    tokens: np.ndarray, lengths: np.ndarray, real: list[np.ndarray], copied: np.ndarray, centroids: Tensor
) -> np.ndarray:
    """Find every token's cell among those nearest to the real token, for all copies of a document at once."""
    starts = np.cumsum(lengths) - lengths
    order = np.argsort(copied, kind="stable")
    copies_of = np.split(order, np.cumsum(np.bincount(copied, minlength=len(real)))[:-1])
    codes = np.empty(len(tokens), dtype=np.int64)
    for document, copies in zip(real, copies_of, strict=True):
        if len(copies) == 0:
            continue
        nearest = (_float(document) @ centroids.T).topk(min(NEAREST, len(centroids))).indices  # (length, NEAREST)
        rows = starts[copies] + np.arange(len(document))[:, None]  # (length, copies)
        scores = torch.bmm(_float(tokens[rows]), centroids[nearest].transpose(1, 2))  # (length, copies, NEAREST)
        codes[rows] = nearest.gather(1, scores.argmax(dim=2)).numpy()
    return codes


def pack(buckets: Tensor, nbits: int) -> np.ndarray:
    """Pack buckets into bytes: the first into the highest bits, each with its lowest bit first."""
    reverse = np.array([int(f"{bucket:0{nbits}b}"[::-1], 2) for bucket in range(2**nbits)], dtype=np.uint8)
    per_byte = 8 // nbits
    columns = reverse[buckets.numpy()].reshape(len(buckets), -1, per_byte)
    packed = np.zeros(columns.shape[:2], dtype=np.uint8)
    for position in range(per_byte):
        packed |= columns[..., position] << (8 - nbits * (position + 1))
    return packed


def write_names(folder: Path, documents: int) -> None:
    """Write PyLate's two files of document ids next to fast-plaid's folder; a number is a name."""
    names = {str(number): number for number in range(documents)}
    numbers = {number: name for name, number in names.items()}
    (folder / "documents_ids_to_plaid_ids.pkl").write_bytes(pickle.dumps(names))
    (folder / "plaid_ids_to_documents_ids.pkl").write_bytes(pickle.dumps(numbers))


def _float(array: np.ndarray) -> Tensor:
    return torch.from_numpy(array.astype(np.float32))
