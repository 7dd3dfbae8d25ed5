"""The program that made the files beside this one, once: `PYTHONPATH=src:tests python tests/golden/v2/make.py`.

They are never made again. The programs are those of `../v1`, in the names of format version 2.
"""

import importlib.util
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).parent


def first_version() -> ModuleType:
    """The program that made the files of version 1, which writes here."""
    spec = importlib.util.spec_from_file_location("first_version", HERE.parent / "v1" / "make.py")
    assert spec is not None
    assert spec.loader is not None
    first = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(first)
    first.HERE = HERE
    return first


if __name__ == "__main__":
    first_version().main()
