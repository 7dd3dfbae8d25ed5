"""Commands run in this process."""

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from oarlock.cli.main import run


@dataclass
class Ended:
    """How a command ended."""

    status: int
    output: str
    error: str


Command = Callable[..., Ended]


@pytest.fixture
def oarlock(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command as `oarlock ...` in this process; anything but an exit status is a traceback, and fails the test."""
    monkeypatch.setenv("COLUMNS", "120")

    def command(*arguments: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["oarlock", *map(str, arguments)])
        try:
            run()
            status = 0
        except SystemExit as exit:
            status = 0 if exit.code is None else exit.code
        captured = capsys.readouterr()
        return Ended(status, *(re.sub(r"\x1b\[[0-9;]*m", "", text) for text in captured))

    return command


@pytest.fixture
def prints(oarlock: Command) -> Callable[..., str]:
    """The output of a command that succeeds."""

    def output(*arguments: object) -> str:
        ended = oarlock(*arguments)
        assert (ended.status, ended.error) == (0, "")
        return ended.output

    return output


@pytest.fixture
def refuses(oarlock: Command) -> Callable[..., str]:
    """The message of a command that ends with one of our errors."""

    def error(*arguments: object) -> str:
        ended = oarlock(*arguments)
        assert ended.status == 1
        assert "Traceback" not in ended.error
        return ended.error.rstrip("\n")

    return error
