"""`to_torch_state`: the values of a program as a state dict of the module it came from."""

from collections.abc import Iterator

import torch

from oarlock.errors import ArgumentError, UnsetVarError
from oarlock.interop.tied_names import find_tied_names
from oarlock.interop.torch.export import find_aliases
from oarlock.interop.torch.imported import ImportedModule
from oarlock.interop.torch.state import legal_name
from oarlock.ir.location import here
from oarlock.ir.program import Program
from oarlock.runtime.ownership import states_of
from oarlock.runtime.scope import Scope

__all__ = ["to_torch_state"]


def to_torch_state(
    model: object, like: ImportedModule | torch.nn.Module | None = None, *, name: str | None = None
) -> dict[str, torch.Tensor]:
    """Return the values of `model` as a state dict for the module's `load_state_dict`. Values are copies; tied ones appear under all names.

        net.load_state_dict(ol.to_torch_state(model))                        # a model of `from_torch`, trained in its scope
        result = ol.train(cost, data)
        net.load_state_dict(ol.to_torch_state(result, net))                  # the module is a layer of another program

    `model` is the result of `from_torch`, `ol.load_model` or `ol.train`, or a scope. `like`, the module or its import, selects the values
    to return; tensors that the program does not use are taken from `like`. Without it, all persistent values are returned except the
    optimizer's state. `name` is the name of the layer in another program.

    Raises ArgumentError if `model` has no values, and UnsetVarError if one is not set.
    """
    scope, program = _scope_of(model), getattr(model, "program", None)
    like = model if like is None and isinstance(model, ImportedModule) else like
    prefix = "" if name is None else f"{name}."
    if like is None:
        if not isinstance(program, Program):
            raise ArgumentError(
                "to_torch_state: a scope has no names of module tensors", location=here(), hint="use to_torch_state(scope, module)"
            )
        own = dict(_own_names(program, prefix))
        tied = find_tied_names(program, scope)
        aliases = {key.removeprefix(prefix): var for key, var in tied.items() if key.startswith(prefix)}
        return {
            key: _value(scope, var) for key, var in {**own, **{key: var for key, var in aliases.items() if var in own.values()}}.items()
        }
    state = like.graph.exported.state if isinstance(like, ImportedModule) else like.state_dict(keep_vars=True)
    state = {key: value for key, value in state.items() if isinstance(value, torch.Tensor)}
    aliases = find_aliases(state)
    found: dict[str, torch.Tensor] = {}
    for key, value in state.items():
        var = legal_name(prefix + aliases.get(key, key))
        start = like.graph.exported.copies.get(aliases.get(key, key), value) if isinstance(like, ImportedModule) else value
        found[key] = _value(scope, var) if var in scope else start.detach().cpu().clone()
    return found


def _scope_of(model: object) -> Scope:
    for holder in ("scope", "parameters"):
        if isinstance(getattr(model, holder, None), Scope):
            return getattr(model, holder)
    if isinstance(model, Scope):
        return model
    raise ArgumentError(f"to_torch_state takes a model, a result of ol.train or a scope, not {type(model).__name__}", location=here())


def _own_names(program: Program, prefix: str) -> Iterator[tuple[str, str]]:
    """Iterate over state dict keys and their variables: the program's persistent values, without internal and optimizer state."""
    left_out = {var.name for var in states_of(program)}
    for var in program.persistables():
        if var.name.startswith(prefix) and "@" not in var.name and var.name not in left_out:
            yield var.name.removeprefix(prefix), var.name


def _value(scope: Scope, name: str) -> torch.Tensor:
    found = scope.find_var(name)
    if found is None or not found.is_set or not isinstance(found.value, torch.Tensor):
        raise UnsetVarError(f'the parameter "{name}" has no value', hint="initialize it with ol.init(program, scope)")
    return found.value.detach().cpu().clone()
