"""The trust ratio of LAMB and LARS, which scales a step to the norm of the parameter."""

from oarlock.ir.dtype import DType
from oarlock.ir.var import Var
from oarlock.op.choice import where
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.dtype_conversion import cast
from oarlock.op.logical import logical_and
from oarlock.op.unary import sqrt
from oarlock.optimizer.clipping import squared_norm

__all__ = ["trust_ratio"]


def trust_ratio(parameter: Var, direction: Var, *, factor: float = 1.0, decay: float = 0.0) -> Var:
    """Return ``factor norm(w) / (norm(direction) + decay norm(w))``, or 1 if one of the norms is 0: float64[]."""
    of_parameter, of_direction = (cast(sqrt(squared_norm(var)), dtype=DType.FLOAT64) for var in (parameter, direction))
    one, zero = (constant_like(value, of_parameter) for value in (1.0, 0.0))
    is_long = logical_and(of_parameter > zero, of_direction > zero)
    below = of_direction + decay * of_parameter if decay else of_direction
    return where(is_long, factor * of_parameter / where(is_long, below, one), one)
