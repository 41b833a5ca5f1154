"""Files appear when they are whole."""

from __future__ import annotations

import hashlib

import pyarrow.parquet as pq
import pytest
from datasets import Dataset, Features, Value

from numcolbert.corpus.storage import file_sha256, rows_sha256, write_json, write_parquet

FEATURES = Features({"n": Value("int64"), "text": Value("string")})


def rows(count: int, fail_at: int | None = None):
    for n in range(count):
        if n == fail_at:
            raise RuntimeError("interrupted")
        yield {"n": n, "text": f"Zeile {n} – größer"}


@pytest.mark.parametrize("count", [0, 1, 4, 5, 6])
def test_round_trip_in_groups(tmp_path, count):
    path = tmp_path / "new" / "table.parquet"
    assert write_parquet(rows(count), FEATURES, path, rows_per_group=5) == count
    assert pq.read_table(path).to_pylist() == list(rows(count))
    if count:
        assert Dataset.from_parquet(str(path), keep_in_memory=True).features == FEATURES
    assert pq.read_metadata(path).num_row_groups == max(1, -(-count // 5))
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_rows_are_written_before_the_last_is_made(tmp_path):
    path = tmp_path / "table.parquet"
    sizes = []

    def watched():
        for row in rows(40):
            sizes.append((tmp_path / "table.parquet.part").stat().st_size)
            assert not path.exists()
            yield row

    write_parquet(watched(), FEATURES, path, rows_per_group=5)
    assert sizes[-1] > sizes[0]


@pytest.mark.parametrize("before", [False, True])
def test_an_interrupted_table_leaves_what_was_there(tmp_path, before):
    path = tmp_path / "table.parquet"
    if before:
        write_parquet(rows(3), FEATURES, path)
    content = path.read_bytes() if before else None
    with pytest.raises(RuntimeError, match="interrupted"):
        write_parquet(rows(20, fail_at=12), FEATURES, path, rows_per_group=5)
    assert (path.read_bytes() if path.exists() else None) == content
    assert len(list(tmp_path.iterdir())) == int(before)


def test_a_row_of_another_shape_leaves_nothing(tmp_path):
    with pytest.raises((ValueError, TypeError)):
        write_parquet([{"n": "no number", "text": "x"}], FEATURES, tmp_path / "table.parquet")
    assert list(tmp_path.iterdir()) == []


def test_digest_of_rows_depends_on_content_alone(tmp_path):
    for name, count, size in (("a", 12, 2000), ("b", 12, 5), ("c", 13, 5)):
        write_parquet(rows(count), FEATURES, tmp_path / name, rows_per_group=size)
    assert rows_sha256(tmp_path / "a") == rows_sha256(tmp_path / "b") != rows_sha256(tmp_path / "c")
    write_parquet(reversed(list(rows(12))), FEATURES, tmp_path / "d")
    assert rows_sha256(tmp_path / "d") != rows_sha256(tmp_path / "a")


def test_digest_of_a_file_larger_than_a_block(tmp_path):
    content = bytes(range(256)) * 5000
    (tmp_path / "a").write_bytes(content)
    assert file_sha256(tmp_path / "a") == hashlib.sha256(content).hexdigest()


def test_json_that_cannot_be_written_leaves_what_was_there(tmp_path):
    path = tmp_path / "a.json"
    write_json({"größe": 1}, path)
    with pytest.raises(TypeError):
        write_json({"größe": object()}, path)
    assert path.read_text(encoding="utf-8") == '{\n  "größe": 1\n}\n'
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]


def test_a_full_disk_leaves_the_old_json_and_no_part(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    write_json({"a": 1}, path)

    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="no space"):
        write_json({"a": 2}, path)
    assert path.read_text(encoding="utf-8") == '{\n  "a": 1\n}\n'
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]
