"""A program from its text."""

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
    """The program that `print(program)` printed as `text`, verified.

    Raises FormatError, which names the line, where it is not a program's text; else what `load_model` raises.
    Text in the names of earlier versions is read too. Comments are not: a parsed program knows nothing of its author's lines.
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
