"""`ol.cpp`: the bindings in which issue 3129 writes layers, call by call.

def fc(input, output_size):
    output = ol.cpp.variable(ol.cpp.default_scope())
    w = ol.cpp.variable(ol.cpp.default_scope(), label="parameter", shape=[input.shape[-1], output_size])
    b = ol.cpp.variable(ol.cpp.default_scope(), label="parameter", shape=[output_size])
    ol.cpp.operator("linear", read={"x": input, "w": w, "bias": b}, write={"out": output})
    return output

There is nothing below Python here; what these were to do is what blocks and scopes do.
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
    """The scope that is current: `ol.scope.current()`."""
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
    """Declare a variable in the current block, and make the one in `scope` that holds its value under the same name.

    Without a name it gets one of its own. `label="parameter"`, the only label, makes a parameter, T[*shape], which starts
    as `initializer` says: Xavier-uniform for a matrix, else zeros. Otherwise a variable with a shape is an input, T[*shape]
    with no batch dimension added; one without takes the type of the operator that writes it, which has the `dtype` that is given.
    Raises ArgumentError for another label or a parameter without a shape, else what `ol.layer.data` raises.
    """
    if label not in (None, "parameter"):
        raise ArgumentError(f'a label is "parameter" or nothing, not {label!r:.60}', location=here())
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
    """Append an op to the current block: a reader of the variables in `read`, the writer of those in `write`, by slot.

    A set of variables, as the issue has it, does not say which is which. Raises what calling the operator raises,
    ProgramError where a variable in `write` has a value already, ArgumentError where there are no slots.
    """
    for what, slots in (("read", read), ("write", write)):
        if not isinstance(slots, Mapping):
            raise ArgumentError(
                f"{type}: {what} is a dict of variables by slot, not a {slots.__class__.__name__}",
                location=here(),
                hint=f"`oarlock ops {type}` lists its slots",
            )
    return append_op(current_block(), type, read, write, attributes)


suggest_names(__name__)
