"""Fourier transforms as matrix products, column-to-image, and mel weights."""

import math
from typing import TYPE_CHECKING

import numpy
import torch

from oarlock import op
from oarlock.interop.onnx.import_rules.forms import axis_of, constant, moved, numbers_of, rank_of, reshaped, shape_of, unsqueezed
from oarlock.interop.onnx.known_value import Known, known_numbers
from oarlock.interop.onnx.rule import Unsupported, rule
from oarlock.interop.onnx.tensors import DTYPES
from oarlock.ir.dtype import DType
from oarlock.ir.var import Var
from oarlock.tensor.dtype import to_torch

if TYPE_CHECKING:
    from oarlock.interop.onnx.importer import Importer

_MOST = 2**22  # elements of a matrix


def _array(array: numpy.ndarray, like: Var, importer: "Importer") -> Var:
    return importer.writer.variable(known_numbers(torch.from_numpy(numpy.ascontiguousarray(array)).to(to_torch(like.dtype))))


@rule("DFT", since=20, known=("length", "axis"))
def fourier(x, length=None, axis=None, *, inverse=0, onesided=0, importer: "Importer"):
    return _fourier(x, length, -2 if axis is None else axis.item(), inverse, onesided, importer)


@rule("DFT", since=17, until=20, known=("length",))
def fourier_along_attribute(x, length=None, *, axis=1, inverse=0, onesided=0, importer: "Importer"):
    return _fourier(x, length, axis, inverse, onesided, importer)


def _fourier(x: Var, length: Known | None, axis: int, inverse: int, onesided: int, importer: "Importer") -> Var:
    rank = rank_of(x)
    axis = axis_of(axis, rank)
    whole, parts = shape_of(x)[axis], shape_of(x)[-1]
    if axis == rank - 1 or parts not in (1, 2) or not isinstance(whole, int):
        raise Unsupported(f"a transform along axis {axis} of {list(shape_of(x))} is not supported")
    count = (2 * (whole - 1) if inverse and onesided else whole) if length is None else int(length.item())
    if not 0 < count * count <= _MOST or (inverse and onesided and parts != 2):
        raise Unsupported(f"a transform of length {count} is not supported")
    wide = op.cast(x, dtype=DType.FLOAT64)  # sums of many terms may cancel
    return op.cast(_transformed(wide, axis, whole, count, bool(inverse), bool(onesided), importer), dtype=x.dtype)


def _transformed(x: Var, axis: int, whole: int, count: int, inverse: bool, onesided: bool, importer: "Importer") -> Var:
    """Transform along an axis, with real and imaginary parts in the last axis. The signal is cropped or zero-padded to `count`."""
    rank = rank_of(x)
    real = reshaped(op.slice(x, axis=rank - 1, start=0, stop=1, clip=False), shape_of(x)[:-1])
    imaginary = reshaped(op.slice(x, axis=rank - 1, start=1, stop=2, clip=False), shape_of(x)[:-1]) if shape_of(x)[-1] == 2 else None
    given = count // 2 + 1 if inverse and onesided else count
    taken = min(whole, given)
    real, imaginary = (
        None if item is None else op.slice(moved(item, axis, -1), axis=-1, start=0, stop=taken, clip=False) for item in (real, imaginary)
    )
    rows = numpy.arange(taken)[:, None]
    columns = numpy.arange(count // 2 + 1 if onesided and not inverse else count)[None, :]
    angle = 2 * math.pi * rows * columns / count * (1 if inverse else -1)
    weight = numpy.ones((taken, 1))
    if inverse and onesided:  # the other half is the conjugate of this one
        weight[1 : taken if count % 2 else min(taken, count // 2)] = 2
    factor = weight / count if inverse else weight
    cosines, sines = (_array(function(angle) * factor, x, importer) for function in (numpy.cos, numpy.sin))
    assert real is not None
    total, other = op.linear(real, cosines), op.linear(real, sines)
    if imaginary is not None:
        total = op.subtract(total, op.linear(imaginary, sines))
        other = op.add(other, op.linear(imaginary, cosines))
    kept = [total] if inverse and onesided else [total, other]
    kept = [unsqueezed(moved(item, -1, axis), [rank - 1]) for item in kept]
    return kept[0] if len(kept) == 1 else op.concat(kept, axis=rank - 1)


@rule("STFT", known=("step", "length"))
def short_time_fourier(signal, step, window=None, length=None, *, onesided=1, importer: "Importer"):
    rows, places, parts = shape_of(signal) if rank_of(signal) == 3 else (*shape_of(signal), 1)
    size = int(length.item()) if length is not None else numbers_of(window)[0] if window is not None else None
    if size is None or parts not in (1, 2) or not 0 < size * size <= _MOST:
        raise Unsupported(f"frames of {size} of a signal of {parts} parts are not supported")
    signal = reshaped(signal, (rows, places, parts))
    frames = op.windows(moved(signal, 2, 1), axis=2, size=size, step=int(step.item()))  # [rows, parts, frames, size]
    if window is not None:
        frames = op.multiply(frames, window)
    frames = moved(frames, 1, -1)
    return _transformed(frames, 2, size, size, False, bool(onesided), importer)


@rule("MelWeightMatrix", known=("bins", "length", "rate", "low", "high"))
def mel_weights(bins, length, rate, low, high, *, output_datatype=1, importer: "Importer"):
    """Return triangular filters over the bins of a spectrum, with corners equally spaced on the mel scale."""
    count, spectrum = int(bins.item()), int(length.item()) // 2 + 1
    if output_datatype not in DTYPES or not 0 < count * spectrum <= _MOST:
        raise Unsupported(f"{count} bins over {spectrum} are not supported, or their dtype is not")
    ends = [2595 * math.log10(1 + float(item.item()) / 700) for item in (low, high)]
    marks = numpy.arange(count + 2) * ((ends[1] - ends[0]) / (count + 2)) + ends[0]
    corners = (int(length.item()) + 1) * 700 * (numpy.power(10, marks / 2595) - 1) // float(rate.item())
    corners = corners.astype(int)
    matrix = numpy.zeros((spectrum, count))
    for number in range(count):
        left, middle, right = corners[number : number + 3]
        if middle == left:
            matrix[middle, number] = 1
        for place in range(left, middle + 1) if middle != left else ():
            matrix[place, number] = (place - left) / (middle - left)
        for place in range(middle, right) if right != middle else ():
            matrix[place, number] = (right - place) / (right - middle)
    return known_numbers(torch.from_numpy(matrix).to(to_torch(DTYPES[output_datatype])))


@rule("Col2Im", known=("image", "block"))
def columns_to_image(x, image, block, *, dilations=None, pads=None, strides=None, importer: "Importer"):
    """Add each element at its position in the image; elements in the pads are dropped."""
    sizes, window = image.items(), block.items()
    count = len(sizes)
    dilations, strides = dilations or (1,) * count, strides or (1,) * count
    pads = pads or (0,) * 2 * count
    rows, columns, _ = shape_of(x)
    width = math.prod(window)
    if (
        min((*sizes, *window, *strides, *dilations), default=0) < 1
        or max(math.prod(sizes), width) > _MOST
        or width * math.prod(sizes) > 2**28
    ):
        raise Unsupported(f"blocks of {list(window)[:8]} in an image of {list(sizes)[:8]} are not supported")
    if not isinstance(columns, int) or columns % width:
        raise Unsupported(f"{columns} rows cannot be split into blocks of {width}")
    places = numpy.zeros((1, 1), dtype=numpy.int64)
    inside = numpy.ones((1, 1), dtype=bool)
    for axis in range(count):
        whole = sizes[axis] + pads[axis] + pads[axis + count]
        steps = (whole - dilations[axis] * (window[axis] - 1) - 1) // strides[axis] + 1
        at = numpy.arange(window[axis])[:, None] * dilations[axis] + numpy.arange(steps)[None, :] * strides[axis] - pads[axis]
        there = (at >= 0) & (at < sizes[axis])
        shape = (places.shape[0] * window[axis], places.shape[1] * steps)
        places = (places[:, None, :, None] * sizes[axis] + at[None, :, None, :]).reshape(shape)
        inside = (inside[:, None, :, None] & there[None, :, None, :]).reshape(shape)
    total = math.prod(sizes)
    flat = numpy.where(inside, places, total).reshape(-1)
    index = importer.writer.variable(known_numbers(torch.from_numpy(flat)))
    values = reshaped(x, (rows, columns // width, flat.size))
    start = op.broadcast_to(constant(0.0, x), [x], shape=(rows, columns // width, total + 1))
    index = op.broadcast_to(reshaped(index, (1, 1, flat.size)), [x], shape=(rows, columns // width, flat.size))
    added = op.scatter_along_axis(start, index, values, axis=2, reduction="add")
    return reshaped(op.slice(added, axis=2, start=0, stop=total, clip=False), (rows, columns // width, *sizes))
