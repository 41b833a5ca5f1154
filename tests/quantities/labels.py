"""Sentences whose quantities were labelled by hand, joined with their text where the corpora are at hand."""

from __future__ import annotations

import gzip
import json
import os
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
LABELS = PROJECT / "tests" / "data"
CORPORA = ("reuters", "rct")
SETS = {"development": "", "unseen": "_unseen"}
"""Sets of labelled sentences, with what their file names add; only "unseen" was scored before anything was mended."""


@dataclass(frozen=True)
class Label:
    """One labelled quantity; ``start`` and ``end`` count characters of the sentence."""

    value: float
    units: tuple[str | None, ...]  # accepted canonical units, the preferred one first; None is a bare number
    start: int
    end: int
    optional: bool  # neither missed when absent nor wrong when found

    @property
    def unit(self) -> str | None:
        return self.units[0]


@dataclass(frozen=True)
class LabelledSentence:
    """A sentence of one document with every quantity in it."""

    document_id: str
    text: str
    quantities: tuple[Label, ...]


def data_folder() -> Path:
    """Return ``$NUMCOLBERT_DATA``, or ``../shared/data`` beside the project."""
    return Path(os.environ.get("NUMCOLBERT_DATA") or PROJECT.parent / "shared" / "data")


def load_labelled(corpus: str, which: str = "development") -> list[LabelledSentence] | None:
    """Return one of the ``SETS`` of ``"reuters"`` or ``"rct"``, or None where the corpus itself is absent.

    Raises
    ------
    ValueError
        A label names a document the corpus lacks, or a span that leaves its document or sentence.
    """
    source = data_folder() / corpus / "train.jsonl.gz"
    if not source.is_file():
        return None
    path = LABELS / f"quantities_{corpus}{SETS[which]}.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    wanted = {row["id"] for row in rows}
    texts: dict[str, str] = {}
    with gzip.open(source, "rt", encoding="utf-8") as lines:
        for line in lines:
            document = json.loads(line)
            if document["id"] in wanted:
                texts[document["id"]] = document["text"]

    sentences = []
    for number, row in enumerate(rows, start=1):
        where = f"{path.name}, line {number}"
        if row["id"] not in texts:
            raise ValueError(f"{where}: document {row['id']!r} is not in {source}; use the corpus that was labelled")
        text = texts[row["id"]]
        if not 0 <= row["start"] < row["end"] <= len(text):
            raise ValueError(f"{where}: the sentence {row['start']}:{row['end']} leaves its document; correct the line")
        sentence = text[row["start"] : row["end"]]
        labels = []
        previous_end = 0
        for entry in row["quantities"]:
            start, end = entry["start"], entry["end"]
            if not previous_end <= start < end <= len(sentence):
                raise ValueError(f"{where}: the span {start}:{end} overlaps or leaves the sentence; correct the line")
            previous_end = end
            units = (entry["unit"], *entry.get("also", ()))
            labels.append(Label(float(entry["value"]), units, start, end, entry.get("optional", False)))
        sentences.append(LabelledSentence(row["id"], sentence, tuple(labels)))
    return sentences
