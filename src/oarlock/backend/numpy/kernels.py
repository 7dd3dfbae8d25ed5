"""The registry of NumPy kernels, by operator."""

from collections.abc import Callable
from typing import Any

from oarlock.registry.catalogue import Catalogue, standard
from oarlock.registry.declaration import Operator

__all__ = ["KERNELS", "kernel", "kernel_of"]

Kernel = Callable[..., Any]

KERNELS: dict[tuple[Catalogue, str], Kernel] = {}
"""By the operator's catalogue and name. A kernel has the signature of the operator's kernel, with arrays instead of
tensors, and does not modify its inputs."""


def kernel(function: Kernel) -> Kernel:
    """Register the kernel of the standard operator with the function's name. The operator may be imported later, or never."""
    KERNELS[standard, function.__name__.removesuffix("_")] = function
    return function


def kernel_of(operator: Operator) -> Callable[[Kernel], Kernel]:
    """Register the kernel of an operator, such as a custom one.

        @kernel_of(softplus)
        def softplus_by_numpy(x):
            return np.logaddexp(x, 0)

    A gradient operator is an operator of its own: `@kernel_of(softplus_dx)`. `ol.Executor(backend="numpy")` calls the kernel.
    """

    def declare(function: Kernel) -> Kernel:
        KERNELS[operator.catalogue, operator.type] = function
        return function

    return declare
