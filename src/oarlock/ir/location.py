"""Source locations: the user's line that creates a variable or an op."""

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

_LONGEST = 200  # characters, at most 800 bytes: within `Limits.location_text_bytes`
_PACKAGE = f"{Path(__file__).resolve().parent.parent}{os.sep}"
_CONTEXTLIB = contextlib.contextmanager.__code__.co_filename
_COMMANDS = f"{_PACKAGE}cli{os.sep}"


@dataclass(frozen=True, slots=True)
class Location:
    """A line of the user's source code.

    `file` is relative to the folder of the user's script and never absolute, so that the same model gives the same file in every checkout
    and on every machine. `line` counts from 1.
    """

    file: str
    line: int
    function: str
    text: str

    def __str__(self) -> str:
        function = "" if self.function == "<module>" else f" in {self.function}"
        text = f"{self.file}:{self.line}{function}      {self.text}".rstrip()
        # An untrusted file may contain anything here; `visible` keeps it to one line of printable characters.
        return visible(text)


def here() -> Location | None:
    """Return the location of the innermost frame outside this package, or None. Callers of our commands are not user code."""
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
    """Issue a warning at the user's line, the innermost frame outside this package."""
    frame, level = sys._getframe(1), 2
    while frame is not None and _is_ours(frame):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _is_ours(frame: FrameType) -> bool:
    """Return whether `frame` runs code of this package, or Python code called by it: a dataclass's `__init__`, entering a `with`."""
    filename = frame.f_code.co_filename
    return (
        filename.startswith(_PACKAGE)
        or filename == _CONTEXTLIB
        or (filename == "<string>" and frame.f_globals.get("__name__", "").startswith("oarlock."))
    )


@lru_cache(maxsize=4096)
def _location(filename: str, module: str, line: int, function: str, text: str) -> Location:
    """Return a location, shared by all ops that one line creates."""
    # The file is derived from the module's dotted path; a script has only its name.
    file = Path(filename).name if module == "__main__" else module.replace(".", "/") + ".py"
    return Location(file[-_LONGEST:], line, function[:_LONGEST], text[:_LONGEST])
