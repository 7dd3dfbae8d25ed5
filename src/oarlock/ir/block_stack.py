"""The stack of open `with` blocks, and the default program used outside any `with`.

The stack is a context variable: each thread and async task has its own.
"""

from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oarlock.ir.block import Block
    from oarlock.ir.program import Program
    from oarlock.ir.var import Var

__all__ = ["current_block", "default_program", "get_variable", "innermost_block", "open_blocks", "pop", "push"]

_stack: "ContextVar[tuple[Block, ...]]" = ContextVar("oarlock_blocks", default=())
_default: "list[Program]" = []


def push(block: "Block") -> None:
    _stack.set((*_stack.get(), block))


def pop(block: "Block") -> None:
    stack = _stack.get()
    assert stack[-1:] == (block,), "blocks must be closed in reverse order of opening"
    _stack.set(stack[:-1])


def open_blocks() -> "tuple[Block, ...]":
    """Return the open blocks, innermost last."""
    return _stack.get()


def current_block() -> "Block":
    """Return the innermost open block, or the main block of `default_program()` if none is open."""
    stack = _stack.get()
    return stack[-1] if stack else default_program().main


def innermost_block(program: "Program") -> "Block":
    """Return the innermost open block of `program`, or its main block if none is open."""
    return next((block for block in reversed(_stack.get()) if block.program is program), program.main)


def get_variable(name: str) -> "Var":
    """Return the variable `name` of the current block or its parents. Raises UndefinedVarError."""
    return current_block().var(name)


def default_program() -> "Program":
    """Return the program used by layers outside any `with`. Created on first use, one per process."""
    if not _default:
        from oarlock.ir.program import Program

        _default.append(Program())
    return _default[0]
