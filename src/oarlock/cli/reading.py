"""The program in whatever file a verb was given."""

from pathlib import Path

from oarlock.errors import FormatError, MissingFileError
from oarlock.io.container import read_container
from oarlock.ir.program import Program
from oarlock.ir.serialize import read_program
from oarlock.registry.text import parse_program

__all__ = ["read_program_file"]


def read_program_file(path: Path) -> Program:
    """The program in a model file, or in a file of its bytes or its text; its structure is verified.

    Raises MissingFileError, FormatError, LimitError or VerifyError.
    """
    if not path.exists():
        raise MissingFileError(f'there is no file "{path}"')
    if path.suffix == ".safetensors":
        return read_program(read_container(path)[0])
    if path.is_dir():
        raise FormatError(f'"{path.name}" is a folder, not a file')
    data = path.read_bytes()
    if not data.startswith(b"program "):
        return read_program(data)
    try:
        return parse_program(data.decode())
    except UnicodeDecodeError as error:
        raise FormatError(f'"{path.name}" is not the text of a program', given=[str(error)]) from error
