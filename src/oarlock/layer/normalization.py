"""Layer, RMS, group and instance normalization, with trained scale and shift."""

import math

from oarlock.ir.rollback import undone_on_error
from oarlock.ir.var import Var
from oarlock.layer.batch_normalization import running_instance_norm, scale_and_shift
from oarlock.layer.parameter import layer_name, output_name, require_number
from oarlock.layer.parameter_options import Given
from oarlock.op import group_normalization, normalization, rms_normalization
from oarlock.op.composed.shape import known_shape
from oarlock.op.manipulation import reshape
from oarlock.registry.creator import require_type
from oarlock.registry.range_check import require_count

__all__ = ["group_norm", "instance_norm", "layer_norm", "rms_norm"]


def layer_norm(
    input: Var,
    *,
    axes: int = 1,
    epsilon: float = 1e-5,
    scale: bool | Given = True,
    bias: bool | Given = True,
    name: str | None = None,
) -> Var:
    """Normalize each row to mean 0 and variance 1 along its last dimension, then scale and shift it: float[*b k] -> float[*b k].

    `axes` is the number of trailing dimensions that form a row; their sizes must be numbers. Parameters are `<name>.scale` [k], 1, and
    `<name>.bias` [k], 0, one for each position in a row; `scale` and `bias` accept `ParameterOptions`, or False to omit the parameter (Ba,
    Kiros and Hinton, 2016). Raises ShapeError.

        y = ol.layer.layer_norm(vectors, bias=False)
    """
    return _by_row("layer_norm", input, axes, epsilon, scale, bias, name)


def rms_norm(input: Var, *, axes: int = 1, epsilon: float = 1e-5, scale: bool | Given = True, name: str | None = None) -> Var:
    """Divide each row by its root mean square, then scale it: float[*b k] -> float[*b k].

    `axes` is the number of trailing dimensions that form a row. The parameter is `<name>.scale` [k], 1; `scale` accepts `ParameterOptions`,
    or False to omit it (Zhang and Sennrich, 2019). Raises ShapeError.

        y = ol.layer.rms_norm(vectors, epsilon=1e-6)
    """
    return _by_row("rms_norm", input, axes, epsilon, scale, False, name)


def _by_row(kind: str, input: Var, axes: int, epsilon: float, scale: bool | Given, bias: bool | Given, name: str | None) -> Var:
    input = require_type(input, f"{kind}: input")
    require_count(f"{kind}: axes", axes)
    sizes = tuple(require_number(input.shape, axis, kind, input) for axis in range(-axes, 0))
    program = input.block.program
    name = layer_name(program, name, kind)
    with undone_on_error(program):
        scale_, bias_ = scale_and_shift(input, name, sizes, scale, bias)
        result = output_name(program, name)
        if axes == 1:
            y = _ROW_NORMS[kind](input, scale_, bias_, epsilon, result)
            y.block.rename(y, result)
            return y
        shape, k = known_shape(input, kind), math.prod(sizes)
        rows, scale_, bias_ = (
            None if var is None else reshape(var, shape=front)
            for var, front in ((input, (*shape[:-axes], k)), (scale_, (k,)), (bias_, (k,)))
        )
        return reshape(_ROW_NORMS[kind](rows, scale_, bias_, epsilon, None), shape=shape, name=result)


_ROW_NORMS = {
    "layer_norm": lambda x, scale, bias, epsilon, name: normalization.layer_norm(x, scale, bias, epsilon=epsilon, name=name),
    "rms_norm": lambda x, scale, bias, epsilon, name: rms_normalization.rms_norm(x, scale, epsilon=epsilon, name=name),
}


def group_norm(
    input: Var, groups: int, *, epsilon: float = 1e-5, scale: bool | Given = True, bias: bool | Given = True, name: str | None = None
) -> Var:
    """Normalize each group of channels of each row to mean 0 and variance 1, then scale and shift: float[n c ...s] -> float[n c ...s].

    Parameters are `<name>.scale` [c], 1, and `<name>.bias` [c], 0; `scale` and `bias` accept `ParameterOptions`, or False to omit the
    parameter (Wu and He, 2018). Raises ShapeError if `groups` does not divide the channels.

        y = ol.layer.group_norm(image, 2)
    """
    return _by_group("group_norm", input, groups, epsilon, scale, bias, name)


def instance_norm(
    input: Var,
    *,
    epsilon: float = 1e-5,
    scale: bool | Given = False,
    bias: bool | Given = False,
    running: bool = False,
    momentum: float = 0.1,
    name: str | None = None,
) -> Var:
    """Normalize each channel of each row to mean 0 and variance 1: float[n c ...s] -> float[n c ...s] (Ulyanov et al., 2016).

    `scale` and `bias` add the parameters `<name>.scale` [c], 1, and `<name>.bias` [c], 0. With `running`, training updates the running
    statistics `<name>.mean` and `<name>.variance` [c] with the mean of those of the rows, and other runs use them for all rows; this has
    the rules and errors of `batch_norm`. Raises ShapeError.

        y = ol.layer.instance_norm(image)
    """
    if not running:
        return _by_group("instance_norm", input, None, epsilon, scale, bias, name)
    return running_instance_norm(input, momentum, epsilon, scale, bias, name)


def _by_group(kind: str, input: Var, groups: int | None, epsilon: float, scale: bool | Given, bias: bool | Given, name: str | None) -> Var:
    input = require_type(input, f"{kind}: input")
    channels = require_number(input.shape, 1, kind, input)
    groups = channels if groups is None else require_count(f"{kind}: groups", groups)
    program = input.block.program
    name = layer_name(program, name, kind)
    with undone_on_error(program):
        scale_, bias_ = scale_and_shift(input, name, (channels,), scale, bias)
        result = output_name(program, name)
        y = group_normalization.group_norm(input, scale_, bias_, groups=groups, epsilon=epsilon, name=result)
    y.block.rename(y, result)
    return y
