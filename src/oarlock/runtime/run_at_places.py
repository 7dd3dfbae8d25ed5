"""Interpretation of ops of a main block, each at its place."""

from collections.abc import Sequence
from itertools import groupby

from oarlock.ir.operation import Op
from oarlock.passes.places import find_places
from oarlock.runtime.context import Context
from oarlock.runtime.interpreter import Interpreter
from oarlock.runtime.place import device_of, made_at
from oarlock.runtime.scope import Scope

__all__ = ["run_at_places"]


def run_at_places(interpreter: Interpreter, ops: Sequence[Op], scope: Scope, context: Context) -> None:
    """Run ops of a main block in order, each at its place in the context; then their commits.

    Raises the same as the interpreter, and ProgramError for a `move` inside a block.
    """
    if len(context.places) == 1:
        with made_at(context.place):
            interpreter.run_ops(ops, scope, context)
        return
    found = find_places(ops, interpreter.catalogue)
    for number, together in groupby((op for op in ops if not op.is_commit), key=found.__getitem__):
        there = context.at(number)
        with device_of(there.place):
            interpreter.run_ops(list(together), scope, there)
    interpreter.run_ops([op for op in ops if op.is_commit], scope, context)
