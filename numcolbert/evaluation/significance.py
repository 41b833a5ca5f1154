"""Whether a difference between two models is more than chance: paired t-tests with Holm's correction."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True)
class Comparison:
    """Paired t-test of two models on one metric.

    Parameters
    ----------
    model, reference
        The two models.
    difference
        Mean of ``model - reference`` over the queries.
    t
        Student's t statistic of the paired differences; infinite where all queries differ by the same amount.
    p
        Two-sided p-value.
    p_holm
        p-value after Holm's correction over all comparisons made together.
    queries
        Number of paired queries.
    """

    model: str
    reference: str
    difference: float
    t: float
    p: float
    p_holm: float
    queries: int


def compare(values: Mapping[str, Sequence[float] | np.ndarray], reference: str | None = None) -> list[Comparison]:
    """Compare models by the paired t-test on per-query values of one metric, Holm-corrected.

    Parameters
    ----------
    values
        Model name to its values, the same queries in the same order for all.
    reference
        Model that each other model is compared with. None compares every pair of models.

    Returns
    -------
    list[Comparison]
        One for each comparison, in the order of ``values``. Models with equal values everywhere have p = 1.

    Raises
    ------
    ValueError
        If the models have different numbers of queries, fewer than two, a value that is not finite, or the reference
        is not among them.

    Examples
    --------
    >>> values = {"plain": [0.1, 0.4, 0.3, 0.2], "gated": [0.3, 0.5, 0.7, 0.3]}
    >>> [comparison] = compare(values, reference="plain")
    >>> round(comparison.difference, 3), round(comparison.t, 3), round(comparison.p_holm, 3)
    (0.2, 2.828, 0.066)

    """
    from scipy import stats  # noqa: PLC0415  (slow imports, needed only here)
    from statsmodels.stats.multitest import multipletests  # noqa: PLC0415

    arrays = {name: np.asarray(scores, dtype=np.float64) for name, scores in values.items()}
    if reference is not None and reference not in arrays:
        raise ValueError(f"Reference {reference!r} is not among the models {', '.join(arrays)}.")
    counts = {len(scores) for scores in arrays.values()}
    if len(counts) > 1 or min(counts, default=0) < 2:
        raise ValueError(f"Models have {sorted(counts)} queries; a paired test needs the same two or more for all.")
    for name, scores in arrays.items():
        if not np.isfinite(scores).all():
            raise ValueError(f"Model {name!r} has a value that is not finite; leave such queries out for all models.")
    pairs = (
        list(itertools.combinations(arrays, 2))
        if reference is None
        else [(reference, name) for name in arrays if name != reference]
    )
    if not pairs:
        return []
    tests: list[tuple[float, float]] = []
    for first, second in pairs:
        differences = arrays[second] - arrays[first]
        if np.ptp(differences) == 0:  # no variance: the statistic is 0/0 or infinite
            shift = float(differences[0])
            tests.append((math.copysign(math.inf, shift), 0.0) if shift else (0.0, 1.0))
        else:
            test = stats.ttest_1samp(differences, 0.0)
            tests.append((float(test.statistic), float(test.pvalue)))
    corrected = multipletests([p for _, p in tests], method="holm")[1]
    return [
        Comparison(
            model=second,
            reference=first,
            difference=float((arrays[second] - arrays[first]).mean()),
            t=t,
            p=p,
            p_holm=float(p_holm),
            queries=len(arrays[first]),
        )
        for (first, second), (t, p), p_holm in zip(pairs, tests, corrected, strict=True)
    ]
