"""Pairs are the noun phrases that numbers are said of."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from numcolbert.corpus.annotation import quantity_rows
from numcolbert.corpus.builtin import generate_records
from numcolbert.corpus.pairs import ConceptFinder, Pair, index_pairs, mine_pairs, near_values, tokenize

ROOT = Path(__file__).parents[2]


def test_obvious_pairs_are_found(corpus, pairs):
    assert {(pair.concept, pair.unit) for pair in pairs} == {
        ("net profit", "USD"),
        ("wheat exports", "gram"),
        ("interest rate", "percent"),
        ("copper output", "gram"),
    }
    for pair in pairs:
        mentions = [text for text in corpus["text"] if pair.concept in text.lower()]
        assert pair.support == len(mentions)
        assert pair.variants[0] == pair.concept


def test_dates_names_and_bare_numbers_make_no_pair(pairs):
    texts = [
        f"On {day} May 19{year}, Acme Corp opened flat {day} of building {year}, and the season lasted {year} days."
        for day in range(10, 22)
        for year in (81, 84, 87)
    ]
    found = mine_pairs([{"text": text, "quantities": quantity_rows(text)} for text in texts])
    concepts = " ".join(pair.concept for pair in found)
    assert not {"may", "acme", "corp", "flat", "building"} & set(concepts.lower().split()), found


def test_too_few_sentences_make_no_pair(corpus, pairs):
    most = max(pair.support for pair in pairs)
    assert mine_pairs(corpus, min_support=most + 1) == []
    assert mine_pairs([]) == []
    assert mine_pairs([{"text": "Nothing is said.", "quantities": []}]) == []


def test_rows_and_data_sets_give_the_same_pairs(corpus, pairs):
    assert mine_pairs(corpus.to_list()) == pairs


def test_the_order_of_pairs_does_not_hang_on_the_hash_seed():
    # Python hashes text anew in every process. A package without its __init__ spares the child to import PyTorch.
    code = (
        "import json, sys, types\n"
        "package = types.ModuleType('numcolbert'); package.__path__ = ['numcolbert']\n"
        "sys.modules['numcolbert'] = package\n"
        "from numcolbert.corpus.pairs import mine_pairs\n"
        "print(mine_pairs(json.load(sys.stdin), min_support=3))"
    )
    texts = [record.text for record in generate_records(sentences_per_domain=80)]
    rows = [{"text": text, "quantities": quantity_rows(text)} for text in texts]
    here = mine_pairs(rows, min_support=3)
    child = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        input=json.dumps(rows),
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert child.stdout.strip() == str(here)
    assert len(here) > 3


def test_finder_takes_singular_plural_case_and_nested_concepts():
    finder = ConceptFinder(["net profit", "profit", "oil output"])
    tokens = tokenize("The oil outputs fell; Net Profits, and a profit, rose.")
    found = [(concept, " ".join(token.text for token in tokens[a:b])) for concept, a, b in finder.find(tokens)]
    assert found == [
        ("oil output", "oil outputs"),
        ("net profit", "Net Profits"),
        ("profit", "Profits"),
        ("profit", "profit"),
    ]
    assert finder.find(tokenize("net")) == []
    assert finder.find([]) == []


def test_tokens_stand_where_they_say():
    text = "R&D rose 1,200.5 pct, e.g. in the U.S. — so."
    assert all(text[token.start : token.end] == token.text for token in tokenize(text))


def near(text: str, *pairs: tuple[str, str], window: int = 10) -> dict[tuple[str, str], list[float]]:
    finder = ConceptFinder.of_pairs(Pair(concept, unit) for concept, unit in pairs)
    quantities = quantity_rows(text)
    found = near_values(text, quantities, finder, window)
    return {key: [quantities[n]["value"] for n in positions] for key, positions in found.items()}


PROFIT, REVENUE = ("net profit", "USD"), ("revenue", "USD")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Revenue of $5 million and net profit of $1 million.", {REVENUE: [5e6], PROFIT: [1e6]}),
        ("Net profit was $1 million and revenue $5 million.", {REVENUE: [5e6], PROFIT: [1e6]}),
        ("Net profit rose 5 percent.", {}),
        ("Net profit rose from $1 million to $2 million.", {PROFIT: [1e6, 2e6]}),
        ("Nobody spoke of $5 million.", {}),
        ("Net profit is not told.", {}),
    ],
)
def test_quantities_belong_to_the_concept_beside_them(text, expected):
    assert near(text, PROFIT, REVENUE) == expected


def test_window_counts_words_between():
    text = "Net profit rose again in spite of $5 million."
    assert near(text, PROFIT, window=5) == {PROFIT: [5e6]}
    assert near(text, PROFIT, window=4) == {}


def test_index_holds_the_sentences_of_each_pair(corpus, pairs):
    index = index_pairs(corpus, pairs)
    assert set(index) == {pair.key for pair in pairs}
    for pair in pairs:
        mentions = index[pair.key]
        expected = [n for n, text in enumerate(corpus["text"]) if pair.concept in text.lower()]
        assert list(mentions.sentences) == expected
        for number, values, written in zip(mentions.sentences, mentions.values, mentions.written, strict=True):
            quantities = corpus[number]["quantities"]
            assert values == tuple(row["canonical_value"] for row in quantities)
            assert written == tuple((row["value"], row["unit"]) for row in quantities)
            assert mentions.usual_unit(values[0]) == written[0][1]
