"""Broadcasting of inputs along leading axes `*~b` by repetition, with NumPy's rules."""

from collections.abc import Mapping, Sequence

from oarlock.errors import ShapeError
from oarlock.ir.shape_rules import broadcast_shape
from oarlock.ir.size import Shape, names_in
from oarlock.ir.var import Var
from oarlock.registry.catalogue import standard
from oarlock.registry.signature import Signature, Slot

__all__ = ["find_repeated", "repeat"]


def find_repeated(signature: Signature, given: Mapping[str, Sequence[Var]]) -> dict[Var, Shape]:
    """Return the inputs to repeat, with their new shapes; none if the sizes cannot be broadcast."""
    slots = [slot for slot in signature.inputs if slot.repeated]
    fronts = {var: front for slot in slots for var in given.get(slot.name, ()) if (front := _front(slot, var)) is not None}
    if len(set(fronts.values())) < 2:
        return {}
    common: Shape = ()
    try:
        for front in fronts.values():
            common = broadcast_shape(common, front)
    except ShapeError:
        return {}  # rejected by the signature with a better message
    return {var: (*common, *(var.shape or ())[len(front) :]) for var, front in fronts.items() if front != common}


def _front(slot: Slot, var: Var) -> Shape | None:
    """Return the sizes of `var` along the axes `*~b`; None if its rank is too small."""
    behind = len(slot.axes or ()) - 1
    return None if var.shape is None or len(var.shape) < behind else var.shape[: len(var.shape) - behind]


def repeat(given: Mapping[str, Sequence[Var]], wanted: Mapping[Var, Shape]) -> dict[str, list[Var]]:
    """Append ops that repeat the inputs in `wanted` to the given shapes; return all inputs by slot. The gradients are summed."""
    broadcast_to, vars = standard.get("broadcast_to"), [var for each in given.values() for var in each]
    repeated: dict[Var, Var] = {}
    for var, shape in wanted.items():
        lacking = {name for size in shape for name in names_in(size)} - {name for size in var.shape or () for name in names_in(size)}
        like = [other for other in vars if lacking & {name for size in other.shape or () for name in names_in(size)}]
        repeated[var] = broadcast_to(var, like[:1] if len(lacking) == 1 else like, shape=shape)
    return {slot: [repeated.get(var, var) for var in each] for slot, each in given.items()}
