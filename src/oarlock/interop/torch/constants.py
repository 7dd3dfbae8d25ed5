"""Evaluate rearranged constants once, at import: transposed, sliced or joined before any other op reads them."""

import math
from collections.abc import Mapping

import torch

from oarlock.interop.torch.rules.arguments import constant_value
from oarlock.interop.torch.state import Constant, State
from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.size import Shape
from oarlock.ir.var import Var
from oarlock.passes.rewriter import is_pure, rewrite
from oarlock.registry.catalogue import standard
from oarlock.registry.own_values import checks_values

__all__ = ["compute_constants"]

_MOST_ELEMENTS = 2**16
_MOVES = {"concat", "neg", "reshape", "slice", "transpose"}


def compute_constants(program: Program, state: State) -> None:
    """Evaluate ops that only move elements of constants or change their sign.

    Each result becomes a constant; equal results share one. The replaced ops stay in the program, unread, until the caller drops them.
    """

    def visit(op: Op, before: list[Op]) -> Mapping[Var, Var]:
        if not _is_constant(op):
            return {}
        with torch.no_grad(), torch.device("cpu"):
            (made,) = standard.get(op.type).run(op, constant_value, lambda var: torch.Size(var.shape))  # type: ignore[arg-type]
        return {op.writes[0]: state.held(Constant(made))}

    rewrite(program, visit)


def _is_constant(op: Op) -> bool:
    operator = standard.get(op.type)
    if op.type not in _MOVES or not is_pure(operator, op) or checks_values(operator, op) or not _is_small(op.writes[0].shape):
        return False
    return all(constant_value(var) is not None for var in op.reads)


def _is_small(shape: Shape | None) -> bool:
    return shape is not None and all(isinstance(size, int) for size in shape) and math.prod(shape) <= _MOST_ELEMENTS  # type: ignore[arg-type]
