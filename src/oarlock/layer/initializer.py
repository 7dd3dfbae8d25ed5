"""How parameters start. Each function returns a rule from a parameter's shape to its initializer.

The fans of a parameter are how many inputs and outputs an element's row and column have: of a matrix [k, n], k and n; of filters
[f, c, kh, kw], c kh kw and f kh kw; of anything shorter, its number of elements.
"""

import math
from collections.abc import Callable

from oarlock.errors import ArgumentError
from oarlock.ir.location import here
from oarlock.ir.var import Initializer
from oarlock.layer.held_array import HeldArray, array
from oarlock.registry.checked_call import publish
from oarlock.suggestions import did_you_mean

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

Rule = Callable[[tuple[int, ...]], Initializer] | HeldArray
"""A function from the shape of a parameter to its initializer."""


def constant(value: float) -> Rule:
    """Every element `value`."""
    return lambda shape: Initializer("constant", {"value": float(value)})


def zeros() -> Rule:
    """Every element 0."""
    return constant(0.0)


def ones() -> Rule:
    """Every element 1."""
    return constant(1.0)


def uniform(low: float, high: float) -> Rule:
    """Evenly spread over `low` to `high`."""
    return lambda shape: Initializer("uniform", {"low": float(low), "high": float(high)})


def normal(mean: float = 0.0, deviation: float = 1.0) -> Rule:
    """Normal, of this mean and standard deviation."""
    return lambda shape: Initializer("normal", {"mean": float(mean), "deviation": float(deviation)})


def truncated_normal(mean: float = 0.0, deviation: float = 1.0, *, low: float | None = None, high: float | None = None) -> Rule:
    """Normal numbers of those between `low` and `high`, which are two deviations away from the mean unless they are given.

    `deviation` is that of the normal distribution: what is left of it between the bounds deviates less, by 0.88 at two deviations.
    Raises ArgumentError where `low` is not below `high`, or `deviation` not above 0.
    """
    least, most = (mean - 2.0 * deviation if low is None else low), (mean + 2.0 * deviation if high is None else high)
    if not (least < most and deviation > 0.0):
        raise ArgumentError(
            f"truncated_normal: low is below high and deviation above 0, not {least}, {most} and {deviation}", location=here()
        )
    bounds = {"mean": float(mean), "deviation": float(deviation), "low": float(least), "high": float(most)}
    return lambda shape: Initializer("truncated_normal", dict(bounds))


def xavier_uniform(gain: float = 1.0) -> Rule:
    """Uniform, so that signals keep their variance both ways (Glorot and Bengio, 2010, equation 16), times `gain`."""

    def rule(shape: tuple[int, ...]) -> Initializer:
        bound = gain * math.sqrt(6.0 / sum(_fans(shape)))
        return Initializer("uniform", {"low": -bound, "high": bound})

    return rule


def xavier_normal(gain: float = 1.0) -> Rule:
    """Normal, of the variance ``gain**2 * 2 / (fan_in + fan_out)`` (Glorot and Bengio, 2010)."""
    return lambda shape: Initializer("normal", {"mean": 0.0, "deviation": gain * math.sqrt(2.0 / sum(_fans(shape)))})


def kaiming_uniform(*, mode: str = "fan_in", nonlinearity: str = "relu", slope: float | None = None) -> Rule:
    """Uniform, of the variance of `kaiming_normal`. Raises ArgumentError."""
    deviation = _kaiming(mode, nonlinearity, slope)

    def rule(shape: tuple[int, ...]) -> Initializer:
        bound = math.sqrt(3.0) * deviation(shape)
        return Initializer("uniform", {"low": -bound, "high": bound})

    return rule


def kaiming_normal(*, mode: str = "fan_in", nonlinearity: str = "relu", slope: float | None = None) -> Rule:
    """Normal, so that signals keep their variance through a nonlinearity: ``gain / sqrt(fan)`` (He et al., 2015, equations 10 and 15).

    `mode` is "fan_in", for the way forward, "fan_out", for the way back, or "fan_average", for neither more than the other. The gain is
    that of `nonlinearity`: "linear", "sigmoid", "tanh", "relu", "leaky_relu" of this `slope`, else 0.01, or "selu". Raises ArgumentError.
    """
    deviation = _kaiming(mode, nonlinearity, slope)
    return lambda shape: Initializer("normal", {"mean": 0.0, "deviation": deviation(shape)})


def lecun_uniform() -> Rule:
    """Uniform, of the variance ``1 / fan_in`` (LeCun et al., 1998)."""
    return kaiming_uniform(nonlinearity="linear")


def lecun_normal() -> Rule:
    """Normal, of the variance ``1 / fan_in`` (LeCun et al., 1998; for selu, Klambauer et al., 2017)."""
    return kaiming_normal(nonlinearity="linear")


def orthogonal(gain: float = 1.0) -> Rule:
    """A matrix whose rows, or whose columns where there are fewer of them, are at right angles and of length `gain`.

    Of a parameter with more axes, the first is the rows and all others are the columns (Saxe et al., 2014). The parameter has two axes or
    more, or ArgumentError is raised.
    """
    return _of_matrix("orthogonal", {"gain": float(gain)}, 2)


def identity(gain: float = 1.0) -> Rule:
    """`gain` where row and column are the same, else 0: a matrix that changes nothing.

    The parameter has two axes, or ArgumentError is raised.
    """
    return _of_matrix("identity", {"gain": float(gain), "groups": 1}, 2, 2)


def dirac(groups: int = 1) -> Rule:
    """Filters that change nothing: filter ``i`` of each of `groups` has a 1 in the middle of the window of channel ``i``, else zeros.

    The parameter has three axes or more, the first of which `groups` divide, or ArgumentError is raised (Zagoruyko and Komodakis, 2017).
    """
    return _of_matrix("identity", {"gain": 1.0, "groups": groups}, 3, what="dirac")


def sparse(sparsity: float, deviation: float = 0.01) -> Rule:
    """Normal numbers, of which the share `sparsity` of each column, rounded up, is 0 (Martens, 2010).

    The parameter has two axes, or ArgumentError is raised.
    """
    if not 0.0 <= sparsity <= 1.0:
        raise ArgumentError(f"sparse: sparsity is a share from 0 to 1, not {sparsity}", location=here())
    return _of_matrix("sparse", {"sparsity": float(sparsity), "deviation": float(deviation)}, 2, 2)


def xavier() -> Rule:
    """`xavier_uniform`, as most layers start."""
    return xavier_uniform()


def kaiming() -> Rule:
    """`kaiming_normal`, as convolutions start."""
    return kaiming_normal()


glorot_uniform, glorot_normal, he_uniform, he_normal = xavier_uniform, xavier_normal, kaiming_uniform, kaiming_normal


def _of_matrix(type: str, attributes: dict[str, object], least: int, most: int | None = None, what: str | None = None) -> Rule:
    """A rule for parameters of `least` to `most` axes."""
    name = what or type

    def rule(shape: tuple[int, ...]) -> Initializer:
        if len(shape) < least or (most is not None and len(shape) > most):
            axes = f"{least} axes" + ("" if most == least else " or more")
            raise ArgumentError(f"{name}: it fills a parameter of {axes}, not {list(shape)}", location=here())
        groups = attributes.get("groups", 1)
        if not isinstance(groups, int) or groups < 1 or shape[0] % groups:
            raise ArgumentError(f"{name}: {groups!r:.60} groups do not divide {shape[0]} filters", location=here())
        return Initializer(type, dict(attributes))

    return rule


def _kaiming(mode: str, nonlinearity: str, slope: float | None) -> Callable[[tuple[int, ...]], float]:
    """The standard deviation by shape."""
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
                f"kaiming: {what} is one of {', '.join(known)}, not {name!r:.60}", location=here(), hint=did_you_mean(str(name), known)
            )
    return lambda shape: gains[nonlinearity] / math.sqrt(modes[mode](*_fans(shape)))


def _fans(shape: tuple[int, ...]) -> tuple[int, int]:
    """How many inputs and outputs an element's row and column have: [k, n] of a matrix, [f, c, kh, kw] of filters."""
    if len(shape) < 2:
        count = max(math.prod(shape), 1)
        return count, count
    if len(shape) == 2:
        k, n = shape
        return k, n
    window = math.prod(shape[2:])
    return shape[1] * window, shape[0] * window


publish(__name__)
