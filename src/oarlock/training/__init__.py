"""The training loop."""

from oarlock.suggestions import suggest_names
from oarlock.training.evaluation import evaluate
from oarlock.training.interruption import Interrupted, Stopping
from oarlock.training.trainer import EpochRecord, TrainingResult, train

__all__ = ["EpochRecord", "Interrupted", "Stopping", "TrainingResult", "evaluate", "train"]

suggest_names(__name__)
