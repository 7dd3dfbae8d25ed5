"""Additional contents of a model file: lists, stored as JSON in byte tensors, and the prediction program."""

import json
from collections.abc import Collection, Mapping, Sequence

import torch

from oarlock.errors import FormatError
from oarlock.ir.program import Program

__all__ = ["COLUMNS", "FROZEN", "PREDICTION", "as_tensor", "listing", "listings_of", "read_columns", "read_frozen", "read_prediction"]

FROZEN = "oarlock.frozen"
"""The frozen parameters of a training program."""

COLUMNS = "oarlock.columns"
"""The names of the table columns that inputs were fed from."""

PREDICTION = "oarlock.prediction"
"""The serialized prediction program of a run, whose training program may not compute the prediction."""


def as_tensor(data: bytes) -> torch.Tensor:
    """Return bytes as a uint8 tensor, for a file."""
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def listing(value: object) -> torch.Tensor:
    """Return a list as a tensor of UTF-8 JSON, uint8."""
    return as_tensor(json.dumps(value).encode())


def listings_of(columns: Mapping[str, Sequence[str]], prediction: bytes | None) -> dict[str, torch.Tensor]:
    """Return the tensors for columns and a prediction, if given."""
    columns_of_inputs = {COLUMNS: listing(columns)} if columns else {}
    return columns_of_inputs if prediction is None else {**columns_of_inputs, PREDICTION: as_tensor(prediction)}


def read_frozen(listed: torch.Tensor | None, trained: Collection[str]) -> set[str]:
    """Return the `trained` names that a file lists as frozen. Raises FormatError for an invalid list."""
    names = [] if listed is None else _read(listed)
    if not isinstance(names, list) or not all(isinstance(name, str) and name in trained for name in names):
        raise FormatError(f"{FROZEN} is not a list of parameters that the program trains")
    return set(names)


def read_columns(listed: torch.Tensor | None, program: Program) -> dict[str, Sequence[str]]:
    """Return the columns that a file lists for inputs of its program. Raises FormatError for an invalid list."""
    found = {} if listed is None else _read(listed)
    inputs = {var.name for var in program.main.inputs}
    if not isinstance(found, Mapping) or not all(name in inputs and _are_names(columns) for name, columns in found.items()):
        raise FormatError(f"{COLUMNS} does not map inputs of the program to columns")
    return dict(found)


def read_prediction(held: torch.Tensor | None) -> bytes | None:
    """Return the serialized prediction program. It is parsed only when it is used, because training does not need it."""
    if held is not None and held.dtype is not torch.uint8:
        raise FormatError(f"{PREDICTION} is not a program")
    return None if held is None else held.numpy().tobytes()


def _are_names(columns: object) -> bool:
    return isinstance(columns, list) and bool(columns) and all(isinstance(column, str) for column in columns)


def _read(listed: torch.Tensor) -> object:
    """Return the parsed JSON, or None if it is invalid."""
    try:
        return json.loads(listed.numpy().tobytes().decode("utf-8"))
    except (ValueError, RecursionError):
        return None
