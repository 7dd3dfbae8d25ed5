"""The kernels by the operators that they compute."""

from collections.abc import Callable
from typing import Any

from oarlock.registry.catalogue import Catalogue, standard
from oarlock.registry.declaration import Operator

__all__ = ["KERNELS", "kernel", "kernel_of"]

Kernel = Callable[..., Any]

KERNELS: dict[tuple[Catalogue, str], Kernel] = {}
"""By the operator's catalogue and name. A kernel takes and returns arrays as the operator's own takes and returns tensors, and changes none
of its inputs."""


def kernel(function: Kernel) -> Kernel:
    """Declare the kernel of the operator of ours that has the name of the function. It may be imported later, or never."""
    KERNELS[standard, function.__name__.removesuffix("_")] = function
    return function


def kernel_of(operator: Operator) -> Callable[[Kernel], Kernel]:
    """Declare the kernel of an operator, for one of your own.

        @kernel_of(softplus)
        def softplus_by_numpy(x):
            return np.logaddexp(x, 0)

    A gradient operator is another operator: `@kernel_of(softplus_dx)`. `ol.Executor(backend="numpy")` calls it.
    """

    def declare(function: Kernel) -> Kernel:
        KERNELS[operator.catalogue, operator.type] = function
        return function

    return declare
