"""The block that `with` statements are filling, and the program for those who write none.

The stack is a context variable: threads and async tasks each fill blocks of their own.
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
    assert stack[-1:] == (block,), "blocks are closed in the reverse of the order in which they were opened"
    _stack.set(stack[:-1])


def open_blocks() -> "tuple[Block, ...]":
    """The blocks being filled, innermost last."""
    return _stack.get()


def current_block() -> "Block":
    """The innermost block being filled; outside any `with`, the main block of `default_program()`."""
    stack = _stack.get()
    return stack[-1] if stack else default_program().main


def innermost_block(program: "Program") -> "Block":
    """The innermost block of `program` being filled, whatever other programs are; its main block where none is."""
    return next((block for block in reversed(_stack.get()) if block.program is program), program.main)


def get_variable(name: str) -> "Var":
    """The variable called `name` that the current block sees, its own or one around it. Raises UndefinedVarError."""
    return current_block().var(name)


def default_program() -> "Program":
    """The program that layers without a `with` belong to; made when first asked for, one per process."""
    if not _default:
        from oarlock.ir.program import Program

        _default.append(Program())
    return _default[0]
