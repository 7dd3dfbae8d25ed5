"""A script that makes a model and leaves the training to who runs it: what its names say."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from oarlock.errors import ArgumentError
from oarlock.ir.var import Var
from oarlock.optimizer.optimizer import Optimizer
from oarlock.registry.creator import describe_value

__all__ = ["ScriptModel", "model_in"]


@dataclass(frozen=True)
class ScriptModel:
    """The model of a script, by its names: `cost` is lowered, `show` is measured, `predict` is saved."""

    cost: Var
    show: dict[str, Var] = field(default_factory=dict)
    predict: "Var | Mapping[str, Var] | None" = None
    optimizer: Optimizer | None = None


def model_in(names: Mapping[str, object], file: str) -> ScriptModel:
    """The model among the global names that the script `file` has left. Raises ArgumentError for one that is missing, or something else."""
    cost, predict = names.get("cost"), names.get("predict")
    if not isinstance(cost, Var):
        variables = [name for name, value in names.items() if isinstance(value, Var)]
        raise ArgumentError(
            f'"{file}" makes no variable "cost", which training lowers'
            if cost is None
            else f'"cost" of "{file}" is {describe_value(cost)}',
            given=[f"it has the variables {', '.join(variables)}"] if variables else [],
            hint="cost = ol.layer.cross_entropy(logits, label)",
        )
    show = names.get("show") or {}
    if not isinstance(show, Mapping) or not all(isinstance(var, Var) for var in show.values()):
        raise ArgumentError(f'"show" of "{file}" is a dict of variables by their labels, such as {{"accuracy": accuracy}}')
    if predict is not None and not isinstance(predict, Var | Mapping):
        raise ArgumentError(f'"predict" of "{file}" is a variable, or a dict of variables, not {describe_value(predict)}')
    optimizer = names.get("optimizer")
    return ScriptModel(cost, dict(show), predict, optimizer if isinstance(optimizer, Optimizer) else None)
