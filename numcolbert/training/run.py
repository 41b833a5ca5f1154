"""One run from a configuration: data, model, training, evaluation."""

from __future__ import annotations

import json
import math
import os
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch
from accelerate import PartialState
from datasets import Dataset
from sentence_transformers import SentenceTransformerTrainingArguments
from sentence_transformers.training_args import BatchSamplers
from transformers import set_seed

from numcolbert.corpus.benchmark import load_benchmark
from numcolbert.corpus.prepare import PreparedData, prepare_data
from numcolbert.evaluation.evaluator import Evaluation, evaluate_model, fingerprint
from numcolbert.evaluation.report import build_report, print_tables, write_report
from numcolbert.losses import CachedNumColBERTLoss, NumColBERTLoss
from numcolbert.modeling import ColBERT
from numcolbert.modeling.base_model import PACKAGED, PACKAGED_HUB_ID
from numcolbert.modeling.model_card import BenchmarkResult, CardData, LossComponent, TrainingData
from numcolbert.modeling.persistence import check_destination
from numcolbert.training.batching import LengthBucketedBatchSampler, PairBatchSampler
from numcolbert.training.configuration import RunConfig, TrainingConfig
from numcolbert.training.trainer import NumColBERTTrainer, last_checkpoint

__all__ = ["build_loss", "build_model", "train"]

CONFIG_FILE = "run_config.json"
GATE_PARAMETERS = r"^model\.\d+\.(detector|gate)\."
HEAD_PARAMETERS = r"^heads\."
TRIPLET_COLUMNS = (
    "query",
    "positive",
    "negative",
    "query_condition",
    "positive_quantities",
    "negative_quantities",
    "pair",
)


def build_model(config: RunConfig) -> ColBERT:
    """Start the model of a run.

    Parameters
    ----------
    config
        The run.
    """
    options = config.model
    model = ColBERT(
        options.base_model,
        revision=options.revision,
        numerical_gate=config.method == "numcolbert",
        gate_start=options.gate_start,
        split_digits=options.split_digits,
        embedding_size=options.embedding_size,
        query_length=options.query_length,
        document_length=options.document_length,
        do_query_expansion=options.do_query_expansion,
    )
    # Late interaction never reads the pooler; on several processes a parameter without gradient stalls DDP.
    pooler = getattr(model[0].auto_model, "pooler", None)
    if pooler is not None:
        pooler.requires_grad_(False)
    if config.training.dropout is not None:
        _set_dropout(model, config.training.dropout)
    return model


def _set_dropout(model: ColBERT, probability: float) -> None:
    for module in model[0].auto_model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = probability
        elif isinstance(getattr(module, "attention_dropout", None), float):
            module.attention_dropout = probability


def build_loss(config: RunConfig, model: ColBERT) -> NumColBERTLoss:
    """Build the objective of a run; that of ColBERT_ft is the retrieval loss alone.

    Parameters
    ----------
    config
        The run.
    model
        Its model.
    """
    options = asdict(config.loss)
    if config.method == "colbert":
        options |= {
            "positive_set": None,
            "contrastive_weight": 0.0,
            "detection_weight": 0.0,
            "property_weight": 0.0,
            "document_property_weight": 0.0,
        }
    mini_batch_size = options.pop("mini_batch_size")
    if mini_batch_size is None:
        return NumColBERTLoss(model, **options)
    return CachedNumColBERTLoss(model, mini_batch_size=mini_batch_size, **options)


def train(config: RunConfig, resume: bool = False) -> ColBERT:
    """Prepare the data, train, save the model to ``output_dir`` and measure it.

    Parameters
    ----------
    config
        The run.
    resume
        Go on from the newest whole checkpoint in ``output_dir``, if there is one.

    Returns
    -------
    ColBERT
        The trained model.

    Raises
    ------
    FileExistsError
        If ``output_dir`` holds another run and ``resume`` is False.
    ValueError
        If ``resume`` is True and ``output_dir`` holds a run of another configuration.
    """
    output_dir = Path(config.output_dir)
    state = PartialState()
    with state.main_process_first():
        if state.is_main_process:
            _claim(output_dir, config, resume)
        # Made once, by the first process; the others find it there.
        prepared = prepare_data(config.data)
    _set_threads(config.training.cpu_threads)
    set_seed(config.training.seed)
    model = build_model(config)
    triplets = Dataset.from_parquet(str(prepared.triplets)).select_columns(list(TRIPLET_COLUMNS))
    trainer = NumColBERTTrainer(
        model=model,
        args=_arguments(config, output_dir, len(triplets)),
        train_dataset=triplets,
        loss=build_loss(config, model),
    )
    checkpoint = last_checkpoint(output_dir / "checkpoints") if resume else None
    if resume and state.is_main_process:
        print(f"Resuming from {checkpoint}." if checkpoint else "No whole checkpoint yet: starting anew.")
    trainer.train(resume_from_checkpoint=checkpoint)
    state.wait_for_everyone()
    if state.is_main_process:
        log = trainer.state.log_history
        model.card = _card(config, len(triplets), log, report=None)
        model.save_pretrained(str(output_dir))  # before the evaluation, and again with its results in the card
        (output_dir / "training_log.json").write_text(json.dumps(log, indent=1), encoding="utf-8")
        report = _evaluate(config, model, prepared, output_dir)
        if report is not None:
            model.card = _card(config, len(triplets), log, report)
            model.save_pretrained(str(output_dir))
        print(
            f"Saved to {output_dir}. Use it:\n"
            f"from numcolbert import ColBERT; model = ColBERT.from_pretrained({str(output_dir)!r})"
        )
    state.wait_for_everyone()
    return model


def _set_threads(threads: int | None) -> None:
    if threads is None:
        threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        threads = max(1, threads // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
    torch.set_num_threads(threads)


def _claim(output_dir: Path, config: RunConfig, resume: bool) -> None:
    """Refuse to mix two runs in one folder, before any work is done."""
    check_destination(output_dir)
    file = output_dir / CONFIG_FILE
    wanted = json.loads(json.dumps(asdict(config)))
    if file.exists():
        found = json.loads(file.read_text(encoding="utf-8"))
        if not resume:
            raise FileExistsError(
                f"{output_dir} holds a run already: pass --resume to go on with it, choose another output_dir, or "
                "delete the folder."
            )
        changed = sorted(
            f"{section}.{key}" if isinstance(found.get(section), dict) else section
            for section in wanted
            for key in (wanted[section] if isinstance(wanted[section], dict) else [None])
            if (found.get(section, {}).get(key) if key else found.get(section))
            != (wanted[section][key] if key else wanted[section])
        )
        if changed:
            raise ValueError(
                f"{output_dir} holds a run with other values of {', '.join(changed)}: resume it with its own "
                "configuration, or choose another output_dir."
            )
    output_dir.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(wanted, indent=2), encoding="utf-8")


def _arguments(config: RunConfig, output_dir: Path, triplets: int) -> SentenceTransformerTrainingArguments:
    options = config.training
    steps_per_epoch = triplets // (options.batch_size * PartialState().num_processes)
    steps = options.max_steps
    if steps < 0:
        steps = math.ceil(options.epochs * max(1, steps_per_epoch // options.gradient_accumulation_steps))
    return SentenceTransformerTrainingArguments(
        output_dir=str(output_dir / "checkpoints"),
        num_train_epochs=options.epochs,
        max_steps=options.max_steps,
        per_device_train_batch_size=options.batch_size,
        gradient_accumulation_steps=options.gradient_accumulation_steps,
        learning_rate=options.learning_rate,
        learning_rate_mapping=_learning_rates(config),
        weight_decay=options.weight_decay,
        warmup_steps=math.ceil(options.warmup_ratio * steps),
        max_grad_norm=options.max_grad_norm,
        bf16=_bf16_is_faster() if options.bf16 is None else options.bf16,
        use_cpu=not torch.accelerator.is_available(),
        gradient_checkpointing=options.gradient_checkpointing,
        gradient_checkpointing_kwargs={"use_reentrant": False} if options.gradient_checkpointing else None,
        batch_sampler=_batch_sampler(options),
        save_steps=options.save_steps,
        save_total_limit=2,
        logging_steps=options.logging_steps,
        logging_first_step=True,
        seed=options.seed,
        dataloader_drop_last=True,
        ddp_find_unused_parameters=False,
        ddp_broadcast_buffers=False,  # several forward passes a step must not overwrite each other's buffers
        report_to="none",
    )


def _bf16_is_faster() -> bool:
    if torch.cuda.is_available():
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if torch.accelerator.is_available():
        return False

    def seconds(dtype: torch.dtype) -> float:
        matrix = torch.ones(256, 256, dtype=dtype)
        times = []
        for _ in range(4):  # the first one loads the kernels
            start = time.perf_counter()
            matrix @ matrix
            times.append(time.perf_counter() - start)
        return min(times)

    return seconds(torch.bfloat16) < seconds(torch.float32)


def _batch_sampler(options: TrainingConfig) -> Any:
    if options.batching == "pair":
        return partial(PairBatchSampler, group_size=options.pair_group_size)
    return LengthBucketedBatchSampler if options.batching == "length" else BatchSamplers.BATCH_SAMPLER


def _learning_rates(config: RunConfig) -> dict[str, float]:
    rate = config.training.gate_learning_rate
    if rate is None or config.method == "colbert":
        return {}
    heads = config.loss.property_weight or config.loss.document_property_weight
    return {GATE_PARAMETERS: rate} | ({HEAD_PARAMETERS: rate} if heads else {})


def _evaluate(config: RunConfig, model: ColBERT, prepared: PreparedData, output_dir: Path) -> dict[str, Any] | None:
    """Measure the final model, show and store the result."""
    if config.evaluate == "none":
        return None
    folder = prepared.benchmark if config.evaluate == "test" else prepared.development
    benchmark = load_benchmark(folder)
    evaluations: dict[str, Evaluation] = {config.method: evaluate_model(model, benchmark, show_progress=True)}
    report = build_report(
        evaluations,
        sources={config.method: str(output_dir)},
        benchmark=benchmark.information.get("name", folder.name),
        benchmark_sha256=fingerprint(benchmark),
        documents=len(benchmark.corpus),
        index="exact",
        seed=config.training.seed,
    )
    print_tables(report)
    write_report(report, evaluations, output_dir / "evaluation")
    return report


def _card(config: RunConfig, triplets: int, log: list[dict[str, Any]], report: dict[str, Any] | None) -> CardData:
    base = PACKAGED_HUB_ID if config.model.base_model == PACKAGED else config.model.base_model
    steps = [entry for entry in log if "retrieval" in entry]
    weights = {
        "retrieval": 1.0,
        "contrastive": config.loss.contrastive_weight,
        "detection": config.loss.detection_weight,
        "property": config.loss.property_weight,
        "document_property": config.loss.document_property_weight,
    }
    return CardData(
        base_model=None if Path(base).exists() else base,
        base_model_revision=config.model.revision,
        language=config.card.language,
        license=config.card.license,
        license_name=config.card.license_name,
        license_link=config.card.license_link,
        training_data=[
            TrainingData(
                name=config.data.corpus_name,
                description=f"{triplets:,} triplets built from it",
                terms=config.card.data_terms or ("MIT" if config.data.is_builtin else None),
                research_only=config.card.research_only,
            )
        ],
        hyperparameters={"method": config.method, **asdict(config.loss), **asdict(config.training)},
        losses=[
            LossComponent(name, weight, first=float(steps[0][name]), last=float(steps[-1][name]))
            for name, weight in weights.items()
            if steps and name in steps[0]
        ],
        results=[] if report is None else [BenchmarkResult.from_report(report, model=config.method)],
    )
