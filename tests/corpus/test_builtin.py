"""The built-in corpus: the same for all, varied, and with more numbers than the one that counts."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections import Counter, defaultdict
from difflib import SequenceMatcher

import pytest

from numcolbert.corpus.builtin import DOMAINS, Record, generate_corpus, generate_records
from numcolbert.quantities import canonicalize, extract_quantities

DIGEST = "e65c976948b42b22909484183f57edc6631df08a6dee79ee4abb79c5a9af20a7"
"""SHA-256 of the default corpus; a change of any sentence must be a decision."""


@pytest.fixture(scope="module")
def records() -> list[Record]:
    return list(generate_records())


def test_corpus_is_pinned():
    corpus = generate_corpus()
    lines = "\n".join(f"{row['id']}\t{row['domain']}\t{row['text']}" for row in corpus)
    assert hashlib.sha256(lines.encode()).hexdigest() == DIGEST


def test_corpus_has_the_records_texts(records):
    corpus = generate_corpus()
    assert corpus.column_names == ["id", "text", "domain"]
    assert corpus["text"][:] == [record.text for record in records]
    assert len(set(corpus["id"])) == 9000
    assert Counter(corpus["domain"]) == {"finance": 3000, "medicine": 3000, "products": 3000}


def test_a_smaller_corpus_is_the_beginning_of_a_larger_one(records):
    few = list(generate_records(sentences_per_domain=50))
    assert few == [*records[:50], *records[3000:3050], *records[6000:6050]]


def test_another_seed_gives_other_sentences(records):
    others = {record.text for record in generate_records(seed=1)}
    assert len(others & {record.text for record in records}) < 100


def test_no_sentence_occurs_twice(records):
    assert len({record.text for record in records}) == len(records)


def test_sentence_length(records):
    lengths = [len(record.text.split()) for record in records]
    assert min(lengths) >= 8
    assert max(lengths) <= 40


def test_texts_are_clean(records):
    for record in records:
        assert not re.search(r"[{}\[\]]|\s\s|\ba [aeio]\w+ of\b|\b1 \w+s\b of|s's\b", record.text), record.text
        assert record.text[0] in '"0123456789$€£' or record.text[0].isupper(), record.text
        assert record.text[-1] in ".?", record.text


@pytest.mark.parametrize("domain", DOMAINS, ids=lambda domain: domain.name)
def test_every_pattern_is_used(domain, records):
    used = Counter(record.pattern for record in records if record.domain == domain.name)
    assert len(domain.patterns) >= 60
    assert set(used) == set(range(len(domain.patterns)))
    assert max(used.values()) < 0.03 * 3000


@pytest.mark.parametrize("domain", DOMAINS, ids=lambda domain: domain.name)
def test_patterns_are_no_paraphrases(domain):
    words = [re.sub(r"\{\w+\}", "", pattern.text).split() for pattern in domain.patterns]
    for first, second in itertools.combinations(words, 2):
        assert SequenceMatcher(None, first, second, autojunk=False).ratio() < 0.75, (first, second)


def test_every_sentence_has_a_distractor_number(records):
    for record in records:
        rest = record.text[: record.start] + record.text[record.end :]
        assert re.search(r"\d", rest), record.text


@pytest.mark.parametrize("domain", DOMAINS, ids=lambda domain: domain.name)
def test_many_sentences_hold_a_rival_quantity(domain, records):
    rivals = [r for r in records if r.domain == domain.name and "{oq}" in domain.patterns[r.pattern].text]
    assert len(rivals) > 0.15 * 3000


def test_each_concept_and_unit_recurs_with_many_values(records):
    values = defaultdict(set)
    for record in records:
        values[record.domain, record.concept, record.unit].add(record.value)
    assert len(values) >= 60
    assert {key: len(seen) for key, seen in values.items() if len(seen) < 40} == {}


def test_concepts_of_one_unit_overlap_in_value(records):
    values = defaultdict(lambda: defaultdict(list))
    for record in records:
        values[record.domain, record.unit][record.concept].append(record.value)
    inside, outside = [], []
    for key, concepts in values.items():
        for name, seen in concepts.items():
            median = sorted(seen)[len(seen) // 2]
            rivals = [min(theirs) <= median <= max(theirs) for other, theirs in concepts.items() if other != name]
            if rivals:
                (inside if any(rivals) else outside).append((*key, name))
    # Some are apart by nature: a reduction of blood pressure is far below any blood pressure.
    assert len(outside) < 0.2 * len(inside), outside


def test_concept_stands_close_to_its_quantity(records):
    for record in records:
        text = record.text.lower()
        noun = record.noun.lower()
        gaps = [
            len(text[match.end() : record.start].split())
            if match.end() <= record.start
            else len(text[record.end : match.start()].split())
            for match in re.finditer(re.escape(noun), text)
        ]
        assert gaps, record.text
        assert min(gaps) <= 6, record.text


def test_main_quantity_is_read_back(records):
    for record in records:
        expected_value, expected_unit = canonicalize(record.value, record.unit)
        read = [
            quantity.canonical()
            for quantity in extract_quantities(record.text)
            if quantity.span == (record.start, record.end)
        ]
        assert len(read) == 1, (record, extract_quantities(record.text))
        assert read[0] == (pytest.approx(expected_value, rel=1e-9), expected_unit), record
