"""The output variables of a new op: newly declared, or declared earlier under a name chosen by the caller."""

from collections.abc import Mapping, Sequence

from oarlock.errors import ArgumentError, DTypeError, ProgramError, ShapeError
from oarlock.ir.block import Block
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.names import is_name, require_user_name
from oarlock.ir.var import Var, is_among
from oarlock.registry.call_signature import format_call
from oarlock.registry.declaration import Operator
from oarlock.registry.signature import TensorType

__all__ = ["define_outputs"]


def define_outputs(
    operator: Operator,
    inferred: Mapping[str, Sequence[TensorType]],
    block: Block,
    name: str | None,
    wanted: Mapping[str, Sequence[Var | str]],
) -> dict[str, list[Var]]:
    """Return a variable of `block` for every output, with the inferred type.

    `wanted` gives, for some slots, a declared but undefined variable, whose type must be the inferred one or unknown, or a name. A float32
    variable without a shape counts as unknown. The others are called `relu_0` for one output, `lstm_0.h` for several. Raises ArgumentError,
    ProgramError, ShapeError or DTypeError before anything is declared.
    """
    slots = operator.signature.outputs
    for slot in wanted:
        if operator.signature.output(slot) is None:
            raise _refuse(operator, f'it has no output slot "{slot}"')
    for slot in slots:
        if slot.name in wanted:
            _require_fit(operator, slot.name, block, wanted[slot.name], inferred.get(slot.name, ()))
    several = len(slots) > 1
    stem = "" if all(slot.name in wanted for slot in slots) else _stem(operator, block, name)
    outputs: dict[str, list[Var]] = {}
    for slot in slots:
        types = inferred.get(slot.name, ())
        names: list[Var | str] = [f"{stem}.{slot.name}" if several else stem]
        if slot.variadic:
            names = [f"{names[0]}.{number}" for number in range(len(types))]
        items = wanted.get(slot.name, names[: len(types)])
        if slot.name not in wanted:
            _require_free(operator, block, items)
        outputs[slot.name] = [_define(block, item, type) for item, type in zip(items, types, strict=True)]
    return outputs


def _require_free(operator: Operator, block: Block, names: Sequence[Var | str]) -> None:
    """Check that `block` has no variable with one of these names. Raises ProgramError."""
    for name in names:
        found = block.find_var(str(name), recursive=False)
        if found is not None:
            raise ProgramError(
                f'{operator.type}: "{name}" is already the name of a variable of {block.path}',
                location=here(),
                contract="the result of an operator is a new variable",
                given=[found.describe()],
                hint="choose another name, or omit name=",
                op=operator.type,
            )


def _stem(operator: Operator, block: Block, name: str | None) -> str:
    return block.program.unique(operator.type) if name is None else require_user_name(name)


def _define(block: Block, item: Var | str, type: TensorType) -> Var:
    var = block.find_var(item, recursive=False) if isinstance(item, str) else item
    if var is None:
        return block.new_var(str(item), type.dtype, type.shape)
    var.dtype, var.shape = type
    block.program.claim_symbols(type.shape)
    return var


def _require_fit(operator: Operator, slot: str, block: Block, items: Sequence[Var | str], types: Sequence[TensorType]) -> None:
    """Check that an output slot of these types can define `items`. Raises ArgumentError, ProgramError, ShapeError or DTypeError."""
    if len(items) != len(types):
        raise _refuse(operator, f'output slot "{slot}" defines {len(types)} variables, but {len(items)} are given')
    for item, type in zip(items, types, strict=True):
        var = block.find_var(item, recursive=False) if isinstance(item, str) else item
        if var is None:
            if not is_name(str(item)):
                raise ProgramError(f"{str(item)!r:.80} cannot be a variable's name", location=here(), op=operator.type)
            continue
        if var.block is not block or var.op is not None or var.persistable or is_among(var, block.inputs):
            raise ProgramError(
                f'{operator.type}: it cannot define "{var.name}", which already has a value or belongs to another block',
                location=here(),
                contract=f"an op defines variables of its own block, {block.path}, each of them once",
                given=[var.describe()],
                op=operator.type,
            )
        untyped = var.shape is None and var.dtype is DType.FLOAT32  # `Block.new_var` declares variables of unknown type like this
        if not untyped and (var.dtype is not type.dtype or (var.shape is not None and var.shape != type.shape)):
            error = ShapeError if var.dtype is type.dtype else DTypeError
            raise error(
                f'{operator.type}: "{var.name}" is declared as {var.type_text}, but {type} is inferred from the inputs',
                location=here(),
                contract=format_call(operator),
                given=[f"{slot} = {var.describe()}"],
                op=operator.type,
            )


def _refuse(operator: Operator, message: str) -> ArgumentError:
    return ArgumentError(f"{operator.type}: {message}", location=here(), contract=format_call(operator), op=operator.type)
