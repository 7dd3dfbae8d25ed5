"""IfElse: rows of a minibatch that take different blocks, and what a block sees of the variables around it."""

import math
import re

import numpy
import pytest
import torch
from tolerances import VALUES
from twins import agree, run

import oarlock as ol

EXACT = VALUES[torch.float64]


def rows(name="x", shape=(2,), dtype="float64", batch="n"):
    return ol.layer.data(name, shape=shape, dtype=dtype, batch=batch)


def split(condition, true, false):
    """The outputs of `true()` and `false()`, by rows."""
    ie = ol.ifelse()
    with ie.true_block():
        ie.output(*true(ie))
    with ie.false_block():
        ie.output(*false(ie))
    return ie(condition)


# The example of the Block document


def example(width=1):
    """x = minibatch([10, 20, 30]); cond = larger_than(x, 15); fc(z) with the weights that are set below."""
    with ol.Program() as program:
        x = rows("x", (width,))
        y = ol.layer.data("y", shape=[1], dtype="float64", batch=None)
        z = rows("z", (width,))
        cond = ol.larger_than(ol.op.slice(x, axis=1, start=0, stop=1) if width > 1 else x, 15.0)
        ie = ol.ifelse()
        with ie.true_block():
            d = ol.layer.add_scalar(x, y)
            ie.output(d, ol.layer.softmax(d))
        with ie.false_block():
            d = ol.layer.fc(z, width, name="fc")
            ie.output(d, d + 1.0)
        o1, o2 = ie(cond)
    return program, (x, y, z), (o1, o2)


@pytest.fixture
def weights():
    scope = ol.Scope()
    scope.set("fc.w", numpy.array([[2.0]]))
    scope.set("fc.b", numpy.array([0.5]))
    return scope


@pytest.mark.mission("B12", "B14", "B15")
@pytest.mark.parametrize(
    ("x", "o1", "o2"),
    [
        ([10, 20, 30], [20.5, 21, 31], [21.5, 1, 1]),
        ([20, 30], [21, 31], [1, 1]),
        ([10, 15], [20.5, 30.5], [21.5, 31.5]),
        ([16], [17], [1]),
        ([], [], []),
    ],
)
def test_the_example_of_the_document_has_these_values(weights, x, o1, o2):
    """Left x + y and its softmax, which is 1 for one column; right fc(z) and that plus 1."""
    program, _, outputs = example()
    column = numpy.array(x, "float64").reshape(-1, 1)
    found = run(program, {"x": column, "y": numpy.array([1.0]), "z": column}, outputs, weights)
    assert [value.ravel().tolist() for value in found] == [o1, o2]
    assert [value.shape for value in found] == [column.shape] * 2


@pytest.mark.mission("B16", "C12")
def test_the_right_branch_is_what_the_code_says_and_not_the_prose(weights):
    """fc(z) and d + 1, where the prose has fc(x) and x + 1: of rows in which x and z differ."""
    program, _, outputs = example()
    feed = {"x": numpy.array([[1.0]]), "y": numpy.array([1.0]), "z": numpy.array([[100.0]])}
    assert [value.tolist() for value in run(program, feed, outputs, weights)] == [[[200.5]], [[201.5]]]


@pytest.mark.mission("B12", "B15")
@pytest.mark.parametrize("x", [[10, 20, 30], [20, 30], [10], []])
def test_the_example_of_the_document_has_the_gradients_of_eager_pytorch(x):
    """Three columns wide, so that its softmax has some."""
    program, wanted, outputs = example(3)
    random = numpy.random.default_rng(4)
    arrays = {"fc.w": random.normal(size=(3, 3)), "fc.b": random.normal(size=3), "y": random.normal(size=1)}
    arrays |= {"x": random.normal(size=(len(x), 3)) + numpy.array(x, "float64").reshape(-1, 1), "z": random.normal(size=(len(x), 3))}
    scope = ol.Scope()
    with program:
        cost = ol.op.reduce_sum(ol.op.tanh(outputs[0])) + ol.op.reduce_sum(ol.op.square(outputs[1]))
        found = ol.gradients([cost], [*wanted, program.main.var("fc.w"), program.main.var("fc.b")])
    for name in ("fc.w", "fc.b"):
        scope.set(name, arrays[name])
    t = {name: torch.tensor(array, requires_grad=True) for name, array in arrays.items()}
    holds = t["x"][:, :1] > 15
    left, right = t["x"] + t["y"], t["z"] @ t["fc.w"] + t["fc.b"]
    o1, o2 = torch.where(holds, left, right), torch.where(holds, left.softmax(1), right + 1)
    (o1.tanh().sum() + (o2 * o2).sum()).backward()
    feed = {name: arrays[name] for name in ("x", "y", "z")}
    values = run(program, feed, [*outputs, *found], scope)
    hoped = [o1.detach(), o2.detach(), *(t[name].grad for name in ("x", "y", "z", "fc.w", "fc.b"))]
    for value, expected in zip(values, hoped, strict=True):
        agree(value, expected)


# Blocks that are entered twice


def entered_twice(first, second, how):
    """Enter two blocks: one after the other, one in the other, or one after the other where both were asked for before."""
    if how == "in turn":
        with first():
            pass
        with second():
            pass
    elif how == "nested":
        with first(), second():
            pass
    else:
        earlier, later = first(), second()
        with earlier:
            pass
        with later:
            pass


@pytest.mark.mission("B12")
@pytest.mark.parametrize("side", ["true", "false"])
@pytest.mark.parametrize("how", ["in turn", "nested", "asked for before"])
def test_a_block_is_entered_once_and_what_it_returned_stays(side, how):
    """The second one is refused where it is entered, whenever it was asked for, and nothing of the program changes."""
    with ol.Program() as program:
        x, ie = rows(shape=()), ol.ifelse()
        with ie.true_block() if side == "false" else ie.false_block():
            ie.output(-x)
        block = {"true": ie.true_block, "false": ie.false_block}[side]
        if how == "nested":
            with pytest.raises(ol.ProgramError) as raised:
                entered_twice(block, block, how)
            assert raised.value.message in (f"ifelse: it has a {side} block already", "ifelse: its other block is open")
            with block():  # what held the second one was discarded with it
                ie.output(x * 2.0)
        else:
            earlier, later = block(), block()
            with earlier:
                ie.output(x * 2.0)
            before = program.to_text(source=False)
            with pytest.raises(ol.ProgramError) as raised, later if how == "asked for before" else block():
                ie.output(x * 3.0)
            assert raised.value.message == f"ifelse: it has a {side} block already"
            assert raised.value.location.file.endswith("test_ifelse.py")
            assert program.to_text(source=False) == before
        y = ie(x > 0.0)
        with pytest.raises(ol.ProgramError, match=f"^ifelse: it has a {side} block already\n"), block():
            pass
    assert len(program.blocks) == 3
    doubled, negated = ([2.0], [3.0]) if side == "true" else ([-1.0], [-6.0])
    assert run(program, {"x": numpy.array([1.0, -3.0])}, [y])[0].tolist() == [*doubled, *negated]


@pytest.mark.parametrize("how", ["in turn", "nested", "asked for before"])
def test_the_block_of_a_loop_is_entered_once(how):
    for make, name in ((lambda x: ol.rnn(), "step"), (lambda x: ol.while_loop(ol.op.reduce_sum(x) > 0.0), "block")):
        with ol.Program():
            loop = make(rows(shape=()))
            with pytest.raises(ol.ProgramError, match="^(rnn: it already has a step block|while_loop: it already has a body)\n"):
                entered_twice(getattr(loop, name), getattr(loop, name), how)


def test_the_blocks_of_a_switch_are_entered_in_the_order_in_which_they_are_asked_for():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[], batch=None)
        choice = ol.switch()
        with choice.case(x > 0.0):
            choice.output(x)
        one, two, three = choice.case(x < -1.0), choice.case(lambda: x < -2.0), choice.default()
        with one:
            choice.output(-x)
        blocks = len(program.blocks) - 1  # without the condition of a block that is never written
        for late, part in ((two, "case_1"), (three, "default")):
            with pytest.raises(ol.ProgramError, match=f"^switch: its block {part} was requested before another block was written\n"), late:
                pass
        assert len(program.blocks) == blocks
        with choice.default():
            choice.output(x * 0.0)
        y = choice()
    assert [float(run(program, {"x": numpy.float32(value)}, [y])[0]) for value in (2.0, -2.0, -0.5)] == [2.0, 2.0, 0.0]


# What a block sees


@pytest.mark.mission("B13")
def test_what_leads_with_the_size_of_the_condition_is_seen_by_rows_and_all_else_whole():
    """`table` has as many rows as x in this run; but they are other rows, and nothing is decided by numbers."""
    with ol.Program() as program:
        x, table = rows(), rows("table", batch="words")
        y = split(ol.op.reduce_sum(x, axis=1) > 0.0, lambda ie: [x * ol.op.reduce_sum(table)], lambda ie: [x * ol.op.reduce_sum(x)])
    feed = {"x": numpy.array([[1.0, 1.0], [-1.0, -2.0], [0.0, -3.0]]), "table": numpy.ones((3, 2))}
    assert run(program, feed, [y])[0].tolist() == [[6.0, 6.0], [6.0, 12.0], [0.0, 18.0]]
    assert run(program, feed | {"table": numpy.ones((1, 2))}, [y])[0].tolist()[0] == [2.0, 2.0]


@pytest.mark.mission("B13")
def test_a_batch_of_which_another_dimension_is_as_long_is_cut_along_its_rows():
    with ol.Program() as program:
        x = rows(shape=("k",))
        y = split(ol.op.reduce_sum(x, axis=1) > 0.0, lambda ie: [x + x], lambda ie: [-x])
        (dx,) = ol.gradients([y], [x])
    square = numpy.array([[1.0, 2.0], [-3.0, 1.0]])
    values = run(program, {"x": square}, [y, dx])
    assert [value.tolist() for value in values] == [[[2.0, 4.0], [3.0, -1.0]], [[2.0, 2.0], [-1.0, -1.0]]]


@pytest.mark.mission("B13")
@pytest.mark.parametrize("column", [False, True])
def test_the_condition_is_a_vector_or_a_column(column):
    with ol.Program() as program:
        x = rows(shape=(1,) if column else ())
        y = split(x > 0.0, lambda ie: [x * 10.0], lambda ie: [x])
    array = numpy.array([1.0, -1.0, 2.0])
    array = array.reshape(-1, 1) if column else array
    (value,) = run(program, {"x": array}, [y])
    assert (value.shape, value.ravel().tolist()) == (array.shape, [10.0, -1.0, 20.0])


@pytest.mark.mission("B13")
def test_whole_is_all_of_a_variable_beside_its_rows():
    """Each row minus the mean of all rows, or of those of its block."""
    with ol.Program() as program:
        x = rows(shape=())
        y = split(x > 0.0, lambda ie: [x - ol.op.mean(ie.whole(x))], lambda ie: [x - ol.op.mean(x)])
        (dx,) = ol.gradients([y], [x])
    value, gradient = run(program, {"x": numpy.array([1.0, -3.0, 3.0, -1.0, 5.0])}, [y, dx])
    agree(value, [0.0, -1.0, 2.0, 1.0, 4.0], EXACT)
    agree(gradient, [1 - 3 / 5, -3 / 5, 1 - 3 / 5, -3 / 5, 1 - 3 / 5], EXACT)


@pytest.mark.mission("B13")
def test_a_square_of_rows_by_rows_is_whole_or_refused():
    """Attention within a minibatch: of weights [n, n], `whole` is all of them."""
    with ol.Program() as program:
        x, weights = rows(), ol.layer.data("weights", shape=["n", "n"], dtype="float64", batch=None)
        y = split(ol.op.reduce_sum(x, axis=1) > 0.0, lambda ie: [x * ol.op.reduce_sum(ie.whole(weights))], lambda ie: [x])
    feed = {"x": numpy.array([[1.0, 1.0], [-1.0, -1.0]]), "weights": numpy.array([[1.0, 2.0], [3.0, 4.0]])}
    assert run(program, feed, [y])[0].tolist() == [[10.0, 10.0], [-1.0, -1.0]]


@pytest.mark.mission("B13")
def test_where_rows_are_counted_by_a_number_input_gives_those_of_a_block():
    with ol.Program() as program:
        x, table = rows(shape=(3, 2), batch=None), rows("table", (3, 2), batch=None)
        y = split(
            ol.op.reduce_sum(x, axis=1) > 0.0,
            lambda ie: [ie.input(x) * ol.op.reduce_sum(table)],
            lambda ie: [ie.input(x) + ie.input(table)],
        )
        found = ol.gradients([y], [x, table])
    feed = {"x": numpy.array([[1.0, 1.0], [-1.0, -1.0], [2.0, 0.0]]), "table": numpy.array([[1.0, 1.0], [2.0, 2.0], [0.0, 0.0]])}
    values = run(program, feed, [y, *found])
    assert values[0].tolist() == [[6.0, 6.0], [1.0, 1.0], [12.0, 0.0]]
    assert values[1].tolist() == [[6.0, 6.0], [1.0, 1.0], [6.0, 6.0]]
    assert values[2].tolist() == [[4.0, 4.0], [5.0, 5.0], [4.0, 4.0]]


def test_input_and_whole_give_the_same_variable_however_often_they_are_asked():
    with ol.Program():
        x = rows(shape=(3, 2), batch=None)
        ie = ol.ifelse()
        with ie.true_block():
            assert ie.input(x) is ie.input(x)
            assert ie.whole(x) is ie.whole(x)


def test_rows_of_integers_and_bools_come_back_too():
    with ol.Program() as program:
        x, label = rows(shape=()), rows("label", (), "int64")
        outputs = split(x > 0.0, lambda ie: [label + 1, x > 2.0, x], lambda ie: [label, ol.op.logical_not(x > -1.0), x])
        (dx,) = ol.gradients([outputs[2]], [x])
    feed = {"x": numpy.array([1.0, -0.5, 3.0, -2.0]), "label": numpy.array([1, 2, 3, 4])}
    integers, bools, _, gradient = run(program, feed, [*outputs, dx])
    assert (integers.dtype, integers.tolist()) == (numpy.int64, [2, 2, 4, 4])
    assert (bools.dtype, bools.tolist()) == (numpy.bool_, [False, False, True, True])
    assert gradient.tolist() == [1.0, 1.0, 1.0, 1.0]


def test_a_block_sees_a_value_of_its_own_rows_that_was_computed_before_it():
    with ol.Program() as program:
        x = rows()
        h = ol.op.tanh(x)
        y = split(ol.op.reduce_sum(x, axis=1) > 0.0, lambda ie: [h], lambda ie: [h * x])
    array = numpy.array([[1.0, 1.0], [-1.0, -2.0]])
    agree(run(program, {"x": array}, [y])[0], [numpy.tanh(array[0]), numpy.tanh(array[1]) * array[1]], EXACT)


@pytest.mark.mission("B13")
def test_rows_are_cut_again_inside():
    """Four kinds of rows, by two conditions, the second computed in a block of the first."""

    def inner(low, high):
        return lambda ie: [split(x[0] > x[1], lambda ie: [x[0] * high], lambda ie: [x[1] * low])]

    with ol.Program() as program:
        x = [rows("a", ()), rows("b", ())]
        y = split(x[0] > 0.0, inner(2.0, 3.0), inner(5.0, 7.0))
        found = ol.gradients([y], x)
    feed = {"a": numpy.array([4.0, 1.0, -1.0, -4.0, 2.0]), "b": numpy.array([3.0, 3.0, -3.0, -3.0, -1.0])}
    values = run(program, feed, [y, *found])
    assert [value.tolist() for value in values] == [[12.0, 6.0, -7.0, -15.0, 6.0], [3.0, 0.0, 7.0, 0.0, 3.0], [0.0, 2.0, 0.0, 5.0, 0.0]]


def test_sequences_of_any_length_are_seen_whole():
    """Where a row is a sequence of others, the elements are not the rows of the condition."""
    with ol.Program() as program:
        x = rows()
        elements = rows("elements", (2,), batch="elements.t")
        y = split(ol.op.reduce_sum(x, axis=1) > 0.0, lambda ie: [x + ol.op.reduce_sum(elements, axis=0)], lambda ie: [x])
    feed = {"x": numpy.array([[1.0, 1.0], [-1.0, 0.0]]), "elements": numpy.ones((5, 2))}
    assert run(program, feed, [y])[0].tolist() == [[6.0, 6.0], [-1.0, 0.0]]


@pytest.mark.mission("B15")
@pytest.mark.parametrize("column", [False, True])
def test_every_output_is_merged_row_by_row_in_the_order_in_which_it_was_returned(column):
    """Three outputs of three types, whose rows come from either block; the condition is computed after the blocks were written."""
    with ol.Program() as program:
        x = rows()
        ie = ol.ifelse()
        with ie.true_block():
            ie.output(x * 10.0)
            ie.output(ol.op.cast(ol.op.reduce_sum(x, axis=1), dtype="int64"), x > 0.0)
        with ie.false_block():
            ie.output(-x, ol.op.cast(ol.op.reduce_sum(x, axis=1), dtype="int64") * 100, x < 0.0)
        condition = ol.op.reduce_sum(x, axis=1, keepdim=column) > 0.0
        outputs = ie(condition)
    assert [var.type_text for var in outputs] == ["float64[n, 2]", "int64[n]", "bool[n, 2]"]
    array = numpy.array([[1.0, 2.0], [-1.0, -3.0], [0.0, 5.0], [-4.0, 1.0], [2.0, -1.0]])
    takes = array.sum(1) > 0
    hoped = [
        numpy.where(takes[:, None], array * 10, -array),
        numpy.where(takes, array.sum(1), array.sum(1) * 100).astype("int64"),
        numpy.where(takes[:, None], array > 0, array < 0),
    ]
    for chosen in (slice(None), takes, ~takes, slice(0, 0)):
        for value, expected in zip(run(program, {"x": array[chosen]}, outputs), hoped, strict=True):
            assert (value.dtype, value.tolist()) == (expected.dtype, expected[chosen].tolist())


@pytest.mark.mission("B15")
def test_blocks_whose_outputs_do_not_agree_are_refused_when_the_condition_is_given():
    with ol.Program() as program:
        x = rows()
        c = ol.op.reduce_sum(x, axis=1) > 0.0
        total = ol.op.reduce_sum(x, axis=1)
        for true, false, message in (
            ([x, x], [x], "ifelse: the true block returns 2 values, the false block 1"),
            ([x], [], "ifelse: the true block returns 1 value, the false block none"),
            ([], [x], "ifelse: the true block returns no values, the false block 1"),
            (
                [x, x],
                [x, ol.op.cast(x, dtype="float32")],
                "ifelse: output 1 is float64[n.true, 2] from the true block but float32[n.false, 2]",
            ),
            ([x, x], [x, total], "ifelse: output 1 is float64[n.true, 2] from the true block but float64[n.false]"),
            ([total], [x], "ifelse: output 0 is float64[n.true] from the true block but float64[n.false, 2]"),
        ):
            with pytest.raises((ol.ProgramError, ol.ShapeError)) as raised:
                split(c, lambda ie, true=true: true, lambda ie, false=false: false)
            assert re.sub(r"(true|false)_\d+", r"\1", raised.value.message).startswith(message)
            assert len(program.blocks) == 1


# Rows that took the other block


@pytest.mark.mission("B15")
@pytest.mark.parametrize(
    ("write", "poison", "slope"),
    [
        (ol.op.sqrt, [-4.0, -1e300, 0.0], lambda x: 0.5 / math.sqrt(x)),
        (ol.op.log, [-4.0, 0.0, -0.0], lambda x: 1 / x),
        (lambda x: 1.0 / x, [0.0, -0.0], lambda x: -1 / x**2),
        (lambda x: ol.op.exp(1.0 / x), [0.0, -1e-300], lambda x: -math.exp(1 / x) / x**2),
        (lambda x: ol.op.sqrt(x) / x, [math.inf, -math.inf, math.nan, -1.0, 0.0], lambda x: -0.5 * x**-1.5),
    ],
    ids=["sqrt", "log", "div", "exp of div", "poison"],
)
def test_what_a_row_would_have_been_in_the_block_that_it_did_not_take_is_never_computed(write, poison, slope):
    with ol.Program() as program:
        x, safe = rows(shape=()), rows("safe", (), "bool")
        y = split(safe, lambda ie: [write(x)], lambda ie: [safe_value(x)])
        (dx,) = ol.gradients([y], [x])
    good = [4.0, 0.25, 2.5]
    array = numpy.array([value for pair in zip(good, poison, strict=False) for value in pair] + good + poison)
    taken = numpy.isin(array, good)
    value, gradient = run(program, {"x": array, "safe": taken}, [y, dx])
    assert numpy.isfinite(value).all()
    agree(gradient, [slope(item) if good else 0.0 for item, good in zip(array, taken, strict=True)], EXACT)


def safe_value(x):
    """A number for each row, whatever it holds."""
    return ol.op.cast(ol.op.cast(ol.op.equal(x, x), dtype="int64") * 0, dtype="float64")


def test_a_mean_of_no_rows_is_nan_and_reaches_only_who_reads_it():
    with ol.Program() as program:
        x = rows(shape=())
        ie = ol.ifelse()
        with ie.true_block():
            mean = ol.op.mean(x, name="mean_inside")
            ie.output(x - mean)
        with ie.false_block():
            ie.output(x)
        y = ie(x > 0.0)
        (dx,) = ol.gradients([y], [x])
    value, gradient, mean = run(program, {"x": numpy.array([-1.0, -2.0])}, [y, dx, "main/if_else_0.true/mean_inside"])
    assert (value.tolist(), gradient.tolist()) == ([-1.0, -2.0], [1.0, 1.0])
    assert math.isnan(mean)


# Programs


@pytest.mark.mission("B12")
def test_ifelse_is_five_kinds_of_ops_and_prints_as_it_reads():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[1])
        split(x > 0.0, lambda ie: [ol.op.sqrt(x)], lambda ie: [-x])
    assert [op.type for op in program.main.ops] == [
        "full",
        "greater",
        "flatten",
        "nonzero",
        "gather",
        "conditional_block",
        "nonzero",
        "gather",
        "conditional_block",
        "merge",
    ]
    assert [block.path for block in program.blocks] == ["main", "main/if_else_0.true", "main/if_else_0.false"]
    assert [var.type_text for var in program.blocks[1].inputs] == ["float32[n.true, 1]"]
    assert [var.type_text for var in program.blocks[2].inputs] == ["float32[n.false, 1]"]


def test_an_exception_in_a_block_takes_it_back_and_it_may_be_written_again():
    with ol.Program() as program:
        x = rows()
        ie = ol.ifelse()
        with pytest.raises(KeyError), ie.true_block():
            ie.output(x)
            raise KeyError
        assert [block.name for block in program.blocks] == ["main"]
        with ie.true_block():
            ie.output(x + x)
        with ie.false_block():
            ie.output(x)
        y = ie(ol.op.reduce_sum(x, axis=1) > 0.0)
    assert run(program, {"x": numpy.ones((1, 2))}, [y])[0].tolist() == [[2.0, 2.0]]


def test_what_does_not_fit_leaves_no_block_behind():
    with ol.Program() as program:
        x = rows()
        for false in (ol.op.reduce_sum(x, axis=1), ol.op.cast(x, dtype="int64"), ol.op.reduce_sum(x)):
            with pytest.raises(ol.ShapeError):
                split(ol.op.reduce_sum(x, axis=1) > 0.0, lambda ie: [x], lambda ie, false=false: [false])
        assert [block.name for block in program.blocks] == ["main"]
        run(program, {"x": numpy.ones((1, 2))}, [x])
