"""Sums are computed with fewer ops: a product is added where it is computed."""

import re
from collections.abc import Callable, Sequence

import numpy
import pytest
from rewritten import require_same_values, rewritten

import oarlock as ol
from oarlock.op.matrix import linear_dx
from oarlock.passes.fusion.sums import fuse_sums
from oarlock.passes.pipeline import optimize
from oarlock.registry import Catalogue, operator, standard

op = ol.op
TOLERANCE = 1e-10
DATA = {"a": 2, "b": 2, "c": 2, "r": 2, "h": 3, "d": 3}  # the columns of rows
SHARED = {"w": (3, 2), "v": (2, 3), "u": (2, 2), "bias": (2,)}


class Values:
    """The operands of the expressions below, and values for them. With `steps`, there are as many of each."""

    def __init__(self, *, steps: int = 0, dtype: str = "float64"):
        self.feed: dict[str, numpy.ndarray] = {}
        draw = numpy.random.default_rng(0)
        for name, columns in DATA.items():
            shape: list = ["n", columns] if steps else [columns]
            setattr(self, name, ol.layer.data(name, shape, dtype=dtype, batch="t" if steps else "n"))
            self.feed[name] = draw.normal(size=(steps, 4, columns) if steps else (4, columns)).astype(dtype)
        for name, shape in SHARED.items():
            setattr(self, name, ol.layer.data(name, list(shape), dtype=dtype, batch=None))
            self.feed[name] = draw.normal(size=shape).astype(dtype)


Expression = Callable[[Values], ol.Var]


def right_sides(lines: Sequence[str]) -> list[str]:
    """The right sides, without constants; intermediates that the pass declares are called #0, #1."""
    found = [re.sub(r"[\w.]+@FUSED_(\d+)", r"#\1", line.partition(" = ")[2]) for line in lines]
    return [line for line in found if line and not line.startswith("full(")]


def fused(expression: Expression) -> list[str]:
    with ol.Program() as program:
        values = Values()
        result = expression(values)
    lines, _ = rewritten(program, [result], "fuse_sums")
    require_same_values(program, values.feed, [result], "fuse_sums", tolerance=TOLERANCE)
    return right_sides(lines)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (lambda x: x.a + op.linear(x.h, x.w), "addmm(base=a, x=h, w=w)"),
        (lambda x: op.linear(x.h, x.w) + x.a, "addmm(base=a, x=h, w=w)"),
        (lambda x: x.a + linear_dx(x.v, x.d), "addmm_nt(base=a, w=v, x=d)"),
        (lambda x: op.linear(x.h, x.w) + x.bias, "linear(x=h, w=w, bias=bias)"),
        (lambda x: x.a + x.b * x.c, "addcmul(base=a, x=b, y=c, subtracted=false)"),
        (lambda x: x.b * x.c + x.a, "addcmul(base=a, x=b, y=c, subtracted=false)"),
        (lambda x: x.a - x.b * x.c, "addcmul(base=a, x=b, y=c, subtracted=true)"),
        (lambda x: x.a + op.neg(x.b) * x.c, "addcmul(base=a, x=b, y=c, subtracted=true)"),
        (lambda x: x.a - x.b * op.neg(x.c), "addcmul(base=a, x=b, y=c, subtracted=false)"),
        (lambda x: x.a - op.neg(x.b) * op.neg(x.c), "addcmul(base=a, x=b, y=c, subtracted=true)"),
        (lambda x: (1.0 - x.r) * x.a + x.r * x.b, "lerp(start=a, end=b, weight=r)"),
        (lambda x: x.b * x.r + x.a * (1.0 - x.r), "lerp(start=a, end=b, weight=r)"),
        (lambda x: x.a + x.r * (x.b - x.a), "lerp(start=a, end=b, weight=r)"),
        (lambda x: (x.b - x.a) * x.r + x.a, "lerp(start=a, end=b, weight=r)"),
        (lambda x: x.a - x.r * (x.a - x.b), "lerp(start=a, end=b, weight=r)"),
        (lambda x: op.sum([x.a, x.b]), "add(x=a, y=b)"),
        (lambda x: op.sum([x.a, op.neg(x.b)]), "subtract(x=a, y=b)"),
        (lambda x: x.a - op.neg(x.b), "add(x=a, y=b)"),
        (lambda x: op.neg(x.a - x.b), "subtract(x=b, y=a)"),
    ],
)
def test_a_sum_and_what_it_adds_up_become_one_op(expression: Expression, expected: str):
    assert fused(expression) == [expected]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (
            lambda x: op.sum([x.b * x.c, linear_dx(x.v, x.d), x.a, op.linear(x.h, x.w)]),
            [
                "addcmul(base=a, x=b, y=c, subtracted=false)",
                "addmm_nt(base=#0, w=v, x=d)",
                "addmm(base=#1, x=h, w=w)",
            ],
        ),
        (
            lambda x: op.sum([linear_dx(x.v, x.d), x.a * x.b, op.neg(x.a * x.c)]),
            [
                "multiply(x=a, y=b)",
                "addcmul(base=#0, x=a, y=c, subtracted=true)",
                "addmm_nt(base=#1, w=v, x=d)",
            ],
        ),
        (
            lambda x: (1.0 - x.r) * x.a + x.r * x.b + op.linear(x.h, x.w) - x.c,
            ["lerp(start=a, end=b, weight=r)", "subtract(x=#0, y=c)", "addmm(base=#1, x=h, w=w)"],
        ),
        (
            lambda x: op.linear(x.h, x.w) + linear_dx(x.v, x.d) - op.linear(x.d, x.w) + x.bias,
            [
                "linear(x=h, w=w, bias=bias)",
                "addmm_nt(base=#0, w=v, x=d)",
                "linear(x=d, w=w)",
                "subtract(x=#1, y=#2)",
            ],
        ),
        (lambda x: x.a + x.b * 2.0, ["addcmul(base=a, x=b, y=full_0, subtracted=false)"]),
        (lambda x: x.a * x.bias - x.bias * x.b, ["multiply(x=a, y=bias)", "addcmul(base=#0, x=bias, y=b, subtracted=true)"]),
        (
            lambda x: x.c - (x.a + x.r * (x.b - x.a)),
            ["lerp(start=a, end=b, weight=r)", "subtract(x=c, y=#0)"],
        ),
    ],
)
def test_terms_are_added_one_after_another_onto_what_is_there(expression: Expression, expected: list[str]):
    assert fused(expression) == expected


@pytest.mark.parametrize(
    "expression",
    [
        lambda x: x.a + x.b - x.c,
        lambda x: x.a * x.b,
        lambda x: op.neg(x.a * x.b),
        lambda x: op.neg((1.0 - x.r) * x.a + x.r * x.b),
        lambda x: op.neg(op.linear(x.h, x.w)) - x.a * x.b,
        lambda x: x.a + op.linear(x.h, x.w, x.bias),
        lambda x: x.a + op.tanh(x.b),
        lambda x: 1.0 - x.a,
        lambda x: x.bias + 1.0,
        lambda x: (2.0 - x.r) * x.a,
        lambda x: op.cast(x.a, dtype="int64") + op.cast(x.b, dtype="int64") * op.cast(x.c, dtype="int64"),
    ],
)
def test_what_would_not_be_fewer_ops_stays(expression: Expression):
    with ol.Program() as program:
        result = expression(Values())
    before, _ = rewritten(program, [result])
    assert rewritten(program, [result], "fuse_sums") == (before, {"fuse_sums": 0})


def test_what_is_read_elsewhere_or_fetched_is_not_computed_twice():
    with ol.Program() as program:
        x = Values()
        product = op.linear(x.h, x.w)
        fetched, read = x.a + product, op.tanh(product)
    lines = right_sides(rewritten(program, [fetched, read], "fuse_sums")[0])
    assert lines == ["linear(x=h, w=w)", "add(x=a, y=linear_0)", "tanh(x=linear_0)"]
    assert right_sides(rewritten(program, [fetched, product], "fuse_sums")[0]) == lines[:2]
    assert right_sides(rewritten(program, [fetched], "fuse_sums")[0]) == ["addmm(base=a, x=h, w=w)"]


def test_another_catalogue_s_operators_are_left_alone():
    catalogue = Catalogue()

    @operator("x: float[*b], y: float[*b] -> z: float[*b]", catalogue=catalogue)
    def add(x, y):
        return x - y

    with ol.Program() as program:
        x = Values()
        add(add(x.a, x.b), x.c)
    before = program.to_text()
    assert fuse_sums(program, catalogue) == 0
    assert program.to_text() == before


def test_fusing_twice_changes_nothing_more():
    with ol.Program() as program:
        x = Values()
        result = op.sum([(1.0 - x.r) * x.a, x.r * x.b, op.linear(x.h, x.w), x.c, op.neg(x.a * x.b)])
    copy = program.clone()
    assert optimize(copy, [copy.main.vars[result.name]], standard, ("fuse_sums",)) == {"fuse_sums": 1}
    assert fuse_sums(copy, standard) == 0


# In loops

LOOP_PASSES = ("licm", "batch_prologue", "batch_epilogue", "fuse_sums")


def loop(cell: Callable[[Values, ol.Var], ol.Var], *inputs: str) -> tuple[dict[str, list[str]], dict[str, int]]:
    """The computations of each block of a loop after the passes, and how often these applied; outputs and gradients are as before them.

    The loop carries the result of `cell` for the values in a step and those carried. The gradients are those of `inputs`.
    """
    with ol.Program() as program:
        x = Values(steps=5)
        start = ol.layer.data("start", ["n", 2], dtype="float64", batch=None)
        rnn = ol.rnn()
        with rnn.step():
            step = Values.__new__(Values)
            vars(step).update({name: rnn.step_input(getattr(x, name)) for name in DATA})
            vars(step).update({name: getattr(x, name) for name in SHARED})
            state = rnn.memory(init=start)
            following = cell(step, rnn.previous_memory(state))
            rnn.update_memory(state, following)
            rnn.output(following)
        outputs = rnn()
        wanted = [getattr(x, name) for name in inputs]
        found = ol.gradients([op.reduce_sum(op.square(outputs))], wanted) if inputs else []
    fetch = [outputs, *(var for var in found if var is not None)]
    feed = {**x.feed, "start": numpy.random.default_rng(1).normal(size=(4, 2))}
    require_same_values(program, feed, fetch, *LOOP_PASSES, tolerance=TOLERANCE)
    copy = program.clone()
    applied = optimize(copy, [copy.main.vars[var.name] for var in fetch], standard, LOOP_PASSES, checked=True)
    text = copy.to_text(source=False)
    blocks = re.findall(r"    block ([\w.@]+)\(.*\n((?:      .*\n)*)", text)
    return {name: right_sides([line.strip() for line in body.splitlines()]) for name, body in blocks}, applied


def test_what_leaves_the_loop_is_added_first():
    """The bias goes onto the whole sequence, before the loop; in each step one op is left."""
    blocks, applied = loop(lambda x, state: op.linear(state, x.u, x.bias) + x.a)
    assert applied == {"licm": 0, "batch_prologue": 1, "batch_epilogue": 0, "fuse_sums": 1}
    assert blocks == {"rnn_0.body": ["addmm(base=#0, x=memory_0, w=u)"]}


def test_differences_of_sequences_leave_the_gradient_loop_and_complements_are_seen_through_it():
    """As in a gated unit, whose gate pulls the state towards something new: what the gate's gradient needs is one product in a step."""

    def cell(x: Values, state: ol.Var) -> ol.Var:
        gate = op.sigmoid(x.r + op.linear(state, x.u))
        return (1.0 - gate) * state + gate * op.tanh(x.a + gate * state)

    blocks, _ = loop(cell, "u")
    assert blocks == {
        "rnn_0.body": [
            "addmm(base=r.step_0, x=memory_0, w=u)",
            "sigmoid(x=add_0)",
            "addcmul(base=a.step_0, x=sigmoid_0, y=memory_0, subtracted=false)",
            "tanh(x=add_1)",
            "lerp(start=memory_0, end=tanh_0, weight=sigmoid_0)",
        ],
        "rnn_0@GRAD.body": [
            "add(x=rnn_0.stacked.0@STEP_0, y=memory_0@STEP_0)",
            "multiply(x=add_2@GRAD, y=sigmoid_0@STEP_0)",
            "tanh_dx(y=tanh_0@STEP_0, dy=tanh_0@GRAD)",
            "multiply(x=add_2@GRAD, y=#0)",
            "addcmul(base=#1, x=add_1@GRAD, y=memory_0@STEP_1, subtracted=false)",
            "sigmoid_dx(y=sigmoid_0@STEP_0, dy=sigmoid_0@GRAD)",
            "lerp(start=add_2@GRAD, end=add_1@GRAD, weight=sigmoid_0@STEP_0)",
            "addmm_nt(base=#2, w=u, x=add_0@GRAD)",
        ],
    }


def test_products_of_one_factor_stay_apart_where_nothing_leaves_the_loop():
    blocks, _ = loop(lambda x, state: op.tanh(state) * state + op.sigmoid(state) * state)
    assert blocks == {
        "rnn_0.body": [
            "tanh(x=memory_0)",
            "sigmoid(x=memory_0)",
            "multiply(x=tanh_0, y=memory_0)",
            "addcmul(base=#0, x=sigmoid_0, y=memory_0, subtracted=false)",
        ]
    }


def test_sums_of_uneven_stacks_stay_sums():
    """Rows that took a branch, another number in each step, are a list: only `sum` adds up lists."""
    with ol.Program() as program:
        x = Values(steps=5)
        rnn = ol.rnn()
        with rnn.step():
            step = rnn.step_input(x.a)
            ie = ol.ifelse()
            with ie.true_block():
                ie.output(op.tanh(ie.input(step)))
            with ie.false_block():
                ie.output(op.exp(ie.input(step)))
            rnn.output(ie(op.reduce_sum(step, axis=-1) > 0.0))
        ol.gradients([op.reduce_sum(rnn())], [x.a])
    stacks = [var for each in program.main.ops if each.type == "recurrent" for var in each.outputs["stacked"]]
    uneven = next(var for var in stacks if any(".true" in str(size) for size in var.shape or ()))
    with program:
        total = op.sum([uneven, uneven])
    assert right_sides(rewritten(program, [total], "fuse_sums")[0])[-1].startswith("sum(")
