import pytest

from numcolbert.modeling.explanation import Explanation, TokenExplanation


def rows_of(tokens, document=None):
    return str(Explanation("0 0 0", tokens, document, None if document is None else 10.0)).splitlines()


def test_tokens_that_fill_up_a_query_share_a_row():
    zeros = [TokenExplanation("0", 0.9, 2.0, "0", 2.0, 0.2)] * 3
    masks = [TokenExplanation("[MASK]", p, 1.0, word, 1.0, 0.1) for p, word in ((0.1, "a"), (0.3, "a"), (0.2, "b"))]
    separator = TokenExplanation("[SEP]", 0.0, 1.0, "a", 1.0, 0.1)
    _query, _document, _header, *rows, _score = rows_of([*zeros, separator, *masks], "0 a b")
    assert [row.split()[0] for row in rows] == ["0", "0", "0", "[SEP]", "[MASK]"]
    assert rows[-1].split() == ["[MASK]", "×3", "0.30", "1.00", "(2", "tokens)", "3.000", "30.0%"]


@pytest.mark.parametrize("gate", [1.5, 0.0])
def test_an_open_gate_is_never_hidden(gate):
    masks = [TokenExplanation("[MASK]", 0.1, 1.0)] * 2
    rows = rows_of([*masks, TokenExplanation("[MASK]", 0.9, gate), *masks, *masks])
    assert [row.split()[-1] for row in rows[2:]] == ["1.00", "1.00", f"{gate:.2f}", "1.00"]
    assert rows[-1].split() == ["[MASK]", "×4", "0.10", "1.00"]
