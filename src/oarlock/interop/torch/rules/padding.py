"""Pad or crop the ends of axes."""

from collections.abc import Sequence

from oarlock import op
from oarlock.interop.torch.rules.arguments import Number, numbers, rank_of
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
    """Pad the ends of axes. As in PyTorch, `pad` has two numbers per axis, last axis first; negative ones crop."""
    items = numbers(pad, "a padding")
    before, after = [0] * rank_of(x), [0] * rank_of(x)
    for place in range(len(items) // 2):
        before[-1 - place], after[-1 - place] = items[2 * place], items[2 * place + 1]
    if not any(items):
        return x
    return op.pad(x, before=tuple(before), after=tuple(after), mode=mode, value=float(value))
