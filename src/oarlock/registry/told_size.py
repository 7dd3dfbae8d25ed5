"""The size of an output that only values tell, told before the kernel takes the memory for it: for those who bound memory."""

from collections.abc import Callable

from oarlock.registry.declaration import Operator

__all__ = ["find_told_size", "told_size"]

_TOLD: dict[Operator, Callable[..., int]] = {}


def told_size(operator: Operator) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Declare the number that "?" is in the shapes of the outputs of `operator`, as a function of what its kernel is given.

    It takes no more memory than its arguments, and raises what the kernel would raise.
    """

    def declare(function: Callable[..., int]) -> Callable[..., int]:
        _TOLD[operator] = function
        return function

    return declare


def find_told_size(operator: Operator) -> Callable[..., int] | None:
    """That function; None where shapes, or what is computed on the way, tell the sizes of all outputs."""
    return _TOLD.get(operator)
