"""Gemm, as in the Framework document: an operator that calls others, with one result or two."""

from oarlock.ir.rollback import undone_on_error
from oarlock.ir.var import Var
from oarlock.op.composed.arithmetic import constant_like, is_one
from oarlock.op.composed.named_activation import Activation, activate, require_activation
from oarlock.op.elementwise import multiply
from oarlock.op.matrix import linear
from oarlock.registry.creator import require_type

__all__ = ["gemm"]


def gemm(x: Var, w: Var, scale: float | Var = 1.0, act: Activation | None = None) -> Var | tuple[Var, Var]:
    """``scale x @ w``: float[*b k], float[k m] -> float[*b m]; with an activation, `act`, also ``act`` of it.

    `scale` is a number or a scalar variable, `act` the name of an activation, as in `fc`, or a function. It appends `linear`, `multiply`
    and the activation, so gradients and passes see these ops. Raises their errors, and ArgumentError for an unknown activation.
    """
    require_activation(act)
    with undone_on_error(require_type(x, "gemm: x").block.program):
        product = linear(x, w)
        if not is_one(scale):
            product = multiply(product, constant_like(scale, product, what="gemm: scale"))
        return product if act is None else (product, activate(product, act))
