"""Random number operators. Their results depend only on the program's seed, the op and the step."""

import math

import torch

from oarlock.errors import ArgumentError
from oarlock.ir.attribute import Sizes
from oarlock.ir.dtype import DType
from oarlock.op.creation import require_told
from oarlock.op.elementwise import multiply
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Rejects
from oarlock.tensor.dtype import to_torch

__all__ = ["bernoulli", "dropout", "random_normal", "random_normal_like", "random_uniform", "random_uniform_like"]


@operator(
    "x: float[...s] -> y: float[...s], mask: float[...s]",
    intermediate=("mask",),
    effects="random",
    checks_values=True,
    variable_attributes=("rate", "first_row"),
    added_later=("first_row",),
    aliases=("x",),
    cases=[
        Case(x=[1.0, 2.0], rate=0.5, y=[1.0, 2.0], mask=[1.0, 1.0]),
        Case(x=[1.0, 2.0], first_row=2, rate=0.5, y=[1.0, 2.0], mask=[1.0, 1.0]),
        GradCheck(x=(3, 4), rate=0.25),
        Rejects("rate must be from 0 to 1, not 1.5", x=(2,), rate=1.5),
    ],
)
def dropout(context, x, *, rate: float = 0.5, first_row: int = 0, random_id: int):
    """In training, zero each element with probability ``rate`` and divide the others by ``1 - rate``; otherwise ``y = x``.

    The dropped elements depend only on the program's seed, the op and the step (Srivastava et al., 2014). If ``x`` has the rows of a batch
    from ``first_row`` on, the same elements are dropped as in the whole batch.
    """
    if not 0.0 <= rate <= 1.0:
        raise ValueError(_rate_error(rate))
    if not context.training:
        return x, torch.ones_like(x)
    mask = (_drawn(context, x.shape, random_id, first_row) >= rate).to(x.dtype).div_(1.0 - rate) if rate < 1.0 else torch.zeros_like(x)
    return x * mask, mask


def _drawn(context, shape, random_id: int, first_row: int):
    """Return uniform numbers in [0, 1) for the rows from ``first_row`` on."""
    return context.uniform(shape, random_id, start=first_row * math.prod(shape[1:]))


@dropout.infer_shape
def dropout_shapes(x, *, rate, first_row, random_id):
    if not 0.0 <= rate <= 1.0:
        raise ArgumentError(_rate_error(rate))
    return x.shape, x.shape


def _rate_error(rate: float) -> str:
    return f"rate must be from 0 to 1, not {rate}"


@dropout.gradient("x")
def dropout_dx(mask, dy):
    return dy * mask


dropout_dx.gradient_programs(dy=lambda mask, ddx: multiply(ddx, mask))

dropout_dx.no_gradient("mask")


@operator(
    " -> y: {dtype}",
    effects="random",
    variable_attributes=("shape",),
    cases=[
        Case(shape=(2,), low=1.5, high=1.5, dtype="float64", y=[1.5, 1.5]),
        Rejects("n is not a number", shape=("n", 2)),
        Rejects("random numbers must have a float dtype, not int64", shape=(2,), dtype="int64"),
        Rejects("low and high must be finite and ascending, not 1.0 and 0.0", shape=(2,), low=1.0, high=0.0),
    ],
)
def random_uniform(context, *, shape: Sizes, low: float = 0.0, high: float = 1.0, dtype: DType = DType.FLOAT32, random_id: int):
    """Uniform random numbers of ``shape``, from ``low`` to below ``high``; rounding may return ``high`` itself."""
    return _within(context.uniform(shape, random_id), low, high, dtype)


def _within(drawn, low: float, high: float, dtype: DType):
    return (drawn * (high - low) + low).to(to_torch(dtype))


def _require_range(low: float, high: float, dtype: DType) -> None:
    """Raise ArgumentError unless ``low`` to ``high`` is a range of floats."""
    _require_float(dtype)
    if not -math.inf < low <= high < math.inf:
        raise ArgumentError(f"low and high must be finite and ascending, not {low} and {high}")


def _require_float(dtype: DType) -> None:
    if not dtype.is_floating:
        raise ArgumentError(f"random numbers must have a float dtype, not {dtype}")


@random_uniform.infer_shape
def random_uniform_shape(*, shape, low, high, dtype, random_id):
    _require_range(low, high, dtype)
    return require_told(shape, "random_uniform_like")


@operator(
    "like: shape[...s] -> y: {dtype}[...s]",
    effects="random",
    variable_attributes=("first_row",),
    added_later=("first_row",),
    cases=[
        Case(like=[[0.0, 0.0]], low=1.5, high=1.5, dtype="float64", y=[[1.5, 1.5]]),
        Rejects("random numbers must have a float dtype, not bool", like=(2,), dtype="bool"),
        Rejects("low and high must be finite and ascending, not 1.0 and 0.0", like=(2,), low=1.0, high=0.0),
    ],
)
def random_uniform_like(
    context,
    like,
    *,
    low: float = 0.0,
    high: float = 1.0,
    dtype: DType = DType.FLOAT32,
    first_row: int = 0,
    random_id: int,
):
    """`random_uniform` of the shape of ``like``, which is not kept alive. ``first_row`` is as in `dropout`."""
    return _within(_drawn(context, like, random_id, first_row), low, high, dtype)


random_uniform_like.check_shapes(lambda like, *, low, high, dtype, first_row, random_id: _require_range(low, high, dtype))


@operator(
    " -> y: {dtype}",
    effects="random",
    variable_attributes=("shape",),
    cases=[
        Case(shape=(2,), mean=1.5, deviation=0.0, dtype="float64", y=[1.5, 1.5]),
        Rejects("n is not a number", shape=("n", 2)),
        Rejects("deviation must be at least 0, not -1.0", shape=(2,), deviation=-1.0),
    ],
)
def random_normal(context, *, shape: Sizes, mean: float = 0.0, deviation: float = 1.0, dtype: DType = DType.FLOAT32, random_id: int):
    """Normal random numbers of ``shape``, of a mean and a standard deviation (Box and Muller, 1958)."""
    radius, angle = context.uniform((2, *shape), random_id)
    return _normal(radius, angle, mean, deviation, dtype)


def _normal(radius, angle, mean: float, deviation: float, dtype: DType):
    standard = torch.sqrt(-2.0 * torch.log1p(-radius)) * torch.cos(2.0 * math.pi * angle)
    return (standard * deviation + mean).to(to_torch(dtype))


def _require_deviation(deviation: float, dtype: DType) -> None:
    """Raise ArgumentError for an invalid standard deviation or a dtype that is not a float."""
    _require_float(dtype)
    if not deviation >= 0.0:
        raise ArgumentError(f"deviation must be at least 0, not {deviation}")


@random_normal.infer_shape
def random_normal_shape(*, shape, mean, deviation, dtype, random_id):
    _require_deviation(deviation, dtype)
    return require_told(shape, "random_normal_like")


@operator(
    "like: shape[...s] -> y: {dtype}[...s]",
    effects="random",
    variable_attributes=("first_row", "all_rows"),
    added_later=("first_row", "all_rows"),
    cases=[
        Case(like=[[0.0, 0.0]], mean=1.5, deviation=0.0, dtype="float64", y=[[1.5, 1.5]]),
        Rejects("deviation must be at least 0, not -1.0", like=(2,), deviation=-1.0),
    ],
)
def random_normal_like(
    context,
    like,
    *,
    mean: float = 0.0,
    deviation: float = 1.0,
    dtype: DType = DType.FLOAT32,
    first_row: int = 0,
    all_rows: int = 0,
    random_id: int,
):
    """`random_normal` of the shape of ``like``, which is not kept alive.

    Its rows may be part of a batch of ``all_rows``, from ``first_row`` on.
    """
    rows = all_rows or (like[0] if like else 1)
    radius, angle = (_drawn(context, like, random_id, before + first_row) for before in (0, rows))
    return _normal(radius, angle, mean, deviation, dtype)


random_normal_like.check_shapes(
    lambda like, *, mean, deviation, dtype, first_row, all_rows, random_id: _require_deviation(deviation, dtype)
)


@operator(
    "probability: float[...s] -> y: float[...s]",
    effects="random",
    variable_attributes=("first_row",),
    added_later=("first_row",),
    cases=[Case(probability=[[0.0, 1.0], [1.0, 0.0]], y=[[0.0, 1.0], [1.0, 0.0]])],
)
def bernoulli(context, probability, *, first_row: int = 0, random_id: int):
    """1 with the given probability, else 0: always 0 for a probability of at most 0, always 1 for at least 1.

    ``first_row`` is as in `dropout`.
    """
    return (_drawn(context, probability.shape, random_id, first_row) < probability).to(probability.dtype)


bernoulli.no_gradient("probability")
