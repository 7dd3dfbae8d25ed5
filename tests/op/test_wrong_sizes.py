"""No kernel sees a size that its operator does not take, wherever the size becomes known; and the sweep finds what it looks for."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from wrong_sizes import judging
from wrong_sizes.children import Running, Tally, count, run
from wrong_sizes.executing import EXECUTORS, Outcome
from wrong_sizes.judging import KINDS, judge
from wrong_sizes.trial import Trial, Written, draw, write
from wrong_sizes.uses import OPERATORS, positions, unreachable

import oarlock as ol

PART = 200  # trials in CI: of 20,000, which the command runs


@pytest.fixture(scope="module")
def tally(tmp_path_factory) -> Tally:
    return run(0, range(PART), tmp_path_factory.mktemp("reports"))


def test_every_axis_of_every_input_of_every_operator_is_tried():
    every = {axis for axis in positions() if axis.operator in OPERATORS}
    assert set(unreachable().values()) == {"a number: it has no axis"}
    assert {draw(0, number).axis for number in range(5 * len(every) // 4 + 5)} >= every
    without = {name for name, operator in OPERATORS.items() if not any(slot.axes != () for slot in operator.signature.inputs)}
    assert {axis.operator for axis in every} >= set(OPERATORS) - without


def test_no_size_that_does_not_fit_reaches_a_kernel(tally):
    assert [f"--trial {each.number} {each.name}: {each.kind}: {each.detail}" for each in tally.findings] == []


def test_some_trials_run_and_some_are_refused_in_the_run_and_when_written(tally):
    assert tally.trials == PART
    assert min(tally.outcomes[each] for each in ("ran", "refused", "refused when written")) > 10


def _trial(*, change: str = "longer", source: str = "fed") -> Trial:
    """A trial of the second argument of `add`."""
    numbers = (draw(0, number, "add") for number in range(1000))
    found = next(each for each in numbers if each.axis.slot == "y" and each.position.use.name == "add-0")
    return replace(found, change=change, source=source, others="numbers", training=False)


def _judged(monkeypatch: pytest.MonkeyPatch, outcome_of: Callable[[str, Written], Outcome], trial: Trial) -> dict[str, str]:
    """The findings of a trial, by kind, if its runs end as `outcome_of` says."""
    monkeypatch.setattr(judging, "run_by", lambda name, written, **_: outcome_of(name, written))
    return dict(judge(trial, 85, lambda _: None).findings)


def _ran(value: float = 1.0, shape: tuple[int, ...] = (3,)) -> Outcome:
    return Outcome([torch.full(shape, value, dtype=torch.float64)])


def _refused(error: str = "ShapeError", *, ours: bool = True) -> Outcome:
    return Outcome(error=error, message="no", op="add", ours=ours)


BAD: dict[str, Callable[[str, Written], Outcome]] = {
    "foreign error": lambda name, written: _refused("IndexError", ours=False),
    "executors differ": lambda name, written: _ran(2.0) if name == "plan" else _ran(),
    "kinds of errors differ": lambda name, written: _refused("FeedError" if name == "plan" else "ShapeError"),
    "limits refuse": lambda name, written: _refused() if name == "limits" else _ran(),
    "known sizes refuse": lambda name, written: _ran(),
    "undeclared shape": lambda name, written: _ran(shape=(3, 7)),
    "KernelError": lambda name, written: _refused("KernelError"),
}


@pytest.mark.parametrize("kind", BAD)
def test_the_sweep_finds(kind: str, monkeypatch):
    assert kind in _judged(monkeypatch, BAD[kind], _trial())


def test_the_sweep_finds_sizes_that_fit_and_are_refused(monkeypatch):
    def outcome_of(name: str, written: Written) -> Outcome:
        return _ran() if not any(isinstance(size, str) for var in written.program.main.inputs for size in var.shape or ()) else _refused()

    assert "refused though it fits" in _judged(monkeypatch, outcome_of, _trial(change="none"))


def test_the_sweep_finds_another_result_than_that_of_known_sizes(monkeypatch):
    def outcome_of(name: str, written: Written) -> Outcome:
        return _ran(float(any(isinstance(size, str) for var in written.program.main.inputs for size in var.shape or ())))

    assert "known sizes differ" in _judged(monkeypatch, outcome_of, _trial(change="none"))


def test_the_sweep_finds_a_parameter_of_another_shape(monkeypatch):
    def outcome_of(name: str, written: Written) -> Outcome:
        return replace(_ran(), state={var.name: torch.zeros(9, 9) for var in written.program.persistables()})

    assert "parameter changed" in _judged(monkeypatch, outcome_of, _trial(change="none", source="parameter"))


def _reports(folder: Path, numbers: list[int], statuses: tuple[int, int], digests: tuple[str, str]) -> list[Running]:
    """Two children that ran trials, the last of which they did not end unless their status is 0."""
    found = []
    for number, (status, digest) in enumerate(zip(statuses, digests, strict=True)):
        report = folder / str(number)
        lines: list[list[object]] = []
        for trial in numbers:
            lines.append(["trial", {"number": trial, "name": "a trial", "axis": ["add", "x", "*#s"], "pid": 0}])
            lines.append(["begin", {"what": "plan"}])
            if not status or trial != numbers[-1]:
                lines.append(["judged", {"outcome": "ran", "findings": [], "digests": {"plan": digest}, "text": "the program"}])
        report.write_text("".join(json.dumps(line) + "\n" for line in lines))
        found.append(Running(report, numbers, status))
    return found


def test_a_signal_is_that_of_the_trial_that_dies_alone(tmp_path):
    tally = Tally(0)
    assert count(tally, _reports(tmp_path, [1, 2, 3], (-11, 0), ("a", "a"))) == [[1], [2], [3]]
    assert count(tally, _reports(tmp_path, [1], (0, 0), ("a", "a"))) == []
    assert count(tally, _reports(tmp_path, [2], (0, -11), ("a", "a"))) == []
    assert [(each.kind, each.number, each.detail) for each in tally.findings] == [("signal", 2, "SIGSEGV in: plan")]


def test_a_result_that_depends_on_the_filling_is_found(tmp_path):
    tally = Tally(0)
    count(tally, _reports(tmp_path, [1, 2], (0, 0), ("a", "b")))
    assert [(each.kind, each.detail, each.text) for each in tally.findings] == [("filling", "by plan", "the program")] * 2


def test_every_kind_of_finding_has_a_test():
    others = {"known sizes differ", "parameter changed", "refused though it fits", "signal", "filling"}
    rare = {"PyTorch differs", "KernelError of known sizes", "foreign error when written"}  # by the comparisons of the others
    assert {*BAD, *others, *rare} == set(KINDS)


@pytest.mark.parametrize("source", ["fed", "values", "parameter"])
def test_a_changed_size_is_where_the_trial_says(source: str):
    written = write(replace(_trial(source=source), others="symbols" if source == "parameter" else "numbers"))
    (op,) = (op for op in written.program.main.ops if op.type == "add")
    (y,) = op.inputs["y"]
    assert y.shape is not None
    assert y.persistable == (source == "parameter")
    assert (y.op is not None and y.op.type == "gather") == (source == "values")
    assert isinstance(y.shape[-1], int) == (source == "parameter")


def test_the_executors_are_the_five_ways_to_run_a_program():
    assert EXECUTORS == ("interpreter", "plan", "plan without passes", "limits", "prepared step")
    assert ol.Executor(poison=85).poison == 85


@pytest.mark.parametrize("side", ["yes", "no"])
@pytest.mark.parametrize("options", [{}, {"passes": ()}, {"interpret": True}], ids=str)
def test_the_gradient_of_a_merge_refuses_as_many_rows_as_were_not_merged(side, options):
    with ol.Program() as program:
        condition, dy = ol.layer.data("condition", ["k"], "bool", batch=None), ol.layer.data("dy", ["k"], "float64", batch=None)
        rows = {f"{side}_shape": ol.layer.data("rows", ["p"], "float64", batch=None)}
        dx = OPERATORS[f"merge_d{side}"](condition=condition, dy=dy, **rows)
    feed = {"condition": torch.tensor([True, False]), "dy": torch.ones(2, dtype=torch.float64), "rows": torch.zeros(2, dtype=torch.float64)}
    with pytest.raises(ol.KernelError, match="the condition selects 1 row, but the shape has 2"):
        ol.Executor(**options).run(program, feed, [dx], scope=ol.Scope())


def test_the_gradient_of_a_padding_takes_only_what_the_padding_returns():
    with ol.Program(), pytest.raises(ol.ShapeError, match=r"pad_dx: .*\[2, 3\].*\[2, 4\]"):
        dy, x = (ol.layer.data(name, [2, size], "float64", batch=None) for name, size in (("dy", 3), ("x", 3)))
        OPERATORS["pad_dx"](dy=dy, x_shape=x, before=(1, -1), after=(-1, 2))
