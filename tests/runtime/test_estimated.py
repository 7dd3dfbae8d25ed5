"""`variable.estimated = False` prevents from update, as the Framework document has it: in every executor, until it is taken back."""

import numpy
import pytest
import torch

import oarlock as ol
from oarlock.io.container import write_container

ROWS = {"x": numpy.random.default_rng(0).normal(size=(8, 3)).astype("float32")}
EXECUTORS = {"plan": {}, "interpreter": {"interpret": True}, "no passes": {"passes": ()}, "limits": {"limits": ol.RunLimits()}}


def two_layers() -> tuple[ol.Program, ol.Var]:
    with ol.Program(seed=0) as program:
        hidden = ol.layer.fc(ol.layer.data("x", shape=[3]), 4, act="tanh", name="first")
        cost = ol.layer.mean(ol.op.square(ol.layer.fc(hidden, 1, name="second")))
    return program, cost


def changed(scope: ol.Scope, before: dict[str, torch.Tensor]) -> set[str]:
    return {name for name in before if not torch.equal(scope[name], before[name])}


def values(scope: ol.Scope) -> dict[str, torch.Tensor]:
    return {name: scope[name].clone() for name in scope}


@pytest.mark.mission("A22", "C18")
@pytest.mark.parametrize("way", EXECUTORS)
def test_what_is_not_to_be_estimated_stays_with_its_state_and_the_rest_is_trained_as_ever(way):
    program, cost = two_layers()
    ol.optimizer.Adam(0.1).minimize(cost)
    executor, scope = ol.Executor(**EXECUTORS[way]), ol.init(program, ol.Scope())
    assert scope.var("first.w").estimated, "as the program says"
    executor.run(program, ROWS, [], scope=scope, training=True)
    before = values(scope)
    scope.var("first.w").estimated = False
    executor.run(program, ROWS, [], scope=scope, training=True)
    still = {"first.w", "first.w@MOMENT1", "first.w@MOMENT2", "adam_0.learning_rate"}
    assert changed(scope, before) == set(before) - still
    scope.var("first.w").estimated = True
    before = values(scope)
    executor.run(program, ROWS, [], scope=scope, training=True)
    assert changed(scope, before) == set(before) - {"adam_0.learning_rate"}


def test_training_leaves_it_as_it_would_a_parameter_that_is_not_trainable():
    results = []
    for by_program in (True, False):
        program, cost = two_layers()
        scope = ol.init(program, ol.Scope())
        program.main.vars["first.w"].trainable = not by_program
        scope.var("first.w").estimated = by_program
        results.append(ol.train(cost, ROWS, epochs=3, scope=scope, progress=False).parameters)
    assert all(torch.equal(results[0][name], results[1][name]) for name in results[0])
    assert torch.equal(results[0]["first.w"], ol.init(two_layers()[0], ol.Scope())["first.w"])


def test_a_scope_inside_finds_it_and_may_have_its_own():
    program, cost = two_layers()
    ol.optimizer.SGD(0.1).minimize(cost)
    scope = ol.init(program, ol.Scope())
    inside = scope.new_scope()
    scope.var("first.w").estimated = False
    before = scope["first.w"].clone()
    ol.Executor().run(program, ROWS, [], scope=inside, training=True)
    assert torch.equal(scope["first.w"], before)
    inside.set("first.w", before.clone())
    ol.Executor().run(program, ROWS, [], scope=inside, training=True)
    assert not torch.equal(inside["first.w"], before)
    assert torch.equal(scope["first.w"], before)


@pytest.mark.parametrize("way", EXECUTORS)
def test_a_step_that_was_prepared_before_says_so(way):
    program, cost = two_layers()
    ol.optimizer.SGD(0.1).minimize(cost)
    executor, scope = ol.Executor(**EXECUTORS[way]), ol.init(program, ol.Scope())
    step = executor.prepare(program, scope=scope, training=True)
    for _ in range(3):
        step(ROWS)
    scope.var("first.w").estimated = False
    before = values(scope)
    with pytest.raises(ol.ScopeError) as raised:
        step(ROWS)
    assert raised.value.message == "trainable was changed for first.w after this step was prepared"
    assert raised.value.hint == "prepare the step again"
    assert changed(scope, before) == set()
    again = executor.prepare(program, scope=scope, training=True)
    for _ in range(2):
        again(ROWS)
    assert "first.w" not in changed(scope, before)
    assert "second.w" in changed(scope, before)


def test_a_saved_run_goes_on_with_what_is_not_to_be_estimated_as_it_is(tmp_path):
    _, cost = two_layers()
    result = ol.train(cost, ROWS, optimizer=ol.optimizer.Adam(0.1), progress=False)
    result.parameters.find_var("first.w").estimated = False
    ol.save_model(result, tmp_path / "run")
    model = ol.load_model(tmp_path / "run")
    told = {name: model.scope.find_var(name).estimated for name in ("first.w", "first.b", "second.w", "second.b")}
    assert told == {"first.w": False, "first.b": True, "second.w": True, "second.b": True}
    here, there = (ol.train(run, ROWS, epochs=3, progress=False) for run in (result, model))
    assert changed(there.parameters, values(here.parameters)) == set()
    model.scope.find_var("first.w").estimated = True
    ol.save_model(model, tmp_path / "again")
    assert ol.load_model(tmp_path / "again").scope.find_var("first.w").estimated


@pytest.mark.parametrize("listed", [b"", b"\xff", b"null", b'"first.w"', b"[1]", b'["adam_0.learning_rate"]', b'["nothing"]', b"[" * 9999])
def test_a_file_lists_no_others(listed, tmp_path):
    program, cost = two_layers()
    ol.optimizer.Adam(0.1).minimize(cost)
    scope = ol.init(program, ol.Scope())
    tensors = {name: scope[name] for name in scope} | {"oarlock.frozen": torch.frombuffer(bytearray(listed or b" "), dtype=torch.uint8)}
    write_container(tmp_path / "file", program.to_bytes(), tensors)
    with pytest.raises(ol.FormatError) as raised:
        ol.load_model(tmp_path / "file")
    assert raised.value.message == "oarlock.frozen is not a list of parameters that the program trains"


def test_trainable_is_the_name_of_the_field_for_it():
    program, cost = two_layers()
    ol.optimizer.SGD(0.1).minimize(cost)
    scope = ol.init(program, ol.Scope())
    assert scope.var("first.w").trainable
    scope.var("first.w").trainable = False
    assert not scope.var("first.w").estimated
    before = values(scope)
    ol.Executor().run(program, ROWS, [], scope=scope, training=True)
    assert "first.w" not in changed(scope, before)
    scope.var("first.w").estimated = True
    assert scope.var("first.w").trainable
