"""L-BFGS is a loop of the program that evaluates the cost again, and goes where `torch.optim.LBFGS` goes."""

import itertools

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


def while_around(inside):
    def build(value, w):
        count = ol.op.full(shape=(), value=0.0, dtype="float64")
        loop = ol.while_loop(count < 1.5, max_trips=6)
        with loop.block():
            after = count + 0.7 + 0.1 * inside(value + count * 0.1, w)
            loop.carry(count, after)
            loop.update_condition(after < 1.5)
        return loop()

    return build


def rnn_around(inside):
    def build(value, w):
        rnn, steps = ol.rnn(), ol.op.stack([value, value * 0.5, value * 0.2])
        with rnn.step():
            step = rnn.step_input(steps)
            memory = rnn.memory(init=value)
            rnn.update_memory(memory, ol.op.tanh(inside(step + rnn.previous_memory(memory), w)))
            rnn.output(rnn.previous_memory(memory))
        return ol.op.reduce_sum(rnn()) + rnn.final_memory(memory)

    return build


def cond_around(inside):
    return lambda value, w: ol.cond(value < 0.5, lambda: inside(value * 1.0, w), lambda: ol.op.tanh(value) * ol.op.reduce_sum(w))


def case_around(inside):
    return lambda value, w: ol.case(
        [(value < 0.2, lambda: inside(value, w)), (value < 0.8, lambda: value * w[0])], lambda: ol.op.tanh(value)
    )


def ifelse_around(inside):
    def build(value, w):
        branches, rows = ol.ifelse(), ol.op.reshape(ol.op.concat([ol.op.reshape(value, shape=(1,)), w], axis=0), shape=(3, 1))
        with branches.true_block():
            x = branches.input(rows)
            branches.output(ol.op.tanh(x) * inside(ol.op.reduce_sum(x), w))
        with branches.false_block():
            branches.output(branches.input(rows) * 0.5)
        return ol.op.reduce_sum(branches(rows > 0.2))

    return build


def rows_around(inside):
    def build(value, w):
        x = ol.op.concat([ol.op.reshape(value, shape=(1,)), w], axis=0)
        return ol.op.reduce_sum(ol.op.gather(x, ol.op.nonzero(x > 0.1))) * inside(value, w)

    return build


AROUND = {"while": while_around, "rnn": rnn_around, "cond": cond_around, "case": case_around, "ifelse": ifelse_around, "rows": rows_around}
WAYS = {
    "L-BFGS": lambda cost: ours.LBFGS(0.3, iterations=2).minimize(cost),
    "line search": lambda cost: ours.LBFGS(0.3, iterations=2, line_search="strong_wolfe").minimize(cost),
    "accumulated": lambda cost: ours.SGD(0.1, accumulate=2).minimize(cost),
}


def nested_program(outer, inner, way, *, penalty=False):
    with ol.Program(seed=1) as program:
        w = ol.layer.create_parameter([2], name="w", dtype="float64", initializer=ol.initializer.constant(0.4))
        y = AROUND[outer](AROUND[inner](lambda value, w: ol.op.tanh(ol.op.reduce_sum(w * w) * value + 0.3)))(
            ol.layer.data("x", [], "float64", batch=None), w
        )
        cost = y * y + ol.op.reduce_sum(w * w)
        if penalty:
            (gradient,) = ol.gradients([cost], [w])
            cost = cost + 0.1 * ol.op.reduce_sum(gradient * gradient)
        WAYS[way](cost)
    return program, cost


def require_nesting(outer, inner, way, *, penalty=False, recomputed=False):
    """A program that is legal, and steps that plans take as the interpreter does."""
    program, cost = nested_program(outer, inner, way, penalty=penalty)
    if recomputed:
        ol.passes.recompute(program)
    assert ol.Program.from_bytes(program.to_bytes()).to_text() == program.to_text()
    found = []
    for executor in (ol.Executor(interpret=True, check=True), ol.Executor(passes=()), ol.Executor()):
        scope = ol.init(program, ol.Scope())
        costs = [float(executor.run(program, {"x": numpy.array(0.3)}, [cost], scope=scope, training=True)[0]) for _ in range(3)]
        found.append([*costs, *scope["w"].tolist()])
    numpy.testing.assert_allclose(found[1], found[0], rtol=PYTORCH[0])
    numpy.testing.assert_allclose(found[2], found[0], rtol=1e-7)


CI = {("while", "cond"), ("rnn", "ifelse")}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("outer", "inner"),
    [pytest.param(*pair, marks=() if pair in CI else pytest.mark.slow) for pair in itertools.product(AROUND, repeat=2)],
)
def test_a_cost_with_constructs_in_each_other_is_evaluated_again(outer, inner, way):
    require_nesting(outer, inner, way)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("outer", "inner"), [*itertools.product(AROUND, repeat=2)])
def test_so_is_a_penalty_on_its_gradient_and_what_is_recomputed(outer, inner, way):
    require_nesting(outer, inner, way, penalty=True)
    require_nesting(outer, inner, way, recomputed=True)


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_a_branch_in_a_loop_goes_where_pytorchs_goes(search):
    program, cost = nested_program("while", "cond", "line search" if search else "L-BFGS")
    scope = ol.init(program, ol.Scope())
    w = torch.tensor([0.4, 0.4], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([w], lr=0.3, max_iter=2, history_size=10, line_search_fn=search)

    def closure():
        optimizer.zero_grad()
        count = torch.zeros((), dtype=torch.float64)
        while count < 1.5:
            value = 0.3 + count * 0.1
            inside = torch.tanh((w * w).sum() * value + 0.3) if value < 0.5 else torch.tanh(value) * w.sum()
            count = count + 0.7 + 0.1 * inside
        found = count * count + (w * w).sum()
        found.backward()
        return found

    for _ in range(3):
        expected = float(optimizer.step(closure).detach())
        (found,) = ol.Executor().run(program, {"x": numpy.array(0.3)}, [cost], scope=scope, training=True)
        assert float(found) == pytest.approx(expected, rel=PYTORCH[0])
        torch.testing.assert_close(scope["w"], w.detach(), rtol=PYTORCH[0], atol=PYTORCH[0])


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
    with pytest.raises(ol.ProgramError, match='LBFGS: "first.w" has its own update settings'):
        ours.LBFGS().minimize(cost)
    program.main.var("first.w").update_settings = ours.UpdateSettings()
    with program:
        half = ol.layer.create_parameter([2], name="half", dtype="float32")
        mixed = cost + ol.op.cast(ol.layer.mean(half), dtype="float64")
    with pytest.raises(ol.DTypeError, match="LBFGS: the parameters must be all float32 or all float64"):
        ours.LBFGS().minimize(mixed)
    assert program.main.tail == []
    assert before == regression(None)[0].to_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"iterations": 0}, "LBFGS: iterations must be an integer >= 1, not 0"),
        ({"line_search": "armijo"}, "LBFGS: line_search must be 'strong_wolfe', not 'armijo'"),
        ({"history": 1.5}, "LBFGS: history must be an integer >= 1, not 1.5"),
        ({"change_tolerance": -1.0}, "LBFGS: change_tolerance must be a finite number >= 0, not -1.0"),
    ],
)
def test_bad_settings_are_errors_of_ours(options, message):
    with pytest.raises(ol.ArgumentError) as raised:
        ours.LBFGS(**options)
    assert raised.value.message == message
