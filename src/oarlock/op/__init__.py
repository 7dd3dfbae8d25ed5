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
    crf,
    ctc,
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
    measurement,
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
from oarlock.op.composed.crf import crf_loss
from oarlock.op.composed.density_losses import gaussian_nll_loss, poisson_nll_loss
from oarlock.op.composed.distances import cosine_similarity, pairwise_distance
from oarlock.op.composed.einsum import einsum
from oarlock.op.composed.imbalance_losses import dice_loss, focal_loss, iou_loss, sigmoid_focal_loss
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
from oarlock.op.composed.margin_losses import (
    cosine_embedding_loss,
    hinge_embedding_loss,
    hinge_loss,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    soft_margin_loss,
    squared_hinge_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from oarlock.op.composed.norms import normalize, standard_deviation, vector_norm
from oarlock.op.composed.order import argsort, eye, top_k_along
from oarlock.op.composed.product import gemm
from oarlock.op.composed.sampled_losses import (
    hierarchical_softmax_loss,
    log_uniform_samples,
    nce_loss,
    sampled_softmax_loss,
    uniform_samples,
)
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
    "cosine_embedding_loss",
    "cosine_similarity",
    "creation",
    "crf",
    "crf_loss",
    "cross_entropy",
    "ctc",
    "cumulative",
    "dice_loss",
    "dtype_conversion",
    "einsum",
    "elementwise",
    "extremes",
    "eye",
    "focal_loss",
    "fused",
    "gather_nd",
    "gaussian_nll_loss",
    "gemm",
    "glu",
    "group_normalization",
    "hardshrink",
    "hierarchical_softmax_loss",
    "hinge_embedding_loss",
    "hinge_loss",
    "huber_loss",
    "indexing",
    "iou_loss",
    "kl_div",
    "l1_loss",
    "log_uniform_samples",
    "logical",
    "loop_gradient",
    "loss",
    "manipulation",
    "margin_ranking_loss",
    "matrix",
    "matrix_product",
    "measurement",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nce_loss",
    "nll_loss",
    "normalization",
    "normalize",
    "padding",
    "pairwise_distance",
    "piecewise_activation",
    "places",
    "poisson_nll_loss",
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
    "sampled_softmax_loss",
    "scatter_nd",
    "selection",
    "selu",
    "sequence",
    "sequence_layout",
    "sigmoid_focal_loss",
    "smooth_activation",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmin",
    "softshrink",
    "softsign",
    "sorting",
    "squared_hinge_loss",
    "squeeze",
    "standard_deviation",
    "statistics",
    "table",
    "tanhshrink",
    "threshold",
    "told_shape",
    "top_k_along",
    "trigonometry",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
    "unary",
    "uniform_samples",
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
