"""The state of an optimizer belongs to one program: a scope that holds another's is refused by name, or has a scope inside it."""

import numpy
import pytest
import torch
from classifiers import small_classifier, small_rows

import oarlock as ol

ROWS = small_rows(32)


def one_weight(rate: float) -> tuple[ol.Program, ol.Var]:
    """`b`, whose slope is always 1, and an SGD."""
    with ol.Program() as program:
        b = ol.layer.create_parameter([], dtype="float64", name="b", initializer=ol.layer.initializer.constant(0.0))
        cost = ol.op.multiply(b, ol.layer.data("x", shape=[], batch=None, dtype="float64"))
        ol.optimizer.SGD(rate).minimize(cost)
    return program, b


def message_of(raised: pytest.ExceptionInfo) -> list[str]:
    return [line for line in str(raised.value).splitlines() if "test_whose_state.py" not in line]


def refused(names: str) -> list[str]:
    return [
        f"the scope holds the state of another program: {names}",
        "  the state of optimizers and metrics (learning rate, steps, moments, counts) belongs to one program",
        "  Try: use ol.init(program, scope.new_scope()) to train the same parameters with separate state, "
        "or ol.train(result) to continue an existing run    (oarlock explain ScopeError)",
    ]


def test_a_second_run_in_one_scope_is_refused_by_name_and_changes_nothing():
    scope = ol.Scope()
    ol.train(small_classifier().cost, ROWS, optimizer=ol.optimizer.SGD(0.1), epochs=2, scope=scope, progress=False)
    before = {name: scope[name].clone() for name in scope}
    for optimizer in (ol.optimizer.SGD(0.5), ol.optimizer.Adam()):
        with pytest.raises(ol.ScopeError) as raised:
            ol.train(small_classifier().cost, ROWS, optimizer=optimizer, epochs=3, scope=scope, progress=False)
        assert message_of(raised) == refused("sgd_0.learning_rate, @STEP")
    assert dict.fromkeys(scope, True) == {name: torch.equal(scope[name], before[name]) for name in before}


@pytest.mark.parametrize("optimizer", [ol.optimizer.SGD(0.5), ol.optimizer.Adam(0.01)], ids=["sgd", "adam"])
def test_a_scope_inside_trains_the_same_parameters_by_its_own_state(optimizer):
    scope = ol.Scope()
    first = ol.train(small_classifier().cost, ROWS, optimizer=ol.optimizer.SGD(0.1), epochs=2, scope=scope, progress=False)
    alone = ol.Scope()
    for name in ("fc_0.w", "fc_0.b"):
        alone.set(name, scope[name].clone())
    expected = ol.train(small_classifier().cost, ROWS, optimizer=optimizer, epochs=3, scope=alone, progress=False)
    inside = scope.new_scope()
    second = ol.train(small_classifier().cost, ROWS, optimizer=optimizer, epochs=3, scope=inside, progress=False)
    assert (second.steps, second.history) == (3, expected.history)
    assert all(torch.equal(expected.parameters[name], inside[name]) for name in alone)
    assert torch.equal(scope["fc_0.w"], alone["fc_0.w"])
    assert (int(scope["@STEP"]), float(scope["sgd_0.learning_rate"])) == (2, 0.1), "the first run can go on"
    assert ol.train(first, ROWS, epochs=3, progress=False).steps == 3
    assert ol.train(second, ROWS, epochs=4, progress=False).steps == 4


def test_a_run_that_is_asked_for_again_goes_on_and_says_when_it_is_done():
    scope = ol.Scope()
    ol.train(small_classifier().cost, ROWS, epochs=2, batch_size=8, steps=3, scope=scope, progress=False)
    again = ol.train(small_classifier().cost, ROWS, epochs=2, batch_size=8, scope=scope, progress=False)
    assert again.steps == 8
    with pytest.raises(ol.ScopeError) as raised:
        ol.train(small_classifier().cost, ROWS, epochs=2, batch_size=8, scope=scope, progress=False)
    assert message_of(raised) == [
        "the run in this scope is finished: 8 of 8 steps in 2 epochs",
        "  Try: give more epochs, or use scope.new_scope() to start another run on the same parameters    (oarlock explain ScopeError)",
    ]
    assert ol.train(small_classifier().cost, ROWS, epochs=3, batch_size=8, scope=scope, progress=False).steps == 12
    assert ol.train(small_classifier().cost, ROWS, epochs=1, batch_size=8, scope=scope.new_scope(), progress=False).steps == 4
    with pytest.raises(ol.ScopeError) as raised:
        ol.train(small_classifier().cost, ROWS, epochs=4, batch_size=4, scope=scope, progress=False)
    assert message_of(raised) == refused("sgd_0.learning_rate, @STEP"), "another batch size is another run"


def test_two_programs_would_share_one_rate_and_one_count_of_steps():
    (slow, _), (fast, _) = one_weight(0.1), one_weight(0.5)
    scope = ol.init(slow, ol.Scope())
    with pytest.raises(ol.ScopeError) as raised:
        ol.init(fast, scope)
    assert message_of(raised) == refused("sgd_0.learning_rate, @STEP")
    inside = ol.init(fast, scope.new_scope())
    for program, place in ((slow, scope), (fast, inside)):
        ol.Executor().run(program, {"x": 1.0}, [], scope=place, training=True)
        assert float(scope["b"]) == {slow: -0.1, fast: -0.6}[program], "each by its own rate, on one b"
    assert [int(place["@STEP"]) for place in (scope, inside)] == [1, 1]


TRAINED_IN = {
    "run": lambda program, scope: ol.Executor().run(program, {"x": 1.0}, [], scope=scope, training=True),
    "prepare": lambda program, scope: ol.Executor().prepare(program, scope=scope, training=True)({"x": 1.0}),
    "interpret": lambda program, scope: ol.Executor(interpret=True).run(program, {"x": 1.0}, [], scope=scope, training=True),
    "Net.run": lambda program, scope: ol.Net(program).run(scope, ol.Context(scope, training=True)),
    "save_model": lambda program, scope: ol.save_model(program, scope, "never"),
}


@pytest.mark.parametrize("inside", [False, True], ids=["in the scope", "in one inside"])
@pytest.mark.parametrize("train", TRAINED_IN.values(), ids=TRAINED_IN)
def test_a_program_that_was_not_initialised_here_does_not_take_the_state_of_another(train, inside, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (slow, _), (fast, _) = one_weight(0.1), one_weight(0.5)
    scope = ol.init(slow, ol.Scope())
    scope.set("x", 1.0)
    with pytest.raises(ol.ScopeError) as raised:
        train(fast, scope.new_scope() if inside else scope)
    assert message_of(raised) == refused("sgd_0.learning_rate, @STEP")
    assert [float(scope[name]) for name in ("b", "@STEP")] == [0.0, 0.0]
    assert not list(tmp_path.iterdir())
    TRAINED_IN["run"](slow, scope)
    assert float(scope["b"]) == -0.1


def test_copies_of_a_program_are_that_program_and_parameters_are_shared():
    program, b = one_weight(0.1)
    scope = ol.init(program, ol.Scope())
    ol.Executor().run(program, {"x": 1.0}, [], scope=scope, training=True)
    assert ol.init(program.clone(), scope) is scope
    with program:
        ol.op.neg(b)
    assert ol.init(program, scope) is scope, "it may have grown"
    assert ol.init(ol.prune(program, {"b": b}), scope) is scope, "what has no optimizer has no state"
    assert float(scope["b"]) == -0.1
    other, _ = one_weight(0.5)
    ol.init(other, scope, overwrite=True)
    assert (float(scope["sgd_0.learning_rate"]), int(scope["@STEP"])) == (0.5, 0)
    with pytest.raises(ol.ScopeError):
        ol.init(program, scope)


def test_the_scope_of_a_saved_run_is_that_runs(tmp_path):
    result = ol.train(small_classifier().cost, ROWS, progress=False)
    ol.save_model(result, tmp_path / "run")
    model = ol.load_model(tmp_path / "run")
    with pytest.raises(ol.ScopeError) as raised:
        ol.train(small_classifier().cost, ROWS, scope=model.scope, progress=False)
    assert message_of(raised) == refused("sgd_0.learning_rate, @STEP")
    assert ol.train(model, ROWS, epochs=2, progress=False).steps == 2


@pytest.mark.parametrize("minimized", [False, True], ids=["trained", "minimized"])
def test_steps_that_nobody_is_known_to_own_are_not_taken_for_those_of_a_new_run(minimized):
    result = ol.train(small_classifier().cost, ROWS, progress=False)
    copied = ol.Scope()
    for name in result.parameters:
        copied.set(name, result.parameters[name].clone())
    other = small_classifier()
    if minimized:
        ol.optimizer.SGD().minimize(other.cost)
    with pytest.raises(ol.ScopeError) as raised:
        ol.train(other.cost, ROWS, scope=copied, progress=False)
    assert message_of(raised)[0] == "the scope holds the state of another program: sgd_0.learning_rate, @STEP"
    assert ol.train(other.cost, ROWS, scope=copied.new_scope(), progress=False).steps == 1


def test_a_program_that_minimizes_already_is_trained_where_it_was_initialised_and_once():
    own = small_classifier()
    ol.optimizer.SGD(0.3).minimize(own.cost)
    scope = ol.init(own.program, ol.Scope())
    scope.set("sgd_0.learning_rate", numpy.float64(0.2))
    assert ol.train(own.cost, ROWS, epochs=2, scope=scope, progress=False).steps == 2
    assert float(scope["sgd_0.learning_rate"]) == 0.2
    with pytest.raises(ol.ScopeError):
        ol.train(own.cost, ROWS, epochs=2, scope=scope, progress=False)
    assert ol.train(own.cost, ROWS, epochs=2, scope=scope.new_scope(), progress=False).steps == 2


def test_a_schedule_an_average_and_what_is_accumulated_belong_to_one_program_too():
    def build(rate: float) -> ol.Program:
        plateau, average = ol.optimizer.schedule.ReduceOnPlateau(rate, patience=0), ol.optimizer.ExponentialAverage(0.9)
        with ol.Program() as program:
            b = ol.layer.create_parameter([], dtype="float64", name="b", initializer=ol.layer.initializer.constant(0.0))
            ol.optimizer.NAdam(plateau, average=average, accumulate=2).minimize(ol.op.square(b - 1.0))
        return program

    first, second = build(0.1), build(0.5)
    scope = ol.init(first, ol.Scope())
    for train in (lambda: ol.init(second, scope), lambda: ol.Executor().run(second, {}, [], scope=scope, training=True)):
        with pytest.raises(ol.ScopeError) as raised:
            train()
        assert set(str(raised.value).splitlines()[0].partition(": ")[2].removesuffix(", ...").split(", ")) < {
            "@STEP", "b@ACCUMULATED", "b@AVERAGE", "b@MOMENT1", "b@MOMENT2", "nadam_0.bad", "nadam_0.best", "nadam_0.cooling",
            "nadam_0.mu_product", "nadam_0.reduced_rate", "nadam_0.accumulated", "nadam_0.updates", "nadam_0.last_learning_rate",
        }  # fmt: skip
    inside = ol.init(second, scope.new_scope())
    for program, place in ((first, scope), (second, inside)) * 4:
        ol.Executor().run(program, {}, [], scope=place, training=True)
    assert (float(scope["nadam_0.reduced_rate"]), float(inside["nadam_0.reduced_rate"])) != (0.1, 0.5)
    assert float(scope["nadam_0.best"]) != float(inside["nadam_0.best"])


def test_running_statistics_and_draws_are_no_ones_own():
    def build(rate: float) -> ol.Program:
        with ol.Program() as program:
            x = ol.layer.dropout(ol.layer.batch_norm(ol.layer.data("x", shape=[3]), name="norm"), rate=0.5)
            ol.optimizer.SGD(rate).minimize(ol.layer.mean(ol.layer.fc(x, 1)))
        return program

    scope = ol.init(build(0.1), ol.Scope())
    with pytest.raises(ol.ScopeError) as raised:
        ol.init(build(0.5), scope)
    assert message_of(raised) == refused("sgd_0.learning_rate, @STEP")
    inside = ol.init(build(0.5), scope.new_scope())
    assert sorted(inside) == ["@STEP", "sgd_0.learning_rate"]
