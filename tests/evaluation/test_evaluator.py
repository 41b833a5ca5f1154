import csv
import math

import numpy as np
import pytest
from datasets import Dataset

from numcolbert.evaluation.evaluator import Evaluator, evaluate_model, evaluate_rankings, fingerprint, judgements
from tests.evaluation.references import loop_maxsim, loop_metrics, loop_ordered_pairs


def test_evaluation_equals_loops_over_the_embeddings(model, benchmark):
    evaluation = evaluate_model(model, benchmark, batch_size=4)
    documents = dict(
        zip(benchmark.corpus["id"], model.encode(benchmark.corpus["text"][:], is_query=False), strict=True)
    )
    queries = model.encode(benchmark.queries["text"][:], is_query=True)
    assert [result.query_id for result in evaluation.results] == benchmark.queries["id"][:]
    for result, query, row in zip(evaluation.results, queries, benchmark.queries, strict=True):
        scores = {document: loop_maxsim(query, tokens) for document, tokens in documents.items()}
        order = sorted(scores, key=scores.get, reverse=True)
        assert [document for document, _ in result.ranking] == order
        assert [score for _, score in result.ranking] == pytest.approx([scores[d] for d in order], rel=1e-5)
        judged = benchmark.qrels[result.query_id]
        expected = loop_metrics(judged, order)
        expected["ordered_pairs"] = loop_ordered_pairs(
            [scores[d] for d, relevance in judged.items() if relevance], [scores[d] for d, r in judged.items() if not r]
        )
        assert result.metrics == pytest.approx(expected)
        assert (result.text, result.operator) == (row["text"], row["condition"]["operator"])
        assert (result.pair, result.seen) == (row["pair"], row["seen"])
    means = evaluation.averages
    assert {group: row["queries"] for group, row in means.items()} == {
        "overall": 6,
        "=": 2,
        ">": 2,
        "<": 2,
        "inequalities": 4,
        "seen": 3,
        "unseen": 3,
    }
    assert means["overall"]["ndcg@10"] == pytest.approx(np.mean([r.metrics["ndcg@10"] for r in evaluation.results]))
    assert set(evaluation.seconds) == {"encode_documents", "encode_queries", "search"}


def test_gated_query_norms_reach_the_scores(model, benchmark, monkeypatch):
    plain = evaluate_model(model, benchmark)
    encode = type(model).encode

    def lifted(self, sentences, **options):
        embeddings = encode(self, sentences, **options)
        return [7 * tokens for tokens in embeddings] if options["is_query"] else embeddings

    monkeypatch.setattr(type(model), "encode", lifted)
    for before, after in zip(plain.results, evaluate_model(model, benchmark).results, strict=True):
        assert [document for document, _ in after.ranking] == [document for document, _ in before.ranking]
        assert [score for _, score in after.ranking] == pytest.approx([7 * s for _, s in before.ranking], rel=1e-5)


def test_plaid_ranks_these_documents_as_exact_search(model, benchmark):
    exact, plaid = evaluate_model(model, benchmark), evaluate_model(model, benchmark, index="plaid")
    for one, other in zip(exact.results, plaid.results, strict=True):
        assert other.metrics["ordered_pairs"] == one.metrics["ordered_pairs"]
        assert {document for document, _ in other.ranking[:3]} & {document for document, _ in one.ranking[:3]}


def test_rankings_of_another_retriever(benchmark):
    rankings = {query: [(d, 1.0) for d, r in judged.items() if r] for query, judged in benchmark.qrels.items()}
    results = evaluate_rankings(benchmark, rankings)
    assert all(result.metrics["ndcg@10"] == pytest.approx(1.0) for result in results)
    assert all("ordered_pairs" not in result.metrics for result in results)


def test_evaluator_names_metrics_and_appends_to_csv(model, benchmark, tmp_path):
    evaluator = Evaluator(benchmark, name="dev", batch_size=4)
    metrics = evaluator(model, str(tmp_path / "eval"), epoch=1, steps=5)
    evaluator(model, str(tmp_path / "eval"), epoch=2, steps=10)
    means = evaluate_model(model, benchmark).averages
    assert evaluator.primary_metric == "dev_ndcg@10"
    assert metrics["dev_ndcg@10"] == pytest.approx(means["overall"]["ndcg@10"])
    assert metrics["dev_greater_ordered_pairs"] == pytest.approx(means[">"]["ordered_pairs"])
    assert metrics["dev_unseen_mrr@10"] == pytest.approx(means["unseen"]["mrr@10"])
    with (tmp_path / "eval" / "evaluation_dev_results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["steps"] for row in rows] == ["5", "10"]
    assert float(rows[1]["ndcg@10"]) == pytest.approx(metrics["dev_ndcg@10"])


def test_evaluator_serves_the_trainer(tiny_model, benchmark, tmp_path):
    from pylate.losses import Contrastive
    from pylate.utils import ColBERTCollator
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments

    texts = benchmark.corpus["text"][:]
    trainer = SentenceTransformerTrainer(
        model=tiny_model,
        args=SentenceTransformerTrainingArguments(
            output_dir=str(tmp_path),
            max_steps=2,
            per_device_train_batch_size=2,
            eval_strategy="steps",
            eval_steps=1,
            save_steps=1,
            load_best_model_at_end=True,
            metric_for_best_model="eval_dev_ndcg@10",
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
        ),
        train_dataset=Dataset.from_dict({"query": texts[:4], "positive": texts[:4], "negative": texts[4:8]}),
        loss=Contrastive(tiny_model),
        data_collator=ColBERTCollator(tiny_model.tokenize),
        evaluator=Evaluator(benchmark, name="dev"),
    )
    trainer.train()
    logged = [entry["eval_dev_ndcg@10"] for entry in trainer.state.log_history if "eval_dev_ndcg@10" in entry]
    assert len(logged) == 2
    assert trainer.state.best_metric == max(logged)
    assert all(0 <= value <= 1 and math.isfinite(value) for value in logged)


def test_fingerprint_follows_the_content(benchmark):
    before = fingerprint(benchmark)
    assert fingerprint(benchmark) == before
    query = benchmark.queries["id"][0]
    document = next(iter(benchmark.qrels[query]))
    benchmark.qrels[query][document] = 1 - benchmark.qrels[query][document]
    assert fingerprint(benchmark) != before


def test_faulty_benchmarks_are_refused(benchmark):
    query = benchmark.queries["id"][0]
    judged = benchmark.qrels[query]
    benchmark.qrels[query] = dict.fromkeys(judged, 0)
    with pytest.raises(ValueError, match=f"'{query}' has no relevant document"):
        Evaluator(benchmark)
    benchmark.qrels[query] = {**judged, "nowhere": 1}
    with pytest.raises(ValueError, match="judges 'nowhere'"):
        judgements(benchmark)
    benchmark.qrels[query] = judged
    benchmark.corpus = Dataset.from_list([*benchmark.corpus, benchmark.corpus[0]])
    with pytest.raises(ValueError, match=r"An id occurs twice in the benchmark's corpus\.parquet"):
        judgements(benchmark)
    with pytest.raises(ValueError, match="Unknown index 'faiss'"):
        Evaluator(benchmark, index="faiss")
