"""Run in a process of its own, on a machine that has PyLate and not this package: open a repository, save what it says.

Usage: plain_pylate.py REPOSITORY OUTPUT.npz
"""

import sys
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

TEXTS = ["over 5 kg of 12 apples", "revenue below $3 million"]


class NotInstalled(MetaPathFinder):
    """Makes this package impossible to import, wherever it may lie."""

    def find_spec(self, name: str, *arguments: Any) -> None:
        if name.partition(".")[0] == "numcolbert":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def main(repository: str, output: str) -> None:
    sys.meta_path.insert(0, NotInstalled())
    try:
        import numcolbert  # noqa: F401
    except ModuleNotFoundError:
        pass
    else:
        raise AssertionError("numcolbert can be imported: this would prove nothing")

    import numpy as np
    import torch
    from huggingface_hub import snapshot_download
    from pylate import models
    from safetensors.torch import load_file
    from transformers import AutoModel, AutoTokenizer

    try:
        models.ColBERT(repository, device="cpu")
    except Exception as error:
        refusal = f"{type(error).__name__}: {error}"
    else:
        refusal = ""

    model = models.ColBERT(repository, device="cpu", trust_remote_code=True)
    results = {
        "refusal": np.array(refusal),
        "modules": np.array([type(module).__name__ for module in model]),
        **{f"document{i}": x for i, x in enumerate(model.encode(TEXTS, is_query=False))},
        **{f"query{i}": x for i, x in enumerate(model.encode(TEXTS, is_query=True, normalize_embeddings=False))},
        **{f"unit_query{i}": x for i, x in enumerate(model.encode(TEXTS, is_query=True))},
    }

    # A tool that knows the encoder in the root and the projection in 1_Dense only, and nothing of PyLate.
    folder = Path(snapshot_download(repository))
    tokenizer = AutoTokenizer.from_pretrained(folder)
    encoder = AutoModel.from_pretrained(folder).eval()
    projection = load_file(folder / "1_Dense" / "model.safetensors")["linear.weight"]
    for index, text in enumerate(TEXTS):
        ids = tokenizer(text)["input_ids"]
        ids = torch.tensor([[ids[0], tokenizer.convert_tokens_to_ids("[D] "), *ids[1:]]])
        with torch.no_grad():
            tokens = encoder(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state[0] @ projection.T
        results[f"encoder_only{index}"] = torch.nn.functional.normalize(tokens, dim=-1).numpy()

    np.savez(output, **results)


if __name__ == "__main__":
    main(*sys.argv[1:])
