"""Op: one use of an operator, over variables."""

from enum import IntEnum
from typing import TYPE_CHECKING

from oarlock.ir.location import Location
from oarlock.ir.var import Var

if TYPE_CHECKING:
    from oarlock.ir.block import Block

__all__ = ["Op", "Role"]


class Role(IntEnum):
    """Why an op is there. The number is the one in a file."""

    FORWARD = 0
    BACKWARD = 1
    UPDATE = 2
    MEASURE = 3


class Op:
    """An operator's name, what it reads, what it defines, and its attributes.

    `inputs` and `outputs` map a slot to its variables: one, or any number where the slot is variadic;
    an optional slot that is not used is not there. `blocks` are those of its attributes that are blocks.
    `name`, unique in the program, is empty where nobody asked for one.
    """

    __slots__ = ("attributes", "block", "blocks", "inputs", "location", "name", "outputs", "role", "type")

    def __init__(
        self,
        block: "Block",
        type: str,
        inputs: dict[str, tuple[Var, ...]],
        outputs: dict[str, tuple[Var, ...]],
        attributes: dict[str, object],
        *,
        blocks: "tuple[Block, ...]" = (),
        role: Role = Role.FORWARD,
        location: Location | None = None,
        name: str = "",
    ):
        self.block = block
        self.type = type
        self.inputs = inputs
        self.outputs = outputs
        self.attributes = attributes
        self.blocks = blocks
        self.role = role
        self.location = location
        self.name = name

    @property
    def reads(self) -> tuple[Var, ...]:
        """Every variable in an input slot, in order, with repetitions; then those that attributes are given by."""
        found: tuple[Var, ...] = ()  # of few slots with few variables, for which this is the quickest; passes ask thousands of times
        for vars in self.inputs.values():
            found += vars
        for value in self.attributes.values():
            if isinstance(value, Var):
                found += (value,)
        return found

    @property
    def writes(self) -> tuple[Var, ...]:
        """Every variable in an output slot, in order."""
        found: tuple[Var, ...] = ()
        for vars in self.outputs.values():
            found += vars
        return found

    @property
    def is_commit(self) -> bool:
        """Whether this op writes a persistable variable: one of the tail of the main block."""
        return self.type == "assign" and any(var.persistable for var in self.writes)

    def __repr__(self) -> str:
        writes = ", ".join(var.name for var in self.writes)
        return f"<Op {writes} = {self.type}({', '.join(var.name for var in self.reads)})>"
