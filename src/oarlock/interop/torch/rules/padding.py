"""Padding: more at the ends of axes, or less. Joined of slices and constants, an axis at a time, so that gradients are theirs."""

from collections.abc import Sequence

from oarlock import op
from oarlock.interop.torch.rules.arguments import Number, broadcasted, filled, numbers, rank_of, refuse, shape_of
from oarlock.interop.torch.rules.registry import rule
from oarlock.ir.size import Size
from oarlock.ir.var import Var


@rule("aten.pad.default")
def pad(self: Var, pad: Sequence[Size], mode: str = "constant", value: Number | None = None):
    return padded(self, pad, mode, 0.0 if value is None else value)


@rule("aten.constant_pad_nd.default")
def constant_pad(self: Var, pad: Sequence[Size], value: Number = 0):
    return padded(self, pad, "constant", value)


@rule("aten.reflection_pad1d.default", "aten.reflection_pad2d.default", "aten.reflection_pad3d.default")
def reflection_pad(self: Var, padding: Sequence[Size]):
    return padded(self, padding, "reflect")


@rule("aten.replication_pad1d.default", "aten.replication_pad2d.default", "aten.replication_pad3d.default")
def replication_pad(self: Var, padding: Sequence[Size]):
    return padded(self, padding, "replicate")


@rule("aten._pad_circular.default")
def circular_pad(self: Var, pad: Sequence[Size]):
    return padded(self, pad, "circular")


def padded(x: Var, pad: Sequence[Size], mode: str = "constant", value: Number = 0.0) -> Var:
    """`x` with more at its ends. PyTorch lists two numbers for each axis, the last axis first; numbers below 0 crop."""
    items = numbers(pad, "a padding")
    refuse(mode not in _PARTS, f"mode={mode!r}")
    for place in range(len(items) // 2):
        axis = rank_of(x) - 1 - place
        before, after = items[2 * place], items[2 * place + 1]
        if min(before, after) < 0:
            whole = shape_of(x)[axis]
            stop = after if after < 0 else whole if isinstance(whole, int) else None
            x = op.slice(x, axis=axis, start=max(-before, 0), stop=stop)
        before, after = max(before, 0), max(after, 0)
        if before or after:
            parts = _PARTS[mode](x, axis, before, after, value)
            x = op.concat([part for part in parts if part is not None], axis=axis)
    return x


def _constant(x: Var, axis: int, before: int, after: int, value: Number) -> list[Var | None]:
    shape = list(shape_of(x))

    def part(count: int) -> Var | None:
        return filled([*shape[:axis], count, *shape[axis + 1 :]], value, x.dtype) if count else None

    return [part(before), x, part(after)]


def _reflected(x: Var, axis: int, before: int, after: int, value: Number) -> list[Var | None]:
    """The elements beside an end, but for the last one, mirrored."""
    first = op.flip(op.slice(x, axis=axis, start=1, stop=before + 1), axes=(axis,)) if before else None
    last = op.flip(op.slice(x, axis=axis, start=-after - 1, stop=-1), axes=(axis,)) if after else None
    return [first, x, last]


def _replicated(x: Var, axis: int, before: int, after: int, value: Number) -> list[Var | None]:
    def part(count: int, start: int, stop: int | None) -> Var | None:
        edge = op.slice(x, axis=axis, start=start, stop=stop)
        shape = list(shape_of(edge))
        return broadcasted(edge, [*shape[:axis], count, *shape[axis + 1 :]]) if count else None

    return [part(before, 0, 1), x, part(after, -1, None)]


def _circular(x: Var, axis: int, before: int, after: int, value: Number) -> list[Var | None]:
    first = op.slice(x, axis=axis, start=-before) if before else None
    last = op.slice(x, axis=axis, stop=after) if after else None
    return [first, x, last]


_PARTS = {"constant": _constant, "reflect": _reflected, "replicate": _replicated, "circular": _circular}
