"""Python's numbers have no dtype of their own: in a scope they take the one that a program declares, as in a feed."""

import numpy
import pytest
import torch

import oarlock as ol

FEED = {"x": numpy.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)}


def network():
    with ol.Program(seed=1) as program:
        cost = ol.layer.mean(ol.op.square(ol.layer.fc(ol.layer.data("x", shape=[3]), 2, name="f")))
        ol.optimizer.SGD(0.1).minimize(cost)
        program.targets["cost"] = cost
    return program


def saved(program, scope, tmp_path):
    ol.save_model(program, scope, tmp_path / "m.safetensors")
    return ol.load_model(tmp_path / "m.safetensors").scope


def run_by(**options):
    return lambda program, scope, tmp_path: ol.Executor(**options).run(program, FEED, ["cost"], scope=scope, training=True)


MEETINGS = {
    "a run": run_by(),
    "a run without passes": run_by(passes=()),
    "the interpreter": run_by(interpret=True),
    "a checked run": run_by(check=True),
    "a prepared step": lambda program, scope, tmp_path: ol.Executor().prepare(program, ["cost"], scope=scope, training=True)(FEED),
    "init": lambda program, scope, tmp_path: ol.init(program, scope),
    "save_model": saved,
}


@pytest.mark.parametrize("meet", list(MEETINGS.values()), ids=list(MEETINGS))
def test_a_number_takes_the_declared_dtype_wherever_a_program_is_met(meet, tmp_path):
    program = network()
    scope, by_array = (ol.init(program, ol.Scope()) for _ in range(2))
    scope["sgd_0.learning_rate"] = 0.059
    scope["f.b"] = [1, 2]
    scope["@STEP"] = 4
    by_array["sgd_0.learning_rate"] = numpy.array(0.059)
    by_array["f.b"] = numpy.array([1, 2], "float32")
    by_array["@STEP"] = numpy.array(4)
    for each in (scope, by_array):
        meet(program, each, tmp_path)
    assert scope["sgd_0.learning_rate"].dtype is torch.float64
    assert scope["sgd_0.learning_rate"].item() == 0.059, "it was never rounded to float32"
    for name in by_array:
        assert scope[name].dtype is by_array[name].dtype
        assert torch.equal(scope[name], by_array[name]), name
    for other in MEETINGS.values():
        other(program, scope, tmp_path)


REFUSED = {
    "a truth value": ("sgd_0.learning_rate", True),
    "a fraction for an integer": ("@STEP", 1.5),
    "an array of another dtype": ("sgd_0.learning_rate", numpy.array(0.059, "float32")),
    "a tensor of another dtype": ("f.b", torch.zeros(2, dtype=torch.float64)),
}


@pytest.mark.parametrize("meet", list(MEETINGS.values()), ids=list(MEETINGS))
@pytest.mark.parametrize(("name", "value"), list(REFUSED.values()), ids=list(REFUSED))
def test_what_is_of_another_dtype_is_refused_wherever_a_program_is_met(name, value, meet, tmp_path):
    program = network()
    scope = ol.init(program, ol.Scope())
    scope[name] = value
    before = {each: scope.var(each).held.numpy().tobytes() for each in scope}
    with pytest.raises(ol.DTypeError) as refused:
        meet(program, scope, tmp_path)
    assert f'"{name}" is ' in refused.value.message
    assert refused.value.hint.startswith(f'set "{name}" to a value of shape ')
    assert {each: scope.var(each).held.numpy().tobytes() for each in scope} == before


def test_who_looks_at_a_number_first_changes_nothing_of_it():
    program = network()
    scope = ol.init(program, ol.Scope())
    scope["sgd_0.learning_rate"] = 0.059
    seen = scope["sgd_0.learning_rate"]
    assert seen.dtype is torch.float32
    MEETINGS["a run"](program, scope, None)
    assert scope["sgd_0.learning_rate"].item() == 0.059
    assert seen.item() == numpy.float32(0.059), "it is theirs"


def test_a_number_that_was_written_over_as_a_tensor_is_one():
    program = network()
    scope = ol.init(program, ol.Scope())
    scope["sgd_0.learning_rate"] = 0.059
    scope["sgd_0.learning_rate"].mul_(2)
    with pytest.raises(ol.DTypeError, match="float32"):
        MEETINGS["a run"](program, scope, None)


def test_an_integer_that_the_dtype_does_not_hold_is_refused():
    with ol.Program() as program:
        held = program.main.new_var("held", ol.DType.INT8, (), persistable=True)
        program.targets["y"] = ol.op.add(held, held)
    scope = ol.Scope()
    scope["held"] = 100
    ol.Executor().eval(program, ["y"], scope=scope)
    scope["held"] = 300
    with pytest.raises(ol.DTypeError, match="int64"):
        ol.Executor().eval(program, ["y"], scope=scope)
