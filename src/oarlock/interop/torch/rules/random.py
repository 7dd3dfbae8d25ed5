"""Random numbers and dropout. The distributions are PyTorch's, the numbers are not."""

from collections.abc import Sequence

from oarlock import op
from oarlock.interop.torch.rules.arguments import filled, like, rank_of, refuse, shape_of
from oarlock.interop.torch.rules.registry import RESULT, rule
from oarlock.ir.dtype import DType
from oarlock.ir.size import Size
from oarlock.ir.var import Var
from oarlock.registry.signature import TensorType

assert RESULT == "result"


@rule("aten.dropout.default")
def dropout(input: Var, p: float, train: bool):
    """Drop elements in training, if the module was exported in training; in inference nothing is dropped."""
    return op.dropout(input, rate=float(p)) if train and p > 0.0 else input


@rule("aten.native_dropout.default")
def native_dropout(input: Var, p: float, train: bool | None):
    """Drop elements. The mask, the second result, is only used by PyTorch's own gradient."""
    return (op.dropout(input, rate=float(p)) if train is not False and p > 0.0 else input), None


@rule("aten.feature_dropout.default")
def feature_dropout(input: Var, p: float, train: bool):
    """Drop whole channels of an image."""
    if not train or p == 0.0:
        return input
    lead = shape_of(input)[:2]
    channels = op.dropout(filled([*lead, *([1] * (rank_of(input) - 2))], 1.0, input.dtype), rate=float(p))
    return op.multiply(input, channels)


@rule("aten.alpha_dropout.default")
def alpha_dropout(input: Var, p: float, train: bool):
    """Set dropped elements to SELU's minimum, then restore mean and variance (Klambauer et al., 2017)."""
    if not train or p == 0.0:
        return input
    return _drop_alpha(input, op.full_like(input, value=1.0, dtype=input.dtype), float(p))


@rule("aten.feature_alpha_dropout.default")
def feature_alpha_dropout(input: Var, p: float, train: bool):
    if not train or p == 0.0:
        return input
    return _drop_alpha(input, filled([*shape_of(input)[:2], *([1] * (rank_of(input) - 2))], 1.0, input.dtype), float(p))


def _drop_alpha(x: Var, ones: Var, rate: float) -> Var:
    """Return `x` with alpha dropout where `ones` are dropped. In inference, `x` is returned unchanged."""
    refuse(rate == 1.0, "a probability of 1 is not supported")
    least = -1.7580993408473766
    factor = ((1.0 - rate) * (1.0 + rate * least * least)) ** -0.5
    drawn = op.dropout(ones, rate=rate)  # 0, or 1 / (1 - rate) in training; 1 in inference
    kept = op.not_equal(drawn, like(0.0, drawn))
    training = op.not_equal(drawn, like(1.0, drawn))
    dropped = op.multiply(op.where(kept, x, like(least, x)), factor)
    shifted = op.add(dropped, -factor * least * rate)
    return op.where(training, shifted, x)


@rule("aten.bernoulli.p")
def bernoulli_p(self: Var, p: float = 0.5):
    """Draw a mask of a constant probability: modules draw these to drop paths and rows, and only in training."""
    return bernoulli_mask(self, float(p))


def bernoulli_mask(like_x: Var, rate: float) -> Var:
    """Return 1 with probability `rate`, else 0, in training; in inference `rate`, the mean.

    Dividing by `rate` therefore keeps the mean and, in inference, the values.
    """
    if not 0.0 < rate < 1.0:
        return op.full_like(like_x, value=rate, dtype=like_x.dtype)
    drawn = op.dropout(op.full_like(like_x, value=1.0, dtype=like_x.dtype), rate=1.0 - rate)  # 0 or more than 1; in inference 1
    kept = op.cast(op.not_equal(drawn, like(0.0, drawn)), dtype=like_x.dtype)
    return op.where(op.equal(drawn, like(1.0, drawn)), like(rate, drawn), kept)


def find_rate(x: Var) -> float | None:
    """Return the probability that ``floor(x)`` is 1, if `x` is uniform noise from 0 to 1 plus a constant; else None."""
    if x.op is None or x.op.type != "add":
        return None
    terms = [x.op.inputs[slot][0].op for slot in ("x", "y")]
    drawn = next((term for term in terms if term is not None and term.type == "random_uniform_like"), None)
    number = next((term for term in terms if term is not None and term.type == "full"), None)
    if drawn is None or number is None or (drawn.attributes["low"], drawn.attributes["high"]) != (0.0, 1.0):
        return None
    rate = number.attributes["value"]
    return rate if isinstance(rate, float) and 0.0 < rate < 1.0 else None


@rule("aten.floor.default")
def floor(self: Var):
    """Round down. For uniform noise plus a probability, draw a mask: Transformers drops paths so."""
    rate = find_rate(self)
    if rate is not None:
        return bernoulli_mask(self, rate)
    return op.floor(self) if self.dtype.is_floating else self


@rule("aten.bernoulli.default", "aten.bernoulli.Tensor")
def bernoulli(self: Var, p: Var | None = None):
    return op.bernoulli(self if p is None else p)


@rule("aten.rand.default", "aten.rand_like.default")
def rand(result: TensorType, self: Var | None = None, size: Sequence[Size] = (), dtype: object = None):
    return op.random_uniform_like(_shape_carrier(result), dtype=result.dtype)


@rule("aten.uniform.default")
def uniform(result: TensorType, self: Var, to: float = 1.0, **bounds: float):
    """Draw uniform numbers. The lower bound is named `from`, which is a keyword in Python."""
    return op.random_uniform_like(_shape_carrier(result), low=float(bounds.get("from", 0.0)), high=float(to), dtype=result.dtype)


@rule("aten.randn.default", "aten.randn_like.default")
def randn(result: TensorType, self: Var | None = None, size: Sequence[Size] = (), dtype: object = None):
    return op.random_normal_like(_shape_carrier(result), dtype=result.dtype)


@rule("aten.normal_functional.default")
def normal(result: TensorType, self: Var, mean: float = 0.0, std: float = 1.0):
    return op.random_normal_like(_shape_carrier(result), mean=float(mean), deviation=float(std), dtype=result.dtype)


@rule("aten.exponential.default")
def exponential(result: TensorType, self: Var, lambd: float = 1.0):
    uniform = op.random_uniform_like(_shape_carrier(result), dtype=result.dtype)
    return op.divide(op.neg(op.log(op.subtract(1.0, uniform))), float(lambd))


@rule("aten.randint.default", "aten.randint.low", "aten.randint_like.default", "aten.randint_like.low_dtype")
def randint(result: TensorType, high: int, low: int = 0, self: Var | None = None, size: Sequence[Size] = (), dtype: object = None):
    uniform = op.random_uniform_like(_shape_carrier(result), low=float(low), high=float(high), dtype=DType.FLOAT64)
    return op.cast(op.floor(uniform), dtype=result.dtype)


@rule("aten.randperm.default")
def randperm(result: TensorType, n: Size, dtype: object = None):
    """Return a random permutation, by sorting random keys."""
    return op.cast(
        op.sort(op.random_uniform_like(_shape_carrier(result), dtype=DType.FLOAT64), axis=0, descending=False)[1], dtype=result.dtype
    )


def _shape_carrier(result: TensorType) -> Var:
    """Return a tensor of the result's shape; only its shape is used."""
    assert result.shape is not None
    return filled(result.shape, 0.0, DType.BOOL)
