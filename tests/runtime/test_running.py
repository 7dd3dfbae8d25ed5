"""`ol.run_block`: every op of a range, in the caller's scope; and what is declared, checked against what is there."""

import importlib
from collections import Counter

import numpy
import pytest
import torch
from rounding import require_as_interpreted

import oarlock as ol
from oarlock.passes.pipeline import optimize
from oarlock.registry import Catalogue

X = numpy.array([[1, 2, 3], [-1, 0, 1]], "float32")


def three_ops():
    with ol.Program(seed=3) as program:
        x = ol.layer.data("x", shape=[3])
        ol.op.relu(ol.op.neg(ol.op.square(x, name="a"), name="b"), name="c")
    return program


def scope_with(**values):
    scope = ol.Scope()
    for name, value in values.items():
        scope.set(name, value)
    return scope


@pytest.mark.mission("B42", "B5")
def test_a_block_runs_every_op_in_order_and_leaves_the_values_in_the_scope():
    program = three_ops()
    scope = scope_with(x=X)
    assert ol.run_block(program.main, scope) is None
    assert list(scope) == ["x", "a", "b", "c"]
    assert scope["b"].tolist() == (-(X**2)).tolist()
    assert scope["c"].tolist() == numpy.zeros((2, 3)).tolist()


@pytest.mark.mission("B42", "B6")
def test_a_nested_block_runs_alone_where_its_scope_is_a_child():
    """A block stands where an op stands: it reads what is around it, and writes in the scope it is given."""
    with ol.Program() as program:
        xs = ol.layer.data("xs", shape=[2], batch="t")
        factor = ol.layer.data("factor", shape=[2], batch=None)
        loop = ol.rnn()
        with loop.step():
            loop.output(ol.op.multiply(loop.step_input(xs), factor, name="scaled"))
        loop()
    body = program.blocks[1]
    outer = scope_with(factor=numpy.array([2, 3], "float32"))
    step = outer.new_scope("step")
    step.set(body.inputs[0].name, numpy.array([10, 20], "float32"))
    ol.run_block(body, step)
    assert step["scaled"].tolist() == [20, 60]
    assert "scaled" not in outer


def test_a_second_call_goes_on_where_the_first_stopped():
    program = three_ops()
    scope = scope_with(x=X)
    ol.run_block(program.main, scope, end=1)
    assert list(scope) == ["x", "a"]
    scope.set("a", X)  # so that the rest is seen to start from what is there
    ol.run_block(program.main, scope, begin=1)
    assert scope["b"].tolist() == (-X).tolist()
    ol.run_block(program.main, scope, begin=1, end=1)
    with pytest.raises(ol.ArgumentError, match=r"^there are no ops \[2, 9\) in main(?s:.*)0 <= begin <= end <= 3, the number of ops"):
        ol.run_block(program.main, scope, begin=2, end=9)
    with pytest.raises(ol.ArgumentError, match=r"^there are no ops \[-1, 3\) in main"):
        ol.run_block(program.main, scope, begin=-1)
    with pytest.raises(ol.ArgumentError, match=r"^there are no ops \[2, 1\) in main"):
        ol.run_block(program.main, scope, begin=2, end=1)


def test_one_block_runs_in_two_scopes_that_share_nothing_but_a_parent():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3])
        y = ol.layer.fc(x, 1, name="fc")
    parent = ol.init(program, ol.Scope())
    one, two = parent.new_scope(), parent.new_scope()
    one.set("x", X)
    two.set("x", 2 * X)
    for scope in (one, two):
        ol.run_block(program.main, scope)
    assert torch.allclose(two[y.name], 2 * one[y.name])
    assert y.name not in parent


@pytest.mark.mission("B43", "C15")
def test_shapes_are_inferred_with_unknown_sizes_and_again_with_those_of_a_minibatch():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3])
        y = ol.layer.concat([x, x], axis=0)
        w = ol.layer.fc(y, 5, name="fc")
    assert (y.shape, w.shape) == (("2*n", 3), ("2*n", 5))
    scope = scope_with(x=X)
    types = ol.infer_shape(program.main, scope)
    assert (types["x"].shape, types[y.name].shape, types[w.name].shape, types["fc.w"].shape) == ((2, 3), (4, 3), (4, 5), (3, 5))
    assert list(scope) == ["x"]
    scope.set("x", X[:1])
    assert ol.infer_shape(program.main, scope)[w.name].shape == (2, 5)
    assert ol.infer_shape(program.main, ol.Scope())[w.name].shape == ("2*n", 5)


@pytest.mark.mission("B44", "C15")
def test_what_does_not_fit_its_declaration_is_refused_before_anything_runs():
    program = three_ops()
    with pytest.raises(ol.ShapeError, match=r'^"x" is declared as float32\[n, 3\], but is float32\[3, 2\]'):
        ol.run_block(program.main, scope_with(x=X.reshape(3, 2)))
    with pytest.raises(ol.DTypeError, match=r'^"x" is declared as float32\[n, 3\], but is int64\[2, 3\]'):
        ol.run_block(program.main, scope_with(x=X.astype("int64")))
    with pytest.raises(ol.ShapeError, match=r'^"x" is declared as float32\[n, 3\], but is float32\[3\]'):
        ol.run_block(program.main, scope_with(x=X[0]))
    scope = ol.Scope()
    with pytest.raises(ol.UnsetVarError, match='^square reads "x", which has no value'):
        ol.run_block(program.main, scope)
    scope.var("x").value = "text"
    with pytest.raises(ol.DTypeError, match=r'^"x" is declared as float32\[n, 3\], but is str'):
        ol.run_block(program.main, scope)


def test_one_symbol_has_one_size_in_a_scope():
    with ol.Program() as program:
        ol.layer.data("x", shape=[3])
        ol.layer.data("y", shape=[])
    with pytest.raises(ol.ShapeError, match=r'^"y" is declared as float32\[n\], but is float32\[5\] \(n = 2 elsewhere\)'):
        ol.infer_shape(program.main, scope_with(x=X, y=numpy.ones(5, "float32")))


@pytest.fixture
def careless():
    """Operators whose kernels do not keep their signatures."""
    catalogue = Catalogue()

    @ol.operator("x: float[*b] -> y: float[*b]", catalogue=catalogue)
    def drop_row(x):
        return x[1:]

    @ol.operator("x: float[*b] -> y: float[*b]", catalogue=catalogue)
    def widen(x):
        return x.double()

    @ol.operator("x: float[n k] -> y: float[n+n k]", catalogue=catalogue)
    def double_rows(x):
        return torch.cat([x, x, x])

    @ol.operator("x: float[n k] -> y: float[n k]", catalogue=catalogue)
    def flatten(x):
        return x.flatten()

    return catalogue


@pytest.mark.parametrize(
    ("type", "error", "computed"),
    [
        ("drop_row", ol.ShapeError, r"float32\[n, 3\], but was computed as float32\[1, 3\] \(n = 2 elsewhere\)"),
        ("widen", ol.DTypeError, r"float32\[n, 3\], but was computed as float64\[2, 3\]"),
        ("double_rows", ol.ShapeError, r"float32\[2\*n, 3\], but was computed as float32\[6, 3\]"),
        ("flatten", ol.ShapeError, r"float32\[n, 3\], but was computed as float32\[6\]"),
    ],
)
@pytest.mark.mission("B43", "C15")
def test_what_an_op_computes_is_checked_against_what_was_inferred(careless, type, error, computed):
    with ol.Program() as program:
        y = careless.get(type)(ol.layer.data("x", shape=[3]), name="y")
    message = rf'^{type}: "y" is declared as {computed}'
    with pytest.raises(error, match=message) as refused:
        ol.run_block(program.main, scope_with(x=X), catalogue=careless)
    assert refused.value.location.text.startswith("y = careless.get")
    assert refused.value.running == "main, op 0 of 1"
    ol.run_block(program.main, scope_with(x=X), catalogue=careless, check=False)
    with pytest.raises(error, match=message):
        ol.Executor(catalogue=careless, check=True).run(program, {"x": X}, [y], scope=ol.Scope())
    ol.Executor(catalogue=careless).run(program, {"x": X}, [y], scope=ol.Scope())


@pytest.mark.mission("B45")
def test_a_block_is_verified_once_per_revision_and_then_only_run(monkeypatch):
    program = three_ops()
    verified = []
    monkeypatch.setattr("oarlock.registry.type_check.verify_program", verified.append)
    monkeypatch.setattr("oarlock.runtime.preparation.optimize", optimize)  # which verifies nothing, other than in tests
    scope = scope_with(x=X)
    for _ in range(3):
        ol.run_block(program.main, scope)
    assert len(verified) == 1
    ol.op.tanh(program.main.var("c"))
    ol.run_block(program.main, scope)
    assert len(verified) == 2
    for _ in range(3):
        ol.Executor(passes=()).run(program, {"x": X}, ["c"], scope=ol.Scope())
    assert len(verified) == 2


@pytest.mark.mission("B45", "C7")
def test_the_first_evaluation_prepares_and_those_after_it_only_compute(monkeypatch):
    """Nobody has to ask for it; what is prepared is kept until the program, or what is asked of it, is another."""
    program = three_ops()
    work = []

    def noted(module, name):
        original = getattr(importlib.import_module(module), name)
        monkeypatch.setattr(f"{module}.{name}", lambda *given, **named: work.append(name) or original(*given, **named))

    noted("oarlock.runtime.preparation", "optimize")
    noted("oarlock.runtime.preparation", "needed_ops")
    noted("builtins", "compile")
    for executor in (ol.Executor(), ol.Executor(passes=()), ol.Executor(interpret=True)):
        work.clear()
        values = [executor.eval(program, ["c", "a"], {"x": X + number}, scope=ol.Scope()) for number in range(3)]
        for number, (c, a) in enumerate(values):  # what eval returns are the values of its targets
            assert (c.tolist(), a.tolist()) == (numpy.zeros((2, 3)).tolist(), ((X + number) ** 2).tolist())
        prepared = Counter(work)
        assert prepared["needed_ops"] == 1
        assert prepared["compile"] == executor.planned
        executor.eval(program, ["b"], {"x": X}, scope=ol.Scope())
        assert Counter(work)["needed_ops"] == 2
        before = len(work)
        executor.eval(program, ["c", "a"], {"x": X}, scope=ol.Scope())
        assert len(work) == before


@pytest.mark.mission("B46", "B50")
def test_one_block_holds_forward_backward_and_update_and_runs_them_as_the_executor_does():
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", shape=[3])
        cost = ol.layer.mean(ol.op.square(ol.layer.dropout(ol.layer.fc(x, 4), rate=0.5)))
        ol.optimizer.Adam(0.1).minimize(cost)
    mine, theirs = ol.init(program, ol.Scope()), ol.init(program, ol.Scope())
    mine.set("x", X)
    executor = ol.Executor(passes=())  # with them it may round otherwise
    for _ in range(3):
        ol.run_block(program.main, mine, ol.Context(mine, training=True))
        (value,) = executor.run(program, {"x": X}, [cost], scope=theirs, training=True)
        require_as_interpreted(program, {cost.name: value}, {cost.name: mine[cost.name]})
    names = [var.name for var in program.persistables()]
    require_as_interpreted(program, {name: theirs[name] for name in names}, {name: mine[name] for name in names})
    assert int(mine["@STEP"]) == 3


@pytest.mark.mission("B42", "C8")
def test_a_context_is_the_place_and_the_mode_and_the_scope_is_said():
    with ol.Program() as program:
        y = ol.layer.dropout(ol.layer.data("x", shape=[3]), rate=0.5)
    scope, other = scope_with(x=numpy.ones((8, 3), "float32")), ol.Scope()
    ol.run_block(program.main, scope, ol.Context(other, training=False))
    assert scope[y.name].unique().tolist() == [1]
    ol.run_block(program.main, scope, ol.Context(other, training=True))
    assert scope[y.name].unique().tolist() == [0, 2]
    assert list(other) == []


@pytest.mark.parametrize(("training", "changes"), [((), True), ((None,), True), ((True,), True), ((False,), False)])
@pytest.mark.parametrize(
    "run",
    [
        lambda program, scope, context: ol.run_block(program.main, scope, context),
        lambda program, scope, context: program.main.run(scope, context),
        lambda program, scope, context: ol.Net(program).run(scope, context),
    ],
    ids=["run_block", "Block.run", "Net.run"],
)
def test_a_run_that_is_not_training_changes_nothing(run, training, changes):
    with ol.Program(seed=0) as program:
        x = ol.layer.data("x", [3])
        ol.optimizer.Adam(0.1).minimize(ol.layer.mean(ol.op.square(ol.layer.batch_norm(ol.layer.fc(x, 2)) + 1)))
    scope = ol.init(program, ol.Scope())
    before = {name: scope[name].tolist() for name in scope}
    inner = scope.new_scope()
    inner.set("x", X)
    run(program, inner, ol.Context(inner, ol.CPUPlace(), *training))
    stays = {name for name, value in before.items() if scope[name].tolist() == value}
    assert stays == ({"adam_0.learning_rate"} if changes else set(before))


def test_an_input_that_carries_its_value_needs_none():
    with ol.Program() as program:
        x = ol.minibatch([1, 2])
        y = x + 1
    scope = ol.Scope()
    ol.run_block(program.main, scope)
    assert scope[y.name].tolist() == [[2], [3]]
    scope.set(x.name, numpy.array([[5]], "float32"))
    ol.run_block(program.main, scope)
    assert scope[y.name].tolist() == [[6]]


def test_a_program_that_is_not_legal_does_not_run():
    program = three_ops()
    program.main.ops.reverse()
    program.changed()
    scope = scope_with(x=X)
    with pytest.raises(ol.VerifyError, match='^main, op 0 .relu.: it reads "b" before that has a value'):
        ol.run_block(program.main, scope)
    assert list(scope) == ["x"]


def test_what_ran_before_an_error_stays_and_nothing_persistable_is_written():
    with ol.Program() as program:
        table = ol.layer.data("x", shape=[3])
        cost = ol.layer.cross_entropy(ol.layer.fc(table, 2, name="fc"), ol.layer.data("label", shape=[], dtype="int64"))
        ol.optimizer.SGD(1.0).minimize(cost)
    scope = ol.init(program, ol.Scope())
    before = scope["fc.w"].clone()
    scope.set("x", X)
    scope.set("label", numpy.array([0, 7]))
    with pytest.raises(ol.KernelError):
        ol.run_block(program.main, scope)
    assert "fc.out" in scope
    assert torch.equal(scope["fc.w"], before)


def test_an_op_makes_its_output_at_the_place_of_the_context_of_the_size_that_follows():
    with ol.Program() as program:
        y = ol.op.linear(ol.layer.data("x", shape=[3]), ol.layer.data("w", shape=[3, 5], batch=None))
    for place in (ol.CPUPlace(), *(ol.GPUPlace(index) for index in range(torch.cuda.device_count()))):
        scope = ol.Scope()
        scope.set("x", torch.ones(2, 3, device=place.device))
        scope.set("w", torch.ones(3, 5, device=place.device))
        ol.run_block(program.main, scope, ol.Context(scope, place))
        assert (scope[y.name].device.type, tuple(scope[y.name].shape)) == (place.device.type, (2, 5))
        (value,) = ol.Executor(place).run(program, {"x": X, "w": numpy.ones((3, 5), "float32")}, [y], scope=ol.Scope(), return_numpy=False)
        assert value.device.type == place.device.type


@pytest.mark.mission("A14")
def test_one_step_block_and_a_scope_per_time_step():
    """The only thing that varies from step to step is the scope; no step, no scope."""
    with ol.Program() as program:
        x, before = (ol.layer.data(name, shape=[2], batch=None) for name in ("x", "before"))
        ol.op.add(x, before, name="after")
    around = scope_with(before=numpy.zeros(2, "float32"))
    for step in range(4):
        last = around.children[-1]["after"] if around.children else around["before"]
        scope = around.new_scope()
        scope.set("x", numpy.full(2, step, "float32"))
        scope.set("before", last)
        ol.run_block(program.main, scope)
    assert [scope["after"].tolist() for scope in around.children] == [[0, 0], [1, 1], [3, 3], [6, 6]]
    assert around["before"].tolist() == [0, 0]


@pytest.mark.mission("B2", "C16")
def test_ops_run_in_the_order_in_which_they_stand_and_locals_stay_inside():
    catalogue = Catalogue()
    order = []

    @ol.operator("x: float[*b] -> y: float[*b]", catalogue=catalogue)
    def note(x, *, tag: int):
        order.append(tag)
        return x

    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3])
        for tag in (3, 1, 2):
            note(x, tag=tag, name=f"a{tag}")
    ol.run_block(program.main, scope_with(x=X), catalogue=catalogue)
    assert order == [3, 1, 2]
    program.main.ops.reverse()
    program.changed()
    ol.run_block(program.main, scope_with(x=X), catalogue=catalogue)
    assert order == [3, 1, 2, 2, 1, 3]
    with ol.Program() as program:
        xs = ol.layer.data("xs", shape=[], batch="t")
        loop = ol.rnn()
        with loop.step():
            loop.output(ol.op.square(loop.step_input(xs), name="inside"))
        squares = loop()
    scope = scope_with(xs=numpy.array([2, 3], "float32"))
    ol.run_block(program.main, scope)
    assert (scope[squares.name].tolist(), "inside" in scope) == ([4, 9], False)


def one_loop():
    with ol.Program() as program:
        xs = ol.layer.data("xs", shape=[2], batch="t")
        loop = ol.rnn()
        with loop.step():
            loop.output(ol.op.square(loop.step_input(xs), name="squared"))
        loop()
    return program


RUNS = [
    ol.run_block,
    lambda block, scope, *arguments, **keywords: block.run(scope, *arguments, **keywords),
    lambda block, scope, *arguments, **keywords: ol.Net(block.program).run(scope, *arguments, **keywords),
]


@pytest.mark.parametrize("run", RUNS, ids=["run_block", "block", "net"])
def test_a_loop_that_runs_again_with_kept_scopes_leaves_its_last_scope_alone(run):
    program, scope = one_loop(), scope_with(xs=X[:, :2])
    mine = scope.new_scope("mine")
    for _ in range(52):
        run(program.main, scope, keep_scopes=True)
    assert [child.name for child in scope.children] == ["mine", "rnn_0"]
    assert scope.children[0] is mine
    scope.set("xs", 2 * X[:1, :2])
    run(program.main, scope, keep_scopes=True)
    (trip,) = scope.children[1].children
    assert trip["squared"].tolist() == [4, 16]
    run(program.main, scope)
    assert scope.children == [mine]
    assert trip.dropped


@pytest.mark.mission("B7", "F14")
@pytest.mark.parametrize("run", RUNS, ids=["run_block", "block", "net"])
@pytest.mark.parametrize("training", [False, True])
def test_the_scopes_of_steps_are_dropped_when_the_minibatch_is_complete(run, training):
    """An inference run drops them when it ends. In training they stay from the forward ops to the last gradient op, in whatever calls."""
    program, scope = one_loop(), scope_with(xs=X[:, :2])
    mine = scope.new_scope("mine")
    with program:
        (gradient,) = ol.gradients([ol.op.reduce_sum(program.main.ops[0].writes[0])], [program.main.var("xs")])
    context = ol.Context(scope, training=training)
    forward = 2
    run(program.main, scope, context, 0, forward)
    assert [child.name for child in scope.children] == (["mine", "rnn_0"] if training else ["mine"])
    run(program.main, scope, context, forward)
    assert scope.children == [mine]
    assert numpy.allclose(scope[gradient.name], 2 * X[:, :2])
    run(program.main, scope, context)
    assert scope.children == [mine]
    run(program.main, scope, context, keep_scopes=True)
    assert [child.name for child in scope.children] == ["mine", "rnn_0", "rnn_0@GRAD"]


def test_the_scopes_of_a_run_that_raises_stay_until_the_next_one():
    program = one_loop()
    with program:
        ol.op.add(program.main.ops[0].writes[0], ol.layer.data("late", shape=[2], batch="t"))
    scope = scope_with(xs=X[:, :2])
    with pytest.raises(ol.UnsetVarError):
        ol.run_block(program.main, scope)
    assert scope.children[0].children[0]["squared"].tolist() == (X[0, :2] ** 2).tolist()
    scope.set("late", X[:, :2])
    ol.run_block(program.main, scope)
    assert scope.children == []


def test_a_branch_that_runs_again_with_kept_scopes_leaves_its_last_scope_alone():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3])
        branches = ol.ifelse()
        with branches.true_block():
            branches.output(ol.op.square(branches.input(x)))
        with branches.false_block():
            branches.output(ol.op.neg(branches.input(x)))
        branches(ol.op.reduce_sum(x, axis=1, keepdim=True) > 0.0)
    scope = scope_with(x=X)
    for _ in range(3):
        ol.run_block(program.main, scope, keep_scopes=True)
    assert [child.name for child in scope.children] == ["if_else_0.true", "if_else_0.false"]
    ol.run_block(program.main, scope)
    assert scope.children == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"place": [ol.CPUPlace(), "cpu"]}, "a place must be ol.CPUPlace() or ol.GPUPlace(index), not [CPUPlace(), 'cpu']"),
        ({"place": "cpu"}, "a place must be ol.CPUPlace() or ol.GPUPlace(index), not 'cpu'"),
        ({"place": []}, "a place must be ol.CPUPlace() or ol.GPUPlace(index), not []"),
        ({"training": "yes"}, "training must be True, False or None, not 'yes'"),
        ({"training": 1}, "training must be True, False or None, not 1"),
    ],
)
def test_a_context_has_places_and_is_training_or_not(settings, message):
    with pytest.raises(ol.ArgumentError) as raised:
        ol.Context(ol.Scope(), **settings)
    assert raised.value.message == message
    assert ol.Context(ol.Scope(), place=[ol.CPUPlace()]).place == ol.CPUPlace()
