from collections.abc import Callable

import numpy
import pytest
import torch
from tolerances import AUTOGRAD

import oarlock as ol
from oarlock.registry import Catalogue, standard

RANDOM = numpy.random.default_rng(3)
every_executor = pytest.mark.parametrize(
    "executor", [ol.Executor(check=True), ol.Executor(passes=()), ol.Executor()], ids=["interpreter", "plan", "passes"]
)


def inputs(**arrays):
    """Declare an input per array, of its shape, in float64."""
    return [ol.layer.data(name, shape=array.shape, dtype="float64", batch=None) for name, array in arrays.items()]


def run(program, arrays, fetch):
    return ol.Executor().run(program, arrays, fetch, scope=ol.Scope())


def agree(actual, expected):
    numpy.testing.assert_allclose(actual, expected, rtol=AUTOGRAD[0], atol=AUTOGRAD[1])


@pytest.fixture
def catalogue(monkeypatch):
    """The standard operators, and whatever a test adds."""
    catalogue = Catalogue()
    catalogue.operators.update(standard.operators)
    catalogue.gradient_operators.update(standard.gradient_operators)
    monkeypatch.setattr("oarlock.passes.backward.standard", catalogue)
    return catalogue


# What arrives


def test_a_variable_times_itself_has_twice_itself_as_gradient():
    arrays = {"x": numpy.array([1.0, -2.0, 3.0])}
    with ol.Program() as program:
        (x,) = inputs(**arrays)
        (slope,) = ol.gradients([ol.op.multiply(x, x)], [x])
    assert run(program, arrays, [slope])[0].tolist() == [2.0, -4.0, 6.0]
    assert slope.op.type == "sum"


@pytest.mark.parametrize("uses", [1, 2, 3, 7])
def test_all_that_arrives_at_a_variable_used_many_times_is_added_once(uses):
    arrays = {"x": numpy.array([1.0, 2.0])}
    with ol.Program() as program:
        (x,) = inputs(**arrays)
        (slope,) = ol.gradients([ol.op.sum([ol.op.square(x) for _ in range(uses)])], [x])
    assert run(program, arrays, [slope])[0].tolist() == [2.0 * uses, 4.0 * uses]
    sums = [op for op in program.main.ops if op.type == "sum"]
    assert [len(op.reads) for op in sums] == [uses] + [uses] * (uses > 1)


def test_what_arrives_is_added_up_before_it_is_read():
    """h is used twice, at different depths; the gradient of tanh runs once, on the sum."""
    arrays = {"x": RANDOM.normal(size=4)}
    with ol.Program() as program:
        (x,) = inputs(**arrays)
        h = ol.op.tanh(x)
        (slope,) = ol.gradients([h * ol.op.square(h)], [x])
    assert [op.type for op in program.main.ops].count("tanh_dx") == 1
    t = torch.tensor(arrays["x"], requires_grad=True)
    (torch.tanh(t) ** 3).sum().backward()
    agree(run(program, arrays, [slope])[0], t.grad)


def test_several_targets_are_differentiated_as_their_sum():
    arrays = {"x": RANDOM.normal(size=(2, 3)), "w": RANDOM.normal(size=(3, 2))}
    with ol.Program() as program:
        x, w = inputs(**arrays)
        h = ol.op.linear(x, w)
        y = ol.op.tanh(h)
        found = ol.gradients([y, h, ol.op.reduce_sum(y)], [x, w])
    a, b = (torch.tensor(array, requires_grad=True) for array in arrays.values())
    ((a @ b).tanh().sum() * 2 + (a @ b).sum()).backward()
    for actual, expected in zip(run(program, arrays, found), (a.grad, b.grad), strict=True):
        agree(actual, expected)


def test_targets_are_weighed():
    arrays = {"x": RANDOM.normal(size=3), "u": RANDOM.normal(size=3)}
    with ol.Program() as program:
        x, u = inputs(**arrays)
        found = ol.gradients([ol.op.square(x), ol.op.reduce_sum(x)], [x], [u, None])
    agree(run(program, arrays, found)[0], 2 * arrays["x"] * arrays["u"] + 1)


def test_a_target_given_twice_counts_twice():
    with ol.Program() as program:
        (x,) = inputs(x=numpy.zeros(2))
        y = ol.op.square(x)
        found = ol.gradients([y, y], [x])
    assert run(program, {"x": numpy.array([1.0, 2.0])}, found)[0].tolist() == [4.0, 8.0]


def test_the_gradient_of_a_target_with_respect_to_itself_is_one():
    with ol.Program() as program:
        (x,) = inputs(x=numpy.zeros(2))
        found = ol.gradients([x], [x])
    assert run(program, {"x": numpy.array([1.0, 2.0])}, found)[0].tolist() == [1.0, 1.0]


def test_what_a_target_does_not_depend_on_has_no_gradient():
    with ol.Program() as program:
        x, y = inputs(x=numpy.zeros(2), y=numpy.zeros(2))
        beside = ol.op.square(y)
        found = ol.gradients([ol.op.square(x)], [y, x, beside])
    assert found[0] is None
    assert found[2] is None
    assert found[1].name == "x@GRAD"
    backward = [op for op in program.main.ops if op.role is ol.ir.Role.BACKWARD]
    assert not {var for op in backward for var in op.reads} & {y, beside}


def test_a_gradient_in_the_middle_is_had_too():
    arrays = {"x": RANDOM.normal(size=3)}
    with ol.Program() as program:
        (x,) = inputs(**arrays)
        h = ol.op.exp(x)
        found = ol.gradients([ol.op.square(h)], [x, h])
    dx, dh = run(program, arrays, found)
    agree(dh, 2 * numpy.exp(arrays["x"]))
    agree(dx, 2 * numpy.exp(2 * arrays["x"]))


def test_a_sum_over_what_was_broadcast():
    arrays = {"x": RANDOM.normal(size=(2, 3)), "y": RANDOM.normal(size=(3,)), "z": RANDOM.normal(size=())}
    with ol.Program() as program:
        x, y, z = inputs(**arrays)
        found = ol.gradients([x * y / (z * z)], [x, y, z])
    a, b, c = (torch.tensor(array, requires_grad=True) for array in arrays.values())
    (a * b / (c * c)).sum().backward()
    for actual, expected in zip(run(program, arrays, found), (a.grad, b.grad, c.grad), strict=True):
        agree(actual, expected)


def test_where_the_gradient_is_the_identity_no_op_is_emitted():
    with ol.Program() as program:
        x, y = inputs(x=numpy.zeros(2), y=numpy.zeros(2))
        z = x + y
        found = ol.gradients([z], [x, y])
    assert found[0] is found[1]
    assert [op.type for op in program.main.ops] == ["add", "full_like"]


def test_a_gradient_has_the_dtype_of_its_variable():
    """The gradient of a cast is cast back, though both have one shape."""
    with ol.Program() as program:
        (x,) = inputs(x=numpy.zeros(2))
        y = ol.op.square(ol.op.cast(x, dtype="float32"))
        found = ol.gradients([y], [x])
    assert found[0].type_text == "float64[2]"
    value = run(program, {"x": numpy.array([1.0, 2.0])}, found)[0]
    assert (value.dtype, value.tolist()) == (numpy.float64, [2.0, 4.0])


def test_integers_carry_no_gradient():
    with ol.Program():
        (x,) = inputs(x=numpy.zeros(2))
        whole = ol.op.cast(x, dtype="int64")
        y = ol.op.square(x) * ol.op.cast(whole, dtype="float64")
        found = ol.gradients([y], [x])
        assert ol.gradients([ol.op.cast(whole, dtype="float64")], [x]) == [None]
    assert found[0] is not None


# stop_gradient


def test_a_stopped_variable_ends_the_path():
    arrays = {"x": numpy.array([2.0, 3.0])}
    with ol.Program() as program:
        (x,) = inputs(**arrays)
        h = ol.op.square(x)
        h.stop_gradient = True
        found = ol.gradients([h * x], [x])
        assert ol.gradients([ol.op.square(h)], [x]) == [None]
    assert run(program, arrays, found)[0].tolist() == [4.0, 9.0]


def test_a_stopped_variable_that_is_asked_for_has_a_gradient_and_still_ends_the_path():
    arrays = {"x": numpy.array([2.0, 3.0])}
    with ol.Program() as program:
        (x,) = inputs(**arrays)
        h = ol.op.square(x)
        h.stop_gradient = True
        to_x, to_h = ol.gradients([h * x], [x, h])
    values = run(program, arrays, [to_x, to_h])
    assert [value.tolist() for value in values] == [[4.0, 9.0], [2.0, 3.0]]


def test_a_stopped_target_passes_nothing_on():
    with ol.Program():
        (x,) = inputs(x=numpy.zeros(2))
        h = ol.op.square(x)
        h.stop_gradient = True
        assert ol.gradients([h], [x]) == [None]


def test_an_operator_without_a_gradient_behind_a_stopped_variable_is_no_error():
    with ol.Program():
        x = ol.layer.data("x", shape=[4])
        h = ol.op.tanh(x)
        h.stop_gradient = True
        score = ol.layer.accuracy(h, ol.layer.data("label", shape=[], dtype="int64"))
        assert ol.gradients([score * ol.op.mean(x)], [x])[0].name == "x@GRAD"


def test_a_variable_stopped_inside_a_loop_ends_the_path():
    arrays = {"xs": numpy.array([1.0, 2.0]), "w": numpy.array(3.0)}
    with ol.Program() as program:
        xs = ol.layer.data("xs", shape=[], dtype="float64", batch="t")
        w = ol.layer.data("w", shape=[], dtype="float64", batch=None)
        loop = ol.rnn()
        with loop.step():
            x = loop.step_input(xs)
            stopped = x * w
            stopped.stop_gradient = True
            loop.output(stopped, stopped * w)
        first, second = loop()
        assert ol.gradients([first], [w]) == [None]
        found = ol.gradients([first, second], [w])
    assert run(program, arrays, found)[0] == 9.0  # sum of x * w, the factor that is not stopped


# Parameters


def model():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2], dtype="float64")
        h = ol.layer.fc(x, 3, act="tanh", name="first")
        cost = ol.layer.mean(ol.layer.fc(h, 1, name="second"))
        unused = ol.layer.fc(x, 1, name="unused")
    return program, cost, unused


def test_the_parameters_are_those_that_the_cost_depends_on():
    program, cost, _ = model()
    program.main.var("first.b").trainable = False
    pairs = ol.append_backward(cost)
    assert [(parameter.name, gradient.name) for parameter, gradient in pairs] == [
        (name, f"{name}@GRAD") for name in ("first.w", "second.w", "second.b")
    ]


def test_parameters_may_be_chosen():
    program, cost, _ = model()
    pairs = ol.append_backward(cost, [program.main.var("second.b")])
    assert [parameter.name for parameter, _ in pairs] == ["second.b"]


def test_the_ops_that_are_appended_say_that_they_are_the_backward():
    program, cost, _ = model()
    count = len(program.main.ops)
    ol.append_backward(cost)
    roles = [op.role for op in program.main.ops]
    assert roles == [ol.ir.Role.FORWARD] * count + [ol.ir.Role.BACKWARD] * (len(roles) - count)


# Gradients of gradients

EXPRESSIONS: dict[str, tuple[Callable, Callable]] = {
    "tanh": (lambda x, w: ol.op.tanh(x), lambda x, w: torch.tanh(x)),
    "sigmoid": (lambda x, w: ol.op.sigmoid(x), lambda x, w: torch.sigmoid(x)),
    "linear": (lambda x, w: ol.op.square(ol.op.linear(x, w)), lambda x, w: (x @ w) ** 2),
    "multiply": (lambda x, w: x * x * x, lambda x, w: x**3),
    "broadcast": (lambda x, w: x * ol.op.reduce_sum(x, axis=0) * ol.op.mean(w), lambda x, w: x * x.sum(0) * w.mean()),
    "network": (lambda x, w: ol.op.tanh(ol.op.linear(ol.op.tanh(ol.op.linear(x, w)), w)), lambda x, w: torch.tanh(torch.tanh(x @ w) @ w)),
    "divide": (lambda x, w: ol.op.exp(x) / (ol.op.square(x) + 1.0), lambda x, w: torch.exp(x) / (x**2 + 1.0)),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_first_second_and_third_derivatives_agree_with_autograd(name):
    ours, theirs = EXPRESSIONS[name]
    arrays = {"x": RANDOM.normal(size=(2, 3)), "w": RANDOM.normal(size=(3, 3)), "u": RANDOM.normal(size=(2, 3))}
    with ol.Program() as program:
        x, w, u = inputs(**arrays)
        wanted = [x] if name in ("tanh", "sigmoid", "multiply", "divide") else [x, w]
        cost = ol.op.reduce_sum(ours(x, w) * u)
        orders = []
        for _ in range(3):
            found = ol.gradients([cost], wanted)
            orders += found
            cost = ol.op.reduce_sum(ol.op.sum([ol.op.reduce_sum(ol.op.square(slope)) for slope in found]))
    tensors = [torch.tensor(array, requires_grad=True) for array in arrays.values()]
    a, b, c = tensors
    expected = []
    value = (theirs(a, b) * c).sum()
    for _ in range(3):
        slopes = torch.autograd.grad(value, tensors[: len(wanted)], create_graph=True)
        expected += [slope.detach() for slope in slopes]
        value = sum((slope**2).sum() for slope in slopes)
    for actual, hoped in zip(run(program, arrays, orders), expected, strict=True):
        agree(actual, hoped)


# What is refused


def test_a_cost_is_one_float():
    with ol.Program():
        (x,) = inputs(x=numpy.zeros(2))
        with pytest.raises(ol.GradientError) as caught:
            ol.append_backward(x)
        assert str(caught.value) == (
            'the cost must be one float, yet "x" is float64[2]\n'
            f"  {x.location}\n"
            "  Try: ol.layer.mean(x) makes a cost of many values    (oarlock explain GradientError)"
        )
        number = ol.op.full(shape=(), value=1.0, dtype="int64", name="number")
        with pytest.raises(ol.GradientError, match='^the cost must be one float, yet "number" is int64'):
            ol.append_backward(number)


def test_something_is_differentiated():
    with pytest.raises(ol.GradientError) as caught:
        ol.gradients([], [])
    assert caught.value.message == "there is nothing to differentiate: no targets"


def test_only_floats_have_gradients():
    with ol.Program():
        ids = ol.layer.data("ids", shape=[], dtype="int64")
        x = ol.layer.data("x", shape=[])
        for targets, wanted in (([ids], [x]), ([x], [ids])):
            with pytest.raises(ol.GradientError) as caught:
                ol.gradients(targets, wanted)
            assert str(caught.value) == f'"ids" is int64[n]; only floats and complex numbers have gradients\n  {ids.location}'


def test_only_variables_of_the_main_block_are_differentiated():
    with ol.Program():
        x = ol.layer.data("x", shape=[])
        loop = ol.rnn()
        with loop.step():
            inside = ol.op.square(loop.step_input(x))
            loop.output(inside)
        y = loop()
        for targets, wanted in (([inside], [x]), ([y], [inside])):
            with pytest.raises(ol.GradientError) as caught:
                ol.gradients(targets, wanted)
            assert caught.value.message == '"main/rnn_0.body/square_0" is not a variable of the main block'


def test_variables_of_two_programs_are_not_differentiated_together():
    with ol.Program():
        x = ol.layer.data("x", shape=[])
    with ol.Program():
        y = ol.layer.data("y", shape=[])
        with pytest.raises(ol.GradientError, match='^"main/x" is not a variable of the main block'):
            ol.gradients([y], [x])


@pytest.mark.mission("F9")
def test_an_operator_without_a_gradient_on_the_path_is_named():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[4])
        label = ol.layer.data("label", shape=[], dtype="int64")
        logits = ol.layer.fc(x, 3, name="logits", bias=False)
        score = ol.layer.accuracy(logits, label)
        with pytest.raises(ol.GradientError) as caught:
            ol.append_backward(score)
    place = f"{score.location.file}:{score.location.line} in test_an_operator_without_a_gradient_on_the_path_is_named"
    assert str(caught.value) == (
        '"accuracy" has no gradient with respect to predict, which leads to "logits.w"\n'
        f"  {place}      score = ol.layer.accuracy(logits, label)\n"
        f'      "logits.out"   float32[n, 3]   from linear at {logits.location.file}:{logits.location.line}\n'
        '  Try: declare it with `@accuracy.gradient("predict")`, or mark the value stop_gradient    (oarlock explain GradientError)'
    )
    assert caught.value.op == "accuracy"
    assert program.main.var("logits.w").op is None


def test_a_parameter_that_is_reached_only_through_integers_is_named_with_the_op_in_between():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[4])
        h = ol.layer.fc(x, 3, name="hidden", bias=False)
        whole = ol.op.cast(h, dtype="int64")
        cost = ol.layer.mean(ol.op.cast(whole, dtype="float32"), name="cost")
        with pytest.raises(ol.GradientError) as caught:
            ol.append_backward(cost)
    w = program.main.var("hidden.w")
    assert str(caught.value) == (
        '"cast" has no gradient, yet "cost" reaches "hidden.w" only through it\n'
        f"  {whole.location}\n"
        f"      {w.describe()}\n"
        '  Try: mark "hidden.w" not trainable, or declare the gradient of "cast"    (oarlock explain GradientError)'
    )


def test_a_parameter_that_the_cost_does_not_depend_on_is_named():
    program, cost, _ = model()
    unused = program.main.var("unused.w")
    with pytest.raises(ol.GradientError) as caught:
        ol.append_backward(cost, [unused])
    assert str(caught.value) == f'"mean_0" does not depend on "unused.w"\n      {unused.describe()}'


def test_a_gradient_that_arrives_where_none_is_taken_is_an_error(catalogue):
    @ol.operator("x: float[*b] -> y: float[*b], z: float[*b]", catalogue=catalogue)
    def halves(x):
        return x / 2, x / 2

    @halves.gradient("x")
    def halves_dx(dy):
        return dy / 2

    with ol.Program():
        (x,) = inputs(x=numpy.zeros(2))
        y, z = halves(x)
        assert ol.gradients([y], [x])[0].op.type == "halves_dx"
        with pytest.raises(ol.GradientError) as caught:
            ol.gradients([y, z], [x])
    assert str(caught.value) == (f'"halves" has no gradient from z to x, yet one arrives there\n  {y.location}\n      {z.describe()}')


def test_an_output_at_which_nothing_arrives_counts_as_zero(catalogue):
    @ol.operator("x: float[*b] -> y: float[*b], z: float[*b]", catalogue=catalogue)
    def parts(x):
        return 2 * x, 3 * x

    @parts.gradient("x")
    def parts_dx(dy, dz):
        return 2 * dy + 3 * dz

    with ol.Program() as program:
        (x,) = inputs(x=numpy.zeros(2))
        y, z = parts(x)
        found = [ol.gradients(targets, [x])[0] for targets in ([y], [z], [y, z])]
    executor = ol.Executor(catalogue=catalogue)
    values = executor.run(program, {"x": numpy.ones(2)}, found, scope=ol.Scope())
    assert [value.tolist() for value in values] == [[2.0, 2.0], [3.0, 3.0], [5.0, 5.0]]


def test_zero_by_meaning_is_no_error(catalogue):
    @ol.operator("x: float[*b] -> y: float[*b]", catalogue=catalogue)
    def side(x):
        return x.sign()

    side.no_gradient("x")
    with ol.Program():
        (x,) = inputs(x=numpy.zeros(2))
        assert ol.gradients([side(x)], [x]) == [None]


def test_a_gradient_that_is_refused_leaves_a_program_that_runs():
    """The refusal comes from inside the gradient of a loop, when its block is half written."""
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3], dtype="float64", batch="t")
        label = ol.layer.data("label", shape=[], dtype="int64", batch="t")
        loop = ol.rnn()
        with loop.step():
            inner = ol.rnn()
            with inner.step():
                inner.output(ol.op.square(inner.step_input(loop.step_input(x))))
            squares = inner()
            loop.output(ol.op.cast(ol.layer.accuracy(squares, loop.step_input(label)), dtype="float64") * squares)
        y = loop()
        with pytest.raises(ol.GradientError, match='^"accuracy" has no gradient with respect to predict'):
            ol.gradients([y], [x])
    feed = {"x": numpy.array([[1.0, 2.0, 0.0]]), "label": numpy.array([1])}
    assert run(program, feed, [y])[0].tolist() == [[1.0, 4.0, 0.0]]
    assert run(ol.Program.from_bytes(program.to_bytes()), feed, [y.name])[0].tolist() == [[1.0, 4.0, 0.0]]


def test_the_gradients_that_targets_begin_with_must_fit_them():
    with ol.Program():
        x = ol.layer.data("x", shape=[3])
        y = ol.layer.tanh(x)
        with pytest.raises(ol.GradientError) as caught:
            ol.gradients([y], [x], [ol.layer.mean(y)])
        assert caught.value.message == 'the gradient that begins at "tanh_0" has another type'
        with pytest.raises(ol.GradientError) as caught:
            ol.gradients([y], [x], [y, y])
        assert caught.value.message == "2 target gradients are given for 1 targets"


# The type of what arrives


def same_types(vars, found):
    return [(var.dtype, var.shape) for var in vars] == [(gradient.dtype, gradient.shape) for gradient in found]


def test_a_gradient_has_the_shape_of_its_variable_where_a_symbol_is_a_number_in_the_run():
    """Of x and w, n is 2; the types that follow for the gradients have the number."""
    arrays = {"x": RANDOM.normal(size=(2, 3)), "w": RANDOM.normal(size=(2, 4))}
    with ol.Program() as program:
        x = ol.layer.data("x", ["n", 3], dtype="float64", batch=None)
        w = ol.layer.data("w", ["n", 4], dtype="float64", batch=None)
        h = ol.op.linear(ol.op.transpose(x, axes=(1, 0)), w)
        left = ol.op.linear(ol.op.full(shape=(5, 2), value=0.5, dtype="float64"), w)
        found = ol.gradients([ol.op.tanh(h), ol.op.square(left)], [x, w, h])
    assert same_types([x, w, h], found)
    a, b = (torch.tensor(array, requires_grad=True) for array in arrays.values())
    ((a.T @ b).tanh().sum() + (torch.full((5, 2), 0.5, dtype=torch.float64) @ b).square().sum()).backward()
    for passes in ((), None):
        executor = ol.Executor(check=True) if passes is None else ol.Executor(passes=passes)
        values = executor.run(program, arrays, found[:2], scope=ol.Scope())
        agree(values[0], a.grad)
        agree(values[1], b.grad)
    with pytest.raises(ol.OarlockError):
        run(program, {"x": numpy.zeros((3, 3)), "w": numpy.zeros((3, 4))}, found)


@every_executor
def test_the_gradient_of_a_step_has_its_shape_where_a_symbol_is_a_number_in_the_run(executor):
    arrays = {"x": RANDOM.normal(size=(4, 2, 3)), "z": RANDOM.normal(size=(2, 3)), "v": RANDOM.normal(size=(5, 2))}
    with ol.Program() as program:
        x = ol.layer.data("x", ["t", "n", 3], dtype="float64", batch=None)
        z = ol.layer.data("z", ["n", 3], dtype="float64", batch=None)
        v = ol.layer.data("v", [5, 2], dtype="float64", batch=None)
        rnn = ol.rnn()
        with rnn.step():
            memory = rnn.memory(init=z)
            before = rnn.previous_memory(memory)
            rnn.update_memory(memory, ol.op.tanh(before + rnn.step_input(x)))
            rnn.output(ol.op.linear(v, before) * ol.op.linear(v, rnn.step_input(x)) + ol.op.linear(v, z))
        out = rnn()
        found = ol.gradients([ol.op.square(out)], [x, z, v])
        (again,) = ol.gradients([ol.op.square(gradient) for gradient in found], [x])
    assert same_types([x, z, v, x], [*found, again])
    a, b, c = (torch.tensor(array, requires_grad=True) for array in arrays.values())
    outs, state = [], b
    for step in a:
        outs.append((c @ state) * (c @ step) + c @ b)
        state = torch.tanh(state + step)
    expected = torch.autograd.grad(torch.stack(outs).square().sum(), [a, b, c], create_graph=True)
    twice = torch.autograd.grad(sum(each.square().sum() for each in expected), a)
    for value, reference in zip(executor.run(program, arrays, [*found, again], scope=ol.Scope()), [*expected, *twice], strict=True):
        agree(value, reference.detach())


@every_executor
def test_the_gradient_of_a_branch_has_the_shape_of_what_it_reads_where_a_symbol_is_a_number_in_the_run(executor):
    arrays = {"x": RANDOM.normal(size=(2, 3)), "v": RANDOM.normal(size=(2, 2)), "c": numpy.array([True, False])}
    with ol.Program() as program:
        x = ol.layer.data("x", ["n", 3], dtype="float64", batch=None)
        v = ol.layer.data("v", ["m", 2], dtype="float64", batch=None)
        c = ol.layer.data("c", ["m"], dtype="bool", batch=None)
        ie = ol.ifelse()
        with ie.true_block():
            ie.output(ol.op.linear(v, x))
        with ie.false_block():
            ie.output(ol.op.linear(v * 2.0, ol.op.tanh(x)))
        found = ol.gradients([ol.op.square(ie(c))], [x, v])
    assert same_types([x, v], found)
    a, b = (torch.tensor(arrays[name], requires_grad=True) for name in "xv")
    torch.where(torch.tensor(arrays["c"])[:, None], b @ a, 2 * b @ a.tanh()).square().sum().backward()
    for value, reference in zip(executor.run(program, arrays, found, scope=ol.Scope()), (a.grad, b.grad), strict=True):
        agree(value, reference)


@pytest.mark.parametrize(("shape", "given"), [((3,), (2,)), (("n", 3), (3,)), (("2*n",), (3,)), (("n",), ("n+1",))])
def test_a_gradient_that_cannot_have_the_shape_of_its_variable_is_refused(catalogue, shape, given):
    @ol.operator("x: float[...s], like: float[...r] -> y: float[]", catalogue=catalogue)
    def summed(x, like):
        return x.sum()

    summed.no_gradient("like")
    summed.gradient_programs(x=lambda like, dy: ol.op.broadcast_to_like(dy, like))
    with ol.Program():
        x, like = (ol.layer.data(name, list(sizes), dtype="float64", batch=None) for name, sizes in (("x", shape), ("like", given)))
        y = summed(x, like)
        with pytest.raises(ol.GradientError, match=r'"summed" gives float64\[.*\] as the gradient of "x", which is float64\['):
            ol.gradients([y], [x])
