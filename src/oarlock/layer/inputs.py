"""Inputs of a program."""

from collections.abc import Iterable, Sequence

from oarlock.errors import ArgumentError, ProgramError
from oarlock.ir.block_stack import current_block
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.names import require_user_name
from oarlock.ir.python_number import as_python
from oarlock.ir.size import Size, add, is_symbol, names_in
from oarlock.ir.var import Var
from oarlock.layer.initializer import hold
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
    """Declare an input, by default float32[n, *shape].

    `batch` is the symbol of the leading dimension; None omits it. Inputs with the same symbol have the same size in a run. With `value`, an
    array of rows, the input has a default value, used in runs that feed nothing else, and takes its shape and dtype from it; `dtype`
    applies to values given as Python numbers.

    With `ragged=1`, each of the n rows is a sequence of any length. The input `name`, float32[name.t, *shape], holds the elements of all
    sequences, and a second input `name.splits`, int64[n+1], holds their offsets. With `ragged=2`, each row is a sequence of sequences:
    `name.splits.0` splits name.s1 sequences into n rows, and `name.splits.1` splits the elements into those sequences. Further inputs with
    `batch="name.t"` use the same row splits. Raises ArgumentError or ProgramError.
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
            raise ArgumentError(f'"{name}": {describe_value(tensor)} cannot be stored in a file', location=here(), hint=form)
        inner = tensor.shape[1:] if batch is not None else tensor.shape
        if batch is not None and not tensor.ndim:
            raise ArgumentError(f'"{name}": one number is not a minibatch', location=here(), hint="batch=None")
        if levels and not cuts:
            raise ArgumentError(
                f'"{name}": the row splits of an array are unknown', location=here(), hint="value=ol.Ragged.from_lists(rows)"
            )
        initializer = hold(tensor)
        dtype = from_torch(tensor.dtype) or dtype
        shape = tuple(inner)
    if shape is None:
        raise ArgumentError(f'"{name}" needs a shape or a value', location=here(), hint=f'ol.layer.data("{name}", shape=[784])')
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
        raise ProgramError(f'"{name}": its row splits need the name "{taken[0]}", which is already declared', location=here())
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
    """Return the row splits of a ragged input, outermost first: name, size, and the symbol that they split. Raises ArgumentError."""
    if not isinstance(ragged, int) or not 0 <= ragged <= 2:
        raise ArgumentError(f'"{name}": ragged must be the number of levels, 0, 1 or 2, not {ragged!r:.60}', location=here())
    if ragged and batch is None:
        raise ArgumentError(f'"{name}": a ragged input needs a batch dimension', location=here())
    if ragged and not (is_symbol(f"{name}.s1+1") and names_in(f"{name}.s1+1") == {f"{name}.s1"}):
        raise ArgumentError(
            f'"{name}": the name of a ragged input must consist of letters, digits, _ and ., and start with a letter',
            location=here(),
        )
    if ragged < 2:
        return [(f"{name}.splits", add(batch or 0, 1), f"{name}.t")][:ragged]
    return [(f"{name}.splits.0", add(batch or 0, 1), f"{name}.s1"), (f"{name}.splits.1", f"{name}.s1+1", f"{name}.t")]


def variable(
    *, shape: Sequence[Size] | None = None, dtype: DType | str | None = None, name: str | None = None, value: object = None
) -> Var:
    """Declare an input of exactly this shape, without a batch dimension: T[*shape]. Takes the arguments of `data`."""
    return data(layer_name(current_block().program, name, "variable"), shape, dtype, batch=None, value=value)
