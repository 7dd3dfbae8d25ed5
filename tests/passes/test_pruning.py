import hypothesis
import hypothesis.strategies as st
import numpy
import pytest
from sample_programs import nested_loops, running_sum

import oarlock as ol
from oarlock.ir.traversal import walk
from oarlock.ir.verification import verify_program
from oarlock.registry import standard, typecheck

FEED = {"pages": numpy.linspace(-1, 1, 24, dtype="float32").reshape(2, 4, 3), "start": numpy.ones(3, "float32")}


def names(program):
    return [var.name for var in program.main.vars.values()]


def test_a_pruned_program_has_what_its_targets_need_and_nothing_else():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[4])
        label = ol.layer.data("label", shape=[], dtype="int64")
        hidden = ol.layer.fc(x, 3, act="tanh", name="hidden")
        logits = ol.layer.fc(hidden, 2, name="logits")
        predict = ol.layer.softmax(logits, name="predict")
        program.targets["cost"] = ol.layer.cross_entropy(logits, label)
        ol.optimizer.Adam().minimize(program.targets["cost"])
    program.training = ol.ir.program.Training(batch_size=2, epochs=1)
    kept = ol.prune(program, {"class": predict, "hidden": hidden})
    assert [op.type for op in kept.main.ops] == ["linear", "tanh", "linear", "softmax"]
    assert [var.name for var in kept.main.inputs] == ["x"]
    assert [var.name for var in kept.persistables()] == ["hidden.w", "hidden.b", "logits.w", "logits.b"]
    assert {label: var.name for label, var in kept.targets.items()} == {"class": "predict", "hidden": "tanh_0"}
    assert kept.training is None
    assert not kept.is_training
    assert kept.seed == program.seed
    verify_program(kept)
    typecheck(kept, standard.forward_only())


def test_the_original_is_unchanged():
    program = running_sum()
    before, revision = program.to_bytes(), program.revision
    kept = ol.prune(program, {"cost": program.targets["cost"]})
    kept.main.keep([])
    assert (program.to_bytes(), program.revision) == (before, revision)
    assert kept is not program


def test_a_parameter_is_read_as_it_was_before_the_step():
    program = running_sum()
    kept = ol.prune(program, {"cost": program.targets["cost"]})
    scope = ol.Scope()
    scope.set("w", [0.5, 2.0])
    feed = {"xs": numpy.ones((3, 2), "float32"), "start": numpy.ones(2, "float32")}
    first = ol.Executor().run(kept, feed, ["cost"], scope=scope)[0]
    assert scope["w"].tolist() == [0.5, 2.0]
    assert ol.Executor().run(program, feed, ["cost"], scope=scope)[0] == first
    assert scope["w"].tolist() != [0.5, 2.0]


def test_what_a_step_makes_of_a_parameter_may_be_a_target():
    program = running_sum()
    kept = ol.prune(program, {"next": program.main.var("w_next")})
    assert [op.type for op in kept.main.ops] == ["recurrent", "reduce_sum", "subtract"]
    assert not kept.is_training


def test_blocks_that_are_needed_stay_and_lose_what_is_not_needed_in_them():
    with ol.Program() as program:
        xs = ol.layer.data("xs", shape=[2], batch="t")
        first = ol.rnn()
        with first.step():
            first.output(ol.op.neg(first.step_input(xs)))
        dropped = first()
        second = ol.rnn()
        with second.step():
            x = second.step_input(xs)
            ol.op.relu(x, name="in_vain")
            inner = ol.rnn()
            with inner.step():
                inner.output(ol.op.square(inner.step_input(x)))
            unread = ol.rnn()
            with unread.step():
                unread.output(ol.op.exp(unread.step_input(x)))
            unread()
            second.output(inner())
        kept_value = second()
    assert [block.name for block in program.blocks] == ["main", *(f"rnn_{n}.body" for n in range(4))]
    kept = ol.prune(program, {"y": kept_value})
    assert [(block.index, block.path) for block in kept.blocks] == [
        (0, "main"),
        (1, "main/rnn_1.body"),
        (2, "main/rnn_1.body/rnn_2.body"),
    ]
    assert [op.type for op in walk(kept.main)] == ["recurrent", "recurrent", "square"]
    assert dropped.name not in names(kept)
    assert "in_vain" not in kept.blocks[1].vars
    verify_program(kept)
    feed = {"xs": numpy.array([[1.0, 2.0]], "float32")}
    assert ol.Executor().run(kept, feed, ["y"], scope=ol.Scope())[0].tolist() == [[1.0, 4.0]]
    assert ol.Program.from_bytes(kept.to_bytes()).to_bytes() == kept.to_bytes()


def test_a_target_may_be_an_input_or_a_parameter():
    program = running_sum()
    kept = ol.prune(program, {"x": program.main.var("xs"), "w": program.main.var("w")})
    assert (kept.main.ops, names(kept), len(kept.blocks)) == ([], ["xs", "w"], 1)
    verify_program(kept)


def test_a_program_pruned_to_nothing_is_empty():
    kept = ol.prune(running_sum(), {})
    assert (kept.main.ops, names(kept), kept.targets) == ([], [], {})


@pytest.mark.parametrize("where", ["a copy", "a block inside"])
def test_a_target_of_another_program_or_block_is_refused(where):
    program = running_sum()
    target = program.clone().targets["cost"] if where == "a copy" else program.blocks[1].vars["total"]
    with pytest.raises(ol.UndefinedVarError) as caught:
        ol.prune(program, {"cost": target})
    assert str(caught.value) == (f'target "{target.name}" is not a variable of the main block of this program\n      {target.describe()}')


def test_pruning_twice_is_pruning_once():
    program = nested_loops()
    once = ol.prune(program, {"cost": program.targets["cost"]})
    assert ol.prune(once, once.targets).to_bytes() == once.to_bytes()


PROGRAM = nested_loops()
FLOATS = [var.name for var in PROGRAM.main.vars.values()]
VALUES = dict(zip(FLOATS, ol.Executor().run(PROGRAM, FEED, FLOATS, scope=ol.init(PROGRAM, ol.Scope())), strict=True))


@hypothesis.settings(max_examples=30, deadline=None, derandomize=True)
@hypothesis.given(st.sets(st.sampled_from(FLOATS), min_size=1, max_size=4))
def test_pruning_never_changes_a_fetched_value(wanted):
    kept = ol.prune(PROGRAM, {name: PROGRAM.main.var(name) for name in wanted})
    feed = {var.name: FEED[var.name] for var in kept.main.inputs}
    values = ol.Executor().run(kept, feed, sorted(wanted), scope=ol.init(kept, ol.Scope()))
    assert [value.tobytes() for value in values] == [VALUES[name].tobytes() for name in sorted(wanted)]
    assert len(list(walk(kept.main))) <= len(list(walk(PROGRAM.main)))


def test_a_loop_keeps_a_sequence_to_count_its_trips_by():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2], batch="t")
        y = ol.layer.data("y", shape=[2], batch="t")
        start = ol.layer.data("start", shape=[2], batch=None)
        rnn = ol.rnn()
        with rnn.step():
            rnn.output(rnn.step_input(x) * rnn.step_input(y))
            state = rnn.memory(init=start)
            rnn.update_memory(state, rnn.previous_memory(state) * 2.0)
        rnn()
        final = rnn.final_memory(state)
    kept = ol.prune(program, {"final": final})
    assert [var.name for var in kept.main.inputs] == ["x", "start"]
    (loop,) = (op for op in kept.main.ops if op.type == "recurrent")
    assert [var.name for var in loop.inputs["sequences"]] == ["x"]
    assert (loop.outputs["stacked"], len(loop.outputs["final"])) == ((), 1)
    feed = {"x": numpy.zeros((3, 2), "float32"), "start": [1.0, 2.0]}
    assert ol.Executor().run(kept, feed, ["final"], scope=ol.Scope())[0].tolist() == [8.0, 16.0]


def test_a_ragged_loop_keeps_the_sequence_that_tells_its_rows():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2], ragged=1)
        other = ol.op.square(x)
        rnn = ol.rnn()
        with rnn.step():
            rnn.step_input(x)
            rnn.output(rnn.step_input(other))
        y = rnn()
    kept = ol.prune(program, {"y": y})
    (loop,) = (op for op in kept.main.ops if op.type == "recurrent")
    assert [var.name for var in loop.inputs["sequences"]] == ["x", "square_0"]
    feed = {"x": [[[1.0, 2.0]], [], [[3.0, 4.0], [5.0, 6.0]]]}
    assert ol.Executor().run(kept, feed, ["y"], scope=ol.Scope())[0].tolist() == [[1.0, 4.0], [9.0, 16.0], [25.0, 36.0]]


def test_a_branch_keeps_the_value_that_tells_whether_it_ran():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3], dtype="float64", batch=None)
        chosen = ol.layer.data("chosen", shape=[], dtype="bool", batch=None)
        switch = ol.switch()
        with switch.case(chosen):
            switch.output(x * x)
        with switch.default():
            switch.output(x)
        y = switch()
        (slope,) = ol.gradients(ol.op.reduce_sum(ol.op.square(y)), x)
        (second,) = ol.gradients(ol.op.reduce_sum(slope), x)
    kept = ol.prune(program, second)
    unread = [
        outer.shape[0]
        for op in walk(kept.main)
        if op.type == "conditional_block"
        for inner, outer in zip(op.attributes["body"].inputs, op.inputs["values"], strict=True)
        if inner not in {*op.attributes["body"].outputs, *(var for each in op.attributes["body"].ops for var in each.reads)}
    ]
    returned = {var.shape[0] for op in walk(kept.main) if op.type == "conditional_block" for var in op.outputs["outputs"]}
    assert unread
    assert set(unread) <= returned  # the gradient of what a side returns has a row where that side ran
    for value, expected in ((True, [12.0, 48.0, 108.0]), (False, [2.0, 2.0, 2.0])):  # x ** 4 and x ** 2, twice differentiated
        assert ol.Executor().run(kept, {"x": [1.0, 2.0, 3.0], "chosen": value}, [second.name], scope=ol.Scope())[0].tolist() == expected


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ([6], 'targets are a dict, {"label": variable}, not list [6]'),
        ([], 'targets are a dict, {"label": variable}, not list []'),
        (5, 'targets are a dict, {"label": variable}, not int 5'),
        ({"a": 6}, "targets are labels and variables, not 'a': int 6"),
    ],
)
def test_targets_that_are_no_labels_with_variables_are_refused(targets, message):
    program = running_sum()
    with pytest.raises(ol.ArgumentError) as raised:
        ol.prune(program, targets)
    assert raised.value.message == message


@pytest.mark.parametrize("targets", [["nope"], "q", {"a": "q"}])
def test_a_name_of_no_variable_is_no_target(targets):
    with pytest.raises(ol.UndefinedVarError, match="is not visible in main"):
        ol.prune(running_sum(), targets)


@pytest.mark.parametrize("label", ["", "a b", "..", "a" * 257])
def test_a_label_that_no_file_can_hold_is_refused_before_anything_is_written(label, tmp_path):
    program = running_sum()
    scope, path = ol.Scope(), tmp_path / "model"
    scope.set("w", [0.5, 2.0])
    targets = {label: program.targets["cost"]}
    program.targets.update(targets)
    for refused in (
        lambda: ol.prune(program, targets),
        lambda: ol.save_model(targets, scope, path),
        lambda: ol.save_model(program, scope, path),
    ):
        with pytest.raises(ol.ProgramError) as raised:
            refused()
        assert raised.value.message == f"{label!r:.80} cannot be a target's label"
    assert not path.exists()


@pytest.mark.mission("B47")
def test_the_count_of_draws_stays_with_what_draws_and_goes_with_it():
    """The policy of random state: what is kept goes on drawing other numbers in each run that trains."""
    with ol.Program(seed=3) as program:
        x = ol.layer.data("x", shape=[50])
        dropped, plain = ol.layer.dropout(x, rate=0.5), ol.op.square(x)
        loop = ol.rnn()
        with loop.step():
            loop.output(ol.layer.dropout(loop.step_input(x), rate=0.5))
        inside = loop()
        ol.optimizer.SGD(0.1).minimize(ol.layer.mean(ol.layer.fc(dropped, 1)))
    feed = {"x": numpy.ones((2, 50), "float32")}
    for target in (dropped, inside):
        kept = ol.prune(program, {"y": target})
        assert [op.writes[0].name for op in kept.main.tail] == ["@RANDOM"]
        scope = ol.init(kept, ol.Scope())
        first, second = (ol.Executor().run(kept, feed, ["y"], scope=scope, training=True)[0] for _ in range(2))
        assert int(scope["@RANDOM"]) == 2
        assert first.tolist() != second.tolist()
    assert ol.prune(program, {"y": plain}).main.tail == []


@pytest.mark.mission("B47")
def test_the_statistics_of_batch_norm_move_in_what_is_kept_and_go_with_it():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2])
        normed, plain = ol.layer.batch_norm(x, name="norm"), ol.op.square(x)
        other = ol.layer.batch_norm(plain, name="other")
        ol.optimizer.SGD(0.1).minimize(ol.layer.mean(ol.layer.fc(normed, 1)))
    kept = ol.prune(program, {"y": normed})
    assert sorted(op.writes[0].name for op in kept.main.tail) == ["norm.mean", "norm.variance"]
    scope = ol.init(kept, ol.Scope())
    ol.Executor().run(kept, {"x": numpy.array([[10.0, 0.0], [30.0, 0.0]], "float32")}, ["y"], scope=scope, training=True)
    numpy.testing.assert_allclose(scope["norm.mean"], [2.0, 0.0], rtol=1e-6)  # a tenth of the way, the momentum
    assert ol.prune(program, {"y": plain}).main.tail == []
    assert sorted(op.writes[0].name for op in ol.prune(program, {"y": other}).main.tail) == ["other.mean", "other.variance"]


@pytest.mark.mission("B47")
def test_what_a_loop_adds_up_over_its_trips_is_kept_where_it_is_wanted_and_else_not():
    """The gradients of what a loop captures are sums over its trips: one that nobody asks for is not computed."""
    with ol.Program() as program:
        xs = ol.layer.data("xs", shape=[3], batch="t")
        a, b = (ol.layer.data(name, shape=[3], batch=None) for name in ("a", "b"))
        loop = ol.rnn()
        with loop.step():
            loop.output(ol.op.tanh(loop.step_input(xs) * a) + ol.op.exp(b))
        slopes = ol.gradients([ol.op.reduce_sum(loop())], [a, b])
    (whole,) = (op for op in program.main.ops if op.attributes.get("summed"))
    assert len(whole.outputs["sums"]) == whole.attributes["summed"] == 2
    feed = {"xs": numpy.ones((2, 3), "float32"), "a": numpy.zeros(3, "float32"), "b": numpy.zeros(3, "float32")}
    for wanted, unwanted in (slopes, slopes[::-1]):
        kept = ol.prune(program, {"slope": wanted})
        (loop_back,) = (op for op in kept.main.ops if op.attributes.get("summed"))
        assert [var.name for var in loop_back.outputs["sums"]] == [wanted.name]
        assert loop_back.attributes["summed"] == 1
        assert len(loop_back.attributes["body"].ops) < len(whole.attributes["body"].ops)
        assert unwanted.name not in kept.main.vars
        values = {var.name: feed[var.name] for var in kept.main.inputs}
        assert ol.Executor().run(kept, values, ["slope"], scope=ol.Scope())[0].tolist() == [2.0] * 3


@pytest.mark.mission("B47")
def test_a_memory_that_only_a_dropped_memory_of_an_inner_loop_read_goes_at_once():
    with ol.Program() as program:
        xs = ol.layer.data("xs", [3], batch="t")
        ys = ol.layer.data("ys", [2], batch="n")
        start = ol.layer.data("start", [2], batch=None)
        outer = ol.rnn()
        with outer.step():
            x = outer.step_input(xs)
            state = outer.memory(init=start)
            inner = ol.rnn()
            with inner.step():
                y = inner.step_input(ys)
                nested = inner.memory(init=outer.previous_memory(state))
                inner.update_memory(nested, ol.op.tanh(inner.previous_memory(nested)))
                inner.output(ol.op.square(y))
            squares = inner()
            outer.update_memory(state, ol.op.tanh(outer.previous_memory(state)))
            outer.output(ol.op.add(ol.op.reduce_sum(squares), ol.op.reduce_sum(x)))
        sums = outer()
    kept = ol.prune(program, {"sums": sums})
    assert [len(block.inputs) for block in kept.blocks[1:]] == [1, 1]
    assert [var.name for var in kept.main.inputs] == ["xs", "ys"]
    assert kept.to_bytes() == ol.prune(kept, {"sums": kept.targets["sums"]}).to_bytes()
