"""Rows looked up by number in a table of parameters."""

from collections.abc import Sequence

from oarlock.errors import ArgumentError, DTypeError
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.names import require_user_name
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.var import Var
from oarlock.layer.initializer import Rule, normal
from oarlock.layer.parameter import layer_name, new_parameter, output_name, require_count
from oarlock.op.indexing import gather
from oarlock.registry.creator import require_type

__all__ = ["embedding"]


def embedding(
    ids: Var,
    size: tuple[int, int],
    *,
    dtype: DType | str = DType.FLOAT32,
    initializer: Rule | None = None,
    params: Sequence[str] | None = None,
    name: str | None = None,
) -> Var:
    """A row of a trained table for each id: int64[*b] -> float[*b d], where `size` is (v, d), how many rows and how long.

    Parameter `<name>.w` [v, d] of `dtype`, normal of variance 1 unless `initializer` says otherwise; or `params` says
    what it is called. Layers that call it alike share it. An id that is not one of 0 to v - 1 makes the run raise KernelError.
    Raises ArgumentError where `size` is not two numbers, or `params` not one name; DTypeError for ids that are not int64
    and for a dtype that is no float; ShapeError for a shared parameter of another shape.
    """
    ids = require_type(ids, "embedding: ids")
    if ids.dtype is not DType.INT64:
        raise DTypeError(
            f"embedding: ids are int64, not {ids.dtype}",
            location=here(),
            given=[ids.describe()],
            hint='ol.op.cast(x, dtype="int64") makes them so',
        )
    if not isinstance(size, tuple | list) or len(size) != 2:
        raise ArgumentError(
            f"embedding: size is two numbers, rows and their length, not {size!r:.60}", location=here(), hint="size=(10_000, 64)"
        )
    shape = (require_count(size[0], "embedding: the number of rows"), require_count(size[1], "embedding: the length of a row"))
    kind = DType.of(dtype)
    if not kind.is_floating:
        raise DTypeError(f"embedding: dtype is a float, not {kind}", location=here())
    program = ids.block.program
    name = layer_name(program, name, "embedding")
    names = [f"{name}.w"] if params is None else [require_user_name(item) for item in params]
    if len(names) != 1:
        raise ArgumentError(f"embedding: params names 1 parameter, not {len(names)}", location=here(), hint='params=["words"]')
    with undone_on_error(program):
        w = new_parameter(ids.block, names[0], shape, kind, initializer or normal())
        return gather(w, ids, name=output_name(program, name))
