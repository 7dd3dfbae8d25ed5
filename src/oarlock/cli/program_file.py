"""Reading the program of any file that a verb accepts."""

from pathlib import Path

import oarlock.op.update  # noqa: F401  registers the operators of training programs, for their text
from oarlock.errors import FormatError
from oarlock.io.container import read_container
from oarlock.io.files import read_file
from oarlock.ir.program import Program
from oarlock.ir.serialization import read_program
from oarlock.proto.limits import Limits
from oarlock.registry.text import parse_program
from oarlock.training.run_folder import load_run

__all__ = ["read_program_file"]


def read_program_file(path: Path, *, untrusted: bool = False) -> Program:
    """Read the program of a model file, a serialized program, a program text, or the newest checkpoint of a run, and verify its structure.

    An `untrusted` path must not be a link or a folder. Raises MissingFileError, ReadError, FormatError, LimitError or VerifyError.
    """
    if path.is_dir() and not untrusted:
        return load_run(path).program
    if path.suffix == ".safetensors":
        return read_program(read_container(path, untrusted=untrusted)[0])
    data = read_file(path, largest=Limits().program_bytes, limit="program_bytes", untrusted=untrusted)
    if not data.startswith(b"program "):
        return read_program(data)
    try:
        return parse_program(data.decode())
    except UnicodeDecodeError as error:
        raise FormatError(f'"{path.name}" is not a valid program text', given=[str(error)]) from error
