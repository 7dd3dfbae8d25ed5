"""Calls of operators on variables: infer the result types, then append the op to the program."""

from collections.abc import Mapping, Sequence

from oarlock.errors import ArgumentError, DTypeError, OarlockError, ProgramError, ShapeError, UndefinedVarError
from oarlock.ir import block_stack
from oarlock.ir.block import Argument, Block
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.names import require_user_name
from oarlock.ir.operation import Op
from oarlock.ir.python_number import is_bool
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.var import Var, is_among
from oarlock.old_names import OLD_KEYWORDS, OLD_OPERATORS, renamed, renamed_keywords
from oarlock.registry.arguments import find_numbers, find_repeated, infer_number_dtypes, repeat, require_held
from oarlock.registry.call_signature import format_call, given_attributes, size_slot, spread_numbers
from oarlock.registry.catalogue import Catalogue, standard
from oarlock.registry.declaration import Operator
from oarlock.registry.outputs import define_outputs
from oarlock.registry.random_state import count_draws
from oarlock.registry.signature import Slot, TensorType

__all__ = ["append_constant", "append_op", "block_for", "create", "describe_value", "find_read_hint", "require_type", "seen"]


def create(operator: Operator, arguments: Sequence[object], keywords: Mapping[str, object], *, name: str | None = None):
    """Append an op and return the variables it defines: one, or a tuple of them.

    Intermediate outputs are not returned. Raises ShapeError, DTypeError, ArgumentError or ProgramError, with the caller's line and
    arguments, before the program is changed.
    """
    op = _append(operator, arguments, keywords, name=name, repeating=operator.signature.repeats)
    results = [
        list(op.outputs[slot.name]) if slot.variadic else op.outputs[slot.name][0]
        for slot in operator.signature.outputs
        if slot.name in op.outputs and slot.name not in operator.intermediate
    ]
    return results[0] if len(results) == 1 else tuple(results)


def append_op(
    block: Block,
    type: str,
    inputs: Mapping[str, Argument],
    outputs: Mapping[str, Argument] | None = None,
    attributes: Mapping[str, object] | None = None,
    name: str = "",
    *,
    catalogue: Catalogue = standard,
) -> Op:
    """Append an op to `block`, with arguments by slot, and return it. The explicit form of calling an operator.

    Variables are given as such or by name. Outputs that `block` does not declare are declared; one declared without a shape gets the
    inferred type; an omitted slot gets a generated name. `name` is the name of the op, possibly empty. Raises the same as `create`, and
    UnknownOperatorError and UndefinedVarError.
    """
    if catalogue.find(type) is None:
        type = renamed("operator", type, OLD_OPERATORS)
    operator = catalogue.get(type)
    given = {slot: block.resolve(argument) for slot, argument in inputs.items()}
    for slot in given:
        if operator.signature.input(slot) is None:
            raise _refuse(operator, f'it has no input slot "{slot}"')
    for slot in operator.signature.inputs:
        if not slot.variadic and len(given.get(slot.name, (None,))) != 1:
            raise _refuse(operator, f'input slot "{slot.name}" takes one variable, not {len(given[slot.name])}')
    for var in (var for vars in given.values() for var in vars):
        if var.shape is None and var.op is None and not var.persistable and not is_among(var, var.block.inputs):
            raise UndefinedVarError(
                f'{type}: it reads "{var.name}" before an op writes it',
                location=here(),
                given=[var.describe()],
                hint="declare inputs with their shape",
                op=type,
            )
    if name and not block.program.is_free(require_user_name(name)):
        raise ProgramError(f'the name "{name}" is already used in this program', location=here())
    single = {slot.name for slot in operator.signature.inputs if not slot.variadic}
    keywords = {slot: vars[0] if slot in single else list(vars) for slot, vars in given.items()}
    wanted = {slot: [item] if isinstance(item, Var | str) else list(item) for slot, item in (outputs or {}).items()}
    with block:
        return _append(operator, (), {**keywords, **(attributes or {})}, outputs=wanted, op_name=name)


def _append(
    operator: Operator,
    arguments: Sequence[object],
    keywords: Mapping[str, object],
    *,
    name: str | None = None,
    outputs: Mapping[str, Sequence[Var | str]] | None = None,
    op_name: str = "",
    repeating: bool = False,
) -> Op:
    keywords = renamed_keywords(f"keyword of {operator.type}", keywords, OLD_KEYWORDS.get(operator.type, {}))
    arguments, keywords = _by_name(operator, arguments, keywords)
    numbers = find_numbers(operator, keywords)
    like = next((item for item in keywords.values() if isinstance(item, Var)), None) if numbers else None
    dtypes = infer_number_dtypes(operator, numbers, keywords) if like is not None else {}
    if like is not None and dtypes:
        with undone_on_error(like.block.program):
            constants = {slot: append_constant(numbers[slot], *dtypes[slot], f"{operator.type}: ") for slot in dtypes}
            return _append(operator, arguments, {**keywords, **constants}, name=name, outputs=outputs, op_name=op_name, repeating=repeating)
    given = _bind_slots(operator, arguments, keywords)
    wanted = find_repeated(operator.signature, given) if repeating else {}
    if wanted:
        with undone_on_error(next(iter(wanted)).block.program), block_for([*wanted], operator.type):
            for slot, vars in repeat(given, wanted).items():
                keywords = {**keywords, slot: vars if operator.signature.input(slot).variadic else vars[0]}  # type: ignore[union-attr]
            return _append(operator, (), keywords, name=name, outputs=outputs, op_name=op_name)
    attributes = {
        key: seen(value) if isinstance(value, Var) else value for key, value in keywords.items() if operator.signature.input(key) is None
    }
    vars = [var for slot in given.values() for var in slot] + [value for value in attributes.values() if isinstance(value, Var)]
    block = block_for(vars, operator.type)
    try:
        attributes = spread_numbers(operator, attributes)
        converted = operator.convert_attributes(
            attributes if operator.effects != "random" else {**attributes, "random_id": _random_id(block, attributes)}
        )
        types = {slot: [TensorType(var.dtype, var.shape) for var in items] for slot, items in given.items()}
        inferred = operator.infer(types, converted, lambda: block.program.unique("size"))
    except (ShapeError, DTypeError, ArgumentError) as error:
        raise _explain(error, operator, given) from None
    defined = define_outputs(operator, inferred, block, name, outputs or {})
    op = block.append(operator.type, given, defined, converted, name=op_name)
    if operator.effects == "random":
        count_draws(block.program)
    return op


def _random_id(block: Block, attributes: Mapping[str, object]) -> object:
    """Return a number that is unique to this random op in the program."""
    return attributes.get("random_id", int(block.program.unique("random").rpartition("_")[2]))


def _by_name(
    operator: Operator, arguments: Sequence[object], keywords: Mapping[str, object]
) -> tuple[Sequence[object], Mapping[str, object]]:
    """Return the arguments as keywords: inputs, then attributes in order; consecutive variables at the end form the last slot.

    A last slot that only provides sizes is skipped if the argument at its position is not a variable.
    """
    slots, given = operator.signature.inputs, list(arguments)
    last = len(slots) - 1
    if size_slot(operator) and len(given) > last and not _may_be_variables(given[last]):
        given.insert(last, ())
    if slots and slots[last].variadic and len(given) > last + 1 and isinstance(given[last], Var):
        stop = next((number for number, item in enumerate(given) if number > last and not isinstance(item, Var)), len(given))
        given[last:stop] = [given[last:stop]]
    extra, attributes = given[len(slots) :], given_attributes(operator)
    fixed = [
        name for name, item in zip(attributes, extra, strict=False) if isinstance(item, Var) and not operator.attributes[name].variable
    ]
    if len(extra) > len(attributes) or fixed:
        return given, keywords  # rejected later
    placed = dict(zip([*(slot.name for slot in slots[: len(given)]), *attributes[: len(extra)]], given, strict=True))
    twice = next((name for name in placed if name in keywords), None)
    if twice is not None:
        raise _refuse(operator, f"{twice} is given twice")
    return (), {**placed, **keywords}


def _may_be_variables(item: object) -> bool:
    """Return whether an argument may belong to a slot of variables: a variable, a list with one, or nothing."""
    items = item if isinstance(item, list | tuple) else [item]
    return item is None or not items or any(isinstance(each, Var) for each in items)


def append_constant(number: complex, dtype: DType, beside: Var, what: str = "") -> Var:
    """Append a constant of `dtype` next to `beside`. Raises DTypeError, prefixed with `what`, if the dtype cannot represent it."""
    value = require_held(number, dtype, beside, what)

    def filled(value: float, dtype: DType) -> Var:
        return standard.get("full")(shape=(), value=value, dtype=dtype)

    with block_for([beside], "full"):
        if isinstance(value, complex):  # attributes are real numbers
            return standard.get("complex")(filled(value.real, dtype.real), filled(value.imag, dtype.real))
        return filled(value, dtype)


def _attribute_hint(operator: Operator, slot: Slot, item: object) -> str | None:
    """Return a hint for an attribute passed at the position of an input."""
    for name in () if slot.variadic else given_attributes(operator):
        try:
            operator.attributes[name].convert(item)
        except OarlockError:
            continue
        return f"pass attributes by name if inputs are omitted: {operator.type}(..., {name}={item!r:.40})"
    return None


def _row_hint(operator: Operator, arguments: Sequence[object]) -> str | None:
    """Return a hint for a tuple attribute passed as separate numbers."""
    inputs, numbers = operator.signature.inputs, tuple(arguments[len(operator.signature.inputs) :])
    for name in given_attributes(operator):
        try:
            operator.attributes[name].convert(numbers)
        except OarlockError:
            continue
        return f"pass the numbers as one tuple: {operator.type}({', '.join(slot.name for slot in inputs)}, {name}={numbers})"
    return None


def _bind_slots(operator: Operator, arguments: Sequence[object], keywords: Mapping[str, object]) -> dict[str, list[Var]]:
    slots = operator.signature.inputs
    if len(arguments) > len(slots):
        attributes = given_attributes(operator)
        inputs = f"{len(slots)} input{'' if len(slots) == 1 else 's'}" if attributes else str(len(slots))
        taken = ", ".join([inputs, *attributes[:-1]]) + (f" and {attributes[-1]}" if attributes else "")
        kind = "arguments" if attributes else "inputs"
        raise _refuse(operator, f"{len(arguments)} {kind} given, but it takes {taken}", _row_hint(operator, arguments))
    values = dict(zip((slot.name for slot in slots), arguments, strict=False))
    for slot in slots:
        if slot.name in keywords:
            if slot.name in values:
                raise _refuse(operator, f"{slot.name} is given twice")
            values[slot.name] = keywords[slot.name]
    given: dict[str, list[Var]] = {}
    block: Block | None = None
    for slot in slots:
        value = values.get(slot.name)
        if slot.variadic:
            items = list(value) if isinstance(value, list | tuple) else [] if value is None else [value]
        elif value is None:
            if slot.optional:
                continue
            raise _refuse(operator, f"{slot.name} is missing")
        else:
            items = [value]
        for item in items:
            if not isinstance(item, Var):
                raise _refuse(
                    operator,
                    f"{slot.name} must be a variable of the program, not {describe_value(item)}",
                    find_read_hint(item) or _attribute_hint(operator, slot, item),
                )
            block = block or block_stack.innermost_block(item.block.program)
        given[slot.name] = items if block is None or block.parent is None else [block.seen(item) for item in items]  # type: ignore[misc, assignment]
    return given


def _refuse(operator: Operator, message: str, hint: str | None = None) -> ArgumentError:
    return ArgumentError(f"{operator.type}: {message}", location=here(), contract=format_call(operator), hint=hint, op=operator.type)


def _explain(error: OarlockError, operator: Operator, given: Mapping[str, Sequence[Var]]) -> OarlockError:
    """Return the error with the user's line, the contract and the arguments by name."""
    vars = [(slot, var) for slot, items in given.items() for var in items]
    width = max((len(slot) for slot, _ in vars), default=0)
    return type(error)(
        f"{operator.type}: {error.message}",
        location=here(),
        contract=format_call(operator),
        given=[f"{slot:<{width}} = {var.describe()}" for slot, var in vars],
        hint=error.hint or _hint(error, given),
        op=operator.type,
    )


def _hint(error: OarlockError, given: Mapping[str, Sequence[Var]]) -> str | None:
    """Return a hint if the cause of the error is clear."""
    parameter = next((var for items in given.values() for var in items if var.parameter), None)
    if isinstance(error, ShapeError) and parameter is not None:
        return f'"{parameter.name}" does not fit this input: check its shape, or use another parameter name'
    if isinstance(error, DTypeError) and "must be a float" in error.message:
        return 'use ol.op.cast(x, dtype="float32")'
    return None


def require_open(var: Var, what: str) -> None:
    """Check that the program of `var` is open if any is, because otherwise the open program would be expected to get the op. Raises
    ProgramError.
    """
    opened = block_stack.open_blocks()
    if opened and all(block.program is not var.block.program for block in opened):
        raise ProgramError(
            f'{what}: "{var.name}" belongs to a program that is not open, but another program is',
            location=here(),
            given=[var.describe()],
            hint="close the other program first, or open this one: with var.block.program",
        )


def block_for(vars: Sequence[Var], what: str) -> Block:
    """Return the block for an op on `vars`: the innermost open block of their program, else its main block.

    Raises ProgramError if they belong to different programs, or to one that is not open while another is, and UndefinedVarError if one is
    not visible in the block.
    """
    if not vars:
        return block_stack.current_block()
    programs = {var.block.program: var for var in vars}
    if len(programs) > 1:
        raise ProgramError(
            f"{what}: its inputs belong to {len(programs)} programs",
            location=here(),
            given=[var.describe() for var in programs.values()],
            hint="build a model inside one `with ol.Program() as program:`",
        )
    require_open(vars[0], what)
    block = block_stack.innermost_block(vars[0].block.program)
    around = set(block.enclosing())
    for var in vars:
        if var.block not in around:
            raise UndefinedVarError(
                f'{what}: "{var.name}" is not visible in {block.path}; it belongs to {var.block.path}',
                location=here(),
                given=[var.describe()],
                hint="return it from its block as an output",
            )
    return block


def describe_value(value: object) -> str:
    """Describe a value passed instead of a variable: `int 3`, `ndarray float64[4, 2]`."""
    if is_bool(value):
        return f"bool {bool(value)}"
    kind, dtype, shape = type(value).__name__, getattr(value, "dtype", None), getattr(value, "shape", None)
    if dtype is not None and shape is not None:
        return f"{kind} {str(dtype).removeprefix('torch.')}{list(shape)}"
    return f"{kind} {' '.join(repr(value).split()):.60}"


def find_read_hint(value: object) -> str | None:
    """Return a hint for a value passed instead of a variable: its `read_hint` attribute, or advice about Python bools."""
    if is_bool(value):
        return _BOOL_HINT
    hint = getattr(value, "read_hint", None)
    return hint if isinstance(hint, str) else None


_BOOL_HINT = "this is probably x == y of plain Python values: compare a variable, as in label == 0, or use Python's `if`"


def seen(var: Var) -> Var:
    """Return the variable that replaces `var` in the innermost open block of its program: in a loop over a sequence, its current step."""
    return block_stack.innermost_block(var.block.program).seen(var)


def require_type(value: object, what: str, block: Block | None = None) -> Var:
    """Return the variable to use for `value` in `block`, by default the innermost open one. Raises ArgumentError if `value` is not a
    variable.
    """
    if isinstance(value, Var):
        return seen(value) if block is None else block.seen(value)
    raise ArgumentError(f"{what} must be a variable of a program, not {describe_value(value)}", location=here(), hint=find_read_hint(value))
