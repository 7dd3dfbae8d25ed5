"""Lists that a model file holds beside its tensors, each as JSON in a tensor of bytes."""

import json
from collections.abc import Collection, Mapping, Sequence

import torch

from oarlock.errors import FormatError
from oarlock.ir.program import Program

__all__ = ["COLUMNS", "FROZEN", "listing", "read_columns", "read_frozen"]

FROZEN = "oarlock.frozen"
"""The parameters of a training program that are not to be estimated."""

COLUMNS = "oarlock.columns"
"""The columns of a table that inputs were fed from, by their names there."""


def listing(value: object) -> torch.Tensor:
    """A list as a file holds it: uint8 of the UTF-8 of its JSON."""
    return torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)


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


def _are_names(columns: object) -> bool:
    return isinstance(columns, list) and bool(columns) and all(isinstance(column, str) for column in columns)


def _read(listed: torch.Tensor) -> object:
    """The value in JSON; None for what is none."""
    try:
        return json.loads(listed.numpy().tobytes().decode("utf-8"))
    except (ValueError, RecursionError):
        return None
