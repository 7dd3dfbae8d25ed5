"""Convolutions, pooling and unpooling."""

import math
from collections.abc import Sequence

from oarlock import op
from oarlock.interop.onnx.import_rules.forms import axis_or_axes, constant, numbers_of, rank_of, reshaped, shape_of
from oarlock.interop.onnx.rule import Unsupported, rule
from oarlock.ir.attribute import Sizes
from oarlock.ir.dtype import DType
from oarlock.ir.size import Size
from oarlock.ir.var import Var


def _axes(x: Var) -> int:
    """Return the number of spatial axes, 1 to 3."""
    count = rank_of(x) - 2
    if not 1 <= count <= 3:
        raise Unsupported(f"it has {count} spatial axes; only 1 to 3 are supported")
    return count


def numbers(given: Sequence[int] | None, count: int, default: int, what: str, *, least: int | None = None) -> tuple[int, ...]:
    """Return the `count` numbers of an attribute, each at least `least`."""
    found = (default,) * count if given is None else tuple(given)
    if len(found) != count:
        raise Unsupported(f"its {what} {list(found)[:16]} must have {count} numbers")
    if least is not None and min(found, default=least) < least:
        raise Unsupported(f"its {what} {list(found)} must be at least {least}")
    return found


def _pads(
    x: Var, auto_pad: str, pads: Sequence[int] | None, window: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the pads before and after, as numbers."""
    count = len(window)
    if auto_pad in ("NOTSET", ""):
        found = numbers(pads, 2 * count, 0, "pads")
        return found[:count], found[count:]
    if auto_pad == "VALID":
        return (0,) * count, (0,) * count
    if auto_pad not in ("SAME_UPPER", "SAME_LOWER"):
        raise Unsupported(f"auto_pad={auto_pad!r:.40} is not supported")
    before, after = [], []
    for size, width, step, apart in zip(shape_of(x)[2:], window, stride, dilation, strict=True):
        if not isinstance(size, int):
            if step != 1:
                raise Unsupported(f"its pads depend on the size {size}", hint="pass sizes={...} to fix symbolic sizes")
            size = 1
        total = max((-(-size // step) - 1) * step + (width - 1) * apart + 1 - size, 0)
        small, large = total // 2, total - total // 2
        before.append(small if auto_pad == "SAME_UPPER" else large)
        after.append(large if auto_pad == "SAME_UPPER" else small)
    return tuple(before), tuple(after)


def padded(x: Var, before: Sequence[int], after: Sequence[int], value: float = 0.0) -> Var:
    """Pad the spatial axes of `x`."""
    return op.pad(x, before=(0, 0, *before), after=(0, 0, *after), mode="constant", value=value)


@rule("Conv")
def convolution(x, w, bias=None, *, auto_pad="NOTSET", dilations=None, group=1, kernel_shape=None, pads=None, strides=None):
    count = _axes(x)
    window = shape_of(w)[2:]
    if not all(isinstance(size, int) for size in window) or (kernel_shape is not None and tuple(kernel_shape) != window):
        raise Unsupported(f"its filter {list(window)} does not match kernel_shape {kernel_shape}")
    stride, dilation = numbers(strides, count, 1, "strides", least=1), numbers(dilations, count, 1, "dilations", least=1)
    before, after = _pads(x, auto_pad, pads, window, stride, dilation)  # type: ignore[arg-type]
    if before != after:
        x, before = padded(x, before, after), (0,) * count
    return getattr(op, f"conv{count}d")(x, w, bias, stride=stride, padding=before, dilation=dilation, groups=group)


@rule("ConvTranspose")
def transposed_convolution(
    x, w, bias=None, *, auto_pad="NOTSET", dilations=None, group=1, kernel_shape=None, output_padding=None, output_shape=None, pads=None,
    strides=None,
):  # fmt: skip
    count = _axes(x)
    window: tuple[int, ...] = shape_of(w)[2:]  # type: ignore[assignment]
    if kernel_shape is not None and tuple(kernel_shape) != window:
        raise Unsupported(f"its filter {list(window)} does not match kernel_shape {list(kernel_shape)[:16]}")
    stride, dilation = numbers(strides, count, 1, "strides", least=1), numbers(dilations, count, 1, "dilations", least=1)
    more = numbers(output_padding, count, 0, "output_padding", least=0)
    whole = [(width - 1) * apart + 1 for width, apart in zip(window, dilation, strict=True)]
    if output_shape is not None or auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        before, after = [], []
        for number, (size, step, width) in enumerate(zip(shape_of(x)[2:], stride, whole, strict=True)):
            if not isinstance(size, int):
                raise Unsupported(f"its pads depend on the size {size}", hint="pass sizes={...} to fix symbolic sizes")
            wanted = size * step if output_shape is None else tuple(output_shape)[-count:][number]
            total = step * (size - 1) + more[number] + width - wanted
            upper = auto_pad == "SAME_UPPER"
            before.append(total // 2 if upper else total - total // 2)
            after.append(total - total // 2 if upper else total // 2)
    else:
        before, after = _pads(x, auto_pad, pads, window, stride, dilation)
    function = getattr(op, f"conv_transpose{count}d")
    if tuple(before) == tuple(after) and all(extra < max(step, apart) for extra, step, apart in zip(more, stride, dilation, strict=True)):
        return function(x, w, bias, stride=stride, padding=tuple(before), output_padding=more, dilation=dilation, groups=group)
    behind = [extra - cut for extra, cut in zip(more, after, strict=True)]
    more = tuple(max(extra, 0) for extra in behind)
    if any(extra >= max(step, apart) for extra, step, apart in zip(more, stride, dilation, strict=True)) or min(before) < 0:
        raise Unsupported(f"its output padding {list(more)} must be less than the strides {list(stride)}")
    y = function(x, w, bias, stride=stride, padding=(0,) * count, output_padding=more, dilation=dilation, groups=group)
    cut = [min(extra, 0) for extra in behind]
    return padded(y, [-number for number in before], cut) if any((*before, *cut)) else y


def _room(size: Size, before: int, after: int, window: int, stride: int, ceil: bool) -> tuple[int, int]:
    """Return the pad at the end of an axis, and the extra padding that `ceil_mode` needs to fill the last window."""
    if not isinstance(size, int):
        if ceil and stride != 1:
            raise Unsupported(f"its last window depends on the size {size}", hint="pass sizes={...} to fix symbolic sizes")
        return after, 0
    room = size + before + after - window
    count = (-(-room // stride) if ceil else room // stride) + 1
    if ceil and (count - 1) * stride >= size + before:
        count -= 1  # windows that would start after the input are omitted
    return after, max((count - 1) * stride - room, 0)


@rule("MaxPool")
def max_pool(x, *, auto_pad="NOTSET", ceil_mode=0, dilations=None, kernel_shape, pads=None, storage_order=0, strides=None, outputs):
    count = _axes(x)
    window = numbers(kernel_shape, count, 1, "kernel_shape", least=1)
    stride, dilation = numbers(strides, count, 1, "strides", least=1), numbers(dilations, count, 1, "dilations", least=1)
    before, after = _pads(x, auto_pad, pads, window, stride, dilation)
    if outputs > 1:
        raise Unsupported("the positions of the maxima are not supported")
    dtype = x.dtype
    if not dtype.is_floating:
        x = op.cast(x, dtype=DType.FLOAT32)
    whole = [(width - 1) * apart + 1 for width, apart in zip(window, dilation, strict=True)]
    behind = [sum(_room(*item, bool(ceil_mode))) for item in zip(shape_of(x)[2:], before, after, whole, stride, strict=True)]
    padding = before
    if tuple(behind) != tuple(before) or any(2 * pad > width for pad, width in zip(before, window, strict=True)):
        x, padding = padded(x, before, behind, -float("inf")), (0,) * count
    y = getattr(op, f"max_pool{count}d")(x, size=window, stride=stride, padding=padding, dilation=dilation)
    return y if y.dtype is dtype else op.cast(y, dtype=dtype)


@rule("AveragePool")
def average_pool(x, *, auto_pad="NOTSET", ceil_mode=0, count_include_pad=0, dilations=None, kernel_shape, pads=None, strides=None):
    """Average over windows. The divisor counts input elements; with `count_include_pad` also pads, but not the padding of `ceil_mode`."""
    count = _axes(x)
    window = numbers(kernel_shape, count, 1, "kernel_shape", least=1)
    stride, dilation = numbers(strides, count, 1, "strides", least=1), numbers(dilations, count, 1, "dilations", least=1)
    before, after = _pads(x, auto_pad, pads, window, stride, dilation)
    whole = [(width - 1) * apart + 1 for width, apart in zip(window, dilation, strict=True)]
    rooms = [_room(*item, bool(ceil_mode)) for item in zip(shape_of(x)[2:], before, after, whole, stride, strict=True)]
    extra = [room[1] for room in rooms]
    plain = set(dilation) == {1} and not any(extra)
    if plain and (not any((*before, *after)) or (count_include_pad and before == after and _fits(before, window))):
        return getattr(op, f"average_pool{count}d")(x, size=window, stride=stride, padding=before)
    behind = [pad + more for pad, more in zip(after, extra, strict=True)]
    total = _window_sums(padded(x, before, behind), window, stride, dilation)
    ones = op.full_like(x, value=1.0, dtype=x.dtype)
    counted = padded(padded(ones, before, after, 1.0), (0,) * count, extra) if count_include_pad else padded(ones, before, behind)
    return op.divide(total, _window_sums(counted, window, stride, dilation))


def _fits(padding: Sequence[int], window: Sequence[int]) -> bool:
    return all(2 * pad <= width for pad, width in zip(padding, window, strict=True))


def _window_sums(x: Var, window: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...]) -> Var:
    """Return the sum over each window."""
    count = len(window)
    if set(dilation) == {1}:
        number = 1
        for width in window:
            number *= width
        return op.multiply(getattr(op, f"average_pool{count}d")(x, size=window, stride=stride, padding=(0,) * count), constant(number, x))
    channels = shape_of(x)[1]
    if not isinstance(channels, int):
        raise Unsupported(
            f"its windows are dilated, and the number of channels is {channels}", hint="pass sizes={...} to fix symbolic sizes"
        )
    ones = op.full(shape=(channels, 1, *window), value=1.0, dtype=x.dtype)
    return getattr(op, f"conv{count}d")(x, ones, stride=stride, padding=(0,) * count, dilation=dilation, groups=channels)


def _require_power(p: int) -> None:
    if p < 1:
        raise Unsupported(f"its p is {p}, but must be at least 1")


@rule("LpPool")
def lp_pool(x, *, auto_pad="NOTSET", ceil_mode=0, dilations=None, kernel_shape, p=2, pads=None, strides=None):
    count = _axes(x)
    window = numbers(kernel_shape, count, 1, "kernel_shape", least=1)
    stride, dilation = numbers(strides, count, 1, "strides", least=1), numbers(dilations, count, 1, "dilations", least=1)
    before, after = _pads(x, auto_pad, pads, window, stride, dilation)
    whole = [(width - 1) * apart + 1 for width, apart in zip(window, dilation, strict=True)]
    behind = [sum(_room(*item, bool(ceil_mode))) for item in zip(shape_of(x)[2:], before, after, whole, stride, strict=True)]
    _require_power(p)
    powers = op.power(op.abs(x), constant(p, x))
    total = _window_sums(padded(powers, before, behind), window, stride, dilation)
    return op.power(total, constant(1.0 / p, x))


@rule("GlobalAveragePool")
def global_average_pool(x):
    return op.mean(x, axis=axis_or_axes(tuple(range(2, rank_of(x)))), keepdim=True) if rank_of(x) > 2 else op.assign(x)


@rule("GlobalMaxPool")
def global_max_pool(x):
    for axis in range(2, rank_of(x)):
        x = op.reduce_max(x, axis=axis, keepdim=True)
    return op.assign(x)


@rule("GlobalLpPool")
def global_lp_pool(x, *, p=2):
    _require_power(p)
    powers = op.power(op.abs(x), constant(p, x))
    return op.power(op.reduce_sum(powers, axis=axis_or_axes(tuple(range(2, rank_of(x)))), keepdim=True), constant(1.0 / p, x))


@rule("MaxUnpool", since=9, known=("output_shape",))
def max_unpool(x, index, output_shape=None, *, kernel_shape, pads=None, strides=None):
    """Place each element among zeros. Its index counts through the whole result, whose shape is `output_shape` or inferred."""
    count = rank_of(x) - 2
    strides, pads = numbers(strides, count, 1, "strides", least=1), numbers(pads, 2 * count, 0, "pads")
    kernel_shape = numbers(kernel_shape, count, 1, "kernel_shape", least=1)
    whole = numbers_of(x)
    sizes = [
        (size - 1) * step - before - after + width
        for size, step, before, after, width in zip(whole[2:], strides, pads[:count], pads[count:], kernel_shape, strict=True)
    ]
    shape = [*whole[:2], *sizes]
    wanted = shape if output_shape is None else output_shape.items()
    if any(not isinstance(size, int) or size < old for size, old in zip(wanted, shape, strict=True)):
        raise Unsupported(f"output_shape {wanted} is smaller than {shape}")
    zeros = op.broadcast_to(constant(0.0, x), [], shape=Sizes((math.prod(shape),)))
    flat = reshaped(op.cast(index, dtype=DType.INT64) if index.dtype is not DType.INT64 else index, (-1,))
    result = reshaped(op.scatter_along_axis(zeros, flat, reshaped(x, (-1,)), axis=0), shape)
    if wanted == shape:
        return result
    return op.pad(result, before=(0,) * len(shape), after=tuple(new - old for new, old in zip(wanted, shape, strict=True)))
