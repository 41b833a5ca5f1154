"""The official files of FinQuant and MedQuant, as their users download them.

A folder of one data set holds

| file | what is read |
| --- | --- |
| `collection.csv` | column `sentence`; the row number, from 0, is the document id |
| `train_concepts_units_extended.csv` | `keyword`, `unit`, and two literal lists of one length: `values`, `sentences` |
| `queries.tsv` | `query_text`, `keywords`, `unit`, `value`, `condition`; the row number, from 0, is the query id |
| `qrel_compelete.json` (spelt so) | `{query id: {document id: 1}}` |

`qrels_equal.json`, `qrels_greater.json` and `qrels_less.json` repeat the judgements by operator, which `condition`
tells as well: they are not needed. Quantities are read from the sentences by this package, so that those of documents,
queries and training sentences compare; the official values say which of them belong to a pair.
"""

from __future__ import annotations

import ast
import csv
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from datasets import Dataset

from numcolbert.corpus.annotation import quantity_rows
from numcolbert.corpus.benchmark import Benchmark, write_benchmark
from numcolbert.corpus.pairs import Mentions, Pair
from numcolbert.corpus.sentences import SENTENCES
from numcolbert.corpus.triplets import QueryKey, query_key
from numcolbert.corpus.words import lemma
from numcolbert.quantities import canonicalize, extract_quantities

COLLECTION = "collection.csv"
TRAINING = "train_concepts_units_extended.csv"
QUERIES = "queries.tsv"
QRELS = "qrel_compelete.json"
FILES = (COLLECTION, TRAINING, QUERIES, QRELS)
"""Files that are read."""

_OPERATORS = {
    **dict.fromkeys(("=", "==", "equal", "equals"), "="),
    **dict.fromkeys((">", "greater", "bigger", "more"), ">"),
    **dict.fromkeys(("<", "less", "smaller", "fewer"), "<"),
}
_UNIT_NAMES = {"percentage": "percent"}  # names that stand for a unit there and not in running text


@dataclass(frozen=True)
class OfficialQuery:
    """A row of `queries.tsv`.

    Parameters
    ----------
    text
        The query.
    concept
        Its keywords.
    operator
        `=`, `>` or `<`.
    value
        The bound.
    unit
        Unit as the file names it; empty for a bare number.
    """

    text: str
    concept: str
    operator: str
    value: float
    unit: str


@dataclass
class TrainingFile:
    """Content of the training file, sentences first.

    Parameters
    ----------
    pairs
        Concept and unit of each row, as the file names them.
    texts
        The distinct sentences.
    entries
        For each sentence the rows that list it, each with the value that it gives.
    """

    pairs: list[tuple[str, str]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    entries: list[list[tuple[int, float]]] = field(default_factory=list)


@dataclass(frozen=True)
class OfficialData:
    """All that the files of one folder hold.

    Parameters
    ----------
    documents
        Sentences of the collection, by document id.
    queries
        Queries, by query id.
    qrels
        Query id to document id to relevance, as the file gives them.
    training
        Sentences by concept–unit pair.
    """

    documents: list[str]
    queries: list[OfficialQuery]
    qrels: dict[str, dict[str, int]]
    training: TrainingFile


def read_official(
    directory: str | Path,
    *,
    min_characters: int = 1,
    max_characters: int | None = None,
    max_sentences: int | None = None,
) -> OfficialData:
    """Read and check the official files of a data set.

    Parameters
    ----------
    directory
        Folder of the files.
    min_characters, max_characters
        Bounds on the length of a training sentence.
    max_sentences
        Most training sentences.

    Returns
    -------
    OfficialData
        Their content.

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    ValueError
        If a file cannot be understood; the message names file and row.
    """
    directory = Path(directory)
    for name in FILES:
        if not (directory / name).is_file():
            raise FileNotFoundError(
                f"{directory} lacks {name}: put the official files there, {', '.join(FILES)}, under these names"
            )
    queries = read_queries(directory / QUERIES)
    documents = [row["sentence"] for _, row in _rows(directory / COLLECTION, ("sentence",), filled=("sentence",))]
    return OfficialData(
        documents=documents,
        queries=queries,
        qrels=read_qrels(directory / QRELS, len(queries), len(documents)),
        training=read_training(
            directory / TRAINING,
            min_characters=min_characters,
            max_characters=max_characters,
            max_sentences=max_sentences,
        ),
    )


def read_queries(path: Path) -> list[OfficialQuery]:
    """Read `queries.tsv`.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    list of OfficialQuery
        In the order of the file.

    Raises
    ------
    ValueError
        If a row cannot be understood.
    """
    queries = []
    columns = ("query_text", "keywords", "unit", "value", "condition")
    for where, row in _rows(path, columns, filled=("query_text", "keywords"), delimiter="\t"):
        operator = _OPERATORS.get(row["condition"].strip().lower())
        if operator is None:
            raise ValueError(
                f"{where} has the condition {row['condition']!r}: write one of {', '.join(map(repr, _OPERATORS))}"
            )
        try:
            value = float(row["value"])
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise ValueError(f"{where} has the value {row['value']!r}: write a finite number, or drop the query")
        queries.append(OfficialQuery(row["query_text"], row["keywords"].strip(), operator, value, row["unit"].strip()))
    return queries


def read_qrels(path: Path, queries: int, documents: int) -> dict[str, dict[str, int]]:
    """Read judgements in JSON.

    Parameters
    ----------
    path
        The file.
    queries, documents
        How many there are: ids run from 0.

    Returns
    -------
    dict
        Query id to document id to relevance.

    Raises
    ------
    ValueError
        If the file holds anything else, or judges what is not there.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is not JSON in UTF-8 ({error}): download the file again") from error
    known_queries, known_documents = (frozenset(map(str, range(count))) for count in (queries, documents))
    shape = f"{path} must hold {{query id: {{document id: relevance}}}}: download the file again"
    if not isinstance(content, dict):
        raise ValueError(shape)
    for query, judged in content.items():
        if query not in known_queries:
            raise ValueError(
                f"{path} judges query {query!r}, but the ids of {QUERIES} run from 0 to {queries - 1}: the two files "
                "must be of one data set"
            )
        if not isinstance(judged, dict):
            raise ValueError(f"query {query!r} of {shape}")
        for document, relevance in judged.items():
            if document not in known_documents:
                raise ValueError(
                    f"{path} judges document {document!r} for query {query!r}, but the ids of {COLLECTION} run from 0 "
                    f"to {documents - 1}: the two files must be of one data set"
                )
            if type(relevance) is not int or relevance < 0:
                raise ValueError(f"query {query!r} has the relevance {relevance!r}, no whole number from 0: {shape}")
    if not any(relevance for judged in content.values() for relevance in judged.values()):
        raise ValueError(f"{path} judges no document relevant: download the file again")
    return content


def read_training(
    path: Path, *, min_characters: int = 1, max_characters: int | None = None, max_sentences: int | None = None
) -> TrainingFile:
    """Read the training file, one row at a time.

    Parameters
    ----------
    path
        The file.
    min_characters, max_characters
        Bounds on the length of a sentence.
    max_sentences
        Most distinct sentences; others are passed over.

    Returns
    -------
    TrainingFile
        Its content.

    Raises
    ------
    ValueError
        If a row cannot be understood.
    """
    content = TrainingFile()
    number_of: dict[str, int] = {}
    for where, row in _rows(path, ("keyword", "unit", "values", "sentences"), filled=("keyword",)):
        values, sentences = (_literal(row[column], column, where) for column in ("values", "sentences"))
        if len(values) != len(sentences):
            raise ValueError(
                f"{where} has {len(values)} values for {len(sentences)} sentences: both lists must be of one length"
            )
        for value, sentence in zip(values, sentences, strict=True):
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise ValueError(f"{where} has {value!r} among its values, no finite number: mend or drop the row")
            if not isinstance(sentence, str):
                raise ValueError(f"{where} has {sentence!r} among its sentences, no text: mend or drop the row")
            text = " ".join(sentence.split())
            if len(text) < min_characters or (max_characters is not None and len(text) > max_characters):
                continue
            number = number_of.get(text)
            if number is None:
                if max_sentences is not None and len(number_of) >= max_sentences:
                    continue
                number = number_of[text] = len(number_of)
                content.entries.append([])
            content.entries[number].append((len(content.pairs), float(value)))
        content.pairs.append((" ".join(row["keyword"].split()), row["unit"].strip()))
    content.texts = list(number_of)
    if not content.texts:
        raise ValueError(f"{path} holds no sentence of the length asked for: widen min_characters and max_characters")
    return content


def _rows(
    path: Path, columns: Sequence[str], *, filled: Sequence[str], delimiter: str = ","
) -> Iterator[tuple[str, dict[str, str]]]:
    """Rows of a table, each with the words that name it in an error."""
    with path.open("rb") as file:
        limit = csv.field_size_limit(2**31 - 1)  # a list of sentences is one field
        try:
            # Decoded line by line: a decoder of whole blocks could not tell the line it stumbles on.
            reader = csv.reader(_lines(file, path), delimiter=delimiter)
            header = next(reader, [])
            missing = [column for column in columns if column not in header]
            if missing:
                raise ValueError(
                    f"{path} has no column {', '.join(missing)}, only {', '.join(filter(None, header))}: download the "
                    "file again"
                )
            places = {column: header.index(column) for column in columns}
            number, following = -1, reader.line_num + 1
            for cells in reader:
                line, following = following, reader.line_num + 1
                if not cells:
                    continue
                number += 1
                where = f"row {number} of {path} (line {line})"
                if len(cells) != len(header):
                    raise ValueError(
                        f"{where} has {len(cells)} cells, the header {len(header)}: quote cells that hold the delimiter"
                    )
                row = {column: cells[place] for column, place in places.items()}
                for column in filled:
                    if not row[column].strip():
                        raise ValueError(f"{where} has no {column}: fill it in")
                yield where, row
        except csv.Error as error:
            raise ValueError(f"line {reader.line_num} of {path} is not readable ({error}): mend the line") from error
        finally:
            csv.field_size_limit(limit)
    if number < 0:
        raise ValueError(f"{path} holds no row: download the file again")


def _lines(file: Any, path: Path) -> Iterator[str]:
    for number, raw in enumerate(file, start=1):
        try:
            yield raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"line {number} of {path} is not UTF-8: convert the file, for example with iconv"
            ) from error


def _literal(text: str, column: str, where: str) -> list[Any]:
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        reason = "nan is no literal" if "nan" in text.lower() else "it is no Python literal"
        raise ValueError(f"{where} has {column} that do not parse, {reason}: mend or drop the row") from error
    if not isinstance(value, list | tuple):
        raise ValueError(f"{where} has {column} that are {value!r}, not a list: mend or drop the row")
    return list(value)


def read_unit(name: str) -> str | None:
    """Find the unit that an official name stands for.

    Parameters
    ----------
    name
        The name; empty for a bare number.

    Returns
    -------
    str or None
        Our name; that of the file where there is none, which no other unit compares with.

    Examples
    --------
    >>> read_unit("dollar"), read_unit("percentage"), read_unit("patient"), read_unit("united states dollar")
    ('USD', 'percent', 'patient', 'united states dollar')
    """
    if name in ("", "-"):
        return None
    name = _UNIT_NAMES.get(name, name)
    for text in (f"2 {name}", f"2 {name}s"):
        quantities = extract_quantities(text)
        if len(quantities) == 1 and quantities[0].unit is not None and quantities[0].span == (0, len(text)):
            return quantities[0].unit
    return re.sub(r"[\s*/()]+", " ", name).strip()


def _matching(quantities: Sequence[dict[str, Any]], value: float) -> list[int]:
    return [n for n, row in enumerate(quantities) if math.isclose(row["value"], value, rel_tol=1e-6)]


def name_pairs(corpus: Dataset, training: TrainingFile) -> list[Pair | None]:
    """Make concept–unit pairs of the rows of the training file.

    The unit is the one in which the sentences of the row give its values. Rows whose concepts differ in case or number
    alone are one pair.

    Parameters
    ----------
    corpus
        The sentences of the file, annotated.
    training
        The file.

    Returns
    -------
    list of (Pair or None)
        One for each row; None where no sentence gives a value of the row in a unit.
    """
    votes: list[Counter[str]] = [Counter() for _ in training.pairs]
    for entries, quantities in zip(training.entries, _quantities(corpus), strict=True):
        for row, value in entries:
            units = [quantities[n]["canonical_unit"] for n in _matching(quantities, value)]
            votes[row].update({unit for unit in units if unit is not None})
    spellings: dict[tuple[tuple[str, ...], str], Counter[str]] = {}
    found: list[tuple[tuple[str, ...], str] | None] = []
    for (concept, name), counts in zip(training.pairs, votes, strict=True):
        if not counts:
            found.append(None)
            continue
        expected = canonicalize(1.0, read_unit(name))[1]
        # Equal counts: the first by name, since the order of a set is that of hashes.
        unit = expected if expected in counts else max(sorted(counts), key=lambda other: counts[other])
        assert unit is not None
        key = concept_key(concept), unit
        spellings.setdefault(key, Counter())[concept] += counts[unit]
        found.append(key)
    pairs = {}
    for key, counts in spellings.items():
        variants = tuple(sorted(counts, key=lambda form: (-counts[form], form)))
        pairs[key] = Pair(variants[0], key[1], variants, sum(counts.values()))
    return [None if key is None else pairs[key] for key in found]


def concept_key(concept: str) -> tuple[str, ...]:
    """Tell what makes two concepts the same, whatever case and number they are written in.

    Examples
    --------
    >>> concept_key("Net profits") == concept_key("net profit")
    True
    """
    return tuple(lemma(word) for word in concept.split())


def _quantities(corpus: Dataset) -> Iterator[list[dict[str, Any]]]:
    for batch in corpus.select_columns(["quantities"]).iter(1000):
        yield from batch["quantities"]


def index_official(
    corpus: Dataset, entries: Sequence[Sequence[tuple[int, float]]], pairs: Sequence[Pair | None]
) -> dict[str, Mentions]:
    """Index the sentences of the training file by pair, as the file groups them.

    Parameters
    ----------
    corpus
        Annotated sentences of the file.
    entries
        Of each of these sentences, as `TrainingFile` holds them.
    pairs
        Pair of each row of the file (`name_pairs`).

    Returns
    -------
    dict
        Pair key to its mentions, as `index_pairs` gives them.
    """
    index: dict[str, Mentions] = {}
    for number, (listed, quantities) in enumerate(zip(entries, _quantities(corpus), strict=True)):
        near: dict[str, set[int]] = {}
        for row, value in listed:
            pair = pairs[row]
            if pair is not None:
                positions = (n for n in _matching(quantities, value) if quantities[n]["canonical_unit"] == pair.unit)
                near.setdefault(pair.key, set()).update(positions)
        for key, chosen in near.items():
            if chosen:
                index.setdefault(key, Mentions()).add(number, [quantities[n] for n in sorted(chosen)])
    return index


def query_rows(queries: Sequence[OfficialQuery], pairs: Sequence[Pair | None]) -> list[dict[str, Any]]:
    """Write queries in the columns of `schema.BENCHMARK_QUERIES`, their number as id.

    Parameters
    ----------
    queries
        The queries.
    pairs
        Pairs of the training file: a query about one of them bears its name.

    Returns
    -------
    list of dict
        Rows; `seen` tells whether the pair is among `pairs`.
    """
    known = {(concept_key(pair.concept), pair.unit): pair for pair in pairs if pair is not None}
    rows = []
    for number, query in enumerate(queries):
        mentions = quantity_rows(query.text)
        alike = [mentions[n] for n in _matching(mentions, query.value)]
        mention = next((row for row in alike if row["unit"] is not None), alike[0] if alike else None)
        unit = mention["unit"] if mention is not None else None
        if unit is None:
            unit = read_unit(query.unit)
        canonical_value, canonical_unit = canonicalize(query.value, unit)
        pair = known.get((concept_key(query.concept), canonical_unit or ""))
        concept = query.concept if pair is None else pair.concept
        rows.append(
            {
                "id": str(number),
                "text": query.text,
                "condition": {
                    "operator": query.operator,
                    "value": query.value,
                    "upper": None,
                    "unit": unit,
                    "canonical_value": canonical_value,
                    "canonical_upper": None,
                    "canonical_unit": canonical_unit,
                    "start": None if mention is None else mention["start"],
                    "end": None if mention is None else mention["end"],
                },
                "concept": concept,
                "pair": f"{concept} | {canonical_unit}",
                "seen": pair is not None,
            }
        )
    return rows


def query_keys(rows: Sequence[dict[str, Any]]) -> set[QueryKey]:
    """Keys of query rows, judged or not, to keep them out of training."""
    return {query_key(row["pair"], row["condition"]["operator"], row["condition"]["canonical_value"]) for row in rows}


def sentences_of(texts: Sequence[str], prefix: str = "") -> Dataset:
    """Make a data set of sentences, numbered from 0."""
    return Dataset.from_dict(
        {"id": [f"{prefix}{number}" for number in range(len(texts))], "text": list(texts)}, features=SENTENCES
    )


def write_official_benchmark(
    corpus: Dataset,
    rows: Sequence[dict[str, Any]],
    qrels: Mapping[str, Mapping[str, int]],
    seen_pairs: AbstractSet[str],
    output: str | Path,
    *,
    name: str,
) -> Benchmark:
    """Write the official benchmark in the form of `load_benchmark`.

    Only relevant documents are judged, and only queries with a relevant one are kept, as in the official evaluation.

    Parameters
    ----------
    corpus
        The collection, annotated.
    rows
        The queries (`query_rows`).
    qrels
        The judgements.
    seen_pairs
        Keys of the pairs that training triplets are drawn from.
    output
        Directory to write.
    name
        Name of the benchmark in reports.

    Returns
    -------
    Benchmark
        As `load_benchmark` reads it.
    """
    kept = [{**row, "seen": row["pair"] in seen_pairs} for row in rows if any(qrels.get(row["id"], {}).values())]
    judgements = [
        {"query_id": row["id"], "document_id": document, "relevance": relevance}
        for row in kept
        for document, relevance in qrels[row["id"]].items()
    ]
    information = {
        "name": name,
        "documents": len(corpus),
        "queries": len(kept),
        "queries_by_operator": dict(Counter(row["condition"]["operator"] for row in kept)),
        "queries_about_unseen_pairs": sum(not row["seen"] for row in kept),
        "queries_without_relevant_document": len(rows) - len(kept),
        "pairs": len({row["pair"] for row in kept}),
        "judgements": len(judgements),
    }
    return write_benchmark(corpus, kept, judgements, information, output)
