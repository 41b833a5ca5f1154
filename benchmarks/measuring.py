"""What the benchmarks share: timing side by side, peak memory, embeddings kept on disk, reports."""

from __future__ import annotations

import hashlib
import json
import resource
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch import Tensor

from numcolbert import ColBERT
from numcolbert.evaluation.report import machine, versions
from numcolbert.retrieval.index_folder import fingerprint
from numcolbert.training import NumericalCollator

Row = dict[str, Any]
CHUNK = 1000
"""Texts in one file of a cache of embeddings."""


def side_by_side(actions: dict[str, Callable[[], object]], rounds: int, warm_up: int = 2) -> dict[str, list[float]]:
    """Processor seconds of every action, taken in turns: what disturbs the machine meets all alike."""
    seconds: dict[str, list[float]] = {name: [] for name in actions}
    for number in track(range(rounds + warm_up), description="Timing"):
        for name in actions if number % 2 else reversed(actions):
            start = time.process_time()
            actions[name]()
            if number >= warm_up:
                seconds[name].append(time.process_time() - start)
    return seconds


def ratio(seconds: dict[str, list[float]], name: str, peer: str) -> Row:
    """Compare an action with its peer round by round: median ratio and its quartiles."""
    ratios = [ours / theirs for ours, theirs in zip(seconds[name], seconds[peer], strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return {
        "measured": name,
        "peer": peer,
        "ms": 1000 * statistics.median(seconds[name]),
        "peer ms": 1000 * statistics.median(seconds[peer]),
        "ratio": middle,
        "quartiles": f"{low:.3f} to {high:.3f}",
        "rounds": len(ratios),
    }


def peak_memory() -> float:
    """Most memory this process has held so far, MiB."""
    # getrusage would answer with the parent's memory, which a child keeps through exec; the high-water mark is its own.
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text(encoding="utf-8").partition("VmHWM:")[2].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 1024)


def in_fresh_process(arguments: Sequence[str]) -> float:
    """Run a benchmark again with other arguments and read the number it prints last."""
    finished = subprocess.run([sys.executable, sys.argv[0], *arguments], capture_output=True, text=True, check=False)
    if finished.returncode:
        raise RuntimeError(f"{' '.join(arguments)} failed:\n{finished.stderr[-2000:]}")
    return float(finished.stdout.split()[-1])


def features_of(model: ColBERT, rows: list[dict[str, Any]]) -> list[dict[str, Tensor]]:
    """Collate triplets as the trainer does: features of queries, positives and negatives."""
    batch = NumericalCollator(model)(rows)
    return [
        {key[len(column) + 1 :]: value for key, value in batch.items() if key.startswith(column + "_")}
        for column in ("query", "positive", "negative")
    ]


def encode_documents(model: ColBERT, texts: Sequence[str], cache: Path) -> list[np.ndarray]:
    """Encode documents, a file for every thousand; what a file holds already is read instead.

    A file is named by its texts and the encoder, so one folder serves any model, corpus and number of texts, and a
    killed run goes on where it stopped.
    """
    cache.mkdir(parents=True, exist_ok=True)
    encoder = fingerprint(model)
    embeddings: list[np.ndarray] = []
    for start in track(range(0, len(texts), CHUNK), description="Encoding documents"):
        part = list(texts[start : start + CHUNK])
        file = cache / f"{hashlib.sha256(json.dumps([encoder, part]).encode()).hexdigest()[:32]}.npz"
        if not file.exists():
            encoded = model.encode(part, is_query=False, batch_size=16, show_progress_bar=False)
            unfinished = file.with_suffix(".tmp.npz")
            np.savez(unfinished, tokens=np.concatenate(encoded), lengths=[len(tokens) for tokens in encoded])
            unfinished.rename(file)
        stored = np.load(file)
        embeddings += np.split(stored["tokens"], np.cumsum(stored["lengths"])[:-1])
    return embeddings


def show(title: str, rows: Iterable[Row]) -> None:
    """Print rows as a table."""
    rows = list(rows)
    table = Table(title=title)
    for column in rows[0]:
        table.add_column(column)
    for row in rows:
        table.add_row(*map(_cell, row.values()))
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def write(output: Path | None, name: str, title: str, tables: dict[str, list[Row]], **facts: Any) -> None:
    """Print the tables; with an output folder keep them as JSON and Markdown, with command, machine and versions."""
    for heading, rows in tables.items():
        show(heading, rows)
    if output is None:
        return
    output.mkdir(parents=True, exist_ok=True)
    command = shlex.join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]])
    report = {"command": command, "machine": machine(), "versions": versions(), **facts, "tables": tables}
    (output / f"{name}.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
    lines = [f"# {title}", "", "```", command, "```", ""]
    for key in ("machine", "versions"):
        lines.append(f"{key.capitalize()}: " + ", ".join(f"{k} {v}" for k, v in report[key].items()) + ".  ")
    lines += [f"{key}: {value}  " for key, value in facts.items()]
    for heading, rows in tables.items():
        lines += ["", f"## {heading}", "", _line(rows[0]), _line("---" for _ in rows[0])]
        lines += [_line(map(_cell, row.values())) for row in rows]
    (output / f"{name}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 10 else f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
