"""`oarlock hash`: a program's content hash."""

from pathlib import Path
from typing import Annotated

import typer

from oarlock.cli.imported_operators import Imports
from oarlock.cli.program_file import read_program_file
from oarlock.cli.untrusted_run import Untrusted
from oarlock.ir.content_hash import content_hash

__all__ = ["hash_"]


def hash_(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A model file, or a program's bytes or text.")],
    untrusted: Untrusted = False,
    imports: Imports = None,
) -> None:
    """Print the SHA-256 of a program: of what it is, whatever its values, its file and its author's lines."""
    typer.echo(content_hash(read_program_file(path, untrusted=untrusted)))
