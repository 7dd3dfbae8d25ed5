"""Any variable of any step or branch is fetched by its path: one trip, or the stack over the trips."""

import re

import numpy
import pytest
import torch
from block_operators import counted_while, ragged_loop, run_branch
from sample_programs import nested_loops, running_sum

import oarlock as ol
from oarlock.ir.traversal import walk

PAGES = numpy.random.default_rng(3).normal(size=(2, 4, 3)).astype("float32")
FEED = {"pages": PAGES, "start": numpy.ones(3, "float32")}


@pytest.fixture
def executor():
    return ol.Executor()


@pytest.fixture
def nested():
    program = nested_loops()
    return program, ol.init(program, ol.Scope())


def doubling(*, reverse=False, batch="t"):
    """Doubles each of `xs`, returns the doubles and keeps their squares to itself."""
    with ol.Program() as program:
        xs = ol.layer.data("xs", shape=[], batch=batch)
        loop = ol.rnn(reverse=reverse)
        with loop.step():
            x = loop.step_input(xs)
            double = ol.op.add(x, x, name="double")
            ol.op.square(double, name="square")
            loop.output(double)
        program.targets["doubles"] = loop()
    return program


def refused(error, call, message, *, hint=None, given=()):
    with pytest.raises(error) as caught:
        call()
    assert (caught.value.message, caught.value.hint, caught.value.given) == (message, hint, tuple(given))


# One trip, and the stack


@pytest.mark.parametrize("reverse", [False, True])
def test_a_value_of_a_step_is_fetched_in_one_trip_or_as_the_stack(executor, reverse):
    program = doubling(reverse=reverse)
    fetch = ["doubles", "main/rnn_0/double", "main/rnn_0/square", "main/rnn_0/0/square", "main/rnn_0/2/square", "main/xs"]
    doubles, stack, squares, first, last, xs = executor.run(program, {"xs": [1.0, 2.0, 3.0]}, fetch, scope=ol.Scope())
    assert doubles.tolist() == stack.tolist() == [2.0, 4.0, 6.0]
    assert squares.tolist() == [4.0, 16.0, 36.0]
    assert (first, last, xs.tolist()) == (4.0, 36.0, [1.0, 2.0, 3.0])
    assert stack.dtype == numpy.float32


def test_a_variable_of_a_block_stands_for_its_stack(executor):
    program = doubling()
    square = program.blocks[1].var("square")
    feed = {"xs": [1.0, 3.0]}
    assert executor.run(program, feed, [square], scope=ol.Scope())[0].tolist() == [4.0, 36.0]
    assert executor.eval(program, [square], feed, scope=ol.Scope())[0].tolist() == [4.0, 36.0]


def test_fetches_by_path_may_be_tensors(executor):
    found = executor.eval(
        doubling(), ["main/rnn_0/square", "main/rnn_0/1/square"], {"xs": [1.0, 2.0]}, scope=ol.Scope(), return_numpy=False
    )
    assert all(isinstance(value, torch.Tensor) for value in found)
    assert [value.tolist() for value in found] == [[4.0, 16.0], 16.0]


def test_loops_in_loops_are_stacked_over_both_or_over_the_inner_one(executor, nested):
    program, scope = nested
    fetch = ["main/rnn_0/rnn_1/tanh_0", *(f"main/rnn_0/{page}/rnn_1/tanh_0" for page in range(2))]
    both, *inner = executor.run(program, FEED, fetch, scope=scope)
    assert both.shape == (2, 4, 3)
    assert both.tobytes() == numpy.stack(inner).tobytes()
    over_pages = executor.run(program, FEED, ["main/rnn_0/rnn_1/3/tanh_0"], scope=scope)[0]
    assert over_pages.tobytes() == both[:, 3].tobytes()
    assert executor.run(program, FEED, ["main/rnn_0/1/rnn_1/3/tanh_0"], scope=scope)[0].tobytes() == both[1, 3].tobytes()
    assert executor.run(program, FEED, ["main/rnn_0/rnn_1.final.0"], scope=scope)[0].tobytes() == both[:, 3].tobytes()


def test_the_loops_of_gradients_are_fetched_alike(executor, nested):
    """The sums that the gradient loops return are the sums of the values fetched from their iterations."""
    program, scope = nested
    fetch = ["decay@GRAD", "main/rnn_0@GRAD/rnn_1@GRAD/decay@GRAD", "main/rnn_0@GRAD/1/rnn_1@GRAD/2/decay@GRAD"]
    total, parts, one = executor.run(program, FEED, fetch, scope=scope)
    assert parts.shape == (2, 4, 3)
    assert parts[1, 2].tobytes() == one.tobytes()
    ordered = [list(parts[page][::-1]) for page in (1, 0)]
    sums = [((rows[0] + rows[1]) + rows[2]) + rows[3] for rows in ordered]
    assert total.tobytes() == (sums[0] + sums[1]).tobytes()


def test_values_in_branches_and_in_while_loops_are_fetched(executor):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2], batch=None)
        trips = ol.layer.data("trips", shape=[], dtype="int64", batch=None)
        three = ol.op.full(shape=(), value=3, dtype="int64")
        yes, no = ol.op.less(trips, three), ol.op.less(three, trips)
        run_branch("if_else_0.true", yes, lambda: ol.op.neg(ol.op.square(x, name="z")))
        run_branch("if_else_0.false", no, lambda: ol.op.neg(ol.op.square(x, name="other")))
        counted_while("while_0", trips, x, lambda value: ol.op.add(value, value, name="more"))
    feed = {"x": numpy.array([1.0, 3.0], "float32"), "trips": 2}
    fetch = ["main/if_else_0.true/z", "main/while_0/more", "main/while_0/1/more"]
    z, more, second = executor.run(program, feed, fetch, scope=ol.Scope())
    assert (z.tolist(), more.tolist(), second.tolist()) == ([1.0, 9.0], [[2.0, 6.0], [4.0, 12.0]], [4.0, 12.0])
    assert executor.run(program, feed, [program.blocks[1].var("z")], scope=ol.Scope())[0].tolist() == [1.0, 9.0]
    refused(
        ol.UnsetVarError,
        lambda: executor.run(program, feed, ["main/if_else_0.false/other"], scope=ol.Scope()),
        '"main/if_else_0.false/other" has no value: main/if_else_0.false did not run',
    )


def test_a_value_of_a_branch_inside_a_loop_is_stacked_where_every_trip_ran_it(executor):
    with ol.Program() as program:
        xs = ol.layer.data("xs", shape=[2], batch="t")
        zero = ol.op.full(shape=(), value=0.0)
        loop = ol.rnn()
        with loop.step():
            x = loop.step_input(xs)
            positive = ol.op.less(zero, ol.op.reduce_sum(x))
            run_branch("switch_0.case_1", positive, lambda x=x: ol.op.square(x, name="z"))
        loop()
    ones = numpy.ones((2, 2), "float32")
    assert executor.run(program, {"xs": ones}, ["main/rnn_0/switch_0.case_1/z"], scope=ol.Scope())[0].shape == (2, 2)
    ones[1] = -1.0
    assert executor.run(program, {"xs": ones}, ["main/rnn_0/0/switch_0.case_1/z"], scope=ol.Scope())[0].shape == (2,)
    refused(
        ol.UnsetVarError,
        lambda: executor.run(program, {"xs": ones}, ["main/rnn_0/switch_0.case_1/z"], scope=ol.Scope()),
        '"main/rnn_0/switch_0.case_1/z" has no value: main/rnn_0/1/switch_0.case_1 did not run',
    )


# What runs


def test_the_ops_that_own_the_blocks_run_and_nothing_else(monkeypatch, executor, nested):
    program, scope = nested
    ran = []
    run_op = ol.runtime.executor.Interpreter._run_op
    monkeypatch.setattr(
        "oarlock.runtime.interpreter.Interpreter._run_op", lambda self, op, *rest: ran.append(op) or run_op(self, op, *rest)
    )
    executor.eval(program, ["main/rnn_0/rnn_1/tanh_0"], FEED, scope=scope)
    assert set(ran) == set(walk_of(program.main.ops[0]))


def walk_of(op):
    return [op, *(inner for block in op.blocks for inner in walk(block))]


def test_a_loop_that_hands_nothing_out_runs_for_what_is_fetched_from_it(executor):
    with ol.Program() as program:
        xs = ol.layer.data("xs", shape=[], batch="t")
        loop = ol.rnn()
        with loop.step():
            ol.op.square(loop.step_input(xs), name="square")
        loop()
        ol.layer.data("unused", shape=[])
    assert executor.eval(program, ["main/rnn_0/square"], {"xs": [1.0, 2.0]}, scope=ol.Scope())[0].tolist() == [1.0, 4.0]
    with pytest.raises(ol.FeedError, match='^"xs" is not fed'):
        executor.eval(program, ["main/rnn_0/square"], {}, scope=ol.Scope())


def test_a_step_whose_fetch_is_refused_writes_nothing(executor):
    program, scope = running_sum(), ol.Scope()
    scope.set("w", [0.5, 2.0])
    feed = {"xs": numpy.ones((2, 2), "float32"), "start": numpy.ones(2, "float32")}
    refused(
        ol.UnsetVarError,
        lambda: executor.run(program, feed, ["main/rnn_0/2/total"], scope=scope),
        '"main/rnn_0/2/total" has no value: main/rnn_0 ran 2 iterations, numbered from 0',
    )
    assert scope["w"].tolist() == [0.5, 2.0]
    assert scope.children == []
    executor.run(program, feed, ["main/rnn_0/1/total"], scope=scope)
    assert scope["w"].tolist() != [0.5, 2.0]


def test_stacks_count_against_the_budget_of_a_run():
    """Fed 8 bytes, in trips 3 * 4 each, returned 8, fetched 8; the square alone costs the run nothing more."""
    feed, fetch = {"xs": [1.0, 2.0]}, ["main/rnn_0/square"]
    needed = 8 + 2 * (4 + 4) + 8
    (squares,) = ol.Executor(limits=ol.RunLimits(live_bytes=needed + 8)).eval(doubling(), fetch, feed, scope=ol.Scope())
    assert squares.tolist() == [4.0, 16.0]
    with pytest.raises(ol.LimitError):
        ol.Executor(limits=ol.RunLimits(live_bytes=needed + 7)).eval(doubling(), fetch, feed, scope=ol.Scope())


# Trips that do not stack


def test_a_loop_that_made_no_trip_gives_a_stack_of_no_rows(executor, nested):
    program, scope = nested
    for pages, path, shape in [
        ((0, 4), "main/rnn_0/rnn_1/tanh_0", (0, 4, 3)),
        ((2, 0), "main/rnn_0/rnn_1/tanh_0", (2, 0, 3)),
        ((0, 4), "main/rnn_0/pages.step_0", (0, 4, 3)),
        ((0, 4), "main/rnn_0@GRAD/rnn_1@GRAD/decay@GRAD", (0, 4, 3)),
    ]:
        (stack,) = executor.run(program, {**FEED, "pages": numpy.zeros((*pages, 3), "float32")}, [path], scope=scope)
        assert (stack.shape, stack.dtype) == (shape, numpy.float32)
    refused(
        ol.UnsetVarError,
        lambda: executor.run(program, {**FEED, "pages": numpy.zeros((0, 4, 3), "float32")}, ["main/rnn_0/0/rnn_1/tanh_0"], scope=scope),
        '"main/rnn_0/0/rnn_1/tanh_0" has no value: main/rnn_0 ran 0 iterations, numbered from 0',
    )


def test_a_stack_of_no_rows_needs_sizes_that_are_known(executor):
    """How many rows `nonzero` would have found is for no value to tell."""
    with ol.Program() as program:
        xs = ol.layer.data("xs", shape=[2], batch="t")
        trips = ol.layer.data("trips", shape=[], dtype="int64", batch=None)
        loop = ol.rnn()
        with loop.step():
            counted_while("while_0", trips, loop.step_input(xs), lambda value: ol.op.add(value, value, name="more"))
        loop()
    more = program.blocks[2].var("more")
    feed = {"xs": numpy.zeros((0, 2), "float32"), "trips": 2}
    refused(
        ol.ShapeError,
        lambda: executor.run(program, feed, ["main/rnn_0/while_0/more"], scope=ol.Scope()),
        '"main/rnn_0/while_0/more": main/rnn_0 ran no iterations, so the sizes of the stack are unknown',
        given=[more.describe()],
    )
    feed["xs"] = numpy.zeros((1, 2), "float32")
    assert executor.run(program, feed, [more], scope=ol.Scope())[0].shape == (1, 2, 2)
    feed["trips"] = 0
    assert executor.run(program, feed, [more], scope=ol.Scope())[0].shape == (1, 0, 2)


def test_the_sizes_of_a_stack_of_no_rows_are_those_of_the_variables_that_are_meant(executor):
    """An "x" of the block hides that of the main block, and has another size."""
    with ol.Program() as program:
        y = ol.layer.data("y", shape=[], batch="n")
        ol.layer.data("x", shape=[], batch="n")
        xs = ol.layer.data("xs", shape=["k"], batch="t")
        trips = ol.layer.data("trips", shape=[], dtype="int64", batch=None)
        loop = ol.rnn()
        with loop.step():
            step = loop.step_input(xs)
            step.block.rename(step, "x")
            counted_while("while_0", trips, y, lambda value: ol.op.add(value, value, name="more"))
        loop()
    feed = {"y": [1.0], "x": [1.0], "xs": numpy.ones((1, 3), "float32"), "trips": 0}
    assert executor.run(program, feed, ["main/rnn_0/0/while_0/more"], scope=ol.Scope())[0].shape == (0, 1)


def test_inner_loops_that_make_different_numbers_of_trips_do_not_stack(executor):
    with ol.Program() as program:
        xs = ol.layer.data("xs", shape=[2], batch="t")
        counts = ol.layer.data("counts", shape=[], dtype="int64", batch="t")
        loop = ol.rnn()
        with loop.step():
            x, trips = loop.step_input(xs), loop.step_input(counts)
            counted_while("while_0", trips, x, lambda value: ol.op.add(value, value, name="more"))
        loop()
    feed = {"xs": numpy.ones((3, 2), "float32"), "counts": [3, 3, 1]}
    assert executor.run(program, feed, ["main/rnn_0/1/while_0/more"], scope=ol.Scope())[0].shape == (3, 2)
    refused(
        ol.ShapeError,
        lambda: executor.run(program, feed, ["main/rnn_0/while_0/more"], scope=ol.Scope()),
        '"main/rnn_0/while_0/more" cannot be stacked: while_0 ran 3 iterations in main/rnn_0/0 and 1 iteration in main/rnn_0/2',
        hint='fetch one iteration, "main/rnn_0/0/while_0/more"',
    )


def test_the_shrinking_steps_of_a_ragged_loop_do_not_stack(executor):
    with ol.Program() as program:
        words = ol.layer.data("words", shape=[2], batch="t")
        splits = ol.layer.data("splits", shape=[], dtype="int64", batch="n+1")
        ragged_loop("rnn_0", words, splits, lambda step: ol.op.neg(ol.op.square(step, name="z")))
    feed = {"words": numpy.ones((5, 2), "float32"), "splits": [0, 2, 5]}
    fetch = [f"main/rnn_0/{trip}/z" for trip in range(3)]
    assert [value.shape for value in executor.run(program, feed, fetch, scope=ol.Scope())] == [(2, 2), (2, 2), (1, 2)]
    refused(
        ol.ShapeError,
        lambda: executor.run(program, feed, ["main/rnn_0/z"], scope=ol.Scope()),
        '"main/rnn_0/z" cannot be stacked: it is float32[2, 2] in main/rnn_0/0 and float32[1, 2] in main/rnn_0/2',
        hint='fetch one iteration, "main/rnn_0/0/z", or use rnn.output, which joins the rows',
    )


def test_what_has_another_size_in_each_trip_is_no_single_tensor(executor):
    """A gradient loop reads such a stack step by step; it is not for arrays."""
    with ol.Program() as program:
        words = ol.layer.data("words", shape=[2], batch="t")
        counts = ol.layer.data("counts", shape=[], dtype="int64", batch="n")
        loop = ol.rnn()
        with loop.step():
            final, _ = counted_while("while_0", loop.step_input(counts), ol.op.reduce_sum(words, axis=0), ol.op.square)
            loop.output(final)
        ol.gradients([loop()], [words])
    stacks = next(var for name, var in program.main.vars.items() if "@STACK" in name)
    refused(
        ol.ShapeError,
        lambda: executor.run(program, {"words": numpy.ones((1, 2), "float32"), "counts": [1, 2]}, [stacks], scope=ol.Scope()),
        f'"main/{stacks.name}" has a different size in each iteration, so it is not a single tensor',
        given=[stacks.describe()],
        hint="fetch the variable of the inner block in one iteration",
    )


# Paths that lead nowhere


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        ("tanh_0", '"main/rnn_0/rnn_1/tanh_0"'),
        ("rnn_0/rnn_1/tanh_0", '"main/rnn_0/rnn_1/tanh_0"'),
        ("main/rnn_0.body/rnn_1.body/tanh_0", '"main/rnn_0/rnn_1/tanh_0"'),
        ("main/rnm_0/rnn_1/tanh_0", '"main/rnn_0/rnn_1/tanh_0"'),
        (
            "main/rnn_0/1/rnn_1/2/tanh_0/",
            '"main/rnn_0/1/rnn_1/2/tanh_0" or "main/rnn_0/1/rnn_1/2/add_0" or "main/rnn_0/1/rnn_1/2/multiply_0"',
        ),
        ("main/rnn_0/-1/memory_0", '"main/rnn_0/memory_0"'),
        ("main/rnn_0/01/memory_0", '"main/rnn_0/memory_0"'),
        ("main/no/such/thing/at/all", None),
    ],
)
def test_a_path_that_leads_nowhere_is_refused_with_the_nearest_before_anything_runs(executor, nested, path, nearest):
    program, _ = nested
    first = nearest.replace('"', "").replace(" or ", ", ") if nearest else "main/mean_0, main/rnn_0.final.0, main/rnn_0.stacked.0"
    for call in (lambda: executor.run(program, {}, [path], scope=ol.Scope()), lambda: executor.eval(program, [path], {}, scope=ol.Scope())):
        with pytest.raises(ol.UndefinedVarError) as raised:
            call()
        assert raised.value.message == f'"{path}" is not a variable of this program'
        assert raised.value.hint == (nearest and f"did you mean {nearest}?")
        (given,) = raised.value.given
        assert given.startswith(f"there are: {first}, ")
        assert re.search(r", and \d\d more$", given)


def test_a_variable_of_a_block_of_a_copy_is_refused(executor):
    program = doubling()
    square = program.clone().blocks[1].var("square")
    refused(
        ol.UndefinedVarError,
        lambda: executor.run(program, {"xs": [1.0]}, [square], scope=ol.Scope()),
        '"main/rnn_0.body/square" is not a variable of this program',
        given=[square.describe()],
        hint="fetch by name if the program is a copy or was loaded from a file",
    )


def test_a_path_that_would_lead_to_two_blocks_is_refused(executor):
    program = doubling()
    with program:
        xs = program.main.var("xs")
        ragged_loop(
            "rnn_0.other", xs, ol.layer.data("splits", shape=[], dtype="int64", batch="n+1"), lambda step: ol.op.square(step, name="z")
        )
    for fetch in ("main/rnn_0/square", program.blocks[1].var("square")):
        refused(
            ol.ProgramError,
            lambda fetch=fetch: executor.run(program, {"xs": [1.0], "splits": [0, 1]}, [fetch], scope=ol.Scope()),
            "the path is ambiguous, because several blocks have it: rnn_0.body, rnn_0.other.body",
        )


def test_a_fetch_of_a_block_that_is_still_being_written_is_refused(executor):
    with ol.Program() as program:
        xs = ol.layer.data("xs", shape=[], batch="t")
        loop = ol.rnn()
        with loop.step():
            square = ol.op.square(loop.step_input(xs))
    with pytest.raises(ol.VerifyError):
        executor.run(program, {"xs": [1.0]}, [square], scope=ol.Scope())
