"""`oarlock diff`: compare two programs."""

from pathlib import Path
from typing import Annotated

import typer

from oarlock.cli.imported_operators import Imports
from oarlock.cli.program_file import read_program_file
from oarlock.cli.untrusted_run import Untrusted
from oarlock.ir.diff import diff_programs

__all__ = ["diff"]


def diff(
    before: Annotated[Path, typer.Argument(help="Model file, serialized program or program text.")],
    after: Annotated[Path, typer.Argument(help="File to compare with.")],
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with status 2 if the programs differ.")] = False,
    untrusted: Untrusted = False,
    imports: Imports = None,
) -> None:
    """Print the semantic differences between two programs, block by block: + added, - removed, > moved, ~ changed.

    Names of local values and source locations are ignored.
    """
    differences = diff_programs(*(read_program_file(path, untrusted=untrusted) for path in (before, after)))
    for difference in differences:
        typer.echo(str(difference))
    if not differences:
        typer.echo("the programs are the same")
    elif exit_code:
        raise typer.Exit(2)
