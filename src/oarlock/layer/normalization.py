"""Layers that normalize what they are given, then scale and shift it by parameters."""

from oarlock.errors import ProgramError
from oarlock.ir.location import here
from oarlock.ir.names import next_name
from oarlock.ir.operation import Role
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.var import Var
from oarlock.layer.initializer import Rule, constant
from oarlock.layer.parameter import layer_name, new_parameter, new_state, output_name, require_number
from oarlock.op import batch_normalization, normalization
from oarlock.op.composed.named_activation import Activation, activate, require_activation
from oarlock.registry.creator import block_for, require_type

__all__ = ["batch_norm", "layer_norm"]


def layer_norm(input: Var, *, epsilon: float = 1e-5, name: str | None = None) -> Var:
    """Each row brought to mean 0 and variance 1 along the last axis, then scaled and shifted: float[*b k] -> float[*b k].

    Parameters `<name>.scale` [k], ones, and `<name>.bias` [k], zeros; `ol.op.layer_norm` takes none (Ba, Kiros and Hinton, 2016).
    """
    input = require_type(input, "layer_norm: input")
    k = require_number(input.shape, -1, "layer_norm", input)
    program = input.block.program
    name = layer_name(program, name, "layer_norm")
    with undone_on_error(program):
        scale, bias = _scale_and_shift(input, name, k)
        result = output_name(program, name)
        y = normalization.layer_norm(input, scale, bias, epsilon=epsilon, name=result)
    y.block.rename(y, result)
    return y


def batch_norm(input: Var, *, momentum: float = 0.1, epsilon: float = 1e-5, act: Activation | None = None, name: str | None = None) -> Var:
    """Each channel brought to mean 0 and variance 1, then scaled and shifted: float[n c ...s] -> float[n c ...s].

    A run that is training takes mean and variance of its batch, and at its end moves `<name>.mean` and `<name>.variance` [c] towards
    them, ``(1 - momentum) running + momentum batch``; any other run takes these running ones, which begin as 0 and 1 and stay.
    Parameters `<name>.scale` [c], ones, and `<name>.bias` [c], zeros (Ioffe and Szegedy, 2015).
    Raises ProgramError inside a loop or a branch, from where statistics cannot be kept, and where `name` is that of another such layer.
    """
    input = require_type(input, "batch_norm: input")
    channels = require_number(input.shape, 1, "batch_norm", input)
    program = input.block.program
    main = block_for([input], "batch_norm")
    if main is not program.main:
        raise ProgramError(
            f"batch_norm: its running statistics cannot be kept from {main.path}",
            location=here(),
            contract="a step writes persistable variables of the main block only, after every other op",
            given=[input.describe()],
            hint="normalize before the block or after it, or take ol.layer.layer_norm",
        )
    name = layer_name(program, name, "batch_norm")
    if main.find_var(f"{name}.mean") is not None:
        raise ProgramError(
            f'batch_norm: "{name}.mean" is declared already, and running statistics follow one layer', location=here(), hint="another name"
        )
    require_activation(act)
    with undone_on_error(program):
        scale, bias = _scale_and_shift(input, name, channels)
        running = [new_state(main, f"{name}.{what}", (channels,), input.dtype, rule) for what, rule in _STATISTICS.items()]
        result = output_name(program, name)
        y = batch_normalization.batch_norm(input, *running, scale, bias, momentum=momentum, epsilon=epsilon, name=result)
    main.rename(y, result)
    assert y.op is not None
    for var, slot in zip(running, ("next_mean", "next_variance"), strict=True):
        (value,) = y.op.outputs[slot]
        main.rename(value, next_name(var.name))
        main.commit(var, value, role=Role.FORWARD)
    return activate(y, act)


_STATISTICS: dict[str, Rule] = {"mean": constant(0.0), "variance": constant(1.0)}


def _scale_and_shift(input: Var, name: str, count: int) -> tuple[Var, Var]:
    scale = new_parameter(input.block, f"{name}.scale", (count,), input.dtype, constant(1.0))
    return scale, new_parameter(input.block, f"{name}.bias", (count,), input.dtype, constant(0.0))
