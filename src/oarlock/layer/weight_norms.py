"""Normalization of weights: spectral norm, and weight norm with a trained length."""

from oarlock.errors import ProgramError, ShapeError
from oarlock.ir.location import here
from oarlock.ir.names import next_name
from oarlock.ir.operation import Role
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.shape_rules import require_axis
from oarlock.ir.size import Size
from oarlock.ir.var import Var
from oarlock.layer.initializer import constant, normal
from oarlock.layer.parameter import layer_name, new_parameter, new_state, require_number
from oarlock.layer.parameter_options import Given
from oarlock.op.composed.norms import vector_norm
from oarlock.op.composed.shape import known_shape, unsqueeze
from oarlock.op.elementwise import divide, multiply
from oarlock.op.manipulation import reshape, transpose
from oarlock.op.matrix import linear
from oarlock.op.reduction import reduce_sum
from oarlock.op.singular import power_iteration
from oarlock.registry.creator import block_for, require_type
from oarlock.registry.range_check import require_count

__all__ = ["spectral_norm", "weight_norm"]


def spectral_norm(w: Var, *, axis: int = 0, iterations: int = 1, epsilon: float = 1e-12, name: str | None = None) -> Var:
    """Divide a weight by its largest singular value, as a matrix with the rows along `axis`: float[...s] -> float[...s].

    The singular value is estimated by power iteration. Each training run performs `iterations` of them, starting from the vector of the
    previous run, `<name>.u`, which is state of the program; other runs use the vector without changing it. Singular vectors are treated as
    constants in the gradient (Miyato et al., 2018). Raises ProgramError inside a loop or a branch, because state can only be updated in the
    main block; ShapeError, ArgumentError.

        y = ol.op.linear(rows, ol.layer.spectral_norm(ol.layer.create_parameter([8, 4]), axis=1))
    """
    w = require_type(w, "spectral_norm: w")
    shape = known_shape(w, "spectral_norm")
    if len(shape) < 2:
        raise ShapeError(f'spectral_norm: "{w.name}" is not a matrix', location=here(), given=[w.describe()])
    at = require_axis(shape, axis)
    rows = require_number(shape, at, "spectral_norm", w)
    require_count("spectral_norm: iterations", iterations)
    program, main = w.block.program, block_for([w], "spectral_norm")
    if main is not program.main:
        raise ProgramError(
            f"spectral_norm: its vector cannot be updated in {main.path}", location=here(), given=[w.describe()],
            contract="a step writes persistable variables of the main block only, after every other op",
            hint="normalize the weight before the block",
        )  # fmt: skip
    name = layer_name(program, name, "spectral_norm")
    if main.find_var(f"{name}.u") is not None:
        raise ProgramError(
            f'spectral_norm: "{name}.u" is already declared, and it belongs to one weight', location=here(), hint="use another name"
        )
    with undone_on_error(program):
        state = new_state(main, f"{name}.u", (rows,), w.dtype, normal(0.0, 1.0))
        others = tuple(each for each in range(len(shape)) if each != at)
        matrix = reshape(w if at == 0 else transpose(w, axes=(at, *others)), shape=(rows, -1))
        u, v = power_iteration(matrix, state, iterations=iterations, epsilon=epsilon)
        sigma = reduce_sum(multiply(u, reshape(linear(matrix, unsqueeze(v, 1)), shape=(rows,))))
        y = divide(w, sigma)
    main.rename(u, next_name(state.name))
    main.commit(state, u, role=Role.FORWARD)
    return y


def weight_norm(v: Var, *, axis: int | None = 0, scale: Given | None = None, name: str | None = None) -> Var:
    """Reparametrize a weight as length times direction, ``g v / |v|``: float[...s] -> float[...s] (Salimans and Kingma, 2016).

    There is one length for each index along `axis`, or one for all if it is None: parameter `<name>.g` [k] or [], initialized to 1; `scale`
    accepts `ParameterOptions`. Raises ShapeError.

        y = ol.op.linear(rows, ol.layer.weight_norm(ol.layer.create_parameter([8, 4]), axis=1))
    """
    v = require_type(v, "weight_norm: v")
    shape = known_shape(v, "weight_norm")
    at = None if axis is None else require_axis(shape, axis)
    lengths = () if at is None else (require_number(shape, at, "weight_norm", v),)
    program = v.block.program
    name = layer_name(program, name, "weight_norm")
    with undone_on_error(program):
        g = new_parameter(v.block, f"{name}.g", lengths, v.dtype, constant(1.0), scale)
        others = tuple(each for each in range(len(shape)) if each != at)
        lengths_shape: tuple[Size, ...] = tuple(shape[each] if each == at else 1 for each in range(len(shape)))
        return multiply(v, divide(reshape(g, shape=lengths_shape), vector_norm(v, axis=others, keepdim=True)))
