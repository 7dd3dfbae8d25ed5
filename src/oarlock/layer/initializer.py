"""Initializers of parameters. Each function returns a rule from a parameter's shape to its initializer.

The fans of a parameter are its numbers of inputs and outputs per element: k and n for a matrix [k, n]; c kh kw and f kh kw for filters [f,
c, kh, kw]; the number of elements for a vector or scalar.
"""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy
import torch

from oarlock.errors import ArgumentError, DTypeError, LimitError, ShapeError
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.var import Initializer
from oarlock.registry.checked_call import publish
from oarlock.runtime.value import describe_value, exact_numbers, find_dense_form, to_tensor
from oarlock.suggestions import did_you_mean
from oarlock.tensor.dtype import to_torch

__all__ = [
    "Rule",
    "array",
    "constant",
    "dirac",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "identity",
    "kaiming",
    "kaiming_normal",
    "kaiming_uniform",
    "lecun_normal",
    "lecun_uniform",
    "normal",
    "ones",
    "orthogonal",
    "sparse",
    "truncated_normal",
    "uniform",
    "xavier",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
]

HELD_BYTES = 16 * 2**20
"""The largest initial value, in bytes, that a program may contain: a quarter of the default size limit when reading a program."""


@dataclass(frozen=True, eq=False)
class HeldArray:
    """The rule of parameters that start as an array. Calling it with a shape and a dtype returns an initializer with the elements."""

    tensor: torch.Tensor

    def __call__(self, shape: tuple[int, ...], dtype: DType) -> Initializer:
        if tuple(self.tensor.shape) != tuple(shape):
            raise ShapeError(
                f"array: the parameter has shape {list(shape)}, but its initial value has shape {list(self.tensor.shape)}", location=here()
            )
        if self.tensor.is_complex() and not dtype.is_complex:
            raise DTypeError(f"array: a {dtype} parameter cannot hold complex numbers", location=here())
        value = self.tensor.to(to_torch(dtype))
        if value.nbytes > HELD_BYTES:
            raise LimitError(
                f"array: an initial value of {value.nbytes:,} bytes, but a program may contain at most {HELD_BYTES:,}",
                location=here(),
                hint="set the value outside the program: scope.set(name, value)",
            )
        return hold(value)


def array(values: object) -> HeldArray:
    """Initialize to the elements of an array or of nested lists, converted to the parameter's dtype and stored in the program.

    When a parameter is created, raises ShapeError if its shape differs, and LimitError above 16 MiB: use `scope.set(name, value)` instead.
    Raises DTypeError if `values` is not an array of numbers, or complex for a float parameter; ArgumentError for a tensor that is not
    dense.
    """
    tensor = to_tensor(values)
    if (form := find_dense_form(tensor)) is not None:
        raise ArgumentError(f"array: {describe_value(tensor)} cannot be stored in a file", location=here(), hint=form)
    exact = exact_numbers(values, tensor)
    return HeldArray(tensor.clone() if exact is None else exact)


def hold(tensor: torch.Tensor) -> Initializer:
    """Return the initializer that contains the elements of `tensor`."""
    return Initializer("array", {"data": _little_endian(tensor), "shape": tuple(tensor.shape)})


def _little_endian(tensor: torch.Tensor) -> bytes:
    """Return the elements in row order and little-endian, as files store them on every machine."""
    data = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy() if tensor.numel() else numpy.empty(0, "uint8")
    return (data if sys.byteorder == "little" else data.reshape(-1, tensor.real.itemsize)[:, ::-1]).tobytes()


Rule = Callable[[tuple[int, ...]], Initializer] | HeldArray
"""A function from the shape of a parameter to its initializer."""


def constant(value: float) -> Rule:
    """Initialize every element to `value`."""
    return lambda shape: Initializer("constant", {"value": float(value)})


def zeros() -> Rule:
    """Initialize every element to 0."""
    return constant(0.0)


def ones() -> Rule:
    """Initialize every element to 1."""
    return constant(1.0)


def uniform(low: float, high: float) -> Rule:
    """Draw elements uniformly from `low` to `high`."""
    return lambda shape: Initializer("uniform", {"low": float(low), "high": float(high)})


def normal(mean: float = 0.0, deviation: float = 1.0) -> Rule:
    """Draw elements from a normal distribution with this mean and standard deviation."""
    return lambda shape: Initializer("normal", {"mean": float(mean), "deviation": float(deviation)})


def truncated_normal(mean: float = 0.0, deviation: float = 1.0, *, low: float | None = None, high: float | None = None) -> Rule:
    """Draw elements from a normal distribution truncated to `low` and `high`, by default two deviations around the mean.

    `deviation` applies to the normal distribution before truncation; truncation at two deviations multiplies it by 0.88. Raises
    ArgumentError unless `low` is below `high` and `deviation` is positive.
    """
    least, most = (mean - 2.0 * deviation if low is None else low), (mean + 2.0 * deviation if high is None else high)
    if not (least < most and deviation > 0.0):
        raise ArgumentError(
            f"truncated_normal: low must be below high and deviation above 0, not {least}, {most} and {deviation}", location=here()
        )
    bounds = {"mean": float(mean), "deviation": float(deviation), "low": float(least), "high": float(most)}
    return lambda shape: Initializer("truncated_normal", dict(bounds))


def xavier_uniform(gain: float = 1.0) -> Rule:
    """Draw uniformly such that signals keep their variance in both directions (Glorot and Bengio, 2010, equation 16), times `gain`."""

    def rule(shape: tuple[int, ...]) -> Initializer:
        bound = gain * math.sqrt(6.0 / sum(_fans(shape)))
        return Initializer("uniform", {"low": -bound, "high": bound})

    return rule


def xavier_normal(gain: float = 1.0) -> Rule:
    """Draw from a normal distribution with variance ``gain**2 * 2 / (fan_in + fan_out)`` (Glorot and Bengio, 2010)."""
    return lambda shape: Initializer("normal", {"mean": 0.0, "deviation": gain * math.sqrt(2.0 / sum(_fans(shape)))})


def kaiming_uniform(*, mode: str = "fan_in", nonlinearity: str = "relu", slope: float | None = None) -> Rule:
    """Draw uniformly with the variance of `kaiming_normal`. Raises ArgumentError."""
    deviation = _kaiming(mode, nonlinearity, slope)

    def rule(shape: tuple[int, ...]) -> Initializer:
        bound = math.sqrt(3.0) * deviation(shape)
        return Initializer("uniform", {"low": -bound, "high": bound})

    return rule


def kaiming_normal(*, mode: str = "fan_in", nonlinearity: str = "relu", slope: float | None = None) -> Rule:
    """Draw from a normal distribution with deviation ``gain / sqrt(fan)``, which preserves variance (He et al., 2015, equations 10 and 15).

    `mode` selects the fan: "fan_in" preserves the variance of activations, "fan_out" that of gradients, and "fan_average" is the mean of
    both. The gain depends on `nonlinearity`: "linear", "sigmoid", "tanh", "relu", "selu", or "leaky_relu" with negative `slope`, by default
    0.01. Raises ArgumentError.
    """
    deviation = _kaiming(mode, nonlinearity, slope)
    return lambda shape: Initializer("normal", {"mean": 0.0, "deviation": deviation(shape)})


def lecun_uniform() -> Rule:
    """Draw uniformly with variance ``1 / fan_in`` (LeCun et al., 1998)."""
    return kaiming_uniform(nonlinearity="linear")


def lecun_normal() -> Rule:
    """Draw from a normal distribution with variance ``1 / fan_in`` (LeCun et al., 1998; for selu, Klambauer et al., 2017)."""
    return kaiming_normal(nonlinearity="linear")


def orthogonal(gain: float = 1.0) -> Rule:
    """Initialize to a matrix with orthogonal rows, or orthogonal columns if there are fewer of them, of length `gain`.

    For a parameter of more axes, the first axis is the rows and the others are flattened to columns (Saxe et al., 2014). Raises
    ArgumentError for a parameter of fewer than two axes.
    """
    return _of_matrix("orthogonal", {"gain": float(gain)}, 2)


def identity(gain: float = 1.0) -> Rule:
    """Initialize to `gain` times the identity matrix.

    Raises ArgumentError for a parameter that does not have two axes.
    """
    return _of_matrix("identity", {"gain": float(gain), "groups": 1}, 2, 2)


def dirac(groups: int = 1) -> Rule:
    """Initialize convolution filters to the identity: filter ``i`` of each of `groups` is 1 at the center of channel ``i``, else 0.

    Raises ArgumentError for a parameter of fewer than three axes, or if `groups` does not divide the first (Zagoruyko and Komodakis, 2017).
    """
    return _of_matrix("identity", {"gain": 1.0, "groups": groups}, 3, what="dirac")


def sparse(sparsity: float, deviation: float = 0.01) -> Rule:
    """Draw normal numbers, and set the fraction `sparsity` of each column, rounded up, to 0 (Martens, 2010).

    Raises ArgumentError for a parameter that does not have two axes.
    """
    if not 0.0 <= sparsity <= 1.0:
        raise ArgumentError(f"sparse: sparsity must be in [0, 1], not {sparsity}", location=here())
    return _of_matrix("sparse", {"sparsity": float(sparsity), "deviation": float(deviation)}, 2, 2)


def xavier() -> Rule:
    """Return `xavier_uniform`, the default of most layers."""
    return xavier_uniform()


def kaiming() -> Rule:
    """Return `kaiming_normal`, the default of convolutions."""
    return kaiming_normal()


glorot_uniform, glorot_normal, he_uniform, he_normal = xavier_uniform, xavier_normal, kaiming_uniform, kaiming_normal


def _of_matrix(type: str, attributes: dict[str, object], least: int, most: int | None = None, what: str | None = None) -> Rule:
    """Return a rule for parameters of `least` to `most` axes."""
    name = what or type

    def rule(shape: tuple[int, ...]) -> Initializer:
        if len(shape) < least or (most is not None and len(shape) > most):
            axes = f"{least} axes" + ("" if most == least else " or more")
            raise ArgumentError(f"{name}: the parameter must have {axes}, not shape {list(shape)}", location=here())
        groups = attributes.get("groups", 1)
        if not isinstance(groups, int) or groups < 1 or shape[0] % groups:
            raise ArgumentError(f"{name}: {groups!r:.60} groups do not divide {shape[0]} filters", location=here())
        return Initializer(type, dict(attributes))

    return rule


def _kaiming(mode: str, nonlinearity: str, slope: float | None) -> Callable[[tuple[int, ...]], float]:
    """Return a function from a shape to the standard deviation."""
    modes: dict[str, Callable[[int, int], float]] = {
        "fan_in": lambda fan_in, fan_out: fan_in,
        "fan_out": lambda fan_in, fan_out: fan_out,
        "fan_average": lambda fan_in, fan_out: (fan_in + fan_out) / 2.0,
    }
    gains = {
        "linear": 1.0,
        "sigmoid": 1.0,
        "tanh": 5.0 / 3.0,
        "relu": math.sqrt(2.0),
        "leaky_relu": math.sqrt(2.0 / (1.0 + (0.01 if slope is None else slope) ** 2)),
        "selu": 0.75,
    }
    for what, name, known in (("mode", mode, list(modes)), ("nonlinearity", nonlinearity, list(gains))):
        if name not in known:
            raise ArgumentError(
                f"kaiming: {what} must be one of {', '.join(known)}, not {name!r:.60}", location=here(), hint=did_you_mean(str(name), known)
            )
    return lambda shape: gains[nonlinearity] / math.sqrt(modes[mode](*_fans(shape)))


def _fans(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return the fan-in and fan-out of a parameter: [k, n] of a matrix, [f, c, kh, kw] of filters."""
    if len(shape) < 2:
        count = max(math.prod(shape), 1)
        return count, count
    if len(shape) == 2:
        k, n = shape
        return k, n
    window = math.prod(shape[2:])
    return shape[1] * window, shape[0] * window


publish(__name__)
