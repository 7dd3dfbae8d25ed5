"""Mixed precision: products in a reduced dtype, the rest in float32, and the casts between them ops of the program."""

import numpy
import pytest
import torch
from tolerances import MIXED_PRECISION

import oarlock as ol
from oarlock.ir.operation import Role
from oarlock.passes.precision.table import FOLLOWING, REDUCED
from oarlock.registry.catalogue import standard
from oarlock.registry.type_check import require_legal

X = numpy.random.default_rng(0).normal(size=(6, 8)).astype("float32")


def perceptron() -> ol.Var:
    hidden = ol.op.relu(ol.layer.fc(ol.layer.data("x", [8]), 16, name="first"))
    return ol.layer.mean(ol.op.square(ol.layer.fc(hidden, 4, name="second")))


def train(program: ol.Program, cost: ol.Var, feed: dict[str, object], steps: int = 5, **options: object) -> list[float]:
    scope, executor = ol.Scope(), ol.Executor(**options)  # type: ignore[arg-type]
    ol.init(program, scope=scope)
    return [float(executor.run(program, feed, [cost], scope=scope)[0]) for _ in range(steps)]


def test_products_are_reduced_and_sums_are_not_and_each_weight_is_cast_once():
    with ol.Program(seed=0) as program:
        cost = perceptron()
        assert ol.passes.mixed_precision(program) == 3
        ol.optimizer.SGD(0.1).minimize(cost)
    require_legal(program, standard)
    lines = [line.strip() for line in program.to_text(source=False).splitlines()]
    forward = lines[lines.index("") : lines.index("backward:")]
    assert [line.partition(" = ")[::2] for line in forward if " = " in line and "@STEP" not in line and "sgd_0" not in line][4:] == [
        ("x@BFLOAT16_0: bfloat16[n, 8]", "cast(x=x, dtype=bfloat16)"),
        ("first.w@BFLOAT16_0: bfloat16[8, 16]", "cast(x=first.w, dtype=bfloat16)"),
        ("first.b@BFLOAT16_0: bfloat16[16]", "cast(x=first.b, dtype=bfloat16)"),
        ("first.out: bfloat16[n, 16]", "linear(x=x@BFLOAT16_0, w=first.w@BFLOAT16_0, bias=first.b@BFLOAT16_0)"),
        ("relu_0: bfloat16[n, 16]", "relu(x=first.out)"),
        ("second.w@BFLOAT16_0: bfloat16[16, 4]", "cast(x=second.w, dtype=bfloat16)"),
        ("second.b@BFLOAT16_0: bfloat16[4]", "cast(x=second.b, dtype=bfloat16)"),
        ("second.out: bfloat16[n, 4]", "linear(x=relu_0, w=second.w@BFLOAT16_0, bias=second.b@BFLOAT16_0)"),
        ("second.out@FLOAT32_0: float32[n, 4]", "cast(x=second.out, dtype=float32)"),
        ("square_0: float32[n, 4]", "square(x=second.out@FLOAT32_0)"),
        ("mean_0: float32[]", "mean(x=square_0, keepdim=false)"),
    ]
    assert all(op.reads[1].dtype is ol.DType.FLOAT32 for op in program.main.ops if op.type == "sgd")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("options", [{"interpret": True}, {}], ids=["interpreter", "plan"])
def test_it_is_what_autocast_of_pytorch_computes(dtype, options):
    with ol.Program(seed=0) as program:
        cost = perceptron()
        ol.passes.mixed_precision(program, dtype)
        pairs = ol.append_backward(cost)
    scope = ol.init(program, ol.Scope())
    weights = {name: torch.tensor(scope[name].numpy(), requires_grad=True) for name in ("first.w", "first.b", "second.w", "second.b")}
    with torch.autocast("cpu", getattr(torch, dtype)):
        hidden = torch.relu(torch.nn.functional.linear(torch.tensor(X), weights["first.w"].T, weights["first.b"]))
        expected = torch.nn.functional.linear(hidden, weights["second.w"].T, weights["second.b"]).float().square().mean()
    expected.backward()
    found, *gradients = ol.Executor(**options).run(program, {"x": X}, [cost, *(gradient for _, gradient in pairs)], scope=scope)
    numpy.testing.assert_allclose(found, expected.item(), rtol=MIXED_PRECISION)
    for (parameter, _), gradient in zip(pairs, gradients, strict=True):
        other = weights[parameter.name].grad
        assert other is not None
        numpy.testing.assert_allclose(gradient, other.numpy(), rtol=MIXED_PRECISION, atol=MIXED_PRECISION * float(other.abs().max()))


def test_a_loop_reads_weights_that_are_cast_before_it_and_hands_on_float32():
    with ol.Program(seed=0) as program:
        x = ol.layer.data("x", ["n", 8], batch="t")
        cost = ol.layer.mean(ol.op.square(ol.layer.lstm(x, 8)[0]))
        before = program.clone()
        assert ol.passes.mixed_precision(program) > 5
        ol.optimizer.SGD(0.1).minimize(cost)
    require_legal(program, standard)
    loop = next(op for op in program.main.ops if op.type == "recurrent")
    assert [var.name for var in loop.inputs["free"]] == ["lstm_0.w@BFLOAT16_0", "lstm_0.b@BFLOAT16_0", "lstm_0.u@BFLOAT16_0"]
    assert {var.dtype for var in (*loop.blocks[0].inputs, *loop.outputs["final"])} == {ol.DType.FLOAT32}
    feed = {"x": numpy.stack([X, X + 1.0])}
    with before:
        other = before.main.var(cost.name)
        ol.optimizer.SGD(0.1).minimize(other)
    numpy.testing.assert_allclose(train(program, cost, feed), train(before, other, feed), rtol=MIXED_PRECISION)


def test_targets_and_other_dtypes_stay_as_they_are():
    with ol.Program(seed=0) as program:
        logits = ol.layer.fc(ol.layer.data("x", [8]), 4)
        double = ol.layer.fc(ol.layer.data("z", [8], dtype="float64"), 4)
        program.targets = {"logits": logits, "double": double}
        assert ol.passes.mixed_precision(program) == 1
    require_legal(program, standard)
    assert (logits.dtype, logits.op.type, double.dtype) == (ol.DType.FLOAT32, "cast", ol.DType.FLOAT64)
    scope = ol.init(program, ol.Scope())
    found = ol.Executor().run(program, {"x": X}, [logits], scope=scope)[0]
    assert found.dtype == numpy.float32
    assert numpy.array_equal(found, torch.tensor(found).bfloat16().float().numpy())


def test_what_is_recomputed_is_recomputed_in_the_same_precision():
    costs = []
    for recomputed in (False, True):
        with ol.Program(seed=0) as program:
            hidden = ol.layer.data("x", [8])
            for _ in range(4):
                hidden = ol.op.gelu(ol.layer.fc(hidden, 8))
            cost = ol.layer.mean(ol.op.square(hidden))
            ol.passes.mixed_precision(program)
            ol.optimizer.Adam(0.01).minimize(cost)
        if recomputed:
            assert ol.passes.recompute(program, segments=3) > 0
        require_legal(program, standard)
        costs.append(train(program, cost, {"x": X}))
    assert costs[0] == costs[1]


def test_float16_learns_with_a_scaled_loss():
    costs = []
    for dtype in (None, "float16"):
        with ol.Program(seed=0) as program:
            cost = perceptron()
            optimizer: ol.optimizer.Optimizer = ol.optimizer.Adam(0.01)
            if dtype:
                ol.passes.mixed_precision(program, dtype)
                optimizer = ol.optimizer.LossScaling(optimizer, initial=1024.0)
            optimizer.minimize(cost)
        costs.append(train(program, cost, {"x": X}, steps=20))
    numpy.testing.assert_allclose(costs[1], costs[0], rtol=MIXED_PRECISION)
    assert costs[1][-1] < 0.9 * costs[1][0]


def test_convolutions_attention_and_products_of_any_rank_are_reduced():
    with ol.Program() as program:
        image = ol.layer.data("image", [3, 8, 8])
        rows = ol.layer.data("rows", [4, 8])
        products = [
            ol.op.conv2d(image, ol.layer.create_parameter([2, 3, 3, 3], name="filter")),
            ol.op.matmul(rows, ol.op.matrix_transpose(rows)),
            ol.layer.attention(rows, rows, rows, heads=2),
        ]
        others = [ol.op.softmax(products[1]), ol.layer.layer_norm(products[2]), ol.op.exp(products[0]), ol.layer.mean(products[0])]
        assert ol.passes.mixed_precision(program) == 3
    require_legal(program, standard)
    assert {var.dtype for var in products} == {ol.DType.BFLOAT16}
    assert {var.dtype for var in others} == {ol.DType.FLOAT32}


def test_every_operator_of_the_table_is_one_and_takes_the_reduced_dtype():
    for name in (*REDUCED, *FOLLOWING):
        floats = [slot for slot in standard.get(name).signature.inputs if slot.dtype in ("float", "real", "inexact", "number", "T", "any")]
        assert floats, name


def test_what_cannot_be_done_is_refused():
    with ol.Program() as program:
        cost = perceptron()
        ol.optimizer.SGD(0.1).minimize(cost)
    with pytest.raises(ol.ProgramError, match="this program has gradients already, which read values in float32"):
        ol.passes.mixed_precision(program)
    with pytest.raises(ol.ArgumentError, match="the reduced dtype is bfloat16 or float16, not int8"):
        ol.passes.mixed_precision(ol.Program(), "int8")
    with pytest.raises(ol.ArgumentError, match="mixed_precision takes a program, not <Var"):
        ol.passes.mixed_precision(cost)  # type: ignore[arg-type]
    assert any(op.role is Role.BACKWARD for op in program.main.ops)
