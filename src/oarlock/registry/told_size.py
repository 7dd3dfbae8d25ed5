"""The size of an output that only values tell, told before the kernel takes the memory for it: for those who bound memory."""

from collections.abc import Callable

from oarlock.registry.declaration import Operator

__all__ = ["find_told_size", "is_bounded_by_inputs", "told_size"]

_TOLD: dict[Operator, Callable[..., int]] = {}
_BOUNDED: set[Operator] = set()


def told_size(operator: Operator, *, bounded: bool = False) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Declare the number that "?" is in the shapes of the outputs of `operator`, as a function of what its kernel is given.

    It takes no more memory than its arguments, and raises what the kernel would raise. `bounded` declares that the outputs are of the
    order of the inputs, whatever the values are: the rows of a selection, but not the numbers up to a given one.
    """

    def declare(function: Callable[..., int]) -> Callable[..., int]:
        _TOLD[operator] = function
        if bounded:
            _BOUNDED.add(operator)
        return function

    return declare


def find_told_size(operator: Operator) -> Callable[..., int] | None:
    """That function; None where shapes, or what is computed on the way, tell the sizes of all outputs."""
    return _TOLD.get(operator)


def is_bounded_by_inputs(operator: Operator) -> bool:
    """Return whether the sizes of the inputs bound those of the outputs, so that no value can make these large."""
    return operator in _BOUNDED or (operator not in _TOLD and not operator.variable_attributes)
