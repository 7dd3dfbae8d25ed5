"""The training loop."""

from oarlock.suggestions import suggest_names
from oarlock.training import loggers
from oarlock.training.early_stopping import EarlyStopping
from oarlock.training.evaluation import evaluate
from oarlock.training.interruption import Interrupted, Stopping
from oarlock.training.records import EpochRecord, TrainingResult, ValidationRecord
from oarlock.training.run_folder import Run
from oarlock.training.run_plot import plot
from oarlock.training.run_record import RunRecord
from oarlock.training.script_settings import settings
from oarlock.training.trainer import train

__all__ = [
    "EarlyStopping",
    "EpochRecord",
    "Interrupted",
    "Run",
    "RunRecord",
    "Stopping",
    "TrainingResult",
    "ValidationRecord",
    "evaluate",
    "loggers",
    "plot",
    "settings",
    "train",
]

suggest_names(__name__)
