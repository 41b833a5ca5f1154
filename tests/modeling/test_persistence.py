"""Saves are atomic and whole; what lies beside a model survives them."""

import contextlib
import errno
import fcntl
import os
import random
import resource
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from numcolbert import ColBERT
from numcolbert.modeling import NumericalGate, persistence
from numcolbert.modeling.persistence import (
    check_destination,
    frozen,
    model_files,
    read_whole,
    recover,
    replace_folder,
)

OLD = {"config.json": "old", "1_Dense/config.json": "old", "2_NumericalGate/config.json": "old"}
NEW = {"config.json": "new", "1_Dense/config.json": "new", "README.md": "new"}
BESIDE = {"checkpoints/checkpoint-10/optimizer.pt": "state", "table.parquet": "rows", "run.yaml": "settings"}


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def read(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.parent.iterdir() if path.name.startswith(f".{folder.name}.")]


def in_child(action: Callable[[], None], kill_after: float | None = None) -> int | None:
    """Run an action in a forked process; its exit status, None if it was killed."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            torch.set_num_threads(1)  # the pool of threads does not live through a fork: waiting for it never ends
            action()
            status = 0
        finally:
            os._exit(status)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return None if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


@pytest.fixture
def without_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that cannot swap two folders in one step."""
    monkeypatch.setattr(persistence, "_exchange", lambda first, second: False)


def test_replaces_the_model_and_keeps_what_lies_beside_it(tmp_path: Path) -> None:
    target = tmp_path / "model"
    write(target, OLD | BESIDE)
    (target / "latest").symlink_to("checkpoints/checkpoint-10")
    inode = (target / "table.parquet").stat().st_ino
    with replace_folder(target) as folder:
        write(folder, NEW)
    assert {name: text for name, text in read(target).items() if not name.startswith("latest")} == NEW | BESIDE
    assert os.readlink(target / "latest") == "checkpoints/checkpoint-10"
    assert (target / "table.parquet").stat().st_ino == inode  # linked, not copied
    assert leftovers(target) == []


@pytest.mark.usefixtures("without_exchange")
def test_replaces_by_two_renames_where_folders_cannot_be_swapped(tmp_path: Path) -> None:
    target = tmp_path / "model"
    write(target, OLD | BESIDE)
    with replace_folder(target) as folder:
        write(folder, NEW)
    assert read(target) == NEW | BESIDE
    assert leftovers(target) == []


def test_copies_where_the_file_system_has_no_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "model"
    write(target, OLD | BESIDE)

    def refuse(*arguments: object, **options: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with replace_folder(target) as folder:
        write(folder, NEW)
    assert read(target) == NEW | BESIDE


def test_keeps_what_another_thread_writes_while_the_model_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "model"
    write(target, OLD | BESIDE)
    exchange = persistence._exchange

    def late_writer(first: Path, second: Path) -> bool:
        write(target, {"events.log": "late", "checkpoints/checkpoint-20/optimizer.pt": "late"})
        return exchange(first, second)

    monkeypatch.setattr(persistence, "_exchange", late_writer)
    with replace_folder(target) as folder:
        write(folder, NEW)
    assert read(target) == NEW | BESIDE | {"events.log": "late", "checkpoints/checkpoint-20/optimizer.pt": "late"}


def test_passes_over_what_another_thread_removes_while_the_model_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "model"
    write(target, OLD | BESIDE | {"upload.tmp": "half"})
    link = os.link

    def remover(source: os.DirEntry[str], *arguments: object, **options: object) -> None:
        if source.name == "upload.tmp":
            (target / "upload.tmp").unlink()
        link(source, *arguments, **options)

    monkeypatch.setattr(os, "link", remover)
    with replace_folder(target) as folder:
        write(folder, NEW)
    assert read(target) == NEW | BESIDE


@pytest.mark.usefixtures("without_exchange")
def test_a_reader_waits_where_a_running_save_is_between_its_two_renames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "model"
    write(target, OLD)
    rename = os.rename

    def slow(source: Path, destination: Path) -> None:
        rename(source, destination)
        if source == target:
            time.sleep(0.5)

    def save() -> None:
        os.rename = slow
        with replace_folder(target) as folder:
            write(folder, NEW)

    child = os.fork()
    if child == 0:
        save()
        os._exit(0)
    while target.exists():
        time.sleep(0.001)
    recover(target)
    assert read(target) == NEW
    assert os.waitpid(child, 0)[1] == 0


STEPS = ("mkdir", "rename", "link", "chmod", "fsync", "unlink", "rmdir")


@pytest.mark.parametrize("swaps", [True, False], ids=["exchange", "two renames"])
def test_a_kill_at_any_step_leaves_the_old_or_the_new_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swaps: bool
) -> None:
    exchange = persistence._exchange if swaps else (lambda first, second: False)
    outcomes = []
    for step in range(1, 200):
        target = tmp_path / str(step) / "model"
        write(target, OLD | BESIDE)
        calls = 0

        def counted(function: Callable, step: int = step) -> Callable:
            def call(*arguments: object, **options: object) -> object:
                nonlocal calls
                calls += 1
                if calls == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                return function(*arguments, **options)

            return call

        def save(target: Path = target) -> None:
            for name in STEPS:
                setattr(os, name, counted(getattr(os, name)))
            persistence._exchange = counted(exchange)
            with replace_folder(target) as folder:
                write(folder, NEW)

        status = in_child(save)
        if swaps:
            assert target.exists()  # at no moment is there no model
        recover(target)
        found = read(target)
        beside = {name: text for name, text in found.items() if name in BESIDE}
        model = {name: text for name, text in found.items() if name not in BESIDE}
        assert beside == BESIDE, f"step {step}"
        assert model in (OLD, NEW), f"step {step}"
        assert leftovers(target) == []
        outcomes.append(model == NEW)
        if status == 0:
            break
    assert status == 0
    assert len(outcomes) > 10
    assert True in outcomes[:-1]  # kills both before
    assert False in outcomes  # and after the swap were among them
    assert outcomes == sorted(outcomes)


def test_recovery_leaves_a_running_save_alone(tmp_path: Path) -> None:
    target = tmp_path / "model"
    write(target, OLD)
    with replace_folder(target) as folder:
        write(folder, NEW)
        assert in_child(lambda: recover(target)) == 0
        assert folder.exists()
        assert read(target) == OLD
    assert read(target) == NEW


# --- reading while another process saves ---


def read_while_saving(target: Path, saves: list[dict[str, str]]) -> tuple[dict[str, str], int]:
    """Read file by file, the folder being replaced by the next of ``saves`` after the first file of every attempt."""
    attempts = 0

    def read_slowly() -> dict[str, str]:
        nonlocal attempts
        attempts += 1
        found = {"config.json": (target / "config.json").read_text()}
        if saves:
            with replace_folder(target) as folder:
                write(folder, saves.pop(0))
        return found | {name: (target / name).read_text() for name in ("1_Dense/config.json", "tokenizer.json")}

    return read_whole(target, read_slowly), attempts


def version(name: str) -> dict[str, str]:
    return dict.fromkeys(("config.json", "1_Dense/config.json", "tokenizer.json"), name)


@pytest.mark.parametrize("swaps", [True, False], ids=["exchange", "two renames"])
def test_what_is_read_while_another_process_saves_is_of_one_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swaps: bool
) -> None:
    if not swaps:
        monkeypatch.setattr(persistence, "_exchange", lambda first, second: False)
    target = tmp_path / "model"
    write(target, version("0"))
    assert read_while_saving(target, []) == (version("0"), 1)
    assert read_while_saving(target, [version("1")]) == (version("1"), 2)
    # A file that went with the old folder is no reason to give up.
    assert read_while_saving(target, [{"config.json": "half"}, version("2")]) == (version("2"), 3)
    with pytest.raises(OSError, match="was replaced 5 times while it was read"):
        read_while_saving(target, [version(str(number)) for number in range(10)])


def test_a_model_saved_while_another_is_being_loaded_does_not_mix_with_it(
    tiny_model: ColBERT, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "model"
    mark(tiny_model, 1.0)
    tiny_model.save_pretrained(str(target))
    mark(tiny_model, 2.0)
    load_gate = NumericalGate.load
    saves = []

    def save_and_load(*arguments: str) -> NumericalGate:  # the projection is read, the gate not yet
        if not saves:
            saves.append(in_child(lambda: tiny_model.save_pretrained(str(target))))
        return load_gate(*arguments)

    monkeypatch.setattr(NumericalGate, "load", staticmethod(save_and_load))
    loaded = ColBERT.from_pretrained(target, device="cpu")
    assert saves == [0]
    parameters = [parameter.detach() for module in (loaded[1], loaded[2]) for parameter in module.parameters()]
    assert {float(parameter.max()) for parameter in parameters} == {2.0}


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs a list of open files")
def test_no_later_folder_gets_the_number_of_the_one_being_read(tmp_path: Path) -> None:
    """A number is given again as soon as it is free, and would pass a folder off as unchanged: it is held open."""
    target = tmp_path / "model"
    write(target, version("0"))
    held = []

    def look() -> None:
        number = target.stat().st_ino
        with replace_folder(target) as folder:
            write(folder, version("1"))
        numbers = set()
        for descriptor in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):  # that of the list itself
                numbers.add(os.fstat(int(descriptor)).st_ino)
        held.append(number in numbers)

    with pytest.raises(OSError, match="was replaced"):
        read_whole(target, look)
    assert held
    assert all(held)


def test_an_error_of_an_unchanged_folder_is_raised_at_once(tmp_path: Path) -> None:
    attempts = []

    def fail_to_read() -> None:
        attempts.append(1)
        raise ValueError("damaged")

    with pytest.raises(ValueError, match="damaged"):
        read_whole(tmp_path, fail_to_read)
    assert len(attempts) == 1


@pytest.mark.parametrize("links", [True, False], ids=["hard links", "copies"])
def test_a_frozen_model_stays_as_it_was(
    tiny_model: ColBERT, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    target = tmp_path / "model"
    mark(tiny_model, 1.0)
    tiny_model.save_pretrained(str(target))
    write(target, BESIDE)
    if not links:

        def refuse(*arguments: object, **options: object) -> None:
            raise OSError(errno.EPERM, "Operation not permitted")

        monkeypatch.setattr(os, "link", refuse)
    with frozen(target) as whole:
        mark(tiny_model, 2.0)
        assert in_child(lambda: tiny_model.save_pretrained(str(target))) == 0
        assert weights(target) == 2.0
        assert weights(whole) == 1.0
        assert model_files(whole) == sorted(read_names(whole)) == model_files(target)
    assert leftovers(target) == []


def test_refuses_a_folder_that_another_process_is_saving_into(tmp_path: Path) -> None:
    target = tmp_path / "model"
    write(target, OLD)
    descriptor = os.open(target, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with pytest.raises(OSError, match="Another process is saving"), replace_folder(target) as folder:
        write(folder, NEW)
    os.close(descriptor)
    assert read(target) == OLD
    assert leftovers(target) == []


def fail(target: Path, error: BaseException) -> None:
    with replace_folder(target) as folder:
        write(folder, NEW)
        raise error


def test_an_error_or_interrupt_in_the_middle_leaves_the_old_model(tmp_path: Path) -> None:
    target = tmp_path / "model"
    write(target, OLD)
    for error in (RuntimeError("broken"), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            fail(target, error)
        assert read(target) == OLD
        assert leftovers(target) == []


def test_says_early_what_cannot_be_saved_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="is a file, not a folder"):
        check_destination(tmp_path / "file")
    (tmp_path / "model" / "inside").mkdir(parents=True)
    for folder in ("model", "model/inside"):
        monkeypatch.chdir(tmp_path / folder)
        with pytest.raises(OSError, match=r"is the working folder, or holds it"):
            check_destination(tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    check_destination("model")
    monkeypatch.setattr(os.path, "ismount", lambda path: True)
    with pytest.raises(OSError, match=r"mount point.*save into a folder inside it"):
        check_destination(tmp_path / "model")
    monkeypatch.undo()
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(PermissionError, match="not writable"):
        check_destination(tmp_path / "new" / "model")


def test_follows_a_link_to_the_folder(tmp_path: Path) -> None:
    write(tmp_path / "disk" / "model", OLD)
    (tmp_path / "link").symlink_to("disk/model")
    with replace_folder(tmp_path / "link") as folder:
        write(folder, NEW)
    assert (tmp_path / "link").is_symlink()
    assert read(tmp_path / "disk" / "model") == NEW


# --- the model itself ---


def weights(folder: Path) -> float:
    """The constant that `mark` filled the projection with, having seen that all parts agree."""
    values = {
        float(tensor.flatten()[0])
        for file in ("1_Dense/model.safetensors", "2_NumericalGate/model.safetensors")
        for tensor in load_file(folder / file).values()
    }
    assert len(values) == 1
    return values.pop()


def mark(model: ColBERT, value: float) -> None:
    with torch.no_grad():
        for module in (model[1], model[2]):
            for parameter in module.parameters():
                parameter.fill_(value)


def test_save_and_load_give_the_same_embeddings(tiny_model: ColBERT, tmp_path: Path) -> None:
    with torch.no_grad():
        tiny_model.numerical_gate.detector[-1].bias.fill_(3.0)
    tiny_model.save_pretrained(str(tmp_path / "model"))
    loaded = ColBERT.from_pretrained(tmp_path / "model", device="cpu")
    for is_query in (True, False):
        for a, b in zip(
            tiny_model.encode(["over 5 kg", "2 GB"], is_query=is_query),
            loaded.encode(["over 5 kg", "2 GB"], is_query=is_query),
            strict=True,
        ):
            np.testing.assert_array_equal(a, b)


def test_a_saved_folder_holds_safetensors_json_tokenizer_card_and_gate_only(
    tiny_model: ColBERT, tmp_path: Path
) -> None:
    tiny_model.save_pretrained(str(tmp_path / "model"))
    files = sorted(read_names(tmp_path / "model"))
    assert all(
        name.endswith((".safetensors", ".json", ".txt"))
        for name in files
        if name not in ("README.md", "numerical_gate.py", "tokenizer.json")
    )
    assert {"README.md", "numerical_gate.py", "modules.json", "model.safetensors", "model_card.json"} <= set(files)
    assert files == model_files(tmp_path / "model")
    modes = {(tmp_path / "model" / name).stat().st_mode & 0o777 for name in files}
    assert len(modes) == 1  # the weights are readable to whom the rest is
    with pytest.raises(ValueError, match="safetensors only"):
        tiny_model.save_pretrained(str(tmp_path / "pickled"), safe_serialization=False)


def read_names(folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]


def test_saving_twice_writes_the_same_bytes(tiny_model: ColBERT, tmp_path: Path) -> None:
    for name in ("first", "second"):
        tiny_model.encode(["over 5 kg"], is_query=name == "first")
        tiny_model.save_pretrained(str(tmp_path / name))
    for file in read_names(tmp_path / "first"):
        assert (tmp_path / "first" / file).read_bytes() == (tmp_path / "second" / file).read_bytes(), file


def test_saving_a_plain_model_over_a_gated_one_leaves_no_gate(
    tiny_base: str, tiny_model: ColBERT, tmp_path: Path
) -> None:
    tiny_model.save_pretrained(str(tmp_path / "model"))
    write(tmp_path / "model", {"checkpoints/state.pt": "kept"})
    ColBERT(tiny_base, numerical_gate=False, device="cpu").save_pretrained(str(tmp_path / "model"))
    names = read_names(tmp_path / "model")
    assert not any("gate" in name.lower() for name in names)
    assert "checkpoints/state.pt" in names


def test_kills_at_random_moments_of_a_real_save(tiny_model: ColBERT, tmp_path: Path) -> None:
    target = tmp_path / "model"
    mark(tiny_model, 0.0)
    tiny_model.save_pretrained(str(target))
    write(target, BESIDE)
    start = time.monotonic()
    tiny_model.save_pretrained(str(target))
    duration = time.monotonic() - start
    generator = random.Random(0)
    found = 0.0
    for trial in range(1, 13):
        mark(tiny_model, float(trial))
        in_child(lambda: tiny_model.save_pretrained(str(target)), kill_after=generator.uniform(0, 1.3 * duration))
        loaded = ColBERT.from_pretrained(target, device="cpu")
        assert float(loaded[1].linear.weight.detach()[0, 0]) == weights(target)
        assert weights(target) in (found, float(trial))
        found = weights(target)
        assert {name: (target / name).read_text() for name in BESIDE} == BESIDE
        assert leftovers(target) == []


def disk_full(model: ColBERT, target: Path) -> str:
    with pytest.raises(OSError, match="disk is full") as caught:
        model.save_pretrained(str(target))
    assert caught.value.errno == errno.ENOSPC
    return str(caught.value)


def test_a_full_disk_leaves_the_old_model(tiny_model: ColBERT, tmp_path: Path) -> None:
    """On a real file system of a few megabytes where this process may mount one, else by a limit on file sizes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=9m", "tmpfs", str(disk)], capture_output=True, check=False
    )
    try:
        target = disk / "model"
        mark(tiny_model, 1.0)
        tiny_model.save_pretrained(str(target))
        mark(tiny_model, 2.0)
        if mounted.returncode == 0:
            message = disk_full(tiny_model, target)
        else:
            limits = resource.getrlimit(resource.RLIMIT_FSIZE)
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, limits[1]))
            try:
                message = disk_full(tiny_model, target)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert "untouched" in message
        assert weights(target) == 1.0
        assert leftovers(target) == []
        ColBERT.from_pretrained(target, device="cpu")
    finally:
        if mounted.returncode == 0:
            subprocess.run(["umount", "--lazy", str(disk)], check=True)  # loaded weights are still mapped


def test_a_file_too_large_leaves_the_old_model(tiny_model: ColBERT, tmp_path: Path) -> None:
    target = tmp_path / "model"
    mark(tiny_model, 1.0)
    tiny_model.save_pretrained(str(target))
    mark(tiny_model, 2.0)

    def save_under_limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        for limit in (100, 50_000, 1_000_000):  # in a JSON file, in the tokenizer, in the weights
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            disk_full(tiny_model, target)

    assert in_child(save_under_limit) == 0
    assert weights(target) == 1.0
    assert leftovers(target) == []


def test_the_trainer_of_sentence_transformers_saves_and_goes_on(tiny_base: str, tmp_path: Path) -> None:
    from datasets import Dataset
    from pylate import losses, utils
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments

    model = ColBERT(tiny_base, device="cpu", embedding_size=16, query_length=16, split_digits=True)
    triplets = Dataset.from_dict(
        {"query": ["over 5 kg"] * 4, "positive": ["It weighs 6 kg."] * 4, "negative": ["It weighs 4 kg."] * 4}
    )

    def trainer(steps: int) -> SentenceTransformerTrainer:
        return SentenceTransformerTrainer(
            model=model,
            args=SentenceTransformerTrainingArguments(
                output_dir=str(tmp_path / "run"),
                max_steps=steps,
                per_device_train_batch_size=2,
                save_steps=1,
                save_total_limit=2,
                report_to="none",
                use_cpu=True,
                disable_tqdm=True,
            ),
            train_dataset=triplets,
            loss=losses.Contrastive(model=model),
            data_collator=utils.ColBERTCollator(model.tokenize),
        )

    trainer(2).train()
    checkpoint = tmp_path / "run" / "checkpoint-2"
    assert {"optimizer.pt", "trainer_state.json", "model.safetensors"} <= {path.name for path in checkpoint.iterdir()}
    loaded = ColBERT.from_pretrained(checkpoint, device="cpu")
    assert loaded.numerical_gate is not None
    assert loaded.split_digits  # although the trainer has saved the tokenizer once more
    resumed = trainer(3)
    resumed.train(resume_from_checkpoint=str(checkpoint))
    assert resumed.state.global_step == 3
    # Saving into a checkpoint again keeps the states of the trainer.
    model.save_pretrained(str(checkpoint))
    assert {"optimizer.pt", "trainer_state.json"} <= {path.name for path in checkpoint.iterdir()}
