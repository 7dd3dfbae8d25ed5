"""Programs as Python objects: blocks of ops over variables. Imports neither torch nor operators."""

from oarlock.ir.block import Block
from oarlock.ir.block_stack import current_block, default_program, get_variable
from oarlock.ir.dtype import DType
from oarlock.ir.location import Location
from oarlock.ir.operation import Op, Role
from oarlock.ir.program import Program, Training
from oarlock.ir.var import Initializer, Var
from oarlock.suggestions import suggest_names

__all__ = [
    "Block",
    "DType",
    "Initializer",
    "Location",
    "Op",
    "Program",
    "Role",
    "Training",
    "Var",
    "current_block",
    "default_program",
    "get_variable",
]

suggest_names(__name__)
