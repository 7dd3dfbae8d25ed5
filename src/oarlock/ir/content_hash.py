"""A program's content hash."""

import hashlib

from oarlock.ir.printer import format_program
from oarlock.ir.program import Program

__all__ = ["content_hash"]


def content_hash(program: Program) -> str:
    """SHA-256, in hexadecimal, of what the program is.

    It is taken of the printed text without its author's lines, which is ours to keep the same, and not of the bytes of
    a file, whose encoding is a library's. Two programs have one hash exactly when they print alike.
    """
    return hashlib.sha256(format_program(program, source=False).encode()).hexdigest()
