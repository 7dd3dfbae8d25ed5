"""Sizes that names do not prove: checked once they are known, before a kernel sees them, the same however a program is run."""

import numpy
import pytest
import torch

import oarlock as ol
from oarlock.registry import parse_program, standard
from oarlock.registry.size_check import fed_sizes, find_size_checks

WAYS = {"plan": {}, "no passes": {"passes": ()}, "interpreter": {"interpret": True}, "limits": {"limits": ol.RunLimits()}}
ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def run(program: ol.Program, feed: dict[str, object], fetch: list[ol.Var], way: dict[str, object], **scope: object) -> list[numpy.ndarray]:
    held = ol.init(program, ol.Scope())
    for name, value in scope.items():
        held.set(name, numpy.asarray(value))
    before = {name: held[name].numpy().copy() for name in (var.name for var in program.persistables()) if held.find_var(name)}
    try:
        return ol.Executor(**way).run(program, feed, fetch, scope=held)  # type: ignore[arg-type]
    except ol.OarlockError:
        assert all(numpy.array_equal(held[name].numpy(), value) for name, value in before.items())
        raise


def product() -> tuple[ol.Program, list[ol.Var]]:
    """Rows `x` of float64[n, 3] times a parameter of float64[4, 3], with the gradient of both."""
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", [3], dtype="float64")
        w = ol.layer.create_parameter([4, 3], dtype="float64", name="w")
        y = x * w
        gradients = ol.gradients([ol.op.reduce_sum(y * y)], [x, w])
    return program, [y, *gradients]


@ways
@pytest.mark.parametrize("rows", [4, 1])
def test_a_size_that_turns_out_equal_or_1_broadcasts_with_gradients_of_the_shapes_of_the_operands(way, rows):
    program, fetch = product()
    x, w = numpy.random.default_rng(rows).normal(size=(rows, 3)), numpy.random.default_rng(9).normal(size=(4, 3))
    ours = run(program, {"x": x}, fetch, way, w=w)
    theirs = [torch.tensor(value, requires_grad=True) for value in (x, w)]
    y = theirs[0] * theirs[1]
    y.square().sum().backward()
    for one, other in zip(ours, [y.detach(), *(value.grad for value in theirs)], strict=True):
        assert one.shape == other.shape
        assert numpy.allclose(one, other.numpy())


@ways
@pytest.mark.parametrize("rows", [0, 2, 5])
def test_a_size_that_turns_out_different_is_refused_with_both_sizes_and_the_line(way, rows):
    program, fetch = product()
    with pytest.raises(ol.ShapeError) as caught:
        run(program, {"x": numpy.ones((rows, 3))}, fetch, way)
    error = caught.value
    assert error.message == f"multiply: x [{rows}, 3] and y [4, 3] do not broadcast: {rows} and 4 are different sizes"
    assert error.location is not None
    assert error.location.text.strip() == "y = x * w"  # type: ignore[union-attr]
    assert error.contract == "multiply(x: number[*#s], y: number[*#s]) -> z: number[*#s]"
    assert [line.rpartition("; ")[2] for line in error.given] == [f"[{rows}, 3] in this run", "[4, 3] in this run"]


def test_sizes_that_differ_for_every_value_are_refused_when_the_program_is_written():
    with ol.Program():
        x = ol.layer.data("x", ["2*t"], batch=None, dtype="float64")
        longer = ol.op.concat([x, ol.op.full([1], value=0.0, dtype="float64")])
        for other in (longer, ol.layer.create_parameter([3], dtype="float64")):
            with pytest.raises(ol.ShapeError, match="do not broadcast|are different sizes"):
                ol.op.add(x, other)
        ol.op.add(x, ol.layer.create_parameter([4], dtype="float64"))  # t may be 2
        further = ol.layer.data("further", ["t+5"], batch=None, dtype="float64")
        with pytest.raises(ol.ShapeError, match="are different sizes"):
            ol.op.add(further, ol.layer.create_parameter([3], dtype="float64"))


@ways
def test_a_memory_of_one_row_is_attended_to_by_every_row(way):
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", [4, 8], dtype="float64")
        memory = ol.layer.create_parameter([1, 4, 8], dtype="float64", name="memory")
        y = ol.layer.attention(x, memory, memory)
        gradients = ol.gradients([ol.op.reduce_sum(y * y)], [x, memory])
    for rows in (64, 1, 0):
        x, memory = numpy.random.default_rng(rows).normal(size=(rows, 4, 8)), numpy.random.default_rng(9).normal(size=(1, 4, 8))
        ours = run(program, {"x": x}, [y, *gradients], way, memory=memory)
        theirs = [torch.tensor(value, requires_grad=True) for value in (x, memory)]
        one = theirs[1].expand(rows, 4, 8)
        expected = torch.nn.functional.scaled_dot_product_attention(theirs[0], one, one) if rows else theirs[0] * 1.0
        expected.square().sum().backward()
        slope = theirs[1].grad if rows else torch.zeros(1, 4, 8)
        for mine, other in zip(ours, [expected.detach(), theirs[0].grad, slope], strict=True):
            assert mine.shape == other.shape
            assert numpy.allclose(mine, other.numpy())


REPEATED = {
    "sum": (lambda x, w: ol.op.sum([x, w]), lambda x, w: x + w, (3,), (1, 3)),
    "sum of fewer axes": (lambda x, w: ol.op.sum([x, w, x]), lambda x, w: x + w + x, (2, 3), (3,)),
    "lerp": (lambda x, w: ol.op.lerp(x, w, x * 0.0 + 0.25), lambda x, w: torch.lerp(x, w.expand_as(x), x * 0.0 + 0.25), (3,), (1, 3)),
    "lerp by a number": (lambda x, w: ol.op.lerp(x, w, 0.25), lambda x, w: torch.lerp(x, w, 0.25), (3,), (1, 3)),
    "matmul": (ol.op.matmul, torch.matmul, (1, 2, 3), (1, 4, 3, 5)),
    "matmul of fewer axes": (ol.op.matmul, torch.matmul, (4, 2, 3), (3, 5)),
    "addmm": (
        lambda x, w: ol.op.addmm(w, x, ol.op.full([3, 3], value=0.5, dtype="float64")),
        lambda x, w: torch.addmm(w, x, torch.full((3, 3), 0.5, dtype=torch.float64)),
        (3,),
        (1, 3),
    ),
}


@ways
@pytest.mark.parametrize(("ours", "theirs", "of_x", "of_w"), REPEATED.values(), ids=REPEATED)
def test_operators_whose_twins_in_pytorch_broadcast_do_so_with_their_gradients(way, ours, theirs, of_x, of_w):
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", list(of_x), dtype="float64")
        w = ol.layer.create_parameter(list(of_w), dtype="float64", name="w")
        y = ours(x, w)
        gradients = ol.gradients([ol.op.reduce_sum(y * y)], [x, w])
    for rows in (1, 2, 5):
        values = numpy.random.default_rng(rows).normal(size=(rows, *of_x)), numpy.random.default_rng(9).normal(size=of_w)
        results = run(program, {"x": values[0]}, [y, *gradients], way, w=values[1])
        tensors = [torch.tensor(value, requires_grad=True) for value in values]
        expected = theirs(*tensors)
        expected.square().sum().backward()
        for mine, other in zip(results, [expected.detach(), *(tensor.grad for tensor in tensors)], strict=True):
            assert mine.shape == other.shape
            assert numpy.allclose(mine, other.numpy())


BY_VALUES = parse_program(
    """program seed=0
block main(x: float32[n, 6], c: bool[m]) {
  state bank: float32[1]
  r: int64[k] = nonzero(condition=c, value=true)
  s: float32[k] = take(x=bank, rows=r)
  one: float32[6] = full(shape=shape[6], value=1.0, dtype=float32)
  y: float32[n, 6], a: float32[6], b: float32[6], d: float32[6], e: float32[6], f: bool[] = \
batch_norm(x=x, running_mean=s, running_variance=one, epsilon=1e-05, momentum=0.1)
}
target y=y
""".replace("\\\n", "")
)


@ways
@pytest.mark.parametrize("training", [True, False])
def test_a_size_that_values_decide_is_checked_before_the_kernel_reads_memory(way, training):
    scope = ol.Scope()
    scope.set("bank", numpy.array([2.0], "f"))
    feed = {"x": numpy.ones((2, 6), "f"), "c": numpy.array([True])}
    with pytest.raises(ol.ShapeError) as caught:
        ol.Executor(**way).run(BY_VALUES, feed, ["y"], scope=scope, training=training)
    assert caught.value.message == "batch_norm: dimension c is 6 in x but 1 in running_mean"


@ways
def test_the_gradient_of_an_output_has_the_shape_of_that_output(way):
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", [3, "h", 8])
        w = ol.layer.create_parameter([4, 3, 3, 3], name="w")
        arrived = ol.layer.data("arrived", [4, 6, 6])
        slope = standard.get("conv2d_dx")(filter=w, dy=arrived, x_shape=x, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1)
    feed = {"x": numpy.ones((2, 3, 8, 8), "f"), "arrived": numpy.ones((2, 4, 6, 6), "f")}
    assert run(program, feed, [slope], way)[0].shape == (2, 3, 8, 8)
    feed["x"] = numpy.ones((2, 3, 9, 8), "f")
    with pytest.raises(ol.ShapeError) as caught:
        run(program, feed, [slope], way)
    assert caught.value.message == "conv2d_dx: dy is [2, 4, 6, 6], but y of conv2d has shape [2, 4, 7, 6]"


def looped(width: object) -> tuple[ol.Program, list[ol.Var]]:
    """A loop over rows of `xs`, each added to a parameter of 4 numbers, if the row has as many."""
    with ol.Program(seed=1) as program:
        xs = ol.layer.data("xs", ["n", width], batch="t", dtype="float64")
        w = ol.layer.create_parameter([4], dtype="float64", name="w")
        rnn = ol.rnn()
        with rnn.step():
            row = rnn.step_input(xs)
            rnn.output(ol.op.tanh(row * w))
        y = rnn()
        (slope,) = ol.gradients([ol.op.reduce_sum(y)], [w])
    return program, [y, slope]


@ways
@pytest.mark.parametrize("steps", [0, 3])
def test_sizes_inside_loops_are_checked_before_the_first_trip(way, steps):
    program, fetch = looped("k")
    y, slope = run(program, {"xs": numpy.ones((steps, 2, 4))}, fetch, way)
    assert (y.shape, slope.shape) == ((steps, 2, 4), (4,))
    with pytest.raises(ol.ShapeError, match=r"multiply: x \[2, 3\] and y \[4\] do not broadcast: 3 and 4 are different sizes"):
        run(program, {"xs": numpy.ones((steps, 2, 3))}, fetch, way)


@ways
def test_a_prepared_step_checks_each_new_size_and_remembers_those_that_fit(way):
    program, fetch = product()
    step = ol.Executor(**way).prepare(program, fetch[:1], scope=ol.init(program, ol.Scope()))
    for rows in (4, 1, 4, 2, 4, 3, 1, 2):
        if rows in (4, 1):
            assert step({"x": torch.ones(rows, 3, dtype=torch.float64)})[0].shape == (4, 3)
        else:
            with pytest.raises(ol.ShapeError, match=f"{rows} and 4 are different sizes"):
                step({"x": torch.ones(rows, 3, dtype=torch.float64)})


def test_a_step_that_is_refused_updates_nothing():
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", [3], dtype="float64")
        w, other = (ol.layer.create_parameter([4, 3], dtype="float64", name=name) for name in ("w", "other"))
        cost = ol.layer.mean(x * w) + ol.layer.mean(other * other)
        ol.optimizer.SGD(0.1).minimize(cost)
    scope = ol.init(program, ol.Scope())
    before = {name: scope[name].numpy().copy() for name in ("w", "other")}
    for way in WAYS.values():
        with pytest.raises(ol.ShapeError, match="2 and 4 are different sizes"):
            ol.Executor(**way).run(program, {"x": numpy.ones((2, 3))}, [cost], scope=scope)  # type: ignore[arg-type]
        assert all(numpy.array_equal(scope[name].numpy(), value) for name, value in before.items())


UPDATES = parse_program("""program seed=0
block main(c: bool[m]) {
  parameter u: float32[4]
  state g: float32[4]
  parameter w: float32[4]
  state rate: float64[]
  r: int64[k] = nonzero(condition=c, value=true)
  s: float32[k] = take(x=w, rows=r)

  update:
  u@NEXT: float32[4] = sgd(param=u, grad=g, learning_rate=rate)
  w@NEXT: float32[4] = sgd(param=w, grad=s, learning_rate=rate)

  commit:
  u <- u@NEXT
  w <- w@NEXT
}
""")


@ways
def test_no_update_is_written_before_a_size_that_values_decide_is_checked(way):
    scope = ol.Scope()
    for name, value in {"u": [1.0] * 4, "g": [1.0] * 4, "w": [2.0] * 4}.items():
        scope.set(name, numpy.array(value, "f"))
    scope.set("rate", numpy.array(0.5))
    with pytest.raises(ol.ShapeError, match=r"sgd: \*b is 4 in param but 1 in grad"):
        ol.Executor(**way).run(UPDATES, {"c": numpy.array([True, False])}, [], scope=scope, training=True)
    assert (scope["u"].tolist(), scope["w"].tolist()) == ([1.0] * 4, [2.0] * 4)
    ol.Executor(**way).run(UPDATES, {"c": numpy.array([True] * 4)}, [], scope=scope, training=True)
    assert (scope["u"].tolist(), scope["w"].tolist()) == ([0.5] * 4, [1.0] * 4)


@ways
def test_rules_that_an_operator_states_in_python_are_checked_too(way):
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", ["k"], dtype="float64")
        largest = ol.op.top_k(x, k=3)[0]
    assert run(program, {"x": numpy.ones((2, 6))}, [largest], way)[0].shape == (2, 3)
    with pytest.raises(ol.ShapeError, match="top_k: k is 3, but the last axis has 2"):
        run(program, {"x": numpy.ones((6, 2))}, [largest], way)


def test_a_block_that_is_run_by_itself_and_a_saved_model_check_the_same(tmp_path):
    program, (y, *_) = product()
    program.targets["y"] = y
    scope = ol.init(program, ol.Scope())
    message = "multiply: x [2, 3] and y [4, 3] do not broadcast: 2 and 4 are different sizes"
    ol.save_model(program, scope, tmp_path / "product.safetensors")
    model = ol.load_model(tmp_path / "product.safetensors")
    with pytest.raises(ol.ShapeError) as caught:
        ol.infer(model, {"x": numpy.ones((2, 3))})
    assert caught.value.message == message
    scope["x"] = numpy.ones((2, 3))
    with pytest.raises(ol.ShapeError) as caught:
        ol.run_block(program.main, scope)
    assert caught.value.message == message


def test_a_plan_prints_the_sizes_that_it_checks():
    program, (y, *_) = product()
    assert ol.Executor().plan(program, [y]).fed_checks == ["multiply(x[n, 3], w[4, 3])"]
    plan = ol.Executor(passes=()).plan(BY_VALUES, ["y"])
    assert "check_sizes" in plan.text
    assert plan.fed_checks == []


def test_what_names_prove_is_not_checked():
    with ol.Program(seed=1) as program:
        x, y = ol.layer.data("x", ["t", 3]), ol.layer.data("y", [3])
        hidden = ol.layer.fc(y, 4, act="relu")
        cost = ol.layer.mean(ol.op.concat([hidden, hidden], axis=1)) + ol.layer.mean(ol.op.softmax(x))
        ol.optimizer.Adam(0.1).minimize(cost)
    assert find_size_checks(program.main.ops, standard) == {}
    assert "n" in fed_sizes(program)


COMPOSED = {
    "binary_cross_entropy_with_logits": lambda x, target, _: ol.op.binary_cross_entropy_with_logits(x, target),
    "sigmoid_focal_loss": lambda x, target, _: ol.op.sigmoid_focal_loss(x, target),
    "cross_entropy of probabilities": lambda x, target, _: ol.op.cross_entropy(x, target),
    "weighted cross_entropy": lambda x, _, weight: ol.op.cross_entropy(x, ol.op.argmax(x), weight),
    "nll_loss": lambda x, _, weight: ol.op.nll_loss(ol.op.log_softmax(x), ol.op.argmax(x), weight),
}


@ways
@pytest.mark.parametrize("loss", COMPOSED.values(), ids=COMPOSED)
def test_a_composed_loss_compares_the_sizes_of_its_targets_and_weights_in_the_run(way, loss):
    with ol.Program() as program:
        x = ol.layer.data("x", [3], dtype="float64")
        target = ol.layer.data("target", [4, 3], batch=None, dtype="float64")
        weight = ol.layer.data("weight", ["k"], batch=None, dtype="float64")
        cost = loss(x, target, weight)
        (dx,) = ol.gradients([cost], [x])
    numbers = numpy.random.default_rng(0)
    feed = {"x": numbers.normal(size=(4, 3)), "target": numbers.uniform(size=(4, 3)), "weight": numbers.uniform(size=3)}
    feed = {name: value for name, value in feed.items() if program.main.vars[name].readers}
    assert run(program, feed, [dx], way)[0].shape == (4, 3)
    feed |= {"weight": numpy.ones(1)} if "weight" in feed else {"x": numpy.ones((1, 3))}
    with pytest.raises(
        ol.ShapeError, match=r"match_(shape|last_axis): .* is 1 in x but 3 in like|match_shape: \*b is 4 in x but 1 in like"
    ):
        run(program, feed, [dx], way)


def test_the_gradient_of_a_gradient_is_held_to_a_shape_that_only_its_own_input_tells():
    with ol.Program() as program:
        dy, ddx = ol.layer.data("dy", [2, 1], batch=None), ol.layer.data("ddx", ["k", 3], batch=None)
        dx = standard.get("variance_dx_dx")(dy=dy, ddx=ddx, axis=-1, correction=1.0, keepdim=True)
    with pytest.raises(ol.ShapeError, match="variance_dx_dx: "):
        ol.Executor().run(program, {"dy": numpy.ones((2, 1), "float32"), "ddx": numpy.ones((1, 3), "float32")}, [dx], scope=ol.Scope())
