"""Values that an inference computes from its parameters alone, once: as long as nobody else can have touched them."""

import gc
import threading
import weakref

import numpy
import pytest
import torch

import oarlock as ol
from oarlock.runtime.variable import Variable

X = torch.linspace(-1, 1, 8, dtype=torch.float64).reshape(2, 4)


def scaled():
    """A product by a matrix that is computed of two parameters, as a normalized weight is."""
    with ol.Program(seed=4) as program:
        x = ol.layer.data("x", shape=[4], dtype="float64")
        v = ol.layer.create_parameter([4, 3], name="v", dtype="float64")
        g = ol.layer.create_parameter([3], name="g", dtype="float64")
        program.targets["w"] = w = ol.op.tanh(v) * ol.op.exp(g)
        program.targets["y"] = ol.op.linear(x, w)
        program.targets["rows"] = ol.op.reshape(w, shape=(12,))
    return program


def expected(scope, x=X):
    v, g = (scope.var(name).held for name in ("v", "g"))  # asked so that no lease ends
    return x @ (v.tanh() * g.exp())


def prepared(program, scope, fetch=("y",), **options):
    step = ol.Executor(**options).prepare(program, list(fetch), scope=scope, return_numpy=False)
    return lambda: step({"x": X})[0]


@pytest.fixture
def looks(monkeypatch):
    """How often something was computed ahead."""
    counted = []
    precompute = ol.runtime.plan.Plan.precompute
    monkeypatch.setattr(
        ol.runtime.plan.Plan, "precompute", lambda *given, **options: (counted.append(None), precompute(*given, **options))[1]
    )
    return counted


def test_the_plan_says_what_is_computed_ahead():
    plan = ol.Executor(passes=()).plan(scaled(), ["y"])
    main, ahead = plan.text.split("\n\n\n")
    assert main.startswith("def plan(context_of, device, ")
    assert ahead.startswith("def precompute(for_many, v_")
    assert [word for word in ("tanh", "exp", "multiply", "linear") if word in main] == ["multiply", "linear"]
    assert main.count("multiply_0") == main.count("multiply"), "it is read only"
    assert [word for word in ("tanh", "exp", "multiply", "linear") if word in ahead] == ["tanh", "exp", "multiply"]


def test_it_is_computed_once_as_long_as_nobody_asks(looks):
    program = scaled()
    scope = ol.init(program, ol.Scope())
    step = prepared(program, scope)
    for _ in range(4):
        assert torch.allclose(step(), expected(scope), rtol=1e-12)
    assert len(looks) == 1


CHANGES = {
    "set": lambda scope: scope.set("v", numpy.full((4, 3), 0.25)),
    "a tensor": lambda scope: scope.set("g", torch.full((3,), 0.5, dtype=torch.float64)),
    "in place": lambda scope: scope["v"].mul_(0.5),
    "by an array": lambda scope: scope["v"].numpy().fill(0.75),
    "by a view": lambda scope: scope.get("v")[1:].zero_(),
}


@pytest.mark.parametrize("change", list(CHANGES.values()), ids=list(CHANGES))
def test_a_change_between_runs_is_the_next_run_s(change):
    program = scaled()
    scope = ol.init(program, ol.Scope())
    step = prepared(program, scope)
    for _ in range(3):
        before = step()
        change(scope)
        after = step()
        assert torch.allclose(after, expected(scope), rtol=1e-12)
        assert torch.equal(step(), after)
    assert before is not after


@pytest.mark.parametrize(
    "take", [lambda scope: scope["v"], lambda scope: scope["v"].numpy(), lambda scope: scope["v"].detach()[1:]], ids=["it", "array", "view"]
)
@pytest.mark.parametrize("first", [True, False], ids=["before", "between"])
def test_who_holds_a_parameter_may_write_over_it_at_any_time(take, first, looks):
    program = scaled()
    scope = ol.init(program, ol.Scope())
    step = prepared(program, scope)
    if not first:
        step()
        step()
    held = take(scope)
    for number in range(3):
        held[...] = 0.1 * number
        assert torch.allclose(step(), expected(scope), rtol=1e-12)
    del held
    before = len(looks)
    for _ in range(3):
        step()
    assert len(looks) == before + 3, "nobody can tell who holds it"
    scope["v"] = numpy.full((4, 3), 0.5)
    for _ in range(3):
        step()
    assert len(looks) == before + 4, "what is the variable's own is looked at once"


def test_a_tensor_that_was_given_is_theirs():
    program = scaled()
    scope = ol.init(program, ol.Scope())
    memory = numpy.full((4, 3), 0.5)
    scope["v"] = torch.from_numpy(memory)
    step = prepared(program, scope)
    for number in range(3):
        memory[...] = number
        assert torch.allclose(step(), expected(scope), rtol=1e-12)


@pytest.mark.parametrize("fetch", ["w", "rows", "v"])
def test_what_is_returned_may_be_written_over(fetch):
    program = scaled()
    scope = ol.init(program, ol.Scope())
    step = ol.Executor(poison=True).prepare(program, [fetch, "y"], scope=scope, return_numpy=False)
    inference = prepared(program, scope)
    for number in range(4):
        inference()
        returned, y = step({"x": X})
        assert torch.allclose(y, expected(scope), rtol=1e-12)
        returned.fill_(0.1 * number)
        assert torch.allclose(inference(), expected(scope), rtol=1e-12)


def test_a_parameter_that_is_returned_is_read_anew():
    assert "def precompute" in ol.Executor().plan(scaled(), ["y"]).text
    assert "def precompute" not in ol.Executor().plan(scaled(), ["y", "v", "g"]).text
    ahead = ol.Executor().plan(scaled(), ["y", "rows"]).text.partition("def precompute")[2]
    assert [word for word in ("tanh", "exp", "multiply") if word in ahead] == ["tanh", "exp"]


def test_what_takes_more_memory_than_it_is_made_of_is_computed_by_each_run():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[4])
        g = ol.layer.create_parameter([4], name="g")
        wide = ol.op.concat([ol.op.exp(g)] * 1000, axis=0)
        program.targets["y"] = ol.op.reduce_sum(ol.op.tanh(wide)) + x
        program.targets["z"] = x * ol.op.exp(g) * ol.op.tanh(g) * ol.op.sigmoid(g)
    plan = ol.Executor(passes=()).plan(program, ["y"])
    assert "tanh" not in plan.text.partition("def precompute")[2]
    ahead = ol.Executor(passes=()).plan(program, ["z"]).text.partition("def precompute")[2]
    assert [word for word in ("exp", "tanh", "sigmoid") if word in ahead] == ["exp"], "as much as g takes"


def test_what_may_fail_fails_where_it_stands():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[4], dtype="float64")
        rows = ol.op.gather(
            ol.layer.create_parameter([3, 4], name="table", dtype="float64"), ol.op.full(shape=(2,), value=7, dtype="int64")
        )
        program.targets["y"] = ol.op.linear(x, ol.op.reshape(rows, shape=(4, 2)))
    assert "def precompute" not in ol.Executor(passes=()).plan(program, ["y"]).text
    scope = ol.init(program, ol.Scope())
    with pytest.raises(ol.KernelError):
        prepared(program, scope)()


@pytest.mark.parametrize(
    "value", [numpy.ones((4, 2)), numpy.ones((4, 3), "float32"), numpy.ones((2, 2, 3))], ids=["sizes", "dtype", "rank"]
)
def test_a_value_of_another_type_does_what_it_does_in_the_interpreter(value):
    program, found = scaled(), []
    for options in ({"interpret": True}, {}):
        scope = ol.init(program, ol.Scope())
        scope["v"] = value
        try:
            found.append(prepared(program, scope, **options)().tolist())
        except ol.OarlockError as error:
            found.append((type(error), str(error)))
    assert found[0] == found[1]


def test_steps_of_one_scope_do_not_end_each_other_s_leases(looks):
    program = scaled()
    scope = ol.init(program, ol.Scope())
    one, other = (prepared(program, scope) for _ in range(2))
    evaluate = prepared(program, scope, ["rows"])
    for _ in range(4):
        assert torch.equal(one(), other())
        evaluate()
    assert len(looks) == 3


def trained():
    program = scaled()
    with program:
        cost = ol.layer.mean(ol.op.square(program.main.var(program.targets["y"].name)))
        ol.optimizer.SGD(0.1).minimize(cost)
    return program


def test_training_writes_over_what_an_inference_has_let_go_of(looks):
    program = trained()
    scope, alone = (ol.init(program, ol.Scope()) for _ in range(2))
    inference, train = prepared(scaled(), scope), ol.Executor().prepare(program, scope=scope)
    by_itself = ol.Executor().prepare(program, scope=alone)
    train({"x": X})
    by_itself({"x": X})
    address = scope.var("v").held.data_ptr()
    for _ in range(3):
        assert torch.allclose(inference(), expected(scope), rtol=1e-12)
        assert torch.allclose(inference(), expected(scope), rtol=1e-12)
        train({"x": X})
        by_itself({"x": X})
        assert scope.var("v").held.data_ptr() == address, "nobody held it"
    assert torch.equal(scope["v"], alone["v"])


def test_what_a_run_still_reads_is_not_written_over():
    """A training step that begins while an inference has its values leaves these as they are."""
    program = trained()
    scope = ol.init(program, ol.Scope())
    train = ol.Executor().prepare(program, scope=scope)
    train({"x": X})
    step = ol.Executor().prepare(scaled(), ["y"], scope=scope, return_numpy=False)
    step({"x": X})
    wanted = expected(scope)
    run = step._run

    def interrupted(values):
        train({"x": X})
        return run(values)

    step._run = interrupted
    assert torch.allclose(step({"x": X})[0], wanted, rtol=1e-12)
    step._run = run
    assert torch.allclose(step({"x": X})[0], expected(scope), rtol=1e-12)
    assert not torch.allclose(expected(scope), wanted)


def test_a_run_that_leases_while_a_value_is_given_does_not_keep_the_old_one(monkeypatch):
    program = scaled()
    scope = ol.init(program, ol.Scope())
    step, hold = prepared(program, scope), Variable.hold
    leased = []

    def hold_late(variable, value, **options):
        if not leased:
            leased.append(step())
        hold(variable, value, **options)

    monkeypatch.setattr(Variable, "hold", hold_late)
    scope["v"] = numpy.full((4, 3), 0.25)
    assert torch.allclose(step(), expected(scope), rtol=1e-12)
    assert not torch.allclose(step(), leased[0])


def test_what_is_kept_ends_with_the_step_and_with_the_lease():
    program = scaled()
    gc.collect()
    gc.disable()
    try:
        for end in (lambda scope: scope["v"], lambda scope: scope.set("g", numpy.zeros(3)), None):
            scope = ol.init(program, ol.Scope())
            step = ol.Executor().prepare(program, ["y"], scope=scope, return_numpy=False)
            step({"x": X})
            kept = weakref.ref(step._lease.cached[-1])
            if end is None:
                del step
            else:
                end(scope)
            assert kept() is None
    finally:
        gc.enable()


def test_a_dropped_scope_is_refused():
    program = scaled()
    scope = ol.init(program, ol.Scope())
    step = prepared(program, scope)
    step()
    scope.drop()
    with pytest.raises(ol.ScopeError, match="dropped"):
        step()


def test_a_parameter_that_comes_nearer_is_the_one_that_is_read():
    program = scaled()
    parent = ol.init(program, ol.Scope())
    scope = parent.new_scope()
    step = prepared(program, scope)
    first = [step() for _ in range(2)][-1]
    scope["v"] = numpy.zeros((4, 3))
    assert torch.allclose(first, expected(parent), rtol=1e-12)
    assert step().count_nonzero() == 0


def test_a_plan_that_writes_its_parameters_computes_them_itself():
    assert "def precompute" not in ol.Executor(passes=()).plan(trained(), ["y"]).text


@pytest.mark.parametrize("scopes", [1, 16])
def test_sixteen_threads_read_one_step_while_one_gives_values(scopes):
    """Each result is of one value of `v`, whole, and no older than the one that its thread has given."""
    program, executor = scaled(), ol.Executor()
    held = [ol.init(program, ol.Scope()) for _ in range(scopes)]
    steps = [executor.prepare(program, ["y"], scope=scope, return_numpy=False) for scope in held]
    factor = float(held[0].var("g").held.exp()[0])
    stop, wrong = threading.Event(), []

    def read(number):
        last = -1.0
        while not stop.is_set():
            y = steps[number % scopes]({"x": torch.ones(1, 4, dtype=torch.float64)})[0][0, 0]
            value = float(torch.atanh(y / (4 * factor))) * 1000
            if not (abs(value - round(value)) < 1e-3 and round(value) >= last):
                wrong.append((last, value))
            last = round(value)

    for scope in held:
        scope["v"] = numpy.zeros((4, 3))
    threads = [threading.Thread(target=read, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for value in range(1, 150 if scopes == 1 else 40):  # of which each is given to all scopes
        for number, scope in enumerate(held):
            scope["v"] = numpy.full((4, 3), value / 1000)
            y = steps[number]({"x": torch.ones(1, 4, dtype=torch.float64)})[0][0, 0]
            if abs(float(torch.atanh(y / (4 * factor))) * 1000 - value) > 1e-3:
                wrong.append(("own", value))
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong


def test_what_is_computed_ahead_asks_for_no_shape_that_a_run_keeps():
    """A constant is gone from a run when its shape is asked for, which the run keeps; what is computed ahead is another function."""
    with ol.Program() as program:
        w = program.main.new_var("w", ol.DType.FLOAT64, (3, 3), persistable=True)
        x = ol.layer.data("x", shape=[3], dtype="float64", batch="n")
        half = ol.op.full_like(w, value=0.5, dtype="float64")
        early = ol.op.square(ol.op.linear(x, half))
        wide = ol.op.broadcast_to_like(ol.op.reduce_sum(w, axis=0), half)
        y = ol.op.linear(early, wide) + ol.op.reduce_sum(ol.op.square(wide))
    scope = ol.Scope()
    scope.set("w", numpy.ones((3, 3)))
    step = ol.Executor().prepare(program, [y], scope=scope)
    assert [step({"x": [[number] * 3]})[0].tolist() for number in (2.0, 4.0)] == [[[162.0] * 3], [[405.0] * 3]]
