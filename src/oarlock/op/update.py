"""One step of an optimizer, as an op: parameters and state in, their next values out.

The `multi_tensor_` operators update many parameters in one op, bit-identical to the operators for one. Passes create them, and `sgd_addmm`
and `addmm_tn`.

PyTorch's in-place steps are written once, in `tensor/optimizer_steps.py`: the kernels call them on copies, and the derived variants on the
parameters.

On a CPU, the learning rate is passed to PyTorch as a number. Reading it from a GPU would wait for all queued work, so there it stays a
tensor.
"""

from collections.abc import Sequence

import torch

import oarlock.op.sparse_update  # noqa: F401  importing this module also registers the updates of rows
from oarlock.backend.torch.private import foreach_sub
from oarlock.errors import ShapeError
from oarlock.ir.size import Shape, format_shape
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, Rejects
from oarlock.registry.signature import TensorType
from oarlock.tensor.indexing import as_rows
from oarlock.tensor.memory_format import copies, in_format_of
from oarlock.tensor.optimizer_steps import each_times, require_rate, scaled, update_by_adam, update_by_momentum

__all__ = ["adam", "addmm_tn", "momentum", "multi_tensor_adam", "multi_tensor_momentum", "multi_tensor_sgd", "sgd", "sgd_addmm"]


# One parameter


@operator(
    "param: float[*b], grad: float[*b], learning_rate: float64[] -> next: float[*b]",
    cases=[Case(param=[1.0, 2.0], grad=[10.0, -10.0], learning_rate=0.1, next=[0.0, 3.0])],
)
def sgd(param, grad, learning_rate):
    """Gradient descent: ``next = param - learning_rate * grad``."""
    require_rate(learning_rate, param.dtype)
    if learning_rate.is_cpu:
        return torch.sub(in_format_of(param, grad), grad, alpha=learning_rate.item())
    return torch.sub(in_format_of(param, grad), scaled(grad, learning_rate))


@operator(
    "param: float[*b], grad: float[*b], velocity: float[*b], learning_rate: float64[] -> next: float[*b], next_velocity: float[*b]",
    cases=[
        Case(param=[1.0, 2.0], grad=[2.0, 2.0], velocity=[4.0, 4.0], learning_rate=0.1, mu=0.5, next=[0.6, 1.6], next_velocity=[4.0, 4.0]),
        Case(param=[1.0], grad=[2.0], velocity=[4.0], learning_rate=0.1, mu=0.5, nesterov=True, next=[0.6], next_velocity=[4.0]),
        Case(param=[1.0], grad=[2.0], velocity=[4.0], learning_rate=0.1, mu=0.0, next=[0.8], next_velocity=[2.0]),
        Case(param=[1.0], grad=[2.0], velocity=[4.0], learning_rate=0.1, mu=0.0, nesterov=True, next=[0.8], next_velocity=[2.0]),
    ],
)
def momentum(param, grad, velocity, learning_rate, *, mu: float = 0.9, nesterov: bool = False):
    """Gradient descent with momentum: ``v' = mu v + grad``; ``next = param - rate v'``, or with ``nesterov``
    ``param - rate (grad + mu v')``.
    """
    require_rate(learning_rate, param.dtype)
    param, velocity = copies([param, velocity])
    update_by_momentum([param], [grad], [velocity], learning_rate, mu, nesterov, alone=True)
    return param, velocity


@operator(
    "param: float[*b], grad: float[*b], moment1: float[*b], moment2: float[*b], step: int64[], learning_rate: float64[]"
    " -> next: float[*b], next_moment1: float[*b], next_moment2: float[*b]",
    cases=[
        Case(
            param=[1.0, 2.0], grad=[0.5, 0.5], moment1=[0.0, 0.0], moment2=[0.0, 0.0], step=1, learning_rate=0.1, epsilon=0.0,
            next=[0.9, 1.9], next_moment1=[0.05, 0.05], next_moment2=[0.00025, 0.00025],
        ),
        Case(
            param=[1.0], grad=[0.5], moment1=[0.0], moment2=[0.0], step=1, learning_rate=0.1, epsilon=0.0, weight_decay=0.5,
            next=[0.85], next_moment1=[0.05], next_moment2=[0.00025],
        ),
    ],
    added_later=("weight_decay",),
)  # fmt: skip
def adam(
    param,
    grad,
    moment1,
    moment2,
    step,
    learning_rate,
    *,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    weight_decay: float = 0.0,
):
    """Adam (Kingma and Ba, 2015, algorithm 1); ``step`` counts from 1.

    ``next = (1 - rate weight_decay) param - rate (m / (1 - beta1**step)) / (sqrt(v / (1 - beta2**step)) + epsilon)``. The first factor is
    the decoupled weight decay of AdamW (Loshchilov and Hutter, 2019, algorithm 2).
    """
    require_rate(learning_rate, param.dtype)
    param, moment1, moment2 = copies([param, moment1, moment2])
    update_by_adam([param], [grad], [moment1], [moment2], step, learning_rate, beta1, beta2, epsilon, alone=True, weight_decay=weight_decay)
    return param, moment1, moment2


# Many parameters


def _shapes(params: Sequence[TensorType], *others: Sequence[TensorType]) -> list[Shape | None]:
    """Return the shapes of the next values, those of `params`. Raises ShapeError if a gradient or a state has another shape."""
    for tensors in others:
        if len(tensors) != len(params):
            raise ShapeError(f"there are {len(params)} params, but {len(tensors)} gradients or states")
        for number, (param, other) in enumerate(zip(params, tensors, strict=True)):
            if None not in (param.shape, other.shape) and param.shape != other.shape:
                raise ShapeError(
                    f"params.{number} is {format_shape(param.shape)}, but its gradient or state is {format_shape(other.shape)}"
                )
    return [param.shape for param in params]


@operator(
    "*params: float, *grads: float, learning_rate: float64[] -> *next: float",
    cases=[
        Case(params=[[1.0, 2.0], [[3.0]]], grads=[[10.0, -10.0], [[20.0]]], learning_rate=0.1, next=[[0.0, 3.0], [[1.0]]]),
        Rejects("params.1 is [1], but its gradient or state is [2]", params=[(2,), (1,)], grads=[(2,), (2,)], learning_rate=0.1),
        Rejects("there are 2 params, but 1 gradients or states", params=[(2,), (1,)], grads=[(2,)], learning_rate=0.1),
        Rejects("there are 1 params, but 2 gradients or states", params=[(2,)], grads=[(2,), (2,)], learning_rate=0.1),
    ],
)
def multi_tensor_sgd(params, grads, learning_rate):
    """`sgd` for each of ``params``."""
    for dtype in {param.dtype for param in params}:
        require_rate(learning_rate, dtype)
    laid = list(map(in_format_of, params, grads))
    if not learning_rate.is_cpu:
        return foreach_sub(laid, each_times(grads, learning_rate))
    return foreach_sub(laid, grads, alpha=learning_rate.item())


@multi_tensor_sgd.infer_shape
def _multi_tensor_sgd_shapes(params, grads, learning_rate):
    return _shapes(params, grads)


@operator(
    "*params: float, *grads: float, *velocities: float, learning_rate: float64[] -> *next: float, *next_velocities: float",
    cases=[
        Case(
            params=[[1.0, 1.0], [[3.0]]], grads=[[2.0, 2.0], [[1.0]]], velocities=[[4.0, 0.0], [[0.0]]], learning_rate=0.1, mu=0.5,
            next=[[0.6, 0.8], [[2.9]]], next_velocities=[[4.0, 2.0], [[1.0]]],
        ),
        Case(
            params=[[1.0], [3.0]], grads=[[2.0], [1.0]], velocities=[[4.0], [0.0]], learning_rate=0.1, mu=0.5, nesterov=True,
            next=[[0.6], [2.85]], next_velocities=[[4.0], [1.0]],
        ),
    ],
)  # fmt: skip
def multi_tensor_momentum(params, grads, velocities, learning_rate, *, mu: float = 0.9, nesterov: bool = False):
    """`momentum` for each of ``params``."""
    for dtype in {param.dtype for param in params}:
        require_rate(learning_rate, dtype)
    params, velocities = map(copies, (params, velocities))
    update_by_momentum(params, grads, velocities, learning_rate, mu, nesterov, alone=True)
    return params, velocities


@multi_tensor_momentum.infer_shape
def _multi_tensor_momentum_shapes(params, grads, velocities, learning_rate, *, mu, nesterov):
    shapes = _shapes(params, grads, velocities)
    return shapes, shapes


@operator(
    "*params: float, *grads: float, *moments1: float, *moments2: float, step: int64[], learning_rate: float64[]"
    " -> *next: float, *next_moments1: float, *next_moments2: float",
    cases=[
        Case(
            params=[[1.0, 2.0], [[1.0]]], grads=[[0.5, 0.5], [[-0.5]]], moments1=[[0.0, 0.0], [[0.0]]],
            moments2=[[0.0, 0.0], [[0.0]]], step=1, learning_rate=0.1, epsilon=0.0,
            next=[[0.9, 1.9], [[1.1]]], next_moments1=[[0.05, 0.05], [[-0.05]]], next_moments2=[[0.00025, 0.00025], [[0.00025]]],
        )
    ],
    added_later=("weight_decay",),
)  # fmt: skip
def multi_tensor_adam(
    params,
    grads,
    moments1,
    moments2,
    step,
    learning_rate,
    *,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    weight_decay: float = 0.0,
):
    """`adam` for each of ``params``."""
    for dtype in {param.dtype for param in params}:
        require_rate(learning_rate, dtype)
    params, moments1, moments2 = map(copies, (params, moments1, moments2))
    update_by_adam(params, grads, moments1, moments2, step, learning_rate, beta1, beta2, epsilon, alone=True, weight_decay=weight_decay)
    return params, moments1, moments2


@multi_tensor_adam.infer_shape
def _multi_tensor_adam_shapes(params, grads, moments1, moments2, step, learning_rate, *, beta1, beta2, epsilon, weight_decay=0.0):
    shapes = _shapes(params, grads, moments1, moments2)
    return shapes, shapes, shapes


# Updates fused with the gradient of a weight


@operator(
    "param: float[k n], x: float[...b k], dout: float[...b n], learning_rate: float64[] -> next: float[k n]",
    sensitive_to="place",
    cases=[
        Case(param=[[1.0], [2.0]], x=[[1.0, 2.0], [3.0, 4.0]], dout=[[1.0], [10.0]], learning_rate=0.1, next=[[-2.1], [-2.2]]),
        Case(param=[[1.0], [2.0]], x=[[[1.0, 2.0]], [[3.0, 4.0]]], dout=[[[1.0]], [[10.0]]], learning_rate=0.1, next=[[-2.1], [-2.2]]),
        Case(param=[[1.0], [2.0]], x=[1.0, 2.0], dout=[10.0], learning_rate=0.1, next=[[0.0], [0.0]]),
    ],
)
def sgd_addmm(param, x, dout, learning_rate):
    """`sgd` with the gradient ``linear_dw(x, dout)``: ``next = param - learning_rate * x.mT @ dout``."""
    require_rate(learning_rate, param.dtype)
    if not learning_rate.is_cpu:
        return torch.addmm(param, as_rows(x).mT, scaled(as_rows(dout), learning_rate), alpha=-1)
    return torch.addmm(param, as_rows(x).mT, as_rows(dout), alpha=-learning_rate.item())


@operator(
    "base: float[k n], x: float[...b k], dout: float[...b n] -> total: float[k n]",
    sensitive_to="place",
    cases=[
        Case(base=[[1.0], [2.0]], x=[[1.0, 2.0], [3.0, 4.0]], dout=[[1.0], [10.0]], total=[[32.0], [44.0]]),
        Case(base=[[1.0], [2.0]], x=[[[1.0, 2.0]], [[3.0, 4.0]]], dout=[[[1.0]], [[10.0]]], scale=0.5, total=[[31.5], [43.0]]),
        Case(base=[[1.0], [2.0]], x=[1.0, 2.0], dout=[10.0], scale=0.0, total=[[10.0], [20.0]]),
    ],
)
def addmm_tn(base, x, dout, *, scale: float = 1.0):
    """``total = scale * base + linear_dw(x, dout)``."""
    return torch.addmm(base, as_rows(x).mT, as_rows(dout), beta=scale)


for update in (sgd, momentum, adam, sgd_addmm):
    update.precondition(require_rate, "learning_rate", "param_dtype")
for update in (multi_tensor_sgd, multi_tensor_momentum, multi_tensor_adam):
    update.precondition(require_rate, "learning_rate", "params_dtype")
