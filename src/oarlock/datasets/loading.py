"""A data set by its name, as a command line gives it."""

from pathlib import Path

import numpy

from oarlock.datasets import digits, mnist
from oarlock.errors import DataError

__all__ = ["load"]

_SETS = {"digits": digits, "mnist": mnist}
_PARTS = ("train", "test", "all")


def load(name: str, *, seed: int = 0) -> dict[str, numpy.ndarray]:
    """The arrays of `digits:train`, `digits:test`, `digits:all`, of `mnist` likewise, or of a `.npz` file. Raises DataError.

    `seed` draws the parts. A file is read without running anything that it holds.
    """
    if name.endswith(".npz"):
        return _load_arrays(Path(name))
    stem, _, part = name.partition(":")
    if stem not in _SETS or part not in ("", *_PARTS):
        raise DataError(
            f'there is no data set "{name}"',
            contract=f"one of {', '.join(f'{known}:{part}' for known in _SETS for part in _PARTS)}, or a .npz file of arrays",
        )
    if part in ("", "all"):
        return _SETS[stem].load()
    train, test = _SETS[stem].split(seed=seed)
    return train if part == "train" else test


def _load_arrays(path: Path) -> dict[str, numpy.ndarray]:
    try:
        with numpy.load(path, allow_pickle=False) as arrays:
            return dict(arrays)
    except FileNotFoundError:
        raise DataError(f'there is no file "{path}"') from None
    except (ValueError, OSError) as error:
        raise DataError(f'"{path.name}" is not a file of plain arrays', given=[str(error).splitlines()[0]]) from error
