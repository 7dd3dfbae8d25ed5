"""The short suite, which `make test` runs: a share of the tests of each file, and every test that shows a row of the mission.

Most tests are one check of one operator, layer, pass or command. All of them take a quarter of an hour on two cores; a change is tested by
those of its folder, `make test-all` runs everything.
"""

import math
import zlib
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

__all__ = ["select_share"]

SHARES = {
    "": 2,
    "architecture": 1,
    "backend": 4,
    "benchmarks": 4,
    "cli": 7,
    "data": 4,
    "examples": 4,
    "interop": 6,
    "io": 5,
    "layer": 3,
    "messages": 1,
    "op": 8,
    "optimizer": 4,
    "passes": 8,
    "runtime": 5,
    "serving": 4,
    "training": 6,
}
"""By folder of `tests/`: one of how many tests of each file is in the short suite. The folder "" stands for all others."""

TESTS = Path(__file__).parent


def select_share(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Return the items of the short suite, in order: of each file, one in so many, at least one, the same on every machine."""
    items = list(items)
    by_file: dict[Path, list[pytest.Item]] = defaultdict(list)
    for item in items:
        by_file[item.path].append(item)
    kept = {item for item in items if item.get_closest_marker("mission")}
    for path, found in by_file.items():
        folder = path.relative_to(TESTS).parts[0]
        count = math.ceil(len(found) / SHARES.get(folder, SHARES[""]))
        kept.update(sorted(found, key=lambda item: zlib.crc32(item.nodeid.encode()))[:count])
    return [item for item in items if item in kept]
