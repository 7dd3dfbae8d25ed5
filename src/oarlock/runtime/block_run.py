"""Execution of a block in the caller's own scope, as `Net.run` in 2017."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy
import torch

from oarlock.errors import ArgumentError, ProgramError
from oarlock.ir.block import Block
from oarlock.ir.location import here
from oarlock.ir.var import Var
from oarlock.registry import Catalogue, require_legal, standard
from oarlock.registry.signature import TensorType
from oarlock.runtime.context import Context, name_of_scope
from oarlock.runtime.executor import Executor
from oarlock.runtime.initialization import initial_value
from oarlock.runtime.interpreter import Interpreter
from oarlock.runtime.ownership import require_not_elsewhere
from oarlock.runtime.place import Place, device_of, is_meta
from oarlock.runtime.preparation import Values
from oarlock.runtime.run_at_places import run_at_places
from oarlock.runtime.scope import Scope
from oarlock.runtime.value_check import check_found, infer_shape
from oarlock.runtime.workers import Workers

__all__ = ["executor_of", "run_block"]


def run_block(
    block: Block,
    scope: Scope,
    context: Context | None = None,
    begin: int | None = None,
    end: int | None = None,
    *,
    keep_scopes: bool = False,
    check: bool = True,
    catalogue: Catalogue = standard,
) -> None:
    """Run the ops [begin, end) of `block`, by default all, in `scope`.

    Ops read their inputs from `scope` or its parents and store results in `scope`, so a second call can continue where the first stopped.
    An input with an initial value gets it if `scope` has none. `context` provides the place and the training flag; its own scope is not
    used. Persistable variables are written only when training. The scopes of loops and branches are dropped when the minibatch is complete:
    when an inference run ends, or when the last op of the block has run in training. With `keep_scopes` they stay, as children of `scope`.

    Unlike `Executor.run`, this runs every op, not only those that fetches need, and uses no scope of its own. Values read from `scope` are
    checked against their declared types; with `check`, results of ops are too.

    Raises VerifyError for an illegal program, before anything runs; ArgumentError for an invalid range; ScopeError if it would train with
    the state of another program; UnsetVarError, ShapeError, DTypeError or KernelError, with the op and its line, while running. Results
    computed before an error stay in `scope`; persistable variables are written after all ops of the range.
    """
    require_legal(block.program, catalogue)
    first, last = 0 if begin is None else begin, len(block.ops) if end is None else end
    if not 0 <= first <= last <= len(block.ops):
        raise ArgumentError(
            f"there are no ops [{first}, {last}) in {block.path}",
            location=here(),
            contract=f"0 <= begin <= end <= {len(block.ops)}, the number of ops",
        )
    run = replace(context or Context(scope), scope=scope)
    if run.training is None:
        run = replace(run, training=block.program.is_training)
    for var in block.inputs:
        found = scope.find_var(var.name)
        if var.initializer is not None and (found is None or not found.is_set):
            scope.var(var.name).value = initial_value(var, block.program.seed).to(device_of(run.place))
    ops = block.ops[first:last]
    check_found(block, ops, scope, at_meta=is_meta(run.place))
    if run.training:
        read = {var for op in ops for var in op.reads}
        require_not_elsewhere(block.program, scope, [var for var in block.program.persistables() if var in read])
    with torch.no_grad():
        run_at_places(Interpreter(catalogue, check=check), ops, scope, run)
    if not keep_scopes and (last == len(block.ops) or not run.training):
        _drop_scopes_inside(block, scope)


def _drop_scopes_inside(block: Block, scope: Scope) -> None:
    """Drop the scopes that loops and branches of `block` created in `scope`; other children stay."""
    made = {name_of_scope(inner, in_loop=in_loop) for op in block.ops for inner in op.blocks for in_loop in (False, True)}
    for child in list(scope.children) if made else ():
        if child.name in made:
            child.drop()


def _run(
    block: Block,
    scope: Scope,
    context: Context | Place | None = None,
    begin: int | None = None,
    end: int | None = None,
    *,
    keep_scopes: bool = False,
) -> None:
    """Run the ops [begin, end) of the block in `scope`, at a place or in a context. The method form of `ol.run_block`."""
    run_block(block, scope, _in_context(scope, context), begin, end, keep_scopes=keep_scopes)


def _infer_shape(block: Block, scope: Scope) -> dict[str, TensorType]:
    """Return the type of every variable of the block for the values in `scope`, by name. The method form of `ol.infer_shape`."""
    return infer_shape(block, scope)


def _eval(
    block: Block,
    targets: Var | str | Sequence[Var | str],
    scope: Scope,
    context: Context | Place | None = None,
    feed: Mapping[str, object] | None = None,
) -> Values | numpy.ndarray | torch.Tensor:
    """Return the value of one variable, or of several, as arrays. Only the ops that they need run; `scope` is not changed.

    Variables are given as such or by name. Inputs that are not fed are read from `scope`. Raises the same as `Executor.eval`, and
    ProgramError for a nested block.
    """
    if block.parent is not None:
        raise ProgramError(
            f"{block.path} is a nested block, so its variables cannot be evaluated alone",
            location=here(),
            hint=f'fetch a path from the main block: "{block.path.partition(".")[0]}/0/..."',
        )
    run = _in_context(scope, context) or Context(scope)
    chosen = [targets] if isinstance(targets, Var | str) else targets
    values = executor_of(run.places, run.workers).eval(block.program, chosen, feed, scope=scope, training=bool(run.training))
    return values[0] if isinstance(targets, Var | str) else values


@lru_cache(maxsize=8)
def executor_of(places: tuple[Place, ...], workers: Workers) -> Executor:
    """Return the cached executor that `Block.eval` and `ol.eval` use at these places."""
    return Executor(places, workers=workers)


def _in_context(scope: Scope, context: Context | Place | None) -> Context | None:
    return Context(scope, context) if isinstance(context, Place) else context


Block.run = _run  # type: ignore[attr-defined]
Block.eval = _eval  # type: ignore[attr-defined]
Block.infer_shape = _infer_shape  # type: ignore[attr-defined]
