"""Parameters of layers, always declared in the main block."""

from collections.abc import Sequence

from oarlock.errors import ArgumentError, DTypeError, ShapeError
from oarlock.ir.block import Block
from oarlock.ir.block_stack import current_block
from oarlock.ir.dtype import DType
from oarlock.ir.initializer import OF_COMPLEX
from oarlock.ir.location import here
from oarlock.ir.names import require_user_name
from oarlock.ir.program import Program
from oarlock.ir.sharding import Sharding
from oarlock.ir.size import Shape
from oarlock.ir.var import Initializer, Var
from oarlock.layer import initializer as rules
from oarlock.layer.initializer import HeldArray, Rule, constant, xavier
from oarlock.layer.parameter_options import Given, ParameterOptions, as_options, current_place
from oarlock.registry.range_check import require_count

__all__ = [
    "create_parameter",
    "first_value",
    "layer_name",
    "new_bias",
    "new_parameter",
    "new_state",
    "output_name",
    "require_number",
]


def layer_name(program: Program, given: str | None, kind: str) -> str:
    """Return the name of a layer: the user's, or `fc_0`, `fc_1` in program order."""
    return program.unique(kind) if given is None else require_user_name(given)


def output_name(program: Program, name: str) -> str:
    """Return the name of a layer's result: `fc_0.out`, numbered if layers share a name."""
    return f"{name}.out" if program.is_free(f"{name}.out") else program.unique(f"{name}.out")


def create_parameter(
    shape: Sequence[int],
    *,
    dtype: DType | str = DType.FLOAT32,
    initializer: Rule | None = None,
    trainable: bool = True,
    options: ParameterOptions | None = None,
    name: str | None = None,
) -> Var:
    """Create a parameter for a custom layer or cell: T[*shape], Xavier-uniform by default (see `initializer`).

    `options` accepts the `ParameterOptions` of layers and takes precedence over the other arguments. The name is `<name>`, or parameter_0,
    parameter_1; parameters of the same name are one parameter. It is declared in the main block, even if it is created inside a loop.
    Raises ArgumentError if a size is not a number, DTypeError for an integer or bool dtype, ShapeError if a parameter of that name has
    another shape.

        w = ol.layer.create_parameter([8, 3], name="w", initializer=ol.initializer.kaiming_uniform(mode="fan_out"))
        y = rows @ w
    """
    kind = DType.of(dtype)
    if not kind.is_inexact:
        raise DTypeError(f"create_parameter: dtype is a float or complex, not {kind}", location=here())
    sizes = tuple(require_count("create_parameter: a size", size) for size in shape)
    block = current_block()
    name = layer_name(block.program, name or (options.name if options else None), "parameter")
    return new_parameter(block, name, sizes, kind, initializer or xavier(), options, trainable=trainable)


def new_parameter(
    block: Block,
    name: str,
    shape: tuple[int, ...],
    dtype: DType,
    rule: Rule,
    given: Given | None = None,
    *,
    trainable: bool = True,
    shard: int | None = None,
) -> Var:
    """Declare a parameter of `shape`, initialized by `rule` and called `name`, unless the options in `given` override them.

    `shard` is the axis along which workers divide it. Layers that use the same name share it; raises ShapeError if they need different
    shapes, ArgumentError if they need another axis or place, if there is no such axis, and for invalid options.
    """
    main, options = block.program.main, as_options(given, name)
    name = options.name or name
    sharding = _sharding(name, shape, shard if options.shard is None else options.shard)
    found = main.find_var(name)
    if found is not None:
        if found.shape != shape or found.dtype is not dtype or not found.parameter:
            raise ShapeError(
                f'"{name}" is needed as {dtype}{list(shape)}, but is already declared differently',
                location=here(),
                given=[found.describe()],
                hint="layers of one name share their parameters: give this layer another name or the same sizes",
            )
        if sharding not in (None, found.sharding):
            raise ArgumentError(
                f'"{name}" is needed in shares along axis {sharding.axis}, but is already declared differently',
                location=here(),
                given=[found.describe()],
                hint="pass `shard` where the parameter is first declared",
            )
        if options.place not in (None, found.place):
            raise ArgumentError(
                f'"{name}" is needed at place {options.place}, but is already declared at place {found.place}',
                location=here(),
                given=[found.describe()],
                hint="pass `place` where the parameter is first declared",
            )
        return found
    return main.new_var(
        name,
        dtype,
        shape,
        persistable=True,
        parameter=True,
        trainable=trainable and options.trainable,
        initializer=first_value(options.initializer or rule, shape, dtype),
        update_settings=options.update_settings,
        sharding=sharding,
        place=current_place() if options.place is None else options.place,
    )


def _sharding(name: str, shape: tuple[int, ...], axis: int | None) -> Sharding | None:
    if axis is not None and axis >= len(shape):
        raise ArgumentError(f'"{name}" has shape {list(shape)}, so workers cannot divide it along axis {axis}', location=here())
    return None if axis is None else Sharding(axis)


def new_bias(
    block: Block,
    name: str,
    shape: tuple[int, ...],
    dtype: DType,
    given: Given | bool,
    value: float = 0.0,
    *,
    rule: Rule | None = None,
    shard: int | None = None,
) -> Var | None:
    """Declare an optional parameter, initialized to `value` or by a rule; return None if `given` is False.

    Raises as `new_parameter` does.
    """
    if given is False:
        return None
    return new_parameter(block, name, shape, dtype, rule or constant(value), None if given is True else given, shard=shard)


def first_value(rule: Rule, shape: tuple[int, ...], dtype: DType) -> Initializer:
    """Return the initializer that `rule` gives for this shape and dtype. Raises ArgumentError if it is not a rule, DTypeError."""
    name = getattr(rule, "__name__", "")
    uncalled = name in rules.__all__ and getattr(rules, name) is rule
    made = None
    if callable(rule) and not uncalled:
        made = rule(shape, dtype) if isinstance(rule, HeldArray) else rule(shape)
    if not isinstance(made, Initializer):
        raise ArgumentError(
            f"an initializer must be a rule, such as ol.initializer.zeros(), not {rule!r:.60}",
            location=here(),
            hint=f"ol.initializer.{name if uncalled else 'normal'}(...)",
        )
    if dtype.is_complex and made.type not in OF_COMPLEX:
        raise DTypeError(
            f"the initializer {made.type} yields floats, but the parameter is {dtype}",
            location=here(),
            contract=f"initializers of complex parameters: {', '.join(OF_COMPLEX)}",
        )
    return made


def new_state(main: Block, name: str, shape: tuple[int, ...], dtype: DType, rule: Rule) -> Var:
    """Declare state of a layer, which persists between steps and is not trained."""
    first = first_value(rule, shape, dtype)
    return main.new_var(name, dtype, shape, persistable=True, stop_gradient=True, initializer=first, place=current_place())


def require_number(shape: Shape | None, axis: int, what: str, var: Var) -> int:
    """Return the size of `var` along `axis`, which must be a number because a parameter's shape depends on it. Raises ShapeError."""
    if shape is None or not -len(shape) <= axis < len(shape):
        raise ShapeError(f"{what}: {var.name} has too few dimensions", location=here(), given=[var.describe()])
    size = shape[axis]
    if not isinstance(size, int):
        raise ShapeError(
            f"{what}: the size of {var.name} along axis {axis} is {size}, but a parameter needs a number",
            location=here(),
            given=[var.describe()],
            hint="give the size as a number where the input is declared",
        )
    return size
