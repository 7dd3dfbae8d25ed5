"""The operators, one family per file. `ol.op.relu(x)` appends one to the program of `x`.

Importing this package registers every operator of a forward program. Operators that update parameters are in `oarlock.op.update`; an
inference-only process never imports it.
"""

from oarlock.old_names import OLD_OPERATORS, renamed
from oarlock.op import (
    activation,
    adaptive_pooling,
    along_axis,
    attention,
    attention_second_order,
    batch_normalization,
    bessel_functions,
    bitwise,
    choice,
    collective,
    comparison,
    complex_parts,
    compositions,
    convolution,
    creation,
    crf,
    ctc,
    cumulative,
    decompositions,
    dtype_conversion,
    elementwise,
    extremes,
    fourier_transforms,
    fused,
    group_normalization,
    indexing,
    linear_systems,
    logical,
    loss,
    magnitude,
    manipulation,
    matrix,
    measurement,
    moves,
    normalization,
    order_statistics,
    padding,
    paired_functions,
    patches,
    piecewise_activation,
    pooling,
    powers,
    quantization,
    randomness,
    rearrangement,
    reduction,
    resizing,
    rms_normalization,
    rounding,
    selection,
    sequence,
    sequence_layout,
    shares,
    singular,
    smooth_activation,
    sorting,
    special_functions,
    statistics,
    sync_batch_normalization,
    table,
    told_shape,
    trigonometry,
    unary,
)
from oarlock.op.composed import arithmetic, equality
from oarlock.op.control import conditional, loop_gradient, recurrent_loop, while_loop
from oarlock.registry.catalogue import standard
from oarlock.registry.checked_call import publish
from oarlock.registry.declaration import Operator
from oarlock.suggestions import no_attribute

__all__ = [
    "decompositions",
    "fourier_transforms",
    "linear_systems",
    "singular",
    "activation",
    "adaptive_pooling",
    "along_axis",
    "arithmetic",
    "attention",
    "attention_second_order",
    "batch_normalization",
    "bessel_functions",
    "bitwise",
    "choice",
    "collective",
    "comparison",
    "complex_parts",
    "conditional",
    "convolution",
    "creation",
    "crf",
    "ctc",
    "cumulative",
    "dtype_conversion",
    "elementwise",
    "equality",
    "extremes",
    "fused",
    "group_normalization",
    "indexing",
    "logical",
    "loop_gradient",
    "loss",
    "magnitude",
    "manipulation",
    "matrix",
    "measurement",
    "moves",
    "normalization",
    "order_statistics",
    "padding",
    "paired_functions",
    "patches",
    "piecewise_activation",
    "pooling",
    "powers",
    "quantization",
    "randomness",
    "rearrangement",
    "recurrent_loop",
    "reduction",
    "resizing",
    "rms_normalization",
    "rounding",
    "selection",
    "sequence",
    "sequence_layout",
    "shares",
    "smooth_activation",
    "sorting",
    "special_functions",
    "statistics",
    "sync_batch_normalization",
    "table",
    "told_shape",
    "trigonometry",
    "unary",
    "while_loop",
    *compositions.__all__,
]


globals().update({name: getattr(compositions, name) for name in compositions.__all__})


def __getattr__(name: str) -> Operator:
    found = standard.find(name)
    if found is None and name in OLD_OPERATORS:
        found = standard.find(renamed("operator", name, OLD_OPERATORS))
    if found is None:
        raise no_attribute(__name__, name, [*standard.operators, *compositions.__all__])
    return found


def __dir__() -> list[str]:
    return sorted([*__all__, *standard.operators])


publish(__name__, attributes_in_place=True)
