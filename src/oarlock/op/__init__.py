"""The operators, one family per file. `ol.op.relu(x)` appends one to the program of `x`.

Importing this package registers every operator of a forward program. Those that update parameters are in
`oarlock.op.update`, which an inference-only process never imports.
"""

from types import ModuleType

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
    group_normalization,
    indexing,
    logical,
    loss,
    manipulation,
    matrix,
    normalization,
    padding,
    piecewise_activation,
    places,
    pooling,
    pooling_by_axes,
    powers,
    randomness,
    rearrangement,
    reduction,
    resizing,
    rms_normalization,
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
from oarlock.op.composed.activations import (
    celu,
    glu,
    hardshrink,
    prelu,
    relu6,
    selu,
    softmin,
    softshrink,
    softsign,
    tanhshrink,
    threshold,
)
from oarlock.op.composed.attention import attention_by_head
from oarlock.op.composed.broadcast_product import matrix_product
from oarlock.op.composed.class_losses import cross_entropy, nll_loss
from oarlock.op.composed.einsum import einsum
from oarlock.op.composed.indexing import gather_nd, scatter_nd
from oarlock.op.composed.losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    smooth_l1_loss,
)
from oarlock.op.composed.norms import normalize, standard_deviation, vector_norm
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
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "bitwise",
    "celu",
    "choice",
    "comparison",
    "conditional",
    "convolution",
    "creation",
    "cross_entropy",
    "cumulative",
    "dtype_conversion",
    "einsum",
    "elementwise",
    "extremes",
    "eye",
    "fused",
    "gather_nd",
    "gemm",
    "glu",
    "group_normalization",
    "hardshrink",
    "huber_loss",
    "indexing",
    "kl_div",
    "l1_loss",
    "logical",
    "loop_gradient",
    "loss",
    "manipulation",
    "matrix",
    "matrix_product",
    "mse_loss",
    "nll_loss",
    "normalization",
    "normalize",
    "padding",
    "piecewise_activation",
    "places",
    "pooling",
    "pooling_by_axes",
    "powers",
    "prelu",
    "randomness",
    "rearrangement",
    "recurrent_loop",
    "reduction",
    "relu6",
    "resizing",
    "rms_normalization",
    "rounding",
    "scatter_nd",
    "selection",
    "selu",
    "sequence",
    "sequence_layout",
    "smooth_activation",
    "smooth_l1_loss",
    "softmin",
    "softshrink",
    "softsign",
    "sorting",
    "squeeze",
    "standard_deviation",
    "statistics",
    "table",
    "tanhshrink",
    "threshold",
    "told_shape",
    "top_k_along",
    "trigonometry",
    "unary",
    "unsqueeze",
    "vector_norm",
    "while_loop",
]


_COMPOSED = [name for name in __all__ if not isinstance(globals()[name], ModuleType)]
"""Functions of variables that are no operators."""


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
