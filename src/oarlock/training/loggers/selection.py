"""Creating loggers by name, and parts that several loggers have in common."""

import importlib
from collections.abc import Iterable, Mapping
from typing import Any

from oarlock.errors import ArgumentError
from oarlock.ir.location import here
from oarlock.registry.creator import describe_value
from oarlock.training.loggers.protocol import Logger

__all__ = ["get_package", "new_to", "open_loggers"]

_KINDS = {
    "tensorboard": ("TensorBoard", "a folder: tensorboard:runs/tensorboard"),
    "mlflow": ("MLflow", "an address: mlflow:sqlite:///mlflow.db"),
    "wandb": ("WandB", "a project: wandb:digits"),
    "trackio": ("Trackio", "a project: trackio:digits"),
}


def get_package(name: str) -> Any:
    """Import the package of a logger. Raises ArgumentError if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ArgumentError(
            f"the logger needs {name}, which is not installed", location=here(), hint=f'pip install "oarlock[{name}]"'
        ) from None


def open_loggers(loggers: Iterable[Logger | str]) -> list[Logger]:
    """Return the given loggers, creating those given as strings such as `tensorboard:runs/tensorboard`. Raises ArgumentError."""
    if isinstance(loggers, str) or not isinstance(loggers, Iterable):
        raise ArgumentError(
            f"loggers must be a list, not {describe_value(loggers)}", location=here(), hint='loggers=["tensorboard:runs/tensorboard"]'
        )
    return [_opened(logger) for logger in loggers]


def _opened(logger: object) -> Logger:
    if isinstance(logger, str):
        kind, _, where = logger.partition(":")
        if kind not in _KINDS or not where:
            known = "; ".join(f"{name} and {needed}" for name, (_, needed) in _KINDS.items())
            raise ArgumentError(f'"{logger}" is not a known logger', location=here(), contract=f"a logger is {known}")
        made = importlib.import_module(f"oarlock.training.loggers.{kind}")
        return getattr(made, _KINDS[kind][0])(where)
    if not isinstance(logger, Logger) or isinstance(logger, type):
        raise ArgumentError(
            f"a logger needs the methods begin, log and end; {describe_value(logger)} does not have them",
            location=here(),
            hint='use ol.training.loggers.TensorBoard("runs/tensorboard"), or implement ol.training.loggers.Logger',
        )
    return logger


def new_to(held: Mapping[str, int], step: int, values: Mapping[str, float]) -> dict[str, float]:
    """Return the `values` that are newer than the last logged steps `held`, by label."""
    return {label: value for label, value in values.items() if held.get(label, -1) < step} if held else dict(values)
