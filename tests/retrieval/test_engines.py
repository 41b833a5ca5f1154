import os
import pickle

import pytest

from numcolbert.retrieval.engines import build_index, check_voyager, open_index, search_index
from numcolbert.retrieval.exact import ExactIndex


@pytest.fixture(autouse=True)
def _voyager():
    try:
        check_voyager()
    except ImportError as error:
        pytest.skip(str(error))


def test_an_index_on_disk_ranks_gated_queries_as_exact_search(tmp_path, rng, make_texts, make_queries):
    # No more tokens than the 100 candidates of a query token: Voyager then misses none.
    # Positive vectors: PyLate's scoring takes 0 for a maximum below it, that of the padding.
    documents, queries = ([abs(e) for e in texts] for texts in (make_texts(rng, 25, 4), make_queries(rng, 4)))
    build_index("voyager", tmp_path, "v", [str(i) for i in range(25)], documents, 16)
    found = search_index(open_index("voyager", tmp_path, "v", 16), queries, 10)
    for hits, expected in zip(found, ExactIndex(documents).search(queries, k=10), strict=True):
        assert [int(name) for name, _ in hits] == [position for position, _ in expected]
        assert [score for _, score in hits] == pytest.approx([score for _, score in expected], rel=1e-4)


class Code:
    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return os.mkdir, (self.file,)


def test_files_that_could_run_code_are_refused(tmp_path, rng, make_texts):
    build_index("voyager", tmp_path, "v", ["a", "b"], make_texts(rng, 2, 3), 16)
    mapping = tmp_path / "v" / "document_ids_to_embeddings.pkl"
    mapping.write_bytes(pickle.dumps({"a": Code(str(tmp_path / "ran"))}))
    with pytest.raises(ValueError, match=r"holds more than document ids \(it refers to posix.mkdir\)"):
        open_index("voyager", tmp_path, "v", 16)
    assert not (tmp_path / "ran").exists()
    pickle.loads(mapping.read_bytes())
    assert (tmp_path / "ran").exists()  # what was refused would have run
