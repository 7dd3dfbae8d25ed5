"""The messages of `oarlock serve`, whole."""

import sys

import pytest

import oarlock as ol
from oarlock.serving.extra import require_extra


def test_a_library_that_is_not_installed(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "starlette"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(ol.ArgumentError) as raised:
        require_extra("starlette.routing")
    assert str(raised.value) == (
        'a server needs starlette, which is not installed\n  Try: pip install "oarlock[serve]"    (oarlock explain ArgumentError)'
    )
