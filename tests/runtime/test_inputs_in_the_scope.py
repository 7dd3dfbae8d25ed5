"""All states of a net live in a scope: what is not fed is found there."""

import numpy as np
import pytest

import oarlock as ol

EXECUTORS = {"plan": {}, "interpreter": {"interpret": True}, "limits": {"limits": ol.RunLimits()}}


@pytest.fixture
def model():
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", shape=[2])
        y = ol.layer.data("y", shape=[2])
        z = ol.op.add(x, ol.op.square(y), name="z")
    return program, z


X, Y = np.array([[1, 2], [3, 4]], "float32"), np.array([[1, 1], [2, 2]], "float32")


@pytest.mark.parametrize("options", EXECUTORS.values(), ids=EXECUTORS)
@pytest.mark.parametrize("where", ["here", "parent"])
def test_an_input_that_is_not_fed_is_found_in_the_scope_and_what_is_fed_goes_first(model, options, where):
    program, z = model
    around = ol.Scope()
    scope = around if where == "here" else around.new_scope()
    around["x"], around["y"] = X, Y
    executor = ol.Executor(**options)
    assert executor.run(program, {}, [z], scope=scope)[0].tolist() == (X + Y * Y).tolist()
    assert executor.eval(program, [z], {"x": Y}, scope=scope)[0].tolist() == (Y + Y * Y).tolist()
    step = executor.prepare(program, [z], scope=scope)
    assert step({"y": X})[0].tolist() == (X + X * X).tolist()
    around["x"] = Y  # a step that was prepared looks each time
    assert step({"y": X})[0].tolist() == (Y + X * X).tolist()
    assert step({"x": X, "y": X})[0].tolist() == (X + X * X).tolist()
    assert step({})[0].tolist() == (Y + Y * Y).tolist()
    assert around["x"].tolist() == Y.tolist()


def test_eval_finds_its_inputs_in_the_current_scope(model):
    _, z = model
    with ol.scope.guard(ol.Scope()) as scope:
        with pytest.raises(ol.FeedError, match='^"x" is not fed'):
            ol.eval(z)
        scope.var("x")  # which is there, and has no value
        scope["y"] = Y
        with pytest.raises(ol.FeedError, match='^"x" is not fed'):
            ol.eval(z)
        scope["x"] = X
        assert ol.eval(z).tolist() == (X + Y * Y).tolist()
        assert ol.eval(z, context=ol.Context(scope.new_scope())).tolist() == (X + Y * Y).tolist()


@pytest.mark.parametrize("options", EXECUTORS.values(), ids=EXECUTORS)
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (X[:1], '"y" has n = 2, but "x" has n = 1'),
        (X.astype("float64"), '"x" must be float32, not float64'),
        (np.zeros((2, 3), "float32"), '"x" must have shape [n, 2], not [2, 3]'),
    ],
)
def test_what_is_found_is_checked_as_what_is_fed(model, options, value, message):
    program, z = model
    scope = ol.Scope()
    scope["x"], scope["y"] = value, Y
    with pytest.raises(ol.FeedError) as caught:
        ol.Executor(**options).run(program, {}, [z], scope=scope)
    assert caught.value.message == message
    assert any("is in the scope as" in line for line in caught.value.given)


def test_an_input_that_carries_its_own_value_has_that_whatever_the_scope_holds():
    with ol.Program():
        x = ol.minibatch([1, 2], name="x")
        y = ol.op.square(x)
    with ol.scope.guard(ol.Scope()) as scope:
        scope["x"] = np.array([[5.0]], "float32")
        assert ol.eval(y).ravel().tolist() == [1.0, 4.0]
        assert ol.eval(y, {"x": np.array([[3.0]], "float32")}).tolist() == [[9.0]]


def test_ragged_inputs_are_found_with_their_row_splits():
    with ol.Program():
        words = ol.layer.data("words", shape=[1], ragged=1)
        sums = ol.layer.sequence_pool(words, "sum")
    with ol.scope.guard(ol.Scope()) as scope:
        scope["words"], scope["words.splits"] = np.array([[1], [2], [4]], "float32"), np.array([0, 1, 3])
        assert ol.eval(sums).ravel().tolist() == [1.0, 6.0]
        scope["words.splits"] = np.array([0, 1, 2])
        with pytest.raises(ol.FeedError):
            ol.eval(sums)


def test_a_step_trains_on_what_the_scope_holds():
    with ol.Program(seed=1) as program:
        cost = ol.layer.mean(ol.layer.fc(ol.layer.data("x", shape=[2]), 1))
        ol.optimizer.SGD(1.0).minimize(cost)
    scope = ol.init(program, ol.Scope())
    scope["x"] = X
    before = scope["fc_0.w"].clone()
    ol.Executor().run(program, {}, [cost], scope=scope)
    np.testing.assert_allclose((before - scope["fc_0.w"]).ravel(), X.mean(0), rtol=1e-6)
    assert scope["x"].tolist() == X.tolist()


@pytest.mark.parametrize("options", EXECUTORS.values(), ids=EXECUTORS)
@pytest.mark.parametrize("way", ["run", "eval", "prepare"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "int8"])
@pytest.mark.parametrize("numbers", [[[1, 2]], [[0.1, float("nan")]], [[300, 1]], [[True, False]]], ids=str)
def test_numbers_of_pythons_are_taken_from_the_scope_as_they_are_fed(numbers, dtype, way, options):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2], dtype=dtype)
        y = ol.op.add(x, x)
    executor = ol.Executor(**options)

    def found(feed, scope):
        try:
            if way == "prepare":
                return executor.prepare(program, [y], scope=scope)(feed)[0].tobytes()
            targets = {"targets": [y]} if way == "eval" else {"fetch": [y]}
            return getattr(executor, way)(program, feed=feed, scope=scope, **targets)[0].tobytes()
        except ol.FeedError as error:
            return error.message

    scope = ol.Scope()
    scope.set("x", numbers)
    by_feed = found({"x": numbers}, ol.Scope())
    assert found({}, scope) == by_feed
    assert found({}, scope.new_scope()) == by_feed
    fits = {"float": dtype != "int64" and dtype != "int8", "int": dtype != "int8" or max(numbers[0]) < 128, "bool": False}
    assert isinstance(by_feed, bytes) == fits[type(numbers[0][0]).__name__]


def test_numbers_in_a_scope_are_taken_by_programs_that_declare_other_dtypes_in_turn():
    scope = ol.Scope()
    scope["x"] = [[1, 2]]
    for dtype in ("float32", "int64", "float64", "float32"):
        with ol.Program() as program:
            x = ol.layer.data("x", shape=[2], dtype=dtype)
            y = ol.op.add(x, x)
        (value,) = ol.Executor().run(program, {}, [y], scope=scope)
        assert (value.dtype.name, value.tolist()) == (dtype, [[2, 4]])


def test_an_input_that_is_looked_for_in_a_dropped_scope_says_so(model):
    program, z = model
    scope = ol.Scope()
    step = ol.Executor().prepare(program, [z], scope=scope)
    scope.drop()
    with pytest.raises(ol.ScopeError, match="^this scope was dropped$"):
        step({})
