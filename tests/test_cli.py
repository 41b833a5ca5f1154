import fcntl
import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch
from rich.console import Console

from numcolbert import ColBERT, cli
from numcolbert.evaluation.search import check_index
from numcolbert.retrieval import index_folder
from numcolbert.retrieval.exact import ExactIndex
from numcolbert.retrieval.index_folder import Manifest, OpenIndex, fingerprint, read_entries

QUERY = "companies with revenue above 20 million dollars"
SENTENCES = 40


def require(engine):
    if engine == "qdrant":
        pytest.importorskip("qdrant_client")
    if engine == "voyager":
        try:
            check_index("voyager")
        except ImportError as error:
            pytest.skip(str(error))


@pytest.fixture(scope="module")
def model(tiny_base):
    """A model whose gate fires on many tokens, with all sorts of factors."""
    torch.manual_seed(3)
    model = ColBERT(tiny_base, device="cpu", embedding_size=16, query_length=16)
    tokens = torch.tensor(model.encode([QUERY], is_query=True)[0])
    with torch.no_grad():
        for mlp, centre in ((model.numerical_gate.detector, 0), (model.numerical_gate.gate, 2)):
            mlp[-1].weight.normal_(std=20)
            mlp[-1].bias.zero_()
            mlp[-1].bias.fill_(centre - mlp(tokens).median())
    return model


@pytest.fixture(scope="module")
def work(tmp_path_factory, model):
    """Folder with the model and a corpus of two sentences a row."""
    folder = tmp_path_factory.mktemp("work")
    model.save_pretrained(str(folder / "model"))
    with gzip.open(folder / "corpus.jsonl.gz", "wt", encoding="utf-8") as file:
        for number in range(SENTENCES // 2):
            text = f"Company {number} had a revenue of {number * 3} million dollars. It has {number * 7} employees."
            file.write(json.dumps({"key": f"c{number}", "body": text}) + "\n")
    return folder


def index(work, folder, *arguments, corpus=None, model=None):
    columns = [] if corpus else ["--text-column", "body", "--id-column", "key"]
    return cli.main(
        [
            *("index", str(corpus or work / "corpus.jsonl.gz"), str(folder), "--model", str(model or work / "model")),
            *("--shard-size", "12", *columns, *arguments),
        ]
    )


@pytest.fixture(scope="module")
def indexes(work):
    """Finished indexes by engine, each made when first asked for."""
    made = {}

    def get(engine):
        require(engine)
        if engine not in made:
            made[engine] = work / f"index-{engine}"
            assert index(work, made[engine], "--engine", engine) == 0
        return made[engine]

    return get


def rows(folder):
    tables = [pq.read_table(path).to_pylist() for path in sorted((folder / "shards").glob("*.parquet"))]
    return [row for table in tables for row in table]


@pytest.mark.parametrize("engine", ["plaid", "voyager", "qdrant"])
def test_an_index_finds_what_exact_search_finds(engine, work, indexes, model):
    found = OpenIndex(indexes(engine)).search(QUERY, k=20)
    entries = list(read_entries(work / "corpus.jsonl.gz", "body", "key"))
    assert len(entries) == SENTENCES
    queries = model.encode([QUERY], is_query=True)
    norms = torch.tensor(queries[0]).norm(dim=-1)
    assert norms.max() > 2
    assert 0 < ((norms - 1).abs() < 1e-4).sum() < len(norms)
    exact = ExactIndex(model.encode([text for _, text in entries], is_query=False))
    (ranking,) = exact.search(queries, k=SENTENCES)
    expected = [(*entries[position], score) for position, score in ranking]
    if engine == "plaid":  # compressed to four bits a dimension
        assert {name for name, _, _ in expected[:3]} <= {hit.id for hit in found}
        assert found[0].score == pytest.approx(expected[0][2], rel=0.1)
        assert all((hit.id, hit.text) in entries for hit in found)
        return
    scores = {name: (text, score) for name, text, score in expected}
    for hit in found:
        text, score = scores[hit.id]
        assert hit.text == text
        assert hit.score == pytest.approx(score, rel=1e-4)
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
    if engine == "qdrant":  # scores everything; Voyager may miss candidates
        assert [hit.id for hit in found] == [name for name, _, _ in expected[:20]]
    assert [hit.id for hit in found[:3]] == [name for name, _, _ in expected[:3]]


@pytest.mark.parametrize("engine", ["plaid", "voyager"])
def test_an_open_index_loads_its_engine_once(engine, indexes, monkeypatch):
    require(engine)
    opened = []
    original = index_folder.open_index
    monkeypatch.setattr(
        index_folder, "open_index", lambda *args, **kwargs: opened.append(1) or original(*args, **kwargs)
    )
    found = OpenIndex(indexes(engine))
    assert found.search(QUERY, k=3) == found.search(QUERY, k=3)
    assert len(opened) == 1


def test_what_a_finished_folder_holds(indexes, work):
    folder = indexes("voyager")
    assert [path.name for path in sorted((folder / "shards").iterdir())] == [f"0000{n}.parquet" for n in range(4)]
    assert [row["id"] for row in rows(folder)[:3]] == ["c0#0", "c0#1", "c1#0"]
    manifest = Manifest.read(folder)
    assert (manifest.sentences, manifest.dimensions, manifest.complete) == (SENTENCES, 16, True)
    assert manifest.model == str(work / "model")


# --- killed and resumed ---


@pytest.fixture(scope="module")
def killed(work):
    """Folders of runs that were killed, by place."""
    for engine in ("voyager", "qdrant"):
        require(engine)
    script = Path(__file__).parent / "retrieval" / "killed_runs.py"
    places = ["voyager-encode", "voyager-fill", "qdrant-fill"]
    with gzip.open(work / "corpus.jsonl.gz", "rt", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    plain = work / "plain.jsonl"
    plain.write_text("".join(json.dumps({"id": r["key"], "text": r["body"]}) + "\n" for r in lines), encoding="utf-8")
    subprocess.run(
        [sys.executable, str(script), str(work / "model"), str(plain), str(work), *places],
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    return plain, {place: work / place for place in places}


@pytest.mark.parametrize(("place", "encoded_again"), [("voyager-encode", 16), ("voyager-fill", 0), ("qdrant-fill", 0)])
def test_a_killed_run_goes_on_and_ends_as_an_unbroken_one(
    place, encoded_again, killed, indexes, work, monkeypatch, capsys
):
    corpus, folders = killed
    folder = folders[place]
    assert cli.main(["search", str(folder), QUERY]) == 2
    assert "is not finished: run the same numcolbert index again" in capsys.readouterr().err

    encoded = []
    original = ColBERT.encode

    def encode(self, texts, *args, **kwargs):
        encoded.extend(texts)
        return original(self, texts, *args, **kwargs)

    engine = place.split("-")[0]
    monkeypatch.setattr(ColBERT, "encode", encode)
    assert index(work, folder, "--engine", engine, corpus=corpus) == 0
    assert len(encoded) == encoded_again
    monkeypatch.setattr(ColBERT, "encode", original)

    unbroken = indexes(engine)
    assert rows(folder) == rows(unbroken)
    assert len({row["id"] for row in rows(folder)}) == SENTENCES
    assert not list((folder / "shards").glob("*.bin*"))
    ours, theirs = OpenIndex(folder).search(QUERY, SENTENCES), OpenIndex(unbroken).search(QUERY, SENTENCES)
    assert len(ours) == SENTENCES  # none missing, none twice
    assert ours == theirs
    # Once more: nothing to do.
    monkeypatch.setattr(ColBERT, "encode", None)
    assert index(work, folder, "--engine", engine, corpus=corpus) == 0
    assert "is complete already" in capsys.readouterr().out


def test_the_same_run_gives_the_same_plaid_index(indexes, work):
    torch.manual_seed(99)  # what the global generator does elsewhere must not matter
    assert index(work, work / "again", "--engine", "plaid") == 0
    first, second = indexes("plaid") / "plaid", work / "again" / "plaid"
    files = [path.relative_to(first) for path in first.rglob("*") if path.is_file()]
    # The manifests of merged files hold times.
    compared = [file for file in files if not file.name.endswith("manifest.json")]
    assert len(compared) > 10
    assert [str(file) for file in compared if (first / file).read_bytes() != (second / file).read_bytes()] == []


# --- refusals ---


def test_a_folder_of_something_else_is_refused(work, indexes, tmp_path, model, tiny_base, capsys):
    def refused(folder, *arguments, **kwargs):
        before = sorted((path.name, path.stat().st_mtime_ns) for path in folder.rglob("*") if path.name != ".lock")
        assert index(work, folder, *arguments, **kwargs) == 2
        after = sorted((path.name, path.stat().st_mtime_ns) for path in folder.rglob("*") if path.name != ".lock")
        assert before == after
        return capsys.readouterr().err

    folder = indexes("voyager")
    torch.manual_seed(5)
    ColBERT(tiny_base, device="cpu", embedding_size=16).save_pretrained(str(tmp_path / "other"))
    message = refused(folder, "--engine", "voyager", model=tmp_path / "other")
    assert f"{folder} holds an index made with another model, {work / 'model'}: choose another folder" in message
    (tmp_path / "other.txt").write_text("Another corpus altogether.\n", encoding="utf-8")
    message = refused(folder, "--engine", "voyager", corpus=tmp_path / "other.txt")
    assert "of another corpus, corpus.jsonl.gz" in message
    assert "for another engine, voyager" in refused(folder, "--engine", "plaid")
    assert "of another corpus" in refused(folder, "--engine", "voyager", "--no-split")

    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"")
    assert "is not empty and holds no index" in refused(tmp_path / "photos")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "index.json").write_text('{"format": 1, "engine": ', encoding="utf-8")
    assert "index.json is damaged" in refused(tmp_path / "damaged")
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "another process is writing" in refused(folder, "--engine", "voyager")


def test_another_gate_shares_the_index_and_another_encoder_does_not(indexes, work, model, tmp_path, tiny_base, capsys):
    folder = indexes("voyager")
    before = fingerprint(model)
    model.encode(["one", "two and more"], is_query=True)  # leaves padding and truncation in the tokenizer
    assert fingerprint(model) == before == Manifest.read(folder).encoder_sha256
    other = ColBERT.from_pretrained(work / "model", device="cpu")
    with torch.no_grad():
        other.numerical_gate.detector[-1].bias.fill_(-20)
    assert fingerprint(other) == before
    other.save_pretrained(str(tmp_path / "ungated"))
    gated = OpenIndex(folder).search(QUERY, 3)
    ungated = OpenIndex(folder, str(tmp_path / "ungated")).search(QUERY, 3)
    assert gated[0].score > 1.5 * ungated[0].score
    with torch.no_grad():
        other[1].linear.weight.add_(0.01)
    assert fingerprint(other) != before
    other.save_pretrained(str(tmp_path / "moved"))
    assert cli.main(["search", str(folder), QUERY, "--model", str(tmp_path / "moved")]) == 2
    assert "is not the one that the index" in capsys.readouterr().err


BAD = {
    "empty.txt": (b"\n  \n", "holds no text"),
    "latin.txt": ("größer\n".encode("latin-1"), "line 1 of {path} is not UTF-8"),
    "text.csv": (b"a,b\n", "neither .txt nor .jsonl"),
    "rows.jsonl": (b'{"text": "One."}\nnonsense\n', "line 2 of {path} is not JSON"),
    "column.jsonl": (b'{"body": "One."}\n', "has no 'text', only 'body'"),
    "twice.jsonl": (b'{"id": 7, "text": "One."}\n{"id": 7, "text": "Two."}\n', "has the id '7#0' twice"),
    "half.jsonl": (b'{"text": "\\ud800."}\n', "holds half a character"),
    "cut.txt.gz": (gzip.compress(b"A sentence of some length.\n" * 99)[:-12], "is a damaged gzip file"),
    "not.txt.gz": (b"plain", "gzip"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_corpus_that_cannot_be_read_is_refused_before_anything_is_written(name, work, tmp_path, capsys):
    content, message = BAD[name]
    path = tmp_path / name
    path.write_bytes(content)
    assert index(work, tmp_path / "index", corpus=path) == 2
    assert message.format(path=path) in capsys.readouterr().err
    assert not (tmp_path / "index").exists()


def test_bad_requests(work, indexes, tmp_path, tiny_base, capsys):
    def error(*arguments):
        assert cli.main([str(argument) for argument in arguments]) == 2
        return capsys.readouterr().err

    corpus, model = work / "corpus.jsonl.gz", work / "model"
    assert "there is no file" in error("index", tmp_path / "none.txt", tmp_path / "i", "--model", model)
    message = error("index", corpus, tmp_path / "i", "--model", tiny_base)
    assert "is a plain encoder, not a ColBERT" in message
    message = error("index", corpus, tmp_path / "i", "--model", model, "--engine", "voyager", "--nbits", "2")
    assert "--nbits is a setting of plaid, and the engine is voyager" in message
    message = error("index", corpus, tmp_path / "i", "--model", model, "--qdrant-url", "http://localhost:1")
    assert "--qdrant-url is a setting of qdrant" in message
    assert "there is no index in" in error("search", tmp_path / "none", QUERY)
    assert "there is no index in" in error("search", tmp_path, QUERY)
    assert "the query is empty" in error("search", indexes("voyager"), " ")
    for arguments in (["search", "i", "q", "--exp"], ["search", "i", "q", "-k", "0"], ["index", "c", "i"], []):
        with pytest.raises(SystemExit, match="2"):
            cli.main(arguments)
    assert not (tmp_path / "i").exists()


# --- what is printed ---


def printed(*arguments, styles=False):
    console = Console(record=True, width=150, force_terminal=True, color_system="standard", file=open(os.devnull, "w"))  # noqa: SIM115
    assert cli.main([str(argument) for argument in arguments], console) == 0
    return console.export_text(styles=styles)


def test_search_prints_a_coloured_table(indexes):
    folder = indexes("voyager")
    plain = printed("search", folder, QUERY, "-k", SENTENCES)
    assert "Condition: > 20,000,000 USD" in plain
    lines = {line.split()[-1]: line for line in plain.splitlines() if "#" in line}
    assert len(lines) == SENTENCES
    for number in range(SENTENCES // 2):
        assert ("met" if number * 3 > 20 else "violated") in lines[f"c{number}#0"].split()
        assert not {"met", "violated"} & set(lines[f"c{number}#1"].split())
    shown = printed("search", folder, QUERY, "-k", SENTENCES, styles=True)
    assert "\x1b[1;32m57 million dollars\x1b[0m" in shown
    assert "\x1b[1;31m3 million dollars\x1b[0m" in shown
    assert "It has 133 employees." in shown  # of another kind: plain


def test_search_explains_the_best_sentence(indexes, model):
    folder = indexes("voyager")
    shown = printed("search", folder, QUERY, "-k", 2, "--explain")
    best = OpenIndex(folder).search(QUERY, 1)[0]
    assert str(model.explain(QUERY, best.text).tokens[3].token) in shown
    assert "P(numerical)" in shown
    assert f"document: {best.text}" in shown
    assert "P(numerical)" not in printed("search", folder, QUERY, "-k", 2)


def test_a_query_without_a_number_still_searches(indexes):
    shown = printed("search", indexes("voyager"), "who has [bold]employees[/bold]", "-k", 3)
    assert "No condition found" in shown
    assert sum("#" in line for line in shown.splitlines()) == 3


def test_texts_are_no_markup(work, tmp_path):
    require("voyager")
    (tmp_path / "c.jsonl").write_text('{"id": "[red]a[/b]", "text": "A [link=x] of 30 million dollars"}\n', "utf-8")
    assert index(work, tmp_path / "i", "--engine", "voyager", "--no-split", corpus=tmp_path / "c.jsonl") == 0
    shown = printed("search", tmp_path / "i", QUERY)
    assert "A [link=x] of 30 million dollars" in shown
    assert "[red]a[/b]" in shown


def test_help_teaches(capsys):
    for arguments in (["--help"], ["index", "--help"], ["search", "--help"]):
        with pytest.raises(SystemExit, match="0"):
            cli.main(arguments)
        assert "numcolbert search" in capsys.readouterr().out or arguments[0] == "index"


def test_entries(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("First  line. Still first.\n\n  Third line\n", encoding="utf-8")
    assert list(read_entries(path)) == [("1", "First line. Still first."), ("3", "Third line")]
    assert list(read_entries(path, split=True)) == [
        ("1#0", "First line."),
        ("1#1", "Still first."),
        ("3#0", "Third line"),
    ]
    shutil.move(path, tmp_path / "moved.txt")
    with pytest.raises(FileNotFoundError):
        list(read_entries(path))
