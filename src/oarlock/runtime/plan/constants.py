"""Constants of a line of ops: small tensors that are the same in each run, so a plan makes them once and holds them."""

from collections.abc import Sequence

import torch

from oarlock.ir.operation import Op
from oarlock.ir.var import Var
from oarlock.passes.constant_folding import is_small
from oarlock.passes.rewriter import is_pure
from oarlock.registry.catalogue import Catalogue

__all__ = ["find_constants", "make_constant"]


def find_constants(ops: Sequence[Op], catalogue: Catalogue) -> set[Var]:
    """The results of ops of ours that are made of nothing but their attributes, and small."""
    return {var for op in ops if _is_constant(op, catalogue) for var in op.writes}


def _is_constant(op: Op, catalogue: Catalogue) -> bool:
    operator = catalogue.get(op.type)
    return not op.reads and is_pure(operator, op) and operator.is_trusted and len(op.writes) == 1 and is_small(op.writes[0])


def make_constant(op: Op, catalogue: Catalogue, device: torch.device) -> torch.Tensor | None:
    """The value that `op` computes, at `device`; None where it fails, since it must fail when it runs."""
    try:
        with torch.no_grad(), device:
            ((value,),) = catalogue.get(op.type).call({}, op.attributes).values()
    except Exception:
        return None
    return value if isinstance(value, torch.Tensor) else None
