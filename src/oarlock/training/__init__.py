"""The training loop. Names are imported on first use, so that looking at a run needs no PyTorch."""

import importlib
from typing import TYPE_CHECKING

from oarlock.garbage_collection import collection_paused
from oarlock.suggestions import no_attribute

if TYPE_CHECKING:
    from oarlock.training import loggers
    from oarlock.training.early_stopping import EarlyStopping
    from oarlock.training.evaluation import evaluate
    from oarlock.training.interruption import Interrupted, Stopping
    from oarlock.training.invocation import settings
    from oarlock.training.records import EpochRecord, TrainingResult, ValidationRecord
    from oarlock.training.run_folder import Run
    from oarlock.training.run_plot import plot
    from oarlock.training.run_record import RunRecord
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

_HOMES = {
    "EarlyStopping": "early_stopping",
    "EpochRecord": "records",
    "Interrupted": "interruption",
    "Run": "run_folder",
    "RunRecord": "run_record",
    "Stopping": "interruption",
    "TrainingResult": "records",
    "ValidationRecord": "records",
    "evaluate": "evaluation",
    "plot": "run_plot",
    "settings": "invocation",
    "train": "trainer",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise no_attribute(__name__, name, __all__)
    with collection_paused():
        module = importlib.import_module(f"{__name__}.{_HOMES.get(name, name)}")
    globals()[name] = value = getattr(module, name) if name in _HOMES else module
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
