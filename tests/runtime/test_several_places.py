"""Programs whose parameters lie at several places of one run.

Two places at the processor compute what one does, to the bit: that the values are right. Two GPUs that are not there (`fake_gpu.py`) refuse
kernels whose inputs lie at both: that each value is where it must be.
"""

from random import Random

import numpy
import pytest
import torch
import worker_models
from fake_gpu import stand_in, waits_noted
from generated.making import make
from generated.places import check_places

import oarlock as ol
from oarlock.passes.places import find_places, write_moves
from oarlock.registry import standard

WAYS = [{}, {"passes": ()}, {"interpret": True}, {"poison": True}]
TWO = [ol.CPUPlace(), ol.CPUPlace()]


def divided(program: ol.Program) -> ol.Program:
    """The program with every second parameter at place 1, and what is kept beside it."""
    parameters = [var for var in program.persistables() if var.parameter]
    there = {var.name for var in parameters[1::2]}
    for var in program.persistables():
        var.place = int(var.name.partition("@")[0] in there)
    program.changed()
    return program


def trained(program, feeds, places, **way):
    """The targets after each step, and what is kept after the last."""
    scope = ol.init(program, ol.Scope())
    executor = ol.Executor(places, **way)
    values = [executor.run(program, feed, list(program.targets), scope=scope) for feed in feeds]
    return values, {var.name: scope[var.name].numpy().copy() for var in program.persistables()}


def recurrent() -> ol.Program:
    """A loop over eight steps, whose state and whose layers have parameters of their own."""
    with ol.Program(seed=0) as program:
        x, y = ol.layer.data("x", [8], dtype="float64"), ol.layer.data("y", [], dtype="int64")
        rnn = ol.rnn()
        columns = ol.op.reshape(ol.op.transpose(x, (1, 0)), (8, -1, 1))
        with rnn.step():
            step = rnn.step_input(columns)
            state = rnn.memory(shape=[5])
            after = ol.op.tanh(ol.layer.fc(step, 5) + ol.layer.fc(rnn.previous_memory(state), 5, bias=False))
            rnn.update_memory(state, after)
            rnn.output(ol.layer.dropout(after, 0.1))
        cost = ol.layer.cross_entropy(ol.layer.fc(ol.op.reduce_sum(rnn(), axis=0), 3), y)
        ol.optimizer.Adam(1e-2, clip=ol.optimizer.ClipByGlobalNorm(1.0)).minimize(cost)
        program.targets = {"loss": cost}
    return program


def assert_same(left, right):
    for one, other in zip(left[0], right[0], strict=True):
        for value, expected in zip(one, other, strict=True):
            numpy.testing.assert_array_equal(value, expected)
    for name, value in left[1].items():
        numpy.testing.assert_array_equal(value, right[1][name], err_msg=name)


@pytest.mark.parametrize("way", WAYS, ids=["plan", "without passes", "interpreter", "poisoned"])
@pytest.mark.parametrize("name", worker_models.MODELS)
def test_a_program_at_two_places_computes_what_it_does_at_one(name, way):
    make, draw = worker_models.MODELS[name]
    feeds = [feed for (feed,) in worker_models.batches_of(draw, [[6], [4], [6]])]
    whole = trained(make(), feeds, ol.CPUPlace(), **way)
    assert_same(trained(divided(make()), feeds, TWO, **way), whole)
    assert_same(trained(divided(make()), feeds, ol.CPUPlace(), **way), whole)


@pytest.mark.mission("F19")
@pytest.mark.parametrize("way", WAYS[:3], ids=["plan", "without passes", "interpreter"])
@pytest.mark.parametrize("make", [worker_models.digits, recurrent], ids=["digits", "recurrent"])
def test_each_value_is_where_its_ops_run(monkeypatch, make, way):
    places = [stand_in(monkeypatch), ol.GPUPlace(1)]
    program = divided(make())
    ((feed,),) = worker_models.batches_of(worker_models.of_classes, [[6]])
    scope = ol.init(program, ol.Scope())
    step = ol.Executor(places, **way).prepare(program, list(program.targets), scope=scope, return_numpy=False)
    with waits_noted():
        held = {name: torch.as_tensor(value).to(places[0].device) for name, value in feed.items()}
        for _ in range(2):
            step(held)
        found = {var.name: scope[var.name].device for var in program.persistables()}
    assert found == {var.name: places[var.place].device for var in program.persistables()}
    assert len(set(found.values())) == 2


def test_random_programs_at_random_places_compute_what_they_do_at_one():
    assert sum(check_places(make(22, number), Random(number)) > 0 for number in range(6)) > 3


def two_layers():
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", shape=[8])
        hidden = ol.layer.fc(x, 16, act="relu", name="first")
        with ol.at_place(1):
            y = ol.layer.fc(hidden, 4, name="second")
        cost = ol.layer.mean(ol.op.square(y))
        ol.optimizer.Adam(0.01).minimize(cost)
    return program, cost


def test_parameters_and_what_optimizers_keep_beside_them_lie_at_the_place_that_the_program_names():
    program, _ = two_layers()
    places = {var.name: var.place for var in program.persistables()}
    assert {name for name, place in places.items() if place} == {
        f"second.{part}{state}" for part in "wb" for state in ("", "@MOMENT1", "@MOMENT2")
    }
    assert "parameter second.w: float32[16, 4] place(1) = uniform(" in str(program)
    assert "state second.w@MOMENT1: float32[16, 4] place(1) = constant(value=0.0)" in str(program)


def test_a_place_is_part_of_a_program():
    program, _ = two_layers()
    for copy in (program.clone(), ol.parse_program(str(program)), ol.Program.from_bytes(program.to_bytes())):
        assert [var.place for var in copy.persistables()] == [var.place for var in program.persistables()]
        assert ol.content_hash(copy) == ol.content_hash(program)
    other = program.clone()
    other.main.vars["second.b"].place = 2
    other.changed()
    assert ol.content_hash(other) != ol.content_hash(program)
    assert "place: 1 became 2" in str(ol.diff_programs(program, other))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("state s: float32[2] place(2147483648) = constant(value=0.0)", 'variable "s" is at place 2147483648'),
        ("var s: float32[2] place(1)", 'variable "s" has a place, so it must be persistable'),
    ],
)
def test_a_place_of_what_is_not_kept_and_one_that_is_too_large_are_refused(text, message):
    with pytest.raises(ol.VerifyError) as caught:
        ol.parse_program(f"program seed=0\n\nblock main() {{\n  {text}\n}}\n")
    assert message in caught.value.message


MOVES = [
    ("relu_0", 1),  # the result of the first layer, and its gradients back
    ("first.out@GRAD", 0),
    ("first.b@GRAD", 0),
    ("@STEP@NEXT", 1),  # for the updates
    ("adam_0.learning_rate", 1),
]


def test_an_op_runs_where_its_parameters_are_and_what_it_reads_is_moved_there_once():
    program, cost = two_layers()
    places = find_places(program.main.ops, standard)
    assert {op.type: places[op] for op in program.main.ops if op.type in ("relu", "square", "mean")} == {"relu": 0, "square": 1, "mean": 1}
    copy = program.clone()
    write_moves(copy, standard)
    moves = [op for op in copy.main.ops if op.type == "move"]
    assert [(op.reads[0].name, op.attributes["place"]) for op in moves] == MOVES
    assert [var.name for op in copy.main.tail for var in op.writes] == [var.name for op in program.main.tail for var in op.writes]
    assert "with device_" in ol.Executor(TWO).plan(program, [cost]).text


def test_one_update_of_many_parameters_is_of_those_of_one_place():
    def updates(program):
        text = ol.Executor(TWO).plan(program, program.targets.values()).text
        return sum("multi_tensor_adam" in line for line in text.splitlines())

    assert [updates(make()) for make in (worker_models.digits, lambda: divided(worker_models.digits()))] == [1, 2]


def test_a_value_can_be_moved_by_hand_and_its_gradient_comes_back(monkeypatch):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3])
        x.stop_gradient = False
        y = ol.op.tanh(ol.op.move(x, 1))
        cost = ol.op.reduce_sum(ol.op.square(y))
        (dx,) = ol.gradients(cost, [x])
    feed = {"x": numpy.array([[0.1, -0.2, 0.3]], "float32")}
    expected = 2 * numpy.tanh(feed["x"]) * (1 - numpy.tanh(feed["x"]) ** 2)
    for way in WAYS:
        numpy.testing.assert_allclose(ol.Executor(TWO, **way).run(program, feed, [dx], scope=ol.Scope())[0], expected, rtol=1e-6)
    places = [stand_in(monkeypatch), ol.GPUPlace(1)]
    for way in WAYS[:3]:
        step = ol.Executor(places, **way).prepare(program, [y, dx], scope=ol.Scope(), return_numpy=False)
        with waits_noted():
            values = step({"x": torch.tensor(feed["x"]).to(places[0].device)})
        assert [value.device.index for value in values] == [1, 1]


def test_a_program_that_names_more_places_than_there_are_is_refused():
    program, cost = two_layers()
    for var in program.persistables():
        var.place *= 3
    program.changed()
    for way in WAYS[:3]:
        scope = ol.init(program, ol.Scope())
        with pytest.raises(ol.ArgumentError) as caught:
            ol.Executor(TWO, **way).run(program, {"x": numpy.ones((2, 8), "float32")}, [cost], scope=scope)
        assert caught.value.message == "the program uses place 3, but this run has only 2 places, numbered from 0"
        assert caught.value.given == ("place 0: CPUPlace()", "place 1: CPUPlace()")
        assert caught.value.hint == "pass one place for everything, or as many as the program uses"


def test_a_move_inside_a_block_is_refused():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[4], batch="t")
        rnn = ol.rnn()
        with rnn.step():
            step = rnn.step_input(x)
            rnn.output(ol.op.move(step, 1))
        y = rnn()
    feed = {"x": numpy.ones((3, 4), "float32")}
    assert ol.Executor().run(program, feed, [y], scope=ol.Scope())[0].shape == (3, 4)
    for way in WAYS[:3]:
        with pytest.raises(ol.ProgramError, match=r"^main/rnn_0.body runs at one place, and a move stands in it\n"):
            ol.Executor(TWO, **way).run(program, feed, [y], scope=ol.Scope())


def test_a_backend_is_for_one_place():
    for backend in ("inductor", "cuda_graphs"):
        with pytest.raises(ol.ArgumentError) as caught:
            ol.Executor(TWO, backend=backend)
        assert caught.value.message == f'backend="{backend}" supports one place, not 2'
        assert caught.value.given == ("CPUPlace()", "CPUPlace()")


def test_a_parameter_that_says_its_place_says_it_against_the_place_around_it():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[8])
        with ol.at_place(2):
            ol.layer.fc(x, 4, name="mine", weight=ol.layer.ParameterOptions(place=1))
            with ol.at_place(0):
                ol.layer.fc(x, 4, name="inner")
            ol.layer.batch_norm(ol.layer.fc(x, 4, name="mine"), name="norm")
    assert {var.name: var.place for var in program.persistables()} == {
        "mine.w": 1, "mine.b": 2, "inner.w": 0, "inner.b": 0, "norm.scale": 2, "norm.bias": 2, "norm.mean": 2, "norm.variance": 2
    }  # fmt: skip
    with program, pytest.raises(ol.ArgumentError) as caught:
        ol.layer.fc(x, 4, name="mine", weight=ol.layer.ParameterOptions(place=0))
    assert caught.value.message == '"mine.w" is needed at place 0, but is already declared at place 1'
    for bad in (-1, 1.5, "gpu", True, None):
        with pytest.raises(ol.ArgumentError, match="^the number of a place must be an integer >= 0"), ol.at_place(bad):
            pass


def test_a_module_of_pytorch_lies_where_it_is_imported():
    with ol.at_place(1):
        imported = ol.from_torch(torch.nn.Linear(3, 2), (torch.ones(4, 3),))
    assert {var.name: var.place for var in imported.program.persistables()} == {"weight": 1, "bias": 1}


def test_a_saved_model_and_quantized_weights_keep_their_places(tmp_path):
    program, cost = two_layers()
    scope = ol.init(program, ol.Scope())
    ol.save_model(cost, scope, tmp_path / "model.safetensors")
    loaded = ol.load_model(tmp_path / "model.safetensors")
    assert loaded.program.main.vars["second.w"].place == 1
    assert {var.place for var in ol.quantize(loaded, at_least=1).program.persistables() if var.name.startswith("second.w@")} == {1}
