"""Where a verb's file goes: to its path or, out of the child process of `--untrusted`, to the parent, which writes it."""

import io
from pathlib import Path

from oarlock.io.atomic_write import write_file

__all__ = ["destination", "hand_over", "is_child", "write"]

_handed: io.BytesIO | None = None


def destination(path: Path) -> Path | io.BytesIO:
    """The destination of the file of a verb."""
    return path if _handed is None else _handed


def write(path: Path, data: bytes) -> None:
    """Write the file of a verb. Raises as `write_file` does."""
    place = destination(path)
    if isinstance(place, Path):
        write_file(place, data)
    else:
        place.write(data)


def hand_over() -> io.BytesIO:
    """Make this process the child: what its verb writes is held in what is returned, and never reaches a path."""
    global _handed
    _handed = io.BytesIO()
    return _handed


def is_child() -> bool:
    """Whether this process is the child already."""
    return _handed is not None
