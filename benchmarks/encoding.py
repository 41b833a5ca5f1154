"""Cost of the gate: encoding with NumColBERT against the plain ColBERT of PyLate over the same encoder weights.

Queries at batch 1 and 32, documents at batch 32, and the peak memory of a process that does nothing else. The
detector is made to fire on every token of every query, the most work the gate can have. Texts are queries and
sentences of a benchmark (numcolbert writes one into every data folder)::

    python benchmarks/encoding.py --benchmark outputs/quickstart/data/benchmark --output results/cost
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import pylate.models
import torch
from measuring import in_fresh_process, peak_memory, ratio, side_by_side, write

from numcolbert import ColBERT
from numcolbert.corpus.benchmark import load_benchmark

GATED, PLAIN = "NumColBERT", "pylate.models.ColBERT"


def load(side: str, folder: str) -> pylate.models.ColBERT:
    """Open the encoder with an ever open gate, or as PyLate does."""
    torch.manual_seed(0)
    if side == PLAIN:
        return pylate.models.ColBERT(folder, device="cpu")
    model = ColBERT(folder, numerical_gate=True, device="cpu")
    torch.nn.init.constant_(model.numerical_gate.detector[-1].bias, 100.0)
    return model


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument(
        "--benchmark", required=True, help="folder of a benchmark: its queries and sentences are encoded"
    )
    parser.add_argument("--base-model", default="packaged:all-MiniLM-L6-v2", help="encoder of both sides")
    parser.add_argument("--rounds", type=int, default=60, help="rounds of every comparison")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch")
    parser.add_argument("--output", type=Path, help="folder for table and figures as JSON and Markdown")
    parser.add_argument("--peak-of", nargs=3, metavar=("SIDE", "FOLDER", "KIND"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    benchmark = load_benchmark(options.benchmark)
    texts = {"queries": list(benchmark.queries["text"])[:32], "documents": list(benchmark.corpus["text"])[:32]}

    if options.peak_of:
        side, folder, kind = options.peak_of
        model = load(side, folder)
        for _ in range(4):
            model.encode(texts[kind], is_query=kind == "queries", batch_size=32, show_progress_bar=False)
        print(peak_memory())
        return

    with tempfile.TemporaryDirectory() as folder:
        torch.manual_seed(0)
        ColBERT(options.base_model, numerical_gate=False, device="cpu", document_length=96).save_pretrained(folder)
        models = {side: load(side, folder) for side in (GATED, PLAIN)}
        gated = models[GATED].encode(texts["queries"], is_query=True)
        assert all(abs((tokens**2).sum(-1) ** 0.5 - 1).max() > 1e-4 for tokens in gated), "the gate is not open"
        rows = []
        for kind, size, batch in (("queries", 1, 1), ("queries", 32, 32), ("documents", 32, 32)):
            seconds = side_by_side(
                {
                    side: lambda model=model, kind=kind, size=size, batch=batch: model.encode(
                        texts[kind][:size], is_query=kind == "queries", batch_size=batch, show_progress_bar=False
                    )
                    for side, model in models.items()
                },
                options.rounds * (4 if size == 1 else 1),
            )
            rows.append({"texts": kind, "batch": batch, **ratio(seconds, GATED, PLAIN)})
        memory = []
        common = ["--benchmark", options.benchmark, "--threads", str(options.threads)]
        for kind in ("queries", "documents"):
            peaks = {side: in_fresh_process([*common, "--peak-of", side, folder, kind]) for side in models}
            memory.append(
                {"texts": kind, **{f"{side} MiB": peak for side, peak in peaks.items()},
                 "ratio": peaks[GATED] / peaks[PLAIN]}
            )  # fmt: skip
    write(options.output, "encoding", "Cost of the gate", {"Processor time": rows, "Peak memory": memory})


if __name__ == "__main__":
    main()
