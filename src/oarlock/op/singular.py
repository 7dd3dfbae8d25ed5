"""The vectors of the largest singular value, by power iteration."""

import torch

from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, Rejects
from oarlock.tensor.dtype import at_least_single

__all__ = ["power_iteration"]


@operator(
    "x: float[m n], u: float[m] -> next_u: float[m], v: float[n]",
    sensitive_to="place",
    cases=[
        Case(x=[[2.0, 0.0], [0.0, 1.0]], u=[1.0, 0.0], next_u=[1.0, 0.0], v=[1.0, 0.0]),
        Rejects("iterations is 0, where there is at least one", x=(2, 2), u=(2,), iterations=0),
    ],
)
def power_iteration(context, x, u, *, iterations: int = 1, epsilon: float = 1e-12):
    """Left and right vectors of length 1 near those of the largest singular value of ``x``, the nearer the more often this was done.

    In training, ``v = x' u``, then ``u = x v``, each divided by its length, so many times; else ``u`` stays, and ``v`` is of it. A length
    counts as no less than ``epsilon``. Neither has a gradient (Miyato et al., 2018).
    """
    wide, next_u = at_least_single(x), _unit(at_least_single(u), epsilon)
    v = _unit(wide.mT @ next_u, epsilon)
    if not context.training:
        return u.clone(), v.to(x.dtype)
    for step in range(iterations):
        v = v if step == 0 else _unit(wide.mT @ next_u, epsilon)
        next_u = _unit(wide @ v, epsilon)
    return next_u.to(x.dtype), v.to(x.dtype)


def _unit(vector: torch.Tensor, epsilon: float) -> torch.Tensor:
    return vector / vector.norm().clamp(min=epsilon)


@power_iteration.check_shapes
def require_iterations(x, u, *, iterations, epsilon):
    if iterations < 1:
        raise ValueError(f"iterations is {iterations}, where there is at least one")


power_iteration.no_gradient("x", "u")
