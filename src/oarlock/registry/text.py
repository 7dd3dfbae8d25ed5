"""A program from its text."""

from oarlock.ir.parser import Slots, parse_program_desc
from oarlock.ir.program import Program
from oarlock.ir.serialize import FORMAT_VERSION, build_program
from oarlock.proto import program_pb2 as wire
from oarlock.proto.limits import Limits
from oarlock.registry.catalogue import Catalogue, standard
from oarlock.registry.checking import typecheck

__all__ = ["parse_program"]


def parse_program(text: str, *, catalogue: Catalogue = standard, limits: Limits | None = None) -> Program:
    """The program that `print(program)` printed as `text`, verified.

    Raises FormatError, which names the line, where it is not a program's text; else what `load_model` raises.
    Comments are not read: a parsed program knows nothing of its author's lines.
    """

    def slots_of(type: str) -> Slots:
        signature = catalogue.get(type).signature
        return Slots([slot.name for slot in signature.inputs], [slot.name for slot in signature.outputs])

    desc = parse_program_desc(text, slots_of, version=FORMAT_VERSION)
    program = build_program(wire.ProgramFile(program=desc), limits=limits)
    typecheck(program, catalogue)
    return program
