"""`ol.cpp`: the bindings of issue 3129, which writes layers call by call.

def fc(input, output_size):
    output = ol.cpp.variable(ol.cpp.default_scope())
    w = ol.cpp.variable(ol.cpp.default_scope(), label="parameter", shape=[input.shape[-1], output_size])
    b = ol.cpp.variable(ol.cpp.default_scope(), label="parameter", shape=[output_size])
    ol.cpp.operator("linear", read={"x": input, "w": w, "bias": b}, write={"out": output})
    return output

There is no C++ below; blocks and scopes do the work of these bindings.
"""

from collections.abc import Mapping, Sequence

from oarlock.errors import ArgumentError
from oarlock.ir.block import Argument
from oarlock.ir.block_stack import current_block
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.operation import Op
from oarlock.ir.size import Size
from oarlock.ir.var import Var
from oarlock.layer.initializer import Rule, constant, xavier
from oarlock.layer.inputs import data
from oarlock.layer.parameter import layer_name, new_parameter
from oarlock.registry import append_op
from oarlock.runtime import Scope
from oarlock.runtime.current_scope import current_scope
from oarlock.suggestions import suggest_names

__all__ = ["default_scope", "operator", "variable"]


def default_scope() -> Scope:
    """Return the current scope: `ol.scope.current()`."""
    return current_scope()


def variable(
    scope: Scope,
    name: str | None = None,
    label: str | None = None,
    *,
    shape: Sequence[Size] | None = None,
    dtype: DType | str = "float32",
    initializer: Rule | None = None,
) -> Var:
    """Declare a variable in the current block, and a variable of the same name for its value in `scope`.

    `name` defaults to a unique name. `label="parameter"`, the only label, creates a parameter, T[*shape], initialized by `initializer`, by
    default Xavier-uniform for a matrix and zeros otherwise. Without a label, a variable with a shape is an input, T[*shape] without a batch
    dimension; a variable without a shape takes the type of the operator that writes it, which has the given `dtype`. Raises ArgumentError
    for another label or a parameter without a shape, and the errors of `ol.layer.data`.
    """
    if label not in (None, "parameter"):
        raise ArgumentError(f'label must be "parameter" or None, not {label!r:.60}', location=here())
    block = current_block()
    if label == "parameter":
        if shape is None or not all(isinstance(size, int) for size in shape):
            raise ArgumentError(
                "a parameter needs a shape of numbers", location=here(), hint='variable(scope, label="parameter", shape=[784, 10])'
            )
        sizes: tuple[int, ...] = tuple(shape)  # type: ignore[arg-type]
        rule = initializer or (xavier() if len(sizes) > 1 else constant(0.0))
        var = new_parameter(block, layer_name(block.program, name, "parameter"), sizes, DType.of(dtype), rule)
    elif shape is not None:
        var = data(layer_name(block.program, name, "variable"), shape, dtype, batch=None)
    else:
        var = block.new_var(layer_name(block.program, name, "variable"), DType.of(dtype), None)
    scope.var(var.name)
    return var


def operator(type: str, read: Mapping[str, Argument], write: Mapping[str, Argument], **attributes: object) -> Op:
    """Append an op to the current block that reads the variables in `read` and writes those in `write`, by slot.

    The issue passes sets of variables, which do not identify the slots. Raises the errors of calling the operator, ProgramError if a
    variable in `write` already has a value, ArgumentError without slots.
    """
    for what, slots in (("read", read), ("write", write)):
        if not isinstance(slots, Mapping):
            raise ArgumentError(
                f"{type}: {what} must be a dict of variables by slot, not a {slots.__class__.__name__}",
                location=here(),
                hint=f"list its slots: oarlock ops {type}",
            )
    return append_op(current_block(), type, read, write, attributes)


suggest_names(__name__)
