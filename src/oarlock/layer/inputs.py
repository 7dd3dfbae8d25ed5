"""The inputs of a program, which are fed."""

from collections.abc import Iterable, Sequence

from oarlock.errors import ArgumentError, ProgramError
from oarlock.ir.block_stack import current_block
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.names import require_user_name
from oarlock.ir.python_number import as_python
from oarlock.ir.size import Size, add, is_symbol, names_in
from oarlock.ir.var import Var
from oarlock.layer.held_array import hold
from oarlock.layer.parameter import layer_name
from oarlock.runtime.ragged import Ragged
from oarlock.runtime.value import describe_value, find_dense_form, read_as, to_tensor
from oarlock.tensor.dtype import from_torch

__all__ = ["data", "variable"]


def data(
    name: str,
    shape: Sequence[Size] | None = None,
    dtype: DType | str | None = None,
    *,
    batch: str | None = "n",
    value: object = None,
    ragged: int = 0,
) -> Var:
    """Declare an input: float32[n, *shape] unless told otherwise.

    `batch` is the symbol of the dimension put in front; None puts none. Inputs that share a symbol have one
    size for it in each run. With `value`, an array of rows, the input carries its own value, is fed that where
    nothing else is, and has its shape and dtype; Python's numbers take `dtype` where that is said.
    With `ragged=1`, its n rows are sequences of any lengths: the input is `name`, float32[name.t, *shape], the elements of all
    rows, and a second input `name.splits`, int64[n+1], says where they are cut. `ragged=2` makes rows of rows: `name.splits.0`
    cuts name.s1 rows out of n, `name.splits.1` the elements out of those. A further input with `batch="name.t"` is cut alike.
    Raises ArgumentError or ProgramError.
    """
    require_user_name(name)
    main = current_block().program.main
    if current_block() is not main:
        raise ProgramError(f'"{name}": inputs are declared in the main block, not in {current_block().path}', location=here())
    initializer, cuts = None, ()
    if isinstance(value, Ragged):
        ragged, cuts, value = value.levels, value.splits, value.values
    levels = _require_levels(name, ragged, batch)
    if value is not None:
        tensor = to_tensor(value) if dtype is None else read_as(value, DType.of(dtype))
        if (form := find_dense_form(tensor)) is not None:
            raise ArgumentError(f'"{name}": {describe_value(tensor)} is no value that a file holds', location=here(), hint=form)
        inner = tensor.shape[1:] if batch is not None else tensor.shape
        if batch is not None and not tensor.ndim:
            raise ArgumentError(f'"{name}": one number is no minibatch', location=here(), hint="batch=None")
        if levels and not cuts:
            raise ArgumentError(
                f'"{name}": an array does not say where its rows end', location=here(), hint="value=ol.Ragged.from_lists(rows)"
            )
        initializer = hold(tensor)
        dtype = from_torch(tensor.dtype) or dtype
        shape = tuple(inner)
    if shape is None:
        raise ArgumentError(
            f'"{name}" needs a shape, or a value to take it from', location=here(), hint=f'ol.layer.data("{name}", shape=[784])'
        )
    if isinstance(shape, str) or not isinstance(shape, Iterable):
        raise ArgumentError(f'"{name}": a shape is a list of sizes, not {shape!r:.60}', location=here(), hint="shape=[784]")
    shape = tuple(map(as_python, shape))  # type: ignore[assignment, arg-type]
    assert shape is not None
    for size in (*shape, *([] if batch is None else [batch])):
        if not (isinstance(size, int) and not isinstance(size, bool) and size >= 0) and not (isinstance(size, str) and is_symbol(size)):
            raise ArgumentError(
                f'"{name}": {size!r} is not a size', location=here(), contract="a size is a number from 0, or a symbol such as 't'"
            )
    taken = [splits for splits, _, _ in levels if splits in main.vars]
    if taken:
        raise ProgramError(f'"{name}": its row splits would be called "{taken[0]}", which is declared already', location=here())
    rows = levels[-1][2] if levels else batch
    var = main.new_var(
        name,
        DType.of(dtype or DType.FLOAT32),
        tuple(shape) if rows is None else (rows, *shape),
        stop_gradient=True,
        initializer=initializer,
    )
    main.inputs.append(var)
    for number, (splits, size, inside) in enumerate(levels):
        start = hold(to_tensor(cuts[number])) if cuts else None
        main.inputs.append(main.new_var(splits, DType.INT64, (size,), stop_gradient=True, initializer=start, row_splits_of=inside))
    return var


def _require_levels(name: str, ragged: object, batch: str | None) -> list[tuple[str, Size, str]]:
    """The row splits of a ragged input, outermost first: the name, the size, and the symbol that they cut. Raises ArgumentError."""
    if not isinstance(ragged, int) or not 0 <= ragged <= 2:
        raise ArgumentError(f'"{name}": ragged is the number of levels, 0, 1 or 2, not {ragged!r:.60}', location=here())
    if ragged and batch is None:
        raise ArgumentError(f'"{name}": a ragged input has rows, so it has a batch dimension', location=here())
    if ragged and not (is_symbol(f"{name}.s1+1") and names_in(f"{name}.s1+1") == {f"{name}.s1"}):
        raise ArgumentError(
            f'"{name}": the sizes of a ragged input are called after it, so its name is one of letters, digits, _ and ., a letter first',
            location=here(),
        )
    if ragged < 2:
        return [(f"{name}.splits", add(batch or 0, 1), f"{name}.t")][:ragged]
    return [(f"{name}.splits.0", add(batch or 0, 1), f"{name}.s1"), (f"{name}.splits.1", f"{name}.s1+1", f"{name}.t")]


def variable(
    *, shape: Sequence[Size] | None = None, dtype: DType | str | None = None, name: str | None = None, value: object = None
) -> Var:
    """Declare an input of just this shape, with no batch dimension put in front: T[*shape]. Otherwise as `data`."""
    return data(layer_name(current_block().program, name, "variable"), shape, dtype, batch=None, value=value)
