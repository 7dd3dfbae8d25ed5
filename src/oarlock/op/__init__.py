"""The operators, one family per file. `ol.op.relu(x)` appends one to the program of `x`.

Importing this package registers every operator of a forward program. Those that update parameters are in
`oarlock.op.update`, which an inference-only process never imports.
"""

from oarlock.old_names import OLD_OPERATORS, renamed
from oarlock.op import (
    activation,
    adaptive_pooling,
    along_axis,
    attention,
    batch_normalization,
    bitwise,
    choice,
    comparison,
    convolution,
    creation,
    cumulative,
    dtype_conversion,
    elementwise,
    extremes,
    fused,
    indexing,
    logical,
    loss,
    manipulation,
    matrix,
    normalization,
    piecewise_activation,
    places,
    pooling,
    pooling_by_axes,
    powers,
    randomness,
    rearrangement,
    reduction,
    rounding,
    selection,
    sequence,
    sequence_layout,
    smooth_activation,
    sorting,
    statistics,
    table,
    told_shape,
    trigonometry,
    unary,
)
from oarlock.op.composed import arithmetic
from oarlock.op.composed.attention import attention_by_head
from oarlock.op.composed.broadcast_product import matrix_product
from oarlock.op.composed.einsum import einsum
from oarlock.op.composed.indexing import gather_nd, scatter_nd
from oarlock.op.composed.order import argsort, eye, top_k_along
from oarlock.op.composed.product import gemm
from oarlock.op.composed.shape import squeeze, unsqueeze
from oarlock.op.control import conditional, loop_gradient, recurrent_loop, while_loop
from oarlock.registry.catalogue import standard
from oarlock.registry.declaration import Operator
from oarlock.suggestions import no_attribute, refuse_calls

__all__ = [
    "activation",
    "adaptive_pooling",
    "along_axis",
    "argsort",
    "arithmetic",
    "attention",
    "attention_by_head",
    "batch_normalization",
    "bitwise",
    "choice",
    "comparison",
    "conditional",
    "convolution",
    "creation",
    "cumulative",
    "dtype_conversion",
    "einsum",
    "elementwise",
    "extremes",
    "eye",
    "fused",
    "gather_nd",
    "gemm",
    "indexing",
    "logical",
    "loop_gradient",
    "loss",
    "manipulation",
    "matrix",
    "matrix_product",
    "normalization",
    "piecewise_activation",
    "places",
    "pooling",
    "pooling_by_axes",
    "powers",
    "randomness",
    "rearrangement",
    "recurrent_loop",
    "reduction",
    "rounding",
    "scatter_nd",
    "selection",
    "sequence",
    "sequence_layout",
    "smooth_activation",
    "sorting",
    "squeeze",
    "statistics",
    "table",
    "told_shape",
    "top_k_along",
    "trigonometry",
    "unary",
    "unsqueeze",
    "while_loop",
]


_COMPOSED = (
    "argsort",
    "attention_by_head",
    "einsum",
    "eye",
    "gather_nd",
    "gemm",
    "matrix_product",
    "scatter_nd",
    "squeeze",
    "top_k_along",
    "unsqueeze",
)  # functions of variables


def __getattr__(name: str) -> Operator:
    found = standard.find(name)
    if found is None and name in OLD_OPERATORS:
        found = standard.find(renamed("operator", name, OLD_OPERATORS, stacklevel=2))
    if found is None:
        raise no_attribute(__name__, name, [*standard.operators, *_COMPOSED])
    return found


def __dir__() -> list[str]:
    return sorted([*__all__, *standard.operators])


refuse_calls(__name__)
