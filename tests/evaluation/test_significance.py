import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate

from numcolbert.evaluation.significance import compare


def loop_t_test(first, second):
    """Student's t of paired differences, and its two-sided p by integrating the density."""
    differences = [b - a for a, b in zip(first, second, strict=True)]
    n = len(differences)
    mean = sum(differences) / n
    variance = sum((d - mean) ** 2 for d in differences) / (n - 1)
    t = mean / math.sqrt(variance / n)
    degrees = n - 1
    constant = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)) / math.sqrt(degrees * math.pi)
    tail, _ = integrate.quad(lambda x: constant * (1 + x * x / degrees) ** (-(degrees + 1) / 2), abs(t), math.inf)
    return mean, t, 2 * tail


def loop_holm(p_values):
    """The k-th smallest of m p-values is multiplied by m - k + 1 and never falls below the one before it."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    corrected, floor = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        floor = max(floor, min(1.0, (len(p_values) - rank) * p_values[i]))
        corrected[i] = floor
    return corrected


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), models=st.integers(2, 5), queries=st.integers(3, 40), all_pairs=st.booleans())
def test_comparisons_equal_loops_over_the_formulas(seed, models, queries, all_pairs):
    rng = np.random.default_rng(seed)
    values = {f"m{number}": list(rng.uniform(size=queries) + 0.1 * number) for number in range(models)}
    pairs = list(itertools.combinations(values, 2)) if all_pairs else [("m0", name) for name in list(values)[1:]]
    comparisons = compare(values, reference=None if all_pairs else "m0")
    assert [(c.reference, c.model) for c in comparisons] == pairs
    expected = [loop_t_test(values[first], values[second]) for first, second in pairs]
    for comparison, (mean, t, p), holm in zip(comparisons, expected, loop_holm([p for *_, p in expected]), strict=True):
        assert comparison.difference == pytest.approx(mean)
        assert comparison.t == pytest.approx(t)
        assert comparison.p == pytest.approx(p, rel=1e-4, abs=1e-8)
        assert comparison.p_holm == pytest.approx(holm, rel=1e-4, abs=1e-8)
        assert comparison.queries == queries


def test_models_that_differ_nowhere_or_everywhere_alike():
    same, shifted = compare({"a": [0.25, 0.5], "b": [0.25, 0.5], "c": [0.5, 0.75]}, reference="a")
    assert (same.t, same.p, same.p_holm) == (0.0, 1.0, 1.0)
    assert (shifted.t, shifted.p, shifted.difference) == (math.inf, 0.0, 0.25)


@pytest.mark.parametrize(
    ("values", "reference", "message"),
    [
        ({"a": [1.0, 2.0], "b": [1.0]}, "a", r"Models have \[1, 2\] queries"),
        ({"a": [1.0], "b": [1.0]}, "a", "two or more"),
        ({"a": [1.0, 2.0], "b": [1.0, math.nan]}, "a", "'b' has a value that is not finite"),
        ({"a": [1.0, 2.0]}, "z", "'z' is not among the models a"),
    ],
)
def test_bad_values_are_refused(values, reference, message):
    with pytest.raises(ValueError, match=message):
        compare(values, reference=reference)


def test_a_single_model_has_no_comparison():
    assert compare({"a": [1.0, 2.0]}, reference="a") == []
