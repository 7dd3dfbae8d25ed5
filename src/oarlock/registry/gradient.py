"""How a gradient is declared, and the signature of the operator that it becomes.

A gradient's parameters are what it keeps alive. Each is an input or an output of the forward operator,
`d<output>`, or `<input>_shape`; from that list, and from the forward's signature, everything follows.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from oarlock.errors import DeclarationError
from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.row_gradient import RowGradient
from oarlock.ir.var import Var
from oarlock.registry.dtype_class import real_class
from oarlock.registry.signature import Signature, Slot, renamed

if TYPE_CHECKING:
    from oarlock.registry.declaration import Operator

__all__ = [
    "Backward",
    "Builder",
    "GradientProgram",
    "Rule",
    "derive_signature",
    "parameter_source",
    "require_differentiable",
    "require_gradient_name",
]


GradientProgram = Callable[..., Var | list[Var]]


@dataclass(frozen=True)
class Rule:
    """The gradient with respect to one input: an operator, a program of operators, or (neither) zero by meaning."""

    slot: str
    operator: "Operator | None" = None
    program: "GradientProgram | None" = None
    is_derived: bool = False
    """Whether nobody declared it: see `oarlock.registry.transpose`."""

    @property
    def is_zero(self) -> bool:
        """Whether the gradient is zero by meaning."""
        return self.operator is None and self.program is None

    @property
    def parameters(self) -> tuple[str, ...]:
        """The values that the gradient reads, by the names of `parameter_source`."""
        return tuple(parameter.name for parameter in self._declared if parameter.kind is not parameter.KEYWORD_ONLY)

    @property
    def optional(self) -> frozenset[str]:
        """The parameters that may be None: their default says so."""
        return frozenset(parameter.name for parameter in self._declared if parameter.default is None)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The forward's attributes that the gradient asks for."""
        return tuple(parameter.name for parameter in self._declared if parameter.kind is parameter.KEYWORD_ONLY)

    @cached_property
    def _declared(self) -> tuple[inspect.Parameter, ...]:
        """The parameters of the function that declares the gradient; none where it is zero."""
        function = self.program or (self.operator.kernel if self.operator else None)
        return tuple(inspect.signature(function).parameters.values()) if function else ()


class Backward(Protocol):
    """The services of the pass that builds gradients (`passes/backward.py`) for the gradient of a block operator."""

    into: Block
    """The block that the gradient is written into."""

    def wants(self, var: Var) -> bool:
        """Whether the gradient with respect to `var` is asked for, or leads to one that is."""
        ...

    def gradient_of(self, var: Var) -> Var | None:
        """The gradient that has arrived at an output, None where none has."""
        ...

    read: Callable[[Var], Var]
    """Gives the variable by which `into` reads the value of a forward variable."""

    def depends(self, ops: Sequence[Op], targets: set[Var], sources: set[Var]) -> set[Var]:
        """Those of `targets` that depend, by a differentiable path through `ops`, on some of `sources`."""
        ...

    def differentiate(
        self,
        ops: Sequence[Op],
        into: Block,
        arrived: Sequence[tuple[Var, Var]],
        wanted: Sequence[Var],
        read: Callable[[Var], Var],
    ) -> "dict[Var, Var | list[RowGradient]]":
        """Append to `into` the gradient of `ops`, given what has `arrived` at some of their outputs.

        `read` is as above. Returns the gradients of those of `wanted` that have one; for a table whose gradient is wanted by rows, those
        of each lookup.
        """
        ...


Builder = Callable[[Op, Backward], "list[tuple[Var, Var | RowGradient]]"]


def require_differentiable(operator: "Operator", slot: str) -> None:
    """Raises DeclarationError for a slot that is no input."""
    if operator.forward is None and operator.signature.input(slot) is None:  # a derived signature is not made just for this
        raise DeclarationError(f"{operator.type} has no input {slot}, so it has no gradient with respect to it")


def require_gradient_name(operator: "Operator", slot: str, function: Callable[..., object]) -> str:
    """The gradient's name, `<type>_d<slot>`. Raises DeclarationError where the function has another, or `slot` is unknown."""
    name = f"{operator.type}_d{slot}"
    require_differentiable(operator, slot)
    if function.__name__.removesuffix("_") != name:
        raise DeclarationError(f"the gradient of {operator.type} with respect to {slot} is called {name}, not {function.__name__}")
    return name


def parameter_source(forward: Signature, name: str) -> tuple[str, Slot] | None:
    """The meaning of a gradient's parameter: ("input" | "output" | "gradient" | "shape", the forward's slot)."""
    slot = forward.input(name)
    if slot:
        return "input", slot
    slot = forward.output(name)
    if slot:
        return "output", slot
    slot = forward.output(name[1:]) if name.startswith("d") else None
    if slot:
        return "gradient", slot
    base = name.removesuffix("_shape")
    slot = (forward.input(base) or forward.output(base)) if name != base else None
    return ("shape", slot) if slot else None


def derive_signature(operator: "Operator") -> Signature:
    """The signature of a gradient operator. Raises DeclarationError where its parameters do not add up."""
    forward, wrt = operator.forward, operator.wrt
    assert forward is not None
    assert wrt is not None
    rule = forward.gradients[wrt]
    inputs: list[Slot] = []
    for name in rule.parameters:
        source = parameter_source(forward.signature, name)
        if source is None:
            outputs = ", ".join(f"d{slot.name}" for slot in forward.signature.outputs)
            raise DeclarationError(
                f"{operator.type}: {name} is no input or output of {forward.type}, none of {outputs}, and no <input>_shape"
            )
        kind, slot = source
        optional = slot.optional or name in rule.optional
        inputs.append(
            renamed(slot, name, dtype="shape" if kind == "shape" else slot.dtype, summed=False, repeated=False, optional=optional)
        )
    target = forward.signature.input(wrt)
    assert target is not None
    output = renamed(target, f"d{wrt}", optional=False, variadic=False, repeated=False)
    if wrt in forward.complex_gradients and any(slot.dtype.endswith(".real") for slot in inputs):  # this one is of real numbers alone
        inputs = [renamed(slot, slot.name, dtype=real_class(slot.dtype)) for slot in inputs]
        output = renamed(output, output.name, dtype=real_class(output.dtype))
    whole = next((name for name in (wrt, f"{wrt}_shape") if name in rule.parameters), None)
    broadcasts = any(axis.kind == "broadcast" for axis in target.axes or ())
    known = {axis for slot in inputs for axis in slot.axes or ()}
    if whole:
        output = renamed(output, output.name, like=whole)
    elif broadcasts or target.axes is None or not set(target.axes) <= known:
        raise DeclarationError(f"{operator.type}: nothing tells the shape of d{wrt}; take {wrt}_shape")
    return Signature(tuple(inputs), (output,))
