"""`oarlock hash`: print the content hash of a program."""

from pathlib import Path
from typing import Annotated

import typer

from oarlock.cli.imported_operators import Imports
from oarlock.cli.program_file import read_program_file
from oarlock.cli.untrusted_run import Untrusted
from oarlock.ir.content_hash import content_hash

__all__ = ["hash_"]


def hash_(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Model file, serialized program or program text.")],
    untrusted: Untrusted = False,
    imports: Imports = None,
) -> None:
    """Print the SHA-256 of a program's structure, ignoring values, file format and source locations."""
    typer.echo(content_hash(read_program_file(path, untrusted=untrusted)))
