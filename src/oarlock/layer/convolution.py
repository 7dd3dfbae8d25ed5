"""Convolution and pooling of images."""

from oarlock.errors import ArgumentError, ShapeError
from oarlock.ir.location import here
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.var import Var
from oarlock.layer.initializer import Rule, constant, kaiming
from oarlock.layer.parameter import layer_name, new_parameter, output_name, require_count, require_number
from oarlock.op import convolution, pooling
from oarlock.op.composed.named_activation import Activation, activate, require_activation
from oarlock.op.manipulation import flatten
from oarlock.op.selection import reduce_max
from oarlock.registry.creator import require_type

__all__ = ["conv", "conv2d", "global_pool2d", "pool2d"]


def conv2d(
    input: Var,
    filters: int,
    size: int | tuple[int, int],
    *,
    stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] = 0,
    act: Activation | None = None,
    bias: bool = True,
    initializer: Rule | None = None,
    name: str | None = None,
) -> Var:
    """Slide `filters` windows of `size` over images: float[n c h w] -> float[n filters oh ow].

    ``oh = (h + 2 padding - size) // stride + 1``. Parameters `<name>.w` [filters, c, kh, kw], Kaiming-normal
    unless `initializer` says otherwise, and `<name>.b` [filters], zeros.
    """
    input = require_type(input, "conv2d: input")
    channels = require_number(input.shape, 1, "conv2d", input)
    name = layer_name(input.block.program, name, "conv2d")
    shape = (require_count(filters, "conv2d: filters"), channels, *_pair(size, "size"))
    window = {"stride": _pair(stride, "stride"), "padding": _pair(padding, "padding")}
    require_activation(act)
    with undone_on_error(input.block.program):
        w = new_parameter(input.block, f"{name}.w", shape, input.dtype, initializer or kaiming())
        b = new_parameter(input.block, f"{name}.b", (filters,), input.dtype, constant(0.0)) if bias else None
        return activate(convolution.conv2d(input, w, b, **window, name=output_name(input.block.program, name)), act)


conv = conv2d
"""`conv2d`, as the Framework document calls it."""


def pool2d(
    input: Var,
    size: int | tuple[int, int],
    *,
    stride: int | tuple[int, int] | None = None,
    padding: int | tuple[int, int] = 0,
    mode: str = "max",
) -> Var:
    """The largest value, or the mean with ``mode="average"``, of each window: float[n c h w] -> float[n c oh ow].

    Windows do not overlap unless `stride` says so.
    """
    pools = {"max": pooling.max_pool2d, "average": pooling.average_pool2d}
    if mode not in pools:
        raise ArgumentError(f"pool2d: mode is 'max' or 'average', not {mode!r}", location=here())
    window = _pair(size, "size")
    return pools[mode](input, size=window, stride=window if stride is None else _pair(stride, "stride"), padding=_pair(padding, "padding"))


def global_pool2d(input: Var, *, mode: str = "average") -> Var:
    """The mean of each channel of each image, or its largest value with ``mode="max"``: float[n c h w] -> float[n c]."""
    input = require_type(input, "global_pool2d: input")
    if input.ndim != 4:
        raise ShapeError(f"global_pool2d: input is float[n c h w], not {input.type_text}", location=here(), given=[input.describe()])
    if mode not in ("average", "max"):
        raise ArgumentError(f"global_pool2d: mode is 'max' or 'average', not {mode!r:.60}", location=here())
    return pooling.global_average_pool2d(input) if mode == "average" else reduce_max(flatten(input, start=2), axis=-1)


def _pair(value: int | tuple[int, int], what: str) -> tuple[int, int]:
    """Height and width; one number stands for both."""
    pair = (value, value) if isinstance(value, int) else tuple(value)
    if len(pair) != 2 or not all(isinstance(item, int) for item in pair):
        raise ArgumentError(f"{what} is a number, or two for height and width, not {value!r}", location=here())
    return pair
