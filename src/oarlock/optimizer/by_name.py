"""An optimizer by what is written to make it, as text."""

import ast
import inspect

from oarlock import optimizer as optimizers
from oarlock.errors import ArgumentError
from oarlock.optimizer.optimizer import Optimizer
from oarlock.suggestions import did_you_mean

__all__ = ["optimizer_from"]


def optimizer_from(text: str, learning_rate: float | None = None) -> Optimizer:
    """The optimizer in text such as "adam", or "AdamW(1e-3, weight_decay=0.1)", in any case; nothing in it is run.

    A `learning_rate` goes before that in the text. Raises ArgumentError for a name that is none, for arguments that are no plain values,
    and as the optimizer does.
    """
    try:
        found = ast.parse(text.strip(), mode="eval").body
        call = found if isinstance(found, ast.Call) else ast.Call(func=found, args=[], keywords=[])
        if not isinstance(call.func, ast.Name) or any(keyword.arg is None for keyword in call.keywords):
            raise ValueError
        arguments = [ast.literal_eval(value) for value in call.args]
        keywords = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise ArgumentError(
            f"an optimizer is written as adam, or as AdamW(1e-3, weight_decay=0.1), with plain values, not as {text!r:.60}"
        ) from None
    kinds = _kinds()
    kind = next((kinds[name] for name in kinds if name.lower() == call.func.id.lower()), None)
    if kind is None:
        raise ArgumentError(
            f'there is no optimizer "{call.func.id:.60}"',
            given=[f"there are: {', '.join(sorted(kinds, key=str.lower))}"],
            hint=did_you_mean(call.func.id, kinds),
        )
    if learning_rate is not None:
        arguments, keywords = arguments[1:], {name: value for name, value in keywords.items() if name != "learning_rate"}
        return kind(learning_rate, *arguments, **keywords)
    return kind(*arguments, **keywords)


def _kinds() -> dict[str, type[Optimizer]]:
    """The optimizers that are made of plain values."""
    found = {name: getattr(optimizers, name) for name in optimizers.__all__}
    return {
        name: kind
        for name, kind in found.items()
        if isinstance(kind, type)
        and issubclass(kind, Optimizer)
        and kind is not Optimizer
        and "learning_rate" in inspect.signature(kind).parameters
    }
