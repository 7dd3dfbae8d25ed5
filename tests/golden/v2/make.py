"""The program that made the files beside this one, once: `PYTHONPATH=src:tests python tests/golden/v2/make.py`.

They are never made again. The programs are those of `../v1`, in the names of format version 2.
"""

import importlib.util
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    spec = importlib.util.spec_from_file_location("first_version", HERE.parent / "v1" / "make.py")
    assert spec is not None
    assert spec.loader is not None
    first = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(first)
    first.HERE = HERE
    first.main()


if __name__ == "__main__":
    main()
