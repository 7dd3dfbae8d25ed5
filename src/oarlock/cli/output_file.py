"""The output file of a verb: written to its path or, in the child process of `--untrusted`, returned to the parent."""

import io
from pathlib import Path

from oarlock.io.atomic_write import write_file

__all__ = ["destination", "hand_over", "is_child", "write"]

_handed: io.BytesIO | None = None


def destination(path: Path) -> Path | io.BytesIO:
    """Return the path or, in the child process, the buffer to which a verb writes its file."""
    return path if _handed is None else _handed


def write(path: Path, data: bytes) -> None:
    """Write the output file of a verb. Raises the errors of `write_file`."""
    place = destination(path)
    if isinstance(place, Path):
        write_file(place, data)
    else:
        place.write(data)


def hand_over() -> io.BytesIO:
    """Make this process the child, and return the buffer that receives the output file."""
    global _handed
    _handed = io.BytesIO()
    return _handed


def is_child() -> bool:
    """Return whether this process is the child of `--untrusted`."""
    return _handed is not None
