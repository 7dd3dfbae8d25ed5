"""Random programs of nested loops and branches: values, gradients and files agree with what has nothing in common with them.

CONTRIBUTING.md gives the command for 10,000 of them.
"""

import ast
import json
import os
from collections import Counter
from pathlib import Path

import numpy
import pytest
import torch
from filelock import FileLock
from generated import evaluator
from generated.__main__ import ELSEWHERE, run
from generated.checking import DisagreementError, check
from generated.evaluator import evaluate
from generated.keeping import KEPT, read_case, write_case
from generated.making import Case, from_choices, make
from generated.shrinking import failure_of, shrink
from generated.training import FIRED

import oarlock as ol
from oarlock.passes.pipeline import PASSES

PROGRAMS = 96
PARTS = 8  # which processes share
CONSTRUCTS = ("rnn", "while", "if_else", "switch")
KEPT_CASES = sorted(KEPT.glob("*.json"))


@pytest.fixture(scope="session")
def shared(tmp_path_factory) -> Path:
    """A folder that all processes of this run of the tests share."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


def features_of(part: int, shared: Path) -> Counter[str]:
    """How many of a part of the programs have each feature; each of them is checked on the way, by the first process that asks."""
    found = shared / f"generated_{part}.json"
    with FileLock(f"{found}.lock"):
        if not found.exists():
            numbers = range(part * PROGRAMS // PARTS, (part + 1) * PROGRAMS // PARTS)
            (shared / "kept").mkdir(exist_ok=True)
            found.write_text(json.dumps(run(0, numbers, shared / "kept", max_failures=3)))
    counts, failures = json.loads(found.read_text())
    assert not failures, "\n".join(failures)
    return Counter(counts)


@pytest.fixture(scope="module")
def features(shared) -> Counter[str]:
    return sum((features_of(part, shared) for part in range(PARTS)), Counter())


@pytest.mark.mission("B49", "B50")
@pytest.mark.parametrize("part", range(PARTS))
def test_generated_programs_agree_with_another_evaluator_with_differences_and_with_their_files(part, shared):
    counts = features_of(part, shared)
    assert sum(counts[kind] for kind in ("control flow", "straight line")) == PROGRAMS // PARTS


def test_the_parts_are_all_the_generated_programs(features):
    assert sum(features[kind] for kind in ("control flow", "straight line")) == PROGRAMS


def test_generated_programs_are_as_varied_as_was_agreed(features):
    least = {
        "control flow": 40, "depth 2": 15, "depth 3": 3, "shadowed": 10, "used 3 times or more": 10, "stop_gradient": 10,
        "gradients of gradients": 5, "weighed target": 10, "while: no trip": 5, "if_else: all true": 4, "if_else: all false": 5,
        "switch: condition in a block": 5, "dropout in a block": 10, "what would raise": 5, "memories in turn": 3,
        "if_else: poisoned input": 2, "constant in a block": 8, "bags of ragged ids of 2 dimensions": 2,
    }  # fmt: skip
    assert {name: features[name] for name, percent in least.items() if 100 * features[name] < percent * PROGRAMS} == {}
    assert 100 * (features["2 targets"] + features["3 targets"]) >= 10 * PROGRAMS
    pairs = {f"{inner} in {outer}" for outer in CONSTRUCTS for inner in CONSTRUCTS}
    assert pairs - features.keys() == set()


def test_every_pass_has_something_to_do_in_them(features):
    assert [name for name in PASSES if not features[FIRED + name]] == list(ELSEWHERE)


def test_edges_are_met_by_every_fifth_program():
    edges = {"t is 0", "t is 1", "n is 0", "n is 1", "while: no trip", "if_else: all true", "if_else: all false"}
    met = sum(bool(make(0, number).features & edges) for number in range(100))
    assert met >= 20


@pytest.mark.parametrize("path", KEPT_CASES, ids=[path.stem for path in KEPT_CASES])
def test_what_once_failed_does_not_any_more(path):
    check(read_case(path))


# The tests of the tests


def test_the_evaluator_shares_nothing_with_the_framework_but_the_file_format():
    tree = ast.parse(Path(evaluator.__file__).read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {f"{node.module}.{alias.name}" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    ours = {name for name in imported if name.split(".")[0] not in ("ast", "collections", "dataclasses", "itertools", "re")}
    assert ours == {"torch", "numpy", "oarlock.proto.program_pb2"}


def test_the_evaluator_agrees_with_what_can_be_worked_out_by_hand():
    with ol.Program() as program:
        x = ol.layer.data("x", [], dtype="float64", batch="t")
        w = ol.layer.data("w", [], dtype="float64", batch=None)
        rnn = ol.rnn()
        with rnn.step():
            product = rnn.memory(init=w)
            rnn.update_memory(product, rnn.previous_memory(product) * rnn.step_input(x))
            rnn.output(rnn.previous_memory(product))
        rnn()
        cost = rnn.final_memory(product)
    arrays = {"x": numpy.array([2.0, 3.0, 5.0]), "w": numpy.array(7.0)}
    found = evaluate(program.to_bytes(), arrays, {cost.name: numpy.ones(())}, ["x", "w"])
    assert found.values[cost.name].item() == 210.0
    assert [gradient.tolist() for gradient in found.gradients.values()] == [[105.0, 70.0, 42.0], 30.0]
    assert found.trace == [("trips", 3)]


def test_a_program_follows_from_its_seed_and_number():
    first, again, other = make(3, 5), make(3, 5), make(4, 5)
    assert first.program.to_bytes(source=False) == again.program.to_bytes(source=False)
    assert first.program.to_bytes(source=False) != other.program.to_bytes(source=False)
    assert from_choices(first.choices).program.to_bytes(source=False) == first.program.to_bytes(source=False)
    assert {name: array.tolist() for name, array in first.arrays.items()} == {name: array.tolist() for name, array in again.arrays.items()}


def _wrong_tanh(x: torch.Tensor) -> torch.Tensor:
    """The tanh of x; its derivative is a hundredth too large."""
    return torch.tanh(x) + 0.01 * (torch.tanh(x) - torch.tanh(x).detach())


def test_a_program_that_cannot_be_made_has_failed(monkeypatch, tmp_path):
    def fail(seed: int, number: int) -> Case:
        raise ol.ShapeError("no such shape")

    monkeypatch.setattr("generated.__main__.make", fail)
    features, failures = run(0, range(3), tmp_path, max_failures=2)
    assert failures == [f"--seed 0 --only {number}: making: ShapeError: no such shape" for number in range(2)]
    assert not features


def test_the_evaluator_drops_what_masks_say_in_each_trip():
    with ol.Program() as program:
        x = ol.layer.data("x", [2], dtype="float64", batch="t")
        rnn = ol.rnn()
        with rnn.step():
            rnn.output(ol.op.dropout(rnn.step_input(x), rate=0.5))
        y = rnn()
    (op,) = program.blocks[1].ops
    name = op.outputs["mask"][0].name
    masks = {f"main/rnn_0/{trip}/{name}": numpy.array(mask) for trip, mask in enumerate(([2.0, 0.0], [0.0, 2.0]))}
    arrays = {"x": numpy.array([[1.0, 2.0], [3.0, 4.0]])}
    found = evaluate(program.to_bytes(), arrays, {y.name: numpy.ones((2, 2))}, ["x"], masks=masks)
    assert found.values[y.name].tolist() == [[2.0, 0.0], [0.0, 8.0]]
    assert found.gradients["x"].tolist() == [[2.0, 0.0], [0.0, 2.0]]


def test_a_program_that_fails_is_made_small_and_kept_and_read_again(monkeypatch, tmp_path):
    monkeypatch.setitem(evaluator.OPERATORS, "tanh", _wrong_tanh)
    cases = (make(0, number) for number in range(20))
    case = next(case for case in cases if len(case.program.main.ops) > 20 and isinstance(failure_of(case), DisagreementError))
    smaller, error = shrink(case, seconds=10)
    assert isinstance(error, DisagreementError)
    assert error.check == "gradients"
    assert sum(len(block.ops) for block in smaller.program.blocks) <= 5
    path = tmp_path / "kept.json"
    write_case(smaller, path, str(error))
    assert json.loads(path.read_text())["failure"][0].startswith("gradients: of ")
    with pytest.raises(DisagreementError, match="gradients: of "):
        check(read_case(path))
    monkeypatch.undo()
    check(read_case(path))


def test_what_a_variable_stops_is_not_called_a_difference():
    with_stops = [case for case in (make(0, number) for number in range(40)) if "stop_gradient" in case.features]
    assert any("differences without stops" in check(case) for case in with_stops)
