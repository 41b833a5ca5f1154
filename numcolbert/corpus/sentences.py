"""Sentences from the files people have: text files, JSON lines, data sets."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from datasets import Dataset, Features, Value

from numcolbert.corpus.words import split_words

SENTENCES = Features({"id": Value("string"), "text": Value("string")})
"""Columns of a sentence corpus. The id is ``document#number``: all before the last ``#`` names the document."""

# A full stop after one of these does not end a sentence.
ABBREVIATIONS = frozenset(
    split_words(
        """
    inc corp co ltd plc cos bros bancorp mr mrs ms dr prof st jr sr gen sen rep gov pres lt col capt rev hon vs
    no nos fig figs ref refs eq al etc e.g i.e cf ca approx dept univ assn jan feb mar apr jun jul aug sep sept
    oct nov dec mon tue wed thu fri sat sun pp vol ed eds resp min max mln bln avg est ext incl excl tel
    """
    )
)
# The second form is a superscript reference that lost its place: "in both legs.38 The test ...".
_BOUNDARY = re.compile(
    r"(?:[.!?][\"')\]”’]*|(?<=[a-z)])\.\d{1,3}(?:[,–-]\d{1,3})*)\s+(?=[\"'(\[“‘+<]?[A-Z0-9À-ÖØ-Þ$£€])"
)
_LAST_WORD = re.compile(r"[\w.&-]{0,40}$")
_INITIALS = re.compile(r"(?:[A-Za-z]\.)*[A-Za-z]$")
_HEADER = re.compile(r"^\s*(?:[A-Z][A-Z0-9 &/,()'-]*\.)?[A-Z][A-Z0-9 &/,.()'-]*:[ \t]*", re.MULTILINE)
_SPACE = re.compile(r"\s+")
_WIRE_TAIL = re.compile(r"\s*\bReuters?[\s.;\"]*\x03?\s*$", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_FINGERPRINT = re.compile(r"[^\w.,%$/<>+-]+")


def split_sentences(document: str) -> list[str]:
    r"""Split running text into sentences.

    Company suffixes, initials and other abbreviations ("Inc.", "U.S.", "J. Smith", "vs.") do not end a sentence, nor
    do decimal points; blank lines and section headers ("ABSTRACT.METHODS:") do. The tail of a wire story
    ("Reuter" and a control character) is left out.

    Parameters
    ----------
    document
        The text of one document.

    Returns
    -------
    list of str
        Sentences, white space collapsed, in the order of the text.

    Examples
    --------
    >>> split_sentences("Acme Co. <ACM> of the U.S. earned 1.2 mln dlrs. Sales rose. Reuter \x03")
    ['Acme Co. <ACM> of the U.S. earned 1.2 mln dlrs.', 'Sales rose.']
    """
    document = _WIRE_TAIL.sub("", document)
    document = _HEADER.sub("\n\n", document)
    document = _CONTROL.sub(" ", document)
    sentences: list[str] = []
    for block in re.split(r"\n[ \t]*\n|\n(?=[A-Z\"“])", document):
        paragraph = _SPACE.sub(" ", block).strip()
        start = 0
        for match in _BOUNDARY.finditer(paragraph):
            if paragraph[match.start()] == "." and _is_abbreviation(paragraph, match.start(), match.end()):
                continue
            sentences.append(paragraph[start : match.end()].strip())
            start = match.end()
        sentences.append(paragraph[start:].strip())
    return [sentence for sentence in sentences if sentence]


def _is_abbreviation(text: str, stop: int, following: int) -> bool:
    found = _LAST_WORD.search(text, max(0, stop - 40), stop)
    word = found.group() if found else ""
    if word.lower() in ABBREVIATIONS:
        # "Acme Inc. Sales rose" ends one, "Acme Inc. <ACM>" does not; a company suffix before a capitalised common
        # sentence opener is the only case that ends.
        opener = re.match(r"(?:The|It|In|He|She|They|But|This|A|An|At|For|We|Its)\b", text[following:])
        return opener is None
    if len(word) == 1 or "." in word:
        return _INITIALS.match(word) is not None and not re.match(
            r"(?:The|It|In|He|She|They|But|This|An|At|For|We|Its)\b", text[following:]
        )
    return False


def read_sentences(
    source: str | Path | Dataset,
    *,
    text_column: str = "text",
    id_column: str = "id",
    split: bool | None = None,
    min_characters: int = 25,
    max_characters: int = 400,
    deduplicate: bool = True,
    max_sentences: int | None = None,
) -> Dataset:
    """Read a corpus as sentences.

    Parameters
    ----------
    source
        A `.txt` file with one sentence a line, a `.jsonl` or `.jsonl.gz` file, or a data set.
    text_column
        Column that holds the text (not for `.txt`).
    id_column
        Column that names the document; rows without it are named by their number.
    split
        Whether to split each text into sentences; by default for all but `.txt` files.
    min_characters, max_characters
        Shorter and longer sentences are left out: the first are headings, the second tables and broken text.
    deduplicate
        Whether to keep the first only of sentences that are equal but for case, white space and punctuation marks
        that no number needs.
    max_sentences
        Stop after so many.

    Returns
    -------
    datasets.Dataset
        Columns `id` (`document#number`) and `text`.

    Raises
    ------
    ValueError
        If the source cannot be read, as in `read_documents`, or holds no sentence of such a length.
    FileNotFoundError
        If there is no such file.
    """
    if split is None:
        split = splits(source)
    seen: set[int] = set()
    ids: list[str] = []
    texts: list[str] = []
    for document, text in read_documents(source, text_column, id_column):
        parts = split_sentences(text) if split else [_SPACE.sub(" ", _CONTROL.sub(" ", text)).strip()]
        for number, sentence in enumerate(parts):
            if not min_characters <= len(sentence) <= max_characters:
                continue
            if deduplicate:
                fingerprint = hash(_FINGERPRINT.sub(" ", sentence.lower()).strip(" .,"))
                if fingerprint in seen:
                    continue
                seen.add(fingerprint)
            ids.append(f"{document}#{number}")
            texts.append(sentence)
            if max_sentences is not None and len(ids) >= max_sentences:
                return Dataset.from_dict({"id": ids, "text": texts}, features=SENTENCES)
    if not ids:
        raise ValueError(
            f"{_name(source)} holds no sentence of {min_characters} to {max_characters} characters: check the file "
            "or widen min_characters and max_characters"
        )
    return Dataset.from_dict({"id": ids, "text": texts}, features=SENTENCES)


def document_of(sentence_id: str) -> str:
    """Name of the document that a sentence is of.

    Examples
    --------
    >>> document_of("reuters-12#3")
    'reuters-12'
    """
    return sentence_id.rsplit("#", 1)[0]


def _name(source: str | Path | Dataset) -> str:
    return str(source) if isinstance(source, str | Path) else "the data set"


def splits(source: str | Path | Dataset) -> bool:
    """Whether the texts of a corpus are split into sentences by default: all but those of `.txt`, a sentence a line.

    Examples
    --------
    >>> splits("news.txt.gz"), splits("news.jsonl.gz")
    (False, True)
    """
    return isinstance(source, Dataset) or not Path(source).name.removesuffix(".gz").endswith(".txt")


def read_documents(
    source: str | Path | Dataset, text_column: str = "text", id_column: str = "id"
) -> Iterator[tuple[str, str]]:
    """Stream a corpus as it is written: name and text of each document.

    Parameters
    ----------
    source
        A `.txt` file (each line that is not blank is a document) or `.jsonl`, with or without `.gz`, or a data set.
    text_column, id_column
        Columns of text and name, but for `.txt`; rows without a name are named by their number.

    Yields
    ------
    tuple of (str, str)
        Name and text.

    Raises
    ------
    ValueError
        If the source has no such column, a row is no JSON object or holds no text, or the file is not UTF-8 or damaged;
        the message names file and row.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> from datasets import Dataset
    >>> list(read_documents(Dataset.from_dict({"text": ["Sales rose."]})))
    [('0', 'Sales rose.')]
    """
    if isinstance(source, Dataset):
        if text_column not in source.column_names:
            raise ValueError(
                f"the data set has no column {text_column!r}, only {', '.join(source.column_names)}: set text_column"
            )
        for number, row in enumerate(source):
            yield _checked(row, f"row {number} of the data set", number, text_column, id_column)
        return
    path = Path(source)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}: check the path of the corpus")
    names = path.name.removesuffix(".gz")
    if not names.endswith((".txt", ".jsonl")):
        raise ValueError(f"{path} is neither .txt nor .jsonl (either may end in .gz): convert it to one of them")
    for number, raw in enumerate(_lines(path), start=1):
        where = f"line {number} of {path}"
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8")  # Windows begins a file with a mark
        except UnicodeDecodeError as error:
            raise ValueError(f"{where} is not UTF-8: convert the file, for example with iconv") from error
        if not line.strip():
            continue
        if names.endswith(".txt"):
            yield str(number), line
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"{where} is not JSON ({error}): each line must be one object") from error
        if not isinstance(row, dict):
            raise ValueError(f"{where} is not a JSON object: write it as {{{text_column!r}: ...}}")
        yield _checked(row, where, number, text_column, id_column)


def _lines(path: Path) -> Iterator[bytes]:
    opener: Any = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as lines:
        try:
            yield from lines
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{path} is a damaged gzip file ({error}): copy or compress it again") from error


def _checked(row: dict[str, Any], where: str, number: int, text_column: str, id_column: str) -> tuple[str, str]:
    if text_column not in row:
        raise ValueError(f"{where} has no {text_column!r}, only {', '.join(map(repr, row))}: set text_column")
    text = row[text_column]
    if not isinstance(text, str):
        raise ValueError(f"{where} has {text!r} where {text_column!r} must be a string: mend or drop the row")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{where} holds half a character ({error}): mend or drop the row") from error
    identifier = row.get(id_column)
    return (str(number) if identifier is None else str(identifier)), text
