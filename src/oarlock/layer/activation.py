"""An activation by its name."""

import difflib

from oarlock.errors import ArgumentError
from oarlock.ir.location import here
from oarlock.ir.variable import Var
from oarlock.op.activation import relu, sigmoid, softmax, tanh

__all__ = ["activate", "require_activation"]

_BY_NAME = {"relu": relu, "sigmoid": sigmoid, "softmax": softmax, "tanh": tanh}


def require_activation(act: str | None) -> str | None:
    """`act`, if there is an activation of that name, or None. Raises ArgumentError."""
    if act is not None and act not in _BY_NAME:
        near = difflib.get_close_matches(str(act), _BY_NAME, n=1)
        raise ArgumentError(
            f"no activation is called {act!r:.60}",
            location=here(),
            contract=f"one of {', '.join(_BY_NAME)}",
            hint=f'did you mean "{near[0]}"?' if near else None,
        )
    return act


def activate(x: Var, act: str | None) -> Var:
    """`x` through the activation called `act`; `x` itself where that is None. Raises ArgumentError."""
    return x if require_activation(act) is None else _BY_NAME[act](x)  # type: ignore[index]
