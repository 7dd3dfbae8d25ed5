"""The summary of a program: rows for its layers and blocks, and numbers that PyTorch and paper agree with."""

import math

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import oarlock as ol
from oarlock.ir.size import evaluate
from oarlock.ir.traversal import walk_ops
from oarlock.layer.program_summary import find_multiply_adds


def classifier() -> ol.Program:
    with ol.Program() as program:
        x = ol.layer.data("image", shape=[3, 32, 32])
        label = ol.layer.data("label", shape=[], dtype="int64")
        h = ol.layer.conv2d(x, 16, 3, padding="same", act="relu")
        h = ol.layer.max_pool2d(ol.layer.batch_norm(h), 2)
        h = ol.layer.fc(ol.layer.flatten(h), 10, weight=ol.layer.ParameterOptions(trainable=False))
        ol.optimizer.Adam(0.1).minimize(ol.layer.cross_entropy(h, label))
    return program


def test_a_summary_is_a_table_of_layers():
    assert str(ol.summary(classifier())) == (
        """\
layer          operators                                output                   trainable   frozen      memory   multiply-adds
───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
conv2d_0       conv2d                                   float32[n, 16, 32, 32]         448              1.8 KiB         442,368
relu_0         relu                                     float32[n, 16, 32, 32]
batch_norm_0   batch_norm                               float32[n, 16, 32, 32]          32                128 B
flatten_0      max_pool2d, flatten                      float32[n, 4096]
fc_0           linear                                   float32[n, 10]                  10   40,960   160.0 KiB          40,960
valid_mean_0   softmax_with_cross_entropy, valid_mean   float32[]

490 trainable and 40,960 frozen numbers in 161.9 KiB, 4.0 KiB of state
483,328 multiply-adds forward, for n = 1"""
    )


def test_its_numbers_are_there_by_themselves():
    found = ol.summary(classifier(), sizes={"n": 8})
    assert (found.trainable, found.frozen, found.parameters) == (490, 40_960, 41_450)
    assert found.parameter_bytes == 4 * 41_450
    states = [var for var in classifier().persistables() if not var.parameter]
    assert found.state_bytes == sum(math.prod(var.shape) * var.dtype.itemsize for var in states) > 4 * (2 * 16 + 2 * 490)
    assert found.multiply_adds == 8 * 483_328
    assert found.rows[0] == ol.SummaryRow("conv2d_0", ("conv2d",), 0, "float32[n, 16, 32, 32]", 448, 0, 1792, 8 * 442_368)


def test_multiply_adds_are_half_of_the_flops_that_pytorch_counts():
    nn = torch.nn
    theirs = [
        (nn.Conv1d(4, 6, 3, groups=2), (2, 4, 9)),
        (nn.Conv2d(4, 6, 3, stride=2, padding=1), (2, 4, 7, 8)),
        (nn.Conv3d(4, 6, 2, dilation=2), (2, 4, 5, 6, 7)),
        (nn.ConvTranspose2d(4, 6, 3, stride=2, groups=2), (2, 4, 7, 8)),
        (nn.Linear(4, 6), (2, 5, 4)),
    ]
    ours = [
        lambda x: ol.layer.conv1d(x, 6, 3, groups=2),
        lambda x: ol.layer.conv2d(x, 6, 3, stride=2, padding=1),
        lambda x: ol.layer.conv3d(x, 6, 2, dilation=2),
        lambda x: ol.layer.conv_transpose2d(x, 6, 3, stride=2, groups=2),
        lambda x: ol.layer.linear(x, 6),
    ]
    for (module, shape), layer in zip(theirs, ours, strict=True):
        with FlopCounterMode(display=False) as counter:
            module(torch.zeros(shape))
        with ol.Program() as program:
            layer(ol.Variable(shape=shape, dtype="float32"))
        assert 2 * ol.summary(program).multiply_adds == counter.get_total_flops(), str(module)


def transformer() -> ol.Program:
    with ol.Program() as program:
        x = ol.layer.embedding(ol.layer.data("ids", shape=["t"], dtype="int64"), (100, 16))
        y = ol.layer.transformer_encoder(x, layers=2, heads=2, causal=True, dropout=0.0, name="gpt")
        ol.layer.fc(y, 100)
    return program


def test_depth_cuts_names_and_attention_counts():
    found = ol.summary(transformer(), depth=1)
    assert [row.name for row in found.rows] == ["embedding_0", "gpt", "fc_0"]
    assert found.rows[1].multiply_adds == "6144*t+64*t*t"
    assert ol.summary(transformer(), sizes={"n": 2, "t": 5}).multiply_adds == 2 * (6144 * 5 + 64 * 25 + 1600 * 5)
    names = [row.name for row in ol.summary(transformer()).rows]
    assert names[:6] == [
        "embedding_0", "gpt.0.attention.query", "gpt.0.attention.key", "gpt.0.attention.value", "gpt.0.attention", "gpt.0.attention.output"
    ]  # fmt: skip
    assert sum(row.trainable for row in ol.summary(transformer(), depth=2).rows) == found.trainable


def test_what_stands_in_a_loop_is_indented_and_counts_for_each_step():
    with ol.Program() as program:
        ol.layer.lstm(ol.layer.data("x", shape=["n", 16], batch="t"), 8)
        ol.layer.gru(ol.layer.data("r", shape=[4], ragged=1), 5)
    found = ol.summary(program, sizes={"n": 1})
    rows = {row.name: row for row in found.rows}
    assert (rows["lstm_0"].depth, rows["rnn_0"].depth) == (1, 0)
    assert (rows["lstm_0"].trainable, rows["rnn_0"].trainable) == (24 * 32 + 32, 0)
    assert (rows["lstm_0"].multiply_adds, rows["rnn_0"].multiply_adds) == (24 * 32, "768*t")
    assert rows["rnn_1"].multiply_adds == f"{(4 + 5) * 15}*r.t"
    assert "\n  lstm_0 " in str(found)
    assert ol.summary(program, sizes={"n": 1, "t": 3, "r.t": 7}).multiply_adds == 3 * 768 + 7 * 135


def test_what_nothing_tells_is_said_to_be_unknown():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[4])
        loop = ol.while_loop(ol.op.less(ol.op.reduce_sum(x), 0.0), max_trips=3)
        with loop.block():
            y = ol.layer.fc(x, 4)
            loop.carry(x, y)
            loop.update_condition(ol.op.less(ol.op.reduce_sum(y), 0.0))
        loop()
    found = ol.summary(program)
    assert found.multiply_adds is None
    assert str(found).endswith("? multiply-adds forward, for n = 1")
    assert {row.name: row.multiply_adds for row in found.rows}["fc_0"] == 16


def test_a_parameter_that_several_layers_share_counts_once():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[4])
        first = ol.layer.fc(x, 4, params=["w", "b"])
        ol.layer.fc(ol.layer.fc(first, 4, bias=False), 4, params=["w", "b"])
    found = ol.summary(program)
    assert found.trainable == 36
    assert [row.trainable for row in found.rows] == [20, 16, 0]


def test_a_program_that_a_stranger_wrote_has_a_summary():
    program = classifier()
    for op in program.main.ops:  # slots that no operator has, sizes that do not fit
        if op.type in ("conv2d", "linear"):
            op.inputs = {"x": op.inputs["x"]}
    assert ol.summary(program).multiply_adds is None


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda program: ol.summary(3), "summary: program must be a Program, not int"),
        (lambda program: ol.summary(program, depth=0), "summary: depth must be an integer >= 1, not 0"),
        (lambda program: ol.summary(program, sizes={"n": -1}), "summary: sizes must map names of sizes to integers"),
    ],
)
def test_what_makes_no_sense_is_refused(ask, message):
    with pytest.raises(ol.ArgumentError) as raised:
        ask(classifier())
    assert raised.value.message == message


def test_gradients_and_what_passes_make_take_the_multiply_adds_that_the_products_in_them_take():
    with ol.Program(seed=0) as program:
        x = ol.layer.data("x", [2, 6, 6])
        y = ol.layer.conv2d(x, filters=4, size=3, bias=False)
        y = ol.op.matmul(ol.layer.flatten(y), ol.layer.create_parameter([64, 8], name="m"))
        query = ol.layer.reshape(ol.layer.fc(y, 8), shape=(-1, 2, 4))
        y = ol.op.scaled_dot_product_attention(query, query, query)
        ol.optimizer.SGD(0.1).minimize(ol.layer.mean(y))
    counted = {}
    for op in walk_ops(program.main.ops):
        taken = find_multiply_adds(op)
        if taken != 0:
            counted[op.type] = taken
    numbers = {name: evaluate(size, {"n": 5}) for name, size in counted.items()}
    forward = {"conv2d": 5760, "matmul": 2560, "linear": 320, "scaled_dot_product_attention": 160}
    assert {name: numbers[name] for name in forward} == forward
    assert numbers["conv2d_dfilter"] == 5760
    assert numbers["matmul_dx"] == numbers["matmul_dy"] == 2560
    assert numbers["linear_dx"] == numbers["linear_dw"] == 320
    plan = ol.Executor().plan(program)
    planned = {
        op.type: evaluate(found, {"n": 5}) for op in {line.op for line in plan._source.ops.values()} if (found := find_multiply_adds(op))
    }
    assert planned["sgd_addmm"] in (320, 2560)
    assert planned["scaled_dot_product_attention_backward"] == 320
