"""Accuracy on the sentences labelled by hand."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest

from tests.quantities.labels import PROJECT, SETS, data_folder, load_labelled


def _benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("quantities_benchmark", PROJECT / "benchmarks" / "quantities.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("which", SETS)
@pytest.mark.parametrize(("corpus", "least"), [("reuters", 0.97), ("rct", 0.95)])
def test_accuracy_on_hand_labels(corpus: str, least: float, which: str) -> None:
    sentences = load_labelled(corpus, which)
    if sentences is None:
        pytest.skip(f"{data_folder() / corpus} is absent: set NUMCOLBERT_DATA")
    benchmark = _benchmark()
    figures = benchmark.score(sentences, [benchmark.ours(sentence.text) for sentence in sentences])
    assert figures["exact"] >= least
    assert figures["precision"] >= least
