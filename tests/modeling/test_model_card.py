"""The card says what is known, leaves out what is not, and reads well where the Hub shows it."""

import re
from dataclasses import asdict, replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from huggingface_hub import ModelCard
from huggingface_hub.repocard_data import model_index_to_eval_results
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from numcolbert import ColBERT
from numcolbert.modeling.explanation import Explanation, TokenExplanation
from numcolbert.modeling.model_card import (
    PLACEHOLDER,
    BenchmarkResult,
    CardData,
    Emissions,
    LossComponent,
    SignificanceTest,
    TrainingData,
)
from tests.hub.server import card_errors

REPORT = {
    "benchmark": {"name": "FinQuant (test)", "queries": 300, "documents": 8000},
    "models": [
        {
            "label": label,
            "metrics": {
                group: {"queries": count, "ndcg@10": score, "mrr@10": score, "p@10": score, "r@100": score,
                        "ordered_pairs": None if group == "=" else score}
                for group, count in (("overall", 300), ("=", 100), (">", 100), ("<", 100))
            },
        }
        for label, score in (("colbert", 0.512345), ("numcolbert", 0.623456), ("bm25", 0.1))
    ],
    "significance": {
        "ndcg@10": [
            {"model": "numcolbert", "reference": "colbert", "difference": 0.111, "p_holm": 0.00001, "queries": 300},
            {"model": "bm25", "reference": "colbert", "difference": -0.4, "p_holm": 0.00001, "queries": 300},
        ],
        "mrr@10": [
            {"model": "colbert", "reference": "numcolbert", "difference": -0.05, "p_holm": 0.21, "queries": 300}
        ],
    },
}  # fmt: skip

EXPLANATION = Explanation(
    "over 5 kg",
    [
        TokenExplanation("[CLS]", 0.01, 1.0, "[CLS]", 0.9, 0.1),
        TokenExplanation("over", 0.9, 3.5, "6", 2.5, 0.3),
        TokenExplanation("|", 0.2, 1.0, "`", 0.1, 0.1),
        *[TokenExplanation("[MASK]", 0.1, 1.0, "kg", 0.5, 0.05)] * 4,
    ],
    document="It weighs 6 kg.",
    score=5.5,
)

FULL = CardData(
    model_name="NumColBERT FinQuant",
    base_model="colbert-ir/colbertv2.0",
    base_model_revision="c1e84128e85ef755c096a95bdb06b47793b13acf",
    language=["en"],
    license="cc-by-nc-4.0",
    training_data=[
        TrainingData("FinQuant", "16,000 triplets of financial news", "Research only, see its site.", True,
                     "org/finquant", "https://example.org/finquant"),
        TrainingData("MS MARCO", "half of every batch"),
    ],
    hyperparameters={"learning rate": 2e-5, "batch size": 256, "positive set": "unit", "bf16": True},
    losses=[LossComponent("retrieval", 1.0, 4.6, 1.2), LossComponent("detection", 0.05, 0.7, 0.01)],
    results=[BenchmarkResult.from_report(REPORT, "numcolbert", {"colbert": "ColBERT_ft", "numcolbert": "NumColBERT"})],
    emissions=Emissions(0.0123, 0.04, 0.61, "2 CPU cores", "France", "codecarbon"),
    explanation=EXPLANATION,
)  # fmt: skip

SECTIONS = {
    "training_data": "## Training data",
    "hyperparameters": "## Hyperparameters",
    "losses": "## Component losses",
    "results": "## Results",
    "emissions": "## Environmental cost",
}


class Reader(HTMLParser):
    """What a browser would make of the page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text, self.rows, self.codes, self.links, self.headings = "", [], [], [], []
        self.inside: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.inside.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        elif tag in ("h1", "h2", "h3"):
            self.headings.append("")
        elif tag == "pre":
            self.codes.append("")
        elif tag == "a":
            self.links.append(dict(attributes)["href"])

    def handle_endtag(self, tag: str) -> None:
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "pre" in self.inside:
            self.codes[-1] += data
            return
        self.text += data
        if "td" in self.inside or "th" in self.inside:
            self.rows[-1][-1] += data
        if {"h1", "h2", "h3"} & set(self.inside):
            self.headings[-1] += data


def read(card: str) -> Reader:
    body = card.split("---\n", 2)[2]
    return Reader(MarkdownIt("commonmark", {"html": True}).enable("table").render(body))


def test_metadata_is_what_the_hub_reads() -> None:
    data = ModelCard(FULL.render(gated=True)).data.to_dict()
    assert data["library_name"] == "PyLate"
    assert data["pipeline_tag"] == "sentence-similarity"
    assert data["base_model"] == "colbert-ir/colbertv2.0"
    assert data["datasets"] == ["org/finquant"]
    assert data["license"] == "cc-by-nc-4.0"
    assert {"ColBERT", "PyLate", "numcolbert"} <= set(data["tags"])
    assert data["co2_eq_emissions"] == {
        "emissions": 12.3, "source": "codecarbon", "training_type": "fine-tuning",
        "geographical_location": "France", "hardware_used": "2 CPU cores",
    }  # fmt: skip
    name, results = model_index_to_eval_results(data["model-index"])
    assert name == "NumColBERT FinQuant"
    assert {(result.dataset_name, result.metric_name): result.metric_value for result in results} == {
        ("FinQuant (test)", metric): 0.6235 for metric in ("nDCG@10", "MRR@10", "P@10", "R@100", "Ordered pairs")
    }
    assert card_errors(FULL.render(gated=True)) == []


def test_two_benchmarks_stay_apart_in_the_evaluation_box() -> None:
    other = replace(FULL.results[0], benchmark="MedQuant")
    data = ModelCard(replace(FULL, results=[FULL.results[0], other]).render(gated=True)).data
    assert {result.dataset_name for result in data.eval_results} == {"FinQuant (test)", "MedQuant"}


@pytest.mark.parametrize("key", SECTIONS)
def test_what_is_absent_is_left_out(key: str) -> None:
    empty = getattr(CardData(), key)
    card = replace(FULL, **{key: empty}).render(gated=True)
    for name, heading in SECTIONS.items():
        assert (heading in card) == (name != key)


def test_nothing_known_is_nothing_invented() -> None:
    card = CardData().render(gated=True)
    data = ModelCard(card).data.to_dict()
    assert set(data) == {"library_name", "pipeline_tag", "tags"}
    assert not any(heading in card for heading in SECTIONS.values())
    assert "None" not in card


def test_research_only_corpora_are_flagged() -> None:
    assert "**Research use only.** Part of the training data is licensed for research alone" in FULL.render(gated=True)
    free = [replace(data, research_only=False) for data in FULL.training_data]
    assert "Research use only" not in replace(FULL, training_data=free).render(gated=True)


def test_a_gate_that_finds_nothing_is_not_passed_over(tiny_model: ColBERT, tmp_path: Path) -> None:
    sentence = "The detector finds no number in this query"
    tiny_model.save_pretrained(str(tmp_path / "untrained"))
    assert sentence in (tmp_path / "untrained" / "README.md").read_text()
    assert sentence not in FULL.render(gated=True)


def test_a_plain_model_claims_no_gate() -> None:
    card = replace(FULL, explanation=None).render(gated=False)
    assert "without a numerical gate" in card
    page = read(replace(FULL, explanation=None, model_name=None).render(gated=False))
    assert page.headings[0] == "ColBERT"
    assert "ranked lower, not removed" not in page.text
    assert "nothing ranks a document lower because its value violates the condition" in " ".join(page.text.split())
    for claim in ("The gate", "trust_remote_code", "unit_norm", "- numeracy", "P(numerical)"):
        assert claim not in card


def test_refuses_values_the_hub_would_not_take() -> None:
    for wrong in (replace(FULL, base_model="/home/me/model"), replace(FULL, base_model="../models/mine/x")):
        with pytest.raises(ValueError, match="is no Hub id"):
            wrong.render(gated=True)
    with pytest.raises(ValueError, match="holds no model 'mine', only colbert, numcolbert, bm25"):
        BenchmarkResult.from_report(REPORT, "mine")


def test_report_keeps_the_tests_of_this_model_and_their_direction() -> None:
    assert FULL.results[0].tests == [
        SignificanceTest("ndcg@10", "ColBERT_ft", 0.111, 0.00001, 300),
        SignificanceTest("mrr@10", "ColBERT_ft", 0.05, 0.21, 300),
    ]


def test_reads_well_as_the_hub_shows_it() -> None:
    page = read(FULL.render(gated=True))
    assert page.headings[:4] == ["NumColBERT FinQuant", "When not to use it", "Use", "The gate"]
    assert page.headings[-1] == "Citation"
    # Nothing of the Markdown is left over in the text.
    for leftover in ("**", "](", "| ", "{{", "{%", "```", "\\"):
        assert leftover not in page.text, leftover
    rows = {row[0]: row[1:] for row in page.rows}
    assert rows["over"] == ["0.90", "3.50", "6", "2.50"]
    assert "| --- | ---: | ---: | --- | ---: |" in FULL.render(gated=True)  # numbers to the right, words to the left
    assert rows["|"] == ["0.20", "1.00", "`", "0.10"]
    assert rows["4 × [MASK] (padding)"] == ["0.10", "1.00", "", "2.00"]
    assert rows["NumColBERT (this model)"] == ["0.623 †", "0.623", "0.623", "0.623", "0.623"]
    assert ["ColBERT_ft", "nDCG@10", "+0.111", "< 0.001"] in page.rows
    assert ["Model", "= (100)", "> (100)", "< (100)"] in page.rows
    assert rows["learning rate"] == ["2e-05"]
    assert rows["detection"] == ["0.05", "0.7", "0.01"]
    assert "Training emitted 0.0123 kg of CO2 equivalent, from 0.04 kWh in 0.61 hours" in page.text
    assert len({len(row) for row in page.rows if row[0] in ("colbert", "bm25", "NumColBERT (this model)")}) <= 2
    assert all(link.startswith("https://") for link in page.links)


def test_the_five_lines_of_use_run(tiny_model: ColBERT, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    tiny_model.save_pretrained(str(tmp_path / "model"))
    page = read((tmp_path / "model" / "README.md").read_text())
    code = next(code for code in page.codes if "from_pretrained" in code)
    assert len([line for line in code.splitlines() if line]) == 5
    assert PLACEHOLDER in code
    # No line is cut off where the Hub shows it.
    assert all(len(line) <= 95 for code in page.codes if "import" in code for line in code.splitlines())
    exec(compile(code.replace(PLACEHOLDER, str(tmp_path / "model")), "card", "exec"), {})
    assert len(re.findall(r"\d+\.\d+", capsys.readouterr().out)) == 2


def test_every_save_explains_the_example_with_the_model_being_saved(tiny_model: ColBERT, tmp_path: Path) -> None:
    tiny_model.card = CardData(model_name="Mine", example=("over 5 kg", "It weighs 6 kg."))
    tiny_model.train()
    tiny_model.save_pretrained(str(tmp_path / "model"))
    assert tiny_model.training  # dropout is still on where a checkpoint was saved during training
    rows = read((tmp_path / "model" / "README.md").read_text()).rows
    for token in tiny_model.explain("over 5 kg", "It weighs 6 kg.").tokens:
        if token.token != "[MASK]":
            assert [
                token.token.strip(), f"{token.probability:.2f}", f"{token.gate:.2f}",
                token.document_token.strip(), f"{token.score:.2f}",
            ] in rows  # fmt: skip


def test_card_data_survives_loading_and_saving(tiny_model: ColBERT, tmp_path: Path) -> None:
    tiny_model.card = replace(FULL, explanation=None)
    tiny_model.save_pretrained(str(tmp_path / "first"))
    loaded = ColBERT.from_pretrained(tmp_path / "first", device="cpu")
    assert loaded.card is not None
    assert replace(loaded.card, explanation=None) == tiny_model.card
    loaded.save_pretrained(str(tmp_path / "second"))
    for file in ("README.md", "model_card.json"):
        assert (tmp_path / "first" / file).read_bytes() == (tmp_path / "second" / file).read_bytes()


def test_card_data_of_a_later_version_still_loads() -> None:
    text = FULL.to_json().replace('"model_name"', '"of_a_later_version": {"a": [1]}, "model_name"', 1)
    assert CardData.from_json(text) == FULL


@example("&lt;b&gt; &#65; ~~x~~ <b>x</b> $x$ [a](b) `c` *d* __e__ | \\| - # 1.")
@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=30))
@settings(max_examples=150, deadline=None)
def test_any_text_stays_in_its_cell(text: str) -> None:
    """Names of corpora, models and parameters are data: they cannot break a table or become markup."""
    card = replace(FULL, hyperparameters={text: text}, results=[], explanation=None).render(gated=True)
    page = read(card)
    (row,) = (page.rows[index + 1] for index, row in enumerate(page.rows) if row == ["Name", "Value"])
    assert [" ".join(cell.split()) for cell in row] == [" ".join(text.split())] * 2


def test_json_round_trip() -> None:
    assert CardData.from_json(FULL.to_json()) == FULL
    assert asdict(CardData.from_json(CardData().to_json())) == asdict(CardData())
    for wrong in ("[]", "5", "{", '{"training_data": [{}]}', '{"explanation": {"query": "x"}}'):
        with pytest.raises(ValueError, match="no card data"):
            CardData.from_json(wrong)
