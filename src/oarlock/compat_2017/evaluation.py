"""`ol.eval`: evaluate variables in the current scope."""

from collections.abc import Mapping, Sequence

import numpy

from oarlock.compat_2017.net import Net
from oarlock.errors import ArgumentError
from oarlock.ir.block import Block
from oarlock.ir.block_stack import current_block
from oarlock.ir.location import here
from oarlock.ir.program import Program
from oarlock.ir.traversal import needed_ops
from oarlock.ir.var import Var
from oarlock.passes.pruning import program_of_main
from oarlock.proto import program_pb2 as wire
from oarlock.registry.creator import describe_value
from oarlock.runtime.block_run import executor_of
from oarlock.runtime.context import Context
from oarlock.runtime.current_scope import current_scope
from oarlock.runtime.initialization import init
from oarlock.runtime.paths import find_path

__all__ = ["evaluate"]


def evaluate(
    targets: Var | str | Sequence[Var | str],
    feed: Mapping[str, object] | None = None,
    *,
    program: "Program | Block | wire.BlockDesc | wire.ProgramDesc | None" = None,
    context: Context | None = None,
) -> numpy.ndarray | list[numpy.ndarray]:
    """Return the value of a variable, or of several, as arrays. Only the ops that they need are run.

    Targets are variables, names, or anything that `Executor.run` can fetch. They belong to `program`, which may be its main block, a
    BlockDesc or a ProgramDesc; by default to the program of a variable among them, else to the current one. Required parameters without a
    value are initialized in the scope: the current one, or that of `context`. Raises ArgumentError, ProgramError for a nested block, and
    the errors of `Executor.eval`.
    """
    single = isinstance(targets, Var | str)
    chosen: list[Var | str] = [targets] if isinstance(targets, Var | str) else list(targets) if isinstance(targets, Sequence) else []
    if not chosen or not all(isinstance(item, Var | str) for item in chosen):
        raise ArgumentError(
            f"eval: expected a variable or its name, or a list of them, not {describe_value(targets)}",
            location=here(),
            hint='ol.eval([cost, "predict"])',
        )
    program = _program_of(program, chosen)
    context = context or Context(current_scope())
    executor = executor_of(context.places, context.workers)
    scope = init(program, context.scope, only=_read_by(program, chosen))
    values = executor.eval(program, chosen, feed, scope=scope, training=bool(context.training))
    arrays = [numpy.asarray(value) for value in values]
    return arrays[0] if single else arrays


def _program_of(given: object, targets: Sequence[Var | str]) -> Program:
    if isinstance(given, wire.BlockDesc | wire.ProgramDesc):
        return Net(given).program
    if isinstance(given, Block):
        return program_of_main(given, "eval")
    if given is not None and not isinstance(given, Program):
        raise ArgumentError(
            f"eval: program must be a program, its main block, a BlockDesc or a ProgramDesc, not {describe_value(given)}", location=here()
        )
    return given or next((item.block.program for item in targets if isinstance(item, Var)), None) or current_block().program


def _read_by(program: Program, targets: Sequence[Var | str]) -> set[Var]:
    """Return the variables that are read to compute `targets`, including the targets."""
    paths = [find_path(program, item) for item in targets]
    vars = [path.var for path in paths]
    owners = [path.owner for path in paths if path.owner is not None]
    return {*vars, *(var for op in needed_ops(program.main.ops, [*vars, *owners]) for var in op.reads)}
