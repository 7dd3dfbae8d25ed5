"""Prediction of output sizes that depend on values, before the kernel allocates the output. Used for memory limits."""

from collections.abc import Callable

from oarlock.registry.declaration import Operator

__all__ = ["find_told_size", "is_bounded_by_inputs", "told_size"]

_TOLD: dict[Operator, Callable[..., int]] = {}
_BOUNDED: set[Operator] = set()


def told_size(operator: Operator, *, bounded: bool = False) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Declare a function of the kernel's arguments that returns the number for "?" in the output shapes of `operator`.

    It must not need more memory than its arguments, and raises the same as the kernel. `bounded` declares that the outputs are at most of
    the order of the inputs, whatever their values: the rows of a selection, but not the numbers up to a given one.
    """

    def declare(function: Callable[..., int]) -> Callable[..., int]:
        _TOLD[operator] = function
        if bounded:
            _BOUNDED.add(operator)
        return function

    return declare


def find_told_size(operator: Operator) -> Callable[..., int] | None:
    """Return the function that predicts data-dependent output sizes, or None if the shapes determine them."""
    return _TOLD.get(operator)


def is_bounded_by_inputs(operator: Operator) -> bool:
    """Return whether the sizes of the inputs bound those of the outputs, so that no value can make these large."""
    return operator in _BOUNDED or (operator not in _TOLD and not operator.variable_attributes)
