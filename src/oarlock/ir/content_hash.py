"""The content hash of a program."""

import hashlib

from oarlock.ir.printer import format_program
from oarlock.ir.program import Program

__all__ = ["content_hash"]


def content_hash(program: Program) -> str:
    """Return the SHA-256, in hexadecimal, of a program's structure.

    It hashes the printed text without source locations, not the bytes of a file, whose encoding depends on a library. Two programs have the
    same hash if and only if they print the same.
    """
    return hashlib.sha256(format_program(program, source=False).encode()).hexdigest()
