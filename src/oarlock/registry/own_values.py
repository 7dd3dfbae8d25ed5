"""Values that a gradient need not check: those that the forward operator itself has made, of inputs of the same sizes.

Indices of another op may be anyone's: they are fed, or found in a file. So a kernel that writes where they say looks at them first.
Where a program shows that they come straight from the forward operator, plans call a kernel that does not look.
"""

from collections.abc import Callable
from typing import NamedTuple

from oarlock.ir.operation import Op
from oarlock.ir.var import is_among
from oarlock.registry.declaration import Operator
from oarlock.registry.size_check import leaves_sizes_to_values

__all__ = ["OwnValues", "checks_values", "trusts", "unchecked"]


class OwnValues(NamedTuple):
    """The kernel for a `slot` that the forward operator made of an input of the shape of `like`."""

    kernel: Callable[..., object]
    slot: str
    like: str


def unchecked(operator: Operator, slot: str, *, like: str) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Declare the kernel of a gradient `operator` that does not look at `slot`, an output of its forward operator.

    `like` is the slot that has the shape of the forward operator's first input. It gives the bits of the other kernel.
    """

    def declare(kernel: Callable[..., object]) -> Callable[..., object]:
        operator.own_values = OwnValues(kernel, slot, like)
        return kernel

    return declare


def trusts(operator: Operator, op: Op) -> bool:
    """Whether the program shows that `op` may be computed by the kernel that does not look at values of our own."""
    own, forward = operator.own_values, operator.forward
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
    """Whether values can make `op` fail: its kernel refuses some, or they decide on sizes that its contract needs."""
    return (operator.checks_values and not trusts(operator, op)) or leaves_sizes_to_values(operator, op)
