"""Run a block where a caller says: every op of it, in the caller's own scope. This is what `Net.run` does."""

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
    """Run the ops [begin, end) of `block`, every one of them, in `scope`; all of them where nothing is said.

    Ops read what `scope` or its parents hold, inputs included, and leave what they compute in `scope`, so a second
    call may go on where the first stopped. An input that carries its value is given it where there is none.
    `context` tells the place and whether this is training, without which nothing persistable is written; its own scope is not used.
    The scopes of loops and branches are dropped when the minibatch is complete: when an inference run ends, and in training when the last
    op of the block has run. With `keep_scopes` they stay, as children of `scope`.
    `Executor.run`, in contrast, runs what its fetches need, in a scope of its own. What the ops read of `scope` has its declared type;
    with `check`, so has what every op computes.

    Raises VerifyError for a program that is not legal, before anything runs; ArgumentError for a range that the block
    does not have; ScopeError where it would train with the state of another program; UnsetVarError, ShapeError, DTypeError or
    KernelError, with the op and its line, while it runs. What ran before stays in `scope`; persistable variables are written after every
    op of the range.
    """
    require_legal(block.program, catalogue)
    first, last = 0 if begin is None else begin, len(block.ops) if end is None else end
    if not 0 <= first <= last <= len(block.ops):
        raise ArgumentError(
            f"there are no ops [{first}, {last}) in {block.path}",
            location=here(),
            contract=f"0 <= begin <= end <= {len(block.ops)}, its number of ops",
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
    """Drop the scopes that loops and branches of `block` have made in `scope`; its other children stay."""
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
    """`ol.run_block`, as a method: run the ops [begin, end) of the block, every one of them, in `scope`, at a place or in a context."""
    run_block(block, scope, _in_context(scope, context), begin, end, keep_scopes=keep_scopes)


def _infer_shape(block: Block, scope: Scope) -> dict[str, TensorType]:
    """`ol.infer_shape`, as a method: the type that every variable of the block has on the values in `scope`, by name."""
    return infer_shape(block, scope)


def _eval(
    block: Block,
    targets: Var | str | Sequence[Var | str],
    scope: Scope,
    context: Context | Place | None = None,
    feed: Mapping[str, object] | None = None,
) -> Values | numpy.ndarray | torch.Tensor:
    """The value of a variable of the block, given by itself or its name, or of several, as arrays; `scope` is not changed.

    What they need is run, and nothing else.

    Inputs that are not fed are found in `scope`. Raises what `Executor.eval` raises, ProgramError for a block inside another.
    """
    if block.parent is not None:
        raise ProgramError(
            f"{block.path} is run by its op, so nothing of it can be computed alone",
            location=here(),
            hint=f'a fetch of the main block may be a path: "{block.path.partition(".")[0]}/0/..."',
        )
    run = _in_context(scope, context) or Context(scope)
    chosen = [targets] if isinstance(targets, Var | str) else targets
    values = executor_of(run.places, run.workers).eval(block.program, chosen, feed, scope=scope, training=bool(run.training))
    return values[0] if isinstance(targets, Var | str) else values


@lru_cache(maxsize=8)
def executor_of(places: tuple[Place, ...], workers: Workers) -> Executor:
    """Return the executor by which `Block.eval` and `ol.eval` compute at these places: the ops that some targets need are found once."""
    return Executor(places, workers=workers)


def _in_context(scope: Scope, context: Context | Place | None) -> Context | None:
    return Context(scope, context) if isinstance(context, Place) else context


Block.run = _run  # type: ignore[attr-defined]
Block.eval = _eval  # type: ignore[attr-defined]
Block.infer_shape = _infer_shape  # type: ignore[attr-defined]
