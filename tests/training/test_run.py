"""Whole runs of train.py on a tiny model: resuming, refusals, the baseline."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from numcolbert import ColBERT
from numcolbert.corpus.prepare import DataConfig
from numcolbert.training.configuration import ModelConfig, RunConfig, TrainingConfig
from numcolbert.training.run import _set_threads, build_model
from numcolbert.training.trainer import last_checkpoint

ROOT = Path(__file__).parents[2]
STEPS = 12


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("data")


def command(tiny_base: str, data_dir: Path, output: Path, *options: str) -> list[str]:
    settings = {
        "output_dir": output,
        "data.output_dir": data_dir,
        "data.train_source": "builtin",
        "data.triplets": 400,
        "data.queries": 12,
        "data.development_queries": 6,
        "model.base_model": tiny_base,
        "model.embedding_size": 16,
        "model.document_length": 48,
        "training.max_steps": STEPS,
        "training.batch_size": 8,
        "training.save_steps": 4,
        "training.logging_steps": 1,
        "training.cpu_threads": 1,
        "evaluate": "none",
    }
    arguments = [f"--{key}={value}" for key, value in settings.items()]
    return [sys.executable, "train.py", *arguments, *options]


def run(arguments: list[str], **environment: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(
        arguments, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=400, check=False
    )


@pytest.fixture(scope="module")
def unbroken(tiny_base, data_dir, tmp_path_factory) -> Path:
    output = tmp_path_factory.mktemp("unbroken") / "run"
    finished = run(command(tiny_base, data_dir, output))
    assert finished.returncode == 0, finished.stderr[-3000:]
    assert "from_pretrained" in finished.stdout
    return output


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return {
        f"{path.parent.name}/{name}": tensor
        for path in sorted(folder.glob("**/model.safetensors"))
        if "checkpoints" not in path.parts
        for name, tensor in load_file(path).items()
    }


def test_a_run_leaves_a_model_its_card_and_its_log(unbroken):
    model = ColBERT.from_pretrained(unbroken, device="cpu")
    assert model.numerical_gate is not None
    assert model.split_digits
    card = (unbroken / "README.md").read_text(encoding="utf-8")
    assert "built-in corpus of the numcolbert package" in card
    assert "MIT" in card
    log = json.loads((unbroken / "training_log.json").read_text())
    assert {"retrieval", "contrastive", "detection", "property", "tokens_per_second"} <= set(log[0])
    assert log[0]["loss"] == pytest.approx(
        sum(log[0][name] for name in ("retrieval", "contrastive", "detection", "property")), abs=2e-3
    )
    pickles = [path for path in unbroken.rglob("*") if path.suffix in (".bin", ".pkl", ".pickle")]
    assert not pickles


def test_a_killed_run_resumes_to_the_same_weights(tiny_base, data_dir, unbroken, tmp_path):
    output = tmp_path / "run"
    arguments = command(tiny_base, data_dir, output)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        arguments, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        deadline = time.monotonic() + 300
        while last_checkpoint(output / "checkpoints") is None and time.monotonic() < deadline:
            assert process.poll() is None, "the run ended before it could be killed"
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    assert not (output / "modules.json").exists()
    resumed = run([*arguments, "--resume"])
    assert resumed.returncode == 0, resumed.stderr[-3000:]
    assert "Resuming from" in resumed.stdout
    expected, found = weights(unbroken), weights(output)
    assert expected.keys() == found.keys()
    for name, tensor in expected.items():
        # To rounding: where memory lies decides how a vectorised sum is grouped. Each step moves weights by over 1e-6.
        assert torch.allclose(tensor, found[name], rtol=0, atol=5e-8), name


def test_a_half_written_checkpoint_is_passed_over(unbroken, tmp_path):
    checkpoints = tmp_path / "checkpoints"
    shutil.copytree(unbroken / "checkpoints", checkpoints)
    newest = last_checkpoint(checkpoints)
    (Path(newest) / "trainer_state.json").write_text('{"global_step": ')
    before = last_checkpoint(checkpoints)
    assert before is not None
    assert int(before.split("-")[-1]) < int(newest.split("-")[-1])


def test_a_second_run_does_not_overwrite_the_first(tiny_base, data_dir, unbroken):
    finished = run(command(tiny_base, data_dir, unbroken))
    assert finished.returncode != 0
    assert "--resume" in finished.stderr
    assert "Traceback" not in finished.stderr


def test_resuming_with_other_settings_names_them(tiny_base, data_dir, unbroken):
    finished = run(command(tiny_base, data_dir, unbroken, "--resume", "--training.learning_rate=0.5"))
    assert finished.returncode != 0
    assert "training.learning_rate" in finished.stderr


def test_unknown_keys_are_refused_by_name(tmp_path):
    finished = run([sys.executable, "train.py", "--config", "configs/quickstart.yaml", "--training.learning_rat", "1"])
    assert finished.returncode != 0
    assert "training.learning_rat" in finished.stderr
    faulty = tmp_path / "faulty.yaml"
    faulty.write_text((ROOT / "configs/quickstart.yaml").read_text() + "surprise: 1\n")
    finished = run([sys.executable, "train.py", "--config", str(faulty)])
    assert finished.returncode != 0
    assert "surprise" in finished.stderr


def test_the_baseline_is_a_plain_colbert_of_the_retrieval_loss_alone(tiny_base, data_dir, tmp_path):
    finished = run(command(tiny_base, data_dir, tmp_path / "run", "--method=colbert", "--model.split_digits=false"))
    assert finished.returncode == 0, finished.stderr[-3000:]
    log = json.loads((tmp_path / "run" / "training_log.json").read_text())
    assert log[0]["loss"] == pytest.approx(log[0]["retrieval"], abs=1e-3)
    model = ColBERT.from_pretrained(tmp_path / "run", device="cpu")
    assert model.numerical_gate is None
    assert not model.split_digits


@pytest.mark.parametrize("config", sorted(path.name for path in (ROOT / "configs").glob("*.yaml")))
def test_every_shipped_configuration_is_valid(config):
    finished = run([sys.executable, "train.py", "--config", f"configs/{config}", "--print_config"])
    assert finished.returncode == 0, finished.stderr
    assert "output_dir" in finished.stdout


def test_dropout_reaches_every_layer_and_threads_the_process(tiny_base):
    model = ModelConfig(base_model=tiny_base)
    config = RunConfig("unused", DataConfig("unused"), model=model, training=TrainingConfig(dropout=0.25))
    layers = [module for module in build_model(config)[0].auto_model.modules() if isinstance(module, torch.nn.Dropout)]
    assert layers
    assert {layer.p for layer in layers} == {0.25}
    before = torch.get_num_threads()
    try:
        _set_threads(1)
        assert torch.get_num_threads() == 1
        _set_threads(None)
        assert torch.get_num_threads() == len(os.sched_getaffinity(0))
    finally:
        torch.set_num_threads(before)
