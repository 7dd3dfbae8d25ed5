"""Gemm, as the Framework document writes it: an operator that calls others, with one value or two."""

from collections.abc import Callable

from oarlock.ir.restoring import undone_on_error
from oarlock.ir.variable import Var
from oarlock.op.arithmetic import constant_like
from oarlock.op.elementwise import multiply
from oarlock.op.matrix import linear
from oarlock.registry.creator import require_type

__all__ = ["gemm"]


def gemm(x: Var, w: Var, scale: float | Var = 1.0, act: Callable[[Var], Var] | None = None) -> Var | tuple[Var, Var]:
    """``scale x @ w``: float[*b k], float[k m] -> float[*b m]; with an activation, `act`, that and ``act`` of it.

    `scale` is a number or a variable that holds one. What it calls is appended, `linear`, `multiply` and the activation, so that
    gradients and passes see them. Raises what they raise.
    """
    with undone_on_error(require_type(x, "gemm: x").block.program):
        product = linear(x, w)
        if isinstance(scale, Var) or scale != 1.0:
            product = multiply(product, constant_like(scale, product))
        return product if act is None else (product, act(product))
