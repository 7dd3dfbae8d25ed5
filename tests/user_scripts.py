"""A user's script, `model.py`, and what its user reads when it ends with an error."""

import linecache
import runpy
import textwrap
import traceback
from pathlib import Path

import pytest

import oarlock as ol

__all__ = ["last_words"]


def last_words(script: str, folder: Path) -> str:
    """Run `script`, which raises one of our errors; return what Python prints below the traceback."""
    path = folder / "model.py"
    path.write_text(textwrap.dedent(script).lstrip("\n"))
    linecache.clearcache()  # another script may have stood here
    with pytest.raises(ol.OarlockError) as raised:
        runpy.run_path(str(path), run_name="__main__")
    return "".join(traceback.format_exception_only(raised.value))
