"""Random compositions of all operators; CONTRIBUTING.md gives the command for thousands."""

import pytest
from compositions.__main__ import run
from compositions.making import make

import oarlock as ol
from oarlock.passes.pipeline import PASSES

PARTS, EACH = 4, 20


@pytest.mark.mission("B50")
@pytest.mark.parametrize("part", range(PARTS))
def test_passes_and_plans_give_what_the_interpreter_gives(part):
    outcomes, operators, failures = run(0, range(part * EACH, (part + 1) * EACH))
    assert not failures, "\n".join(failures)
    assert outcomes["agree"] >= EACH // 5
    assert len(operators) > 40


def test_a_composition_follows_from_its_seed_and_number():
    first, again, other = make(3, 5), make(3, 5), make(4, 5)
    assert first.program.to_bytes(source=False) == again.program.to_bytes(source=False)
    assert first.program.to_bytes(source=False) != other.program.to_bytes(source=False)
    assert {name: value.tobytes() for name, value in first.feed.items()} == {name: value.tobytes() for name, value in again.feed.items()}


def test_a_pass_that_goes_wrong_is_noticed(monkeypatch):
    def compute_in_reverse(program: ol.Program, catalogue: object) -> int:
        for op in program.main.ops:
            if op.type in ("subtract", "divide", "greater", "less") and op.inputs["x"][0].shape == op.inputs["y"][0].shape:
                op.inputs = {"x": op.inputs["y"], "y": op.inputs["x"]}
        return 0

    monkeypatch.setitem(PASSES, "canonicalize", compute_in_reverse)
    _, _, failures = run(0, range(60))
    assert failures
    assert all("values: " in failure for failure in failures)
