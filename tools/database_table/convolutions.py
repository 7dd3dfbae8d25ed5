"""Convolutions, pooling, padding and resizing."""

import math

from database_judge import Unmapped

from oarlock import op

__all__ = ["CALLS"]


def numbers(value, axes):
    """Return one number per axis; a single number is repeated."""
    return tuple(value) if isinstance(value, list | tuple) and len(value) != 1 else (value if isinstance(value, int) else value[0],) * axes


def batched(x, rank):
    """Return ``x`` with a batch dimension, which is optional in PyTorch, and whether it was added."""
    alone = len(x.shape) == rank - 1
    return (op.unsqueeze(x, 0) if alone else x), alone


def unbatched(y, alone):
    if not alone:
        return y
    return tuple(op.squeeze(each, 0) for each in y) if isinstance(y, tuple) else op.squeeze(y, 0)


def convolution(function, axes):
    def call(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        stride, dilation = numbers(stride, axes), numbers(dilation, axes)
        x, alone = batched(x, axes + 2)
        if padding == "same":
            total = [step * (size - 1) for step, size in zip(dilation, weight.shape[2:], strict=False)]
            x = op.pad(x, before=tuple(each // 2 for each in total), after=tuple(each - each // 2 for each in total))
        padding = (0,) * axes if isinstance(padding, str) else numbers(padding, axes)
        return unbatched(function(x, weight, bias, stride=stride, padding=padding, dilation=dilation, groups=groups), alone)

    return call


def transposed(function, axes):
    def call(x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        x, alone = batched(x, axes + 2)
        steps = {"stride": stride, "padding": padding, "output_padding": output_padding, "dilation": dilation}
        return unbatched(function(x, weight, bias, groups=groups, **{key: numbers(each, axes) for key, each in steps.items()}), alone)

    return call


def max_pool(function, axes):
    def call(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        x, alone = batched(x, axes + 2)
        stride = kernel_size if stride is None or stride == [] else stride
        steps = {"size": kernel_size, "stride": stride, "padding": padding, "dilation": dilation}
        called = op.max_pool_with_indices if return_indices else function
        return unbatched(called(x, ceil_mode=ceil_mode, **{key: numbers(each, axes) for key, each in steps.items()}), alone)

    return call


def padded_for(x, ceil_mode, size, stride, padding):
    """Pad with zeros so that the last windows end at the padded border."""
    after = []
    for length, window, step, pad in zip(x.shape[2:], size, stride, padding, strict=True):
        room = length + 2 * pad - window
        count = -(-room // step) if ceil_mode else room // step
        count -= ceil_mode and count * step >= length + pad
        after.append(pad + count * step - room)
    return op.pad(x, before=tuple(padding), after=tuple(after))


def average_pool(function, axes):
    def call(x, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
        x, alone = batched(x, axes + 2)
        stride = kernel_size if stride is None or stride == [] or stride == () else stride
        steps = {key: numbers(each, axes) for key, each in {"size": kernel_size, "stride": stride, "padding": padding}.items()}
        if divisor_override is None:
            return unbatched(function(x, ceil_mode=ceil_mode, count_include_pad=count_include_pad, **steps), alone)
        if not divisor_override:
            raise Unmapped("a division by 0")
        padded = padded_for(x, ceil_mode, **steps)  # zeros count in the sum of a window, which another number divides
        sums = function(padded, size=steps["size"], stride=steps["stride"], padding=(0,) * axes)
        return unbatched(sums, alone) * (math.prod(steps["size"]) / divisor_override)

    return call


def adaptive(function, axes):
    def call(x, output_size, return_indices=False):
        called = op.adaptive_max_pool_with_indices if return_indices else function
        size = output_size if isinstance(output_size, list | tuple) else (output_size,) * axes
        size = tuple(x.shape[number - axes] if each is None else each for number, each in enumerate(size))
        x, alone = batched(x, axes + 2)
        return unbatched(called(x, size=size), alone)

    return call


def unpool(axes):
    def call(x, indices, kernel_size, stride=None, padding=0, output_size=None):
        (x, alone), (indices, _) = batched(x, axes + 2), batched(indices, axes + 2)
        size, padding = numbers(kernel_size, axes), numbers(padding, axes)
        stride = size if stride is None or stride == [] else numbers(stride, axes)
        if output_size is None:
            output_size = [
                (n - 1) * step - 2 * pad + window for n, step, pad, window in zip(x.shape[2:], stride, padding, size, strict=True)
            ]
        return unbatched(op.max_unpool(x, indices, size=tuple(output_size)[-axes:]), alone)

    return call


def pad(x, pad, mode="constant", value=None):
    if not pad:
        return op.assign(x)
    before, after = tuple(pad[::2])[::-1], tuple(pad[1::2])[::-1]
    return op.pad(x, before=before, after=after, mode=mode, value=0.0 if value is None else float(value))


def unfold(x, kernel_size, dilation, padding, stride):
    x, alone = batched(x, 4)
    steps = {"size": kernel_size, "stride": stride, "padding": padding, "dilation": dilation}
    return unbatched(op.unfold(x, **{key: numbers(each, 2) for key, each in steps.items()}), alone)


_LINEAR = ("linear", "bilinear", "trilinear")


def interpolate(x, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None, antialias=False):
    axes = len(x.shape) - 2
    given = {} if size is None else {"size": numbers(size, axes)}
    if scale_factor is not None and recompute_scale_factor:
        factors = scale_factor if isinstance(scale_factor, list | tuple) else (scale_factor,) * axes
        given = {"size": tuple(math.floor(length * factor) for length, factor in zip(x.shape[2:], factors, strict=True))}
    elif scale_factor is not None:
        given["scale"] = (
            tuple(float(each) for each in scale_factor) if isinstance(scale_factor, list | tuple) else (float(scale_factor),) * axes
        )
    mode = "linear" if mode in _LINEAR else "cubic" if mode == "bicubic" else mode
    return op.resize(x, mode=mode, align_corners=bool(align_corners), **given)


def grid_sampler(x, grid, mode, padding_mode, align_corners):
    ways, outside = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
    return op.grid_sample(x, grid, mode=ways[mode], padding_mode=outside[padding_mode], align_corners=align_corners)


CALLS = {
    "grid_sampler_2d": grid_sampler,
    "grid_sampler_3d": grid_sampler,
    "constant_pad_nd": lambda x, pad_, value=0: pad(x, pad_, value=value),
    "nn.functional.adaptive_avg_pool1d": adaptive(op.adaptive_average_pool1d, 1),
    "nn.functional.adaptive_avg_pool2d": adaptive(op.adaptive_average_pool2d, 2),
    "nn.functional.adaptive_avg_pool3d": adaptive(op.adaptive_average_pool3d, 3),
    "nn.functional.adaptive_max_pool1d": adaptive(op.adaptive_max_pool1d, 1),
    "nn.functional.adaptive_max_pool2d": adaptive(op.adaptive_max_pool2d, 2),
    "nn.functional.adaptive_max_pool3d": adaptive(op.adaptive_max_pool3d, 3),
    "nn.functional.avg_pool1d": average_pool(op.average_pool1d, 1),
    "nn.functional.avg_pool2d": average_pool(op.average_pool2d, 2),
    "nn.functional.avg_pool3d": average_pool(op.average_pool3d, 3),
    "nn.functional.conv1d": convolution(op.conv1d, 1),
    "nn.functional.conv2d": convolution(op.conv2d, 2),
    "nn.functional.conv3d": convolution(op.conv3d, 3),
    "nn.functional.conv_transpose1d": transposed(op.conv_transpose1d, 1),
    "nn.functional.conv_transpose2d": transposed(op.conv_transpose2d, 2),
    "nn.functional.conv_transpose3d": transposed(op.conv_transpose3d, 3),
    **{f"nn.functional.max_unpool{axes}d{kind}": unpool(axes) for axes in (1, 2, 3) for kind in ("", ".grad")},
    "nn.functional.max_pool1d": max_pool(op.max_pool1d, 1),
    "nn.functional.max_pool2d": max_pool(op.max_pool2d, 2),
    "nn.functional.max_pool3d": max_pool(op.max_pool3d, 3),
    **{
        f"nn.functional.interpolate.{mode}": interpolate
        for mode in ("area", "bicubic", "bilinear", "linear", "nearest", "nearest-exact", "trilinear")
    },
    **{f"nn.functional.pad.{mode}": pad for mode in ("circular", "constant", "reflect", "replicate", "replicate_negative")},
    "nn.functional.unfold": lambda x, kernel_size, dilation=1, padding=0, stride=1: unfold(x, kernel_size, dilation, padding, stride),
    "nn.functional.grid_sample": lambda x, grid, mode="bilinear", padding_mode="zeros", align_corners=None: op.grid_sample(
        x, grid, mode=mode, padding_mode=padding_mode, align_corners=bool(align_corners)
    ),
    "nn.functional.upsample_bilinear": lambda x, size=None, scale_factor=None: interpolate(x, size, scale_factor, "bilinear", True),
    "nn.functional.upsample_nearest": interpolate,
}
