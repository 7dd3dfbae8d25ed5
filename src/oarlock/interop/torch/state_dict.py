"""`to_torch_state`: the values of a program as a state dict of the module that it came from."""

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
    """The values of `model` as a state dict, which the module's `load_state_dict` takes back: copies, tied ones under all of their names.

        net.load_state_dict(ol.to_torch_state(model))                        # what `from_torch` returned, trained in its scope
        result = ol.train(cost, data)
        net.load_state_dict(ol.to_torch_state(result, net))                  # of a program of one's own that the module is a layer of

    `model` is what `from_torch`, `ol.load_model` or `ol.train` returned, or a scope. `like`, the module or what `from_torch` made of it,
    says which values are asked for; what the program does not hold, since nothing in it reads that, is as `like` has it. Without it, they
    are all that the program keeps but for its optimizer's state. `name` is the layer's in a program of one's own.
    Raises ArgumentError for what holds no values, UnsetVarError where one has none.
    """
    scope, program = _scope_of(model), getattr(model, "program", None)
    like = model if like is None and isinstance(model, ImportedModule) else like
    prefix = "" if name is None else f"{name}."
    if like is None:
        if not isinstance(program, Program):
            raise ArgumentError(
                "to_torch_state: a scope alone does not say what it holds", location=here(), hint="to_torch_state(scope, module)"
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
    """Keys of a state dict, and the variables behind them: what the program keeps, what is ours and its optimizer's left out."""
    left_out = {var.name for var in states_of(program)}
    for var in program.persistables():
        if var.name.startswith(prefix) and "@" not in var.name and var.name not in left_out:
            yield var.name.removeprefix(prefix), var.name


def _value(scope: Scope, name: str) -> torch.Tensor:
    found = scope.find_var(name)
    if found is None or not found.is_set or not isinstance(found.value, torch.Tensor):
        raise UnsetVarError(f'the parameters hold no value of "{name}"', hint="ol.init(program, scope) makes first ones")
    return found.value.detach().cpu().clone()
