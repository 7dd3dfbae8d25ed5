"""Plans that the tests of passes make are checked after each pass."""

from collections.abc import Iterator
from functools import partial

import pytest

from oarlock.passes.pipeline import optimize


@pytest.fixture(autouse=True, scope="module")
def _legal_after_each_pass() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("oarlock.runtime.preparation.optimize", partial(optimize, checked=True))
        yield
