"""Complex numbers as pairs: a last axis of 2 holds real and imaginary parts. Decision 21 says why."""

from oarlock.errors import ShapeError
from oarlock.ir.location import here
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.size import Shape
from oarlock.ir.var import Var
from oarlock.op.choice import where
from oarlock.op.comparison import equal
from oarlock.op.composed.norms import vector_norm
from oarlock.op.composed.shape import broadcast_together, known_shape, squeeze
from oarlock.op.elementwise import add, multiply, neg, subtract
from oarlock.op.logical import logical_and
from oarlock.op.manipulation import slice_, stack
from oarlock.op.trigonometry import atan2, cos, sin
from oarlock.registry.creator import require_type

__all__ = ["complex_pairs", "complex_product", "conjugate", "imaginary_part", "magnitude", "phase", "polar", "real_part", "require_pairs"]


def require_pairs(x: Var, what: str) -> Shape:
    """The shape of complex numbers, in front of their pairs. Raises ShapeError."""
    shape = known_shape(require_type(x, what), what)
    if not shape or shape[-1] != 2 or not x.dtype.is_floating:
        raise ShapeError(
            f'{what}: "{x.name}" holds no complex numbers', location=here(), contract="float[...s 2], real and imaginary parts",
            given=[x.describe()], hint="ol.op.complex_pairs(real, imaginary)",
        )  # fmt: skip
    return shape[:-1]


def complex_pairs(real: Var, imaginary: Var | None = None) -> Var:
    """Complex numbers of real and imaginary parts, which broadcast; of zeros where there are none: float[...s] -> float[...s 2]."""
    with undone_on_error(require_type(real, "complex_pairs: real").block.program):
        parts = (real, multiply(real, 0.0)) if imaginary is None else broadcast_together(real, imaginary)
        return stack(parts, axis=len(known_shape(parts[0], "complex_pairs")))


def _part(x: Var, number: int) -> Var:
    return squeeze(slice_(x, axis=-1, start=number, stop=number + 1), -1)


def real_part(x: Var) -> Var:
    """The real parts of complex numbers: float[...s 2] -> float[...s]. Raises ShapeError."""
    require_pairs(x, "real_part")
    with undone_on_error(x.block.program):
        return _part(x, 0)


def imaginary_part(x: Var) -> Var:
    """The imaginary parts of complex numbers: float[...s 2] -> float[...s]. Raises ShapeError."""
    require_pairs(x, "imaginary_part")
    with undone_on_error(x.block.program):
        return _part(x, 1)


def conjugate(x: Var) -> Var:
    """Complex numbers with the other sign of their imaginary parts: float[...s 2] -> float[...s 2]. Raises ShapeError."""
    require_pairs(x, "conjugate")
    with undone_on_error(x.block.program):
        return complex_pairs(_part(x, 0), neg(_part(x, 1)))


def magnitude(x: Var) -> Var:
    """The sizes of complex numbers: float[...s 2] -> float[...s]. The gradient at 0 is 0. Raises ShapeError."""
    require_pairs(x, "magnitude")
    return vector_norm(x, axis=-1)


def phase(x: Var) -> Var:
    """The angles of complex numbers, from -pi to pi: float[...s 2] -> float[...s]. That of 0, and its gradient, is 0. Raises ShapeError."""
    require_pairs(x, "phase")
    with undone_on_error(x.block.program):
        real, imaginary = _part(x, 0), _part(x, 1)
        nothing = logical_and(equal(real, 0.0), equal(imaginary, 0.0))
        return atan2(where(nothing, 0.0, imaginary), where(nothing, 1.0, real))


def polar(size: Var, angle: Var) -> Var:
    """Complex numbers of sizes and angles, which broadcast: float[...s] -> float[...s 2]."""
    with undone_on_error(require_type(size, "polar: size").block.program):
        return complex_pairs(multiply(size, cos(angle)), multiply(size, sin(angle)))


def complex_product(x: Var, y: Var) -> Var:
    """Products of complex numbers, which broadcast: float[...s 2], float[...t 2] -> float[...u 2]. Raises ShapeError."""
    require_pairs(x, "complex_product: x")
    require_pairs(y, "complex_product: y")
    with undone_on_error(x.block.program):
        (a, b), (c, d) = ((_part(each, 0), _part(each, 1)) for each in (x, y))
        return complex_pairs(subtract(multiply(a, c), multiply(b, d)), add(multiply(a, d), multiply(b, c)))
