"""Gradients of gradient operators that nobody has to declare, since they follow.

A gradient operator `f_dx` computes a linear map of the gradient that arrives, and its gradient with respect to that is the transpose of
the map. Three declarations tell it:

    f goes element by element          each element is multiplied by a number of its own: the map is its own transpose, so `f_dx`
    f is `linear_in` x                 the map is the transpose of f, so f, applied to `ddx`
    f_dx_ddy, the transpose, is given  the transpose of that is `f_dx` again

Where f is linear in another input w too, `f_dx` is linear in w, and its gradient with respect to w is `f_dw`, applied to `ddx`.
"""

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from oarlock.ir.var import Var
from oarlock.registry.gradient import Rule, parameter_source
from oarlock.registry.signature import Signature

if TYPE_CHECKING:
    from oarlock.registry.declaration import Operator

__all__ = ["derive_gradients"]


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
        _derive(gradient, arrived, gradient, {arrived: given[slot]})
    if slot not in forward.linear_in:
        return
    _derive(gradient, arrived, forward, given)
    for other in forward.linear_in:
        rule = forward.gradients.get(other)
        if other != slot and rule is not None and rule.operator is not None:
            _derive(gradient, other, rule.operator, given)
            _derive(rule.operator, slot, gradient, {other: f"dd{other}", f"{other}_shape": f"dd{other}_shape"})


def is_elementwise(signature: Signature) -> bool:
    """Whether an operator computes each element of its one output of the elements at the same index of its inputs alone."""
    slots = (*signature.inputs, *signature.outputs)
    axes = {slot.axes for slot in slots}
    same = len(signature.outputs) == 1 and len(axes) == 1 and signature.row_group is not None
    return same and len(slots[0].axes or ()) == 1 and not any(slot.variadic or slot.optional for slot in slots)


def _derive(gradient: "Operator", slot: str, applied: "Operator", names: Mapping[str, str]) -> None:
    """Declare that `applied` computes the gradient of `gradient` with respect to `slot`, where it calls its inputs by these names.

    Nothing is declared where `gradient` does not read `slot`, or has not all that `applied` takes.
    """
    known = inspect.signature(gradient.kernel).parameters
    taken = {each.name: each for each in inspect.signature(applied.kernel).parameters.values() if not _adds(applied, each)}
    parameters = [each.replace(name=names.get(name, name)) for name, each in taken.items()]
    missing = {each.name.removesuffix("_shape") for each in parameters} - {
        *known,
        *(name.removesuffix("_shape") for name in names.values()),
    }
    if slot not in known or missing:
        return
    inputs = [name for name, each in taken.items() if each.kind is not each.KEYWORD_ONLY]

    def program(*values: Var, **attributes: Any) -> Var:
        return applied(**dict(zip(inputs, values, strict=True)), **attributes)

    program.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # which says what is kept alive
    gradient.gradients[slot] = Rule(slot, program=program)


def _adds(operator: "Operator", parameter: inspect.Parameter) -> bool:
    """Whether an input that may be left out adds a part of its own, as a bias does: that has no part in the linear map."""
    if parameter.kind is parameter.KEYWORD_ONLY or parameter.default is parameter.empty:
        return False
    source = None if operator.forward is None else parameter_source(operator.forward.signature, parameter.name)
    return source is None or source[0] == "gradient"
