"""What the tokenizer owes to numbers: digits as tokens, and character spans aligned with tokens."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import torch
from tokenizers import pre_tokenizers
from torch import Tensor
from transformers import PreTrainedTokenizerFast

__all__ = ["align_spans", "split_digits", "splits_digits"]

_COPIED_ATTRIBUTES = (
    "model_max_length",
    "padding_side",
    "truncation_side",
    "model_input_names",
    "clean_up_tokenization_spaces",
)


def _require_fast(tokenizer: Any) -> None:
    if not getattr(tokenizer, "is_fast", False):
        raise ValueError(
            f"{type(tokenizer).__name__} is a slow tokenizer: numbers cannot be aligned with its tokens. "
            "Choose a base model with a tokenizer.json."
        )


def splits_digits(tokenizer: Any) -> bool:
    """Tell whether a tokenizer makes every digit a token of its own.

    Parameters
    ----------
    tokenizer
        A fast tokenizer of Transformers.

    Examples
    --------
    >>> from tokenizers import Tokenizer, models
    >>> tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"1": 0}, unk_token="1")))
    >>> splits_digits(tokenizer), splits_digits(split_digits(tokenizer))
    (False, True)
    """
    _require_fast(tokenizer)
    steps = json.loads(tokenizer.backend_tokenizer.to_str()).get("pre_tokenizer") or {}
    steps = steps.get("pretokenizers", [steps])
    return any(step.get("type") == "Digits" and step.get("individual_digits") for step in steps)


def split_digits(tokenizer: Any) -> PreTrainedTokenizerFast:
    """Return a tokenizer that makes every digit a token of its own, and is otherwise the same.

    The step is appended to the pre-tokenizer, hence saved in ``tokenizer.json`` and inherited by every runtime that
    reads it. The class becomes ``PreTrainedTokenizerFast``: model-specific classes such as ``BertTokenizer`` rebuild
    their pre-tokenizer when loaded and would lose the step without an error.

    Parameters
    ----------
    tokenizer
        A fast tokenizer of Transformers.

    Returns
    -------
    PreTrainedTokenizerFast
        The new tokenizer; the given one is left as it was.

    Raises
    ------
    ValueError
        If the tokenizer is a slow one.

    Examples
    --------
    >>> from tokenizers import Tokenizer, models
    >>> vocabulary = {"[UNK]": 0, "1": 1, "2": 2, "12": 3}
    >>> tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]")))
    >>> tokenizer.tokenize("12"), split_digits(tokenizer).tokenize("12")
    (['12'], ['1', '2'])
    """
    _require_fast(tokenizer)
    backend = type(tokenizer.backend_tokenizer).from_str(tokenizer.backend_tokenizer.to_str())
    digits = pre_tokenizers.Digits(individual_digits=True)
    backend.pre_tokenizer = (
        digits if backend.pre_tokenizer is None else pre_tokenizers.Sequence([backend.pre_tokenizer, digits])
    )
    attributes = {name: getattr(tokenizer, name) for name in _COPIED_ATTRIBUTES if hasattr(tokenizer, name)}
    special_tokens = {
        name: str(token) for name, token in tokenizer.special_tokens_map.items() if isinstance(token, str)
    }
    return PreTrainedTokenizerFast(tokenizer_object=backend, **attributes, **special_tokens)


def align_spans(
    tokenizer: Any,
    texts: Sequence[str],
    spans: Sequence[Sequence[tuple[int, int]]],
    max_length: int,
    width: int,
    prefixed: bool,
) -> Tensor:
    """Say for every token of every text inside which character span it lies.

    Parameters
    ----------
    tokenizer
        The fast tokenizer that produced the tokens.
    texts
        The texts.
    spans
        For every text its character spans (start, end).
    max_length
        Length the tokenizer truncates to, without the prefix token.
    width
        Number of columns of the result: tokens of the batch including prefix and padding.
    prefixed
        Whether a prefix token was inserted at position 1, which shifts every later token by one.

    Returns
    -------
    Tensor
        int64, shape (texts, width): 0 outside every span, else the position of the span in its list plus 1.

    Examples
    --------
    >>> from tokenizers import Tokenizer, models, pre_tokenizers
    >>> backend = Tokenizer(models.WordLevel({"over": 0, "5": 1, "kg": 2}, unk_token="over"))
    >>> backend.pre_tokenizer = pre_tokenizers.Whitespace()
    >>> tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend)
    >>> align_spans(tokenizer, ["over 5 kg"], [[(5, 9)]], max_length=8, width=4, prefixed=False)
    tensor([[0, 1, 1, 0]])
    """
    _require_fast(tokenizer)
    aligned = torch.zeros(len(texts), width, dtype=torch.long)
    # Sentence Transformers strips texts before it tokenizes them.
    stripped = [text.strip() for text in texts]
    encodings = tokenizer(stripped, truncation=True, max_length=max_length, add_special_tokens=True).encodings
    for row, (text, encoding, text_spans) in enumerate(zip(texts, encodings, spans, strict=True)):
        if not text_spans:
            continue
        shift = len(text) - len(text.lstrip())
        for position, (start, end) in enumerate(encoding.offsets):
            if start == end:  # special tokens
                continue
            column = position + 1 if prefixed and position >= 1 else position
            if column >= width:
                break
            for index, (span_start, span_end) in enumerate(text_spans, start=1):
                if start < span_end - shift and end > span_start - shift:
                    aligned[row, column] = index
                    break
    return aligned
