"""Metric loggers: TensorBoard, MLflow, W&B, trackio, and the interface of custom ones."""

from oarlock.suggestions import suggest_names
from oarlock.training.loggers.mlflow import MLflow
from oarlock.training.loggers.protocol import Logger
from oarlock.training.loggers.tensorboard import TensorBoard
from oarlock.training.loggers.trackio import Trackio
from oarlock.training.loggers.wandb import WandB

__all__ = ["Logger", "MLflow", "TensorBoard", "Trackio", "WandB"]

suggest_names(__name__)
