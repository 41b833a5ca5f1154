"""From a corpus to everything a run needs: training triplets, test benchmark, development benchmark."""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from datasets import Dataset, disable_progress_bars

from numcolbert.corpus.annotation import annotate
from numcolbert.corpus.augmentation import read_expressions, related_expressions
from numcolbert.corpus.benchmark import Benchmark, build_benchmark
from numcolbert.corpus.official import (
    FILES,
    TRAINING,
    index_official,
    name_pairs,
    query_keys,
    query_rows,
    read_official,
    sentences_of,
    write_official_benchmark,
)
from numcolbert.corpus.pairs import Mentions, Pair, mine_pairs
from numcolbert.corpus.sentences import document_of, read_sentences
from numcolbert.corpus.storage import file_sha256, rows_sha256, write_json
from numcolbert.corpus.triplets import TripletOptions, build_triplets

VERSION = 5
"""Part of the fingerprint: raised when the same configuration yields other data."""

BUILTIN = "builtin"


@dataclass(frozen=True)
class DataConfig:
    """What data to prepare.

    Parameters
    ----------
    output_dir
        Directory for `triplets.parquet`, `benchmark/`, `development/` and `statistics.json`.
    name
        Name of the corpus in tables and model cards, such as "FinQuant"; without one, that of its file or folder.
    train_source
        `.txt`, `.jsonl` or `.jsonl.gz` file, or "builtin" for the corpus that comes with the package.
    test_source
        File to build the test benchmark from; without one, `test_share` of the documents of `train_source`.
    official_dir
        Folder of the official files of FinQuant or MedQuant (`numcolbert.corpus.official`): triplets and development
        benchmark are made from its training file, and its queries are the test benchmark. `train_source` and
        `test_source` must then be left as they are; `test_share`, `queries` and `min_support` count for nothing.
    text_column, id_column
        Columns of JSON lines.
    triplets
        Number of training triplets.
    queries, development_queries
        Number of queries of the two benchmarks.
    development_share, test_share
        Share of the training documents that the development benchmark, and without `test_source` the test benchmark,
        is cut from; no sentence of theirs is trained on.
    unseen_pair_share
        Share of the mined pairs that no triplet is about.
    unseen_query_share
        Share of the queries that ask about such pairs.
    min_support
        Sentences that make a concept–unit pair.
    min_relevant, max_relevant, min_violating
        Bounds on the judged sentences of a benchmark query.
    min_characters, max_characters
        Bounds on the length of a sentence, documents of the official collection excepted.
    max_sentences
        Read so many sentences of each source only; the official collection is always read whole.
    expressions
        JSON file of related expressions by concept; without one they are found in the corpus.
    negative_permutation, positive_permutation, unit_permutation, concept_expansion, near_threshold, window
        See `TripletOptions`.
    seed
        Seed of all random choices.
    num_proc
        Processes that read quantities.
    """

    output_dir: str
    name: str | None = None
    train_source: str = BUILTIN
    test_source: str | None = None
    official_dir: str | None = None
    text_column: str = "text"
    id_column: str = "id"
    triplets: int = 16_000
    queries: int = 300
    development_queries: int = 150
    development_share: float = 0.07
    test_share: float = 0.2
    unseen_pair_share: float = 0.15
    unseen_query_share: float = 0.3
    min_support: int = 6
    min_relevant: int = 3
    max_relevant: int = 50
    min_violating: int = 5
    min_characters: int = 25
    max_characters: int = 400
    max_sentences: int | None = None
    expressions: str | None = None
    negative_permutation: float = 0.5
    positive_permutation: float = 0.25
    unit_permutation: float = 0.1
    concept_expansion: float = 0.1
    near_threshold: float = 0.4
    window: int = 10
    seed: int = 0
    num_proc: int | None = None

    def __post_init__(self) -> None:
        if self.official_dir is not None:
            for name, unset in (("train_source", BUILTIN), ("test_source", None)):
                if getattr(self, name) != unset:
                    raise ValueError(
                        f"official_dir is {self.official_dir!r} and {name} {getattr(self, name)!r}: give one of them, "
                        "for the official files hold training and test data"
                    )

    @property
    def is_builtin(self) -> bool:
        """Whether all data comes from the corpus of the package."""
        return self.train_source == BUILTIN and self.test_source is None and self.official_dir is None

    @property
    def corpus_name(self) -> str:
        """Name of the corpus in tables and model cards."""
        if self.name is not None:
            return self.name
        if self.official_dir is not None:
            return Path(self.official_dir).resolve().name
        if self.is_builtin:
            return "built-in corpus of the numcolbert package"
        return Path(self.train_source).name

    def fingerprint(self) -> str:
        """Name of this configuration: equal for equal settings and content of the sources, wherever all of it lies."""
        settings = dataclasses.asdict(self)
        del settings["output_dir"], settings["num_proc"]
        for key in ("train_source", "test_source", "expressions"):
            path = settings[key]
            if path is not None and path != BUILTIN and Path(path).is_file():
                # The suffix decides how a file is read; name and place decide nothing.
                settings[key] = [Path(path.removesuffix(".gz")).suffix, file_sha256(Path(path))]
        if self.official_dir is not None:
            files = (Path(self.official_dir) / name for name in FILES)
            settings["official_dir"] = [file_sha256(file) if file.is_file() else None for file in files]
        content = json.dumps([VERSION, settings], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class PreparedData:
    """Where the prepared data lies.

    Parameters
    ----------
    triplets
        Parquet file, columns of `schema.TRIPLETS`.
    benchmark, development
        Directories for `load_benchmark`.
    statistics
        Content of `statistics.json`.
    """

    triplets: Path
    benchmark: Path
    development: Path
    statistics: dict[str, Any]


def prepare_data(config: DataConfig) -> PreparedData:
    """Prepare training and evaluation data; nothing is done if it was prepared with the same configuration.

    Pairs for training are mined on the training sentences alone. The benchmarks ask about those pairs, a part of which
    is kept out of training, and about pairs mined on the benchmark's own sentences; queries of either benchmark never
    occur in a triplet, sentences of the development benchmark, or equal to one of the test benchmark, neither.

    Parameters
    ----------
    config
        What to prepare.

    Returns
    -------
    PreparedData
        Paths and statistics.

    Raises
    ------
    ValueError
        If a source cannot be read or is too small for what is asked.
    """
    output = Path(config.output_dir)
    prepared = output / "triplets.parquet", output / "benchmark", output / "development"
    record = output / "statistics.json"
    fingerprint = config.fingerprint()
    if record.is_file() and all(path.exists() for path in prepared):
        statistics = json.loads(record.read_text(encoding="utf-8"))
        if statistics.get("fingerprint") == fingerprint:
            return PreparedData(*prepared, statistics)
    options = TripletOptions(
        negative_permutation=config.negative_permutation,
        positive_permutation=config.positive_permutation,
        unit_permutation=config.unit_permutation,
        concept_expansion=config.concept_expansion,
        near_threshold=config.near_threshold,
        window=config.window,
    )
    rng = random.Random(config.seed)
    material = _mined(config, rng) if config.official_dir is None else _official(config, rng)
    output.mkdir(parents=True, exist_ok=True)
    record.unlink(missing_ok=True)  # from here on nothing counts as prepared until all is

    train = material.train
    withheld = {pair.key for pair in train.pairs if rng.random() < config.unseen_pair_share}
    seen = {pair.key for pair in train.pairs} - withheld

    def benchmark_of(part: _Part, folder: str, name: str, queries: int) -> Benchmark:
        return build_benchmark(
            part.sentences,
            part.pairs,
            output / folder,
            queries=queries,
            seen_pairs=seen,
            unseen_share=config.unseen_query_share,
            min_relevant=config.min_relevant,
            max_relevant=config.max_relevant,
            min_violating=config.min_violating,
            window=config.window,
            seed=config.seed,
            name=name,
            index=part.index,
        )

    name = config.corpus_name
    benchmarks = {}
    if material.queries is None:
        benchmarks["benchmark"] = benchmark_of(material.test, "benchmark", name, config.queries)
    else:
        benchmarks["benchmark"] = write_official_benchmark(
            material.test.sentences, material.queries, material.qrels, seen, prepared[1], name=name
        )
    benchmarks["development"] = benchmark_of(
        material.development, "development", f"{name}, development", config.development_queries
    )
    if config.expressions is not None:
        related = read_expressions(config.expressions)
    else:
        related = related_expressions(train.sentences, train.pairs) if config.concept_expansion else {}
    unseen_asked = {row["pair"] for benchmark in benchmarks.values() for row in benchmark.queries if not row["seen"]}
    asked = set().union(
        query_keys(material.queries or []), *(benchmark.query_keys() for benchmark in benchmarks.values())
    )
    triplets = build_triplets(
        train.sentences,
        train.pairs,
        prepared[0],
        count=config.triplets,
        seed=config.seed,
        options=options,
        related=related,
        exclude_pairs=withheld | unseen_asked,
        exclude_queries=asked,
        index=train.index,
    )

    statistics = {
        "fingerprint": fingerprint,
        "config": dataclasses.asdict(config),
        "sentences": {
            "train": len(train.sentences),
            "development": len(material.development.sentences),
            "test": len(material.test.sentences),
        },
        "pairs": {"train": len(train.pairs), "withheld": len(withheld)},
        "concepts_with_related_expressions": len(related),
        "triplets": triplets.as_dict(),
        "triplets_sha256": rows_sha256(prepared[0]),
        **material.statistics,
        **{name: benchmark.information for name, benchmark in benchmarks.items()},
    }
    write_json(statistics, record)
    return PreparedData(*prepared, statistics)


@dataclass(frozen=True)
class _Part:
    """Annotated sentences, the pairs they are asked for, and where these occur if that is known."""

    sentences: Dataset
    pairs: Sequence[Pair]
    index: Mapping[str, Mentions] | None = None


@dataclass(frozen=True)
class _Material:
    """What data is built from; queries and judgements only where they are given and not built."""

    train: _Part
    development: _Part
    test: _Part
    queries: list[dict[str, Any]] | None = None
    qrels: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    statistics: dict[str, Any] = field(default_factory=dict)


def _mined(config: DataConfig, rng: random.Random) -> _Material:
    """Read the sources and mine the pairs of each part."""
    sentences = _read(config, config.train_source)
    test_sentences = _read(config, config.test_source) if config.test_source else None
    shares = {"development": config.development_share, "test": 0.0 if test_sentences is not None else config.test_share}
    train, development, test = _split(sentences, shares, rng)
    if test_sentences is not None:
        known = set(test_sentences["text"])
        train = train.select([n for n, text in enumerate(train["text"]) if text not in known])
        test = test_sentences
    train, development, test = (annotate(part, num_proc=config.num_proc) for part in (train, development, test))
    pairs = mine_pairs(train, min_support=config.min_support)
    if not pairs:
        raise ValueError(
            f"no concept–unit pair found in {config.train_source}: give a larger corpus or lower min_support"
        )

    def part(sentences: Dataset) -> _Part:
        return _Part(sentences, _merge(pairs, mine_pairs(sentences, min_support=config.min_support)))

    return _Material(_Part(train, pairs), part(development), part(test))


def _official(config: DataConfig, rng: random.Random) -> _Material:
    """Read the official files; no answer to a test query is trained on."""
    directory = Path(str(config.official_dir))
    data = read_official(
        directory,
        min_characters=config.min_characters,
        max_characters=config.max_characters,
        max_sentences=config.max_sentences,
    )
    corpus = annotate(sentences_of(data.training.texts, prefix="train-"), num_proc=config.num_proc)
    pairs_of_rows = name_pairs(corpus, data.training)
    pairs = sorted(
        {pair.key: pair for pair in pairs_of_rows if pair is not None}.values(),
        key=lambda pair: (-pair.support, pair.key),
    )
    if not pairs:
        raise ValueError(
            f"no row of {directory / TRAINING} has a sentence that gives its value in a unit: check that `values` and "
            "`sentences` belong together"
        )
    answers = {
        " ".join(data.documents[int(document)].split())
        for judged in data.qrels.values()
        for document, relevance in judged.items()
        if relevance
    }
    numbers = [number for number, text in enumerate(data.training.texts) if text not in answers]
    left_out = len(data.training.texts) - len(numbers)
    rng.shuffle(numbers)
    cut = round(config.development_share * len(numbers))

    def part(chosen: list[int]) -> _Part:
        entries = [data.training.entries[number] for number in chosen]
        sentences = corpus.select(chosen)
        return _Part(sentences, pairs, index_official(sentences, entries, pairs_of_rows))

    return _Material(
        train=part(sorted(numbers[cut:])),
        development=part(sorted(numbers[:cut])),
        test=_Part(annotate(sentences_of(data.documents), num_proc=config.num_proc), pairs),
        queries=query_rows(data.queries, pairs_of_rows),
        qrels=data.qrels,
        statistics={
            "training_file": {
                "rows": len(pairs_of_rows),
                "rows_without_pair": sum(pair is None for pair in pairs_of_rows),
                "answers_left_out": left_out,
            }
        },
    )


def _read(config: DataConfig, source: str) -> Dataset:
    corpus: str | Dataset = source
    if source == BUILTIN:
        from numcolbert.corpus.builtin import generate_corpus  # noqa: PLC0415

        corpus = generate_corpus(seed=config.seed)
    return read_sentences(
        corpus,
        text_column=config.text_column if source != BUILTIN else "text",
        id_column=config.id_column if source != BUILTIN else "id",
        split=False if source == BUILTIN else None,
        min_characters=config.min_characters,
        max_characters=config.max_characters,
        max_sentences=config.max_sentences,
    )


def _split(sentences: Dataset, shares: dict[str, float], rng: random.Random) -> tuple[Dataset, Dataset, Dataset]:
    """Train, development and test part, cut between documents."""
    owners = [document_of(identifier) for identifier in sentences["id"]]
    documents = sorted(set(owners))
    rng.shuffle(documents)
    first = round(shares["development"] * len(documents))
    second = first + round(shares["test"] * len(documents))
    part_of = {document: 1 if n < first else 2 if n < second else 0 for n, document in enumerate(documents)}
    rows: list[list[int]] = [[], [], []]
    for number, owner in enumerate(owners):
        rows[part_of[owner]].append(number)
    return sentences.select(rows[0]), sentences.select(rows[1]), sentences.select(rows[2])


def _merge(first: Sequence[Pair], second: Sequence[Pair]) -> list[Pair]:
    keys = {pair.key for pair in first}
    return [*first, *(pair for pair in second if pair.key not in keys)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Prepare data from the command line: every field of `DataConfig` is an option."""
    parser = argparse.ArgumentParser(
        prog="python -m numcolbert.corpus.prepare",
        description="Prepare training triplets, test benchmark and development benchmark; nothing is done if they were "
        "prepared with the same options. The options are the fields of numcolbert.corpus.prepare.DataConfig.",
        allow_abbrev=False,
    )
    for option in dataclasses.fields(DataConfig):
        kind = {"int": int, "float": float, "int | None": int}.get(str(option.type), str)
        required = option.default is dataclasses.MISSING
        parser.add_argument(
            f"--{option.name}", type=kind, required=required, default=None if required else option.default
        )
    options = vars(parser.parse_args(arguments))
    disable_progress_bars()
    try:
        prepared = prepare_data(DataConfig(**options))
    except (FileNotFoundError, ValueError) as error:
        sys.exit(f"{parser.prog}: {error}")
    print(json.dumps({key: prepared.statistics[key] for key in prepared.statistics if key != "config"}, indent=2))


if __name__ == "__main__":
    main()
