"""The rules of a legal program, except those about operators; one function per rule.

`oarlock.registry.type_check` checks ops against the signatures of their operators.
"""

from collections.abc import Iterator

from oarlock.errors import VerifyError
from oarlock.ir.attribute import Sizes
from oarlock.ir.block import Block
from oarlock.ir.dtype import DType
from oarlock.ir.names import is_name
from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.size import is_symbol, names_in
from oarlock.ir.var import Var

__all__ = ["verify_ownership", "verify_program"]


def verify_program(program: Program) -> None:
    """Check all rules. Raises VerifyError for the first violation. Takes time linear in the size of the program."""
    verify_names(program)
    verify_variables(program)
    verify_attributes(program)
    verify_ownership(program)
    verify_definitions(program)
    verify_tail(program)
    verify_targets(program)


def verify_names(program: Program) -> None:
    """Check that names are legal, and that block paths and op names are unique."""
    paths = set()
    ops = set()
    for block in program.blocks:
        for name in (block.name, *block.vars):
            if not is_name(name):
                raise VerifyError(f"block {block.index}: {name[:80]!r} is not a legal name")
        if block.path in paths:
            raise VerifyError(f"block {block.index}: another block is called {block.path}")
        paths.add(block.path)
        for number, op in enumerate(block.ops):
            if op.name and (not is_name(op.name) or op.name in ops):
                raise VerifyError(f"{_where(block, number, op)}: {op.name[:80]!r} is not a legal name, or is used by another op")
            ops.add(op.name)


def verify_variables(program: Program) -> None:
    """Check sizes, full declarations of persistable variables in the main block, ranks of inputs, and uniqueness of row splits."""
    for block in program.blocks:
        inputs = set(block.inputs)
        cuts: dict[str, Var] = {}
        for var in block.vars.values():
            _verify_variable(block, var, var in inputs)
            if var.row_splits_of is not None and cuts.setdefault(var.row_splits_of, var) is not var:
                raise VerifyError(
                    f'{block.path}: "{cuts[var.row_splits_of].name}" and "{var.name}" are both row splits of {var.row_splits_of}'
                )


def _verify_variable(block: Block, var: Var, is_input: bool) -> None:
    where = f'{block.path}: variable "{var.name}"'
    for size in var.shape or ():
        if isinstance(size, int) and size < 0:
            raise VerifyError(f"{where} has a size of {size}")
        if isinstance(size, str) and not is_symbol(size):
            raise VerifyError(f"{where}: {size[:80]!r} is not a size")
    if var.persistable and (block.parent is not None or is_input):
        raise VerifyError(f"{where} is persistable, so it must be in the main block and not an input")
    if var.persistable and (var.shape is None or any(isinstance(size, str) for size in var.shape)):
        raise VerifyError(f"{where} is persistable, so every size must be a number")
    if var.parameter and not var.persistable:
        raise VerifyError(f"{where} is a parameter, so it must be persistable")
    if var.trainable and not var.parameter:
        raise VerifyError(f"{where} is trainable, so it must be a parameter")
    if var.update_settings.stated and not var.parameter:
        raise VerifyError(f"{where} has update settings, so it must be a parameter")
    if var.sharding is not None and not var.persistable:
        raise VerifyError(f"{where} is sharded, so it must be persistable")
    if var.sharding is not None and not 0 <= var.sharding.axis < len(var.shape or ()):
        raise VerifyError(f"{where} is sharded along axis {var.sharding.axis}, which {var.type_text} does not have")
    if var.sharding is not None and not 0 <= var.sharding.workers < 2**31:
        raise VerifyError(f"{where} is sharded by {var.sharding.workers} workers")
    if var.place and not var.persistable:
        raise VerifyError(f"{where} has a place, so it must be persistable")
    if not 0 <= var.place < 2**31:
        raise VerifyError(f"{where} is at place {var.place}")
    if is_input and block.parent is None and var.shape is None:
        raise VerifyError(f"{where} is fed, so its rank must be known")
    if var.row_splits_of is not None and not (is_symbol(var.row_splits_of) and names_in(var.row_splits_of) == {var.row_splits_of}):
        raise VerifyError(f"{where} row_splits_of {var.row_splits_of[:80]!r}: not the name of a size")
    if var.row_splits_of is not None and (var.dtype is not DType.INT64 or var.shape is None or len(var.shape) != 1):
        raise VerifyError(f"{where} row_splits_of {var.row_splits_of}, so it must be int64 of one dimension, not {var.type_text}")
    if var.initializer and not var.persistable and not (is_input and block.parent is None):
        by = "the op that owns the block passes its value" if is_input else "an op defines it"
        raise VerifyError(f"{where} has an initializer, but {by}")


def verify_attributes(program: Program) -> None:
    """Check that symbols in attributes are valid sizes."""
    for block in program.blocks:
        for number, op in enumerate(block.ops):
            for name, value in op.attributes.items():
                for size in value if isinstance(value, Sizes) else ():
                    if isinstance(size, str) and not is_symbol(size):
                        raise VerifyError(f'{_where(block, number, op)}: attribute "{name}": {size[:80]!r} is not a size')


def verify_ownership(program: Program) -> None:
    """Check that each block except the main block belongs to exactly one op of its parent block."""
    owned: set[Block] = set()
    for block in program.blocks:
        for number, op in enumerate(block.ops):
            for inner in op.blocks:
                if inner.parent is not block or inner in owned:
                    raise VerifyError(f"{_where(block, number, op)}: it does not own block {inner.index} ({inner.name})")
                owned.add(inner)
    for block in program.blocks[1:]:
        if block not in owned:
            raise VerifyError(
                f"block {block.index} ({block.name}) belongs to no op",
                location=next((op.location for op in block.ops if op.location is not None), None),
                hint="if you built it, call its owner: `y = ie(condition)`, `states = rnn()`",
            )


def verify_definitions(program: Program) -> None:
    """Check that every variable is defined once, before it is read, and that ops with blocks list all captured variables."""
    defined: set[Var] = set(program.persistables())
    entered = [_verify_block(program.main, defined)]
    while entered:
        inner = next(entered[-1], None)
        if inner is None:
            entered.pop()
        else:
            entered.append(_verify_block(inner, defined))


def _verify_block(block: Block, defined: set[Var]) -> Iterator[Block]:
    """Verify a block, yielding each nested block at the position of its op; resume after that has been verified."""
    if len(set(block.inputs)) != len(block.inputs):
        raise VerifyError(f"{block.path}: a variable is an input twice")
    defined.update(block.inputs)
    around = set(block.enclosing())
    for number, op in enumerate(block.ops):
        for var in op.reads:
            if var.block not in around or var not in defined:
                raise VerifyError(f'{_where(block, number, op)}: it reads "{var.name}" before that has a value')
            if block.find_var(var.name) is not var:
                raise VerifyError(f'{_where(block, number, op)}: it reads {var.path}, which is hidden by another "{var.name}"')
        for inner in op.blocks:
            # Reads of blocks nested deeper are among the reads of the ops that own them.
            captured = {var for reader in inner.ops for var in reader.reads if var.block in around}
            captured |= {var for var in inner.outputs if var.block in around}
            missing = captured - set(op.reads)
            if missing:
                name = min(var.name for var in missing)
                raise VerifyError(f'{_where(block, number, op)}: its block {inner.name} reads "{name}", but the op does not list it')
            yield inner
        if not op.is_commit:
            _verify_writes(block, number, op, defined)
    for var in block.outputs:
        if var.block not in around or var not in defined:
            raise VerifyError(f'{block.path}: its output "{var.name}" has no value')
        if block.find_var(var.name) is not var:
            raise VerifyError(f'{block.path}: its output is {var.path}, which is hidden by another "{var.name}"')


def _verify_writes(block: Block, number: int, op: Op, defined: set[Var]) -> None:
    for var in op.writes:
        if var.block is not block or var.persistable:
            raise VerifyError(f'{_where(block, number, op)}: it writes "{var.name}", but that is not a local variable of {block.path}')
        if var in defined:
            raise VerifyError(f'{_where(block, number, op)}: "{var.name}" is defined a second time')
        defined.add(var)


def verify_tail(program: Program) -> None:
    """Check that only the last ops of the main block write persistable variables, each of them once."""
    tail = set(program.main.tail)
    written: set[Var] = set()
    for block in program.blocks:
        for number, op in enumerate(block.ops):
            if op.is_commit and op not in tail:
                raise VerifyError(f"{_where(block, number, op)}: persistable variables are written at the end of the main block only")
            if op in tail:
                var = op.writes[0]
                if len(op.writes) != 1 or len(op.reads) != 1 or var in written or op.reads[0].persistable:
                    raise VerifyError(f'{_where(block, number, op)}: it must assign "{var.name}" one new value, once')
                written.add(var)


def verify_targets(program: Program) -> None:
    """Check that targets have values, and that the training settings are valid."""
    if program.training and not program.training.batch_size:
        raise VerifyError("the batch size of a training program must be at least 1, not 0")
    if program.training and program.training.backend is not None and not is_name(program.training.backend):
        raise VerifyError(f"backend {program.training.backend[:80]!r} is not a legal name")
    if program.main.outputs:
        raise VerifyError("main: the main block cannot have outputs; use targets")
    inputs = set(program.main.inputs)
    for label, var in program.targets.items():
        if not is_name(label):
            raise VerifyError(f"target {label[:80]!r} is not a legal name")
        if var.block.program is not program:
            raise VerifyError(f'target "{label}": "{var.name}" belongs to another program', given=[var.describe()])
        if var.op is None and not var.persistable and var not in inputs:
            raise VerifyError(f'target "{label}": nothing defines "{var.name}"')


def _where(block: Block, number: int, op: Op) -> str:
    return f"{block.path}, op {number} ({op.type})"
