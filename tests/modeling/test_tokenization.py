"""Digit splitting through save and load, and spans against the tokenizer's own decoding."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from numcolbert.modeling.base_model import packaged_base_model
from numcolbert.modeling.tokenization import align_spans, split_digits, splits_digits

TOKENIZER = AutoTokenizer.from_pretrained(packaged_base_model())


def test_every_digit_is_a_token_and_words_stay_as_they_were():
    split = split_digits(TOKENIZER)
    assert split.tokenize("revenue of 1,200.5 dollars") == [
        "revenue",
        "of",
        "1",
        ",",
        "2",
        "0",
        "0",
        ".",
        "5",
        "dollars",
    ]
    assert split.tokenize("no numbers at all here") == TOKENIZER.tokenize("no numbers at all here")
    assert split("a b")["input_ids"] == TOKENIZER("a b")["input_ids"]
    assert not splits_digits(TOKENIZER)


def test_the_digit_step_survives_saving(tmp_path):
    split_digits(TOKENIZER).save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert splits_digits(loaded)
    assert loaded.tokenize("1987") == ["1", "9", "8", "7"]


@settings(deadline=None, max_examples=80)
@given(
    before=st.text(alphabet="abc xyz,.é😀 ", max_size=20),
    inside=st.from_regex(r"[0-9]{1,6}(\.[0-9]{1,3})? (kg|dollars)", fullmatch=True),
    after=st.text(alphabet="abc xyz,.é😀 ", max_size=20),
    split=st.booleans(),
    prefixed=st.booleans(),
)
def test_exactly_the_tokens_of_the_span_are_marked(before, inside, after, split, prefixed):
    tokenizer = split_digits(TOKENIZER) if split else TOKENIZER
    text = f"{before} {inside} {after}"
    start = len(before) + 1
    aligned = align_spans(tokenizer, [text], [[(start, start + len(inside))]], 200, 202, prefixed)[0]
    ids = tokenizer(text.strip())["input_ids"]
    if prefixed:
        ids.insert(1, 0)
    marked = [ids[column] for column in aligned.nonzero().flatten().tolist()]
    assert marked == tokenizer(inside, add_special_tokens=False)["input_ids"]


def test_a_span_beyond_the_window_marks_nothing():
    text = "word " * 50 + "5 kg"
    assert not align_spans(TOKENIZER, [text], [[(250, 254)]], 31, 32, True).any()


def test_several_spans_are_numbered():
    text = "12 pct and 5 kg"
    aligned = align_spans(TOKENIZER, [text], [[(0, 6), (11, 15)]], 31, 9, True)[0]
    assert aligned.tolist() == [0, 0, 1, 1, 1, 0, 2, 2, 0]


def test_slow_tokenizers_are_refused():
    class Slow:
        is_fast = False

    with pytest.raises(ValueError, match=r"tokenizer\.json"):
        split_digits(Slow())
