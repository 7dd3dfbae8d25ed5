"""An activation by its name."""

from oarlock.errors import ArgumentError
from oarlock.ir.location import here
from oarlock.ir.variable import Var
from oarlock.op.activation import relu, sigmoid, softmax, tanh

__all__ = ["activate"]

_BY_NAME = {"relu": relu, "sigmoid": sigmoid, "softmax": softmax, "tanh": tanh}


def activate(x: Var, act: str | None) -> Var:
    """`x` through the activation called `act`; `x` itself where that is None. Raises ArgumentError."""
    if act is None:
        return x
    if act not in _BY_NAME:
        raise ArgumentError(f"no activation is called {act!r}", location=here(), contract=f"one of {', '.join(_BY_NAME)}")
    return _BY_NAME[act](x)
