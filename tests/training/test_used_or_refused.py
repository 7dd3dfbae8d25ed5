"""An optimizer, a rate, a schedule, a program or a state that is given where a run is, is used, or refused by name; never ignored."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from classifiers import Classifier, small_classifier, small_rows

import oarlock as ol
from oarlock.optimizer import schedule

ROWS = small_rows(20)
OPTIONS = {"epochs": 2, "batch_size": 5, "progress": False}

OPTIMIZERS: dict[str, Callable[[], ol.optimizer.Optimizer | None]] = {
    "none": lambda: None,
    "a rate": lambda: ol.optimizer.SGD(0.1),
    "another rate": lambda: ol.optimizer.SGD(0.5),
    "a schedule": lambda: ol.optimizer.SGD(schedule.ExponentialDecay(0.1, 0.9)),
    "another schedule": lambda: ol.optimizer.SGD(schedule.ExponentialDecay(0.1, 0.5)),
    "momentum": lambda: ol.optimizer.Momentum(0.1),
    "adam": lambda: ol.optimizer.Adam(0.1),
    "decay": lambda: ol.optimizer.SGD(0.1, weight_decay=0.1),
    "clipping": lambda: ol.optimizer.SGD(0.1, clip=ol.optimizer.ClipByNorm(1.0)),
    "accumulation": lambda: ol.optimizer.SGD(0.1, accumulate=2),
}


def train(small: Classifier | None = None, **options) -> ol.TrainingResult:
    given = {"optimizer": ol.optimizer.SGD(0.1)} | OPTIONS | options
    return ol.train((small or small_classifier()).cost, ROWS, **given)


def seeded() -> Classifier:
    small = small_classifier()
    small.cost.block.program.seed = 5
    return small


OTHERS: dict[str, Callable[[], tuple[Classifier, dict]]] = {
    "another model": lambda: (small_classifier(dropout=0.5), {}),
    "another seed": lambda: (seeded(), {}),
    "another target": lambda: ((small := small_classifier()), {"show": {"accuracy": small.accuracy}}),
}


@pytest.mark.parametrize("first", ["none", "a rate", "a schedule", "adam"])
def test_an_optimizer_for_a_scope_or_a_folder_that_was_used_is_the_same_one_or_refused(first, tmp_path):
    scope = ol.Scope()
    train(optimizer=OPTIMIZERS[first](), scope=scope)
    train(optimizer=OPTIMIZERS[first](), run=tmp_path / "run")
    before = {name: scope[name].clone() for name in scope}
    for second, make in OPTIMIZERS.items():
        if second == first:
            continue
        with pytest.raises(ol.ScopeError, match="^the scope holds the state of another program: .*@STEP"):
            train(optimizer=make(), scope=scope, epochs=3)
        with pytest.raises(ol.ProgramError, match="contains a run of another program") as raised:
            train(optimizer=make(), run=tmp_path / "run", epochs=3)
        assert raised.value.given, second
    assert all(torch.equal(scope[name], before[name]) for name in before)
    assert train(optimizer=OPTIMIZERS[first](), scope=scope, epochs=3).steps == 12
    assert train(optimizer=OPTIMIZERS[first](), run=tmp_path / "run", epochs=3).steps == 12


@pytest.mark.parametrize("other", OTHERS)
def test_another_program_for_a_scope_or_a_folder_that_was_used_is_refused(other, tmp_path):
    scope = ol.Scope()
    train(scope=scope)
    train(run=tmp_path / "run")
    small, options = OTHERS[other]()
    with pytest.raises(ol.ScopeError, match="^the scope holds the state of another program: "):
        train(small, scope=scope, epochs=3, **options)
    with pytest.raises(ol.ProgramError, match="contains a run of another program") as raised:
        train(small, run=tmp_path / "run", epochs=3, **options)
    assert raised.value.given


def test_the_difference_of_a_rate_is_shown_line_by_line(tmp_path):
    train(run=tmp_path / "run")
    with pytest.raises(ol.ProgramError) as raised:
        train(optimizer=ol.optimizer.SGD(0.5), run=tmp_path / "run")
    assert str(raised.value).splitlines() == [
        f'"{tmp_path / "run"}" contains a run of another program',
        "      ~ main: state sgd_0.learning_rate: float64[] = constant(value=0.5)",
        "            it starts differently",
        "  Try: use another folder to start a new run, or `oarlock resume` to continue the existing one    (oarlock explain ProgramError)",
    ]


def test_a_rate_that_is_set_in_the_scope_is_used():
    scope = ol.Scope()
    result = train(scope=scope)
    scope.set("sgd_0.learning_rate", 0.7)
    assert float(train(scope=scope, epochs=3).parameters["sgd_0.learning_rate"]) == 0.7
    assert float(ol.train(result, ROWS, epochs=4, progress=False).parameters["sgd_0.learning_rate"]) == 0.7


def changed(result: ol.TrainingResult, name: str, value: object) -> ol.TrainingResult:
    result.parameters.set(name, value)
    return result


STATES: dict[str, Callable[[Path], ol.TrainingResult]] = {
    "a result of fewer steps": lambda run: train(epochs=1),
    "a result of more steps": lambda run: train(epochs=5),
    "its result with another rate": lambda run: changed(train(run=run), "sgd_0.learning_rate", 0.7),
    "its result with other parameters": lambda run: changed(train(run=run), "fc_0.b", torch.ones(2)),
}


@pytest.mark.parametrize("kind", STATES)
@pytest.mark.parametrize("saved", [False, True], ids=["in memory", "from a file"])
def test_a_state_for_a_folder_that_was_used_is_its_own_or_refused(kind, saved, tmp_path):
    train(run=tmp_path / "run")
    given = STATES[kind](tmp_path / "run")
    if saved:
        ol.save_model(given, tmp_path / "given")
        given = ol.load_model(tmp_path / "given")
    with pytest.raises(ol.ScopeError) as raised:
        ol.train(given, ROWS, run=tmp_path / "run", epochs=6, progress=False)
    error = raised.value
    assert error.message == f'"{tmp_path / "run"}" contains a run in another state, and the given state would be lost'
    assert error.hint == "use another folder to start from the given state, or pass the cost instead to continue the run in the folder"
    name = "sgd_0.learning_rate" if "rate" in kind else "fc_0.b" if "other parameters" in kind else "fc_0.w"
    assert [line.partition(": ")[0] for line in error.given] == [f'"{name}" given', f'"{name}" in the folder']
    assert ol.train(given, ROWS, run=tmp_path / "other", epochs=6, progress=False).steps == 24
    assert train(run=tmp_path / "run", epochs=3).steps == 12


def test_the_own_state_of_a_folder_goes_on_and_so_does_that_with_which_it_began(tmp_path):
    result = train(run=tmp_path / "run")
    ol.save_model(result, tmp_path / "file")
    assert ol.train(result, ROWS, run=tmp_path / "run", epochs=3, progress=False).steps == 12
    for epochs in (3, 4):  # the command that began a run of a file is repeated
        file = ol.load_model(tmp_path / "file")
        assert ol.train(file, ROWS, run=tmp_path / "from a file", epochs=epochs, progress=False).steps == 4 * epochs
    with pytest.raises(ol.ScopeError, match="contains a run in another state"):
        ol.train(train(epochs=1), ROWS, run=tmp_path / "from a file", epochs=5, progress=False)


def test_a_batch_size_of_the_data_is_that_of_the_run_or_refused(tmp_path):
    def loader(rows: int) -> torch.utils.data.DataLoader:
        columns = torch.utils.data.TensorDataset(torch.from_numpy(ROWS["x"]), torch.from_numpy(ROWS["label"]))
        return torch.utils.data.DataLoader(columns, batch_size=rows, shuffle=True)

    result = train(run=tmp_path / "run")
    for given in (loader(10), ROWS):
        with pytest.raises(ol.ArgumentError) as raised:
            ol.train(result, given, epochs=3, progress=False, batch_size=None if given is not ROWS else 10)
        assert raised.value.message == "this run has a batch size of 5, which cannot be changed"
    assert ol.train(result, loader(5), epochs=3, progress=False).steps == 12
