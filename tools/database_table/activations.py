"""Activations."""

from oarlock import op

__all__ = ["CALLS"]


def along(function):
    """Along one axis, in a dtype that may be asked for."""

    def call(x, dim=None, _stacklevel=3, dtype=None):
        x = x if dtype is None else op.cast(x, dtype=dtype)
        if not x.shape:
            return op.reshape(function(op.reshape(x, shape=(1,)), axis=0), shape=())
        return function(x, axis=-1 if dim is None else dim)

    return call


CALLS = {
    "log_softmax": along(op.log_softmax),
    "log_softmax.with_dtype": along(op.log_softmax),
    "nn.functional.celu": lambda x, alpha=1.0, inplace=False: op.celu(x, alpha=alpha),
    "nn.functional.elu": lambda x, alpha=1.0, inplace=False: op.elu(x, alpha=alpha),
    "nn.functional.gelu": lambda x, approximate="none": op.gelu(x, approximate={"none": False, "tanh": True}.get(approximate, approximate)),
    "nn.functional.glu": lambda x, dim=-1: op.glu(x, axis=dim),
    "nn.functional.hardshrink": lambda x, lambd=0.5: op.hardshrink(x, bound=lambd),
    "nn.functional.hardsigmoid": lambda x, inplace=False: op.hardsigmoid(x),
    "nn.functional.hardswish": lambda x, inplace=False: op.hardswish(x),
    "nn.functional.hardtanh": lambda x, min_val=-1.0, max_val=1.0, inplace=False: op.hardtanh(x, lower=min_val, upper=max_val),
    "nn.functional.leaky_relu": lambda x, negative_slope=0.01, inplace=False: op.leaky_relu(x, slope=negative_slope),
    "nn.functional.logsigmoid": op.log_sigmoid,
    "nn.functional.mish": lambda x, inplace=False: op.mish(x),
    "nn.functional.prelu": lambda x, weight: op.prelu(x, weight),
    "nn.functional.relu": lambda x, inplace=False: op.relu(x),
    "nn.functional.relu6": lambda x, inplace=False: op.relu6(x),
    "nn.functional.selu": lambda x, inplace=False: op.selu(x),
    "nn.functional.silu": lambda x, inplace=False: op.silu(x),
    "nn.functional.softmin": along(op.softmin),
    "nn.functional.softmin.with_dtype": along(op.softmin),
    "nn.functional.softplus": lambda x, beta=1.0, threshold=20.0: op.softplus(x, beta=beta, threshold=threshold),
    "nn.functional.softshrink": lambda x, lambd=0.5: op.softshrink(x, bound=lambd),
    "nn.functional.softsign": op.softsign,
    "nn.functional.tanhshrink": op.tanhshrink,
    "nn.functional.threshold": lambda x, threshold, value, inplace=False: op.threshold(x, threshold=threshold, value=value),
    "softmax": along(op.softmax),
    "softmax.with_dtype": along(op.softmax),
}
