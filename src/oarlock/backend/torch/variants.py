"""The functions by which PyTorch computes an operator: its kernel, and variants of it that cost less where a plan knows more.

Most variants are derived from the kernel: see `derivation`. Those that cannot be are written by hand, in the file of this folder that has
the name of the operator's family, and declared there by the functions below. Each gives the bits of the kernel; within rounding where the
operator rounds by place. Each is tested to, by the operator's cases.
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
    """The variants of one operator. What is declared stands before what is derived, which is looked for when it is first asked for."""

    def __init__(self, operator: Operator):
        self.operator = operator
        self.number: Kernel | None = None
        self.prepacked: dict[str, tuple[Kernel, Kernel]] = {}  # by slot: what packs it, and the kernel that is given that too
        self._in_place: dict[tuple[str, ...], Kernel] = {}  # declared, and so are the expressions
        self._expressions: dict[Kernel, list[Expression]] = {}
        self._lowered: dict[Kernel, list[Expression]] = {}  # with those that are derived, as they are asked for

    @cached_property
    def out(self) -> Kernel | None:
        """The function that writes into `out`, a tensor of the output's shape and dtype that overlaps no input; see `out_variant`."""
        return None if self.prepacked else derive_out(self.operator)

    @cached_property
    def in_place(self) -> dict[tuple[str, ...], Kernel]:
        """The functions in which output `i` takes the memory of input `slots[i]`, by these slots; see `in_place_variant`."""
        return self._in_place or ({} if self.prepacked else derive_in_place(self.operator))

    @cached_property
    def host(self) -> Kernel | None:
        """The function of Python's numbers, for tensors of one number each; see `host_function`."""
        function = only_call(self.operator.kernel)
        return None if function is None else find_host_function(function, [slot.dtype for slot in self.operator.signature.inputs])

    @cached_property
    def expressions(self) -> dict[Kernel, list[Expression]]:
        """The expressions that the kernel, and each variant, lowers to on some conditions.

        The first one whose conditions hold is written in the line of an op.
        """
        functions = [self.operator.kernel, *([] if self.out is None else [self.out]), *self.in_place.values()]
        found = {function: self.expressions_of(function) for function in functions}
        return {function: expressions for function, expressions in found.items() if expressions}

    def expressions_of(self, function: Kernel) -> list[Expression]:
        """Those of `expressions` that one function has. A plan asks for few functions, so others are not even derived."""
        if function not in self._lowered:
            own = self.operator.own_values
            others = (self.number, None if own is None else own.kernel)  # these are called: they compute less than the kernel
            derived = [] if function in others else derive_expressions(self.operator, function)
            self._lowered[function] = [*self._expressions.get(function, ()), *derived]
        return self._lowered[function]

    def add_in_place(self, slots: tuple[str, ...], function: Kernel) -> None:
        """Declare a function that takes the memory of some inputs."""
        self._in_place[slots] = function
        self._forget()

    def add_expression(self, function: Kernel, expression: Expression) -> None:
        """Declare an expression that one of the functions lowers to."""
        self._expressions.setdefault(function, []).append(expression)
        self._forget()

    def _forget(self) -> None:
        """Look again for what follows from the declarations."""
        for name in ("in_place", "expressions"):
            self.__dict__.pop(name, None)
        self._lowered.clear()


_variants: WeakKeyDictionary[Operator, Variants] = WeakKeyDictionary()
_loaded: set[str] = set()


def variants_of(operator: Operator) -> Variants:
    """The variants of `operator`."""
    module = operator.kernel.__module__ or ""  # which a function that was made of text may lack
    if module not in _loaded:
        _loaded.add(module)
        family = module.removeprefix(_OPERATORS)
        if module.startswith(_OPERATORS) and family in _families():
            importlib.import_module(_FAMILIES + family)
    return _of(operator)


@cache
def _families() -> frozenset[str]:
    """The modules of this folder."""
    return frozenset(module.name for module in pkgutil.iter_modules(importlib.import_module(_FAMILIES[:-1]).__path__))


def _of(operator: Operator) -> Variants:
    found = _variants.get(operator)
    if found is None:
        found = _variants[operator] = Variants(operator)
    return found


def _require_inputs(operator: Operator, *slots: str) -> None:
    """Raises DeclarationError for a slot that is no input. A gradient's signature is not made just for this: tests look there."""
    for slot in slots:
        if operator.forward is None and operator.signature.input(slot) is None:
            raise DeclarationError(f"{operator.type} has no input {slot}")


def out_variant(operator: Operator) -> Callable[[Kernel], Kernel]:
    """Declare the function that writes into `out`, a tensor of the output's shape and dtype that overlaps no input, and returns it.

    It gives the bits of the kernel wherever `out` lies in memory, which may be a slice of columns of a larger tensor.
    """

    def declare(function: Kernel) -> Kernel:
        _of(operator).out = function
        return function

    return declare


def in_place_variant(operator: Operator, *slots: str) -> Callable[[Kernel], Kernel]:
    """Declare the function in which output `i` takes the memory of input `slots[i]`, in place of all those that are derived.

    Of a variadic slot it is the memory of the first variable; a variadic output takes that of all of them, one for one. The function is
    called only where the input that gives its memory has the shape and the dtype of the output; an uneven stack gives none, and the output
    is fresh memory. A keyword `alone` says that nothing else lies there, so that strides may change. Raises DeclarationError for a slot
    that is no input.
    """

    def declare(function: Kernel) -> Kernel:
        _require_inputs(operator, *slots)
        _of(operator).add_in_place(slots, function)
        return function

    return declare


def host_function(operator: Operator) -> Callable[[Kernel], Kernel]:
    """Declare the function of Python's numbers, for tensors of one number each.

    It is called only for what is a bool, which is the kernel's, or an integer: the kernel's if integers had no end, for the plan cuts them.
    Raises DeclarationError for an operator with attributes, which it is not given.
    """

    def declare(function: Kernel) -> Kernel:
        if operator.attributes:
            raise DeclarationError(f"{operator.type} takes attributes, which a function of numbers is not given")
        _of(operator).host = function
        return function

    return declare


def number_function(operator: Operator) -> Callable[[Kernel], Kernel]:
    """Declare the function that gives the one number which the output would hold, of the same inputs and attributes.

    A plan calls it where the host asks for that number and nobody for the tensor.
    """

    def declare(function: Kernel) -> Kernel:
        _of(operator).number = function
        return function

    return declare


def prepack(operator: Operator, slot: str, pack: Kernel) -> Callable[[Kernel], Kernel]:
    """Declare the function that is also given, as `packed`, what `pack` has made of input `slot`. The operator has no other variant then.

    `pack` is given the input and the attributes; what it makes is new, takes about as much memory, and depends on nothing else. It may be
    None, where it would not help. A plan packs a parameter once for many runs. Raises DeclarationError for a slot that is no input.
    """

    def declare(function: Kernel) -> Kernel:
        _require_inputs(operator, slot)
        _of(operator).prepacked[slot] = pack, function
        return function

    return declare


def lowers_to(operator: Operator, text: str, *, function: Kernel | None = None, **conditions: Any) -> None:
    """Declare an expression that gives the bits of the kernel, or of a variant, on the `conditions` that `Expression` takes.

    A plan writes it in its line, where a call of the function would cost calls of Python more.
    """
    _of(operator).add_expression(function or operator.kernel, Expression(text, **conditions))
