"""The model that a script defines by the names of its variables, for `oarlock train`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from oarlock.errors import ArgumentError
from oarlock.ir.var import Var
from oarlock.optimizer.optimizer import Optimizer
from oarlock.registry.creator import describe_value

__all__ = ["ScriptModel", "model_in"]


@dataclass(frozen=True)
class ScriptModel:
    """The model of a script: `cost` is minimized, `show` is reported, `predict` is saved."""

    cost: Var
    show: dict[str, Var] = field(default_factory=dict)
    predict: "Var | Mapping[str, Var] | None" = None
    optimizer: Optimizer | None = None


def model_in(names: Mapping[str, object], file: str) -> ScriptModel:
    """Return the model among the global names of the script `file`. Raises ArgumentError for a missing or invalid name."""
    cost, predict = names.get("cost"), names.get("predict")
    if not isinstance(cost, Var):
        variables = [name for name, value in names.items() if isinstance(value, Var)]
        raise ArgumentError(
            f'"{file}" defines no variable "cost" to minimize' if cost is None else f'"cost" of "{file}" is {describe_value(cost)}',
            given=[f"its variables: {', '.join(variables)}"] if variables else [],
            hint="cost = ol.layer.cross_entropy(logits, label)",
        )
    show = names.get("show") or {}
    if not isinstance(show, Mapping) or not all(isinstance(var, Var) for var in show.values()):
        raise ArgumentError(f'"show" of "{file}" must be a dict of labels and variables, such as {{"accuracy": accuracy}}')
    if predict is not None and not isinstance(predict, Var | Mapping):
        raise ArgumentError(f'"predict" of "{file}" must be a variable or a dict of variables, not {describe_value(predict)}')
    optimizer = names.get("optimizer")
    return ScriptModel(cost, dict(show), predict, optimizer if isinstance(optimizer, Optimizer) else None)
