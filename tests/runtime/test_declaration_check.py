"""A program's parameters and state in a scope are held to the declarations of the program, however it is run."""

from collections.abc import Callable

import numpy
import pytest

import oarlock as ol

FEED = {"x": numpy.ones((2, 3))}


def _trained(kind: str) -> ol.Program:
    with ol.Program(seed=0) as program:
        cost = ol.layer.mean(ol.layer.fc(ol.layer.data("x", [3], dtype="float64"), 4))
        program.targets["cost"] = cost
        {"momentum": ol.optimizer.Momentum, "adam": ol.optimizer.Adam}[kind](0.1).minimize(cost)
    return program


WAYS: dict[str, Callable[[ol.Program, ol.Scope], object]] = {
    "plan": lambda program, scope: ol.Executor().run(program, FEED, ["cost"], scope=scope),
    "plan_without_passes": lambda program, scope: ol.Executor(passes=()).run(program, FEED, ["cost"], scope=scope),
    "prepared": lambda program, scope: ol.Executor().prepare(program, ["cost"], scope=scope)(FEED),
    "prepared_in_a_child": lambda program, scope: ol.Executor().prepare(program, ["cost"], scope=scope.new_scope("child"))(FEED),
    "interpreter": lambda program, scope: ol.Executor(interpret=True).run(program, FEED, ["cost"], scope=scope),
    "prepared_interpreter": lambda program, scope: ol.Executor(interpret=True).prepare(program, ["cost"], scope=scope)(FEED),
    "checked": lambda program, scope: ol.Executor(check=True).run(program, FEED, ["cost"], scope=scope),
    "limited": lambda program, scope: ol.Executor(limits=ol.RunLimits()).run(program, FEED, ["cost"], scope=scope),
    "kept_scopes": lambda program, scope: ol.Executor().run(program, FEED, ["cost"], scope=scope, keep_scopes=True),
}


def _state(scope: ol.Scope) -> dict[str, bytes]:
    return {name: scope[name].numpy().tobytes() for name in scope}  # type: ignore[attr-defined]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("kind", "name"), [("adam", "fc_0.w@MOMENT1"), ("adam", "fc_0.b@MOMENT2"), ("momentum", "fc_0.w@VELOCITY")])
def test_state_of_another_shape_is_refused_before_anything_runs(way: str, kind: str, name: str):
    program = _trained(kind)
    scope = ol.init(program, ol.Scope())
    scope[name] = numpy.zeros((300, 300))  # larger than what is read of it: nothing is hurt where it is not refused
    before = _state(scope)
    declared = program.main.vars[name].shape
    with pytest.raises(ol.ShapeError) as raised:
        WAYS[way](program, scope)
    assert raised.value.message == f'"{name}" is float64[300, 300] in the scope, but float64{list(declared)} in the program'
    assert raised.value.hint == f'set "{name}" to a value of shape {declared} and dtype float64'
    assert _state(scope) == before


@pytest.mark.parametrize("way", WAYS)
def test_state_of_another_dtype_is_refused_before_anything_runs(way: str):
    program = _trained("momentum")
    scope = ol.init(program, ol.Scope())
    scope["fc_0.w"] = numpy.zeros((3, 4), "float32")
    before = _state(scope)
    with pytest.raises(ol.DTypeError) as raised:
        WAYS[way](program, scope)
    assert raised.value.message == '"fc_0.w" is float32[3, 4] in the scope, but float64[3, 4] in the program'
    assert _state(scope) == before


@pytest.mark.parametrize("way", WAYS)
def test_state_that_is_no_tensor_is_refused_before_anything_runs(way: str):
    program = _trained("momentum")
    scope = ol.init(program, ol.Scope())
    scope.var("fc_0.w").value = "a text"
    with pytest.raises(ol.ShapeError) as raised:
        WAYS[way](program, scope)
    assert raised.value.message == '"fc_0.w" is a str in the scope, but float64[3, 4] in the program'


@pytest.mark.parametrize("way", WAYS)
def test_state_that_is_put_right_is_used(way: str):
    program = _trained("adam")
    scope = ol.init(program, ol.Scope())
    scope["fc_0.w"] = numpy.zeros((3, 5))
    with pytest.raises(ol.ShapeError):
        WAYS[way](program, scope)
    scope["fc_0.w"] = numpy.zeros((3, 4))
    WAYS[way](program, scope)
    assert scope["fc_0.w"].abs().min() > 0.0  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "executor", [ol.Executor(), ol.Executor(passes=()), ol.Executor(interpret=True)], ids=["plan", "plain", "interpreter"]
)
def test_what_only_reads_the_state_looks_at_it_too(executor: ol.Executor):
    program = _trained("momentum")
    scope = ol.init(program, ol.Scope())
    scope["fc_0.b"] = numpy.zeros(1)  # which a kernel would broadcast
    with pytest.raises(ol.ShapeError) as raised:
        executor.eval(program, ["cost"], FEED, scope=scope)
    assert raised.value.message == '"fc_0.b" is float64[1] in the scope, but float64[4] in the program'


def test_ops_that_are_run_where_the_caller_says_check_what_they_find():
    """Also what an earlier call left, which the caller has changed since."""
    program = _trained("momentum")
    scope = ol.init(program, ol.Scope())
    scope["x"] = FEED["x"]
    ol.run_block(program.main, scope, end=1, check=False)
    left = program.main.ops[0].writes[0]
    scope[left.name] = numpy.zeros((2, 4), "float32")
    with pytest.raises(ol.DTypeError) as raised:
        ol.run_block(program.main, scope, begin=1, check=False)
    assert raised.value.message == f'"{left.name}" is declared as float64[n, 4], but is float32[2, 4]'
