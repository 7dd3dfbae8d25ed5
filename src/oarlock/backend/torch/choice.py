"""Selection in the memory of an operand: handwritten variants, as PyTorch could write over the condition."""

import torch

from oarlock.backend.torch.variants import in_place_variant
from oarlock.op.choice import where


@in_place_variant(where, "x")
def where_in_x(condition, x, y):
    return torch.where(condition, x, y, out=x)


@in_place_variant(where, "y")
def where_in_y(condition, x, y):
    return torch.where(condition, x, y, out=y)
