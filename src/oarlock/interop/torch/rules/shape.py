"""Shapes: the same elements in another shape or order."""

from oarlock.interop.torch.rules.registry import rule
from oarlock.op import manipulation

__all__ = []


@rule("aten.view.default", "aten.reshape.default", "aten._unsafe_view.default")
def reshape(self, size, result):  # where sizes are computed, the result tells them
    return self if self.shape == result.shape else manipulation.reshape(self, shape=result.shape)
