"""Normalization."""

from oarlock.interop.torch.rules.registry import Unsupported, rule
from oarlock.op import batch_normalization

__all__ = []


@rule("aten._native_batch_norm_legit_functional.default")
def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    if not training:
        raise Unsupported("it does not train")
    y = batch_normalization.batch_norm(input, running_mean, running_var, weight, bias, momentum=float(momentum), epsilon=float(eps))
    (mean,), (variance,) = y.op.outputs["next_mean"], y.op.outputs["next_variance"]
    return y, None, None, mean, variance
