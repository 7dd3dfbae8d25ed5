"""Random numbers and dropout. Draws follow from the program's seed; ONNX's seeds are ignored."""

from typing import TYPE_CHECKING

from oarlock import op
from oarlock.interop.onnx.import_rules.forms import filled
from oarlock.interop.onnx.rule import Unsupported, rule
from oarlock.interop.onnx.tensors import DTYPES
from oarlock.ir.attribute import Sizes
from oarlock.ir.dtype import DType

if TYPE_CHECKING:
    pass


@rule("Dropout", since=12, known=("ratio", "training_mode"))
def dropout(x, ratio=None, training_mode=None, *, seed=None, outputs):
    """Drop elements if the node is in training mode and the run trains."""
    rate = 0.5 if ratio is None else float(ratio.item())
    if training_mode is None or not training_mode.item() or rate == 0.0:
        return [op.assign(x), filled(x, 1.0, DType.BOOL)][:outputs]
    if outputs > 1:
        raise Unsupported("the dropout mask is not supported")
    return op.dropout(x, rate=rate)


@rule("Dropout", since=7, until=12)
def dropout_of_an_inference(x, *, ratio=0.5, outputs):
    return [op.assign(x), filled(x, 1.0, DType.BOOL)][:outputs]


def _dtype(number: int | None, default: DType) -> DType:
    found = default if number is None else DTYPES.get(number)
    if found is None or not found.is_floating:
        raise Unsupported("it draws numbers of an unsupported dtype")
    return found


@rule("RandomNormal", folds=False)
def random_normal(*, shape, dtype=1, mean=0.0, scale=1.0, seed=None):
    return op.random_normal(shape=Sizes(shape), mean=mean, deviation=scale, dtype=_dtype(dtype, DType.FLOAT32))


@rule("RandomUniform", folds=False)
def random_uniform(*, shape, dtype=1, low=0.0, high=1.0, seed=None):
    return op.random_uniform(shape=Sizes(shape), low=low, high=high, dtype=_dtype(dtype, DType.FLOAT32))


@rule("RandomNormalLike", folds=False)
def random_normal_like(x, *, dtype=None, mean=0.0, scale=1.0, seed=None):
    return op.random_normal_like(x, mean=mean, deviation=scale, dtype=_dtype(dtype, x.dtype))


@rule("RandomUniformLike", folds=False)
def random_uniform_like(x, *, dtype=None, low=0.0, high=1.0, seed=None):
    return op.random_uniform_like(x, low=low, high=high, dtype=_dtype(dtype, x.dtype))


@rule("Bernoulli", folds=False)
def bernoulli(x, *, dtype=None, seed=None):
    kind = x.dtype if dtype is None else DTYPES.get(dtype)
    if kind is None:
        raise Unsupported("it draws numbers of an unsupported dtype")
    drawn = op.bernoulli(x)
    return drawn if drawn.dtype is kind else op.cast(drawn, dtype=kind)
