"""The values that a prepared step remembers between calls: those that nobody has asked for since."""

import gc
import threading
import weakref

import numpy
import pytest
import torch
from rounding import require_as_interpreted

import oarlock as ol
from oarlock.runtime import tensor_guard
from oarlock.runtime.tensor_guard import TensorGuard
from oarlock.runtime.variable import Variable

FEED = {"x": torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(4, 3)}


def network(activate=ol.op.tanh):
    with ol.Program(seed=3) as program:
        x = ol.layer.data("x", shape=[3], dtype="float64")
        cost = ol.layer.mean(ol.op.square(activate(ol.layer.fc(x, 3, name="f"))))
        program.targets["cost"] = cost
        ol.optimizer.SGD(0.1).minimize(cost)
    return program


def trained(program, steps, feed=FEED):
    """The weights after some steps that nobody looked at."""
    scope = ol.init(program, ol.Scope())
    step = ol.Executor().prepare(program, scope=scope)
    for _ in range(steps):
        step(feed)
    return scope["f.w"].clone()


@pytest.fixture
def takes(monkeypatch):
    """How often a step has asked whose memory a value is."""
    counted = []
    alone = Variable.alone
    monkeypatch.setattr(Variable, "alone", lambda variable, value: (counted.append(variable), alone(variable, value))[1])
    return counted


@pytest.mark.parametrize("feed", [FEED, {"x": FEED["x"].numpy()}], ids=["tensors", "arrays"])
def test_a_lease_stands_as_long_as_nobody_asks(takes, feed):
    program = network()
    expected = trained(program, 4)
    takes.clear()
    scope = ol.init(program, ol.Scope())
    step = ol.Executor().prepare(program, scope=scope)
    step(feed)
    first = len(takes)
    for _ in range(3):
        step(feed)
    assert len(takes) == first > 0
    assert torch.equal(scope["f.w"], expected)
    step(feed)
    assert len(takes) == 2 * first
    step(feed)
    assert len(takes) == 2 * first


def test_what_is_fed_is_told_by_its_name_whatever_its_place():
    with ol.Program() as program:
        x, y = (ol.layer.data(name, shape=[3], dtype="float64") for name in "xy")
        program.targets["z"] = x - 2.0 * y
        ol.optimizer.SGD(0.1).minimize(ol.layer.mean(ol.layer.fc(x * y, 1)))
    step = ol.Executor().prepare(program, ["z"], scope=ol.init(program, ol.Scope()))
    one, two = torch.ones(1, 3, dtype=torch.float64), torch.full((1, 3), 2.0, dtype=torch.float64)
    for _ in range(2):
        assert (step({"x": one, "y": two})[0] == -3.0).all()
        assert (step({"y": two, "x": one})[0] == -3.0).all()
        assert (step({"y": one, "x": two})[0] == 0.0).all()


ASKS = {
    "value": lambda scope: scope["f.w"],
    "get": lambda scope: scope.get("f.w"),
    "typed": lambda scope: scope.var("f.w").get(torch.Tensor),
}


@pytest.mark.parametrize("ask", list(ASKS.values()), ids=list(ASKS))
def test_who_asks_between_steps_holds_what_it_was(ask):
    program = network()
    scope = ol.init(program, ol.Scope())
    step = ol.Executor().prepare(program, scope=scope)
    held = []
    for steps in range(1, 9):
        step(FEED)
        if steps % 3:
            held.append((ask(scope), trained(program, steps)))
    assert all(torch.equal(*pair) for pair in held)


def test_a_value_that_is_given_between_steps_is_the_next_steps():
    program = network()
    scope = ol.init(program, ol.Scope())
    begun = scope["f.w"].clone()
    step = ol.Executor().prepare(program, scope=scope)
    for _ in range(3):
        step(FEED)
    for name, value in {"f.w": begun, "f.b": torch.zeros(3, dtype=torch.float64)}.items():
        scope[name] = value.clone()
    step(FEED)
    assert torch.equal(scope["f.w"], trained(program, 1))
    scope.var("f.w").reset()
    with pytest.raises(ol.errors.UnsetVarError):
        step(FEED)


def with_statistics():
    with ol.Program(seed=3) as program:
        x = ol.layer.batch_norm(ol.layer.data("x", shape=[3], dtype="float64"), name="n")
        cost = ol.layer.mean(ol.op.square(ol.op.tanh(ol.layer.fc(x, 3, name="f"))))
        ol.optimizer.SGD(0.1).minimize(cost)
    return program


def test_a_lease_stands_though_a_step_gives_values_that_are_not_written_over(takes):
    program = with_statistics()
    scopes = [ol.init(program, ol.Scope()) for _ in range(2)]
    step = ol.Executor().prepare(program, scope=scopes[0], training=True)
    step(FEED)
    first = len(takes)
    for _ in range(3):
        step(FEED)
    assert len(takes) == first > 0
    for _ in range(4):
        ol.Executor(interpret=True).run(program, FEED, scope=scopes[1], training=True)
    statistics = [name for name in scopes[0] if name.startswith("n.")]
    assert len(statistics) == 4
    for name in (*statistics, "f.w"):
        torch.testing.assert_close(scopes[0][name], scopes[1][name], rtol=1e-12, atol=1e-14)


def test_a_value_that_is_given_between_steps_is_the_next_steps_though_it_is_not_written_over():
    program = with_statistics()
    (name,) = (var.name for var in program.main.vars.values() if var.persistable and "mean" in var.name)
    scope = ol.init(program, ol.Scope())
    step = ol.Executor().prepare(program, scope=scope, training=True)
    step(FEED)
    once = scope[name].clone()
    step(FEED)
    held = scope[name]
    twice = held.clone()
    step(FEED)
    assert not torch.equal(once, twice)
    assert torch.equal(held, twice)
    scope[name] = torch.zeros_like(twice)
    step(FEED)
    assert torch.equal(scope[name], once)


@pytest.mark.parametrize("viewed", ["f.w@NEXT", "f.w"])
def test_a_persistable_view_of_what_a_step_writes_over_stays_as_it_is(viewed):
    program = network()
    scope = ol.init(program, ol.Scope())
    seen = program.main.new_var("seen", ol.DType.FLOAT64, (9,), persistable=True)
    with program:
        program.main.commit(seen, ol.op.reshape(program.main.var(viewed), shape=(9,)))
    step = ol.Executor().prepare(program, scope=scope)
    for steps in (1, 4, 7):
        step(FEED)
        held = scope["seen"]
        expected = trained(network(), steps - (viewed == "f.w")).reshape(9)
        assert torch.equal(held, expected)
        step(FEED)
        step(FEED)
        assert torch.equal(held, expected)


def test_what_an_evaluation_returns_between_steps_stays_as_it_is():
    program = network()
    scope = ol.init(program, ol.Scope())
    executor = ol.Executor()
    step = executor.prepare(program, scope=scope)
    held = []
    for steps in range(1, 5):
        step(FEED)
        held.append((executor.eval(program, ["f.w"], scope=scope, return_numpy=False)[0], trained(program, steps)))
    assert all(torch.equal(*pair) for pair in held)


def test_two_steps_of_one_scope_and_an_evaluation_take_turns():
    program = network()
    scope = ol.init(program, ol.Scope())
    executor = ol.Executor()
    one, other = (executor.prepare(program, scope=scope) for _ in range(2))
    for steps in range(2, 9, 2):
        one(FEED)
        (read,) = executor.eval(program, ["f.w"], scope=scope, return_numpy=False)
        before = read.clone()
        other(FEED)
        assert torch.equal(read, before)
        assert torch.equal(scope["f.w"], trained(program, steps))


def test_a_wrong_feed_is_refused_before_a_lease_ends(takes):
    program = network()
    scope = ol.init(program, ol.Scope())
    step = ol.Executor().prepare(program, scope=scope)
    step(FEED)
    before = len(takes)
    with pytest.raises(ol.FeedError):
        step({"x": FEED["x"].float()})
    step(FEED)
    assert len(takes) == before
    assert torch.equal(scope["f.w"], trained(program, 2))


def test_a_step_that_fails_leaves_no_lease(takes):
    def chosen(hidden):
        return ol.op.gather(hidden, ol.layer.data("rows", shape=[], dtype="int64", batch="k"))

    program = network(chosen)
    scope = ol.init(program, ol.Scope())
    step = ol.Executor().prepare(program, scope=scope)
    rows = torch.tensor([0, 1])
    step({**FEED, "rows": rows})
    step({**FEED, "rows": rows})
    before = len(takes)
    with pytest.raises(ol.KernelError) as failure:
        step({**FEED, "rows": torch.tensor([0, 9])})
    step({**FEED, "rows": rows})
    assert len(takes) > before, "the traceback held values"
    assert torch.equal(scope["f.w"], trained(program, 3, {**FEED, "rows": rows}))
    assert failure.value.__cause__ is not None


def test_a_step_whose_kernels_read_the_scope_is_that_of_the_interpreter():
    """Dropout asks the scope for the number of the step, meanwhile."""
    program = network(lambda hidden: ol.layer.dropout(hidden, rate=0.5))
    found = []
    for executor in (ol.Executor(interpret=True), ol.Executor(passes=())):
        scope = ol.init(program, ol.Scope())
        step = executor.prepare(program, scope=scope, training=True)
        for _ in range(5):
            step(FEED)
        found.append({"f.w": scope["f.w"]})
    require_as_interpreted(program, found[1], found[0])


@pytest.mark.parametrize("fetch", ["f.w@NEXT", "view"])
def test_a_step_that_returns_what_it_writes_leases_nothing(fetch, takes):
    program = network()
    with program:
        program.targets["view"] = ol.op.reshape(program.main.var("f.w@NEXT"), shape=(9,))
    scope = ol.init(program, ol.Scope())
    step = ol.Executor().prepare(program, [fetch], scope=scope, return_numpy=False)
    held = [step(FEED)[0] for _ in range(4)]
    for steps, value in enumerate(held, 1):
        assert torch.equal(value.reshape(3, 3), trained(program, steps))


def test_a_parameter_that_comes_nearer_is_the_one_that_is_trained():
    program = network()
    parent = ol.init(program, ol.Scope())
    begun = parent["f.w"].clone()
    scope = parent.new_scope()
    step = ol.Executor().prepare(program, scope=scope)
    for _ in range(3):
        step(FEED)
    scope["f.w"] = begun
    step(FEED)
    assert torch.equal(parent["f.w"], trained(program, 3))
    assert not torch.equal(scope["f.w"], begun)


def test_a_lease_keeps_nothing_that_is_over():
    program = network()
    scope = ol.init(program, ol.Scope())
    step = ol.Executor().prepare(program, scope=scope)
    for _ in range(3):
        step(FEED)
    gc.collect()
    gc.disable()
    try:
        variable = scope.var("f.w")
        memory = weakref.ref(variable.held)
        del step
        held = scope["f.w"]
        assert held is memory()
        del held, variable
        scope.drop()
        assert memory() is None
    finally:
        gc.enable()


def test_a_dropped_scope_is_refused_though_a_lease_stood():
    program = network()
    scope = ol.init(program, ol.Scope())
    step = ol.Executor().prepare(program, scope=scope)
    step(FEED)
    scope.drop()
    with pytest.raises(ol.ScopeError, match="dropped"):
        step(FEED)


def test_who_gives_a_value_while_a_step_runs_waits_for_its_end():
    program = network()
    scope = ol.init(program, ol.Scope())
    step = ol.Executor().prepare(program, scope=scope)
    stop, given = threading.Event(), []

    def train():
        while not stop.is_set():
            step(FEED)

    trainer = threading.Thread(target=train)
    trainer.start()
    for number in range(200):
        scope["f.b"] = torch.full((3,), 1000.0 * number, dtype=torch.float64)
        given.append(scope["f.b"].clone())
    stop.set()
    trainer.join()
    for number, value in enumerate(given):
        assert (value - 1000.0 * number).abs().max() < 100, "steps go on from what was given, whole"
        assert not value.isnan().any()


LIKE = [torch.zeros(2, 3), torch.zeros(4, dtype=torch.int64)]
UNLIKE = {
    "another size": [torch.zeros(2, 4), LIKE[1]],
    "another rank": [torch.zeros(6), LIKE[1]],
    "another dtype": [LIKE[0].double(), LIKE[1]],
    "another device": [LIKE[0].to("meta"), LIKE[1]],
    "one that records gradients": [torch.zeros(2, 3, requires_grad=True), LIKE[1]],
    "a subclass": [torch.nn.Parameter(torch.zeros(2, 3)), LIKE[1]],
    "an array": [numpy.zeros((2, 3), dtype=numpy.float32), LIKE[1]],
    "nothing": [None, LIKE[1]],
}


@pytest.fixture(params=["in one call", "each"])
def like(request, monkeypatch):
    if request.param == "each":
        monkeypatch.setattr(tensor_guard, "tensor_guards", lambda *tensors, **how: None)
    return TensorGuard(LIKE)


@pytest.mark.parametrize("values", list(UNLIKE.values()), ids=list(UNLIKE))
def test_what_is_unlike_is_told(like, values):
    assert not like(*values)


def test_what_is_alike_is_told_however_it_lies_in_memory(like):
    assert like(*LIKE)
    assert like(torch.ones(3, 2).T, torch.arange(8)[::2])
    with torch.no_grad():
        assert like(*LIKE)
