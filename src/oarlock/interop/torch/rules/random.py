"""Random numbers, and what is dropped at random. They are ours: of the same distribution, not the same numbers."""

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
    """In training, whatever the module was in when it was exported in training; in inference nothing is dropped."""
    return op.dropout(input, rate=float(p)) if train and p > 0.0 else input


@rule("aten.native_dropout.default")
def native_dropout(input: Var, p: float, train: bool | None):
    """Its mask is read by gradients alone, which are ours."""
    return (op.dropout(input, rate=float(p)) if train is not False and p > 0.0 else input), None


@rule("aten.feature_dropout.default")
def feature_dropout(input: Var, p: float, train: bool):
    """Whole channels of an image are dropped."""
    if not train or p == 0.0:
        return input
    lead = shape_of(input)[:2]
    channels = op.dropout(filled([*lead, *([1] * (rank_of(input) - 2))], 1.0, input.dtype), rate=float(p))
    return op.multiply(input, channels)


@rule("aten.alpha_dropout.default")
def alpha_dropout(input: Var, p: float, train: bool):
    """What is dropped becomes the least that SELU gives, then mean and variance are brought back (Klambauer et al., 2017)."""
    if not train or p == 0.0:
        return input
    return _alpha_dropped(input, op.full_like(input, value=1.0, dtype=input.dtype), float(p))


@rule("aten.feature_alpha_dropout.default")
def feature_alpha_dropout(input: Var, p: float, train: bool):
    if not train or p == 0.0:
        return input
    return _alpha_dropped(input, filled([*shape_of(input)[:2], *([1] * (rank_of(input) - 2))], 1.0, input.dtype), float(p))


def _alpha_dropped(x: Var, ones: Var, rate: float) -> Var:
    """`x` where ones survive dropout: in inference all do, and then the factor is 1 and nothing is added."""
    refuse(rate == 1.0, "everything is dropped")
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
    return op.bernoulli(op.full_like(self, value=float(p), dtype=self.dtype))


@rule("aten.bernoulli.default", "aten.bernoulli.Tensor")
def bernoulli(self: Var, p: Var | None = None):
    return op.bernoulli(self if p is None else p)


@rule("aten.rand.default", "aten.rand_like.default")
def rand(result: TensorType, self: Var | None = None, size: Sequence[Size] = (), dtype: object = None):
    return op.random_uniform_like(_of(result), dtype=result.dtype)


@rule("aten.uniform.default")
def uniform(result: TensorType, self: Var, to: float = 1.0, **bounds: float):
    """Its lower bound is called `from`, which no parameter of Python can be."""
    return op.random_uniform_like(_of(result), low=float(bounds.get("from", 0.0)), high=float(to), dtype=result.dtype)


@rule("aten.randn.default", "aten.randn_like.default")
def randn(result: TensorType, self: Var | None = None, size: Sequence[Size] = (), dtype: object = None):
    return op.random_normal_like(_of(result), dtype=result.dtype)


@rule("aten.normal_functional.default")
def normal(result: TensorType, self: Var, mean: float = 0.0, std: float = 1.0):
    return op.random_normal_like(_of(result), mean=float(mean), deviation=float(std), dtype=result.dtype)


@rule("aten.exponential.default")
def exponential(result: TensorType, self: Var, lambd: float = 1.0):
    uniform = op.random_uniform_like(_of(result), dtype=result.dtype)
    return op.divide(op.neg(op.log(op.subtract(1.0, uniform))), float(lambd))


@rule("aten.randint.default", "aten.randint.low", "aten.randint_like.default", "aten.randint_like.low_dtype")
def randint(result: TensorType, high: int, low: int = 0, self: Var | None = None, size: Sequence[Size] = (), dtype: object = None):
    uniform = op.random_uniform_like(_of(result), low=float(low), high=float(high), dtype=DType.FLOAT64)
    return op.cast(op.floor(uniform), dtype=result.dtype)


@rule("aten.randperm.default")
def randperm(result: TensorType, n: Size, dtype: object = None):
    """Numbers in the order of random keys."""
    return op.cast(op.sort(op.random_uniform_like(_of(result), dtype=DType.FLOAT64), axis=0, descending=False)[1], dtype=result.dtype)


def _of(result: TensorType) -> Var:
    """A tensor of the shape of a result, of which the shape alone is read."""
    assert result.shape is not None
    return filled(result.shape, 0.0, DType.BOOL)
