"""A corpus of our own in three domains, generated from a seed: finance, medicine and products.

Every sentence states one fact, a concept and its quantity, among numbers that are something else: years, model
names, counts, section numbers, and often a second quantity of the same unit that belongs to another concept. Names
are invented; no value describes a real company, drug or product.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from datasets import Dataset, Features, Value

from numcolbert.corpus.builtin.finance import FINANCE
from numcolbert.corpus.builtin.generator import Record, generate_domain
from numcolbert.corpus.builtin.medicine import MEDICINE
from numcolbert.corpus.builtin.products import PRODUCTS

__all__ = ["DOMAINS", "Record", "generate_corpus", "generate_records"]

DOMAINS = (FINANCE, MEDICINE, PRODUCTS)


def generate_records(seed: int = 0, sentences_per_domain: int = 3000) -> Iterator[Record]:
    """Generate the sentences together with their main facts.

    Parameters
    ----------
    seed
        Seed; the same seed gives the same sentences on any Python version.
    sentences_per_domain
        Number of sentences in each domain.

    Yields
    ------
    Record
        Text, domain, concept, value, unit and where they stand; domain after domain.

    Examples
    --------
    >>> records = list(generate_records(seed=1, sentences_per_domain=5))
    >>> len(records)
    15
    >>> records == list(generate_records(seed=1, sentences_per_domain=5))
    True
    """
    for domain in DOMAINS:
        yield from generate_domain(domain, random.Random(f"{domain.name}-{seed}"), sentences_per_domain)


def generate_corpus(seed: int = 0, sentences_per_domain: int = 3000) -> Dataset:
    """Generate the built-in corpus.

    Parameters
    ----------
    seed
        Seed; the same seed gives the same corpus on any Python version.
    sentences_per_domain
        Number of sentences in each of the three domains.

    Returns
    -------
    datasets.Dataset
        Columns `id` ("finance-0"), `text` and `domain`.

    Examples
    --------
    >>> corpus = generate_corpus(seed=0, sentences_per_domain=4)
    >>> corpus.column_names, len(corpus)
    (['id', 'text', 'domain'], 12)
    >>> corpus["id"][:2]
    ['finance-0', 'finance-1']
    """
    records = list(generate_records(seed, sentences_per_domain))
    columns = {
        "id": [f"{record.domain}-{number % sentences_per_domain}" for number, record in enumerate(records)],
        "text": [record.text for record in records],
        "domain": [record.domain for record in records],
    }
    features = Features({"id": Value("string"), "text": Value("string"), "domain": Value("string")})
    return Dataset.from_dict(columns, features=features)
