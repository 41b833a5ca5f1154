"""Tables on disk: written in parts to a temporary name, renamed when whole."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Features


def write_parquet(rows: Iterable[dict[str, Any]], features: Features, path: Path, *, rows_per_group: int = 2000) -> int:
    """Write rows to a Parquet file, holding one row group in memory.

    Parameters
    ----------
    rows
        The rows.
    features
        Their columns; kept in the file, so that `datasets` reads them back.
    path
        The file; it appears when it is whole.
    rows_per_group
        Rows held at a time.

    Returns
    -------
    int
        Number of rows.
    """
    schema = features.arrow_schema
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".part")
    count = 0
    group: list[dict[str, Any]] = []
    try:
        with pq.ParquetWriter(temporary, schema) as writer:
            for row in rows:
                group.append(row)
                if len(group) == rows_per_group:
                    writer.write_table(pa.Table.from_pylist(group, schema=schema))
                    count += len(group)
                    group = []
            if group or not count:
                writer.write_table(pa.Table.from_pylist(group, schema=schema))
                count += len(group)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return count


def rows_sha256(path: Path) -> str:
    """SHA-256 over the rows of a Parquet file: equal for equal content, however it is grouped and compressed."""
    digest = hashlib.sha256()
    with pq.ParquetFile(path) as table:
        for batch in table.iter_batches():
            for row in batch.to_pylist():
                digest.update(json.dumps(row, ensure_ascii=False, sort_keys=True).encode() + b"\n")
    return digest.hexdigest()


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, of which few are held in memory."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def write_json(content: Any, path: Path) -> None:
    """Write a JSON file that appears when it is whole."""
    text = json.dumps(content, indent=2, ensure_ascii=False, sort_keys=True) + "\n"
    temporary = path.with_name(path.name + ".part")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
