"""Declarations of gradients, the derived signatures of gradient operators, and derived gradients of gradient operators.

The parameters of a gradient are the values it keeps alive. Each is an input or output of the forward operator, `d<output>`, or
`<input>_shape`; the signature is derived from them and the forward signature.

A gradient operator `f_dx` computes a linear map of the incoming gradient; its gradient with respect to that is the transpose of the map. It
follows from one of three declarations:

    f is element-wise                  each element is multiplied by a number: the map is its own transpose, so it is `f_dx`
    f is `linear_in` x                 the map is the transpose of f, so its transpose is f, applied to `ddx`
    f_dx_ddy, the transpose, exists    the transpose of that is `f_dx` again

If f is also linear in another input w, `f_dx` is linear in w, and its gradient with respect to w is `f_dw`, applied to `ddx`.

For complex numbers, the transpose is conjugated, as gradients are. If f is element-wise, so that the number is a conjugate, or declares
complex gradients, which pass conjugates to `f_dx`, the derived gradient conjugates ``ddx`` and the result. Otherwise `f_dx` is the
conjugate transpose, as for a Fourier transform, and its conjugate transpose is f.

An optional input of f is part of the linear map if `f_dx` reads it, as a factor; a bias is only added and is not part of it.
"""

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

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
    "derive_gradients",
    "derive_signature",
    "parameter_source",
    "require_differentiable",
    "require_gradient_name",
    "require_linear",
]

GradientProgram = Callable[..., Var | list[Var]]


@dataclass(frozen=True)
class Rule:
    """The gradient with respect to one input: an operator, a program of operators, or (neither) zero."""

    slot: str
    operator: "Operator | None" = None
    program: "GradientProgram | None" = None
    is_derived: bool = False
    """Whether it was derived, not declared: see `oarlock.registry.gradient`."""

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


def derive_gradients(gradient: "Operator") -> None:
    """Derive the gradients of a newly declared gradient operator, and the related ones of its forward operator."""
    forward, slot = gradient.forward, gradient.wrt
    assert forward is not None
    assert slot is not None
    given = {slot: f"dd{slot}", f"{slot}_shape": f"dd{slot}_shape"}
    if forward.forward is not None:
        kind = parameter_source(forward.forward.signature, slot)
        if kind and kind[0] == "gradient" and not kind[1].variadic:
            _derive(gradient, f"dd{forward.wrt}", forward, {slot: f"dd{slot}", f"{forward.wrt}_shape": f"dd{forward.wrt}_shape"})
        return
    arrived = f"d{forward.signature.outputs[0].name}"
    if is_elementwise(forward.signature):
        _derive(gradient, arrived, gradient, {arrived: given[slot]}, lambda: True)
    if slot not in forward.linear_in:
        return

    def is_product() -> bool:
        return slot in forward.complex_gradients

    _derive(gradient, arrived, forward, given, is_product)
    for other in forward.linear_in:
        rule = forward.gradients.get(other)
        if other != slot and rule is not None and rule.operator is not None:
            _derive(gradient, other, rule.operator, given, is_product)
            _derive(rule.operator, slot, gradient, {other: f"dd{other}", f"{other}_shape": f"dd{other}_shape"}, is_product)


def is_elementwise(signature: Signature) -> bool:
    """Return whether each output element depends only on the input elements at the same index."""
    slots = (*signature.inputs, *signature.outputs)
    axes = {slot.axes for slot in slots}
    same = len(signature.outputs) == 1 and len(axes) == 1 and signature.row_group is not None
    return same and len(slots[0].axes or ()) == 1 and not any(slot.variadic or slot.optional for slot in slots)


def _derive(
    gradient: "Operator", slot: str, applied: "Operator", names: Mapping[str, str], conjugates: Callable[[], bool] = lambda: False
) -> None:
    """Declare that `applied` computes the gradient of `gradient` with respect to `slot`, with its inputs renamed by `names`.

    If `conjugates`, which is called together with the program, complex inputs and results are conjugated. Nothing is declared if `gradient`
    does not read `slot`, lacks an input of `applied`, or already has a declared gradient.
    """
    known = inspect.signature(gradient.kernel).parameters
    taken = {each.name: each for each in inspect.signature(applied.kernel).parameters.values() if not _adds(applied, each, known)}
    parameters = [each.replace(name=names.get(name, name)) for name, each in taken.items()]
    there = {*known, *names.values()}
    has_all = all(each.name in there or each.name.removesuffix("_shape") in there for each in parameters)
    declared = gradient.gradients.get(slot)
    if slot not in known or not has_all or (declared is not None and not declared.is_derived):
        return
    inputs = [name for name, each in taken.items() if each.kind is not each.KEYWORD_ONLY]

    arrives = f"dd{gradient.wrt}"

    def program(*values: Var, **attributes: Any) -> Var:
        given = dict(zip(inputs, values, strict=True))
        at = next((name for name in inputs if names.get(name, name) == arrives), None)
        if at is None or not given[at].dtype.is_complex or not conjugates():
            return applied(**given, **attributes)
        conj = gradient.catalogue.get("conj")
        return conj(applied(**{**given, at: conj(given[at])}, **attributes))

    program.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # type: ignore[attr-defined]  # determines the values to keep alive
    gradient.gradients[slot] = Rule(slot, program=program, is_derived=True)


def _adds(operator: "Operator", parameter: inspect.Parameter, known: Collection[str]) -> bool:
    """Return whether an optional parameter only adds a term: an input that the gradient (with parameters `known`) does not read, or another
    gradient.
    """
    if parameter.kind is parameter.KEYWORD_ONLY or parameter.default is parameter.empty:
        return False
    if operator.forward is None:
        return parameter.name not in known
    source = parameter_source(operator.forward.signature, parameter.name)
    return source is not None and source[0] == "gradient"


def require_linear(operator: "Operator") -> None:
    """Check the `linear_in` declarations, which need required single inputs and one output. Raises DeclarationError."""
    for slot in operator.linear_in:  # empty for a gradient operator, whose signature is not known yet
        given, outputs = operator.signature.input(slot), operator.signature.outputs
        assert given is not None
        if given.optional or given.variadic or len(outputs) != 1 or outputs[0].variadic:
            raise DeclarationError(f"{operator.type}: linear_in needs a single output and a required single input, unlike {slot}")
