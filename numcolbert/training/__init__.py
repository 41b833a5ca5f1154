"""From triplets to a trained model: collator, batches, trainer, configuration."""

from numcolbert.training.batching import LengthBucketedBatchSampler, PairBatchSampler
from numcolbert.training.collator import NumericalCollator
from numcolbert.training.trainer import NumColBERTTrainer

__all__ = ["LengthBucketedBatchSampler", "NumColBERTTrainer", "NumericalCollator", "PairBatchSampler"]
