"""Kernels without value checks, for gradients whose inputs were computed by their own forward operator from inputs of the same sizes.

Indexes from elsewhere may be fed or come from a file, so a kernel that writes to indexed positions validates them first. If the program
shows that they come directly from the forward operator, plans call a kernel that skips this.
"""

from collections.abc import Callable
from typing import NamedTuple

from oarlock.ir.operation import Op
from oarlock.ir.var import is_among
from oarlock.registry.declaration import Operator
from oarlock.registry.size_check import leaves_sizes_to_values

__all__ = ["UncheckedKernel", "checks_values", "may_skip_checks", "unchecked"]


class UncheckedKernel(NamedTuple):
    """The kernel to use if `slot` was computed by the forward operator from an input with the shape of `like`."""

    kernel: Callable[..., object]
    slot: str
    like: str


def unchecked(operator: Operator, slot: str, *, like: str) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Declare the kernel of a gradient `operator` that does not validate `slot`, an output of its forward operator.

    `like` is the slot with the shape of the forward operator's first input. Both kernels must compute the same bits.
    """

    def declare(kernel: Callable[..., object]) -> Callable[..., object]:
        operator.unchecked_kernel = UncheckedKernel(kernel, slot, like)
        return kernel

    return declare


def may_skip_checks(operator: Operator, op: Op) -> bool:
    """Return whether the program shows that `op` may use the kernel without value checks."""
    own, forward = operator.unchecked_kernel, operator.forward
    if own is None or forward is None:
        return False
    (given,), (like,) = op.inputs[own.slot], op.inputs[own.like]
    maker = given.op
    if maker is None or maker.type != forward.type or not is_among(given, maker.outputs[own.slot]):
        return False
    (made_of,) = maker.inputs[forward.signature.inputs[0].name]
    same = all(maker.attributes.get(name) == op.attributes.get(name) for name in operator.attributes)
    return same and like.shape is not None and like.shape == made_of.shape


def checks_values(operator: Operator, op: Op) -> bool:
    """Return whether values can make `op` fail: its kernel rejects some, or they determine sizes that must fit."""
    return (operator.checks_values and not may_skip_checks(operator, op)) or leaves_sizes_to_values(operator, op)
