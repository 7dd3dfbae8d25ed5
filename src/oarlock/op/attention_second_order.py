"""Second-order gradients of attention, multiplied by a direction. They store the full matrix of weights."""

import inspect
from collections.abc import Callable
from inspect import Parameter
from typing import Any

from oarlock.errors import ShapeError
from oarlock.ir.shape_rules import differ
from oarlock.ir.var import Var
from oarlock.op.attention import (
    scaled_dot_product_attention_dbias,
    scaled_dot_product_attention_dkey,
    scaled_dot_product_attention_dquery,
    scaled_dot_product_attention_dvalue,
)
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case
from oarlock.registry.declaration import Operator
from oarlock.tensor import attention as kernels
from oarlock.tensor.attention import require_heads, split, summed_to

__all__ = ["attention_bias_changes", "attention_changes"]

_GIVEN = (
    "query: float[*b t k], key: float[*b s k], value: float[*b s e], y: float[*b t e], logsumexp: float[*b {heads} t],"
    + " y_gradient: float[*b t e]"
)
_TOWARDS = (
    "logsumexp_gradient?: float[*b {heads} t], toward_query?: float[*b t k], toward_key?: float[*b s k], toward_value?: float[*b s e],"
    " toward_bias?: float[*b g h i]"
)
_TWO = {
    "query": [[[0.0]]] * 2, "key": [[[1.0], [0.0]]] * 2, "value": [[[4.0], [8.0]]] * 2, "y": [[[6.0]]] * 2,
    "logsumexp": [[[0.6931471805599453]]] * 2, "y_gradient": [[[1.0]], [[0.0]]],
}  # fmt: skip
"""Two keys of equal weight: the gradient of the query is -1, and 0 in the second row."""


@operator(
    f"{_GIVEN}, mask?: bool[*b m n o], bias?: float[*b g h i], {_TOWARDS}"
    " -> of_query: float[*b t k], of_key: float[*b s k], of_value: float[*b s e], of_y: float[*b t e], of_logsumexp: float[*b {heads} t],"
    " of_y_gradient: float[*b t e], of_logsumexp_gradient: float[*b {heads} t]",
    sensitive_to="place",
    cases=[
        Case(
            **_TWO, toward_query=[[[1.0]]] * 2, of_query=[[[-1.0]], [[0.0]]], of_key=[[[-1.0], [1.0]], [[0.0], [0.0]]],
            of_value=[[[0.5], [0.0]], [[0.0], [0.0]]], of_y=[[[-0.5]], [[0.0]]], of_logsumexp=[[[1.0]], [[0.0]]],
            of_y_gradient=[[[-1.0]]] * 2, of_logsumexp_gradient=[[[0.5]]] * 2,
        ),
        Case(
            **_TWO, toward_value=[[[1.0], [0.0]]] * 2, of_query=[[[0.5]], [[0.0]]], of_key=[[[0.0], [0.0]]] * 2,
            of_value=[[[0.0], [0.0]]] * 2, of_y=[[[0.0]]] * 2, of_logsumexp=[[[-0.5]], [[0.0]]],
            of_y_gradient=[[[0.5]]] * 2, of_logsumexp_gradient=[[[0.0]]] * 2,
        ),
    ],
)  # fmt: skip
def attention_changes(
    query, key, value, y, logsumexp, y_gradient, mask=None, bias=None, logsumexp_gradient=None, toward_query=None, toward_key=None,
    toward_value=None, toward_bias=None, *, heads: int = 1, causal: bool = False, scale: float | None = None,
):  # fmt: skip
    """Second-order gradients of `scaled_dot_product_attention`: the derivatives of its gradients, contracted with ``toward_*``.

    ``of_query`` is the derivative with respect to the query, and so on; `attention_bias_changes` returns the one for the bias. It has no
    gradient.
    """
    towards = kernels.Towards(toward_query, toward_key, toward_value, toward_bias)
    return kernels.attention_changes(
        query, key, value, y, logsumexp, y_gradient, mask, bias, logsumexp_gradient, towards, heads=heads, causal=causal, scale=scale
    )[:-1]


@operator(
    f"{_GIVEN}, bias: float[*b g h i], mask?: bool[*b m n o], {_TOWARDS} -> of_bias: float[*b g h i]",
    sensitive_to="place",
    cases=[Case(**_TWO, bias=[[[[0.0, 0.0]]]] * 2, toward_query=[[[1.0]]] * 2, of_bias=[[[[-1.0, 0.0]]], [[[0.0, 0.0]]]])],
)
def attention_bias_changes(
    query, key, value, y, logsumexp, y_gradient, bias, mask=None, logsumexp_gradient=None, toward_query=None, toward_key=None,
    toward_value=None, toward_bias=None, *, heads: int = 1, causal: bool = False, scale: float | None = None,
):  # fmt: skip
    """The derivative of `attention_changes` with respect to the bias. It has no gradient."""
    towards = kernels.Towards(toward_query, toward_key, toward_value, toward_bias)
    *_, of_scores = kernels.attention_changes(
        query, key, value, y, logsumexp, y_gradient, mask, bias, logsumexp_gradient, towards, heads=heads, causal=causal, scale=scale
    )
    return summed_to(of_scores, bias, split(query, heads)).to(bias.dtype)


@attention_changes.check_shapes
def require_changes(query, key, value, y, logsumexp, y_gradient, mask=None, bias=None, *rest, heads, causal, scale=None):
    _require_changes(query, key, value, logsumexp, mask, bias, heads=heads, causal=causal, scale=scale)


@attention_bias_changes.check_shapes
def require_bias_changes(query, key, value, y, logsumexp, y_gradient, bias, mask=None, *rest, heads, causal, scale=None):
    _require_changes(query, key, value, logsumexp, mask, bias, heads=heads, causal=causal, scale=scale)


def _require_changes(query, key, value, logsumexp, mask, bias, *, heads, causal, scale):
    require_heads(query, key, value, mask, bias, heads=heads, causal=causal, scale=scale)
    if differ(logsumexp.shape[-2], heads):
        raise ShapeError(f"logsumexp has {logsumexp.shape[-2]} heads, but heads is {heads}")


_READ = ("query", "key", "value", "y", "logsumexp", "dy", "dlogsumexp")


def _program(part: Operator, wrt: str, slot: str) -> Callable[..., Var]:
    """Return the program for the gradient, with respect to `slot`, of `part`, the gradient of attention with respect to `wrt`."""
    toward, optional = f"dd{wrt}", ("mask", "dlogsumexp") if wrt == "bias" else ("mask", "bias", "dlogsumexp")
    names = ["query", "key", "value", "y", "logsumexp", "dy", *(["bias"] if wrt == "bias" else []), toward, *optional]

    def program(*given: Var | None, **attributes: Any) -> Var:
        renamed = {toward: f"toward_{wrt}", "dy": "y_gradient", "dlogsumexp": "logsumexp_gradient"}
        present = {renamed.get(name, name): var for name, var in zip(names, given, strict=True) if var is not None}
        if slot == "bias":
            return attention_bias_changes(**present, **attributes)
        return attention_changes(**present, **attributes)[_READ.index(slot)]

    kinds = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=None if name in optional else Parameter.empty) for name in names]
    kinds += [Parameter(name, Parameter.KEYWORD_ONLY) for name in ("heads", "causal")]
    kinds.append(Parameter("scale", Parameter.KEYWORD_ONLY, default=None))
    program.__signature__ = inspect.Signature(kinds)  # type: ignore[attr-defined]
    return program


for _wrt, _part in {
    "query": scaled_dot_product_attention_dquery,
    "key": scaled_dot_product_attention_dkey,
    "value": scaled_dot_product_attention_dvalue,
    "bias": scaled_dot_product_attention_dbias,
}.items():
    _part.gradient_programs(**{slot: _program(_part, _wrt, slot) for slot in (*_READ, "bias")})
