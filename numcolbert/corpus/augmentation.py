"""The three augmentations: other words for a concept, other units, other values."""

from __future__ import annotations

import json
import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset

from numcolbert.corpus.annotation import quantity_rows
from numcolbert.corpus.pairs import ConceptFinder, Pair, _columns, tokenize
from numcolbert.corpus.queries import _number_forms, from_canonical, holds, to_canonical
from numcolbert.corpus.words import FUNCTION_WORDS, lemma
from numcolbert.quantities import (
    Quantity,
    extract_quantities,
    incompatible_units,
    prefix_forms,
    surface_forms,
)

# Words that stand in the same contexts and mean the opposite, or another thing: contexts cannot tell them apart.
_OPPOSITES = (
    "profit loss",
    "gain loss",
    "income loss",
    "earnings loss",
    "income expense",
    "revenue cost",
    "revenue expense",
    "asset liability",
    "export import",
    "surplus deficit",
    "supply demand",
    "buy sell",
    "buyer seller",
    "systolic diastolic",
    "ldl hdl",
    "placebo treatment",
    "placebo intervention",
    "control intervention",
    "control treatment",
    "male female",
    "man woman",
    "minimum maximum",
    "net gross",
    "pretax net",
    "height weight",
    "bid offer",
    "deposit loan",
)
OPPOSITES = frozenset(frozenset(line.split()) for line in _OPPOSITES)


def related_expressions(
    corpus: Dataset | Iterable[dict[str, Any]],
    pairs: Sequence[Pair],
    *,
    min_similarity: float = 0.45,
    per_concept: int = 3,
    context_words: int = 2000,
    window: int = 6,
) -> dict[str, tuple[str, ...]]:
    """Expressions that a corpus uses in the same contexts as each concept.

    Contexts are the words within `window` words of a mention, weighted by positive pointwise mutual information and
    compared by cosine. Only concepts of a common unit are compared, and words of opposite meaning, which share their
    contexts, are kept apart by a list.

    Parameters
    ----------
    corpus
        Rows with `text` and `quantities`.
    pairs
        The concepts.
    min_similarity
        Least cosine.
    per_concept
        Most expressions for one concept.
    context_words
        Number of most frequent words that make up a context.
    window
        Words on either side of a mention.

    Returns
    -------
    dict
        Concept to related concepts, the nearest first; concepts without any are left out.
    """
    concepts = sorted({pair.concept for pair in pairs})
    number_of = {concept: number for number, concept in enumerate(concepts)}
    finder = ConceptFinder(concepts)
    counts: list[Counter[str]] = [Counter() for _ in concepts]
    frequency: Counter[str] = Counter()
    for text, _ in _columns(corpus):
        tokens = tokenize(text)
        words = [lemma(token.text) for token in tokens]
        for concept, start, end in finder.find(tokens):
            context = words[max(0, start - window) : start] + words[end : end + window]
            context = [word for word in context if word[0].isalpha() and word not in FUNCTION_WORDS]
            counts[number_of[concept]].update(context)
            frequency.update(context)
    vocabulary = {word: n for n, (word, _) in enumerate(frequency.most_common(context_words))}
    matrix = np.zeros((len(concepts), len(vocabulary)), dtype=np.float32)
    for row, counter in enumerate(counts):
        for word, count in counter.items():
            if word in vocabulary:
                matrix[row, vocabulary[word]] = count
    total = matrix.sum()
    if total == 0:
        return {}
    expected = matrix.sum(1, keepdims=True) * matrix.sum(0, keepdims=True) / total
    with np.errstate(divide="ignore", invalid="ignore"):
        matrix = np.nan_to_num(np.maximum(np.log(matrix / expected), 0), posinf=0, neginf=0)
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    matrix /= np.maximum(norms, 1e-9)
    units: dict[str, set[str]] = defaultdict(set)
    for pair in pairs:
        units[pair.concept].add(pair.unit)
    related: dict[str, tuple[str, ...]] = {}
    for row, concept in enumerate(concepts):
        similarities = matrix @ matrix[row]
        chosen: list[str] = []
        for other in np.argsort(-similarities, kind="stable")[: 10 * per_concept]:
            candidate = concepts[int(other)]
            if similarities[other] < min_similarity or len(chosen) == per_concept:
                break
            if candidate != concept and units[concept] & units[candidate] and not opposite(concept, candidate):
                chosen.append(candidate)
        if chosen:
            related[concept] = tuple(chosen)
    return related


def opposite(first: str, second: str) -> bool:
    """Whether two expressions differ by words of opposite meaning.

    Examples
    --------
    >>> opposite("net profit", "net loss"), opposite("net profit", "profit")
    (True, False)
    """
    one, two = {lemma(word) for word in first.split()}, {lemma(word) for word in second.split()}
    return any(frozenset((a, b)) in OPPOSITES for a in one - two for b in two - one)


def read_expressions(path: str | Path) -> dict[str, tuple[str, ...]]:
    """Read related expressions from a JSON file: an object of concept to list of expressions.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    dict
        Concept to expressions.

    Raises
    ------
    ValueError
        If the file holds anything else.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is not JSON in UTF-8 ({error}): write {{concept: [expression, ...]}}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} must hold an object {{concept: [expression, ...]}}")
    for concept, expressions in content.items():
        if not isinstance(expressions, list) or not all(isinstance(item, str) and item for item in expressions):
            raise ValueError(f"{path}: {concept!r} must have a list of expressions, not {expressions!r}")
    return {concept: tuple(expressions) for concept, expressions in content.items()}


def draw_value(
    observed: Sequence[float],
    operator: str,
    threshold: float,
    unit: str,
    *,
    satisfying: bool,
    near_share: float,
    whole: bool,
    rng: random.Random,
) -> float | None:
    """Draw a new value for a quantity, in its own unit.

    Parameters
    ----------
    observed
        Canonical values that the corpus gives for the pair.
    operator, threshold
        The condition; the threshold is canonical.
    unit
        Unit the value is written in.
    satisfying
        Whether the new value shall satisfy the condition.
    near_share
        Probability of a value within 30 % of the threshold instead of an observed one.
    whole
        Whether the new value must be a whole number.
    rng
        Source of the random choices.

    Returns
    -------
    float or None
        None if no value was found.
    """
    if operator == "=" and satisfying:
        return from_canonical(threshold, unit)
    limit = from_canonical(threshold, unit)
    for _ in range(12):
        if rng.random() < near_share:
            factor = 1 + rng.choice((-1, 1)) * rng.uniform(0.01, 0.3)
            value = float(f"{limit * factor:.3g}")
        else:
            value = float(f"{from_canonical(rng.choice(observed), unit):.5g}")
        if whole:
            value = float(round(value))
        if (value > 0 or limit <= 0) and holds(operator, threshold, to_canonical(value, unit)) == satisfying:
            return value
    return None


def number_like(value: float, surface: str, rng: random.Random) -> str:
    """Write a value, mostly in the style of the number it replaces ("1.2 mln" asks for "3.4 mln")."""
    forms = _number_forms(value)
    letters = "".join(character for character in surface if character.isalpha())
    alike = [form for form in forms if "".join(c for c in form if c.isalpha()) == letters]
    if alike and rng.random() < 0.7:
        return rng.choice(alike)
    return rng.choice(forms)


def replace_values(
    text: str, quantities: Sequence[Quantity], new: Mapping[int, float], rng: random.Random
) -> tuple[str, list[dict[str, Any]]] | None:
    """Rewrite values in a sentence, and check the result by reading it again.

    Parameters
    ----------
    text
        The sentence.
    quantities
        Its quantities, as `extract_quantities` returns them.
    new
        Position of a quantity to its new value, in its own unit.
    rng
        Source of the random choices.

    Returns
    -------
    (str, list of dict) or None
        New sentence and its quantities; None if it does not read back as meant.
    """
    expected = [(new.get(n, quantity.value), quantity.unit) for n, quantity in enumerate(quantities)]
    edits = [
        (quantities[n].value_span, number_like(value, text[slice(*quantities[n].value_span)], rng))
        for n, value in new.items()
    ]
    return _edited(text, edits, expected)


def replace_unit(
    text: str, quantities: Sequence[Quantity], positions: Sequence[int], rng: random.Random, *, same_unit: bool
) -> tuple[str, list[dict[str, Any]]] | None:
    """Rewrite the unit of quantities in a sentence, and check the result by reading it again.

    Parameters
    ----------
    text
        The sentence.
    quantities
        Its quantities.
    positions
        Quantities to rewrite.
    rng
        Source of the random choices.
    same_unit
        True writes the same unit in another form, False one that stands in such places but cannot be compared.

    Returns
    -------
    (str, list of dict) or None
        New sentence and its quantities; None if there is no other form or the result does not read back as meant.
    """
    expected = [(quantity.value, quantity.unit) for quantity in quantities]
    edits: list[tuple[tuple[int, int], str]] = []
    substitutes: dict[str, str] = {}
    for n in positions:
        quantity = quantities[n]
        if quantity.unit is None or quantity.unit_span is None:
            return None
        unit = quantity.unit
        if not same_unit:
            if unit not in substitutes:
                others = incompatible_units(unit)
                if not others:
                    return None
                substitutes[unit] = rng.choice(others)
            unit = substitutes[unit]
        before = quantity.unit_span[0] < quantity.value_span[0]
        written = text[slice(*quantity.unit_span)]
        forms = [form for form in (prefix_forms(unit) if before else surface_forms(unit)) if form.strip() != written]
        if not forms:
            return None
        form = rng.choice(forms)
        if before:
            form = form.rstrip() if text[quantity.unit_span[1]] == " " else form
        edits.append((quantity.unit_span, form))
        expected[n] = (quantity.value, unit)
    return _edited(text, edits, expected)


def _edited(
    text: str, edits: list[tuple[tuple[int, int], str]], expected: Sequence[tuple[float, str | None]]
) -> tuple[str, list[dict[str, Any]]] | None:
    for (start, end), replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    rows = quantity_rows(text)
    if len(rows) != len(expected):
        return None
    for row, (value, unit) in zip(rows, expected, strict=True):
        if row["unit"] != unit or not math.isclose(row["value"], value, rel_tol=1e-9):
            return None
    return text, rows


def permute_values(
    text: str,
    unit: str,
    near: Sequence[int],
    observed: Sequence[float],
    operator: str,
    threshold: float,
    *,
    satisfying: bool,
    near_share: float,
    rng: random.Random,
) -> tuple[str, list[dict[str, Any]]] | None:
    """Rewrite a sentence so that it satisfies, or violates, a condition.

    To satisfy, one quantity near the concept gets a satisfying value; to violate, every compatible quantity of the
    sentence that satisfies gets a violating one (and one near the concept changes in any case).

    Parameters
    ----------
    text
        The sentence.
    unit
        Canonical unit of the pair.
    near
        Positions of the compatible quantities near the concept.
    observed
        Canonical values that the corpus gives for the pair.
    operator, threshold
        The condition; the threshold is canonical.
    satisfying
        Which of the two is wanted.
    near_share
        Share of values close to the threshold.
    rng
        Source of the random choices.

    Returns
    -------
    (str, list of dict) or None
        New sentence and its quantities; None if it could not be written or does not read back as meant.
    """
    quantities = extract_quantities(text)
    chosen = rng.choice(list(near))
    if satisfying:
        targets = [chosen]
    else:
        targets = [
            n
            for n, row in enumerate(quantity_rows(text))
            if row["canonical_unit"] == unit and holds(operator, threshold, row["canonical_value"])
        ] or [chosen]
    new: dict[int, float] = {}
    for n in targets:
        quantity = quantities[n]
        if quantity.unit is None:
            return None
        value = draw_value(
            observed,
            operator,
            threshold,
            quantity.unit,
            satisfying=satisfying,
            near_share=near_share,
            whole=float(quantity.value).is_integer() and abs(quantity.value) < 1e6,
            rng=rng,
        )
        if value is None or value == quantity.value:
            return None
        new[n] = value
    result = replace_values(text, quantities, new, rng)
    if result is None:
        return None
    satisfied = any(
        row["canonical_unit"] == unit and holds(operator, threshold, row["canonical_value"])
        for n, row in enumerate(result[1])
        if n in near or not satisfying
    )
    return result if satisfied == satisfying else None
