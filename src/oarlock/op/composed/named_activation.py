"""Activations by name, or as functions."""

from collections.abc import Callable

from oarlock.errors import ArgumentError
from oarlock.ir.location import here
from oarlock.ir.var import Var
from oarlock.op.activation import gelu, log_softmax, relu, sigmoid, softmax, tanh
from oarlock.op.composed.activations import relu6, selu, softsign
from oarlock.op.piecewise_activation import hardsigmoid, hardswish, hardtanh, leaky_relu
from oarlock.op.smooth_activation import elu, log_sigmoid, mish, silu, softplus
from oarlock.suggestions import did_you_mean

__all__ = ["Activation", "activate", "require_activation"]

Activation = str | Callable[[Var], Var]
"""An activation: its name, or a function of a variable, such as `ol.op.gelu`."""

_BY_NAME: dict[str, Callable[[Var], Var]] = {
    "relu": relu,
    "sigmoid": sigmoid,
    "softmax": softmax,
    "tanh": tanh,
    "elu": elu,
    "gelu": gelu,
    "hardsigmoid": hardsigmoid,
    "hardswish": hardswish,
    "hardtanh": hardtanh,
    "leaky_relu": leaky_relu,
    "log_sigmoid": log_sigmoid,
    "log_softmax": log_softmax,
    "mish": mish,
    "relu6": relu6,
    "selu": selu,
    "silu": silu,
    "softplus": softplus,
    "softsign": softsign,
}
"""The activations that layers know by name, with their default settings."""


def require_activation(act: Activation | None) -> Activation | None:
    """Return `act` if it is a known name, a callable, or None. Raises ArgumentError."""
    if act is not None and not (act in _BY_NAME if isinstance(act, str) else callable(act)):
        raise ArgumentError(
            f"no activation is called {act!r:.60}",
            location=here(),
            contract="the name of an activation, such as relu, sigmoid, softmax, tanh or gelu; or a function of one variable",
            hint=did_you_mean(str(act), _BY_NAME),
        )
    return act


def activate(x: Var, act: Activation | None) -> Var:
    """Apply the activation `act` to `x`; return `x` itself if it is None. Raises ArgumentError."""
    act = require_activation(act)
    return x if act is None else _BY_NAME[act](x) if isinstance(act, str) else act(x)
