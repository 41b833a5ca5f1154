"""Run ``numcolbert index`` and kill it, once in each of the places named on the command line.

python killed_runs.py MODEL CORPUS OUTPUT PLACE...   where a place is ENGINE-encode or ENGINE-fill

One process imports, loads the model and forks for each run. It must compute on one thread (OMP_NUM_THREADS=1): a fork
would lose the others.
"""

import os
import signal
import sys

from numcolbert import ColBERT, cli
from numcolbert.retrieval import index_folder


def kill_in_call(owner, name, number):
    """End the process without warning in the given call, after its work is done."""
    original, calls = getattr(owner, name), []

    def killing(*args, **kwargs):
        result = original(*args, **kwargs)
        calls.append(name)
        if len(calls) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, killing)


def main(model, corpus, output, *places):
    loaded = ColBERT.from_pretrained(model, device="cpu")
    ColBERT.from_pretrained = lambda *_, **__: loaded
    for place in places:
        engine, stage = place.split("-")
        child = os.fork()
        if child == 0:
            if stage == "encode":
                kill_in_call(ColBERT, "encode", 3)
            elif engine == "qdrant":
                from numcolbert.retrieval.qdrant import QdrantIndex

                kill_in_call(QdrantIndex, "add_documents", 2)
            else:
                kill_in_call(index_folder, "build_index", 1)
            cli.main(["index", corpus, f"{output}/{place}", "--model", model, "--engine", engine, "--shard-size", "12"])
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), f"{place}: not killed, status {status}"
        assert os.WTERMSIG(status) == signal.SIGKILL


if __name__ == "__main__":
    main(*sys.argv[1:])
