"""The user's own line, taken when a variable or an op is made."""

import contextlib
import linecache
import os
import sys
import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import FrameType

from oarlock.errors import visible

__all__ = ["Location", "here", "warn_here"]

_LONGEST = 200  # letters, of which the longest take 800 bytes: `Limits.location_text_bytes` allows more
_PACKAGE = f"{Path(__file__).resolve().parent.parent}{os.sep}"
_CONTEXTLIB = contextlib.contextmanager.__code__.co_filename
_COMMANDS = f"{_PACKAGE}cli{os.sep}"


@dataclass(frozen=True, slots=True)
class Location:
    """Where a line of the user's stands.

    `file` is relative to the folder of the user's script and never absolute, so that two checkouts of
    one model, and two machines, write the same file. `line` counts from 1.
    """

    file: str
    line: int
    function: str
    text: str

    def __str__(self) -> str:
        function = "" if self.function == "<module>" else f" in {self.function}"
        text = f"{self.file}:{self.line}{function}      {self.text}".rstrip()
        # A file may say anything here; in a message or a printed program it stays one line of what can be seen.
        return visible(text)


def here() -> Location | None:
    """The innermost frame outside this package, or None where there is none: what calls a command of ours is no line of the user's."""
    frame = sys._getframe(1)
    while frame is not None and _is_ours(frame):
        frame = frame.f_back if not frame.f_code.co_filename.startswith(_COMMANDS) else None
    if frame is None:
        return None
    filename = frame.f_code.co_filename
    module = frame.f_globals.get("__name__", "__main__")
    text = linecache.getline(filename, frame.f_lineno).strip()
    return _location(filename, module, frame.f_lineno, frame.f_code.co_name, text)


def warn_here(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn of what the user's own line asks for, as the innermost frame outside this package."""
    frame, level = sys._getframe(1), 2
    while frame is not None and _is_ours(frame):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _is_ours(frame: FrameType) -> bool:
    """Whether code of this package runs in `frame`, or code of Python's that it uses: `__init__` of a dataclass, entry of a `with`."""
    filename = frame.f_code.co_filename
    return (
        filename.startswith(_PACKAGE)
        or filename == _CONTEXTLIB
        or (filename == "<string>" and frame.f_globals.get("__name__", "").startswith("oarlock."))
    )


@lru_cache(maxsize=4096)
def _location(filename: str, module: str, line: int, function: str, text: str) -> Location:
    """One object for a line, however many ops it makes: a large program is made by few lines."""
    # A module's dotted path is its path below the script's folder; the script itself has only a name.
    file = Path(filename).name if module == "__main__" else module.replace(".", "/") + ".py"
    return Location(file[-_LONGEST:], line, function[:_LONGEST], text[:_LONGEST])
