"""What every test may ask for: files of expected text, compared whole and rewritten on demand."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from oarlock.passes.optimizing import optimize

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden with what is there now; review the diff")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with the whole of a file in tests/golden."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.write_text(text, encoding="utf-8", newline="\n")
        assert text == path.read_text(encoding="utf-8"), f"{name} differs; --update-golden rewrites it"

    return compare


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is printed does not depend on what the machine that runs the tests thinks of colours."""
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def _checked_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is planned, the program is legal after each pass."""
    monkeypatch.setattr("oarlock.runtime.prepared.optimize", partial(optimize, checked=True))
