"""Which ops of a block form regions: they launch kernels and do nothing else."""

import torch

import oarlock as ol
from oarlock.registry import standard
from oarlock.runtime.plan.liveness import Liveness
from oarlock.runtime.plan.numbers import Numbers
from oarlock.runtime.plan.regions import find_regions


def regions_of(program, kept, **options):
    """The regions of a program as it is evaluated: the types of their ops, what they read and what they give. No draws are counted."""
    ops = [op for op in program.main.ops if not op.is_commit and not op.writes[0].name.startswith("@RANDOM")]
    found = find_regions(ops, Liveness(ops, kept, standard), standard, Numbers(ops, kept, standard), torch.device("cpu"), **options)
    return [
        (" ".join(op.type for op in each.ops), [var.name for var in each.reads], [var.name for var in each.writes])
        for each in found
        if [op for op in ops[each.start : each.stop] if op.writes[0] not in options.get("made_once", ())] == list(each.ops)
    ]


def test_what_draws_is_a_line_between_regions():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[4])
        y = ol.op.tanh(ol.op.exp(ol.op.tanh(x)))
        z = ol.op.sigmoid(ol.op.dropout(y, rate=0.5))
    assert regions_of(program, [z]) == [("tanh exp tanh", ["x"], [y.name]), ("sigmoid", ["dropout_0.y"], [z.name])]


def test_what_is_read_later_or_stays_or_is_wanted_leaves_a_region():
    with ol.Program() as program:
        a = ol.op.tanh(ol.layer.data("x", shape=[4]))
        b = ol.op.exp(a)
        c = ol.op.sigmoid(b)
        d = ol.op.dropout(c, rate=0.5)
        e = ol.op.add(d, a)
    assert regions_of(program, [e]) == [("tanh exp sigmoid", ["x"], [a.name, c.name]), ("add", [d.name, a.name], [e.name])]
    assert regions_of(program, [e, b])[0][2] == [a.name, b.name, c.name]
    assert regions_of(program, [e], wanted=[b])[0][2] == [a.name, b.name, c.name]


def test_what_may_refuse_values_is_a_line():
    with ol.Program() as program:
        label = ol.layer.data("label", shape=[], dtype="int64")
        row = ol.op.gather(ol.op.tanh(ol.layer.data("table", shape=[3, 4], batch=None)), label)
        y = ol.op.exp(row)
    assert [types for types, _, _ in regions_of(program, [y])] == ["tanh", "exp"]


def test_what_has_blocks_is_a_line_and_what_its_block_reads_leaves_the_region():
    with ol.Program() as program:
        x, rnn = ol.layer.data("x", shape=[2], batch="t"), ol.rnn()
        factor = ol.op.tanh(ol.op.exp(ol.layer.data("factor", shape=[2], batch=None)))
        with rnn.step():
            rnn.output(rnn.step_input(x) * factor)
        y = ol.op.sigmoid(rnn())
    (first, _, writes), _ = regions_of(program, [y])
    assert (first, writes) == ("exp tanh", [factor.name])


def test_what_reads_a_number_on_the_host_is_a_line():
    with ol.Program() as program:
        y = ol.layer.fc(ol.layer.data("x", shape=[4]), 2)
        ol.optimizer.SGD(0.1).minimize(ol.op.mean(ol.op.tanh(y)))
    kept = [op.reads[0] for op in program.main.tail]
    kinds = [types for types, _, _ in regions_of(program, kept)]
    assert kinds
    assert not any("sgd" in types.split() for types in kinds)


def test_a_region_does_not_ask_for_a_bool_that_it_makes_itself():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3, 4, 4])
        x.stop_gradient = False
        ol.append_backward(ol.op.mean(ol.layer.batch_norm(x)))
    kinds = [types.split() for types, _, _ in regions_of(program, list(program.main.ops[-1].writes))]
    before = next(types for types in kinds if "batch_norm" in types)
    assert "batch_norm_scale_grad" not in before
    assert any("batch_norm_scale_grad" in types for types in kinds)


def test_what_is_made_once_splits_no_region_and_is_none_of_its_ops():
    with ol.Program() as program:
        x = ol.op.tanh(ol.layer.data("x", shape=[4]))
        two = ol.op.full(shape=(4,), value=2.0, dtype="float32")
        y = ol.op.exp(x * two)
    assert regions_of(program, [y], made_once={two}) == [("tanh multiply exp", ["x", two.name], [y.name])]


def test_a_region_of_fewer_ops_than_asked_for_stays_lines():
    with ol.Program() as program:
        y = ol.op.dropout(ol.op.tanh(ol.layer.data("x", shape=[4])), rate=0.5)
        z = ol.op.exp(ol.op.sigmoid(y))
    assert [types for types, _, _ in regions_of(program, [z], at_least=2)] == ["sigmoid exp"]


def test_the_last_ops_may_be_left_out():
    with ol.Program() as program:
        y = ol.op.tanh(ol.layer.data("x", shape=[4]))
        z = ol.op.exp(y)
    assert regions_of(program, [z], stop=1) == [("tanh", ["x"], [y.name])]


def test_an_operator_of_the_user_is_a_line():
    catalogue = ol.registry.Catalogue()

    @ol.operator("x: float[*b] -> y: float[*b]", catalogue=catalogue)
    def doubled(x):
        return x + x

    with ol.Program() as program:
        x = ol.layer.data("x", shape=[4])
        y = doubled(x)
    ops = program.main.ops
    assert find_regions(ops, Liveness(ops, [y], catalogue), catalogue, Numbers(ops, [y], catalogue), torch.device("cpu")) == []
