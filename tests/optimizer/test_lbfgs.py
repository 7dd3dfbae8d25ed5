"""L-BFGS is a loop of the program that evaluates the cost again, and goes where `torch.optim.LBFGS` goes."""

import numpy
import pytest
import torch
from optimizer.followed import initial, loss, regression
from tolerances import PYTORCH

import oarlock as ol

ours = ol.optimizer


def whole(rows: int = 60) -> dict[str, numpy.ndarray]:
    """One batch for all steps, with noise, so that the cost has a bottom and trips do not lead to it at once."""
    random = numpy.random.default_rng(7)
    x = random.standard_normal((rows, 3))
    return {"x": x, "y": numpy.stack([numpy.sin(x[:, 0]), x[:, 1] * x[:, 2]], axis=1) + 0.1 * random.standard_normal((rows, 2))}


def by_us(optimizer, steps, *, interpret=False, feed=None):
    program, cost = regression(optimizer)
    scope, executor = ol.init(program, ol.Scope()), ol.Executor(interpret=interpret)
    costs = [float(executor.run(program, feed or whole(), [cost], scope=scope, training=True)[0]) for _ in range(steps)]
    return scope, costs


def by_torch(steps, **options):
    parameters = {name: value.requires_grad_() for name, value in initial().items()}
    optimizer, costs = torch.optim.LBFGS(list(parameters.values()), **options), []
    batch = {name: torch.from_numpy(value) for name, value in whole().items()}

    def closure():
        optimizer.zero_grad()
        cost = loss(parameters, batch)
        cost.backward()
        return cost

    for _ in range(steps):
        costs.append(float(optimizer.step(closure).detach()))
    return {name: value.detach() for name, value in parameters.items()}, optimizer.state[next(iter(parameters.values()))], costs


FOLLOWED = {
    "ten trips a step": (5, {"iterations": 10}, {"max_iter": 10, "history_size": 10}),
    "one trip a step": (50, {"iterations": 1, "history": 3}, {"max_iter": 1, "history_size": 3}),
    "few evaluations": (10, {"evaluations": 4}, {"max_eval": 4, "history_size": 10}),
    "an early end": (6, {"change_tolerance": 1e-4, "history": 20}, {"tolerance_change": 1e-4, "history_size": 20}),
    "nothing to do": (2, {"gradient_tolerance": 10.0}, {"tolerance_grad": 10.0}),
}
WOLFE, THEIR_WOLFE = {"line_search": "strong_wolfe"}, {"line_search_fn": "strong_wolfe", "history_size": 10}
SEARCHED = {
    "lines from one": (4, 1.0, {"iterations": 10}, {"max_iter": 10}),
    "lines that are too long at first": (4, 30.0, {"iterations": 5}, {"max_iter": 5}),
    "lines that are too short at first": (3, 1e-3, {"iterations": 5}, {"max_iter": 5}),
    "no evaluation left in a line": (3, 1e-3, {"iterations": 4, "evaluations": 3}, {"max_iter": 4, "max_eval": 3}),
    "no evaluation left in a bracket": (3, 200.0, {"iterations": 4, "evaluations": 4}, {"max_iter": 4, "max_eval": 4}),
    "brackets that are too small": (3, 100.0, {"iterations": 3, "change_tolerance": 0.5}, {"max_iter": 3, "tolerance_change": 0.5}),
}


@pytest.mark.parametrize(("name", "interpret"), [*((name, False) for name in FOLLOWED), ("ten trips a step", True)])
def test_the_loop_goes_where_pytorchs_goes(name, interpret):
    steps, options, theirs = FOLLOWED[name]
    expected, state, expected_costs = by_torch(steps, lr=0.5, **theirs)
    scope, costs = by_us(ours.LBFGS(0.5, **options), steps, interpret=interpret)
    for parameter, value in expected.items():
        torch.testing.assert_close(scope[parameter], value, rtol=PYTORCH[0], atol=PYTORCH[0])
    numpy.testing.assert_allclose(costs, expected_costs, rtol=PYTORCH[0])
    assert int(scope["lbfgs_0.trips"]) == state.get("n_iter", 0), "it ends for the same reasons"
    assert int(scope["@STEP"]) == steps


@pytest.mark.parametrize(("name", "interpret"), [*((name, False) for name in SEARCHED), ("lines that are too short at first", True)])
def test_a_line_search_finds_the_lengths_that_pytorchs_finds(name, interpret):
    steps, rate, options, theirs = SEARCHED[name]
    expected, state, expected_costs = by_torch(steps, lr=rate, **theirs, **THEIR_WOLFE)
    scope, costs = by_us(ours.LBFGS(rate, **options, **WOLFE), steps, interpret=interpret)
    for parameter, value in expected.items():
        torch.testing.assert_close(scope[parameter], value, rtol=PYTORCH[0], atol=PYTORCH[0])
    numpy.testing.assert_allclose(costs, expected_costs, rtol=PYTORCH[0])
    assert int(scope["lbfgs_0.trips"]) == state["n_iter"]
    assert float(scope["lbfgs_0.length"]) == pytest.approx(float(state["t"]), rel=1e-6)


def test_a_step_lowers_the_cost_more_than_one_of_descent():
    _, costs = by_us(ours.LBFGS(0.5), 3)
    _, slow = by_us(ours.SGD(0.5), 3)
    assert costs[2] < 0.5 * slow[2]


def recurrent_cost() -> ol.Var:
    """Words in a loop, what is dropped, and rows of which values tell how many there are."""
    x = ol.layer.data("x", shape=["t", 3], dtype="float64")
    states, _ = ol.layer.simple_rnn(ol.layer.dropout(x, rate=0.3), 4)
    last = ol.op.reduce_sum(states, axis=1)
    rows = ol.op.nonzero(last[:, 0] > -1e3)
    return ol.layer.mean(ol.op.square(ol.op.gather(last, rows) - 0.5))


def test_a_cost_with_a_loop_and_sizes_of_its_own_is_evaluated_again():
    with ol.Program(seed=1) as program:
        cost = recurrent_cost()
    ours.LBFGS(1.0, iterations=4, line_search="strong_wolfe").minimize(cost)
    assert ol.Program.from_bytes(program.to_bytes()).to_text() == program.to_text()
    feed, found = {"x": numpy.random.default_rng(0).standard_normal((6, 5, 3))}, []
    for interpret in (False, True):
        scope, executor = ol.init(program, ol.Scope()), ol.Executor(interpret=interpret)
        found.append([float(executor.run(program, feed, [cost], scope=scope, training=True)[0]) for _ in range(4)])
    numpy.testing.assert_allclose(found[0], found[1], rtol=PYTORCH[0])
    assert found[0][-1] < 0.5 * found[0][0]


def test_it_trains_saves_and_goes_on_with_a_schedule_and_an_average(tmp_path):
    def optimizer():
        return ours.LBFGS(ours.schedule.ExponentialDecay(0.5, 0.9), iterations=3, average=ours.ExponentialAverage(0.5))

    data = {name: value.astype("float32") for name, value in whole().items()}
    options = {"epochs": 2, "batch_size": 20, "progress": False}
    entire = ol.train(regression(None, dtype="float32")[1], data, optimizer=optimizer(), **options)
    part = ol.train(regression(None, dtype="float32")[1], data, optimizer=optimizer(), steps=2, **options)
    ol.save_model(part, tmp_path / "run")
    rest = ol.train(ol.load_model(tmp_path / "run"), data, progress=False)
    assert rest.steps == entire.steps == 6
    for name in entire.parameters:
        assert torch.equal(entire.parameters[name], rest.parameters[name]), name
    assert "first.w@AVERAGE" in entire.parameters


def test_what_it_cannot_update_is_refused_and_the_program_is_as_it_was():
    program, cost = regression(None)
    before = program.to_bytes()
    with program, pytest.raises(ol.ProgramError, match="LBFGS: there is no cost to evaluate"):
        ours.LBFGS().apply([(var, var) for var in program.parameters()])
    program.main.var("first.w").update_settings = ours.UpdateSettings(rate_factor=0.5)
    with pytest.raises(ol.ProgramError, match='LBFGS: "first.w" has settings of its own'):
        ours.LBFGS().minimize(cost)
    program.main.var("first.w").update_settings = ours.UpdateSettings()
    with program:
        half = ol.layer.create_parameter([2], name="half", dtype="float32")
        mixed = cost + ol.op.cast(ol.layer.mean(half), dtype="float64")
    with pytest.raises(ol.DTypeError, match="LBFGS: the parameters are all float32, or all float64"):
        ours.LBFGS().minimize(mixed)
    assert program.main.tail == []
    assert before == regression(None)[0].to_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"iterations": 0}, "LBFGS: iterations is a whole number from 1, not 0"),
        ({"line_search": "armijo"}, "LBFGS: line_search is 'strong_wolfe', not 'armijo'"),
        ({"history": 1.5}, "LBFGS: history is a whole number from 1, not 1.5"),
        ({"change_tolerance": -1.0}, "LBFGS: change_tolerance is a finite number not below 0, not -1.0"),
    ],
)
def test_bad_settings_are_errors_of_ours(options, message):
    with pytest.raises(ol.ArgumentError) as raised:
        ours.LBFGS(**options)
    assert raised.value.message == message
