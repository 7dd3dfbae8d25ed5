"""`oarlock check`: verify the program in a file."""

from pathlib import Path
from typing import Annotated

import typer

from oarlock.cli.imported_operators import Imports
from oarlock.cli.program_file import read_program_file
from oarlock.cli.untrusted_run import Untrusted
from oarlock.io.model import read_model
from oarlock.registry.catalogue import standard
from oarlock.registry.type_check import typecheck

__all__ = ["check"]


def check(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Model file or serialized program.")],
    untrusted: Untrusted = False,
    imports: Imports = None,
) -> None:
    """Verify a program: names, blocks, definitions and the types of every op. Nothing is run.

    Exits with status 1 and an error message at the first violation.
    """
    if path.suffix == ".safetensors":
        program = read_model(path, standard, untrusted=untrusted).program
    else:
        program = read_program_file(path, untrusted=untrusted)
        typecheck(program, standard)
    kind = "a training program" if program.is_training else "a program"
    ops = sum(len(block.ops) for block in program.blocks)
    values = sum(_count(var.shape) for var in program.parameters())
    counts = f"{_plural(len(program.blocks), 'block')}, {_plural(ops, 'op')} and {_plural(values, 'trainable value')}"
    typer.echo(f"{path.name}: {kind} of {counts}; no errors")


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _count(shape: tuple[int | str, ...] | None) -> int:
    """Return the number of elements of a shape; symbolic sizes count as 0."""
    total = 1
    for size in shape or ():
        total *= size if isinstance(size, int) else 0
    return total
