"""`x == y` and `x != y` on variables, which compare values, and support for variables in sets and dicts.

A set or a dict compares keys by `==` if their hashes are equal and they are not the same object. The hash of a variable is its identity, so
this happens only for a number equal to that hash, or a subclass with another hash. Such keys are different, and the comparison must not
append an op. In a list, Python compares by `==` regardless of hashes: `x in [y]` raises an error before an op is appended.

Code of this package never compares variables by `==`, and never searches lists for them by `in`; it uses `is`, and `is_among` and
`are_same` of `ir/var.py`. The tests check this with `compare_identities`; if a comparison is overlooked, it does not append an op to a
user's program.
"""

import dis
import os
import sys
from pathlib import Path
from types import FrameType
from typing import TypeGuard

from oarlock.errors import ArgumentError
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.python_number import is_bool
from oarlock.ir.var import Var
from oarlock.op.comparison import equal, not_equal
from oarlock.op.composed.arithmetic import constant_like, masks_as_numbers
from oarlock.registry.arguments import is_number
from oarlock.registry.creator import seen

__all__ = ["compare_identities"]

_PACKAGE = f"{Path(__file__).resolve().parents[2]}{os.sep}"
_COMPARISON, _MEMBERSHIP = dis.opmap["COMPARE_OP"], dis.opmap["CONTAINS_OP"]


def compare_identities(x: Var, y: object) -> bool:
    """Return whether two operands of a comparison inside this package are one object."""
    return x is y


def _equal(self: Var, other: object) -> Var:
    """Return the elementwise comparison, bool. False for None, text and other objects without values."""
    caller = sys._getframe(1)
    if not _has_values(other):
        _refuse_array(other, self)
        return NotImplemented
    if self is not other and hash(self) == hash(other) and not _compares(caller, self, other):
        return False  # type: ignore[return-value]  # a set or a dict compares two keys
    if _is_ours(caller):
        return compare_identities(self, other)  # type: ignore[return-value]
    if caller.f_code.co_code[caller.f_lasti] == _MEMBERSHIP:
        raise ArgumentError(
            f'"{self.name}" has no value while the program is being written, so Python cannot search for it with `in`',
            location=here(),
            given=[self.describe()],
            hint="any(x is each for each in items) finds a variable itself; (x == 1) | (x == 2) compares values in a run",
        )
    return equal(*_operands(self, other))


def _not_equal(self: Var, other: object) -> Var:
    """Return the elementwise comparison, bool. True for None, text and other objects without values."""
    if not _has_values(other):
        _refuse_array(other, self)
        return NotImplemented
    if _is_ours(sys._getframe(1)):
        return not compare_identities(self, other)  # type: ignore[return-value]
    return not_equal(*_operands(self, other))


def _is_ours(frame: FrameType) -> bool:
    """Return whether a frame runs code of this package."""
    return frame.f_code.co_filename.startswith(_PACKAGE)


def _compares(frame: FrameType, x: Var, y: object) -> bool:
    """Return whether the current instruction of a frame is ``x == y``, not a comparison of sets, or a search in one.

    The instruction before it loads the right operand.
    """
    if frame.f_code.co_code[frame.f_lasti] != _COMPARISON:
        return False
    before = None
    for instruction in dis.get_instructions(frame.f_code):
        if instruction.offset == frame.f_lasti:
            break
        before = instruction
    if before is None or not before.opname.startswith("LOAD_"):
        return False
    if before.opname == "LOAD_CONST":
        return before.argval is y
    names: dict[object, object] = {**frame.f_builtins, **frame.f_globals, **frame.f_locals}
    loaded = before.argval if isinstance(before.argval, tuple) else (before.argval,)  # newer versions of Python load two at once
    return any(names.get(name) is each for name in loaded for each in (x, y))


def _has_values(other: object) -> TypeGuard[Var | complex]:
    return isinstance(other, Var) or is_number(other)


def _refuse_array(other: object, like: Var) -> None:
    """Raise ArgumentError for an array, whose values must be fed."""
    if hasattr(type(other), "__array__"):
        constant_like(other, like)


def _operands(x: Var, y: Var | complex) -> tuple[Var, Var]:
    """Return both operands as variables. Next to bools, 0 and 1 are False and True, as in NumPy and PyTorch."""
    if isinstance(y, int) and not is_bool(y) and y in (0, 1) and seen(x).dtype is DType.BOOL:
        y = bool(y)
    return masks_as_numbers(x, constant_like(y, x))


Var.__eq__ = _equal  # type: ignore[method-assign, assignment]
Var.__ne__ = _not_equal  # type: ignore[method-assign, assignment]
