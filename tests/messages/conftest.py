"""Fixtures of the tests of messages."""

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from user_scripts import last_words


@pytest.fixture
def require(tmp_path: Path) -> Callable[[str, str], None]:
    """Compare the whole of the text that the error of a script has."""

    def compare(script: str, expected: str) -> None:
        assert last_words(script, tmp_path) == textwrap.dedent(expected).lstrip("\n")

    return compare
