"""Type checks of a program's ops against their operators: slots, attributes, shapes and dtypes."""

import itertools
from collections.abc import Callable, Iterable
from weakref import WeakKeyDictionary

from oarlock.errors import ArgumentError, DTypeError, OarlockError, ShapeError, UnknownOperatorError, VerifyError
from oarlock.ir.block import Block
from oarlock.ir.dtype import DType
from oarlock.ir.initializer import verify_initializers
from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.size import Size, names_in
from oarlock.ir.var import Var
from oarlock.ir.verification import verify_program
from oarlock.registry.catalogue import Catalogue
from oarlock.registry.collective import verify_collective_order
from oarlock.registry.declaration import Operator
from oarlock.registry.signature import TensorType
from oarlock.registry.value_sizes import verify_value_sizes

__all__ = ["check_blocks", "require_legal", "typecheck"]

_legal: "WeakKeyDictionary[Program, tuple[int, Catalogue]]" = WeakKeyDictionary()  # the revision and catalogue last found legal

_FRESH = "?"  # prefix of unnamed sizes that depend on values; no symbol has it


def typecheck(program: Program, catalogue: Catalogue) -> None:
    """Check every op against its operator. Raises VerifyError or UnknownOperatorError for the first mismatch. Takes linear time.

    Types are inferred again, op by op, and must equal the declared ones; initializers must fit their variables; sizes that depend on values
    must have unique names; and all workers must run the exchanges in blocks equally often.
    """
    verify_initializers(program)
    verify_value_sizes(program, catalogue, check_blocks(program.blocks, catalogue))
    verify_collective_order(program, catalogue)


def require_legal(program: Program, catalogue: Catalogue) -> None:
    """Verify and typecheck a program, once per revision. Raises VerifyError and UnknownOperatorError."""
    if _legal.get(program) != (program.revision, catalogue):
        revision = program.revision
        verify_program(program)
        typecheck(program, catalogue)
        _legal[program] = revision, catalogue


def check_blocks(blocks: Iterable[Block], catalogue: Catalogue) -> dict[Op, dict[str, Var]]:
    """Check each op of some blocks against its operator; return the sizes that ops create, each with the output that has it."""
    made: dict[Op, dict[str, Var]] = {}
    for block in blocks:
        for number, op in enumerate(block.ops):
            try:
                sizes = _check_op(op, catalogue.get(op.type))
                if sizes:
                    made[op] = sizes
            except UnknownOperatorError as error:
                raise UnknownOperatorError(f"{_where(block, number, op)}: {error.message}", location=op.location, op=op.type) from None
            except (ShapeError, DTypeError, ArgumentError) as error:
                raise VerifyError(f"{_where(block, number, op)}: {error.message}", location=op.location, op=op.type) from error
    return made


def _where(block: Block, number: int, op: Op) -> str:
    return f"{block.path}, op {number} ({op.type})"


def _check_op(op: Op, operator: Operator) -> dict[str, Var]:
    """Check an op against its operator; return the names of the sizes it creates. Raises ArgumentError, ShapeError or DTypeError."""
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
            raise ArgumentError(f"attribute {name} must be DType, not {value!r:.60}")  # a str would be accepted as a dtype name
    converted = operator.convert_attributes(op.attributes)
    if converted != op.attributes or any(type(converted[name]) is not type(value) for name, value in op.attributes.items()):
        raise ArgumentError("an attribute is missing or not in its normalized form")
    types = {slot: [TensorType(var.dtype, var.shape) for var in vars] for slot, vars in op.inputs.items()}
    numbers = itertools.count()
    inferred = _infer(operator, types, converted, lambda: f"{_FRESH}{next(numbers)}")
    made: dict[str, tuple[Size, Var]] = {}
    for slot, vars in op.outputs.items():
        expected = inferred.get(slot, [])
        if len(expected) != len(vars):
            raise ShapeError(f'output slot "{slot}" has {len(vars)} variables, but {len(expected)} are inferred from its inputs')
        for var, expects in zip(vars, expected, strict=True):
            _check_output(var, expects, made)
    return {name: var for name, (_, var) in made.items()}


def _infer(
    operator: Operator, types: dict[str, list[TensorType]], attributes: dict[str, object], fresh: Callable[[], str]
) -> dict[str, list[TensorType]]:
    """Infer the types of the outputs. Exceptions of a custom operator's inference on unexpected inputs become ShapeError."""
    try:
        return operator.infer(types, attributes, fresh)
    except OarlockError:
        raise
    except Exception as error:
        raise ShapeError(f"its types cannot be inferred from its inputs: {type(error).__name__}: {error}") from error


def _check_output(var: Var, inferred: TensorType, made: dict[str, tuple[Size, Var]]) -> None:
    """Compare the declared type of an output with the inferred one. Adds new sizes that depend on values to `made`."""
    declared = TensorType(var.dtype, var.shape)
    if declared.dtype is not inferred.dtype:
        raise DTypeError(f'"{var.name}" is declared as {declared}, but {_printed(inferred)} is inferred from its inputs')
    if declared.shape is None or inferred.shape is None:
        fits = declared.shape == inferred.shape
    else:
        fits = len(declared.shape) == len(inferred.shape)
        for size, follows in zip(declared.shape, inferred.shape, strict=False):
            if isinstance(follows, str) and follows.startswith(_FRESH):
                fits = fits and isinstance(size, str) and names_in(size) == {size} and made.setdefault(size, (follows, var))[0] == follows
            else:
                fits = fits and size == follows
    if not fits:
        raise ShapeError(f'"{var.name}" is declared as {declared}, but {_printed(inferred)} is inferred from its inputs')


def _printed(type: TensorType) -> TensorType:
    """Return the type with "?" for all sizes that depend on values."""
    sizes = None if type.shape is None else tuple(_FRESH if str(size).startswith(_FRESH) else size for size in type.shape)
    return TensorType(type.dtype, sizes)
