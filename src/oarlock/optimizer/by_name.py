"""Optimizers from text, such as on a command line."""

import ast
import inspect

from oarlock import optimizer as optimizers
from oarlock.errors import ArgumentError
from oarlock.optimizer.optimizer import Optimizer
from oarlock.suggestions import did_you_mean

__all__ = ["optimizer_from"]


def optimizer_from(text: str, learning_rate: float | None = None) -> Optimizer:
    """Return the optimizer for text such as "adam" or "AdamW(1e-3, weight_decay=0.1)", ignoring case; no code is run.

    `learning_rate` overrides that of the text. Raises ArgumentError for an unknown name and for arguments other than plain values, and the
    errors of the optimizer.
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
            f"write an optimizer as adam or AdamW(1e-3, weight_decay=0.1), with plain values, not as {text!r:.60}"
        ) from None
    kinds = _kinds()
    kind = next((kinds[name] for name in kinds if name.lower() == call.func.id.lower()), None)
    if kind is None:
        raise ArgumentError(
            f'there is no optimizer "{call.func.id:.60}"',
            given=[f"optimizers: {', '.join(sorted(kinds, key=str.lower))}"],
            hint=did_you_mean(call.func.id, kinds),
        )
    if learning_rate is not None:
        arguments, keywords = arguments[1:], {name: value for name, value in keywords.items() if name != "learning_rate"}
        return kind(learning_rate, *arguments, **keywords)
    return kind(*arguments, **keywords)


def _kinds() -> dict[str, type[Optimizer]]:
    """Return the optimizers that can be constructed from plain values."""
    found = {name: getattr(optimizers, name) for name in optimizers.__all__}
    return {
        name: kind
        for name, kind in found.items()
        if isinstance(kind, type)
        and issubclass(kind, Optimizer)
        and kind is not Optimizer
        and "learning_rate" in inspect.signature(kind).parameters
    }
