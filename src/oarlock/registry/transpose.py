"""Derived gradients of gradient operators.

A gradient operator `f_dx` computes a linear map of the incoming gradient, and its gradient with respect to that is the transpose of the
map. It follows from one of three declarations:

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
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from oarlock.errors import DeclarationError
from oarlock.ir.var import Var
from oarlock.registry.gradient import Rule, parameter_source
from oarlock.registry.signature import Signature

if TYPE_CHECKING:
    from oarlock.registry.declaration import Operator

__all__ = ["derive_gradients", "require_linear"]


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
