"""State that layers keep from step to step - running statistics, draws - is trained with, saved, and resumed; evaluation moves nothing."""

import itertools

import numpy
import pytest
import torch

import oarlock as ol

ROWS = {"x": numpy.random.default_rng(0).normal(3.0, 2.0, (64, 3)), "y": numpy.random.default_rng(1).normal(size=(64, 1))}


def normalized() -> tuple[ol.Program, ol.Var, ol.Var]:
    """A layer with statistics below one without: the program, what it predicts, its cost."""
    with ol.Program(seed=0) as program:
        x = ol.layer.data("x", shape=[3], dtype="float64")
        y = ol.layer.data("y", shape=[1], dtype="float64")
        predict = ol.layer.fc(ol.layer.batch_norm(x, name="norm"), 1)
        return program, predict, ol.layer.mse(predict, y)


def dropped(rate: float = 0.5) -> tuple[ol.Program, ol.Var]:
    with ol.Program(seed=0) as program:
        return program, ol.layer.dropout(ol.layer.data("x", shape=[3], dtype="float64"), rate=rate)


def copy_of(scope: ol.Scope) -> dict[str, torch.Tensor]:
    return {name: scope[name].clone() for name in scope}


def same(left: dict[str, torch.Tensor], right: dict[str, torch.Tensor]) -> bool:
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


@pytest.mark.parametrize("optimizer", [None, ol.optimizer.SGD(0.01)], ids=["usual", "given"])
def test_a_model_with_batch_norm_is_trained_as_by_hand(optimizer):
    _, _, cost = normalized()
    result = ol.train(cost, ROWS, optimizer=optimizer, epochs=3, batch_size=64, progress=False)
    program, _, again = normalized()
    ol.optimizer.SGD(0.01).minimize(again)
    scope, executor = ol.init(program, ol.Scope()), ol.Executor()
    for _ in range(3):
        executor.run(program, ROWS, [], scope=scope, training=True)
    for name in ("fc_0.w", "norm.scale", "norm.mean", "norm.variance"):
        torch.testing.assert_close(result.parameters[name], scope[name])
    assert result.parameters["norm.mean"].abs().max() > 0.5
    assert result.history[2].training["loss"] < result.history[0].training["loss"]


def test_what_predicts_is_saved_with_how_its_statistics_move_and_goes_on_with_them(tmp_path):
    _, predict, cost = normalized()
    result = ol.train(cost, ROWS, epochs=2, progress=False)
    path = tmp_path / "predict.safetensors"
    ol.save_model(predict, result, path)
    model = ol.load_model(path)
    assert not model.program.is_training
    first = copy_of(model.scope)
    assert numpy.array_equal(ol.infer(model, {"x": ROWS["x"]}), ol.infer(predict, {"x": ROWS["x"]}, result))
    assert same(copy_of(model.scope), first), "inference moves nothing"
    with model.program:
        y = ol.layer.data("y", shape=[1], dtype="float64")
        cost = ol.layer.mse(next(iter(model.program.targets.values())), y)
    moved = {"x": ROWS["x"] + 10.0, "y": ROWS["y"]}
    tuned = ol.train(cost, moved, epochs=30, scope=model.scope, progress=False)
    mean = torch.from_numpy(moved["x"].mean(0))
    assert (tuned.parameters["norm.mean"] - mean).abs().max() < 1.0
    measured = float(ol.infer(cost, moved, tuned))
    assert abs(measured - tuned.history[-1].training["loss"]) < 0.1 * measured, "what it infers is what it was trained to"


def test_a_stranger_without_gradients_reads_what_keeps_statistics(tmp_path):
    from oarlock import inference

    _, predict, cost = normalized()
    result = ol.train(cost, ROWS, progress=False)
    ol.save_model(predict, result, tmp_path / "predict.safetensors")
    model = inference.load_model(tmp_path / "predict.safetensors")
    assert numpy.array_equal(inference.infer(model, {"x": ROWS["x"]}), ol.infer(predict, {"x": ROWS["x"]}, result))


def test_what_is_kept_is_text_of_its_own_and_is_read_back():
    program, _, cost = normalized()
    assert "  keep:\n  norm.mean <- norm.mean@NEXT\n  norm.variance <- norm.variance@NEXT\n" in program.to_text(source=False)
    assert not program.is_training
    ol.optimizer.SGD().minimize(cost)
    assert program.is_training
    text = program.to_text(source=False)
    again = ol.parse_program(text)
    assert again.to_text(source=False) == text
    assert [op.role for op in again.main.tail] == [op.role for op in program.main.tail]
    assert [op.role for op in program.clone().main.tail] == [op.role for op in program.main.tail]


RUNS = {
    "plan": lambda program, feed, scope: ol.Executor().run(program, feed, [], scope=scope, training=False),
    "interpreter": lambda program, feed, scope: ol.Executor(interpret=True).run(program, feed, [], scope=scope, training=False),
    "kept": lambda program, feed, scope: ol.Executor().run(program, feed, [], scope=scope, training=False, keep_scopes=True),
    "prepared": lambda program, feed, scope: ol.Executor().prepare(program, [], scope=scope, training=False)(feed),
    "limited": lambda program, feed, scope: ol.Executor(limits=ol.RunLimits()).run(program, feed, [], scope=scope, training=False),
}


@pytest.mark.parametrize("way", RUNS)
def test_a_run_that_is_not_training_changes_nothing(way):
    program, _, cost = normalized()
    with program:
        ol.layer.dropout(program.main.var("x"), rate=0.5)
    ol.optimizer.Adam().minimize(cost)
    scope = ol.init(program, ol.Scope())
    before = copy_of(scope)
    RUNS[way](program, ROWS, scope)
    assert same(copy_of(scope), before)


@pytest.mark.parametrize("interpret", [False, True], ids=["plan", "interpreter"])
def test_a_run_of_a_program_with_an_optimizer_trains_unless_told_not_to(interpret):
    program, _, cost = normalized()
    ol.optimizer.SGD().minimize(cost)
    executor, ends = ol.Executor(interpret=interpret), []
    for options in ({}, {"training": True}):
        scope = ol.init(program, ol.Scope())
        executor.run(program, ROWS, [], scope=scope, **options)
        executor.prepare(program, scope=scope, **options)(ROWS)
        ends.append(copy_of(scope))
    assert same(*ends)
    assert int(ends[0]["@STEP"]) == 2
    assert ends[0]["norm.mean"].abs().max() > 0.1


@pytest.mark.parametrize("interpret", [False, True], ids=["plan", "interpreter"])
def test_dropout_without_an_optimizer_draws_anew_in_each_step_that_trains(interpret):
    program, y = dropped()
    scope, executor = ol.Scope(), ol.Executor(interpret=interpret)
    draws = [executor.run(program, {"x": ROWS["x"]}, [y], scope=scope, training=True)[0] for _ in range(4)]
    assert all(not numpy.array_equal(one, other) for one, other in itertools.combinations(draws, 2))
    assert int(scope["@RANDOM"]) == 4
    prepared = executor.prepare(program, [y], scope=ol.Scope(), training=True)
    assert all(numpy.array_equal(prepared({"x": ROWS["x"]})[0], draw) for draw in draws), "the same seed, the same draws"


def test_what_looks_at_dropout_draws_what_the_next_step_will_and_counts_nothing():
    program, y = dropped()
    scope, executor = ol.Scope(), ol.Executor()
    executor.run(program, {"x": ROWS["x"]}, [], scope=scope, training=True)
    looks = [executor.eval(program, [y], {"x": ROWS["x"]}, scope=scope, training=True)[0] for _ in range(2)]
    calm = executor.run(program, {"x": ROWS["x"]}, [y], scope=scope)[0]
    assert int(scope["@RANDOM"]) == 1
    following = executor.run(program, {"x": ROWS["x"]}, [y], scope=scope, training=True)[0]
    assert numpy.array_equal(calm, ROWS["x"])
    assert all(numpy.array_equal(look, following) for look in looks)


def test_draws_go_on_where_a_saved_program_stopped(tmp_path):
    program, y = dropped()
    program.targets = {"y": y}
    scope, executor = ol.Scope(), ol.Executor()
    ol.save_model(program, {}, tmp_path / "new")  # which has drawn nothing
    for _ in range(3):
        executor.run(program, {"x": ROWS["x"]}, [], scope=scope, training=True)
    ol.save_model(program, scope, tmp_path / "drawn")
    unbroken = executor.run(program, {"x": ROWS["x"]}, [y], scope=scope, training=True)[0]
    model = ol.load_model(tmp_path / "drawn")
    assert numpy.array_equal(executor.run(model.program, {"x": ROWS["x"]}, ["y"], scope=model.scope, training=True)[0], unbroken)
    assert int(ol.load_model(tmp_path / "new").scope["@RANDOM"]) == 0
    assert {var.name for var in ol.prune(program, {"y": y}).persistables()} == {"@RANDOM"}
    assert ol.prune(program, {"x": program.main.var("x")}).persistables() == []


def test_a_program_saved_before_draws_were_counted_goes_on_by_its_steps():
    program, y = dropped()
    with program:
        cost = ol.layer.mean(ol.layer.fc(y, 1))
        ol.optimizer.SGD().minimize(cost)
    old = program.clone()
    old.main.keep([op for op in old.main.ops if not any("@RANDOM" in var.name for var in op.writes)])
    assert "@RANDOM" not in old.main.vars
    scopes = [ol.init(each, ol.Scope()) for each in (program, old)]
    for _ in range(3):
        both = zip((program, old), scopes, strict=True)
        new, before = (ol.Executor().run(each, {"x": ROWS["x"]}, [y.name], scope=scope)[0] for each, scope in both)
        assert numpy.array_equal(new, before)
