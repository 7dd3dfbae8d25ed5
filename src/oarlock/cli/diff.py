"""`oarlock diff`: what differs between two programs."""

from pathlib import Path
from typing import Annotated

import typer

from oarlock.cli.imported_operators import Imports
from oarlock.cli.program_file import read_program_file
from oarlock.cli.untrusted_run import Untrusted
from oarlock.ir.diff import diff_programs

__all__ = ["diff"]


def diff(
    before: Annotated[Path, typer.Argument(help="A model file, or a program's bytes or text.")],
    after: Annotated[Path, typer.Argument(help="Another.")],
    exit_code: Annotated[bool, typer.Option("--exit-code", help="End with status 2 where they differ.")] = False,
    untrusted: Untrusted = False,
    imports: Imports = None,
) -> None:
    """Print what differs in meaning, block by block: + added, - removed, > moved, ~ changed.

    Names of local values and the lines of authors are not differences.
    """
    differences = diff_programs(*(read_program_file(path, untrusted=untrusted) for path in (before, after)))
    for difference in differences:
        typer.echo(str(difference))
    if not differences:
        typer.echo("the programs are the same")
    elif exit_code:
        raise typer.Exit(2)
