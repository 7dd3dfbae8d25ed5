"""keep_scopes: every scope of a run, forward and backward, stays to be looked into; without it, nothing does."""

import gc
from textwrap import dedent

import numpy
import pytest
import torch
from block_operators import counted_while, run_branch
from sample_programs import nested_loops, running_sum

import oarlock as ol

RANDOM = numpy.random.default_rng(5)


@pytest.fixture
def executor():
    return ol.Executor()


def kept(program, feed, scope=None):
    scope = ol.init(program, ol.Scope()) if scope is None else scope
    return ol.Executor().run(program, feed, scope=scope, keep_scopes=True)[1]


def tree(text):
    return dedent(text).strip()


def nested_feed(pages=2, rows=2):
    return {"pages": RANDOM.normal(size=(pages, rows, 3)).astype("float32"), "start": numpy.ones(3, "float32")}


# Trees


@pytest.mark.mission("A14", "B7", "E11")
def test_a_loop_opens_a_scope_and_one_inside_for_each_trip_and_so_does_its_gradient():
    with ol.Program() as program:
        xs = ol.layer.data("xs", shape=[2], batch="t")
        start = ol.layer.data("start", shape=[2], batch=None)
        loop = ol.rnn()
        with loop.step():
            h = loop.memory(init=start)
            loop.update_memory(h, ol.op.tanh(loop.step_input(xs) + loop.previous_memory(h)))
        loop()
        cost = ol.op.reduce_sum(loop.final_memory(h))
        ol.gradients([cost], [start])
    scopes = kept(program, {"xs": numpy.ones((3, 2), "float32"), "start": numpy.zeros(2, "float32")})
    assert str(scopes) == tree("""
        main             8 variables
        ├── rnn_0        1 variable
        │   ├── 0        4 variables
        │   ├── 1        4 variables
        │   └── 2        4 variables
        └── rnn_0@GRAD   1 variable
            ├── 2        3 variables
            ├── 1        3 variables
            └── 0        3 variables
        """)
    assert list(scopes["main/rnn_0/2"]) == ["xs.step_0", "memory_0", "add_0", "tanh_0"]
    assert scopes["main/rnn_0/2"].parent is scopes["main/rnn_0"]
    assert scopes["main/rnn_0"].parent is scopes["main"]


@pytest.mark.mission("B6", "B8")
def test_loops_inside_loops_are_scopes_inside_scopes():
    scopes = kept(nested_loops(), nested_feed())
    assert list(scopes) == [
        "main",
        "main/rnn_0",
        "main/rnn_0/0",
        "main/rnn_0/0/rnn_1",
        "main/rnn_0/0/rnn_1/0",
        "main/rnn_0/0/rnn_1/1",
        "main/rnn_0/1",
        "main/rnn_0/1/rnn_1",
        "main/rnn_0/1/rnn_1/0",
        "main/rnn_0/1/rnn_1/1",
        "main/rnn_0@GRAD",
        "main/rnn_0@GRAD/1",
        "main/rnn_0@GRAD/1/rnn_1@GRAD",
        "main/rnn_0@GRAD/1/rnn_1@GRAD/1",
        "main/rnn_0@GRAD/1/rnn_1@GRAD/0",
        "main/rnn_0@GRAD/0",
        "main/rnn_0@GRAD/0/rnn_1@GRAD",
        "main/rnn_0@GRAD/0/rnn_1@GRAD/1",
        "main/rnn_0@GRAD/0/rnn_1@GRAD/0",
    ]
    assert len(scopes) == 19
    assert str(scopes) == tree("""
        main                     12 variables
        ├── rnn_0                1 variable
        │   ├── 0                5 variables
        │   │   └── rnn_1        1 variable
        │   │       ├── 0        5 variables
        │   │       └── 1        5 variables
        │   └── 1                5 variables
        │       └── rnn_1        1 variable
        │           ├── 0        5 variables
        │           └── 1        5 variables
        └── rnn_0@GRAD           1 variable
            ├── 1                7 variables
            │   └── rnn_1@GRAD   1 variable
            │       ├── 1        6 variables
            │       └── 0        6 variables
            └── 0                7 variables
                └── rnn_1@GRAD   1 variable
                    ├── 1        6 variables
                    └── 0        6 variables
        """)


@pytest.mark.mission("B8")
def test_a_branch_opens_one_scope_and_a_while_one_more_for_each_trip():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2], batch=None)
        trips = ol.layer.data("trips", shape=[], dtype="int64", batch=None)
        three = ol.op.full(shape=(), value=3, dtype="int64")
        taken = run_branch("if_else_0.true", ol.op.less(trips, three), lambda: ol.op.square(x))
        run_branch("if_else_0.false", ol.op.less(three, trips), lambda: ol.op.square(x))
        final, _ = counted_while("while_0", trips, x, lambda value: run_branch("if_else_1.true", None, lambda: ol.op.square(value)))
        ol.gradients([ol.op.reduce_sum(taken) + ol.op.reduce_sum(final)], [x])
    feed = {"x": numpy.ones(2, "float32"), "trips": numpy.array(2)}
    assert list(kept(program, feed)) == [
        "main",
        "main/if_else_0.true",
        "main/while_0",
        "main/while_0/0",
        "main/while_0/0/if_else_1.true",
        "main/while_0/1",
        "main/while_0/1/if_else_1.true",
        "main/while_0@GRAD",
        "main/while_0@GRAD/1",
        "main/while_0@GRAD/1/if_else_1@GRAD.true",
        "main/while_0@GRAD/0",
        "main/while_0@GRAD/0/if_else_1@GRAD.true",
        "main/if_else_0@GRAD.true",
    ]
    assert list(kept(program, {**feed, "trips": numpy.array(4)}))[1:3] == ["main/if_else_0.false", "main/while_0"]


@pytest.mark.mission("B6", "B8")
def test_branches_loops_and_switches_that_users_write_have_scopes_under_their_names():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2], batch="n")
        limit = ol.layer.data("limit", shape=[], batch=None)
        rows = ol.ifelse()
        with rows.true_block():
            rows.output(ol.op.square(x))
        with rows.false_block():
            rows.output(ol.op.neg(x))
        total = ol.op.reduce_sum(rows(ol.op.reduce_sum(x, axis=1, keepdim=True) > 0.0))
        loop = ol.while_loop(total < limit)
        with loop.block():
            switch = ol.switch()
            with switch.case(total < 4.0):
                switch.output(total + total)
            with switch.default():
                switch.output(total * total)
            after = switch()
            loop.carry(total, after)
            loop.update_condition(after < limit)
        ol.gradients([loop()], [x])
    feed = {"x": numpy.array([[0.7, 0.7], [-0.7, -0.7]], "float32"), "limit": 50.0}
    assert list(kept(program, feed)) == [
        "main",
        "main/if_else_0.true",
        "main/if_else_0.false",
        "main/while_0",
        "main/while_0/0",
        "main/while_0/0/switch_0.case_0",
        "main/while_0/1",
        "main/while_0/1/switch_0.default",
        "main/while_0/2",
        "main/while_0/2/switch_0.default",
        "main/while_0@GRAD",
        "main/while_0@GRAD/2",
        "main/while_0@GRAD/2/switch_0@GRAD.default",
        "main/while_0@GRAD/1",
        "main/while_0@GRAD/1/switch_0@GRAD.default",
        "main/while_0@GRAD/0",
        "main/while_0@GRAD/0/switch_0@GRAD.case_0",
        "main/if_else_0@GRAD.false",
        "main/if_else_0@GRAD.true",
    ]
    assert list(kept(program, {**feed, "limit": 0.0})) == [
        "main",
        "main/if_else_0.true",
        "main/if_else_0.false",
        "main/if_else_0@GRAD.false",
        "main/if_else_0@GRAD.true",
    ]


def test_a_loop_that_makes_no_trip_opens_no_scope():
    assert list(kept(nested_loops(), nested_feed(pages=0))) == ["main"]
    assert list(kept(nested_loops(), nested_feed(pages=1, rows=0))) == [
        "main",
        "main/rnn_0",
        "main/rnn_0/0",
        "main/rnn_0@GRAD",
        "main/rnn_0@GRAD/0",
    ]


@pytest.mark.mission("B8")
@pytest.mark.parametrize("depth", range(5))
@pytest.mark.parametrize("backward", [False, True])
def test_the_tree_is_as_high_as_loops_are_nested_and_as_wide_as_they_have_steps(depth, backward):
    """Sizes of every depth are drawn anew; a trip of a loop has the scopes of the loop inside it, so widths multiply."""
    lengths = [int(length) for length in numpy.random.default_rng(depth).integers(1, 4, depth)]
    with ol.Program() as program:
        x = ol.layer.data("x", shape=lengths[1:], batch="t" if depth else None)

        def write(value, rest):
            if not rest:
                return ol.op.tanh(value)
            loop = ol.rnn()
            with loop.step():
                loop.output(write(loop.step_input(value), rest[1:]))
            return loop()

        y = write(x, lengths)
        if backward:
            ol.gradients([ol.op.reduce_sum(y)], [x])
    paths = list(kept(program, {"x": numpy.ones(lengths, "float32")}))
    assert max(path.count("/") for path in paths) == 2 * depth
    for mark in ("", "@GRAD")[: 1 + backward]:
        for level in range(depth):
            trips = [path for path in paths if path.count("/") == 2 * (level + 1) and f"rnn_{level}{mark}/" in path]
            assert len(trips) == numpy.prod(lengths[: level + 1])


# Values


@pytest.mark.mission("B7", "C3")
def test_every_value_of_a_run_is_where_its_block_left_it():
    program = nested_loops()
    feed = nested_feed()
    scope = ol.init(program, ol.Scope())
    (cost,), scopes = ol.Executor().run(program, feed, ["cost"], scope=scope, keep_scopes=True)
    state = feed["start"]
    for page in range(2):
        for line in range(2):
            here = scopes[f"main/rnn_0/{page}/rnn_1/{line}"]
            assert here["pages.step_0.step_0"].numpy().tobytes() == feed["pages"][page, line].tobytes()
            assert here["memory_1"].numpy().tobytes() == state.tobytes()
            state = here["tanh_0"].numpy()
            assert here["decay"] is scope["decay"]
        assert scopes[f"main/rnn_0/{page}"]["rnn_1.final.0"].numpy().tobytes() == state.tobytes()
    assert scopes["main"]["mean_0"] == cost


def test_the_program_runs_as_it_is_written(executor):
    """An op that nothing needs runs too, and so does the tail, whose values are found through the frame."""
    program, scope = running_sum(), ol.Scope()
    with program:
        ol.op.square(program.main.var("start"), name="unneeded")
    scope.set("w", [0.5, 2.0])
    feed = {"xs": numpy.ones((2, 2), "float32"), "start": numpy.full(2, 3.0, "float32")}
    values, scopes = executor.run(program, feed, scope=scope, keep_scopes=True)
    assert values == []
    assert scopes["main"]["unneeded"].tolist() == [9.0, 9.0]
    assert scopes["main"]["w"] is scope["w"]
    assert scope["w"].tolist() == scopes["main"]["w_next"].tolist() != [0.5, 2.0]
    with pytest.raises(ol.FeedError, match='^"start" is not fed'):
        executor.run(program, {"xs": feed["xs"]}, scope=scope, keep_scopes=True)


def test_kept_scopes_and_fetches_by_path_agree(executor):
    program, feed = nested_loops(), nested_feed()
    scope = ol.init(program, ol.Scope())
    fetch = ["main/rnn_0@GRAD/rnn_1@GRAD/add_0@GRAD", "cost"]
    without = executor.run(program, feed, fetch, scope=scope)
    values, scopes = executor.run(program, feed, fetch, scope=scope, keep_scopes=True)
    assert [value.tobytes() for value in values] == [value.tobytes() for value in without]
    for page in range(2):
        for line in range(2):
            assert scopes[f"main/rnn_0@GRAD/{page}/rnn_1@GRAD/{line}"]["add_0@GRAD"].numpy().tobytes() == values[0][page, line].tobytes()


# Until they are dropped


def test_scopes_stay_until_the_caller_drops_them(executor):
    program, feed = nested_loops(), nested_feed()
    scope = ol.init(program, ol.Scope())
    _, first = executor.run(program, feed, scope=scope, keep_scopes=True)
    with executor.run(program, feed, scope=scope, keep_scopes=True)[1] as second:
        assert scope.children == [first.frame, second.frame]
        step = second["main/rnn_0/1"]
        assert "main/rnn_0/1" in second
    assert scope.children == [first.frame]
    assert step.dropped
    assert (list(second), str(second), "main" in second) == ([], "", False)
    with pytest.raises(ol.ScopeError, match='^"main": these scopes were dropped$'):
        second["main"]
    first.drop()
    first.drop()
    assert scope.children == []
    assert list(scope) == ["decay"]


def test_a_path_that_does_not_exist_is_refused_with_the_nearest_that_do():
    scopes = kept(nested_loops(), nested_feed())
    assert [path in scopes for path in ("main/rnn_0/2", "rnn_0", "", 3, "main/rnn_0/1")] == [False, False, False, False, True]
    for path, text in [
        ("main/rnn_0/2", "      nearest: main/rnn_0/1, main/rnn_0/0, main/rnn_0"),
        ("rnn_0/1", "      nearest: main/rnn_0/1, main/rnn_0/0, main/rnn_0"),
        (
            "main/rnn_0/1/memory_0",
            "      nearest: main/rnn_0/1/rnn_1/0, main/rnn_0/1/rnn_1, main/rnn_0/1/rnn_1/1\n"
            '  Try: it is a variable: scopes["main/rnn_0/1"]["memory_0"]    (oarlock explain ScopeError)',
        ),
    ]:
        with pytest.raises(ol.ScopeError) as caught:
            scopes[path]
        assert str(caught.value) == f'"{path}" is not a scope of this run\n{text}'


def test_what_is_no_path_is_refused():
    scopes = kept(nested_loops(), nested_feed())
    with pytest.raises(ol.ArgumentError, match=r"^scopes are looked up by path \(str\), not int: 3\n"):
        scopes[3]
    with pytest.raises(ol.ArgumentError, match=r"^scopes are looked up by path \(str\), not tuple: \('main', 3\)"):
        scopes["main", 3]


# Without it, nothing stays


def live_tensors():
    return sum(issubclass(type(item), torch.Tensor) for item in gc.get_objects())


@pytest.fixture
def _no_collector():
    """Objects that are let go of are gone at once; the collector has nothing to find."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.mission("B7", "C3")
@pytest.mark.usefixtures("_no_collector")
def test_a_run_leaves_as_many_tensors_as_there_were(executor):
    program, feed = nested_loops(), nested_feed()
    scope = ol.init(program, ol.Scope())
    fetch = ["cost", "main/rnn_0/rnn_1/tanh_0", "main/rnn_0@GRAD/0/memory_0@GRAD"]
    executor.run(program, feed, fetch, scope=scope)
    before = live_tensors()
    for _ in range(3):
        executor.run(program, feed, fetch, scope=scope)
        executor.eval(program, fetch, feed, scope=scope)
    assert live_tensors() == before
    _, scopes = executor.run(program, feed, fetch, scope=scope, keep_scopes=True)
    assert live_tensors() > before + 50
    scopes.drop()
    assert live_tensors() == before


@pytest.mark.usefixtures("_no_collector")
@pytest.mark.parametrize("keep", [False, True])
def test_a_run_that_raises_leaves_as_many_tensors_as_there_were(executor, keep):
    """A label of 5, in the last step of a loop, is not one of the classes."""
    with ol.Program() as program:
        scores = ol.layer.data("scores", shape=["n", 3], batch="t")
        labels = ol.layer.data("labels", shape=["n"], dtype="int64", batch="t")
        loop = ol.rnn()
        with loop.step():
            loop.output(ol.layer.cross_entropy(loop.step_input(scores), loop.step_input(labels)))
        cost = ol.op.reduce_sum(loop())
        ol.gradients([cost], [scores])
    feed = {"scores": numpy.zeros((3, 1, 3), "float32"), "labels": numpy.array([[0], [0], [5]])}
    scope = ol.Scope()

    def fail():
        with pytest.raises(ol.KernelError):
            executor.run(program, feed, [cost], scope=scope, keep_scopes=keep)

    fail()
    before = live_tensors()
    for _ in range(3):
        fail()
    assert live_tensors() == before
    assert scope.children == []
