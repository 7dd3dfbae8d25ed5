"""The matrix product of operands of any ranks, by NumPy's rules."""

from oarlock.errors import ShapeError
from oarlock.ir.location import here
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.var import Var
from oarlock.op.composed.shape import broadcast_together, known_shape, squeeze, unsqueeze
from oarlock.op.matrix import linear, matmul
from oarlock.registry.creator import require_type

__all__ = ["matrix_product"]


def matrix_product(x: Var, y: Var) -> Var:
    """The matrix product ``x @ y`` by NumPy's rules, computed by `linear` or `matmul`.

    Leading axes are broadcast. An operand with one axis is a row on the left and a column on the right, and that axis is not in the result.
    A matrix on the right is shared by all rows on the left. Raises ShapeError, also for an operand without axes.
    """
    x, y = require_type(x, "matrix_product: x"), require_type(y, "matrix_product: y")
    of_y = known_shape(y, "matrix_product")
    if len(of_y) == 2 and x.shape != ():
        return linear(x, y)
    of_x = known_shape(x, "matrix_product")
    if not of_x or not of_y:
        raise ShapeError("matrix_product: a number is not a matrix", location=here(), given=[x.describe(), y.describe()])
    with undone_on_error(x.block.program):
        if len(of_y) == 1:
            return squeeze(linear(x, unsqueeze(y, 1)), -1)
        if len(of_x) == 1:
            return squeeze(matmul(*broadcast_together(unsqueeze(x, 0), y, but=2)), -2)
        return matmul(*broadcast_together(x, y, but=2))
