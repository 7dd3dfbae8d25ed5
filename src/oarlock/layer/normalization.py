"""Layers that normalize what they are given, then scale and shift it by parameters."""

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
    """Each row brought to mean 0 and variance 1 along its last axis, then scaled and shifted: float[*b k] -> float[*b k].

    A row has so many last `axes`, whose sizes are numbers. Parameters `<name>.scale` [k], ones, and `<name>.bias` [k], zeros, one for each
    place of a row; `scale` and `bias` take `ParameterOptions`, or False for none (Ba, Kiros and Hinton, 2016). Raises ShapeError.

        y = ol.layer.layer_norm(vectors, bias=False)
    """
    return _by_row("layer_norm", input, axes, epsilon, scale, bias, name)


def rms_norm(input: Var, *, axes: int = 1, epsilon: float = 1e-5, scale: bool | Given = True, name: str | None = None) -> Var:
    """Each row divided by the root of its mean square, then scaled: float[*b k] -> float[*b k].

    A row has so many last `axes`. Parameter `<name>.scale` [k], ones, unless `scale` says otherwise (Zhang and Sennrich, 2019). Raises
    ShapeError.

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
    """Each of `groups` of channels of each row brought to mean 0 and variance 1, then scaled and shifted: float[n c ...s] -> float[n c
    ...s].

    Parameters `<name>.scale` [c], ones, and `<name>.bias` [c], zeros; `scale` and `bias` take `ParameterOptions`, or False for none (Wu and
    He, 2018). Raises ShapeError where the groups do not divide the channels.

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
    """Each channel of each row brought to mean 0 and variance 1: float[n c ...s] -> float[n c ...s] (Ulyanov et al., 2016).

    With `scale` and `bias` it is scaled and shifted by `<name>.scale` [c], ones, and `<name>.bias` [c], zeros. With `running`, a run that
    is not training takes `<name>.mean` and `<name>.variance` [c] for all rows, which training moves towards the means of those of the
    rows, as in `batch_norm`, which raises the same. Raises ShapeError.

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
