"""Random programs whose sizes are only maybe equal, on many sizes: NumPy's broadcasting, or a ShapeError, by every executor."""

from collections import Counter
from random import Random

import pytest
from generated.evaluator import evaluate
from generated.making import make, resized
from generated.running import DisagreementError
from generated.sizes import check_sizes
from generated.writing import OTHER

SEED = 20
SOME = (10, 12)


def _check(numbers) -> Counter[str]:
    return Counter(outcome for number in numbers for outcome in check_sizes(make(SEED, number, maybe_equal=True), Random(number)))


@pytest.mark.parametrize("number", SOME)
def test_a_program_runs_on_sizes_that_fit_and_refuses_those_that_do_not(number):
    assert _check([number])


@pytest.mark.slow
def test_forty_programs_run_on_sizes_that_fit_and_refuse_those_that_do_not():
    outcomes = _check(range(40))
    assert min(outcomes[each] for each in ("refused", "fits", "broadcast")) > 5


def test_the_statements_are_of_every_kind_of_size():
    features = Counter(feature for number in range(60) for feature in make(SEED, number, maybe_equal=True).features)
    for size in ("1", "2", "3", "another symbol", "values"):
        assert features[f"a size beside {size}"] > 5
    for name in ("add", "multiply", "subtract", "sum", "concat", "matmul", "linear", "layer_norm", "attention"):
        assert features[f"{name} of sizes that may be equal"] > 0, name
    assert features["a parameter beside a size"] > 20
    assert features["sizes that may be equal in a block"] > 10
    assert features["sizes refused when written"] > 10


def test_other_numbers_for_symbols_leave_the_program_and_its_parameters():
    case = make(SEED, 4, maybe_equal=True)
    other = resized(case, dict.fromkeys(case.sizes, 1))
    assert other.program.to_bytes(source=False) == case.program.to_bytes(source=False)
    assert {other.sizes[symbol] for symbol in ("t", "n", "m", OTHER)} == {1}
    for var in case.program.parameters():
        assert (other.arrays[var.name] == case.arrays[var.name]).all()
    assert evaluate(other.program.to_bytes(source=False), other.arrays, refusing=True).values


@pytest.mark.parametrize(
    ("place", "number"), [("oarlock.runtime.interpreter.check_sizes", 2), ("oarlock.runtime.preparation.find_size_checks", 1)]
)
def test_executors_that_do_not_check_sizes_are_seen(place, number, monkeypatch):
    monkeypatch.setattr(place, lambda *_: {})
    with pytest.raises(DisagreementError):
        _check([number])
