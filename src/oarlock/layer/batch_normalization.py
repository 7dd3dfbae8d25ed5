"""Batch normalization, and instance normalization with running statistics."""

from oarlock.errors import ProgramError
from oarlock.ir.block import Block
from oarlock.ir.location import here
from oarlock.ir.names import next_name
from oarlock.ir.operation import Role
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.size import multiply as times
from oarlock.ir.var import Var
from oarlock.layer.initializer import constant
from oarlock.layer.parameter import layer_name, new_bias, new_state, output_name, require_number
from oarlock.layer.parameter_options import Given
from oarlock.op import batch_normalization, group_normalization
from oarlock.op.choice import maximum, where
from oarlock.op.comparison import greater
from oarlock.op.composed.named_activation import Activation, activate, require_activation
from oarlock.op.composed.shape import known_shape
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import add, divide, multiply, subtract
from oarlock.op.manipulation import reshape, transpose
from oarlock.op.reduction import mean
from oarlock.op.told_shape import broadcast_to, size
from oarlock.registry.creator import block_for, require_type

__all__ = ["batch_norm", "running_instance_norm", "scale_and_shift"]

Parameter = bool | Given


def batch_norm(
    input: Var,
    *,
    momentum: float | None = 0.1,
    epsilon: float = 1e-5,
    act: Activation | None = None,
    scale: Parameter = True,
    bias: Parameter = True,
    running: bool = True,
    name: str | None = None,
) -> Var:
    """Normalize each channel to mean 0 and variance 1, then scale and shift it: float[n c ...s] -> float[n c ...s].

    Training uses the mean and variance of the batch and then updates the running statistics `<name>.mean` and `<name>.variance` [c]: ``(1 -
    momentum) running + momentum batch``. Other runs use the running statistics, which start as 0 and 1, and do not change them. With
    ``momentum=None`` they are the average over all batches so far, counted in `<name>.count`. With ``running=False`` there are no running
    statistics, and every run uses those of its batch.

    Parameters are `<name>.scale` [c], initialized to 1, and `<name>.bias` [c], initialized to 0; `scale` and `bias` accept
    `ParameterOptions`, or False to omit the parameter (Ioffe and Szegedy, 2015). Raises ProgramError inside a loop or a branch, because
    running statistics can only be updated in the main block, and if another layer of the same `name` has running statistics.

        y = ol.layer.batch_norm(image, act="relu")
    """
    input = require_type(input, "batch_norm: input")
    channels = require_number(input.shape, 1, "batch_norm", input)
    program = input.block.program
    require_activation(act)
    if not running:
        with undone_on_error(program):
            name = layer_name(program, name, "batch_norm")
            scale_, bias_ = scale_and_shift(input, name, (channels,), scale, bias)
            result = output_name(program, name)
            y = _by_batch(input, scale_, bias_, epsilon)
            y.block.rename(y, result)
            return activate(y, act)
    main = _main_for("batch_norm", input)
    name = _name_for("batch_norm", main, name)
    with undone_on_error(program):
        scale_, bias_ = scale_and_shift(input, name, (channels,), scale, bias)
        kept = _running(main, name, channels, input)
        count = new_state(main, f"{name}.count", (), input.dtype, constant(0.0)) if momentum is None else None
        result = output_name(program, name)
        y = batch_normalization.batch_norm(
            input, *kept, scale_, bias_, momentum=1.0 if momentum is None else momentum, epsilon=epsilon, name=result
        )
    main.rename(y, result)
    assert y.op is not None
    following = [y.op.outputs[slot][0] for slot in ("next_mean", "next_variance")]
    if count is not None:
        (trains,) = y.op.outputs["uses_batch_statistics"]
        counted = add(count, cast(trains, dtype=count.dtype))
        shared = maximum(counted, 1.0)
        following = [add(var, divide(subtract(each, var), shared)) for var, each in zip(kept, following, strict=True)]
        kept, following = [*kept, count], [*following, counted]
    _commit(main, kept, following)
    return activate(y, act)


def running_instance_norm(input: Var, momentum: float, epsilon: float, scale: Parameter, bias: Parameter, name: str | None) -> Var:
    """Apply `instance_norm` with running statistics, as batch norm in which each channel of each row is a channel."""
    input = require_type(input, "instance_norm: input")
    channels = require_number(input.shape, 1, "instance_norm", input)
    program = input.block.program
    main = _main_for("instance_norm", input)
    name = _name_for("instance_norm", main, name)
    n, _, *sizes = known_shape(input, "instance_norm")
    all_channels = times(n, channels)
    with undone_on_error(program):
        scale_, bias_ = scale_and_shift(input, name, (channels,), scale, bias)
        kept = _running(main, name, channels, input)
        result = output_name(program, name)
        each = [reshape(broadcast_to(var, [input], shape=(n, channels)), shape=(all_channels,)) for var in kept]
        rows = reshape(input, shape=(1, all_channels, *sizes))
        y = batch_normalization.batch_norm(rows, *each, None, None, momentum=momentum, epsilon=epsilon)
        assert y.op is not None
        means = [
            mean(reshape(y.op.outputs[slot][0], shape=(n, channels)), axis=0) for slot in ("next_mean", "next_variance")
        ]  # NaN for an empty batch
        following = [where(greater(size(input, axis=0), 0), each, var) for each, var in zip(means, kept, strict=True)]
        y = _scaled(reshape(y, shape=(n, channels, *sizes)), scale_, bias_)
    main.rename(y, result)
    _commit(main, kept, following)
    return y


def scale_and_shift(input: Var, name: str, shape: tuple[int, ...], scale: Parameter, bias: Parameter) -> tuple[Var | None, Var | None]:
    """Declare the scale and shift parameters of a normalization; each is None if it is switched off."""
    made = new_bias(input.block, f"{name}.scale", shape, input.dtype, scale, 1.0)
    return made, new_bias(input.block, f"{name}.bias", shape, input.dtype, bias)


def _by_batch(x: Var, scale: Var | None, bias: Var | None, epsilon: float) -> Var:
    """Normalize with the statistics of the batch alone: the values of a channel form one group of a row."""
    axes = (1, 0, *range(2, len(x.shape or ())))
    return _scaled(transpose(group_normalization.group_norm(transpose(x, axes=axes), groups=1, epsilon=epsilon), axes=axes), scale, bias)


def _scaled(y: Var, scale: Var | None, bias: Var | None) -> Var:
    front = (-1, *(1 for _ in (y.shape or ())[2:]))
    y = y if scale is None else multiply(y, reshape(scale, shape=front))
    return y if bias is None else add(y, reshape(bias, shape=front))


def _main_for(kind: str, input: Var) -> Block:
    """Return the main block. Raises ProgramError if the layer is inside another block."""
    block = block_for([input], kind)
    main = input.block.program.main
    if block is not main:
        raise ProgramError(
            f"{kind}: its running statistics cannot be updated in {block.path}",
            location=here(),
            contract="a step writes persistable variables of the main block only, after every other op",
            given=[input.describe()],
            hint="normalize before or after the block, or use ol.layer.layer_norm",
        )
    return main


def _name_for(kind: str, main: Block, name: str | None) -> str:
    """Return the name of the layer. Raises ProgramError if another layer has running statistics of that name."""
    name = layer_name(main.program, name, kind)
    if main.find_var(f"{name}.mean") is not None:
        raise ProgramError(
            f'{kind}: "{name}.mean" is already declared, and running statistics belong to one layer',
            location=here(),
            hint="use another name",
        )
    return name


def _running(main: Block, name: str, channels: int, input: Var) -> list[Var]:
    """Declare the running mean and variance."""
    starts = {"mean": constant(0.0), "variance": constant(1.0)}
    return [new_state(main, f"{name}.{what}", (channels,), input.dtype, rule) for what, rule in starts.items()]


def _commit(main: Block, kept: list[Var], following: list[Var]) -> None:
    for var, value in zip(kept, following, strict=True):
        main.rename(value, next_name(var.name))
        main.commit(var, value, role=Role.FORWARD)
