"""Parameters: declared in the main block, wherever the layer stands."""

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
from oarlock.layer.current_place import current_place
from oarlock.layer.held_array import HeldArray
from oarlock.layer.initializer import Rule, constant, xavier
from oarlock.layer.parameter_options import Given, ParameterOptions, as_options
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
    """The name of a layer: as the user says, or `fc_0`, `fc_1` in the order of the program."""
    return program.unique(kind) if given is None else require_user_name(given)


def output_name(program: Program, name: str) -> str:
    """The name of a layer's result: `fc_0.out`; numbered where layers share a name."""
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
    """A parameter by itself, for a layer or a cell of one's own: T[*shape], Xavier-uniform unless `initializer` says otherwise.

    `options` are those that layers take, and come before the rest. It is called `<name>`, or parameter_0, parameter_1; what is called alike
    is one parameter. It is declared in the main block, even where it is asked for in a loop. Raises ArgumentError for a size that is no
    number, DTypeError for a dtype of integers or bools, ShapeError for a parameter of that name that has another shape.

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
    """Declare a parameter of `shape`, which starts by `rule` and is called `name` unless the options that were `given` say otherwise.

    Workers divide it along the axis `shard`, if there is one. Layers of one name share it; raises ShapeError where they want another shape,
    ArgumentError where they divide it otherwise or want it at another place, where there is no such axis, and for what are no options.
    """
    main, options = block.program.main, as_options(given, name)
    name = options.name or name
    sharding = _sharding(name, shape, shard if options.shard is None else options.shard)
    found = main.find_var(name)
    if found is not None:
        if found.shape != shape or found.dtype is not dtype or not found.parameter:
            raise ShapeError(
                f'"{name}" is wanted as {dtype}{list(shape)}, yet is declared otherwise',
                location=here(),
                given=[found.describe()],
                hint="layers of one name share their parameters; give this layer another name, or the same sizes",
            )
        if sharding not in (None, found.sharding):
            raise ArgumentError(
                f'"{name}" is wanted in shares along axis {sharding.axis}, yet is declared otherwise',
                location=here(),
                given=[found.describe()],
                hint="say `shard` where the parameter is first declared",
            )
        if options.place not in (None, found.place):
            raise ArgumentError(
                f'"{name}" is wanted at place {options.place}, yet is declared at place {found.place}',
                location=here(),
                given=[found.describe()],
                hint="say `place` where the parameter is first declared",
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
        raise ArgumentError(f'"{name}" is {list(shape)}, so workers cannot divide it along axis {axis}', location=here())
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
    """Declare a parameter that a layer may do without: none where False was `given`; it starts as `value`, or by a rule.

    Raises as `new_parameter` does.
    """
    if given is False:
        return None
    return new_parameter(block, name, shape, dtype, rule or constant(value), None if given is True else given, shard=shard)


def first_value(rule: Rule, shape: tuple[int, ...], dtype: DType) -> Initializer:
    """The initializer that `rule` gives a parameter of this shape and dtype. Raises ArgumentError for what is no rule, DTypeError."""
    name = getattr(rule, "__name__", "")
    uncalled = name in rules.__all__ and getattr(rules, name) is rule
    made = None
    if callable(rule) and not uncalled:
        made = rule(shape, dtype) if isinstance(rule, HeldArray) else rule(shape)
    if not isinstance(made, Initializer):
        raise ArgumentError(
            f"an initializer is a rule from a shape to a first value, not {rule!r:.60}",
            location=here(),
            hint=f"ol.initializer.{name if uncalled else 'normal'}(...)",
        )
    if dtype.is_complex and made.type not in OF_COMPLEX:
        raise DTypeError(
            f"{made.type} gives floats, and the parameter is {dtype}",
            location=here(),
            contract=f"what starts as complex numbers: {', '.join(OF_COMPLEX)}",
        )
    return made


def new_state(main: Block, name: str, shape: tuple[int, ...], dtype: DType, rule: Rule) -> Var:
    """Declare what a layer keeps from step to step, yet nobody trains."""
    first = first_value(rule, shape, dtype)
    return main.new_var(name, dtype, shape, persistable=True, stop_gradient=True, initializer=first, place=current_place())


def require_number(shape: Shape | None, axis: int, what: str, var: Var) -> int:
    """The size of `var` along `axis`, which a parameter's shape needs as a number. Raises ShapeError."""
    if shape is None or not -len(shape) <= axis < len(shape):
        raise ShapeError(f"{what}: {var.name} has too few dimensions", location=here(), given=[var.describe()])
    size = shape[axis]
    if not isinstance(size, int):
        raise ShapeError(
            f"{what}: the size of {var.name} along axis {axis} is {size}, where a parameter needs a number",
            location=here(),
            given=[var.describe()],
            hint="declare the size where the input is declared",
        )
    return size
