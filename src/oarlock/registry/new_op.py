"""`Block.new_op`: an op on variables that are declared already, checked against its operator at once."""

from collections.abc import Mapping

from oarlock.errors import ProgramError
from oarlock.ir.block import Argument, Block
from oarlock.ir.location import here
from oarlock.ir.names import require_user_name
from oarlock.ir.operation import Op
from oarlock.registry.catalogue import Catalogue, standard
from oarlock.registry.creator import append_op

__all__ = ["new_op"]


def new_op(
    block: Block,
    type: str,
    inputs: Mapping[str, Argument],
    outputs: Mapping[str, Argument],
    attributes: Mapping[str, object] | None = None,
    name: str = "",
    *,
    catalogue: Catalogue = standard,
) -> Op:
    """Append an op on variables that are declared already, given by themselves or by their names; return it.

    Without a name it gets one that nothing else in the program has. An `assign` to a persistable variable is a commit, as of `commit`.
    Raises UndefinedVarError for a name that is not visible here, ProgramError where `name` is taken, DTypeError or ShapeError where an
    output is declared with another type than follows from the inputs, else what `oarlock.registry.append_op` raises, which also declares
    outputs.
    """
    if name and not block.program.is_free(require_user_name(name)):
        raise ProgramError(f'"{name}" is taken in this program; an op needs a name of its own', location=here())
    given = {slot: block.resolve(argument) for slot, argument in inputs.items()}
    defined = {slot: block.resolve(argument) for slot, argument in outputs.items()}
    read, written = given.get("x", ()), defined.get("y", ())
    if type == "assign" and len(read) == len(written) == 1 and written[0].persistable:
        op = block.commit(written[0], read[0], role=block.program.writing[0])
    else:
        op = append_op(block, type, given, defined, attributes, catalogue=catalogue)
    op.name = name or block.program.unique(type)
    block.program.changed(taken=op.name)
    return op


Block.new_op = new_op  # type: ignore[attr-defined]
