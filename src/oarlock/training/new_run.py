"""The training program of a cost: gradients and updates in a copy of it, and how it is driven."""

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

__all__ = ["MOST", "NewRun", "chosen", "driven", "new_run", "training_program"]

MOST = 2**32 - 1
"""The largest number of rows or epochs that a file can hold."""


class NewRun(Model):
    """A run that has not begun: the training program of a cost, and first values.

    `train` begins it; or goes on, as it does with the cost, where a folder holds a run of the same program.
    """


def new_run(
    cost: Var, *, optimizer: Optimizer | None, show: Mapping[str, Var], batch_size: int | None, epochs: int | None, backend: str | None
) -> NewRun:
    """The run that `train` makes of these arguments. Raises ArgumentError, ProgramError or GradientError."""
    drive, scope = driven(batch_size, epochs, backend), Scope()
    require_backend(drive.backend)
    program = training_program(cost, optimizer, show, drive.batch_size)
    program.training = drive
    init(program, scope)
    return NewRun(program, scope)


def driven(batch_size: int | None, epochs: int | None, backend: str | None) -> Training:
    """How a new run is driven. Raises ArgumentError."""
    rows = require_count("batch_size", 32 if batch_size is None else batch_size, most=MOST)
    return Training(rows, 1 if epochs is None else require_count("epochs", epochs, most=MOST), chosen(backend))


def chosen(backend: str | None) -> str | None:
    """The backend of a run by what is given for it: "none" takes none."""
    return None if backend == "none" else backend


def training_program(cost: Var, optimizer: Optimizer | None, show: Mapping[str, Var], batch_size: int) -> Program:
    """A copy of the program of `cost` that updates its parameters. What is made alike is one run: after an error, it goes on."""
    if optimizer is not None and not isinstance(optimizer, Optimizer):
        raise ArgumentError(f"optimizer is one such as ol.optimizer.Adam(1e-3), not {describe_value(optimizer)}")
    if not isinstance(show, Mapping) or not all(isinstance(var, Var) for var in show.values()):
        raise ArgumentError('show is a dict of variables by their labels, such as {"accuracy": accuracy}')
    if "loss" in show:
        raise ArgumentError('show: "loss" is what the cost is called; give the variable another label', given=[show["loss"].describe()])
    if cost.block.program.is_training:
        if optimizer is not None:
            raise ProgramError("the program has an optimizer already", hint="leave out `optimizer`, or do not call minimize yourself")
        program = cost.block.program.clone()
        program.targets = {"loss": program.main.var(cost.name)} | {label: program.main.var(var.name) for label, var in show.items()}
    else:
        program = prune(cost.block.program, {"loss": cost, **show})
        with program:
            (optimizer or SGD()).minimize(program.targets["loss"])
        program.lineage = f"{content_hash(program)} by {batch_size}"
    return program
