"""Updates as a plan makes them: many parameters in one op, and products that are added to what they change."""

import re

import numpy
import pytest
import torch

import oarlock as ol
from oarlock.backend.torch.variants import variants_of
from oarlock.ir.verification import verify_program
from oarlock.op import update
from oarlock.passes.pipeline import PASSES, optimize
from oarlock.registry import standard, typecheck

OPTIMIZERS = {
    "sgd": lambda: ol.optimizer.SGD(0.1),
    "momentum": lambda: ol.optimizer.Momentum(0.1, mu=0.5),
    "without a memory": lambda: ol.optimizer.Momentum(0.1, mu=0.0),
    "nesterov": lambda: ol.optimizer.Momentum(0.1, mu=0.5, nesterov=True),
    "adam": lambda: ol.optimizer.Adam(0.1),
}
FEED = {"x": numpy.random.default_rng(0).normal(size=(5, 3))}


def updates(program: ol.Program, wanted: list[ol.Var], *passes: str) -> tuple[list[str], dict[str, int]]:
    """The lines of the updates after `passes`, but for the commits; and how often each pass applied."""
    copy = program.clone()
    applied = optimize(copy, [copy.main.vars[var.name] for var in wanted], standard, passes)
    verify_program(copy)
    typecheck(copy, standard)
    lines = [line.strip() for line in copy.to_text(source=False).partition("  update:\n")[2].splitlines()]
    updating = [line for line in lines if " = " in line and ("@NEXT" in line or "@VALUE" in line)]
    return [line for line in updating if not line.startswith("@STEP")], applied


def require_same_steps(program: ol.Program, cost: ol.Var, *passes: str, steps: int = 4, close: bool = True) -> None:
    """Some steps after `passes` lead close to where they lead in the interpreter, or to the bits of a plan without passes."""
    found = []
    for executor in (ol.Executor(interpret=True) if close else ol.Executor(passes=()), ol.Executor(passes=passes)):
        scope = ol.init(program, ol.Scope())
        losses = [float(executor.run(program, FEED, [cost], scope=scope, training=True)[0]) for _ in range(steps)]
        found.append({name: scope[name] for name in sorted(scope)} | {"losses": torch.tensor(losses, dtype=torch.float64)})
    assert len(set(found[0]["losses"].tolist())) == steps, "something is learned"
    for name, expected in found[0].items():
        torch.testing.assert_close(found[1][name], expected, rtol=1e-10 if close else 0.0, atol=1e-12 if close else 0.0)


def network(*, shared: bool = False, rank: int = 2) -> tuple[ol.Program, ol.Var]:
    with ol.Program(seed=0) as program:
        x = ol.layer.data("x", shape=[3], dtype="float64")
        x = ol.op.stack([x, x * x], axis=1) if rank == 3 else x
        hidden = ol.layer.fc(x, 3, act="tanh", name="f")
        return program, ol.layer.mean(ol.op.square(ol.layer.fc(hidden, 3, name="f" if shared else "g")))


# One op for many parameters


def test_parameters_that_are_updated_alike_are_updated_by_one_op():
    program, cost = network()
    ol.optimizer.Momentum(0.1).minimize(cost)
    lines, applied = updates(program, [cost], "multi_tensor_updates")
    assert applied == {"multi_tensor_updates": 4}
    assert lines == [
        "[f.w@NEXT: float64[3, 3], f.b@NEXT: float64[3], g.w@NEXT: float64[3, 3], g.b@NEXT: float64[3]],"
        " [f.w@VELOCITY@NEXT: float64[3, 3], f.b@VELOCITY@NEXT: float64[3], g.w@VELOCITY@NEXT: float64[3, 3],"
        " g.b@VELOCITY@NEXT: float64[3]] = multi_tensor_momentum(params=[f.w, f.b, g.w, g.b],"
        " grads=[f.w@GRAD, f.b@GRAD, g.w@GRAD, g.b@GRAD], velocities=[f.w@VELOCITY, f.b@VELOCITY, g.w@VELOCITY, g.b@VELOCITY],"
        " learning_rate=momentum_0.learning_rate, mu=0.9, nesterov=false)"
    ]


@pytest.mark.parametrize("kind", list(OPTIMIZERS))
def test_many_parameters_in_one_op_end_in_the_same_bits(kind):
    program, cost = network()
    OPTIMIZERS[kind]().minimize(cost)
    assert updates(program, [cost], "multi_tensor_updates")[1] == {"multi_tensor_updates": 4}
    require_same_steps(program, cost, "multi_tensor_updates", close=False)


def test_rates_states_and_dtypes_keep_parameters_apart():
    with ol.Program(seed=0) as program:
        x = ol.layer.data("x", shape=[3], dtype="float64")
        cost = ol.layer.mean(ol.layer.fc(ol.op.cast(ol.layer.fc(x, 3, name="f"), dtype="float32"), 3, name="g"))
        weight, bias, *others = program.parameters()
        ol.optimizer.SGD(0.1).minimize(cost, parameters=[weight, *others])
        ol.optimizer.SGD(0.1).minimize(cost, parameters=[bias])
    lines, applied = updates(program, [cost], "multi_tensor_updates")
    assert applied == {"multi_tensor_updates": 2}
    assert lines == [
        "f.w@NEXT: float64[3, 3] = sgd(param=f.w, grad=f.w@GRAD, learning_rate=sgd_0.learning_rate)",
        "[g.w@NEXT: float32[3, 3], g.b@NEXT: float32[3]] = multi_tensor_sgd(params=[g.w, g.b], grads=[g.w@GRAD, g.b@GRAD],"
        " learning_rate=sgd_0.learning_rate)",
        "f.b@NEXT: float64[3] = sgd(param=f.b, grad=f.b@GRAD, learning_rate=sgd_1.learning_rate)",
    ]


APART = {
    "beta1": (ol.optimizer.Adam, {"beta1": 0.5}),
    "beta2": (ol.optimizer.Adam, {"beta2": 0.5}),
    "epsilon": (ol.optimizer.Adam, {"epsilon": 0.1}),
    "mu": (ol.optimizer.Momentum, {"mu": 0.3}),
    "nesterov": (ol.optimizer.Momentum, {"nesterov": True}),
}


@pytest.mark.parametrize("attribute", APART)
def test_parameters_are_updated_apart_where_an_attribute_is_another(attribute):
    """On one rate, in one step: nothing else keeps them apart."""
    optimizer, other = APART[attribute]
    program, cost = network()
    with program:
        rate = ol.op.full(shape=(), value=0.1, dtype="float64")
        pairs = ol.append_backward(cost)
        optimizer(rate).apply(pairs[:2])
        optimizer(rate, **other).apply(pairs[2:])
    lines, applied = updates(program, [cost], "multi_tensor_updates")
    assert applied == {"multi_tensor_updates": 4}
    one, another = (line for line in lines if "multi_tensor" in line)
    assert "params=[f.w, f.b]" in one
    assert "params=[g.w, g.b]" in another
    given = [re.search(rf"{attribute}=([^,)]+)", line) for line in (one, another)]
    assert len({found[1] for found in given if found}) == 2
    require_same_steps(program, cost, "multi_tensor_updates", close=False)
    require_same_steps(program, cost, *PASSES)


def test_what_reads_a_parameter_as_it_will_be_comes_after_its_update():
    program, cost = network()
    with program:
        rate = ol.op.full(shape=(), value=0.1, dtype="float64")
        ol.optimizer.SGD(rate).minimize(cost, parameters=program.parameters()[:2])
        ahead = ol.op.reduce_sum(program.main.var("f.w@NEXT"))
        ol.optimizer.SGD(rate).minimize(cost, parameters=program.parameters()[2:])
    lines, applied = updates(program, [cost, ahead], "multi_tensor_updates")
    assert applied == {"multi_tensor_updates": 4}
    starts = [line[: line.index(":")] for line in lines]
    assert starts == ["[f.w@NEXT", "reduce_sum_0", "[g.w@NEXT"]
    require_same_steps(program, cost, "multi_tensor_updates", close=False)


@pytest.mark.parametrize("one", [update.momentum, update.adam, update.sgd], ids=lambda operator: operator.type)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_many_tensors_of_any_size_and_layout_get_the_bits_of_one(one, dtype):
    generator = torch.Generator().manual_seed(0)
    many = standard.get(f"multi_tensor_{one.type}")
    count = sum(slot.variadic for slot in many.signature.inputs)
    shapes = [(), (0, 2), (67,), (13, 9), (2, 3, 5)]
    tensors = [[torch.rand(shape, generator=generator, dtype=dtype) for shape in shapes] for _ in range(count)]
    tensors[1] = [tensor.mT.contiguous().mT if tensor.ndim > 1 else tensor for tensor in tensors[1]]
    shared = [torch.tensor(3)] * (one.type == "adam") + [torch.tensor(0.1, dtype=torch.float64)]
    attributes = one.convert_attributes({})
    for kernel, alone in ((many.kernel, one.kernel), (variants_of(many).in_place, variants_of(one).in_place)):
        if isinstance(kernel, dict):
            (kernel,), (alone,) = kernel.values(), alone.values()
        copies = [[[tensor.clone() for tensor in items] for items in tensors] for _ in range(2)]
        results = kernel(*copies[0], *shared, **attributes)
        expected = [alone(*items, *shared, **attributes) for items in zip(*copies[1], strict=True)]
        if one.type == "sgd":
            results, expected = [results], [[item] for item in expected]
        for actual, wanted in zip(results, zip(*expected, strict=True), strict=True):
            assert all(torch.equal(*pair) for pair in zip(actual, wanted, strict=True))


# Products that are added to what they change


def test_a_step_takes_the_product_that_is_its_gradient():
    program, cost = network()
    ol.optimizer.SGD(0.1).minimize(cost)
    lines, applied = updates(program, [cost], "fuse_updates")
    assert applied == {"fuse_updates": 2}
    assert lines == [
        "f.w@NEXT: float64[3, 3] = sgd_addmm(param=f.w, x=x, dout=f.out@GRAD, learning_rate=sgd_0.learning_rate)",
        "f.b@NEXT: float64[3] = sgd(param=f.b, grad=f.b@GRAD, learning_rate=sgd_0.learning_rate)",
        "g.w@NEXT: float64[3, 3] = sgd_addmm(param=g.w, x=tanh_0, dout=g.out@GRAD, learning_rate=sgd_0.learning_rate)",
        "g.b@NEXT: float64[3] = sgd(param=g.b, grad=g.b@GRAD, learning_rate=sgd_0.learning_rate)",
    ]


def test_a_velocity_takes_the_product_and_the_step_goes_along_it():
    program, cost = network()
    (weight, *_) = program.parameters()
    ol.optimizer.Momentum(0.1).minimize(cost, parameters=[weight])
    lines, applied = updates(program, [cost], "fuse_updates")
    assert applied == {"fuse_updates": 1}
    assert lines == [
        "f.w@VELOCITY@NEXT: float64[3, 3] = addmm_tn(base=f.w@VELOCITY, x=x, dout=f.out@GRAD, scale=0.9)",
        "f.w@NEXT: float64[3, 3] = sgd(param=f.w, grad=f.w@VELOCITY@NEXT, learning_rate=momentum_0.learning_rate)",
    ]


def test_each_product_of_a_sum_is_taken_and_the_rest_is_added():
    program, cost = network(shared=True)
    weight = program.main.var("f.w")
    with program:
        cost = cost + ol.layer.mean(ol.op.square(weight))
    ol.optimizer.Momentum(0.1).minimize(cost, parameters=[weight])
    lines, applied = updates(program, [cost], "fuse_updates")
    assert applied == {"fuse_updates": 2}
    assert lines == [
        "f.w@VALUE_0: float64[3, 3] = addmm_tn(base=f.w@VELOCITY, x=tanh_0, dout=f.out_0@GRAD, scale=0.9)",
        "f.w@VALUE_1: float64[3, 3] = addmm_tn(base=f.w@VALUE_0, x=x, dout=f.out@GRAD, scale=1.0)",
        "f.w@VELOCITY@NEXT: float64[3, 3] = sum(xs=[f.w@VALUE_1, f.w@GRAD_2])",
        "f.w@NEXT: float64[3, 3] = sgd(param=f.w, grad=f.w@VELOCITY@NEXT, learning_rate=momentum_0.learning_rate)",
    ]


@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("kind", ["sgd", "momentum", "without a memory"])
def test_products_that_are_taken_lead_to_the_same_parameters(kind, shared, rank):
    program, cost = network(shared=shared, rank=rank)
    with program:
        cost = cost + ol.layer.mean(ol.op.square(program.main.var("f.w")))
    OPTIMIZERS[kind]().minimize(cost)
    assert updates(program, [cost], "fuse_updates")[1] == {"fuse_updates": 2}
    require_same_steps(program, cost, "fuse_updates")
    require_same_steps(program, cost, "fuse_updates", "multi_tensor_updates")


@pytest.mark.parametrize("kind", ["nesterov", "adam"])
def test_updates_that_need_the_gradient_itself_keep_it(kind):
    program, cost = network()
    OPTIMIZERS[kind]().minimize(cost)
    assert updates(program, [cost], "fuse_updates")[1] == {"fuse_updates": 0}


def test_a_gradient_that_is_fetched_stays():
    program, cost = network()
    pairs = dict(ol.optimizer.SGD(0.1).minimize(cost))
    gradient = pairs[program.main.var("f.w")]
    lines, applied = updates(program, [cost, gradient], "fuse_updates")
    assert applied == {"fuse_updates": 1}
    assert lines[0] == "f.w@NEXT: float64[3, 3] = sgd(param=f.w, grad=f.w@GRAD, learning_rate=sgd_0.learning_rate)"


def test_a_gradient_that_something_else_reads_stays():
    program, cost = network()
    pairs = ol.append_backward(cost)
    with program:
        norm = ol.op.reduce_sum(ol.op.square(pairs[0][1]))
    ol.optimizer.SGD(0.1).apply(pairs)
    assert updates(program, [cost, norm], "fuse_updates")[1] == {"fuse_updates": 1}
    assert updates(program, [cost], "fuse_updates")[1] == {"fuse_updates": 2}, "what nobody asks for reads nothing"


def test_a_gradient_that_is_changed_stays_and_a_parameter_that_is_frozen_has_none():
    program, cost = network()
    program.parameters()[2].trainable = False
    with program:
        pairs = [(parameter, ol.op.multiply(gradient, ol.op.sigmoid(gradient))) for parameter, gradient in ol.append_backward(cost)]
    ol.optimizer.SGD(0.1).apply(pairs)
    lines, applied = updates(program, [cost], "fuse_updates")
    assert applied == {"fuse_updates": 0}
    assert [line.partition("@NEXT")[0] for line in lines if "sgd(" in line] == ["f.w", "f.b", "g.b"]


def test_a_gradient_that_a_loop_sums_up_is_taken_once_it_is_one_product():
    with ol.Program(seed=0) as program:
        x = ol.layer.data("x", shape=[3], dtype="float64", batch="t")
        start = ol.op.full(shape=(3,), value=0.0, dtype="float64")
        rnn = ol.rnn()
        with rnn.step():
            state = rnn.memory(init=start)
            after = ol.layer.fc(rnn.step_input(x) + rnn.previous_memory(state), 3, act="tanh", name="f")
            rnn.update_memory(state, after)
            rnn.output(after)
        cost = ol.layer.mean(ol.op.square(rnn()))
    ol.optimizer.SGD(0.1).minimize(cost)
    assert updates(program, [cost], "fuse_updates")[1] == {"fuse_updates": 0}
    assert updates(program, [cost], "batch_epilogue", "fuse_updates")[1]["fuse_updates"] == 1
    require_same_steps(program, cost, "batch_epilogue", "fuse_updates", "multi_tensor_updates")


# Weights that stand in rows of outputs, whose gradients are products that are transposed


def rows_of_outputs(*, shared: bool = False) -> tuple[ol.Program, ol.Var]:
    with ol.Program(seed=0) as program:
        x = ol.layer.data("x", shape=[3], dtype="float64")
        weight = ol.layer.create_parameter([4, 3], name="w", dtype="float64")
        y = ol.op.tanh(ol.op.linear(x, ol.op.matrix_transpose(weight)))
        cost = ol.layer.mean(ol.op.square(y))
        return program, cost + ol.layer.mean(ol.op.square(weight)) if shared else cost


TURNED = {
    "sgd": ["w@NEXT: float64[4, 3] = sgd_addmm(param=w, x=linear_0@GRAD, dout=x, learning_rate=sgd_0.learning_rate)"],
    "momentum": [
        "w@VELOCITY@NEXT: float64[4, 3] = addmm_tn(base=w@VELOCITY, x=linear_0@GRAD, dout=x, scale=0.5)",
        "w@NEXT: float64[4, 3] = sgd(param=w, grad=w@VELOCITY@NEXT, learning_rate=momentum_0.learning_rate)",
    ],
}


@pytest.mark.parametrize("kind", list(TURNED))
def test_an_update_takes_a_product_that_is_transposed(kind):
    program, cost = rows_of_outputs()
    OPTIMIZERS[kind]().minimize(cost)
    lines, applied = updates(program, [cost], "fuse_updates")
    assert applied == {"fuse_updates": 2}
    assert lines == TURNED[kind]


def test_a_gradient_that_is_needed_itself_is_the_product_the_other_way_round():
    program, cost = rows_of_outputs()
    ol.optimizer.Adam(0.1).minimize(cost)
    copy = program.clone()
    assert optimize(copy, [copy.main.vars[cost.name]], standard, ["fuse_updates"]) == {"fuse_updates": 1}
    (product,) = [op for op in copy.main.ops if op.type == "linear_dw"]
    assert [var.name for var in product.reads] == ["linear_0@GRAD", "x"]
    assert [var.name for var in product.writes] == ["w@GRAD"]
    assert not any(op.type == "matrix_transpose" and op.reads[0].name != "w" for op in copy.main.ops)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("kind", list(OPTIMIZERS))
def test_products_that_are_turned_lead_to_the_same_parameters(kind, shared):
    program, cost = rows_of_outputs(shared=shared)
    OPTIMIZERS[kind]().minimize(cost)
    assert updates(program, [cost], "fuse_updates")[1]["fuse_updates"] > 0
    require_same_steps(program, cost, "fuse_updates")
    require_same_steps(program, cost, *PASSES)


def test_a_product_that_is_fetched_too_is_transposed_as_before():
    program, cost = rows_of_outputs()
    ol.append_backward(cost)
    (product,) = [op for op in program.main.ops if op.type == "linear_dw"]
    (gradient,) = [op for op in program.main.ops if op.type == "matrix_transpose" and op.reads[0].op is product]
    copy = program.clone()
    wanted = [copy.main.vars[name] for name in (product.writes[0].name, gradient.writes[0].name)]
    assert optimize(copy, wanted, standard, ["fuse_updates"]) == {"fuse_updates": 0}
