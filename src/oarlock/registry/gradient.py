"""Declarations of gradients, and the derived signatures of gradient operators.

The parameters of a gradient are the values it keeps alive. Each is an input or output of the forward operator, `d<output>`, or
`<input>_shape`; the signature is derived from them and the forward signature.
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
    """The gradient with respect to one input: an operator, a program of operators, or (neither) zero."""

    slot: str
    operator: "Operator | None" = None
    program: "GradientProgram | None" = None
    is_derived: bool = False
    """Whether it was derived, not declared: see `oarlock.registry.transpose`."""

    @property
    def is_zero(self) -> bool:
        """Whether the gradient is declared to be zero."""
        return self.operator is None and self.program is None

    @property
    def parameters(self) -> tuple[str, ...]:
        """The values that the gradient reads, named as in `parameter_source`."""
        return tuple(parameter.name for parameter in self._declared if parameter.kind is not parameter.KEYWORD_ONLY)

    @property
    def optional(self) -> frozenset[str]:
        """The parameters whose default is None."""
        return frozenset(parameter.name for parameter in self._declared if parameter.default is None)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The forward attributes that the gradient reads."""
        return tuple(parameter.name for parameter in self._declared if parameter.kind is parameter.KEYWORD_ONLY)

    @cached_property
    def _declared(self) -> tuple[inspect.Parameter, ...]:
        """The parameters of the declaring function; none if the gradient is zero."""
        function = self.program or (self.operator.kernel if self.operator else None)
        return tuple(inspect.signature(function).parameters.values()) if function else ()


class Backward(Protocol):
    """The interface of the gradient pass (`passes/backward.py`) for gradients of operators with blocks."""

    into: Block
    """The block to which the gradient is appended."""

    def wants(self, var: Var) -> bool:
        """Return whether the gradient with respect to `var` is needed."""
        ...

    def gradient_of(self, var: Var) -> Var | None:
        """Return the gradient of an output, or None if it has none."""
        ...

    read: Callable[[Var], Var]
    """Returns the variable to read in `into` for a forward variable."""

    def depends(self, ops: Sequence[Op], targets: set[Var], sources: set[Var]) -> set[Var]:
        """Return the `targets` that depend on some of `sources` through a differentiable path of `ops`."""
        ...

    def differentiate(
        self,
        ops: Sequence[Op],
        into: Block,
        arrived: Sequence[tuple[Var, Var]],
        wanted: Sequence[Var],
        read: Callable[[Var], Var],
    ) -> "dict[Var, Var | list[RowGradient]]":
        """Append to `into` the gradient of `ops`, given the gradients `arrived` at some of their outputs.

        `read` is as above. Returns the gradients of those of `wanted` that have one; for a table with sparse gradients, those of each
        lookup.
        """
        ...


Builder = Callable[[Op, Backward], "list[tuple[Var, Var | RowGradient]]"]


def require_differentiable(operator: "Operator", slot: str) -> None:
    """Check that a slot is an input. Raises DeclarationError."""
    if operator.forward is None and operator.signature.input(slot) is None:  # derived signatures are not built just for this check
        raise DeclarationError(f"{operator.type} has no input {slot}, so it has no gradient with respect to it")


def require_gradient_name(operator: "Operator", slot: str, function: Callable[..., object]) -> str:
    """Return the gradient's name, `<type>_d<slot>`. Raises DeclarationError if the function has another name, or for an unknown slot."""
    name = f"{operator.type}_d{slot}"
    require_differentiable(operator, slot)
    if function.__name__.removesuffix("_") != name:
        raise DeclarationError(f"the gradient of {operator.type} with respect to {slot} must be called {name}, not {function.__name__}")
    return name


def parameter_source(forward: Signature, name: str) -> tuple[str, Slot] | None:
    """Return the meaning of a gradient's parameter: ("input" | "output" | "gradient" | "shape", the forward's slot)."""
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
    """Return the signature of a gradient operator. Raises DeclarationError for invalid parameters."""
    forward, wrt = operator.forward, operator.wrt
    assert forward is not None
    assert wrt is not None
    rule = forward.gradients[wrt]
    inputs: list[Slot] = []
    for name in rule.parameters:
        source = parameter_source(forward.signature, name)
        if source is None:
            outputs = ", ".join(f"d{slot.name}" for slot in forward.signature.outputs)
            raise DeclarationError(f"{operator.type}: {name} is not an input or output of {forward.type}, {outputs} or <input>_shape")
        kind, slot = source
        optional = slot.optional or name in rule.optional
        inputs.append(
            renamed(slot, name, dtype="shape" if kind == "shape" else slot.dtype, summed=False, repeated=False, optional=optional)
        )
    target = forward.signature.input(wrt)
    assert target is not None
    output = renamed(target, f"d{wrt}", optional=False, variadic=False, repeated=False)
    if wrt in forward.complex_gradients and any(slot.dtype.endswith(".real") for slot in inputs):  # this gradient is for real numbers only
        inputs = [renamed(slot, slot.name, dtype=real_class(slot.dtype)) for slot in inputs]
        output = renamed(output, output.name, dtype=real_class(output.dtype))
    whole = next((name for name in (wrt, f"{wrt}_shape") if name in rule.parameters), None)
    broadcasts = any(axis.kind == "broadcast" for axis in target.axes or ())
    known = {axis for slot in inputs for axis in slot.axes or ()}
    if whole:
        output = renamed(output, output.name, like=whole)
    elif broadcasts or target.axes is None or not set(target.axes) <= known:
        raise DeclarationError(f"{operator.type}: the shape of d{wrt} cannot be inferred; add a parameter {wrt}_shape")
    return Signature(tuple(inputs), (output,))
