"""Constants of a line of ops: small tensors that are the same in each run, so a plan makes them once and holds them."""

import math
from collections.abc import Sequence

import torch

from oarlock.ir.operation import Op
from oarlock.ir.variable import Var
from oarlock.registry.catalogue import Catalogue

__all__ = ["find_constants", "make_constant"]

_MOST_ELEMENTS = 4096  # each is held as long as the plan is


def find_constants(ops: Sequence[Op], catalogue: Catalogue) -> set[Var]:
    """The results of ops of ours that are made of nothing but their attributes, and small."""
    return {var for op in ops if _is_constant(op, catalogue) for var in op.writes}


def _is_constant(op: Op, catalogue: Catalogue) -> bool:
    operator = catalogue.get(op.type)
    if op.reads or op.blocks or len(op.writes) != 1 or not operator.is_built_in or operator.wants_context or operator.effects:
        return False
    shape = op.writes[0].shape
    return shape is not None and all(isinstance(size, int) for size in shape) and math.prod(shape) <= _MOST_ELEMENTS  # type: ignore[arg-type]


def make_constant(op: Op, catalogue: Catalogue, device: torch.device) -> torch.Tensor | None:
    """What `op` computes, at `device`; None where it fails, which it must do when it runs."""
    try:
        with torch.no_grad(), device:
            value = catalogue.get(op.type).kernel(**op.attributes)
    except Exception:
        return None
    return value if isinstance(value, torch.Tensor) else None
