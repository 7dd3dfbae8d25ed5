"""Gradients of gradient operators that nobody has to declare, since they follow.

A gradient operator `f_dx` computes a linear map of the gradient that arrives, and its gradient with respect to that is the transpose of
the map. Three declarations tell it:

    f goes element by element          each element is multiplied by a number of its own: the map is its own transpose, so `f_dx`
    f is `linear_in` x                 the map is the transpose of f, so f, applied to `ddx`
    f_dx_ddy, the transpose, is given  the transpose of that is `f_dx` again

Where f is linear in another input w too, `f_dx` is linear in w, and its gradient with respect to w is `f_dw`, applied to `ddx`.

Of complex numbers, the transpose is conjugated, as gradients are. Where f goes element by element, so that the number is a conjugate, or
declares gradients of complex inputs, which give `f_dx` conjugates to multiply, what follows conjugates ``ddx`` and the result. Else `f_dx`
is the conjugate transpose, as of a Fourier transform, and that of it is f.

An input of f that may be left out has a part in the linear map where `f_dx` reads it, as a factor does; a bias adds to it and has none.
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
    """Give a gradient operator that was just declared those of its gradients that follow; and so the others of its forward operator."""
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
    """Whether an operator computes each element of its one output of the elements at the same index of its inputs alone."""
    slots = (*signature.inputs, *signature.outputs)
    axes = {slot.axes for slot in slots}
    same = len(signature.outputs) == 1 and len(axes) == 1 and signature.row_group is not None
    return same and len(slots[0].axes or ()) == 1 and not any(slot.variadic or slot.optional for slot in slots)


def _derive(
    gradient: "Operator", slot: str, applied: "Operator", names: Mapping[str, str], conjugates: Callable[[], bool] = lambda: False
) -> None:
    """Declare that `applied` computes the gradient of `gradient` with respect to `slot`, where it calls its inputs by these names.

    Where it `conjugates`, which is asked when the program is called, complex numbers are conjugated: what arrives, and the result.
    Nothing is declared where `gradient` does not read `slot`, has not all that `applied` takes, or has a gradient that was declared.
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

    program.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # which says what is kept alive
    gradient.gradients[slot] = Rule(slot, program=program, is_derived=True)


def _adds(operator: "Operator", parameter: inspect.Parameter, known: Collection[str]) -> bool:
    """Whether what may be left out adds a part of its own: an input that a gradient, which has `known`, need not read; another gradient."""
    if parameter.kind is parameter.KEYWORD_ONLY or parameter.default is parameter.empty:
        return False
    if operator.forward is None:
        return parameter.name not in known
    source = parameter_source(operator.forward.signature, parameter.name)
    return source is not None and source[0] == "gradient"


def require_linear(operator: "Operator") -> None:
    """Raise DeclarationError where an operator cannot be linear in an input that it says: in one of many, or with many outputs."""
    for slot in operator.linear_in:  # of which a gradient operator, whose signature is not known yet, has none
        given, outputs = operator.signature.input(slot), operator.signature.outputs
        assert given is not None
        if given.optional or given.variadic or len(outputs) != 1 or outputs[0].variadic:
            raise DeclarationError(
                f"{operator.type}: linear_in says how one output follows from an input that is always there, not from {slot}"
            )
