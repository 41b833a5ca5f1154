import numpy as np
import pytest
from datasets import Dataset

from numcolbert.corpus.schema import BENCHMARK_CORPUS, BENCHMARK_QRELS, BENCHMARK_QUERIES

COMPANIES = ("Acme", "Borealis", "Cobalt", "Dorado", "Elm", "Fjord")
VALUES = {"research spending": ("million dollars", [5, 40, 120, 700, 900, 1400]), "staff": ("people", [3, 20, 80, 250])}
ASKED = {"research spending": [(">", 500), ("<", 100), ("=", 120)], "staff": [(">", 60), ("<", 30), ("=", 80)]}


def satisfies(value, operator, bound):
    return {">": value > bound, "<": value < bound, "=": value == bound}[operator]


def tables():
    """Two concept–unit pairs, the second unseen; violating documents of the pair are judged 0."""
    corpus, queries, qrels = [], [], []
    for concept, (unit, values) in VALUES.items():
        for number, value in enumerate(values):
            text = f"{COMPANIES[number]} reported {concept} of {value} {unit} in 2019."
            document = {"id": f"{concept[0]}{number}", "text": text, "quantities": []}
            corpus.append(document)
        for operator, bound in ASKED[concept]:
            words = {">": "more than", "<": "less than", "=": "exactly"}[operator]
            query_id = f"{concept[0]}{operator}"
            queries.append(
                {
                    "id": query_id,
                    "text": f"companies with {words} {bound} {unit} of {concept}",
                    "condition": {
                        "operator": operator,
                        "value": float(bound),
                        "upper": None,
                        "unit": unit,
                        "canonical_value": float(bound),
                        "canonical_upper": None,
                        "canonical_unit": unit,
                        "start": 0,
                        "end": 1,
                    },
                    "concept": concept,
                    "pair": f"{concept}|{unit}",
                    "seen": concept == "research spending",
                }
            )
            qrels += [
                {
                    "query_id": query_id,
                    "document_id": f"{concept[0]}{number}",
                    "relevance": int(satisfies(value, operator, bound)),
                }
                for number, value in enumerate(values)
            ]
    return corpus, queries, qrels


def write_benchmark_folder(folder, corpus, queries, qrels):
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows, features in (
        ("corpus", corpus, BENCHMARK_CORPUS),
        ("queries", queries, BENCHMARK_QUERIES),
        ("qrels", qrels, BENCHMARK_QRELS),
    ):
        columns = {column: [row[column] for row in rows] for column in features}
        Dataset.from_dict(columns, features=features).to_parquet(str(folder / f"{name}.parquet"))
    (folder / "benchmark.json").write_text('{"name": "companies"}', encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def benchmark_folder(tmp_path_factory):
    return write_benchmark_folder(tmp_path_factory.mktemp("benchmark") / "companies", *tables())


@pytest.fixture
def benchmark(benchmark_folder):
    from numcolbert.corpus.benchmark import load_benchmark

    return load_benchmark(benchmark_folder)


@pytest.fixture(scope="session")
def model(base_model):
    from transformers import set_seed

    from numcolbert import ColBERT

    set_seed(1)
    return ColBERT(base_model, device="cpu")


@pytest.fixture(scope="session")
def model_folder(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "minilm"
    model.save_pretrained(str(folder))
    return folder


@pytest.fixture
def rng():
    return np.random.default_rng(7)
