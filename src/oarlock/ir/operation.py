"""Op: one use of an operator on variables."""

from enum import IntEnum
from typing import TYPE_CHECKING

from oarlock.ir.location import Location
from oarlock.ir.var import Var

if TYPE_CHECKING:
    from oarlock.ir.block import Block

__all__ = ["Op", "Role"]


class Role(IntEnum):
    """The purpose of an op. The numbers are part of the file format."""

    FORWARD = 0
    BACKWARD = 1
    UPDATE = 2
    MEASURE = 3


class Op:
    """One use of an operator: its name, inputs, outputs and attributes.

    `inputs` and `outputs` map slots to tuples of variables: one variable, or any number for a variadic slot. An unused optional slot is
    absent. `blocks` are the attributes that are blocks. `name` is unique in the program, or empty if none was given.
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
        """All input variables in slot order, with repetitions, followed by the variables among the attributes."""
        found: tuple[Var, ...] = ()  # tuple concatenation is fastest for few slots; passes call this thousands of times
        for vars in self.inputs.values():
            found += vars
        for value in self.attributes.values():
            if isinstance(value, Var):
                found += (value,)
        return found

    @property
    def writes(self) -> tuple[Var, ...]:
        """All output variables in slot order."""
        found: tuple[Var, ...] = ()
        for vars in self.outputs.values():
            found += vars
        return found

    @property
    def is_commit(self) -> bool:
        """Whether this op writes a persistable variable and so belongs to the tail of the main block."""
        return self.type == "assign" and any(var.persistable for var in self.writes)

    def __repr__(self) -> str:
        writes = ", ".join(var.name for var in self.writes)
        return f"<Op {writes} = {self.type}({', '.join(var.name for var in self.reads)})>"
