"""Every operator keeps the law of rows, which `passes/parallel/rules.py` states; the trials are in `row_law`."""

from random import Random

import pytest
from row_law.law import BrokenLawError, hold_to_workers, keep_row_law
from row_law.running import OPERATORS, Outcome, read_unreached, targets_of, try_operator
from row_law.trials import Trial, layouts_with_rows, make

from oarlock.passes.parallel import analysis
from oarlock.passes.parallel.placement import PARTIAL, REPLICATED, Decision, Placement, sharded
from oarlock.registry import standard

PARTS = 40
GROUPS = [OPERATORS[number::PARTS] for number in range(PARTS)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", range(PARTS))
def test_rows_of_every_operator_are_where_is_said(number):
    outcome, unreached = Outcome(), set()
    for operator in GROUPS[number]:
        targets = targets_of(operator)
        unreached |= {f"{operator.type}.{slot}.{axis}" for _, slot, axis in targets if not layouts_with_rows(operator, slot, axis)}
        reachable = [target for target in targets if layouts_with_rows(*target)]
        if reachable:
            try_operator(Random(operator.type).choice(reachable), 0, outcome)
    assert not outcome.failures, "\n".join(outcome.failures)
    names = {operator.type for operator in GROUPS[number]}
    assert unreached == {each for each in read_unreached() if each.partition(".")[0] in names}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", range(PARTS))
def test_each_axis_of_each_argument_has_rows(number):
    outcome = Outcome()
    for operator in GROUPS[number]:
        for target in targets_of(operator):
            for draw in (1, 2):
                try_operator(target, draw, outcome)
    assert not outcome.failures, "\n".join(outcome.failures)


def trial_of(type: str, slot: str, **attributes: object) -> Trial:
    """A trial with some rows and these attributes, on two workers at least, where every argument that has rows is sharded."""
    for number in range(200):
        trial = make(standard.get(type), Random(number), (slot, 0))
        if trial is None or not 0 < trial.cuts[1] < trial.count or not attributes.items() <= dict(trial.layout.attributes).items():
            continue
        if all(trial.placements[place] == sharded() for place, shape in trial.layout.shapes.items() if "n" in shape):
            return trial
    raise AssertionError("no such trial")


def message(trial: Trial, monkeypatch, gives: Placement) -> list[str]:
    """The errors of both ways to try, for a decision that places the results elsewhere and leaves the inputs where they are."""
    inputs = {var.name: placement for var, placement in trial.placed.items()}

    def decide(op, *_) -> Decision:
        return Decision({var: inputs[var.name] for var in op.reads}, dict.fromkeys(op.writes, gives))

    monkeypatch.setattr(analysis, "decide", decide)
    found = []
    for hold in (keep_row_law, hold_to_workers):
        with pytest.raises(BrokenLawError) as raised:
            hold(trial)
        found.append(str(raised.value).partition(":")[0])
    return found


def test_a_row_that_reaches_others_is_noticed(monkeypatch):
    trial = trial_of("softmax", "x", axis=0)
    assert message(trial, monkeypatch, sharded()) == [
        "softmax_0 has other values in rows beside 0, which alone was changed",
        "softmax_0 is not what the workers have of it, one after another",
    ]


def test_a_mean_that_is_taken_for_a_sum_is_noticed(monkeypatch):
    trial = trial_of("dot", "x", mean=True)
    assert message(trial, monkeypatch, PARTIAL) == [
        "dot_0 is not the sum of what it is of each row",
        "dot_0 is partial, and a worker fetches another value",
    ]


def test_a_value_of_rows_that_is_taken_for_everybodys_is_noticed(monkeypatch):
    trial = trial_of("reduce_sum", "x", axis=0)
    assert message(trial, monkeypatch, REPLICATED) == [
        "reduce_sum_0 is replicated, and changes with row 0",
        "reduce_sum_0 is replicated, and a worker fetches another value",
    ]


@pytest.mark.parametrize("number", [200, 206])
def test_positions_that_were_fed_count_the_elements_of_all_workers(number):
    outcome = Outcome()
    (operator,) = [each for each in OPERATORS if each.type == "sequence_max_dx_ddy"]
    assert try_operator((operator, "at", 0), number, outcome)
    assert outcome.failures == []
