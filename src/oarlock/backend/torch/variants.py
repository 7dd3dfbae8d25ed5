"""The functions that compute an operator with PyTorch: its kernel, and cheaper variants for plans.

Most variants are derived from the kernel: see `derivation`. The others are handwritten, in the file of this folder named after the
operator's family, and registered by the functions below. A variant gives the same bits as the kernel, or the same within rounding if the
operator rounds by position. The operator's cases test this.
"""

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache, cached_property
from typing import Any
from weakref import WeakKeyDictionary

from oarlock.backend.torch.derivation import derive_in_place, derive_out
from oarlock.backend.torch.expression import Expression
from oarlock.backend.torch.host import find_host_function
from oarlock.backend.torch.kernel_source import only_call
from oarlock.backend.torch.lowering import derive_expressions
from oarlock.errors import DeclarationError
from oarlock.registry.declaration import Operator

__all__ = ["Variants", "host_function", "in_place_variant", "lowers_to", "number_function", "out_variant", "prepack", "variants_of"]

Kernel = Callable[..., Any]

_OPERATORS = "oarlock.op."
_FAMILIES = "oarlock.backend.torch."


class Variants:
    """The variants of one operator. Registered ones take precedence over derived ones, which are derived on first use."""

    def __init__(self, operator: Operator):
        self.operator = operator
        self.number: Kernel | None = None
        self.prepacked: dict[str, tuple[Kernel, Kernel]] = {}  # slot -> the packing function, and the kernel that takes its result
        self._in_place: dict[tuple[str, ...], Kernel] = {}  # registered variants and expressions
        self._expressions: dict[Kernel, list[Expression]] = {}
        self._lowered: dict[Kernel, list[Expression]] = {}  # with derived ones, on first use

    @cached_property
    def out(self) -> Kernel | None:
        """The function that writes into `out`, a tensor of the output's shape and dtype that overlaps no input; see `out_variant`."""
        return None if self.prepacked else derive_out(self.operator)

    @cached_property
    def in_place(self) -> dict[tuple[str, ...], Kernel]:
        """The functions in which output `i` overwrites input `slots[i]`, by `slots`; see `in_place_variant`."""
        return self._in_place or ({} if self.prepacked else derive_in_place(self.operator))

    @cached_property
    def host(self) -> Kernel | None:
        """The function on Python numbers, for tensors of one element; see `host_function`."""
        function = only_call(self.operator.kernel)
        return None if function is None else find_host_function(function, [slot.dtype for slot in self.operator.signature.inputs])

    @cached_property
    def expressions(self) -> dict[Kernel, list[Expression]]:
        """The expressions that replace a call of the kernel or of a variant, under some conditions.

        The first one whose conditions hold is used in the plan.
        """
        functions = [self.operator.kernel, *([] if self.out is None else [self.out]), *self.in_place.values()]
        found = {function: self.expressions_of(function) for function in functions}
        return {function: expressions for function, expressions in found.items() if expressions}

    def expressions_of(self, function: Kernel) -> list[Expression]:
        """Return the expressions of one function. Only these are derived, as a plan uses few functions."""
        if function not in self._lowered:
            own = self.operator.unchecked_kernel
            others = (self.number, None if own is None else own.kernel)  # called as functions, as they compute less than the kernel
            derived = [] if function in others else derive_expressions(self.operator, function)
            self._lowered[function] = [*self._expressions.get(function, ()), *derived]
        return self._lowered[function]

    def add_in_place(self, slots: tuple[str, ...], function: Kernel) -> None:
        """Register a function that overwrites some inputs."""
        self._in_place[slots] = function
        self._forget()

    def add_expression(self, function: Kernel, expression: Expression) -> None:
        """Register an expression that replaces calls of a function."""
        self._expressions.setdefault(function, []).append(expression)
        self._forget()

    def _forget(self) -> None:
        """Discard the derived results that depend on registrations."""
        for name in ("in_place", "expressions"):
            self.__dict__.pop(name, None)
        self._lowered.clear()


_variants: WeakKeyDictionary[Operator, Variants] = WeakKeyDictionary()
_loaded: set[str] = set()


def variants_of(operator: Operator) -> Variants:
    """Return the variants of `operator`."""
    module = operator.kernel.__module__ or ""  # missing for functions compiled from a string
    if module not in _loaded:
        _loaded.add(module)
        family = module.removeprefix(_OPERATORS)
        if module.startswith(_OPERATORS) and family in _families():
            importlib.import_module(_FAMILIES + family)
    return _of(operator)


@cache
def _families() -> frozenset[str]:
    """Return the names of the modules in this folder."""
    return frozenset(module.name for module in pkgutil.iter_modules(importlib.import_module(_FAMILIES[:-1]).__path__))


def _of(operator: Operator) -> Variants:
    found = _variants.get(operator)
    if found is None:
        found = _variants[operator] = Variants(operator)
    return found


def _require_inputs(operator: Operator, *slots: str) -> None:
    """Raise DeclarationError for a slot that is not an input.

    Gradients are not checked, to avoid creating their signatures; tests check them.
    """
    for slot in slots:
        if operator.forward is None and operator.signature.input(slot) is None:
            raise DeclarationError(f"{operator.type} has no input {slot}")


def out_variant(operator: Operator) -> Callable[[Kernel], Kernel]:
    """Register the function that writes into `out`, a tensor of the output's shape and dtype that overlaps no input, and returns it.

    It must give the same bits as the kernel for any strides of `out`, such as a slice of columns.
    """

    def declare(function: Kernel) -> Kernel:
        _of(operator).out = function
        return function

    return declare


def in_place_variant(operator: Operator, *slots: str) -> Callable[[Kernel], Kernel]:
    """Register the function in which output `i` overwrites input `slots[i]`, replacing all derived ones.

    For a variadic slot, the first variable is overwritten; a variadic output overwrites all of them, one for one. The function is only
    called if the overwritten input has the shape and dtype of the output; an uneven stack is never overwritten, and the output is new
    memory. The keyword `alone` means that no other tensor shares the memory, so its strides may change. Raises DeclarationError for a slot
    that is not an input.
    """

    def declare(function: Kernel) -> Kernel:
        _require_inputs(operator, *slots)
        _of(operator).add_in_place(slots, function)
        return function

    return declare


def host_function(operator: Operator) -> Callable[[Kernel], Kernel]:
    """Register the function on Python numbers, for tensors of one element.

    It is only called for bools, for which it must equal the kernel, and for integers, for which it may ignore overflow, as the plan wraps
    the result. Raises DeclarationError for an operator with attributes, which are not passed.
    """

    def declare(function: Kernel) -> Kernel:
        if operator.attributes:
            raise DeclarationError(f"{operator.type} has attributes, which are not passed to a host function")
        _of(operator).host = function
        return function

    return declare


def number_function(operator: Operator) -> Callable[[Kernel], Kernel]:
    """Register the function that returns the output as a number, for the same inputs and attributes.

    A plan calls it if only the number is read, on the host.
    """

    def declare(function: Kernel) -> Kernel:
        _of(operator).number = function
        return function

    return declare


def prepack(operator: Operator, slot: str, pack: Kernel) -> Callable[[Kernel], Kernel]:
    """Register the function that takes, as `packed`, the result of `pack` for input `slot`. The operator then has no other variants.

    `pack` takes the input and the attributes. Its result must be new memory of about the same size and depend on nothing else, or None if
    packing does not help. A plan packs a parameter once for many runs. Raises DeclarationError for a slot that is not an input.
    """

    def declare(function: Kernel) -> Kernel:
        _require_inputs(operator, slot)
        _of(operator).prepacked[slot] = pack, function
        return function

    return declare


def lowers_to(operator: Operator, text: str, *, function: Kernel | None = None, **conditions: Any) -> None:
    """Register an expression that gives the same bits as the kernel or a variant, under `conditions` as in `Expression`.

    A plan uses it in its source, as a function call would be slower in Python.
    """
    _of(operator).add_expression(function or operator.kernel, Expression(text, **conditions))
