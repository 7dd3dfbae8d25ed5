"""`Block.new_op`: append an op on declared variables and check it immediately."""

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
    """Append an op on variables that are already declared, given as such or by name, and return it.

    Without a name it gets an unused one. An `assign` to a persistable variable is a commit, as with `commit`. Raises UndefinedVarError for
    an unknown variable, ProgramError for a duplicate `name`, DTypeError or ShapeError if an output is declared with a type other than the
    inferred one, else the same as `oarlock.registry.append_op`, which also declares outputs.
    """
    if name and not block.program.is_free(require_user_name(name)):
        raise ProgramError(f'the name "{name}" is already used in this program', location=here())
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
