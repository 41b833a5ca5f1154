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
from typing import Any

from datasets import Dataset

from numcolbert.corpus.augmentation import permute_values, replace_unit
from numcolbert.corpus.pairs import ConceptFinder, Mentions, Pair, index_pairs, near_values
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

Sentence = tuple[str, list[dict[str, Any]]]
QueryKey = tuple[str, str, float]


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
        finder: ConceptFinder,
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
        self.finder = finder
        self.observed = {pair.key: [v for values in index[pair.key].values for v in values] for pair in self.pairs}
        self.statistics = TripletStatistics()

        @lru_cache(maxsize=50_000)
        def sentence(number: int) -> Sentence:
            row = corpus[number]
            return row["text"], row["quantities"]

        self.sentence = sentence

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
        if positive[0][0] == negative[0][0]:
            self._reject("positive and negative are the same")
            return None
        return {
            "query": query.text,
            "positive": positive[0][0],
            "negative": negative[0][0],
            "query_condition": query.condition,
            "positive_quantities": positive[0][1],
            "negative_quantities": negative[0][1],
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

    def _near(self, sentence: Sentence, pair: Pair) -> list[int]:
        return near_values(*sentence, self.finder, self.options.window).get((pair.concept, pair.unit), [])

    def _positive(
        self, pair: Pair, operator: str, threshold: float, mentions: Mentions, number: int
    ) -> tuple[Sentence, str] | None:
        options, rng = self.options, self.rng
        sentence = self.sentence(mentions.sentences[number])
        source = "original"
        if rng.random() < options.positive_permutation:
            other = rng.randrange(len(mentions.sentences))
            if not any(holds(operator, threshold, value) for value in mentions.values[other]):
                changed = self._permuted(mentions, other, pair, operator, threshold, satisfying=True)
                if changed is None:
                    return None
                sentence, source = changed, "value_permutation"
        if source == "original" and rng.random() < options.unit_permutation:
            near = self._near(sentence, pair)
            self.statistics.permutations += 1
            rewritten = replace_unit(sentence[0], extract_quantities(sentence[0]), near, rng, same_unit=True)
            if rewritten is None:
                self._reject("unit permutation")
            else:
                sentence, source = rewritten, "unit_permutation"
        near = self._near(sentence, pair)
        if not any(holds(operator, threshold, sentence[1][n]["canonical_value"]) for n in near):
            self._reject("positive violates")
            return None
        return sentence, source

    def _negative(
        self,
        pair: Pair,
        operator: str,
        threshold: float,
        mentions: Mentions,
        number: int,
        positive: Sentence,
    ) -> tuple[Sentence, str] | None:
        options, rng = self.options, self.rng
        sentence, source = self.sentence(mentions.sentences[number]), "original"
        kind = rng.random()
        if kind < options.negative_permutation:
            if rng.random() < 0.5:
                base = positive
            else:
                base = self.sentence(mentions.sentences[rng.randrange(len(mentions.sentences))])
            changed = self._rewritten(base, pair, operator, threshold, satisfying=False)
            if changed is None:
                return None
            sentence, source = changed, "value_permutation"
        elif kind < options.negative_permutation + options.unit_permutation:
            positions = [n for n, row in enumerate(positive[1]) if row["canonical_unit"] == pair.unit]
            self.statistics.permutations += 1
            rewritten = replace_unit(positive[0], extract_quantities(positive[0]), positions, rng, same_unit=False)
            if rewritten is None:
                self._reject("unit permutation")
                return None
            sentence, source = rewritten, "unit_permutation"
        if any(
            row["canonical_unit"] == pair.unit and holds(operator, threshold, row["canonical_value"])
            for row in sentence[1]
        ):
            self._reject("negative satisfies elsewhere in the sentence")
            return None
        return sentence, source

    def _permuted(
        self, mentions: Mentions, number: int, pair: Pair, operator: str, threshold: float, *, satisfying: bool
    ) -> Sentence | None:
        return self._rewritten(
            self.sentence(mentions.sentences[number]), pair, operator, threshold, satisfying=satisfying
        )

    def _rewritten(
        self, sentence: Sentence, pair: Pair, operator: str, threshold: float, *, satisfying: bool
    ) -> Sentence | None:
        near = self._near(sentence, pair)
        self.statistics.permutations += 1
        changed = near and permute_values(
            sentence[0],
            pair.unit,
            near,
            self.observed[pair.key],
            operator,
            threshold,
            satisfying=satisfying,
            near_share=self.options.near_threshold,
            rng=self.rng,
        )
        if not changed:
            self._reject("value permutation")
            return None
        return changed


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
    index = index_pairs(corpus, pairs, window=options.window)
    builder = _Builder(
        corpus, index, kept, ConceptFinder.of_pairs(pairs), related or {}, exclude_queries, options, random.Random(seed)
    )
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
