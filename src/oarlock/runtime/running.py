"""Run a block where a caller says: every op of it, in the caller's own scope. This is what `Net.run` does."""

from dataclasses import replace
from weakref import WeakKeyDictionary

import torch

from oarlock.errors import ArgumentError
from oarlock.ir.block import Block
from oarlock.ir.location import here
from oarlock.ir.program import Program
from oarlock.ir.verify import verify_program
from oarlock.registry import Catalogue, standard, typecheck
from oarlock.runtime.checking import infer_shape
from oarlock.runtime.context import Context
from oarlock.runtime.initialization import initial_value
from oarlock.runtime.interpreter import Interpreter
from oarlock.runtime.place import made_at
from oarlock.runtime.scope import Scope

__all__ = ["run_block"]

_verified: "WeakKeyDictionary[Program, int]" = WeakKeyDictionary()


def run_block(
    block: Block,
    scope: Scope,
    context: Context | None = None,
    begin: int | None = None,
    end: int | None = None,
    *,
    check: bool = True,
    catalogue: Catalogue = standard,
) -> None:
    """Run the ops [begin, end) of `block`, every one of them, in `scope`; all of them where nothing is said.

    Ops read what `scope` or its parents hold, inputs included, and leave what they compute in `scope`, so a second
    call may go on where the first stopped. An input that carries its value is given it where there is none.
    `context` tells the place and whether this is training; its own scope is not used. `Executor.run`, in contrast,
    runs what its fetches need, in a scope of its own. With `check`, what every op computes is compared with its
    declared type.

    Raises VerifyError for a program that is not legal, before anything runs; ArgumentError for a range that the block
    does not have; UnsetVarError, ShapeError, DTypeError or KernelError, with the op and its line, while it runs. What
    ran before stays in `scope`; persistable variables are written after every op of the range.
    """
    _require_legal(block.program, catalogue)
    first, last = 0 if begin is None else begin, len(block.ops) if end is None else end
    if not 0 <= first <= last <= len(block.ops):
        raise ArgumentError(
            f"there are no ops [{first}, {last}) in {block.path}",
            location=here(),
            contract=f"0 <= begin <= end <= {len(block.ops)}, its number of ops",
        )
    run = Context(scope) if context is None else replace(context, scope=scope)
    for var in block.inputs:
        found = scope.find_var(var.name)
        if var.initializer is not None and (found is None or not found.is_set):
            scope.var(var.name).value = initial_value(var, block.program.seed).to(run.place.device)
    if check:
        infer_shape(block, scope)
    with torch.no_grad(), made_at(run.place):
        Interpreter(catalogue, check=check).run_ops(block.ops[first:last], scope, run)


def _require_legal(program: Program, catalogue: Catalogue) -> None:
    """Verify a program, once for each of its revisions."""
    if _verified.get(program) != program.revision:
        verify_program(program)
        typecheck(program, catalogue)
        _verified[program] = program.revision
