"""Contents of a model file beside its tensors: lists, each as JSON in a tensor of bytes, and the program that predicts."""

import json
from collections.abc import Collection, Mapping, Sequence

import torch

from oarlock.errors import FormatError
from oarlock.ir.program import Program

__all__ = ["COLUMNS", "FROZEN", "PREDICTION", "as_tensor", "listing", "listings_of", "read_columns", "read_frozen", "read_prediction"]

FROZEN = "oarlock.frozen"
"""The parameters of a training program that are not to be estimated."""

COLUMNS = "oarlock.columns"
"""The columns of a table that inputs were fed from, by their names there."""

PREDICTION = "oarlock.prediction"
"""The program that predicts, beside the training program of a run, which need not compute what is predicted: its bytes."""


def as_tensor(data: bytes) -> torch.Tensor:
    """Bytes as a file holds them."""
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def listing(value: object) -> torch.Tensor:
    """A list as a file holds it: uint8 of the UTF-8 of its JSON."""
    return as_tensor(json.dumps(value).encode())


def listings_of(columns: Mapping[str, Sequence[str]], prediction: bytes | None) -> dict[str, torch.Tensor]:
    """The tensors of a file that hold columns and a prediction, where there are some."""
    columns_of_inputs = {COLUMNS: listing(columns)} if columns else {}
    return columns_of_inputs if prediction is None else {**columns_of_inputs, PREDICTION: as_tensor(prediction)}


def read_frozen(listed: torch.Tensor | None, trained: Collection[str]) -> set[str]:
    """The names that a file lists of what is `trained`. Raises FormatError for a list of anything else."""
    names = [] if listed is None else _read(listed)
    if not isinstance(names, list) or not all(isinstance(name, str) and name in trained for name in names):
        raise FormatError(f"{FROZEN} does not list parameters that the program trains")
    return set(names)


def read_columns(listed: torch.Tensor | None, program: Program) -> dict[str, Sequence[str]]:
    """The columns that a file lists for inputs of its program. Raises FormatError for a list of anything else."""
    found = {} if listed is None else _read(listed)
    inputs = {var.name for var in program.main.inputs}
    if not isinstance(found, Mapping) or not all(name in inputs and _are_names(columns) for name, columns in found.items()):
        raise FormatError(f"{COLUMNS} does not list columns for inputs of the program")
    return dict(found)


def read_prediction(held: torch.Tensor | None) -> bytes | None:
    """The bytes of a program that predicts. Nothing is parsed before it is asked for: nobody trains by it."""
    if held is not None and held.dtype is not torch.uint8:
        raise FormatError(f"{PREDICTION} does not hold a program")
    return None if held is None else held.numpy().tobytes()


def _are_names(columns: object) -> bool:
    return isinstance(columns, list) and bool(columns) and all(isinstance(column, str) for column in columns)


def _read(listed: torch.Tensor) -> object:
    """The value in JSON; None for what is none."""
    try:
        return json.loads(listed.numpy().tobytes().decode("utf-8"))
    except (ValueError, RecursionError):
        return None
