"""Compare this package's reading of quantities with quantulum3's: accuracy on hand labels, and speed.

Both read the sentences labelled by hand under ``tests/data`` (text from ``../shared/data`` or
``$NUMCOLBERT_DATA``) and, for speed, the same sentences of Reuters train on one core; processor time counts, which
other work on the machine disturbs least. quantulum3 runs in an interpreter of its own, because it needs an older
scikit-learn::

    python -m venv QVENV && QVENV/bin/pip install quantulum3 stemming "scikit-learn<1.9"
    python benchmarks/quantities.py --quantulum-python QVENV/bin/python

Without ``--quantulum-python`` only our own figures are printed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from numcolbert.quantities import compatible, convert, extract_quantities  # noqa: E402
from tests.quantities.labels import CORPORA, SETS, LabelledSentence, data_folder, load_labelled  # noqa: E402

Found = tuple[float, str | None, int, int]
"""Value, unit, start and end of one quantity found."""

# Read sentences as JSON from standard input, write what quantulum3 finds; time only the parsing.
_QUANTULUM = r"""
import json, sys, time, warnings
warnings.filterwarnings("ignore")
from quantulum3 import parser
job = json.load(sys.stdin)
parser.parse("It costs 5 dollars.")  # loads its tables and classifier
out, failed = [], 0
started = time.process_time()
for text in job["texts"]:
    try:
        found = parser.parse(text)
    except Exception:
        found, failed = [], failed + 1
    out.append(found)
seconds = time.process_time() - started
rows = [[[q.value, q.unit.name, q.span[0], q.span[1]] for q in found] for found in out]
json.dump({"rows": rows, "failed": failed, "seconds": seconds}, sys.stdout)
"""

# Names of quantulum3 that differ from ours; all others are resolved through our tables, which know pint's names.
_QUANTULUM_UNITS = {
    "dimensionless": None,
    "percentage": "percent",
    "dollar": "USD",
    "pound sterling": "GBP",
    "cent": "USD_cent",
    "pound-mass": "pound",
    "inch of mercury": "inch_Hg",
    "millimetre of mercury": "millimeter_Hg",
    "minute": "minute",
}


def ours(text: str) -> list[Found]:
    return [(q.value, q.unit, *q.span) for q in extract_quantities(text)]


def same_value(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-9 * max(abs(a), abs(b))


def right_unit(unit: str | None, accepted: tuple[str | None, ...]) -> bool:
    """Tell whether a unit is one of the accepted ones, however it is spelt ("foot**2", "foot ** 2")."""
    return any(
        unit == other
        or (unit is not None and other is not None and compatible(unit, other) and convert(1.0, unit, other) == 1.0)
        for other in accepted
    )


def score(sentences: list[LabelledSentence], found: list[list[Found]]) -> dict[str, float]:
    """Compare what was found with the labels.

    A quantity found matches a label where their spans overlap, one to one in the order of the text. *Precision* and
    *recall* count matches, whatever their value. *Value* is the share of labelled quantities that are matched with
    exactly their value; *exact* with their value and an accepted unit; *span* with their value, unit and exact span.
    """
    matched = labelled = predicted = value = exact = span = 0
    for sentence, quantities in zip(sentences, found, strict=True):
        free = list(quantities)
        for label in sentence.quantities:
            overlapping = [q for q in free if q[2] < label.end and label.start < q[3]]
            if label.optional:
                free = [q for q in free if q not in overlapping]
                continue
            labelled += 1
            if not overlapping:
                continue
            best = max(overlapping, key=lambda q: (same_value(q[0], label.value), right_unit(q[1], label.units)))
            free.remove(best)
            matched += 1
            predicted += 1
            if same_value(best[0], label.value):
                value += 1
                if right_unit(best[1], label.units):
                    exact += 1
                    span += (best[2], best[3]) == (label.start, label.end)
        predicted += len(free)
    return {
        "labels": labelled,
        "precision": matched / max(predicted, 1),
        "recall": matched / labelled,
        "value": value / labelled,
        "exact": exact / labelled,
        "span": span / labelled,
    }


def quantulum(python: str, texts: list[str]) -> dict:
    job = json.dumps({"texts": texts})
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [python, "-c", _QUANTULUM], input=job, capture_output=True, text=True, check=False, env=environment
    )
    if done.returncode:
        sys.exit(f"quantulum3 failed under {python}: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout)


def quantulum_found(rows: list[list[list]]) -> list[list[Found]]:
    return [[(value, _QUANTULUM_UNITS.get(name, name), start, end) for value, name, start, end in row] for row in rows]


def ours_seconds(texts: list[str]) -> float:
    started = time.process_time()
    for text in texts:
        extract_quantities(text)
    return time.process_time() - started


def reuters_sentences(count: int) -> list[str]:
    """Cut the first sentences of Reuters train at full stops and line ends."""
    sentences: list[str] = []
    with gzip.open(data_folder() / "reuters" / "train.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            text = json.loads(line)["text"]
            sentences += [s.strip() for s in re.split(r"(?<=[.!?])\s+(?=[A-Z])|\n+", text) if s.strip()]
            if len(sentences) >= count:
                break
    return sentences[:count]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--quantulum-python", help="interpreter that can import quantulum3")
    parser.add_argument("--sentences", type=int, default=20_000, help="sentences of Reuters for the speed of both")
    parser.add_argument(
        "--repeat", type=int, default=3, help="timed runs of ours, the fastest counts; quantulum3 has one"
    )
    arguments = parser.parse_args()

    print(
        "| set | corpus | reader | labels | precision | recall | exact value | exact value and unit | and exact span |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for which, corpus in product(SETS, CORPORA):
        sentences = load_labelled(corpus, which)
        if sentences is None:
            sys.exit(f"{data_folder() / corpus} is absent: set NUMCOLBERT_DATA to the folder that holds the corpora")
        texts = [sentence.text for sentence in sentences]
        readers = {"ours": [ours(text) for text in texts]}
        if arguments.quantulum_python:
            readers["quantulum3"] = quantulum_found(quantulum(arguments.quantulum_python, texts)["rows"])
        for name, found in readers.items():
            s = score(sentences, found)
            figures = " | ".join(f"{s[key]:.3f}" for key in ("precision", "recall", "value", "exact", "span"))
            print(f"| {which} | {corpus} | {name} | {s['labels']} | {figures} |")

    texts = reuters_sentences(arguments.sentences)
    ours("It costs 5 dollars.")
    seconds = {"ours": min(ours_seconds(texts) for _ in range(arguments.repeat))}
    failed = 0
    if arguments.quantulum_python:
        theirs = quantulum(arguments.quantulum_python, texts)
        seconds["quantulum3"], failed = theirs["seconds"], theirs["failed"]
    print("\n| reader | sentences of Reuters train | seconds of processor time | sentences per second |")
    print("| --- | --- | --- | --- |")
    for name, spent in seconds.items():
        print(f"| {name} | {len(texts)} | {spent:.2f} | {len(texts) / spent:.0f} |")
    if "quantulum3" in seconds:
        ratio = seconds["quantulum3"] / seconds["ours"]
        print(f"\nOurs is {ratio:.0f} times as fast; quantulum3 raised an error on {failed} sentences.")


if __name__ == "__main__":
    main()
