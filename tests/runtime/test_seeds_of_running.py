"""The demands of the Block and Framework documents on blocks while they run, row by row."""

import gc

import numpy as np
import pytest
import torch

import oarlock as ol
from oarlock.proto import program_pb2 as wire
from oarlock.registry import Catalogue
from oarlock.runtime.interpreter import Interpreter


def running_product():
    """A loop that multiplies its steps."""
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2], batch="t")
        scale = ol.layer.data("scale", shape=[2], batch=None)
        rnn = ol.rnn()
        with rnn.step():
            state = rnn.memory(init=scale)
            following = rnn.step_input(x) * rnn.previous_memory(state)
            rnn.update_memory(state, following)
            rnn.output(following)
        program.targets["y"] = rnn()
    return program


@pytest.mark.mission("A14", "F17")
def test_one_step_block_runs_in_a_scope_of_its_own_for_each_step(monkeypatch):
    program = running_product()
    body = program.blocks[1]
    entered = []
    original = Interpreter.run_block

    def run_block(self, block, scope, *arguments):
        entered.append((block, scope, scope.parent))
        return original(self, block, scope, *arguments)

    monkeypatch.setattr(Interpreter, "run_block", run_block)
    scope = ol.Scope()
    ol.Executor(interpret=True).run(program, {"x": np.ones((3, 2), "float32"), "scale": np.ones(2, "float32")}, ["y"], scope=scope)
    assert [block for block, _, _ in entered] == [body] * 3
    assert len({id(scope) for _, scope, _ in entered}) == 3
    assert [scope.name for _, scope, _ in entered] == ["0", "1", "2"]
    assert len({id(parent) for _, _, parent in entered}) == 1
    assert entered[0][2].name == "rnn_0"


@pytest.mark.mission("F13", "B28")
def test_a_sub_network_is_an_attribute_and_its_locals_stay_inside():
    program = running_product()
    (op,) = [op for op in program.main.ops if op.type == "recurrent"]
    body = op.attributes["body"]
    assert isinstance(body, type(program.main))
    assert body.parent is program.main
    assert body.find_var("scale") is program.main.vars["scale"]
    assert program.main.find_var(body.ops[0].writes[0].name) is None


@pytest.mark.mission("F14", "C3")
def test_the_run_frees_the_scopes_of_its_steps_in_training_and_out_of_it():
    program = running_product()
    with program:
        (gradient,) = ol.gradients([ol.op.reduce_sum(program.targets["y"])], [program.main.vars["x"]])
    feed = {"x": np.ones((50, 2), "float32"), "scale": np.ones(2, "float32")}
    scope, executor = ol.Scope(), ol.Executor()
    for training in (True, False):
        executor.run(program, feed, [gradient], scope=scope, training=training)
        gc.collect()
        before = sum(type(item) is torch.Tensor for item in gc.get_objects())
        for _ in range(3):
            executor.run(program, feed, [gradient], scope=scope, training=training)
        gc.collect()
        assert sum(type(item) is torch.Tensor for item in gc.get_objects()) == before
        assert scope.children == []
        assert len(scope) == 0


@pytest.mark.mission("B1", "B2")
def test_a_program_is_nested_blocks_of_locals_and_ops_that_run_in_the_order_written():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[1])
        first = ol.layer.relu(x)
        second = ol.layer.tanh(x)
        third = ol.op.add(first, second)
    assert [op.type for op in program.main.ops] == ["relu", "tanh", "add"]
    ran = []
    catalogue = Catalogue()
    for type in ("relu", "tanh", "add"):
        known = ol.registry.standard.get(type)

        def kernel(*arguments, type=type, known=known):
            ran.append(type)
            return known.kernel(*arguments)

        catalogue.operators[type] = type_with(known, kernel)
    ol.Executor(catalogue=catalogue).run(program, {"x": np.ones((1, 1), "float32")}, [first, second, third], scope=ol.Scope())
    assert ran == ["relu", "tanh", "add"]
    desc = wire.ProgramFile.FromString(running_product().to_bytes()).program
    assert [block.name for block in desc.blocks] == ["main", "rnn_0.body"]
    assert [var.name for var in desc.blocks[1].vars] == ["x.step_0", "memory_0", "multiply_0"]


def type_with(known, kernel):
    """An operator like `known`, with another kernel."""
    copy = object.__new__(type(known))
    copy.__dict__.update(known.__dict__)
    copy.kernel = kernel
    copy.__dict__["wants_context"] = False
    return copy


@pytest.mark.mission("C5", "C6", "C16")
def test_a_file_is_a_flat_list_of_blocks_with_parents_of_ordered_ops_over_named_slots():
    desc = wire.ProgramFile.FromString(running_product().to_bytes()).program
    main, body = desc.blocks
    assert not main.HasField("parent")
    assert body.parent == 0
    (op,) = main.ops
    assert {slot.name: list(slot.vars) for slot in op.inputs} == {"sequences": ["x"], "initial": ["scale"], "free": []}
    assert {item.name: item.WhichOneof("value") for item in op.attributes} == {"body": "block", "reverse": "bool", "summed": "int"}
    assert [op.type for op in body.ops] == ["multiply"]


@pytest.mark.mission("C30")
def test_a_description_holds_data_only():
    program = running_product()
    for block in program.blocks:
        for op in block.ops:
            for value in op.attributes.values():
                assert not callable(value)
    assert ol.Program.from_bytes(program.to_bytes()).to_text() == program.to_text()


@pytest.mark.mission("F11")
def test_a_layer_calls_operators_and_declares_the_parameters_that_they_need():
    with ol.Program() as program:
        image = ol.layer.data("image", shape=[1, 4, 4])
        hidden = ol.layer.conv2d(image, filters=2, size=3, act="relu")
        ol.layer.fc(ol.layer.flatten(hidden), 5, act="tanh", initializer=ol.initializer.constant(0.5))
    assert [op.type for op in program.main.ops] == ["conv2d", "relu", "flatten", "linear", "tanh"]
    assert [(var.name, var.shape) for var in program.parameters()] == [
        ("conv2d_0.w", (2, 1, 3, 3)),
        ("conv2d_0.b", (2,)),
        ("fc_0.w", (8, 5)),
        ("fc_0.b", (5,)),
    ]
    scope = ol.init(program, ol.Scope())
    assert scope["fc_0.w"].tolist() == [[0.5] * 5] * 8


@pytest.mark.mission("F16")
def test_train_prepares_a_scope_and_a_place_and_says_that_it_trains():
    with ol.Program():
        x = ol.layer.data("x", shape=[50])
        kept = ol.layer.fc(ol.layer.dropout(x, rate=0.5), 1, bias=False, initializer=ol.initializer.constant(1.0))
        cost = ol.layer.mean(ol.op.square(kept - x))
    data = {"x": np.ones((1, 50), "float32")}
    scope = ol.Scope()
    result = ol.train(cost, data, scope=scope, place=ol.CPUPlace(), validate=data, optimizer=ol.optimizer.SGD(1e-9), progress=False)
    assert result.parameters is scope
    (epoch,) = result.history
    assert epoch.validation["loss"] == pytest.approx(49.0**2, rel=1e-4)  # nothing is dropped when it is measured
    assert epoch.training["loss"] != pytest.approx(49.0**2, rel=1e-4)


@pytest.mark.mission("F22")
def test_the_graph_of_operations_is_read_off_the_block():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3])
        y = ol.layer.mean(ol.layer.fc(x, 2, act="tanh"))
    edges = {(var.op.type, op.type) for op in program.main.ops for var in op.reads if var.op}
    assert edges == {("linear", "tanh"), ("tanh", "mean")}
    assert y.op is program.main.ops[-1]
