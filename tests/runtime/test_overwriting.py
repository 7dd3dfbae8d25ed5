"""Updates in the memory of what they update: nobody who holds a value sees it change, a step happens whole or not at all."""

import signal
import sys
import threading
import time

import numpy
import pytest
import torch

import oarlock as ol
from oarlock.backend.torch.variants import in_place_variant, variants_of
from oarlock.registry import Catalogue, standard
from oarlock.runtime.variable import Variable

FEED = {"x": numpy.linspace(-1, 1, 12).reshape(4, 3)}
NAMES = ("f.w", "f.b", "g.w", "g.b")
OPTIMIZERS = {
    "sgd": lambda: ol.optimizer.SGD(0.1),
    "momentum": lambda: ol.optimizer.Momentum(0.1),
    "adam": lambda: ol.optimizer.Adam(0.1),
}


def network(optimizer="momentum"):
    with ol.Program(seed=3) as program:
        x = ol.layer.data("x", shape=[3], dtype="float64")
        hidden = ol.layer.fc(x, 3, act="tanh", name="f")
        cost = ol.layer.mean(ol.op.square(ol.layer.fc(hidden, 2, name="g")))
        program.targets["cost"] = cost
        OPTIMIZERS[optimizer]().minimize(cost)
    return program


def step_of(program, scope, fetch=(), executor=None, **options):
    return (executor or ol.Executor()).prepare(program, fetch, scope=scope, **options)


def bits(scope):
    return {name: scope[name].numpy().tobytes() for name in scope}


def after_steps(program, count, make=lambda: ol.Executor(passes=())):
    """The bits of a scope that nobody looks into, after each number of steps."""
    scope, found = ol.init(program, ol.Scope()), []
    step = step_of(program, scope, executor=make())
    for _ in range(count):
        found.append(bits(scope))
        step(FEED)
    return [*found, bits(scope)]


# Nobody who holds a value sees it change


def given_tensor(scope):
    tensor = torch.full((3, 3), 0.5, dtype=torch.float64)
    scope.set("f.w", tensor)
    return tensor


def shared_tensor(scope):
    """A tensor that a second scope has too."""
    other = ol.Scope()
    other.set("f.w", scope["f.w"])
    return other


HOLDERS = {
    "a reference": lambda scope: scope["f.w"],
    "a handle's value": lambda scope: scope.var("f.w").value,
    "a view": lambda scope: scope["f.w"].T,
    "a view of a view": lambda scope: scope["f.w"].view(-1)[2:7],
    "a detached tensor": lambda scope: scope["f.w"].detach(),
    "its memory alone": lambda scope: torch.empty(0, dtype=torch.float64).set_(scope["f.w"].untyped_storage()),
    "an array": lambda scope: scope["f.w"].numpy(),
    "a view as an array": lambda scope: scope["f.w"][1:].numpy(),
    "a tensor that was put in": given_tensor,
    "another scope": shared_tensor,
}


def content(held):
    held = held["f.w"] if isinstance(held, ol.Scope) else held
    return (held.numpy() if isinstance(held, torch.Tensor) else held).tobytes()


@pytest.mark.parametrize("steps_before", [0, 2])
@pytest.mark.parametrize("optimizer", list(OPTIMIZERS))
@pytest.mark.parametrize("hold", list(HOLDERS.values()), ids=list(HOLDERS))
def test_what_somebody_holds_stays_as_it_is(hold, optimizer, steps_before):
    program = network(optimizer)
    scope = ol.init(program, ol.Scope())
    step = step_of(program, scope)
    for _ in range(steps_before):
        step(FEED)
    held = hold(scope)
    before = content(held)
    for _ in range(3):
        step(FEED)
        assert content(held) == before
    assert scope["f.w"].numpy().tobytes() != before, "the step was made"


@pytest.mark.parametrize("fetch", ["f.w", "view", "following"])
def test_what_a_step_returns_is_the_callers(fetch):
    program = network("sgd")
    with program:
        program.targets["view"] = ol.op.reshape(program.main.var("f.w"), shape=(9,))
        program.targets["following"] = program.main.var("f.w@NEXT")
    scope = ol.init(program, ol.Scope())
    step = step_of(program, scope, [fetch], return_numpy=False)
    held, copies = [], []
    for _ in range(4):
        before = scope["f.w"].clone()
        (value,) = step(FEED)
        expected = scope["f.w"] if fetch == "following" else before
        assert torch.equal(value.reshape(-1), expected.reshape(-1))
        held.append(value)
        copies.append(value.clone())
    assert all(torch.equal(*pair) for pair in zip(held, copies, strict=True))
    assert len({copy.numpy().tobytes() for copy in copies}) == 4, "each step has changed it"


def places(scope):
    """Where the values lie that a step writes over; `held` is read, and not lent."""
    return {name: scope.var(name).held.data_ptr() for name in scope if "learning_rate" not in name}


def test_memory_that_was_lent_to_nobody_is_used_again():
    program = network("adam")
    scope = ol.init(program, ol.Scope())
    step = step_of(program, scope)
    step(FEED)
    before = places(scope)
    assert set(NAMES) < set(before)
    for _ in range(5):
        step(FEED)
        assert places(scope) == before


@pytest.mark.parametrize("hold", list(HOLDERS.values()), ids=list(HOLDERS))
@pytest.mark.parametrize("optimizer", list(OPTIMIZERS))
def test_what_was_lent_is_copied_once(optimizer, hold):
    program = network(optimizer)
    scope = ol.init(program, ol.Scope())
    step = step_of(program, scope)
    step(FEED)
    before = places(scope)
    held = hold(scope)
    step(FEED)
    after = places(scope)
    assert {name for name in after if after[name] != before[name]} == {"f.w"}
    del held  # whoever looks for those that hold it would find none now
    for _ in range(3):
        step(FEED)
        assert places(scope) == after


@pytest.mark.parametrize("fetched_as_arrays", [True, False])
def test_a_value_that_a_step_returns_as_an_array_is_not_lent(fetched_as_arrays):
    program = network("sgd")
    scope = ol.init(program, ol.Scope())
    step = step_of(program, scope, ["f.w@NEXT"], return_numpy=fetched_as_arrays)
    step(FEED)
    before = places(scope)
    step(FEED)
    assert (places(scope) == before) is fetched_as_arrays


def test_who_looks_on_and_who_does_not_end_with_the_same_bits():
    program = network("adam")
    expected = after_steps(program, 4)
    scope = ol.init(program, ol.Scope())
    step = step_of(program, scope, executor=ol.Executor(passes=()))
    held = []
    for number in range(4):
        assert bits(scope) == expected[number]
        held.append([scope[name] for name in scope if (number + len(name)) % 2])
        step(FEED)
    assert bits(scope) == expected[4]


def test_one_tensor_that_two_parameters_hold_is_two_values():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[], dtype="float64", batch=None)
        pair = [program.main.new_var(name, ol.DType.FLOAT64, (2,), persistable=True, parameter=True, trainable=True) for name in "ab"]
        cost = ol.op.reduce_sum(ol.op.square(pair[0]) * x) + ol.op.reduce_sum(pair[1] * x)
        ol.optimizer.SGD(0.5).minimize(cost)
    scope, tensor = ol.Scope(), torch.tensor([1.0, 2.0], dtype=torch.float64)
    for var in program.persistables():
        scope.set(var.name, numpy.full(var.shape, 0.5, str(var.dtype)))
    scope.set("a", tensor)
    scope.set("b", tensor)
    del tensor
    step = step_of(program, scope)
    step({"x": 1.0})
    assert [scope["a"].tolist(), scope["b"].tolist()] == [[0.0, 0.0], [0.5, 1.5]]
    scope.set("b", scope["a"])
    step({"x": 1.0})
    assert [scope["a"].tolist(), scope["b"].tolist()] == [[0.0, 0.0], [-0.5, -0.5]]


# A step that raises changes nothing


@pytest.fixture
def catalogue():
    """The standard operators, and room for more."""
    found = Catalogue()
    found.operators.update(standard.operators)
    found.gradient_operators.update(standard.gradient_operators)
    return found


def test_a_wrong_feed_changes_nothing():
    program = network()
    scope = ol.init(program, ol.Scope())
    step = step_of(program, scope)
    step(FEED)
    before = bits(scope)
    with pytest.raises(ol.FeedError):
        step({"x": numpy.zeros((4, 2))})
    assert bits(scope) == before
    step(FEED)
    assert bits(scope) == after_steps(program, 2, ol.Executor)[2]


@pytest.mark.parametrize("of", ["f.w", "f.w@NEXT"], ids=["before the updates", "on what one has made"])
@pytest.mark.parametrize("optimizer", list(OPTIMIZERS))
def test_a_kernel_that_fails_changes_nothing(optimizer, of):
    program = network(optimizer)
    with program:
        rows = ol.layer.data("rows", shape=[], dtype="int64", batch="k")
        program.targets["row"] = ol.op.gather(program.main.var(of), rows)
    scope = ol.init(program, ol.Scope())
    step = step_of(program, scope, ["row"])
    step({**FEED, "rows": [1]})
    before = bits(scope)
    with pytest.raises(ol.KernelError, match="no state was changed"):
        step({**FEED, "rows": [7]})
    assert bits(scope) == before


def test_an_update_of_ones_own_that_fails_changes_nothing(catalogue):
    @ol.operator("param: float[*b], grad: float[*b] -> next: float[*b]", catalogue=catalogue)
    def careful_step(param, grad):
        return careful_step_in_place(param.clone(), grad)

    @in_place_variant(careful_step, "param")
    def careful_step_in_place(param, grad):
        param.sub_(grad)
        if param.sum() > limit[0]:
            raise ValueError("that is too much")
        return param

    limit = [100.0]
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[], dtype="float64", batch="k")
        held = [program.main.new_var(name, ol.DType.FLOAT64, (2,), persistable=True) for name in "ab"]
        for var in held:
            program.main.commit(var, careful_step(var, ol.op.multiply(var, ol.op.reduce_sum(x))))
    scope = ol.Scope()
    for name in "ab":
        scope.set(name, numpy.array([1.0, 2.0 if name == "a" else 3.0]))
    step = step_of(program, scope, executor=ol.Executor(catalogue=catalogue))
    step({"x": [-1.0]})
    before = bits(scope)
    limit[0] = 9.0  # the first goes from 6.0 to 7.2, the second from 8.0 to 9.6
    with pytest.raises(ol.KernelError, match="that is too much"):
        step({"x": [-0.2]})
    assert bits(scope) == before


def test_a_parameter_of_another_shape_is_refused_before_anything_changes():
    program = network("momentum")
    scope = ol.init(program, ol.Scope())
    step = step_of(program, scope)
    step(FEED)
    scope.set("g.b", torch.zeros(5, dtype=torch.float64))
    before = bits(scope)
    with pytest.raises(ol.ShapeError) as raised:
        step(FEED)
    assert raised.value.message == '"g.b" is float64[5] in the scope, but float64[2] in the program'
    assert bits(scope) == before
    scope.set("g.b", torch.zeros(2, dtype=torch.float64))
    step(FEED)
    assert scope["f.w"].numpy().tobytes() != before["f.w"], "nothing is locked, or taken, for good"


def test_a_rate_that_is_no_number_is_refused_before_anything_changes():
    program = network("sgd")
    parameters = program.parameters()
    with program:
        cost = program.targets["cost"]
        extra = program.main.new_var("extra", ol.DType.FLOAT64, (2,), persistable=True, parameter=True, trainable=True)
        ol.optimizer.SGD(0.1).minimize(cost + ol.op.reduce_sum(extra), parameters=[extra])
    del parameters
    scope = ol.Scope()
    for var in program.persistables():
        scope.set(var.name, numpy.full(var.shape, 0.1, str(var.dtype)))
    step = step_of(program, scope)
    step(FEED)
    scope.set("sgd_1.learning_rate", numpy.array([0.1, 0.2]))
    before = bits(scope)
    with pytest.raises(ol.OarlockError):
        step(FEED)
    assert bits(scope) == before


# Interrupts


@pytest.fixture
def default_handler():
    """Ctrl-C raises KeyboardInterrupt, also where whoever has started the tests, as `nohup`, ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def during_updates(monkeypatch):
    """A list of functions, the first of which is called when the first parameter of a step has been written over."""
    waiting = []
    operator = standard.get("multi_tensor_sgd")
    ((slots, kernel),) = variants_of(operator).in_place.items()

    def called(params, *others, **attributes):
        results = kernel(params, *others, **attributes)
        if waiting:
            waiting.pop(0)()
        return results

    monkeypatch.setitem(variants_of(operator).in_place, slots, called)
    return waiting


def interrupt_from_a_thread():
    thread = threading.Thread(target=lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGINT))
    thread.start()
    thread.join()


@pytest.mark.usefixtures("default_handler")
@pytest.mark.parametrize("held", [[], ["f.w"], ["g.b"], list(NAMES)], ids=["nothing", "the first", "the last", "everything"])
@pytest.mark.parametrize("interrupt", [lambda: signal.raise_signal(signal.SIGINT), interrupt_from_a_thread], ids=["here", "elsewhere"])
def test_an_interrupt_during_updates_comes_after_the_whole_step(interrupt, held, during_updates):
    program = network("sgd")
    scope = ol.init(program, ol.Scope())
    step = step_of(program, scope, executor=ol.Executor(passes=("multi_tensor_updates",)))
    expected = after_steps(program, 3)
    step(FEED)
    kept = [scope[name] for name in held]
    copies = [tensor.clone() for tensor in kept]
    during_updates.append(interrupt)
    with pytest.raises(KeyboardInterrupt):
        step(FEED)
    assert not during_updates
    assert bits(scope) == expected[2]
    step(FEED)
    assert bits(scope) == expected[3]
    assert all(torch.equal(*pair) for pair in zip(kept, copies, strict=True))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_before_the_updates_changes_nothing(monkeypatch):
    program = network("sgd")
    scope = ol.init(program, ol.Scope())
    executor = ol.Executor(passes=("multi_tensor_updates",))
    operator = standard.get("tanh")
    in_place = dict(variants_of(operator).in_place)
    interrupts = []

    def interrupted(x, **options):
        if interrupts:
            raise interrupts.pop()
        return torch.tanh(x, **options)

    monkeypatch.setattr(operator, "kernel", interrupted)
    monkeypatch.setattr(variants_of(operator), "in_place", dict.fromkeys(in_place, interrupted))
    step = step_of(program, scope, executor=executor)
    step(FEED)
    before = bits(scope)
    interrupts.append(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        step(FEED)
    assert bits(scope) == before
    step(FEED)
    assert bits(scope) != before


@pytest.mark.usefixtures("default_handler")
def test_a_thread_that_trains_is_not_interrupted_for_the_main_one(during_updates):
    program = network("sgd")
    scope = ol.init(program, ol.Scope())
    step = step_of(program, scope, executor=ol.Executor(passes=("multi_tensor_updates",)))
    expected = after_steps(program, 2)
    during_updates.append(lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGINT))
    done = threading.Event()
    thread = threading.Thread(target=lambda: (step(FEED), step(FEED), done.set()))
    with pytest.raises(KeyboardInterrupt):
        thread.start()
        time.sleep(30.0)
    assert done.wait(30.0)
    assert bits(scope) == expected[2]


# Threads


@pytest.fixture
def many_switches():
    """Threads give way to each other all the time."""
    before = sys.getswitchinterval(), torch.get_num_threads()
    sys.setswitchinterval(1e-6)
    torch.set_num_threads(1)
    yield
    sys.setswitchinterval(before[0])
    torch.set_num_threads(before[1])


def run_threads(*functions):
    """Run functions at once; raise what one of them raises."""
    failures = []

    def work(function):
        torch.set_num_threads(1)
        try:
            function()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


@pytest.mark.parametrize("children", [False, True])
def test_sixteen_threads_in_sixteen_scopes_end_with_the_bits_of_one(children, many_switches):
    program, executor = network("adam"), ol.Executor()
    expected = after_steps(program, 10, ol.Executor)[10]
    parent = ol.Scope()
    scopes = [ol.init(program, parent.new_scope() if children else ol.Scope()) for _ in range(16)]
    steps = [step_of(program, scope, ["cost"], executor) for scope in scopes]
    run_threads(*(lambda step=step: [step(FEED) for _ in range(10)] for step in steps))
    assert all(bits(scope) == expected for scope in scopes)


def equals():
    """Parameters that are always equal, and a target that is all of them."""
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[], dtype="float64", batch=None)
        alike = [program.main.new_var(name, ol.DType.FLOAT64, (9,), persistable=True, parameter=True, trainable=True) for name in LETTERS]
        cost = ol.op.reduce_sum(ol.op.concat([var * x for var in alike], axis=0))
        program.targets["all"] = ol.op.concat(alike, axis=0)
        ol.optimizer.SGD(1.0).minimize(cost)
    scope = ol.Scope()
    for var in program.persistables():
        scope.set(var.name, numpy.full(var.shape, "learning_rate" in var.name, str(var.dtype)))
    return program, scope


LETTERS = "abcdefghijklmnop"


def test_a_step_that_is_made_while_an_evaluation_reads_is_seen_whole_or_not_at_all(monkeypatch):
    program, scope = equals()
    executor = ol.Executor()
    step = step_of(program, scope, [], executor)
    step({"x": -1.0})
    executor.eval(program, ["all"], scope=scope)
    trainers = []
    read_one = Variable.read

    def read(variable, *lease, **options):
        found = read_one(variable, *lease, **options)
        if not trainers:  # after the first of sixteen
            trainers.append(threading.Thread(target=step, args=({"x": -1.0},)))
            trainers[0].start()
            trainers[0].join(0.3)
        return found

    monkeypatch.setattr(Variable, "read", read)
    (values,) = executor.eval(program, ["all"], scope=scope)
    trainers[0].join()
    monkeypatch.undo()
    assert len(set(values)) == 1, "one parameter is of another step than the other"
    assert scope["a"][0] == 2.0


@pytest.mark.parametrize("passes", [(), None], ids=["as it is", "after all passes"])
def test_who_evaluates_while_another_trains_sees_a_state_between_two_steps(passes, many_switches):
    program, scope = equals()
    executor = ol.Executor() if passes is None else ol.Executor(passes=passes)
    step = step_of(program, scope, ["all"], executor)
    done = threading.Event()

    def train():
        try:
            for _ in range(300):
                step({"x": -1.0})
        finally:
            done.set()

    def evaluate():
        last = 0.0
        while not done.is_set():
            (values,) = executor.eval(program, ["all"], {"x": -1.0}, scope=scope)
            assert len(set(values)) == 1, "one parameter is of another step than the other"
            assert last <= values[0] == int(values[0])
            last = values[0]

    run_threads(train, evaluate, evaluate)
    assert scope["a"][0] == scope["p"][0] == 300.0


def test_threads_that_train_in_one_scope_take_turns(many_switches):
    program, scope = equals()
    step = step_of(program, scope)
    step({"x": 0.0})
    run_threads(*[lambda: [step({"x": -1.0}) for _ in range(50)]] * 4)
    assert scope["a"].tolist() == scope["p"].tolist() == [200.0] * 9


def test_who_reads_a_scope_while_another_trains_never_sees_half_an_update(many_switches):
    program, scope = equals()
    step = step_of(program, scope)
    done = threading.Event()

    def train():
        try:
            for _ in range(300):
                step({"x": -1.0})
        finally:
            done.set()

    def look():
        while not done.is_set():
            value = scope["a"]
            assert len(set(value.tolist())) == 1
            assert torch.equal(value, value.clone())

    run_threads(train, look, look)


def test_what_a_memory_began_as_is_kept_where_it_goes_on_by_way_of_two_others():
    with ol.Program() as program:
        x = ol.layer.data("x", [3], dtype="float64", batch=None)
        xs = ol.layer.data("xs", [1], dtype="float64", batch="t")
        rnn = ol.rnn()
        first = ol.op.tanh(x)
        with rnn.step():
            rnn.step_input(xs)
            memories = [rnn.memory(init=var) for var in (first, x, x)]
            before = [rnn.previous_memory(memory) for memory in memories]
            for memory, following in zip(memories, (*before[1:], before[0]), strict=True):
                rnn.update_memory(memory, following)
            rnn.output(before[0])
        rnn()
        after = ol.op.exp(first)  # which may not be computed where `first` lies: after two steps, the second memory is `first`
        y = ol.op.add(after, rnn.final_memory(memories[1]))
    feed = {"x": numpy.array([0.1, 0.2, 0.3]), "xs": numpy.zeros((2, 1))}
    for executor in (ol.Executor(interpret=True), ol.Executor(passes=()), ol.Executor(), ol.Executor(poison=True)):
        (found,) = executor.run(program, feed, [y], scope=ol.Scope())
        first_value = numpy.tanh(feed["x"])
        numpy.testing.assert_allclose(found, numpy.exp(first_value) + first_value)


def forms_of(program, wanted, operator):
    """Where a plan without passes, which gives the interpreter's bits, writes over what an operator reads."""
    plan = ol.Executor(passes=()).plan(program, wanted)
    lines = [line for line in plan.text.splitlines() if f" = {operator}_" in line]
    return [f" = {operator}_in_place_" in line for line in lines]


def require_bits(program, feed, wanted):
    for executor in (ol.Executor(passes=()), ol.Executor(passes=(), poison=True)):
        found = executor.run(program, feed, wanted, scope=ol.Scope())
        expected = ol.Executor(interpret=True).run(program, feed, wanted, scope=ol.Scope())
        assert [one.tobytes() for one in found] == [other.tobytes() for other in expected]


READERS = {
    "multiply": (lambda y: ol.op.multiply(y, y), True),
    "reduce_sum": (ol.op.reduce_sum, False),
    "sigmoid": (ol.op.sigmoid, False),  # takes what does not fill a vector one by one, and rounds that otherwise
    "split": (lambda y: ol.op.split(y, axis=-1, sections=1)[0], False),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_part_of_a_wider_value_is_not_written_over_where_the_result_would_be_rounded_otherwise(reader):
    read, in_place = READERS[reader]
    with ol.Program() as program:
        x = ol.layer.data("x", [21], dtype="float64", batch="n")
        y = read(ol.op.tanh(ol.op.split(ol.op.exp(x), axis=-1, sections=3)[2]))
    assert forms_of(program, [y], "tanh") == [in_place]
    for rows in range(1, 12):
        require_bits(program, {"x": numpy.random.default_rng(rows).uniform(-1, 1, (rows, 21))}, [y])


def test_a_part_is_not_written_over_where_the_next_op_would_have_to_take_new_memory_for_that():
    with ol.Program() as program:
        x = ol.layer.data("x", [12], dtype="float64", batch="n")
        part = ol.op.split(ol.op.exp(x), axis=-1, sections=3)[2]
        y = ol.op.tanh(ol.op.exp(part))
    assert (forms_of(program, [y], "exp"), forms_of(program, [y], "tanh")) == ([False, False], [True])
    require_bits(program, {"x": numpy.random.default_rng(0).uniform(-1, 1, (5, 12))}, [y])


def gates(between=lambda whole, parts, first: None, size=12):
    """Parts of one value, of which the second is read after the first may have been written over, and what stands `between`."""
    with ol.Program() as program:
        whole = ol.op.exp(ol.layer.data("x", [size], dtype="float64", batch="n"))
        parts = ol.op.split(whole, axis=-1, sections=3)
        first = ol.op.tanh(parts[0])
        other = between(whole, parts, first)
        y = ol.op.multiply(first, ol.op.tanh(parts[1]))
        y = ol.op.multiply(y, y)
    return program, [y] if other is None else [y, other]


@pytest.mark.parametrize(
    ("between", "in_place"),
    [
        (lambda whole, parts, first: None, [True, True]),
        (lambda whole, parts, first: ol.op.multiply(whole, whole), [False, True]),
        (lambda whole, parts, first: ol.op.multiply(parts[0], parts[2]), [False, True]),
        (lambda whole, parts, first: ol.op.multiply(ol.op.slice(whole, axis=-1, start=0, stop=4), parts[2]), [False, True]),
        (lambda whole, parts, first: ol.op.multiply(ol.op.split(whole, axis=-1, sections=3)[0], parts[2]), [False, True]),
        (lambda whole, parts, first: ol.op.exp(ol.op.split(parts[0], axis=-1, sections=2)[1]), [False, True]),
        (lambda whole, parts, first: whole, [False, False]),
        (lambda whole, parts, first: parts[0], [False, True]),
        (lambda whole, parts, first: parts[2], [True, True]),
    ],
    ids=["nothing", "whole", "part", "slice", "second split", "part of part", "whole kept", "part kept", "other part kept"],
)
def test_a_part_is_written_over_where_neither_it_nor_the_whole_is_read_again(between, in_place):
    program, wanted = gates(between)
    assert forms_of(program, wanted, "tanh") == in_place
    require_bits(program, {"x": numpy.random.default_rng(0).uniform(-1, 1, (5, 12))}, wanted)


def test_an_op_that_reads_a_part_and_the_whole_writes_over_neither():
    with ol.Program() as program:
        whole = ol.op.exp(ol.layer.data("x", [12], dtype="float64", batch="n"))
        part = ol.op.split(whole, axis=0, sections=1)[0]  # all rows: the shapes fit
        y = ol.op.multiply(part, whole)
        z = ol.op.multiply(y, y)
    assert forms_of(program, [z], "multiply")[0] is False
    require_bits(program, {"x": numpy.random.default_rng(0).uniform(-1, 1, (5, 12))}, [z])


@pytest.mark.parametrize("read_after", [False, True])
def test_gates_are_computed_over_the_steps_of_a_sequence_that_nobody_reads_after_the_loop(read_after):
    with ol.Program() as program:
        x = ol.layer.data("x", [8], dtype="float64", batch="t")
        start = ol.layer.data("start", [4], dtype="float64", batch=None)
        xs = ol.op.exp(x)
        rnn = ol.rnn()
        with rnn.step():
            step = rnn.step_input(xs)
            left, right = ol.op.split(step, axis=-1, sections=2)
            memory = rnn.memory(init=start)
            rnn.update_memory(memory, ol.op.multiply(ol.op.tanh(left), ol.op.add(ol.op.tanh(right), rnn.previous_memory(memory))))
        rnn()
        y = rnn.final_memory(memory)
        wanted = [y, ol.op.multiply(xs, xs)] if read_after else [y]
    assert forms_of(program, wanted, "tanh") == [not read_after] * 2
    require_bits(program, {"x": numpy.random.default_rng(0).uniform(-1, 1, (6, 8)), "start": numpy.zeros(4)}, wanted)


@pytest.mark.parametrize("reader", READERS)
def test_steps_with_gaps_are_not_written_over_where_the_result_would_be_rounded_otherwise(reader):
    read, in_place = READERS[reader]
    with ol.Program() as program:
        x = ol.layer.data("x", [5, 21], dtype="float64", batch="t")
        xs = ol.op.split(ol.op.exp(x), axis=-1, sections=3)[1]
        rnn = ol.rnn()
        with rnn.step():
            step = rnn.step_input(xs)
            rnn.output(read(ol.op.tanh(step)))
        y = rnn()
    assert forms_of(program, [y], "tanh") == [in_place]
    require_bits(program, {"x": numpy.random.default_rng(0).uniform(-1, 1, (6, 5, 21))}, [y])


@pytest.mark.parametrize("reader", READERS)
def test_a_memory_with_gaps_is_not_written_over_where_the_result_would_be_rounded_otherwise(reader):
    read, in_place = READERS[reader]
    with ol.Program() as program:
        x = ol.layer.data("x", [5, 21], dtype="float64", batch="t")
        start = ol.op.exp(ol.layer.data("start", [5, 7], dtype="float64", batch=None))
        rnn = ol.rnn()
        with rnn.step():
            step = rnn.step_input(x)
            memory = rnn.memory(init=start)
            rnn.update_memory(memory, ol.op.split(ol.op.exp(step), axis=-1, sections=3)[1])
        rnn()
        y = read(ol.op.tanh(rnn.final_memory(memory)))
    assert forms_of(program, [y], "tanh") == [in_place]
    feed = {"x": numpy.random.default_rng(0).uniform(-1, 1, (6, 5, 21)), "start": numpy.zeros((5, 7))}
    require_bits(program, feed, [y])
