"""The singular vectors of the largest singular value, by power iteration."""

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
        Rejects("iterations must be at least 1, not 0", x=(2, 2), u=(2,), iterations=0),
    ],
)
def power_iteration(context, x, u, *, iterations: int = 1, epsilon: float = 1e-12):
    """Approximate left and right singular vectors of the largest singular value, by power iteration (Miyato et al., 2018).

    In training, ``v = x' u`` and ``u = x v``, each normalized, are repeated ``iterations`` times; otherwise ``u`` is unchanged and ``v`` is
    computed from it. The approximation improves with every call. Lengths are at least ``epsilon``. Neither vector has a gradient.
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
        raise ValueError(f"iterations must be at least 1, not {iterations}")


power_iteration.no_gradient("x", "u")
