"""Training triplets: a query with a condition, a sentence that satisfies it, one of the same pair that violates it."""

from __future__ import annotations

import random
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from datasets import Dataset

from numcolbert.corpus.augmentation import permute_values, replace_unit
from numcolbert.corpus.pairs import Mentions, Pair, index_pairs
from numcolbert.corpus.queries import (
    OPERATORS,
    Query,
    draw_bound,
    holds,
    to_canonical,
    write_query,
)
from numcolbert.corpus.schema import TRIPLETS
from numcolbert.corpus.storage import write_parquet
from numcolbert.quantities import extract_quantities

QueryKey = tuple[str, str, float]


class _Sentence(NamedTuple):
    """A sentence of a pair, as the corpus has it or rewritten; rewriting keeps number and order of quantities."""

    text: str
    quantities: list[dict[str, Any]]
    near: list[int]
    """Positions of the quantities that are said of the concept."""


def query_key(pair: str, operator: str, canonical_value: float) -> QueryKey:
    """Tell what makes two queries the same, however they are worded.

    Examples
    --------
    >>> query_key("profit | USD", ">", 1_000_000.0)
    ('profit | USD', '>', 1000000.0)
    """
    return pair, operator, float(f"{canonical_value:.9g}")


@dataclass(frozen=True)
class TripletOptions:
    """Shares of the augmentations.

    Parameters
    ----------
    negative_permutation
        Share of negatives made by rewriting values, half of them in the positive itself.
    positive_permutation
        Share of positives made by rewriting values, so that a rewritten sentence is no sign of a negative.
    unit_permutation
        Share of positives with another surface form of the unit, and of negatives with an incompatible unit.
    concept_expansion
        Share of queries that name a related expression instead of the concept.
    near_threshold
        Share of new values within 30 % of the threshold.
    window
        Most words between a concept and its quantities.
    """

    negative_permutation: float = 0.5
    positive_permutation: float = 0.25
    unit_permutation: float = 0.1
    concept_expansion: float = 0.1
    near_threshold: float = 0.4
    window: int = 10

    def __post_init__(self) -> None:
        for name in (
            "negative_permutation",
            "positive_permutation",
            "unit_permutation",
            "concept_expansion",
            "near_threshold",
        ):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name)}: it is a share and must lie between 0 and 1")
        if self.negative_permutation + self.unit_permutation > 1:
            raise ValueError(
                "negative_permutation and unit_permutation are shares of the negatives: at most 1 together"
            )


@dataclass
class TripletStatistics:
    """What `build_triplets` did.

    Parameters
    ----------
    triplets
        Number written.
    pairs
        Names of the pairs that occur.
    operators, positive_sources, negative_sources
        Triplets of each kind.
    rejected
        Drafts thrown away, by reason.
    permutations
        Rewritten sentences that were tried.
    """

    triplets: int = 0
    pairs: set[str] = field(default_factory=set)
    operators: Counter[str] = field(default_factory=Counter)
    positive_sources: Counter[str] = field(default_factory=Counter)
    negative_sources: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    permutations: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Figures for a JSON file."""
        rewritten = self.rejected["value permutation"] + self.rejected["unit permutation"]
        return {
            "triplets": self.triplets,
            "pairs": len(self.pairs),
            "operators": dict(self.operators),
            "positive_sources": dict(self.positive_sources),
            "negative_sources": dict(self.negative_sources),
            "rejected": dict(self.rejected),
            "permutations_tried": self.permutations,
            "permutation_reject_rate": rewritten / self.permutations if self.permutations else 0.0,
        }


class _Builder:
    """Draws triplets; holds the index, never the sentences."""

    def __init__(
        self,
        corpus: Dataset,
        index: Mapping[str, Mentions],
        pairs: Sequence[Pair],
        related: Mapping[str, Sequence[str]],
        excluded: AbstractSet[QueryKey],
        options: TripletOptions,
        rng: random.Random,
    ) -> None:
        self.options, self.rng, self.excluded, self.related = options, rng, excluded, related
        self.index = index
        self.pairs = [pair for pair in pairs if pair.key in index and _varied(index[pair.key])]
        if not self.pairs:
            raise ValueError(
                "no concept–unit pair has sentences with different values: give a larger corpus or lower min_support"
            )
        self.weights = list(accumulate(len(index[pair.key].sentences) ** 0.5 for pair in self.pairs))
        self.observed = {pair.key: [v for values in index[pair.key].values for v in values] for pair in self.pairs}
        self.statistics = TripletStatistics()

        @lru_cache(maxsize=50_000)
        def row(number: int) -> dict[str, Any]:
            return corpus[number]

        self.row = row

    def draw(self, operator: str) -> dict[str, Any] | None:
        """One triplet, or None if this draft came to nothing."""
        rng = self.rng
        pair = self.pairs[bisect(self.weights, rng.random() * self.weights[-1])]
        mentions = self.index[pair.key]
        first, second = rng.randrange(len(mentions.sentences)), rng.randrange(len(mentions.sentences))
        threshold = self._threshold(operator, mentions, first, second)
        if threshold is None:
            self._reject("no threshold between the two sentences")
            return None
        value, unit = threshold
        canonical = to_canonical(value, unit)
        if query_key(pair.key, operator, canonical) in self.excluded:
            self._reject("held-out query")
            return None
        query = self._query(pair, operator, value, unit)
        if query is None:
            self._reject("query does not read back")
            return None
        positive = self._positive(pair, operator, canonical, mentions, first)
        if positive is None:
            return None
        negative = self._negative(pair, operator, canonical, mentions, second, positive[0])
        if negative is None:
            return None
        if positive[0].text == negative[0].text:
            self._reject("positive and negative are the same")
            return None
        return {
            "query": query.text,
            "positive": positive[0].text,
            "negative": negative[0].text,
            "query_condition": query.condition,
            "positive_quantities": positive[0].quantities,
            "negative_quantities": negative[0].quantities,
            "concept": pair.concept,
            "pair": pair.key,
            "positive_source": positive[1],
            "negative_source": negative[1],
        }

    def _reject(self, reason: str) -> None:
        self.statistics.rejected[reason] += 1

    def _threshold(self, operator: str, mentions: Mentions, first: int, second: int) -> tuple[float, str] | None:
        """Draw a threshold that the first sentence satisfies and the second violates, as the pair's sentences write."""
        satisfying, violating = mentions.values[first], mentions.values[second]
        if operator == "=":
            chosen = self.rng.randrange(len(satisfying))
            if any(holds("=", satisfying[chosen], other) for other in violating):
                return None
            return mentions.written[first][chosen]
        low, high = (max(violating), max(satisfying)) if operator == ">" else (min(satisfying), min(violating))
        if not low < high:
            return None
        unit = mentions.usual_unit(high)
        value = draw_bound(operator, low, high, unit, self.rng)
        return None if value is None else (value, unit)

    def _query(self, pair: Pair, operator: str, value: float, unit: str) -> Query | None:
        wording: Sequence[str] = pair.variants[:3] or (pair.concept,)
        related = self.related.get(pair.concept, ())
        if related and self.rng.random() < self.options.concept_expansion:
            wording = related
        return write_query(wording, operator, value, unit, self.rng)

    def _sentence(self, mentions: Mentions, place: int) -> _Sentence | None:
        row, written = self.row(mentions.sentences[place]), mentions.written[place]
        near = [n for n, quantity in enumerate(row["quantities"]) if (quantity["value"], quantity["unit"]) in written]
        if len(near) > len(written):
            self._reject("another concept has the same quantity")
            return None
        return _Sentence(row["text"], row["quantities"], near)

    def _positive(
        self, pair: Pair, operator: str, threshold: float, mentions: Mentions, place: int
    ) -> tuple[_Sentence, str] | None:
        options, rng = self.options, self.rng
        permuted = False
        if rng.random() < options.positive_permutation:
            other = rng.randrange(len(mentions.sentences))
            if not any(holds(operator, threshold, value) for value in mentions.values[other]):
                place, permuted = other, True
        sentence = self._sentence(mentions, place)
        if sentence is None:
            return None
        source = "original"
        if permuted:
            sentence, source = (
                self._rewritten(sentence, pair, operator, threshold, satisfying=True),
                "value_permutation",
            )
            if sentence is None:
                return None
        elif rng.random() < options.unit_permutation:
            rewritten = self._with_unit(sentence, sentence.near, same_unit=True)
            if rewritten is not None:
                sentence, source = rewritten, "unit_permutation"
        return sentence, source

    def _negative(
        self,
        pair: Pair,
        operator: str,
        threshold: float,
        mentions: Mentions,
        place: int,
        positive: _Sentence,
    ) -> tuple[_Sentence, str] | None:
        options, rng = self.options, self.rng
        kind = rng.random()
        sentence: _Sentence | None
        if kind < options.negative_permutation:
            source = "value_permutation"
            if rng.random() < 0.5:
                base: _Sentence | None = positive
            else:
                base = self._sentence(mentions, rng.randrange(len(mentions.sentences)))
            sentence = base and self._rewritten(base, pair, operator, threshold, satisfying=False)
        elif kind < options.negative_permutation + options.unit_permutation:
            source = "unit_permutation"
            positions = [n for n, row in enumerate(positive.quantities) if row["canonical_unit"] == pair.unit]
            sentence = self._with_unit(positive, positions, same_unit=False)
        else:
            source = "original"
            sentence = self._sentence(mentions, place)
        if sentence is None:
            return None
        if any(
            row["canonical_unit"] == pair.unit and holds(operator, threshold, row["canonical_value"])
            for row in sentence.quantities
        ):
            self._reject("negative satisfies elsewhere in the sentence")
            return None
        return sentence, source

    def _with_unit(self, sentence: _Sentence, positions: Sequence[int], *, same_unit: bool) -> _Sentence | None:
        self.statistics.permutations += 1
        changed = replace_unit(
            sentence.text, extract_quantities(sentence.text), positions, self.rng, same_unit=same_unit
        )
        if changed is None:
            self._reject("unit permutation")
            return None
        return _Sentence(*changed, sentence.near)

    def _rewritten(
        self, sentence: _Sentence, pair: Pair, operator: str, threshold: float, *, satisfying: bool
    ) -> _Sentence | None:
        self.statistics.permutations += 1
        changed = permute_values(
            sentence.text,
            pair.unit,
            sentence.near,
            self.observed[pair.key],
            operator,
            threshold,
            satisfying=satisfying,
            near_share=self.options.near_threshold,
            rng=self.rng,
        )
        if changed is None:
            self._reject("value permutation")
            return None
        return _Sentence(*changed, sentence.near)


def _varied(mentions: Mentions) -> bool:
    return len(set(mentions.values)) > 1


def build_triplets(
    corpus: Dataset,
    pairs: Sequence[Pair],
    output: str | Path,
    *,
    count: int,
    seed: int = 0,
    options: TripletOptions | None = None,
    related: Mapping[str, Sequence[str]] | None = None,
    exclude_pairs: AbstractSet[str] = frozenset(),
    exclude_queries: AbstractSet[QueryKey] = frozenset(),
    index: Mapping[str, Mentions] | None = None,
) -> TripletStatistics:
    """Build training triplets and stream them to a Parquet file.

    Operators take turns; pairs are drawn in proportion to the root of their number of sentences. A positive has a
    quantity near the concept that satisfies the condition; in a negative no compatible quantity does, near or far.
    Sentences that were rewritten are read again and dropped if they do not say what was meant.

    Parameters
    ----------
    corpus
        Annotated sentences (`annotate`).
    pairs
        Concept–unit pairs (`mine_pairs`).
    output
        The Parquet file.
    count
        Number of distinct triplets.
    seed
        Seed of all random choices: same seed, corpus and pairs, same triplets.
    options
        Shares of the augmentations.
    related
        Related expressions by concept, for concept expansion.
    exclude_pairs
        Keys of pairs that must not occur.
    exclude_queries
        Keys (`query_key`) of queries that must not occur.
    index
        Where the pairs occur in the corpus; found by their concepts (`index_pairs`) if None.

    Returns
    -------
    TripletStatistics
        What was written and what was rejected.

    Raises
    ------
    ValueError
        If the corpus does not yield so many triplets.
    """
    options = options or TripletOptions()
    kept = [pair for pair in pairs if pair.key not in exclude_pairs]
    if index is None:
        index = index_pairs(corpus, pairs, window=options.window)
    builder = _Builder(corpus, index, kept, related or {}, exclude_queries, options, random.Random(seed))
    statistics = builder.statistics

    def rows() -> Iterator[dict[str, Any]]:
        seen: set[int] = set()
        for number in range(count):
            operator = OPERATORS[number % len(OPERATORS)]
            for _ in range(5000):
                row = builder.draw(operator)
                if row is None:
                    continue
                key = hash((row["query"], row["positive"], row["negative"]))
                if key not in seen:
                    seen.add(key)
                    break
                statistics.rejected["seen before"] += 1
            else:
                raise ValueError(
                    f"the corpus yields only {number} distinct triplets, not {count}: lower the count of triplets or "
                    "give a larger corpus"
                )
            statistics.triplets += 1
            statistics.pairs.add(row["pair"])
            statistics.operators[operator] += 1
            statistics.positive_sources[row["positive_source"]] += 1
            statistics.negative_sources[row["negative_source"]] += 1
            yield row

    write_parquet(rows(), TRIPLETS, Path(output))
    return statistics
