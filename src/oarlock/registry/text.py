"""Parsing of programs from text."""

from oarlock.ir.earlier_versions import replace_old_names
from oarlock.ir.parser import Slots, parse_program_desc
from oarlock.ir.program import Program
from oarlock.ir.serialization import FORMAT_VERSION, build_program
from oarlock.old_names import OLD_OPERATORS, OLD_SLOTS
from oarlock.proto import program_pb2 as wire
from oarlock.proto.limits import Limits
from oarlock.registry.catalogue import Catalogue, standard
from oarlock.registry.type_check import typecheck

__all__ = ["parse_program"]


def parse_program(text: str, *, catalogue: Catalogue = standard, limits: Limits | None = None) -> Program:
    """Parse and verify a program from `text`, as printed by `print(program)`.

    Raises FormatError, with the line number, for invalid text; else the same as `load_model`. Names of earlier versions are accepted.
    Comments, and so source locations, are ignored.
    """

    def slots_of(type: str) -> Slots:
        found = catalogue.find(type)
        signature = found.signature if found else catalogue.get(OLD_OPERATORS.get(type, type)).signature
        old = {new: name for name, new in OLD_SLOTS.get(type, {}).items()}
        inputs = [slot.name for slot in signature.inputs]
        return Slots([*inputs, *(old[name] for name in inputs if name in old)], [slot.name for slot in signature.outputs])

    desc = parse_program_desc(text, slots_of, version=FORMAT_VERSION)
    replace_old_names(desc, is_known=lambda name: catalogue.find(name) is not None)
    program = build_program(wire.ProgramFile(program=desc), limits=limits)
    typecheck(program, catalogue)
    return program
