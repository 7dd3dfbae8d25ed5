"""Fixtures that every test may ask for: files of expected text, compared whole and rewritten on demand."""

import gc
import os
import signal
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from pathlib import Path

import pytest
import torch
from short_suite import select_share

from oarlock.ir import Program, Var
from oarlock.passes.pipeline import optimize
from oarlock.registry.catalogue import Catalogue
from oarlock.registry.type_check import require_legal

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite tests/golden with the current texts; review the diff",
    )
    parser.addoption("--short", action="store_true", help="run the short suite: a share of each file, as `make test` does")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that the short suite does not have."""
    if config.getoption("--short"):
        kept = select_share(items)
        config.hook.pytest_deselected(items=[*{*items} - {*kept}])
        items[:] = kept


def pytest_configure(config: pytest.Config) -> None:
    """Set up a process of the tests, whatever started it.

    Where several processes run the tests, each has one thread, and so have those that it starts, unless the environment says more. An
    interrupt is heard: a shell has what it runs in the background ignore it, and so would whatever the tests start. What they start keeps
    its byte code, as Python does unless it is told not to: each of hundreds would take a second to compile Oarlock.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(config, "workerinput") and "OMP_NUM_THREADS" not in os.environ:
        os.environ["OMP_NUM_THREADS"] = "1"
        torch.set_num_threads(1)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Tens of thousands of tests stay until the end: so no search for garbage has to look at them, for half a second each."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str | Path, str], None]:
    """Compare a text with the whole of a file in tests/golden, or of one by its whole path."""

    def compare(name: str | Path, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.write_text(text, encoding="utf-8", newline="\n")
        assert text == path.read_text(encoding="utf-8"), f"{name} differs; --update-golden rewrites it"

    return compare


@pytest.fixture(autouse=True, scope="session")
def _variables_are_compared_by_identity() -> Iterator[None]:
    """Fail where code of the package compares variables by `==`, or searches a list for one by `in`, in whatever test."""

    def refuse(x: Var, y: object) -> bool:
        raise AssertionError(f"code of the package compares {x!r} by == with {y!r:.80}; `is`, is_among and are_same find variables")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("oarlock.op.composed.equality.compare_identities", refuse)
        yield


@pytest.fixture(autouse=True, scope="session")
def _no_terminal() -> Iterator[None]:
    """Printed text does not depend on the colours that the machine of the tests asks for."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(autouse=True, scope="session")
def _legal_plans() -> Iterator[None]:
    """The program is legal, whatever is planned, after all passes; in the tests of passes, after each."""

    def optimize_legally(program: Program, wanted: Iterable[Var], catalogue: Catalogue, *passes: Collection[str]) -> dict[str, int]:
        applied = optimize(program, wanted, catalogue, *passes)
        require_legal(program, catalogue)
        return applied

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("oarlock.runtime.preparation.optimize", optimize_legally)
        yield
