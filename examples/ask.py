"""Ask a trained model: search a benchmark's sentences, colour what satisfies a condition, explain the best answer.

python examples/ask.py --model outputs/quickstart/numcolbert --benchmark outputs/quickstart/data/benchmark
python examples/ask.py --model ... --benchmark ... "drugs with a dose below 20 mg"
"""

from __future__ import annotations

import argparse
import sys

from rich.console import Console

from numcolbert import ColBERT
from numcolbert.corpus.benchmark import load_benchmark
from numcolbert.evaluation.search import retrieve
from numcolbert.retrieval.highlighting import highlight, query_conditions


def main() -> None:
    """Answer the queries of the command line, or one query of the benchmark for each operator."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--model", required=True, help="folder or Hub id")
    parser.add_argument("--benchmark", required=True, help="folder of the benchmark whose sentences are searched")
    parser.add_argument("-k", type=int, default=5, help="answers to show")
    parser.add_argument("queries", nargs="*", help="queries; none: three of the benchmark")
    options = parser.parse_args()
    console = Console()
    try:
        benchmark = load_benchmark(options.benchmark)
        model = ColBERT.from_pretrained(options.model)
    except (ValueError, OSError) as error:
        sys.exit(f"ask.py: {error}")

    queries = options.queries
    if not queries:
        by_operator = {row["condition"]["operator"]: row["text"] for row in reversed(list(benchmark.queries))}
        queries = [by_operator[operator] for operator in (">", "<", "=") if operator in by_operator]
    texts = dict(zip(benchmark.corpus["id"], benchmark.corpus["text"], strict=True))
    documents = model.encode(list(texts.values()), is_query=False, show_progress_bar=True)
    rankings = retrieve(model.encode(queries, is_query=True), documents, list(texts), k=options.k)
    for query, ranking in zip(queries, rankings, strict=True):
        console.rule(f"[bold]{query}")
        conditions = query_conditions(query)
        for place, (document, score) in enumerate(ranking, start=1):
            console.print(f"{place:3d} {score:7.3f}  ", highlight(texts[document], conditions)[0])
        console.print(model.explain(query, texts[ranking[0][0]]))


if __name__ == "__main__":
    main()
