"""The training program of a cost (a copy with gradients and updates) and its training settings."""

from collections.abc import Mapping

from oarlock.errors import ArgumentError, ProgramError
from oarlock.io.model import Model
from oarlock.ir.content_hash import content_hash
from oarlock.ir.program import Program, Training
from oarlock.ir.var import Var
from oarlock.optimizer.optimizer import Optimizer
from oarlock.optimizer.sgd import SGD
from oarlock.passes.pruning import prune
from oarlock.registry.creator import describe_value
from oarlock.registry.range_check import require_count
from oarlock.runtime.executor import require_backend
from oarlock.runtime.initialization import init
from oarlock.runtime.scope import Scope

__all__ = ["MOST", "NewRun", "backend_setting", "new_run", "training_program", "training_settings"]

MOST = 2**32 - 1
"""The largest number of rows or epochs that a program file can store."""


class NewRun(Model):
    """A run that has not started: the training program of a cost, and initial values.

    `train` starts it or, like a cost, resumes it if the run folder contains a run of the same program.
    """


def new_run(
    cost: Var, *, optimizer: Optimizer | None, show: Mapping[str, Var], batch_size: int | None, epochs: int | None, backend: str | None
) -> NewRun:
    """Return the run that `train` creates from these arguments. Raises ArgumentError, ProgramError or GradientError."""
    drive, scope = training_settings(batch_size, epochs, backend), Scope()
    require_backend(drive.backend)
    program = training_program(cost, optimizer, show, drive.batch_size)
    program.training = drive
    init(program, scope)
    return NewRun(program, scope)


def training_settings(batch_size: int | None, epochs: int | None, backend: str | None) -> Training:
    """Return the training settings of a new run. Raises ArgumentError."""
    rows = require_count("batch_size", 32 if batch_size is None else batch_size, most=MOST)
    return Training(rows, 1 if epochs is None else require_count("epochs", epochs, most=MOST), backend_setting(backend))


def backend_setting(backend: str | None) -> str | None:
    """Return the backend setting for an argument; "none" means no backend."""
    return None if backend == "none" else backend


def training_program(cost: Var, optimizer: Optimizer | None, show: Mapping[str, Var], batch_size: int) -> Program:
    """Return a copy of the program of `cost` that updates its parameters.

    Programs created from equal arguments are the same run, so a call repeated after an error continues it.
    """
    if optimizer is not None and not isinstance(optimizer, Optimizer):
        raise ArgumentError(f"optimizer must be an optimizer such as ol.optimizer.Adam(1e-3), not {describe_value(optimizer)}")
    if not isinstance(show, Mapping) or not all(isinstance(var, Var) for var in show.values()):
        raise ArgumentError('show must be a dict of labels and variables, such as {"accuracy": accuracy}')
    if "loss" in show:
        raise ArgumentError('show: the label "loss" is reserved for the cost; use another one', given=[show["loss"].describe()])
    if cost.block.program.is_training:
        if optimizer is not None:
            raise ProgramError("the program already has an optimizer", hint="omit `optimizer`, or do not call minimize")
        program = cost.block.program.clone()
        program.targets = {"loss": program.main.var(cost.name)} | {label: program.main.var(var.name) for label, var in show.items()}
    else:
        program = prune(cost.block.program, {"loss": cost, **show})
        with program:
            (optimizer or SGD()).minimize(program.targets["loss"])
        program.lineage = f"{content_hash(program)} by {batch_size}"
    return program
