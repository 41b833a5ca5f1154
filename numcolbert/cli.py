"""The command ``numcolbert``: index a corpus, search it from the terminal."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from numcolbert.modeling import ColBERT
from numcolbert.modeling.persistence import is_path
from numcolbert.retrieval.highlighting import describe, highlight, query_conditions
from numcolbert.retrieval.index_folder import ENGINES, OpenIndex, build

__all__ = ["main"]

_DESCRIPTION = """\
Search sentences by what they say and by the numbers they hold.

  numcolbert index CORPUS INDEX_DIR --model MODEL      encode a corpus, once
  numcolbert search INDEX_DIR "QUERY"                  ask it, as often as you like

numcolbert COMMAND --help explains each."""

_INDEX = """\
Encode a corpus and build an index of it.

CORPUS is a .txt file with one sentence a line, or .jsonl with one object a line; either may end in .gz. It is streamed:
memory does not grow with the text, only PLAID's and Voyager's own tables do. If the run is killed, the same command
goes on where it stopped, and no sentence is encoded or entered twice."""

_INDEX_EPILOG = """\
engines:
  plaid    compressed (--nbits), fast; the usual choice on one machine
  voyager  HNSW over whole vectors, in memory; up to some 100,000 sentences
  qdrant   a server or cluster at --qdrant-url; without one, a local store that scores every sentence (up to 20,000).
           An API key is read from the environment variable QDRANT_API_KEY and is not stored

examples:
  numcolbert index news.jsonl.gz indexes/news --model outputs/quickstart/numcolbert
  numcolbert index trials.jsonl indexes/trials --model org/model --text-column abstract --id-column pmid
  numcolbert index lines.txt indexes/lines --model org/model --engine qdrant --qdrant-url http://localhost:6333 \\
      --collection lines --shard-number 6 --replication-factor 2
"""

_SEARCH = """\
Search an index. Quantities that satisfy the query's condition are green, those that violate it red; quantities of
another kind stay plain. The column "condition" says the same in words."""

_SEARCH_EPILOG = """\
examples:
  numcolbert search indexes/news "companies with revenue above 1.2 billion dollars"
  numcolbert search indexes/trials "trials with at least 200 patients" -k 20 --explain
"""

_VERDICTS = {"met": "[green]met[/green]", "violated": "[red]violated[/red]", "unknown": ""}


def _positive(text: str) -> int:
    value = int(text) if text.isdecimal() else 0
    if value < 1:
        raise ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return value


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="numcolbert",
        description=_DESCRIPTION,
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    index = commands.add_parser(
        "index",
        help="encode a corpus and build an index of it",
        description=_INDEX,
        epilog=_INDEX_EPILOG,
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    index.add_argument("corpus", metavar="CORPUS", help=".txt, .jsonl, .txt.gz or .jsonl.gz file")
    index.add_argument("index_dir", metavar="INDEX_DIR", help="folder of the index: new, or left by a killed run")
    index.add_argument("--model", required=True, metavar="DIR_OR_ID", help="model folder or Hub id")
    index.add_argument("--engine", choices=ENGINES, default="plaid", help="default: plaid")
    index.add_argument("--text-column", default="text", metavar="NAME", help="column of the text (default: text)")
    index.add_argument("--id-column", default="id", metavar="NAME", help="column of the id (default: id)")
    split = index.add_mutually_exclusive_group()
    split.add_argument(
        "--split", dest="split", action="store_true", help="split texts into sentences (default: .jsonl)"
    )
    split.add_argument("--no-split", dest="split", action="store_false", help="index texts whole (default: .txt)")
    index.set_defaults(split=None)
    index.add_argument("--batch-size", type=_positive, default=32, metavar="N", help="sentences at once (default: 32)")
    index.add_argument(
        "--shard-size", type=_positive, default=2000, metavar="N", help="sentences between two savings (default: 2000)"
    )
    index.add_argument("--device", help="such as cpu or cuda:0; chosen for you if not given")
    index.add_argument("--nbits", type=_positive, metavar="N", help="plaid: bits of a residual (default: 4)")
    index.add_argument("--seed", type=int, metavar="N", help="plaid: seed of its k-means (default: 42)")
    index.add_argument("--qdrant-url", dest="url", metavar="URL", help="qdrant: address of the server")
    index.add_argument("--collection", metavar="NAME", help="qdrant: name of the collection (default: numcolbert)")
    index.add_argument("--shard-number", type=_positive, metavar="N", help="qdrant: shards of the collection")
    index.add_argument("--replication-factor", type=_positive, metavar="N", help="qdrant: copies of each shard")

    search = commands.add_parser(
        "search",
        help="search an index",
        description=_SEARCH,
        epilog=_SEARCH_EPILOG,
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    search.add_argument("index_dir", metavar="INDEX_DIR", help="folder that numcolbert index made")
    search.add_argument("query", metavar="QUERY", help="what to look for, in quotation marks")
    search.add_argument("-k", type=_positive, default=10, metavar="N", help="sentences to show (default: 10)")
    search.add_argument("--explain", action="store_true", help="show how the best sentence scores, token by token")
    search.add_argument("--model", metavar="DIR_OR_ID", help="the model, if it is no longer where it was")
    search.add_argument("--device", help="such as cpu or cuda:0; chosen for you if not given")
    return parser


_OPTIONS = {
    "plaid": ("nbits", "seed"),
    "voyager": (),
    "qdrant": ("url", "collection", "shard_number", "replication_factor"),
}


def _engine_options(options: Namespace) -> dict[str, str | int]:
    given: dict[str, str | int] = {}
    for engine, names in _OPTIONS.items():
        for name in names:
            value = getattr(options, name)
            if value is None:
                continue
            if engine != options.engine:
                flag = "--qdrant-url" if name == "url" else "--" + name.replace("_", "-")
                raise ValueError(f"{flag} is a setting of {engine}, and the engine is {options.engine}: leave it out")
            given[name] = value
    return given


def _index(options: Namespace, console: Console) -> None:
    engine_options = _engine_options(options)
    if not Path(options.corpus).is_file():
        raise ValueError(f"there is no file {options.corpus}: check the path of the corpus")
    model = ColBERT.from_pretrained(options.model, device=options.device)
    if model._kind in ("plain encoder", "Sentence Transformers model"):
        # Its projection was drawn just now: search could never draw it again.
        raise ValueError(f"{options.model} is a {model._kind}, not a ColBERT: train one first, with train.py")
    name = options.model
    if is_path(name):
        name = str(Path(name).expanduser().resolve())  # search may run elsewhere
    manifest = build(
        options.corpus,
        options.index_dir,
        model,
        name,
        options.engine,
        text_column=options.text_column,
        id_column=options.id_column,
        split=options.split,
        batch_size=options.batch_size,
        shard_size=options.shard_size,
        options=engine_options,
        console=console,
    )
    console.print(f"Indexed {manifest.sentences:,} sentences of {options.corpus}. Ask them:")
    console.print(f'  numcolbert search {options.index_dir} "..."', markup=False, highlight=False)


def _search(options: Namespace, console: Console) -> None:
    if not options.query.strip():
        raise ValueError("the query is empty: say what to look for")
    index = OpenIndex(options.index_dir, options.model, options.device)
    hits = index.search(options.query, options.k)
    conditions = query_conditions(options.query)
    if conditions:
        console.print("Condition: " + " and ".join(map(describe, conditions)), markup=False, highlight=False)
    else:
        console.print("No condition found: the query names no quantity, so nothing is coloured.")
    table = Table("", "score", "condition", "sentence", "id", box=None, header_style="bold")
    for place, hit in enumerate(hits, start=1):
        text, verdict = highlight(hit.text, conditions)
        table.add_row(str(place), f"{hit.score:.3f}", _VERDICTS[verdict], text, Text(hit.id, style="dim"))
    console.print(table)
    if options.explain and hits:
        console.print(index.model.explain(options.query, hits[0].text))


def main(arguments: Sequence[str] | None = None, console: Console | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments
        Command line; defaults to that of the process.
    console
        Where to print; defaults to the terminal.

    Returns
    -------
    int
        Exit status: 0, 2 for input that cannot be used, or 130 when interrupted.
    """
    options = _parser().parse_args(arguments)
    console = console or Console()
    run = _index if options.command == "index" else _search
    try:
        run(options, console)
    except (ValueError, OSError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted: the same command goes on from here", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
