"""The training loop."""

from oarlock.training.trainer import EpochRecord, TrainingResult, train

__all__ = ["EpochRecord", "TrainingResult", "train"]
