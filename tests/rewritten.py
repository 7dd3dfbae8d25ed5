"""Programs after passes: their text, and that they stay legal and compute the same."""

from collections.abc import Mapping, Sequence

import numpy
from rounding import require_as_interpreted

import oarlock as ol
from oarlock.passes.pipeline import optimize
from oarlock.registry.catalogue import standard

__all__ = ["require_same_values", "rewritten"]


def rewritten(program: ol.Program, wanted: Sequence[ol.Var], *passes: str) -> tuple[list[str], dict[str, int]]:
    """The ops of a copy after `passes`, one a line, and how often each pass applied. The copy is legal, and a file can hold it."""
    copy = program.clone()
    applied = optimize(copy, [copy.main.vars[var.name] for var in wanted], standard, passes, checked=True)
    text = copy.to_text(source=False)
    assert ol.parse_program(text).to_text(source=False) == text
    lines = [line.strip() for line in text.splitlines() if not line.startswith("target ")]
    return [line for line in lines if " = " in line or "<-" in line or line.startswith("block ")][1:], applied


def require_same_values(
    program: ol.Program,
    feed: Mapping[str, object],
    fetch: Sequence[ol.Var],
    *passes: str,
    tolerance: float = 0.0,
) -> None:
    """A plan after `passes` gives the interpreter's values: the same bits, but where the program rounds by place, or within `tolerance`."""
    scope = ol.init(program, ol.Scope())
    expected = ol.Executor(interpret=True).eval(program, list(fetch), feed, scope=scope)
    actual = ol.Executor(passes=passes).eval(program, list(fetch), feed, scope=scope)
    if not tolerance:
        names = [var.name for var in fetch]
        require_as_interpreted(program, dict(zip(names, actual, strict=True)), dict(zip(names, expected, strict=True)))
        return
    for one, other in zip(actual, expected, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        numpy.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True)
