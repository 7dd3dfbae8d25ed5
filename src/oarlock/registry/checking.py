"""Check every op of a program against the operator that it names: slots, attributes, shapes and dtypes."""

from collections.abc import Iterable

from oarlock.errors import ArgumentError, DTypeError, OarlockError, ShapeError, UnknownOperatorError, VerifyError
from oarlock.ir.block import Block
from oarlock.ir.dtype import DType
from oarlock.ir.initializer import verify_initializers
from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.size import Size
from oarlock.registry.catalogue import Catalogue
from oarlock.registry.declaration import Operator
from oarlock.registry.signature import TensorType

__all__ = ["check_blocks", "typecheck"]

_ANY_SYMBOL = "?"  # stands for a size that only values tell; the program names it as it likes. No symbol is spelled so


def typecheck(program: Program, catalogue: Catalogue) -> None:
    """Raise VerifyError, or UnknownOperatorError, for the first op that its operator would not have made.

    Types are inferred again, op by op, and must be what the program declares; initializers must fit their variables.
    Linear in its size.
    """
    verify_initializers(program)
    check_blocks(program.blocks, catalogue)


def check_blocks(blocks: Iterable[Block], catalogue: Catalogue) -> None:
    """The same for the ops of some blocks."""
    for block in blocks:
        for number, op in enumerate(block.ops):
            try:
                _check_op(op, catalogue.get(op.type))
            except UnknownOperatorError as error:
                raise UnknownOperatorError(f"{_where(block, number, op)}: {error.message}", location=op.location, op=op.type) from None
            except (ShapeError, DTypeError, ArgumentError) as error:
                raise VerifyError(f"{_where(block, number, op)}: {error.message}", location=op.location, op=op.type) from error


def _where(block: Block, number: int, op: Op) -> str:
    return f"{block.path}, op {number} ({op.type})"


def _check_op(op: Op, operator: Operator) -> None:
    signature = operator.signature
    for slots, given, kind in ((signature.inputs, op.inputs, "input"), (signature.outputs, op.outputs, "output")):
        known = {slot.name: slot for slot in slots}
        for name, vars in given.items():
            if name not in known:
                raise ArgumentError(f'it has no {kind} slot "{name}"')
            if not known[name].variadic and len(vars) != 1:
                raise ArgumentError(f'{kind} slot "{name}" takes one variable, not {len(vars)}')
        for slot in slots:
            if slot.name not in given and not slot.optional:
                raise ArgumentError(f'{kind} slot "{slot.name}" is missing')
        if list(given) != [slot.name for slot in slots if slot.name in given]:
            raise ArgumentError(f"its {kind} slots are not in the order of its signature")
    for name, value in op.attributes.items():
        if isinstance(value, str) and name in operator.attributes and operator.attributes[name].type is DType:
            raise ArgumentError(f"attribute {name} must be DType, not {value!r:.60}")  # which a creator would take for its name
    converted = operator.convert_attributes(op.attributes)
    if converted != op.attributes or any(type(converted[name]) is not type(value) for name, value in op.attributes.items()):
        raise ArgumentError("an attribute is missing, or not in the form that the operator gives it")
    types = {slot: [TensorType(var.dtype, var.shape) for var in vars] for slot, vars in op.inputs.items()}
    inferred = _infer(operator, types, converted)
    for slot, vars in op.outputs.items():
        expected = inferred.get(slot, [])
        if len(expected) != len(vars):
            raise ShapeError(f'output slot "{slot}" has {len(vars)} variables, where {len(expected)} follow from its inputs')
        for var, expects in zip(vars, expected, strict=True):
            _check_output(var.name, TensorType(var.dtype, var.shape), expects)


def _infer(operator: Operator, types: dict[str, list[TensorType]], attributes: dict[str, object]) -> dict[str, list[TensorType]]:
    """What follows from the inputs. An operator may be anyone's: what its rule did not expect, no creator would have made."""
    try:
        return operator.infer(types, attributes, lambda: _ANY_SYMBOL)
    except OarlockError:
        raise
    except Exception as error:
        raise ShapeError(f"its types do not follow from its inputs: {type(error).__name__}: {error}") from error


def _check_output(name: str, declared: TensorType, inferred: TensorType) -> None:
    if declared.dtype is not inferred.dtype:
        raise DTypeError(f'"{name}" is declared {declared}, where {inferred} follows from its inputs')
    if declared.shape is None or inferred.shape is None:
        fits = declared.shape == inferred.shape
    else:
        fits = len(declared.shape) == len(inferred.shape) and all(map(_same_size, declared.shape, inferred.shape))
    if not fits:
        raise ShapeError(f'"{name}" is declared {declared}, where {inferred} follows from its inputs')


def _same_size(declared: Size, inferred: Size) -> bool:
    return declared == inferred or (inferred == _ANY_SYMBOL and isinstance(declared, str))
