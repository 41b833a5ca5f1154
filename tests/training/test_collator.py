"""What a batch holds, against the texts it was made of."""

import itertools
import math

import pytest
import torch
from datasets import Dataset

from numcolbert import ColBERT
from numcolbert.losses.annotations import OPERATOR_CODES, unit_code
from numcolbert.training import LengthBucketedBatchSampler, NumericalCollator, PairBatchSampler


@pytest.fixture
def batch(tiny_model, triplet_rows):
    return NumericalCollator(tiny_model)(triplet_rows)


def test_columns_come_in_the_order_of_the_loss_and_share_a_width(batch):
    columns = [key[: -len("_input_ids")] for key in batch if key.endswith("_input_ids")]
    assert columns == ["query", "positive", "negative"]
    assert batch["positive_input_ids"].shape == batch["negative_input_ids"].shape
    assert batch["positive_values"].shape == batch["negative_values"].shape


def test_marked_tokens_spell_the_quantity(tiny_model, triplet_rows, batch):
    tokenizer = tiny_model.tokenizer
    for index, row in enumerate(triplet_rows):
        marked = batch["query_input_ids"][index][batch["query_quantity_mask"][index]].tolist()
        condition = row["query_condition"]
        mention = row["query"][condition["start"] : condition["end"]] if condition else ""
        assert marked == tokenizer(mention, add_special_tokens=False)["input_ids"]
        for column in ("positive", "negative"):
            for number, quantity in enumerate(row[f"{column}_quantities"], start=1):
                marked = batch[f"{column}_input_ids"][index][
                    batch[f"{column}_quantity_index"][index] == number
                ].tolist()
                mention = row[column][quantity["start"] : quantity["end"]]
                assert marked == tokenizer(mention, add_special_tokens=False)["input_ids"]


def test_values_units_and_operators_are_those_of_the_rows(triplet_rows, batch):
    for index, row in enumerate(triplet_rows):
        condition = row["query_condition"]
        if condition is None:
            assert batch["query_operator"][index] == -1
            continue
        assert batch["query_operator"][index] == OPERATOR_CODES[condition["operator"]]
        assert batch["query_value"][index] == condition["canonical_value"]
        assert batch["query_unit"][index] == unit_code(condition["canonical_unit"])
        assert math.isnan(batch["query_upper"][index])
        quantities = row["positive_quantities"]
        assert batch["positive_quantity_present"][index].tolist() == [
            number < len(quantities) for number in range(batch["positive_values"].shape[1])
        ]
        assert batch["positive_values"][index][: len(quantities)].tolist() == [q["canonical_value"] for q in quantities]


def test_padding_is_marked_and_scores_nothing(tiny_model, triplet_rows, batch):
    for column in ("positive", "negative"):
        for index, row in enumerate(triplet_rows):
            alone = tiny_model.tokenize([row[column]], is_query=False)["input_ids"][0]
            length = int(batch[f"{column}_attention_mask"][index].sum())
            assert batch[f"{column}_input_ids"][index][:length].tolist() == alone.tolist()
            assert not batch[f"{column}_quantity_index"][index][length:].any()


def test_rows_without_annotations_are_queries_without_condition(tiny_model):
    batch = NumericalCollator(tiny_model)([{"query": "who", "positive": "she", "negative": "it"}] * 2)
    assert batch["query_operator"].tolist() == [-1, -1]
    assert not batch["query_quantity_mask"].any()
    assert not batch["positive_quantity_present"].any()


def test_a_quantity_beyond_the_query_window_is_refused_with_the_cure(tiny_base, triplet_rows):
    model = ColBERT(tiny_base, device="cpu", query_length=16)
    query = "word " * 40 + triplet_rows[0]["query"]
    condition = {**triplet_rows[0]["query_condition"]}
    condition["start"] += 200
    condition["end"] += 200
    with pytest.raises(ValueError, match=r"query_length=16.*raise"):
        NumericalCollator(model)([{**triplet_rows[0], "query": query, "query_condition": condition}])


def sampler(seed: int = 0, epoch: int = 0, drop_last: bool = False) -> list[list[int]]:
    triplets = Dataset.from_dict({"positive": ["a" * (n * 37 % 101) for n in range(50)], "negative": ["bb"] * 50})
    result = LengthBucketedBatchSampler(triplets, batch_size=8, drop_last=drop_last, seed=seed)
    result.set_epoch(epoch)
    return list(result)


def test_bucketed_batches_hold_every_row_once_and_similar_lengths():
    batches = sampler()
    assert sorted(row for batch in batches for row in batch) == list(range(50))
    ranges = [(min(row * 37 % 101 for row in batch), max(row * 37 % 101 for row in batch)) for batch in batches]
    for (_, high), (low, _) in zip(sorted(ranges), sorted(ranges)[1:], strict=False):
        assert high <= max(low, 2)  # the negatives' two characters level the shortest rows


def test_bucketed_batches_depend_on_seed_and_epoch_alone():
    assert sampler() == sampler()
    assert sampler() != sampler(seed=1)
    assert sampler() != sampler(epoch=1)
    assert [len(batch) for batch in sampler(drop_last=True)] == [8] * 6


def pair_batches(seed: int = 0, epoch: int = 0, drop_last: bool = False) -> list[list[int]]:
    triplets = Dataset.from_dict({"pair": [f"pair {n % 7}" for n in range(100)]})
    result = PairBatchSampler(triplets, batch_size=16, drop_last=drop_last, seed=seed, group_size=4)
    result.set_epoch(epoch)
    return list(result)


def test_pair_batches_hold_every_row_once_and_few_pairs():
    batches = pair_batches()
    assert sorted(row for batch in batches for row in batch) == list(range(100))
    neighbours = [row % 7 == other % 7 for batch in batches for row, other in itertools.pairwise(batch)]
    assert sum(neighbours) / len(neighbours) > 0.6  # by chance, 1 in 7


def test_pair_batches_depend_on_seed_and_epoch_alone():
    assert pair_batches() == pair_batches()
    assert pair_batches() != pair_batches(seed=1)
    assert pair_batches() != pair_batches(epoch=1)
    assert [len(batch) for batch in pair_batches(drop_last=True)] == [16] * 6


def test_satisfies_compares_as_the_operators_say():
    from numcolbert.losses.annotations import satisfies

    values = torch.tensor([[1.0, 2.0, 3.0, math.nan]], dtype=torch.float64)
    expected = {"=": [2], "<": [1], ">": [3], "<=": [1, 2], ">=": [2, 3], "between": [2, 3]}
    for operator, satisfying in expected.items():
        mask = satisfies(
            values,
            torch.tensor([OPERATOR_CODES[operator]]),
            torch.tensor([2.0], dtype=torch.float64),
            torch.tensor([3.0], dtype=torch.float64),
        )
        assert values[mask[0]].tolist() == satisfying, operator
    assert not satisfies(values, torch.tensor([-1]), torch.tensor([2.0]), torch.tensor([3.0])).any()
