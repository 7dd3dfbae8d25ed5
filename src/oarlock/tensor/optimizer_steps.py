"""In-place optimizer steps, for whole tensors by PyTorch's fused kernels, and for some rows of a table.

The fused kernels process memory from end to end and ignore strides, so their inputs must have no gaps. A parameter of images adopts the
memory format of its gradient, so that the kernels that read both do not copy after the first step.
"""

from collections.abc import Callable, Sequence

import torch

from oarlock.backend.torch.private import foreach_mul, fused_adam_, fused_adamw_, fused_sgd_
from oarlock.tensor.memory_format import dense, in_format_of, lay_as

__all__ = ["distinct_rows", "each_times", "replace_rows", "require_rate", "scaled", "subtract_rows", "update_by_adam", "update_by_momentum"]

Tensors = Sequence[torch.Tensor]

_LARGEST = {dtype: torch.finfo(dtype).max for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64)}


def require_rate(learning_rate: torch.Tensor, dtype: torch.dtype) -> None:
    """Raise ValueError if the learning rate is not finite in `dtype`. On a GPU it is not checked, to avoid waiting for the device."""
    if learning_rate.is_cpu and not abs(learning_rate.item()) <= _LARGEST[dtype]:
        raise ValueError(f"the learning rate {learning_rate.item()} is not a finite {str(dtype).removeprefix('torch.')}")


def _run_in_place(fused: Callable[..., object], grads: Tensors, *changed: Tensors, alone: bool) -> None:
    """Call ``fused(grads, *changed)`` on tensors of equal memory format, and apply the changes to `changed`.

    If a parameter and its state are `alone` in their memory, they are permanently moved to the format of the gradient.
    """
    grads = [dense(grad) for grad in grads]
    laid = [
        [
            tensor if tensor.stride() == grad.stride() else _laid_beside(grad, tensor, alone=alone)
            for tensor, grad in zip(tensors, grads, strict=True)
        ]
        for tensors in changed
    ]
    fused(grads, *laid)
    for tensors, computed in zip(changed, laid, strict=True):
        for tensor, result in zip(tensors, computed, strict=True):
            if result is not tensor:
                tensor.copy_(result)


def _laid_beside(grad: torch.Tensor, tensor: torch.Tensor, *, alone: bool) -> torch.Tensor:
    """Return ``tensor`` in the format of ``grad``; a copy if its elements cannot be moved within its memory."""
    tensor = dense(tensor)
    return in_format_of(lay_as(tensor, grad) if alone else tensor, grad)


def _for_fused(learning_rate: torch.Tensor, params: Tensors) -> float | torch.Tensor:
    """Return the learning rate as the fused kernels take it. On a GPU they read tensors as float32, too coarse for float64 parameters."""
    return learning_rate.item() if learning_rate.is_cpu or params[0].dtype is torch.float64 else learning_rate.to(torch.float32)


def scaled(grad: torch.Tensor, learning_rate: torch.Tensor) -> torch.Tensor:
    return grad * learning_rate.to(grad.dtype)


def each_times(grads: Tensors, learning_rate: torch.Tensor) -> list[torch.Tensor]:
    return foreach_mul(grads, learning_rate.to(grads[0].dtype))


def update_by_momentum(
    params: Tensors, grads: Tensors, velocities: Tensors, learning_rate: torch.Tensor, mu: float, nesterov: bool, *, alone: bool
) -> None:
    def fused(grads, params, velocities):
        fused_sgd_(
            params,
            grads,
            velocities,
            lr=_for_fused(learning_rate, params),
            momentum=mu or 1.0,  # with 0, PyTorch keeps no velocity; in a first step it sets the velocity to the gradient, as required here
            is_first_step=mu == 0.0,
            nesterov=nesterov and mu != 0.0,
            dampening=0.0,
            weight_decay=0.0,
            maximize=False,
        )

    _run_in_place(fused, grads, params, velocities, alone=alone)


def update_by_adam(
    params: Tensors,
    grads: Tensors,
    moments1: Tensors,
    moments2: Tensors,
    step: torch.Tensor,
    learning_rate: torch.Tensor,
    beta1: float,
    beta2: float,
    epsilon: float,
    *,
    alone: bool,
    weight_decay: float = 0.0,
) -> None:
    def fused(grads, params, moments1, moments2):
        (fused_adamw_ if weight_decay else fused_adam_)(
            params,
            grads,
            moments1,
            moments2,
            [],
            [step.to(torch.float32)] * len(params),
            lr=_for_fused(learning_rate, params),
            beta1=beta1,
            beta2=beta2,
            eps=epsilon,
            weight_decay=weight_decay,
            amsgrad=False,
            maximize=False,
        )

    _run_in_place(fused, grads, params, moments1, moments2, alone=alone)


# Rows of a table


def distinct_rows(rows: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the distinct row numbers in ascending order, and the sum of the values of each. Ascending ``rows`` are returned unchanged."""
    if len(rows) < 2 or bool((rows[1:] > rows[:-1]).all()):
        return rows, values
    distinct, inverse = torch.unique(rows, sorted=True, return_inverse=True)
    return distinct, values.new_zeros((len(distinct), *values.shape[1:])).index_add_(0, inverse, values)


def subtract_rows(table: torch.Tensor, rows: torch.Tensor, values: torch.Tensor, learning_rate: torch.Tensor) -> torch.Tensor:
    """Subtract ``learning_rate * values[i]`` from row ``rows[i]`` of ``table``, in place. Duplicate rows accumulate.

    The scaled values are computed first: PyTorch is twice as fast without a factor (`alpha`).
    """
    change = values * -learning_rate.item() if learning_rate.is_cpu else scaled(values, -learning_rate)
    return table.index_add_(0, rows, change)


def replace_rows(table: torch.Tensor, rows: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Write ``values[i]`` to row ``rows[i]`` of ``table``, in place.

    PyTorch copies element by element. Rows are therefore viewed as elements of 16 or 8 bytes if they consist of whole ones, which is three
    to five times as fast for float32.
    """
    for wide in (torch.complex128, torch.float64):
        if _is_read_as(table, wide) and _is_read_as(values, wide):
            flat, taken = (each.view(len(each), -1).view(wide) for each in (table, values))
            flat.index_copy_(0, rows, taken)
            return table
    return table.index_copy_(0, rows, values)


def _is_read_as(x: torch.Tensor, wide: torch.dtype) -> bool:
    """Return whether the rows of ``x`` can be viewed as elements of the larger dtype `wide`."""
    narrower = x.numel() > 0 and x.dim() > 1 and x.itemsize < wide.itemsize and x.is_cpu and x.is_contiguous()
    starts = (x.data_ptr(), x.storage_offset() * x.itemsize, x[0].nbytes) if narrower else (1,)
    return all(start % wide.itemsize == 0 for start in starts)
