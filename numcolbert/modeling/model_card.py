"""The model card: what is known about a model, and the README.md that the Hub shows for it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData
from jinja2 import Environment, StrictUndefined

from numcolbert.modeling.explanation import Explanation, TokenExplanation

__all__ = [
    "CARD_DATA",
    "PLACEHOLDER",
    "BenchmarkResult",
    "CardData",
    "Emissions",
    "LossComponent",
    "SignificanceTest",
    "TrainingData",
    "read_card_data",
]

CARD_DATA = "model_card.json"
"""File of a saved model that holds what its README.md was rendered from."""


METRICS = {"ndcg@10": "nDCG@10", "mrr@10": "MRR@10", "p@10": "P@10", "r@100": "R@100", "ordered_pairs": "Ordered pairs"}
"""Metrics as the card writes them, in the order of its tables."""

OVERALL = "overall"
LIBRARY = "PyLate"
PIPELINE = "sentence-similarity"
TAGS = ("ColBERT", "PyLate", "sentence-transformers", "sentence-similarity", "feature-extraction", "late-interaction")
PLACEHOLDER = "path/to/this/folder"
"""What the card's examples load; publishing puts the Hub id in its place."""

EXAMPLE = ("companies with more than one billion dollars of R&D spending", "R&D spending reached $1.4 billion.")
"""Query and document of the explanation, unless the card data name others."""


@dataclass
class TrainingData:
    """One corpus the model was trained on.

    Attributes
    ----------
    name
        Its name.
    description
        What was taken from it, such as the number of triplets.
    terms
        Licence or terms of use.
    research_only
        Whether its terms allow research only; the card then says so of the model.
    dataset_id
        Id of the data set on the Hub, listed in the card's metadata.
    url
        Where it comes from.
    """

    name: str
    description: str | None = None
    terms: str | None = None
    research_only: bool = False
    dataset_id: str | None = None
    url: str | None = None


@dataclass
class LossComponent:
    """One part of the training loss.

    Attributes
    ----------
    name
        Its name, such as ``"retrieval"``.
    weight
        Its weight in the sum.
    first, last
        Its value, unweighted, when training began and when it ended.
    """

    name: str
    weight: float
    first: float | None = None
    last: float | None = None


@dataclass
class SignificanceTest:
    """Paired t-test of this model against a baseline on one metric.

    Attributes
    ----------
    metric
        Key of the metric, such as ``"ndcg@10"``.
    baseline
        Label of the baseline.
    difference
        Mean of this model minus the baseline over the queries.
    p
        Two-sided p-value after Holm's correction.
    queries
        Number of paired queries.
    """

    metric: str
    baseline: str
    difference: float
    p: float
    queries: int | None = None


@dataclass
class BenchmarkResult:
    """What one benchmark found, for this model and those beside it.

    Attributes
    ----------
    benchmark
        Name of the benchmark.
    model
        Label of this model in ``scores``.
    scores
        Label of a model to group of queries (``"overall"``, an operator, ``"seen"`` ...) to metric to value; None where
        there is nothing to measure.
    queries
        Group to its number of queries.
    documents
        Number of documents.
    tests
        Significance tests of this model against baselines.
    dataset_id
        Id of the benchmark on the Hub.
    """

    benchmark: str
    model: str
    scores: dict[str, dict[str, dict[str, float | None]]]
    queries: dict[str, int] = field(default_factory=dict)
    documents: int | None = None
    tests: list[SignificanceTest] = field(default_factory=list)
    dataset_id: str | None = None

    @classmethod
    def from_report(
        cls, report: Mapping[str, Any], model: str, names: Mapping[str, str] | None = None
    ) -> BenchmarkResult:
        """Take what an evaluation's ``results.json`` holds.

        Parameters
        ----------
        report
            The report.
        model
            Label of this model in it.
        names
            Label in the report to the name the card shows, for those that should read otherwise.

        Returns
        -------
        BenchmarkResult
            Scores, numbers of queries, and the tests in which this model takes part.

        Raises
        ------
        ValueError
            If the report does not hold the model.
        """
        names = names or {}
        labels = [entry["label"] for entry in report["models"]]
        if model not in labels:
            raise ValueError(f"The report holds no model {model!r}, only {', '.join(labels)}: name one of those.")
        own = next(entry for entry in report["models"] if entry["label"] == model)
        tests = []
        for metric, comparisons in report["significance"].items():
            for test in comparisons:
                sides = {test["model"], test["reference"]}
                if model in sides and len(sides) == 2:
                    baseline = (sides - {model}).pop()
                    sign = 1 if test["model"] == model else -1
                    tests.append(
                        SignificanceTest(
                            metric,
                            names.get(baseline, baseline),
                            sign * test["difference"],
                            test["p_holm"],
                            test.get("queries"),
                        )
                    )
        return cls(
            benchmark=report["benchmark"]["name"],
            model=names.get(model, model),
            scores={
                names.get(entry["label"], entry["label"]): {
                    group: {metric: row.get(metric) for metric in METRICS} for group, row in entry["metrics"].items()
                }
                for entry in report["models"]
            },
            queries={group: row["queries"] for group, row in own["metrics"].items()},
            documents=report["benchmark"].get("documents"),
            tests=tests,
        )


@dataclass
class Emissions:
    """What the training run cost, as measured.

    Attributes
    ----------
    kilograms
        Emissions in kg of CO2 equivalent.
    energy
        Energy in kWh.
    hours
        Duration in hours.
    hardware
        The hardware used.
    location
        Where it ran.
    source
        What measured it, such as ``"codecarbon"``.
    """

    kilograms: float
    energy: float | None = None
    hours: float | None = None
    hardware: str | None = None
    location: str | None = None
    source: str | None = None


@dataclass
class CardData:
    """What is known about a model; whatever is None or empty is left out of its card.

    Attributes
    ----------
    model_name
        Title of the card. Defaults to "NumColBERT", or "ColBERT" for a model without a gate.
    base_model, base_model_revision
        Hub id, and commit, of the model the training began with.
    language
        Language codes.
    license
        Licence of the weights, as the Hub spells it (``"apache-2.0"``, ``"cc-by-nc-4.0"``, ``"other"``).
    license_name, license_link
        Name and address of the licence where ``license`` is ``"other"``.
    training_data
        Corpora the model was trained on.
    hyperparameters
        Names and values.
    losses
        Parts of the loss.
    results
        Benchmarks.
    emissions
        Measured cost of the training.
    example
        Query and document of the explained example; the model being saved explains them itself.
    explanation
        That explanation; filled in by ``save``.

    Examples
    --------
    >>> card = CardData(model_name="NumColBERT Reuters", license="apache-2.0", language=["en"])
    >>> print(card.render(gated=True).split("---")[1].strip())  # doctest: +NORMALIZE_WHITESPACE
    language:
    - en
    library_name: PyLate
    license: apache-2.0
    pipeline_tag: sentence-similarity
    tags:
    - ColBERT
    - PyLate
    - sentence-transformers
    - sentence-similarity
    - feature-extraction
    - late-interaction
    - numcolbert
    - numeracy
    """

    model_name: str | None = None
    base_model: str | None = None
    base_model_revision: str | None = None
    language: list[str] = field(default_factory=list)
    license: str | None = None
    license_name: str | None = None
    license_link: str | None = None
    training_data: list[TrainingData] = field(default_factory=list)
    hyperparameters: dict[str, Any] = field(default_factory=dict)
    losses: list[LossComponent] = field(default_factory=list)
    results: list[BenchmarkResult] = field(default_factory=list)
    emissions: Emissions | None = None
    example: tuple[str, str] = EXAMPLE
    explanation: Explanation | None = None

    def metadata(self, gated: bool) -> ModelCardData:
        """Return the metadata the Hub reads, checked by huggingface_hub's own classes.

        Parameters
        ----------
        gated
            Whether the model has a numerical gate.

        Raises
        ------
        ValueError
            If a value is none the Hub takes.
        """
        for name in [self.base_model, *(data.dataset_id for data in self.training_data)]:
            if name is not None and not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name):
                raise ValueError(f"{name!r} in the card data is no Hub id (org/name): leave it out or correct it.")
        results = [
            EvalResult(
                task_type="information-retrieval",
                task_name="Information Retrieval",
                dataset_type=result.dataset_id or re.sub(r"\W+", "-", result.benchmark.lower()).strip("-"),
                dataset_name=result.benchmark,
                metric_type=metric,
                metric_name=title,
                metric_value=round(value, 4),
            )
            for result in self.results
            for metric, title in METRICS.items()
            if (value := result.scores.get(result.model, {}).get(OVERALL, {}).get(metric)) is not None
        ]
        emissions = self.emissions
        extra: dict[str, Any] = {}
        if emissions is not None:
            known = {
                "emissions": round(emissions.kilograms * 1000, 3),  # the Hub counts grams
                "source": emissions.source,
                "training_type": "fine-tuning",
                "geographical_location": emissions.location,
                "hardware_used": emissions.hardware,
            }
            extra["co2_eq_emissions"] = {key: value for key, value in known.items() if value is not None}
        return ModelCardData(
            language=self.language or None,
            library_name=LIBRARY,
            license=self.license,
            license_name=self.license_name,
            license_link=self.license_link,
            pipeline_tag=PIPELINE,
            tags=[*TAGS, *(("numcolbert", "numeracy") if gated else ())],
            base_model=self.base_model,
            datasets=[data.dataset_id for data in self.training_data if data.dataset_id] or None,
            metrics=list(dict.fromkeys(result.metric_type for result in results)) or None,
            model_name=self.title(gated) if results else None,
            eval_results=results or None,
            **extra,
        )

    def title(self, gated: bool) -> str:
        """Return the title of the card.

        Parameters
        ----------
        gated
            Whether the model has a numerical gate.

        Examples
        --------
        >>> CardData().title(gated=False)
        'ColBERT'
        """
        return self.model_name or ("NumColBERT" if gated else "ColBERT")

    def render(self, *, gated: bool) -> str:
        """Write README.md.

        Parameters
        ----------
        gated
            Whether the model has a numerical gate.

        Returns
        -------
        str
            Metadata and text.

        Raises
        ------
        ValueError
            If a value is none the Hub takes.
        """
        environment = Environment(
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            undefined=StrictUndefined,
            autoescape=False,
        )
        environment.filters["cell"] = _cell
        template = environment.from_string(_template().read_text(encoding="utf-8"))
        text = template.render(
            metadata=self.metadata(gated).to_yaml(),
            card=self,
            gated=gated,
            name=PLACEHOLDER,
            versions={name: version(name) for name in ("pylate", "sentence-transformers", "transformers", "torch")},
            explanation=_explanation_table(self.explanation) if self.explanation else None,
            results=[
                {
                    "result": result,
                    "overall": _overall_table(result),
                    "groups": _group_tables(result),
                    "tests": _test_table(result),
                }
                for result in self.results
            ],
        )
        card = ModelCard(text)  # parses the metadata again, as the Hub will
        return str(card)

    def to_json(self) -> str:
        """Return everything as JSON, for the file that lies beside README.md."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> CardData:
        """Read what :meth:`to_json` wrote; keys of later versions are left out.

        Parameters
        ----------
        text
            The JSON.

        Raises
        ------
        ValueError
            If it is no card data.

        Examples
        --------
        >>> card = CardData(license="mit", training_data=[TrainingData("Reuters-21578", research_only=True)])
        >>> CardData.from_json(card.to_json()) == card
        True
        """
        try:
            data = json.loads(text)
            parts: dict[str, Any] = {
                "training_data": [_build(TrainingData, item) for item in data.get("training_data", [])],
                "losses": [_build(LossComponent, item) for item in data.get("losses", [])],
                "results": [
                    _build(
                        BenchmarkResult,
                        {**item, "tests": [_build(SignificanceTest, test) for test in item.get("tests", [])]},
                    )
                    for item in data.get("results", [])
                ],
                "example": tuple(data.get("example", EXAMPLE)),
            }
            if data.get("emissions"):
                parts["emissions"] = _build(Emissions, data["emissions"])
            if data.get("explanation"):
                tokens = [_build(TokenExplanation, token) for token in data["explanation"]["tokens"]]
                parts["explanation"] = _build(Explanation, {**data["explanation"], "tokens": tokens})
            return _build(cls, {**data, **parts})
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            raise ValueError(f"This is no card data of NumColBERT ({error}): restore or delete the file.") from None


def _build(kind: Any, values: Mapping[str, Any]) -> Any:
    return kind(**{item.name: values[item.name] for item in fields(kind) if item.name in values})


def _template() -> Path:
    """Return the template: in an installed package beside this file, in a checkout in its own folder."""
    name = "model_card.md.jinja"
    packaged = Path(__file__).with_name(name)
    return packaged if packaged.exists() else Path(__file__).parents[2] / "hub" / name


def _cell(value: Any) -> str:
    """Write a value into a Markdown table or line: one line, nothing that Markdown or HTML would take for its own."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}"
    text = " ".join(str(value).split())
    text = re.sub(r"&(?=#?\w+;)", "&amp;", text)
    return re.sub(r"([\\`*_{}\[\]<>|#$~])", r"\\\1", text)


def _table(rows: Sequence[Sequence[Any]], texts: Sequence[int] = (0,)) -> str:
    """Write a Markdown table; the first row is the header, the columns ``texts`` hold text, all others numbers."""
    cells = [[item if isinstance(item, str) else _cell(item) for item in row] for row in rows]
    rule = ["---" if column in texts else "---:" for column in range(len(cells[0]))]
    return "\n".join("| " + " | ".join(row) + " |" for row in [cells[0], rule, *cells[1:]])


def _score(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _explanation_table(explanation: Explanation) -> str:
    header = ["Query token", "P(numerical)", "Gate"]
    if explanation.document is not None:
        header += ["Best document token", "Contribution"]
    shown: list[TokenExplanation] = []
    padding: list[TokenExplanation] = []
    for token in explanation.tokens:
        (padding if token.token == "[MASK]" and shown else shown).append(token)

    def row(name: str, tokens: Sequence[TokenExplanation]) -> list[str]:
        gated = any(token.gate != 1.0 for token in tokens)
        probabilities = [token.probability for token in tokens if token.probability is not None]
        gates = [token.gate for token in tokens]
        cells = [
            name,
            _range(probabilities),
            f"**{_range(gates)}**" if gated else _range(gates),
        ]
        if explanation.document is not None:
            cells += [
                _cell(tokens[0].document_token) if len(tokens) == 1 else "",
                f"{sum(token.score or 0.0 for token in tokens):.2f}",
            ]
        return cells

    rows = [row(_cell(token.token.strip()), [token]) for token in shown]
    if padding:
        rows.append(row(f"{len(padding)} × \\[MASK\\] (padding)", padding))
    return _table([header, *rows], texts=(0, 3))


def _range(values: Sequence[float]) -> str:
    if not values:
        return "–"
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"


def _measured(result: BenchmarkResult) -> dict[str, str]:
    """Return the metrics that at least one model has."""
    return {
        metric: title
        for metric, title in METRICS.items()
        if any(groups.get(OVERALL, {}).get(metric) is not None for groups in result.scores.values())
    }


def _overall_table(result: BenchmarkResult) -> str:
    metrics = _measured(result)
    rows = [["Model", *metrics.values()]]
    for label, groups in result.scores.items():
        cells = [_score(groups.get(OVERALL, {}).get(metric)) for metric in metrics]
        if label == result.model:
            significant = {test.metric for test in result.tests if test.p < 0.05}
            cells = [
                f"**{cell}**" + (" †" if metric in significant else "")
                for cell, metric in zip(cells, metrics, strict=True)
            ]
            rows.append([f"**{_cell(label)}** (this model)", *cells])
        else:
            rows.append([_cell(label), *cells])
    return _table(rows)


def _group_tables(result: BenchmarkResult) -> dict[str, str]:
    groups = [group for group in result.scores.get(result.model, {}) if group != OVERALL]
    if not groups:
        return {}

    def name(group: str) -> str:
        count = result.queries.get(group)
        return _cell(group) + (f" ({count})" if count is not None else "")

    return {
        title: _table(
            [
                ["Model", *(name(group) for group in groups)],
                *(
                    [
                        f"**{_cell(label)}**" if label == result.model else _cell(label),
                        *(_score(scores.get(group, {}).get(metric)) for group in groups),
                    ]
                    for label, scores in result.scores.items()
                ),
            ]
        )
        for metric, title in _measured(result).items()
        if metric in ("ndcg@10", "ordered_pairs")
    }


def _test_table(result: BenchmarkResult) -> str | None:
    if not result.tests:
        return None
    rows = [
        [_cell(test.baseline), METRICS.get(test.metric, _cell(test.metric)), f"{test.difference:+.3f}", _p(test.p)]
        for test in result.tests
    ]
    return _table([["Against", "Metric", "Difference", "p (Holm)"], *rows], texts=(0, 1))


def read_card_data(folder: str | os.PathLike[str]) -> CardData | None:
    """Read the card data of a saved model, None where it has none.

    Parameters
    ----------
    folder
        The folder.

    Returns
    -------
    CardData or None
        The data.

    Raises
    ------
    ValueError
        If the file holds something else.
    """
    path = Path(folder) / CARD_DATA
    if not path.exists():
        return None
    try:
        return CardData.from_json(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
