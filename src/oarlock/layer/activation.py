"""An activation by its name."""

from oarlock.errors import ArgumentError
from oarlock.ir.location import here
from oarlock.ir.variable import Var
from oarlock.op.activation import relu, sigmoid, softmax, tanh
from oarlock.spelling import did_you_mean

__all__ = ["activate", "require_activation"]

_BY_NAME = {"relu": relu, "sigmoid": sigmoid, "softmax": softmax, "tanh": tanh}


def require_activation(act: str | None) -> str | None:
    """`act`, if there is an activation of that name, or None. Raises ArgumentError."""
    if act is not None and act not in _BY_NAME:
        raise ArgumentError(
            f"no activation is called {act!r:.60}",
            location=here(),
            contract=f"one of {', '.join(_BY_NAME)}",
            hint=did_you_mean(str(act), _BY_NAME),
        )
    return act


def activate(x: Var, act: str | None) -> Var:
    """`x` through the activation called `act`; `x` itself where that is None. Raises ArgumentError."""
    return x if require_activation(act) is None else _BY_NAME[act](x)  # type: ignore[index]
