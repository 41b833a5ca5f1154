import gzip
import json

import pytest
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st

from numcolbert.corpus.sentences import document_of, read_sentences, split_sentences

KEPT_TOGETHER = [
    "Acme Inc. <ACM> said it sold 1.2 mln dlrs of notes.",
    "The U.S. Treasury sold 9.75 billion dlrs of bonds.",
    "J. P. Morgan and Co. Ltd. rose 1.5 pct vs. 1.2 pct.",
    "Dr. Smith gave 2.5 mg (i.e. 0.5 ml) per kg.",
    "Doses (Fig. 2) were 5.0 mg and approx. 12 mg.",
]


@pytest.mark.parametrize("sentence", KEPT_TOGETHER)
def test_abbreviations_and_decimals_do_not_end_a_sentence(sentence):
    assert split_sentences(sentence) == [sentence]


def test_neighbours_are_separated():
    assert split_sentences(" ".join(KEPT_TOGETHER)) == KEPT_TOGETHER


def test_section_headers_and_blank_lines_separate():
    text = (
        "TITLE: Iron in anaemia\n\n  ABSTRACT.METHODS:\nWe gave 5 mg.\n\n"
        "ABSTRACT.RESULTS:\nIt rose to 11.2 g/dL. No harm."
    )
    assert split_sentences(text) == ["Iron in anaemia", "We gave 5 mg.", "It rose to 11.2 g/dL.", "No harm."]


def test_reference_numbers_after_a_full_stop():
    text = "It measures both legs.38 Good reliability was 0.83. It rose 1.5 Celsius."
    assert split_sentences(text)[0].startswith("It measures both legs.")
    assert len(split_sentences(text)) == 3


@pytest.mark.parametrize("tail", [" Reuter \x03", " REUTER\x03", " Reuter", " Reuters \x03"])
def test_wire_tail_goes(tail):
    assert split_sentences("Sales rose 5 pct." + tail) == ["Sales rose 5 pct."]


@given(st.text(max_size=400))
def test_splitting_keeps_every_word_character(text):
    joined = " ".join(split_sentences(text + " end"))
    assert all(character in text + " end" for character in joined if not character.isspace())
    assert "\x00" not in joined


def test_text_file_has_one_sentence_a_line(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("Net profit was 5 mln dlrs. It rose.\n\nSales were 12 mln dlrs in the year.\n", encoding="utf-8")
    corpus = read_sentences(path)
    assert corpus["text"] == ["Net profit was 5 mln dlrs. It rose.", "Sales were 12 mln dlrs in the year."]
    assert corpus["id"] == ["1#0", "3#0"]


@pytest.mark.parametrize(("name", "pack"), [("a.txt", bytes), ("a.txt.gz", gzip.compress)])
def test_a_line_is_a_sentence_compressed_or_not_marked_or_not(tmp_path, name, pack):
    path = tmp_path / name
    path.write_bytes(pack("\ufeffNet profit was 5 mln dlrs. It rose.\r\n".encode()))
    assert read_sentences(path)["text"] == ["Net profit was 5 mln dlrs. It rose."]


def test_json_lines_compressed_and_data_sets_give_the_same(tmp_path):
    rows = [
        {"id": f"d{n}", "body": f"The plant makes {n} tonnes a year. Its {n} workers were told so on Monday."}
        for n in (3, 4)
    ]
    path = tmp_path / "a.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    first = read_sentences(path, text_column="body")
    second = read_sentences(Dataset.from_list(rows), text_column="body")
    assert first.to_dict() == second.to_dict()
    assert [document_of(i) for i in first["id"]] == ["d3", "d3", "d4", "d4"]


def test_length_bounds_duplicates_and_maximum(tmp_path):
    path = tmp_path / "a.txt"
    lines = [
        "Short.",
        "Output rose to 5 mln barrels.",
        "OUTPUT rose  to 5 mln barrels",
        "Output rose to 6 mln barrels.",
    ]
    path.write_text("\n".join([*lines, "x" * 500]), encoding="utf-8")
    assert read_sentences(path)["text"] == [lines[1], lines[3]]
    assert len(read_sentences(path, deduplicate=False)) == 3
    assert read_sentences(path, max_sentences=1)["text"] == [lines[1]]
    assert len(read_sentences(path, min_characters=1, max_characters=1000)) == 4


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.jsonl",
            b'{"text": "fine enough to be a sentence"}\n{"text": "\xff"}\n',
            r"line 2 of .*a\.jsonl is not UTF-8",
        ),
        ("a.jsonl", b"{broken\n", r"line 1 of .*a\.jsonl is not JSON"),
        ("a.jsonl", b"[1]\n", r"line 1 of .* is not a JSON object"),
        ("a.jsonl", b'{"body": "x"}\n', r"line 1 of .* has no 'text', only 'body': set text_column"),
        ("a.jsonl", b'{"text": null}\n', r"line 1 of .* has None where 'text' must be a string"),
        ("a.jsonl", b'{"text": NaN}\n', r"line 1 of .* has nan where 'text' must be a string"),
        ("a.txt", b"a\nb\n", r"holds no sentence of 25 to 400 characters"),
        ("a.jsonl", b'{"text": "half: \\ud800"}\n', r"line 1 of .* holds half a character"),
        ("a.txt.gz", gzip.compress(b"A sentence of some length.\n" * 99)[:-12], r"is a damaged gzip file"),
        ("a.jsonl.gz", b'{"text": "not compressed"}\n', r"is a damaged gzip file"),
        ("a.csv", b"text\n", r"is neither \.txt nor \.jsonl"),
    ],
)
def test_bad_input_is_named(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_sentences(path)


def test_missing_file_and_column():
    with pytest.raises(FileNotFoundError, match=r"no file nowhere\.txt"):
        read_sentences("nowhere.txt")
    with pytest.raises(ValueError, match="no column 'text', only body"):
        read_sentences(Dataset.from_dict({"body": ["x"]}))
