"""From a corpus to everything a run needs: training triplets, test benchmark, development benchmark."""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datasets import Dataset, disable_progress_bars

from numcolbert.corpus.annotation import annotate
from numcolbert.corpus.augmentation import read_expressions, related_expressions
from numcolbert.corpus.benchmark import build_benchmark
from numcolbert.corpus.pairs import Pair, mine_pairs
from numcolbert.corpus.sentences import document_of, read_sentences
from numcolbert.corpus.storage import rows_sha256, write_json
from numcolbert.corpus.triplets import TripletOptions, build_triplets

VERSION = 2
"""Part of the fingerprint: raised when the same configuration yields other data."""

BUILTIN = "builtin"


@dataclass(frozen=True)
class DataConfig:
    """What data to prepare.

    Parameters
    ----------
    output_dir
        Directory for `triplets.parquet`, `benchmark/`, `development/` and `statistics.json`.
    train_source
        `.txt`, `.jsonl` or `.jsonl.gz` file, or "builtin" for the corpus that comes with the package.
    test_source
        File to build the test benchmark from; without one, `test_share` of the documents of `train_source`.
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
        Bounds on the length of a sentence.
    max_sentences
        Read so many sentences of each source only.
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
    train_source: str = BUILTIN
    test_source: str | None = None
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

    def fingerprint(self) -> str:
        """Name of this configuration: equal for equal settings and content of the sources, wherever all of it lies."""
        settings = dataclasses.asdict(self)
        del settings["output_dir"], settings["num_proc"]
        for key in ("train_source", "test_source", "expressions"):
            path = settings[key]
            if path is not None and path != BUILTIN and Path(path).is_file():
                # The suffix decides how a file is read; name and place decide nothing.
                settings[key] = [
                    Path(path.removesuffix(".gz")).suffix,
                    hashlib.sha256(Path(path).read_bytes()).hexdigest(),
                ]
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
    output.mkdir(parents=True, exist_ok=True)
    record.unlink(missing_ok=True)
    rng = random.Random(config.seed)

    sentences = _read(config, config.train_source)
    test_sentences = _read(config, config.test_source) if config.test_source else None
    shares = {"development": config.development_share, "test": 0.0 if test_sentences is not None else config.test_share}
    train, development, test = _split(sentences, shares, rng)
    if test_sentences is not None:
        known = set(test_sentences["text"])
        train = train.select([n for n, text in enumerate(train["text"]) if text not in known])
        test = test_sentences
    train, development, test = (annotate(part, num_proc=config.num_proc) for part in (train, development, test))

    train_pairs = mine_pairs(train, min_support=config.min_support)
    if not train_pairs:
        raise ValueError(
            f"no concept–unit pair found in {config.train_source}: give a larger corpus or lower min_support"
        )
    withheld = {pair.key for pair in train_pairs if rng.random() < config.unseen_pair_share}
    seen = {pair.key for pair in train_pairs} - withheld
    benchmarks = {}
    for name, part, queries in (
        ("benchmark", test, config.queries),
        ("development", development, config.development_queries),
    ):
        benchmarks[name] = build_benchmark(
            part,
            _merge(train_pairs, mine_pairs(part, min_support=config.min_support)),
            output / name,
            queries=queries,
            seen_pairs=seen,
            unseen_share=config.unseen_query_share,
            min_relevant=config.min_relevant,
            max_relevant=config.max_relevant,
            min_violating=config.min_violating,
            window=config.window,
            seed=config.seed,
            name=name,
        )
    if config.expressions is not None:
        related = read_expressions(config.expressions)
    else:
        related = related_expressions(train, train_pairs) if config.concept_expansion else {}
    unseen_asked = {row["pair"] for benchmark in benchmarks.values() for row in benchmark.queries if not row["seen"]}
    triplets = build_triplets(
        train,
        train_pairs,
        prepared[0],
        count=config.triplets,
        seed=config.seed,
        options=options,
        related=related,
        exclude_pairs=withheld | unseen_asked,
        exclude_queries=set().union(*(benchmark.query_keys() for benchmark in benchmarks.values())),
    )
    statistics = {
        "fingerprint": fingerprint,
        "config": dataclasses.asdict(config),
        "sentences": {"train": len(train), "development": len(development), "test": len(test)},
        "pairs": {"mined": len(train_pairs), "withheld": len(withheld)},
        "concepts_with_related_expressions": len(related),
        "triplets": triplets.as_dict(),
        "triplets_sha256": rows_sha256(prepared[0]),
        **{name: benchmark.information for name, benchmark in benchmarks.items()},
    }
    write_json(statistics, record)
    return PreparedData(*prepared, statistics)


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
        prog="python -m numcolbert.corpus.prepare", description=prepare_data.__doc__, allow_abbrev=False
    )
    for option in dataclasses.fields(DataConfig):
        kind = {"int": int, "float": float, "int | None": int}.get(str(option.type), str)
        required = option.default is dataclasses.MISSING
        parser.add_argument(
            f"--{option.name}", type=kind, required=required, default=None if required else option.default
        )
    disable_progress_bars()
    prepared = prepare_data(DataConfig(**vars(parser.parse_args(arguments))))
    print(json.dumps({key: prepared.statistics[key] for key in prepared.statistics if key != "config"}, indent=2))


if __name__ == "__main__":
    main()
