import pytest

from numcolbert.retrieval.highlighting import describe, highlight, query_conditions


def coloured(text, query):
    shown, verdict = highlight(text, query_conditions(query))
    assert shown.plain == text
    return {text[span.start : span.end]: str(span.style).split()[-1] for span in shown.spans}, verdict


@pytest.mark.parametrize(
    ("query", "text", "colours", "verdict"),
    [
        ("SSDs over 500 GB", "It holds 1 TB.", {"1 TB": "green"}, "met"),
        ("SSDs over 500 GB", "It holds 256 GB.", {"256 GB": "red"}, "violated"),
        ("SSDs over 500 GB", "It moves 600 Mbps.", {}, "unknown"),
        ("SSDs over 500 GB", "It holds 256 GB or 1 TB.", {"256 GB": "red", "1 TB": "green"}, "met"),
        ("laptops under 2 kg with at least 16 GB", "1.1 kg, 8 GB", {"1.1 kg": "green", "8 GB": "red"}, "violated"),
        ("laptops under 2 kg with at least 16 GB", "1.1 kg, 32 GB", {"1.1 kg": "green", "32 GB": "green"}, "met"),
        ("laptops under 2 kg with at least 16 GB", "1.1 kg", {"1.1 kg": "green"}, "unknown"),
        ("who founded the company", "It holds 1 TB.", {}, "unknown"),
    ],
)
def test_colours_and_verdicts(query, text, colours, verdict):
    assert coloured(text, query) == (colours, verdict)


def test_a_quantity_without_marks_is_an_equality():
    assert [describe(c) for c in query_conditions("exports of 500,000 tonnes")] == ["= 500,000 metric_ton"]
    assert coloured("It exported 500,000 tonnes.", "exports of 500,000 tonnes")[1] == "met"
