"""Normalizations, lookups and attention."""

import math

from database_judge import Unmapped

from oarlock import op

__all__ = ["CALLS"]


def over_last(function):
    """A norm over the last axes of a shape that is given, which is one axis here."""

    def call(x, normalized_shape, weight=None, bias=None, eps=None):
        epsilon = {"epsilon": eps} if eps is not None else {"epsilon": 2.220446049250313e-16} if function is op.rms_norm else {}
        shape = tuple(normalized_shape)
        front = x.shape[: len(x.shape) - len(shape)]
        rows = op.reshape(x, shape=(*front, math.prod(shape)))
        flat = [None if each is None else op.reshape(each, shape=(-1,)) for each in (weight, bias)]
        return op.reshape(function(rows, *(flat[:1] if function is op.rms_norm else flat), **epsilon), shape=x.shape)

    return call


def group_norm(x, num_groups, weight=None, bias=None, eps=1e-5):
    return op.group_norm(x, weight, bias, groups=num_groups, epsilon=eps)


def instance_norm(x, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-5):
    if not use_input_stats:
        raise Unmapped("running statistics of instances")
    return op.group_norm(x, weight, bias, groups=x.shape[1], epsilon=eps)


def embedding(weight, ids, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    if padding_idx is not None or max_norm is not None or scale_grad_by_freq:
        raise Unmapped("options of the table's gradient")
    return op.gather(weight, ids)


def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    if dropout_p:
        raise Unmapped("random numbers")
    masks = [] if attn_mask is None else [attn_mask]
    return op.attention_by_head(query, key, value, *masks, causal=is_causal, scale=scale)


CALLS = {
    "nn.functional.scaled_dot_product_attention": attention,
    "nn.functional.embedding": embedding,
    "nn.functional.group_norm": group_norm,
    "nn.functional.instance_norm": instance_norm,
    "nn.functional.layer_norm": over_last(op.layer_norm),
    "nn.functional.local_response_norm": lambda x, size, alpha=1e-4, beta=0.75, k=1.0: op.local_response_norm(
        x, size, alpha=alpha, beta=beta, k=k
    ),
    "nn.functional.rms_norm": over_last(op.rms_norm),
}
