import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
import torch

import oarlock as ol
from oarlock.proto import program_pb2 as wire

X = numpy.linspace(-1, 1, 12, dtype="float32").reshape(4, 3)
Y = X.sum(1, keepdims=True)


def regression(seed=5):
    """A net whose forward part is written with layers: x -> fc -> mse against y. Returns it with its cost."""
    net = ol.Net(ol.Program(seed=seed))
    with net.program:
        predict = ol.layer.fc(ol.layer.data("x", shape=[3]), 1, name="fc")
        cost = ol.layer.mse(predict, ol.layer.data("y", shape=[1]))
    return net, cost


def filled(net):
    scope = ol.Scope()
    net.init_variables(scope)
    scope.set("x", X)
    scope.set("y", Y)
    return scope


@pytest.mark.mission("N1", "C13", "N3")
def test_a_net_is_a_face_of_a_block_and_owns_no_variable():
    net, cost = regression()
    assert list(net) == net.block.ops
    assert (len(net), net[0], repr(net)) == (4, cost.block.ops[0], "<Net of 4 ops>")
    ol.op.neg(cost)  # what is written into the block is in the net
    assert (len(net), net[4].type) == (5, "neg")
    assert ol.Net(net.program).block is net.block
    scope = filled(net)
    net.run(scope)
    assert cost.name in scope
    other = filled(net)
    assert cost.name not in other
    assert not any(isinstance(value, torch.Tensor) for value in vars(net).values())


@pytest.mark.mission("B46")
def test_a_net_of_a_program_is_its_main_block():
    """An op that a net adds is in the block, and one that is written into the block is in the net."""
    net, cost = regression()
    for other in (ol.Net(net.program), ol.Net(net.block)):
        assert other.block is net.block is net.program.main
        index = other.add_op("neg", {"x": cost})
        assert net[index] is other[index] is net.block.ops[index]
    assert len(net) == 6
    net.add_backward_ops(cost)
    assert list(ol.Net(net.program)) == net.block.ops


@pytest.mark.mission("N2", "N16", "N15")
def test_a_net_is_made_of_a_description_which_is_verified():
    net, cost = regression()
    desc = net.desc
    assert isinstance(desc, wire.BlockDesc)
    sources = [desc, net.program.to_bytes(), wire.ProgramFile.FromString(net.program.to_bytes()).program]
    values = []
    for source in sources:
        made = ol.Net(source)
        assert made.desc == desc
        scope = ol.Scope()
        scope.set("fc.w", numpy.ones((3, 1), "float32"))
        scope.set("fc.b", numpy.ones(1, "float32"))
        scope.set("x", X)
        scope.set("y", Y)
        made.run(scope)
        values.append(float(scope[cost.name]))
    assert values == pytest.approx([1, 1, 1])
    desc.ops[0].type = "recursive"
    with pytest.raises(ol.UnknownOperatorError, match='^main, op 0 .recursive.: no operator "recursive"'):
        ol.Net(desc)
    desc.ops[0].type = "linear"
    desc.ops[0].inputs[0].vars[0] = "nobody"
    with pytest.raises(ol.VerifyError, match='^main, op 0 .linear.: "nobody" is not declared in this block'):
        ol.Net(desc)
    with pytest.raises(ol.ArgumentError, match="^a net needs a program or a description of one, not int 3"):
        ol.Net(3)


@pytest.mark.mission("N10", "N11", "N12")
def test_adding_an_op_infers_its_shapes_and_returns_its_place():
    net = ol.Net()
    with net.program:
        ol.layer.data("x", shape=[3])
        w = ol.layer.data("w", shape=[3, 2], batch=None)
    assert net.add_op("linear", {"x": "x", "w": w}, {"out": "h"}) == 0
    assert net.add_op("cast", {"x": "h"}, {"y": "p"}, {"dtype": "float32"}, name="top") == 1
    desc = wire.OpDesc(type="softmax", name="last")
    desc.inputs.add(name="x", vars=["p"])
    desc.outputs.add(name="y", vars=["r"])
    desc.attributes.add(name="axis", int=0)
    assert net.add_op(desc) == 2
    assert net[2].attributes == {"axis": 0}
    assert net.add_op("concat", {"xs": ["h", "r"]}, attributes={"axis": 1}) == 3
    assert [op.type for op in net] == ["linear", "cast", "softmax", "concat"]
    assert [op.name for op in net] == ["", "top", "last", ""]
    assert net.block.var("r").type_text == "float32[n, 2]"
    assert net[3].writes[0].type_text == "float32[n, 4]"
    assert net[1].attributes["dtype"] is ol.DType.FLOAT32
    before = net.desc
    with pytest.raises(ol.ShapeError, match="^linear: .*k is 2"):
        net.add_op("linear", {"x": "h", "w": w})
    with pytest.raises(ol.UndefinedVarError, match='^"q" is not visible in main'):
        net.add_op("relu", {"x": "q"})
    with pytest.raises(ol.ProgramError, match='^relu: it cannot define "p", which already has a value'):
        net.add_op("relu", {"x": "h"}, {"y": "p"})
    with pytest.raises(ol.ArgumentError, match='^relu: it has no input slot "input"'):
        net.add_op("relu", {"input": "h"})
    with pytest.raises(ol.ArgumentError, match='^relu: it has no output slot "out"'):
        net.add_op("relu", {"x": "h"}, {"out": "q"})
    with pytest.raises(ol.ArgumentError, match='^relu: output slot "y" defines 1 variables, but 2 are given'):
        net.add_op("relu", {"x": "h"}, {"y": ["q", "r"]})
    with pytest.raises(ol.ArgumentError, match='^relu: input slot "x" takes one variable, not 2'):
        net.add_op("relu", {"x": ["h", "p"]})
    with pytest.raises(ol.ProgramError, match='^the name "top" is already used in this program'):
        net.add_op("relu", {"x": "h"}, name="top")
    assert net.desc == before


@pytest.mark.mission("N12")
def test_an_index_stays_while_ops_are_appended_and_updates_stay_last():
    net, cost = regression()
    places = {op: index for index, op in enumerate(net)}
    net.add_backward_ops(cost)
    net.add_optimizer_ops(ol.optimizer.SGD())
    index = net.add_op("neg", {"x": cost})
    assert all(net[place] is op for op, place in places.items())
    assert net[index].type == "neg"
    assert index + 1 + len(net.block.tail) == len(net)


@pytest.mark.mission("N4", "N6", "B46")
def test_a_range_is_half_open_and_a_scope_may_be_the_current_one():
    net, cost = regression()
    scope = filled(net)
    net.run(scope, begin=0, end=2)
    assert ("subtract_0" in scope, "square_0" in scope) == (True, False)
    net.run(scope, begin=2)
    whole = filled(net)
    net.run(whole)
    assert scope[cost.name] == whole[cost.name]
    with ol.scope.guard(filled(net)) as current:
        net.run()
    assert current[cost.name] == whole[cost.name]
    context = ol.Context(filled(net))
    net.run(context=context)
    assert context.scope[cost.name] == whole[cost.name]
    with pytest.raises(ol.ArgumentError, match=r"^there are no ops \[-1, -1\) in main"):
        net.run(scope, begin=-1, end=-1)


@pytest.mark.mission("N5", "N7")
def test_the_context_is_handed_in_and_ops_run_one_after_the_other():
    """The interpreter is the naive executor: what a run stopped anywhere leaves is what the ops before that made."""
    net = ol.Net()
    with net.program:
        y = ol.layer.dropout(ol.layer.data("x", shape=[3]), rate=0.5)
        ol.op.neg(y, name="z")
    scope = ol.Scope()
    scope.set("x", numpy.ones((16, 3), "float32"))
    net.run(scope)
    assert scope["z"].unique().tolist() == [-1]
    net.run(scope, ol.Context(scope, ol.CPUPlace(), training=True), 0, 1)
    assert scope[y.name].unique().tolist() == [0, 2]
    assert scope["z"].unique().tolist() == [-1]
    net.run(scope, begin=1)
    assert scope["z"].unique().tolist() == [-2, 0]


@pytest.mark.mission("N8", "C23")
def test_an_error_names_the_op_and_the_line_and_nothing_is_returned():
    net = ol.Net()
    with net.program:
        x = ol.layer.data("x", shape=[2], batch=None)
        table = ol.layer.data("table", shape=[2, 3], batch=None)
        logits = ol.op.reshape(table, shape=(2, 3))
        cost = ol.layer.softmax_with_cross_entropy(logits, ol.op.cast(x, dtype="int64"))
    scope = ol.Scope()
    scope.set("x", numpy.array([1, 2], "float32"))
    scope.set("table", numpy.zeros((2, 3), "float32"))
    assert net.run(scope) is None
    scope.set("x", numpy.array([1, 99], "float32"))
    with pytest.raises(ol.KernelError, match="^softmax_with_cross_entropy: ") as refused:
        net.run(scope)
    assert refused.value.location.text.startswith("cost = ol.layer.softmax_with_cross_entropy(")
    assert refused.value.op == cost.op.type


def refusing():
    """A net whose label may be no class: in the main block, in a step of a loop, and in the gradient of each."""
    net = ol.Net()
    with net.program:
        logits = ol.layer.data("logits", shape=["n", 3], batch="t")
        label = ol.layer.data("label", shape=["n"], dtype="int64", batch="t")
        loop = ol.rnn()
        with loop.step():
            loop.output(ol.layer.cross_entropy(loop.step_input(logits), loop.step_input(label)))  # in the step
        cost = ol.op.reduce_sum(loop())
    net.add_backward_ops(cost)
    return net, cost


@pytest.mark.mission("N8", "C23")
@pytest.mark.parametrize("run", ["net", "block", "executor", "interpreter", "step", "eval"])
def test_every_way_to_run_raises_an_error_with_the_op_and_the_line_that_wrote_it(run):
    """Of an op in a step too. What came before the op is there, and nothing is returned that could be overlooked."""
    net, cost = refusing()
    feed = {"logits": numpy.zeros((2, 1, 3), "float32"), "label": numpy.array([[0], [5]])}
    scope = ol.Scope()
    for name, value in feed.items():
        scope[name] = value
    runs = {
        "net": lambda: net.run(scope),
        "block": lambda: net.block.run(scope),
        "executor": lambda: ol.Executor().run(net.program, feed, [cost], scope=ol.Scope()),
        "interpreter": lambda: ol.Executor(interpret=True).run(net.program, feed, [cost], scope=ol.Scope()),
        "step": lambda: ol.Executor().prepare(net.program, [cost], scope=ol.Scope())(feed),
        "eval": lambda: net.block.eval(cost, scope),
    }
    with pytest.raises(ol.KernelError) as raised:
        runs[run]()
    assert raised.value.op == "softmax_with_cross_entropy"
    assert raised.value.location.text.endswith("# in the step")
    assert raised.value.location.file.endswith("test_network.py")


@pytest.mark.mission("N8")
@pytest.mark.parametrize("fault", ["no value", "shape", "dtype"])
def test_an_op_that_cannot_run_is_named_with_its_line_whatever_is_wrong(fault):
    net = ol.Net()
    with net.program:
        x = ol.layer.data("x", shape=[2])
        y = ol.layer.data("y", shape=[2])
        ol.op.neg(x, name="before")
        ol.op.add(x, y, name="z")
    scope = ol.Scope()
    scope["x"] = numpy.ones((3, 2), "float32")
    if fault != "no value":
        scope["y"] = numpy.ones((3, 2) if fault == "dtype" else (4, 2), "float64" if fault == "dtype" else "float32")
    errors = {"no value": ol.UnsetVarError, "shape": ol.ShapeError, "dtype": ol.DTypeError}
    with pytest.raises(errors[fault], match='"y"') as raised:
        net.run(scope)
    line = 'ol.op.add(x, y, name="z")' if fault == "no value" else 'y = ol.layer.data("y", shape=[2])'
    assert raised.value.location.text == line
    assert (raised.value.op == "add") == (fault == "no value")


@pytest.mark.mission("N9")
def test_shapes_are_inferred_anew_for_each_minibatch():
    net, cost = regression()
    scope = filled(net)
    assert net.infer_shape(scope)["fc.out"].shape == (4, 1)
    scope.set("x", X[:2])
    with pytest.raises(ol.ShapeError, match=r'^"y" is declared as float32\[n, 1\], but is float32\[4, 1\] \(n = 2 elsewhere\)'):
        net.infer_shape(scope)
    with pytest.raises(ol.ShapeError, match='^"y" is declared'):
        net.run(scope)
    scope.set("y", Y[:2])
    with ol.scope.guard(scope):
        assert net.infer_shape()["fc.out"].shape == (2, 1)
    net.run(scope)
    assert tuple(scope["fc.out"].shape) == (2, 1)
    assert net.infer_shape(scope)[cost.name] == (ol.DType.FLOAT32, ())


@pytest.mark.mission("N13", "C24")
def test_an_optimizer_updates_each_parameter_once_even_a_shared_one():
    net = ol.Net()
    with net.program:
        x = ol.layer.data("x", shape=[3])
        h = ol.layer.fc(ol.layer.fc(x, 3, params=["w", "b"]), 3, params=["w", "b"])
        cost = ol.layer.mean(ol.op.square(h))
    with pytest.raises(ol.ProgramError, match="^there are no gradients to update parameters with"):
        net.add_optimizer_ops(ol.optimizer.SGD())
    gradients = {parameter.name: gradient.name for parameter, gradient in net.add_backward_ops(cost)}
    net.add_optimizer_ops({"type": "SGD", "learning_rate": 0.5})
    assert sorted(op.writes[0].name for op in net.block.tail) == ["@STEP", "b", "w"]
    with pytest.raises(ol.ProgramError, match='^"w" is already updated by an optimizer'):
        net.add_optimizer_ops(ol.optimizer.Adam())
    scope = ol.Scope()
    net.init_variables(scope)
    scope.set("x", X)
    w, rate = scope["w"].clone(), float(scope["sgd_0.learning_rate"])
    net.run(scope)
    assert rate == 0.5
    assert torch.allclose(scope["w"], w - 0.5 * scope[gradients["w"]])


def test_an_optimizer_is_given_by_its_attributes():
    net, cost = regression()
    net.add_backward_ops(cost)
    with pytest.raises(ol.ArgumentError, match=r"^there is no optimizer 'adm'(?s:.*)did you mean \"adam\""):
        net.add_optimizer_ops({"type": "adm"})
    with pytest.raises(ol.ArgumentError, match="^Adam: no argument speed\n"):
        net.add_optimizer_ops({"type": "adam", "speed": 1})
    with pytest.raises(ol.ArgumentError, match="^expected an optimizer or its attributes, not str 'adam'"):
        net.add_optimizer_ops("adam")
    net.add_optimizer_ops({"type": "adam", "learning_rate": 0.25, "beta1": 0.5})
    (one, _) = [op for op in net if op.type == "adam"]
    assert one.attributes["beta1"] == 0.5


@pytest.mark.mission("N14")
def test_backward_ops_are_appended_once_and_may_be_taken_away():
    net, cost = regression()
    forward = net.desc
    pairs = net.add_backward_ops(cost.name)
    assert [parameter.name for parameter, _ in pairs] == ["fc.w", "fc.b"]
    with pytest.raises(ol.ProgramError, match="^this net already has backward ops"):
        net.add_backward_ops(cost)
    net.add_optimizer_ops(ol.optimizer.Momentum())
    scope = filled(net)
    net.run(scope)
    residual = scope["fc.out"] - torch.tensor(Y)
    assert torch.allclose(scope["fc.b@GRAD"], 2 * residual.mean(0), atol=1e-6)
    net.remove_backward_ops()
    assert net.desc == forward
    net.add_backward_ops(cost)


def test_what_a_loop_needs_is_taken_away_with_its_gradient():
    net = ol.Net()
    with net.program:
        xs = ol.layer.data("xs", shape=[2], batch="t")
        loop = ol.rnn()
        with loop.step():
            loop.output(ol.layer.fc(loop.step_input(xs), 2, name="fc"))
        cost = ol.layer.mean(loop())
    net.add_backward_ops(cost)
    assert len(net.program.blocks) == 3
    net.remove_backward_ops()
    assert len(net.program.blocks) == 2
    scope = filled(net)
    scope.set("xs", numpy.ones((3, 2), "float32"))
    net.run(scope)


@pytest.mark.mission("N17", "A37")
def test_the_life_of_a_net():
    """Create variables, initialise them, create the net, add ops, backward, optimizer, run; the scope knows no place."""
    zeros = ol.initializer.constant(0.0)((3, 1))
    net = ol.Net()
    with net.program:
        ol.layer.data("x", shape=[3])
        ol.layer.data("y", shape=[1])
        net.block.new_var(
            "w",
            ol.DType.FLOAT32,
            (3, 1),
            persistable=True,
            parameter=True,
            trainable=True,
            initializer=zeros,
        )
    net.add_op("linear", {"x": "x", "w": "w"}, {"out": "predict"})
    net.add_op("subtract", {"x": "predict", "y": "y"}, {"z": "error"})
    net.add_op("square", {"x": "error"}, {"y": "squared"})
    net.add_op("mean", {"x": "squared"}, {"y": "cost"})
    net.add_backward_ops("cost")
    net.add_optimizer_ops({"type": "sgd", "learning_rate": 0.3})
    scope = ol.Scope()
    net.create_variables(scope)
    assert set(net.block.vars) == set(scope)
    assert {variable.state for variable in map(scope.find_var, scope)} == {ol.runtime.State.DECLARED}
    net.init_variables(scope)
    assert (scope["w"].tolist(), scope.find_var("cost").is_set) == ([[0], [0], [0]], False)
    scope.set("x", X)
    scope.set("y", Y)
    costs = []
    for _ in range(20):
        net.run(scope, ol.Context(scope, ol.CPUPlace(), training=True))
        costs.append(float(scope["cost"]))
    assert costs[0] == pytest.approx(float((Y**2).mean()))
    assert costs[-1] < 0.01 * costs[0]


def test_variables_are_created_where_no_parent_has_what_persists():
    net, _ = regression()
    parent = ol.Scope()
    net.init_variables(parent)
    child = parent.new_scope()
    net.create_variables(child)
    assert ("fc.w" in list(child), "fc.out" in list(child), "x" in list(child)) == (False, True, True)
    child.set("x", X)
    child.set("y", Y)
    net.run(child)


@pytest.mark.mission("B45")
def test_variables_are_made_once_and_used_again_by_every_run():
    """To create variables a second time, between runs or before them, finds those that are there, with what they hold."""
    net, _ = regression()
    scope = ol.Scope()
    net.create_variables(scope)
    made = {name: scope.find_var(name) for name in net.block.vars}
    assert None not in made.values()
    net.init_variables(scope)
    scope.set("x", X)
    scope.set("y", Y)
    before = {name: scope[name].tolist() for name in ("x", "y", "fc.w", "fc.b")}
    net.create_variables(scope)
    assert {name: scope[name].tolist() for name in before} == before
    net.run(scope)
    out = scope["fc.out"].tolist()
    net.create_variables(scope)
    assert scope["fc.out"].tolist() == out, "what a run has computed stays too"
    net.run(scope)
    assert {name: scope.find_var(name) is variable for name, variable in made.items()} == dict.fromkeys(made, True)


@pytest.mark.mission("N23")
def test_a_step_net_runs_in_the_scope_of_its_step_and_reads_what_is_around():
    net = ol.Net()
    with net.program:
        x, state = (ol.layer.data(name, shape=[2], batch=None) for name in ("x", "state"))
        ol.op.add(ol.layer.fc(x, 2, name="fc"), state, name="next")
    around = ol.Scope()
    net.init_variables(around)
    around.set("fc.w", numpy.eye(2, dtype="float32"))
    around.set("state", numpy.zeros(2, "float32"))
    state = around["state"]
    for step in range(3):
        scope = around.new_scope(str(step))
        scope.set("x", numpy.array([step, 1], "float32"))
        scope.set("state", state)
        net.run(scope)
        state = scope["next"]
    assert [child["next"].tolist() for child in around.children] == [[0, 1], [1, 2], [3, 3]]
    assert ("next" in list(around), around["state"].tolist()) == (False, [0, 0])


@pytest.mark.mission("E9", "C14")
def test_tracing_is_pruning_of_the_block_so_order_and_skips_are_right():
    """x -> a -> b -> c, and c also takes x: by distance to the output, as the issue sorts, x's op would come last."""
    with ol.Program() as program:
        x = ol.op.square(ol.layer.data("raw", shape=[2]), name="x")
        a = ol.op.neg(x, name="a")
        b = ol.op.add(a, a, name="b")
        c = ol.op.add(b, x, name="c")
        ol.op.tanh(c, name="aside")
    scope = ol.Scope()
    net = ol.Net.trace_and_build(c, scope)
    assert [op.writes[0].name for op in net] == ["x", "a", "b", "c"]
    scope.set("raw", numpy.array([[1, 2]], "float32"))
    net.run(scope)
    assert (scope["c"].tolist(), "aside" in scope) == ([[-1, -4]], False)
    assert len(program.main.ops) == 5


@pytest.mark.mission("E10", "E9")
def test_trace_build_and_run_in_the_default_scope():
    with ol.scope.guard(ol.Scope()), ol.Program():
        y = ol.layer.fc(ol.minibatch([1, 2]), 2, name="fc")
        ol.Net.trace_and_build(y, ol.cpp.default_scope()).run(ol.cpp.default_scope())
        assert torch.equal(ol.scope.current()[y.name], torch.tensor([[1.0], [2.0]]) * ol.scope.current()["fc.w"])


@pytest.mark.mission("B24")
def test_what_is_pruned_is_shipped_and_run_elsewhere(tmp_path):
    """Bytes are all that the other process has of the program."""
    net, cost = regression()
    net.add_backward_ops(cost)
    net.add_optimizer_ops(ol.optimizer.SGD())
    kept = ol.prune(net.program, {"predict": net.block.var("fc.out")})
    (tmp_path / "predict.program").write_bytes(kept.to_bytes(source=False))
    script = """
import sys, numpy, oarlock as ol
net = ol.Net(open(sys.argv[1], "rb").read())
scope = ol.Scope()
scope.set("fc.w", numpy.array([[1], [2], [3]], "float32"))
scope.set("fc.b", numpy.array([10], "float32"))
scope.set("x", numpy.array([[1, 1, 1], [0, 0, 1]], "float32"))
net.run(scope)
print([op.type for op in net], scope["fc.out"].tolist())
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(ol.__file__).parent.parent)}
    command = [sys.executable, "-c", script, tmp_path / "predict.program"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "['linear'] [[16.0], [13.0]]\n"


@pytest.mark.mission("B47")
def test_what_is_shipped_of_a_loop_is_what_the_target_needs_of_it(tmp_path):
    """A memory that another one reads is kept though nobody asks for it, round after round; one that nothing needs is gone."""
    with ol.Program() as program:
        xs = ol.layer.data("xs", [], dtype="float64", batch="t")
        starts = [ol.layer.data(f"start{number}", [], dtype="float64", batch=None) for number in range(4)]
        loop = ol.rnn()
        with loop.step():
            x = loop.step_input(xs)
            memories = [loop.memory(init=start) for start in starts]
            first, second, third, lonely = (loop.previous_memory(memory) for memory in memories)
            loop.update_memory(memories[0], first + second)  # which reads the second, which reads the third, which reads x
            loop.update_memory(memories[1], second * third)
            loop.update_memory(memories[2], third + x)
            loop.update_memory(memories[3], ol.op.exp(lonely))
            loop.output(first, lonely)
        wanted, _ = loop()
    kept = ol.prune(program, {"wanted": wanted})
    read = ol.Program.from_bytes(kept.to_bytes(source=False))
    assert [var.name for var in read.main.inputs] == ["xs", "start0", "start1", "start2"]
    assert [op.type for op in read.blocks[1].ops] == ["add", "multiply", "add"]
    assert program.main.find_var("start3") is not None  # which is as it was
    feed = {"xs": numpy.array([1.0, 2.0, 3.0, 4.0]), "start0": 1.0, "start1": 2.0, "start2": 3.0}
    first, second, third, expected = 1.0, 2.0, 3.0, []
    for x in feed["xs"]:
        expected.append(first)
        first, second, third = first + second, second * third, third + x
    assert ol.Executor().run(read, feed, ["wanted"], scope=ol.Scope())[0].tolist() == expected
    with pytest.raises(ol.UndefinedVarError, match="target"):
        ol.prune(read, {"lonely": program.main.var("xs")})


@pytest.mark.mission("B1", "C5")
def test_a_model_with_a_loop_its_gradient_and_its_update_is_nested_blocks_and_nothing_else():
    """No layer object and no graph: blocks in one list, each with its parent, printed nested, are all that there is."""
    net = ol.Net(ol.Program(seed=4))
    with net.program:
        xs = ol.layer.data("xs", shape=[2], batch="t")
        start = ol.layer.data("start", shape=[2], batch=None)
        loop = ol.rnn()
        with loop.step():
            memory = loop.memory(init=start)
            both = loop.step_input(xs) + loop.previous_memory(memory)
            loop.update_memory(memory, ol.layer.fc(both, 2, act="tanh", name="fc"))
        loop()
        cost = ol.layer.mean(ol.op.square(loop.final_memory(memory)))
    net.add_backward_ops(cost)
    net.add_optimizer_ops(ol.optimizer.SGD(0.5))
    program = net.program
    assert [(block.parent.index if block.parent else None) for block in program.blocks] == [None, 0, 0]
    depths = [len(line) - len(line.lstrip()) for line in program.to_text(source=False).splitlines() if line.lstrip().startswith("block ")]
    assert depths == [0, 4, 4]
    read = ol.Net(program.to_bytes(source=False))
    assert read.program.to_text() == program.to_text(source=False)
    costs = []
    for made in (net, read):
        scope = ol.Scope()
        made.init_variables(scope)
        scope.set("xs", numpy.ones((5, 2), "float32"))
        scope.set("start", numpy.zeros(2, "float32"))
        costs.append([])
        for _ in range(4):
            made.run(scope)
            costs[-1].append(float(scope[cost.name]))
    assert costs[0] == costs[1] == sorted(costs[0], reverse=True)
    assert costs[0][-1] < costs[0][0]


@pytest.mark.mission("F22")
def test_the_operations_of_a_block_are_a_graph_without_cycles():
    """Each op reads what ops before it define; a file that says otherwise is refused."""
    net, cost = regression()
    net.add_backward_ops(cost)
    defined = {*net.block.inputs, *net.program.parameters()}
    for op in net:
        assert set(op.reads) <= defined
        defined.update(op.writes)
    desc = net.desc
    first = desc.ops[0]
    assert first.inputs[0].name == "x"
    first.inputs[0].vars[0] = first.outputs[0].vars[0]
    with pytest.raises(ol.VerifyError, match='^main, op 0 .linear.: it reads "fc.out" before that has a value'):
        ol.Net(desc)


def test_a_variable_of_another_program_is_refused_and_neither_program_grows():
    net, cost = regression()
    other, foreign = regression()
    before = net.program.to_bytes(), other.program.to_bytes()
    builder = ol.NetBuilder(net)
    for refused in (
        lambda: net.add_op("neg", {"x": foreign}),
        lambda: net.add_op("sum", {"xs": [cost, foreign]}),
        lambda: net.add_op("neg", {"x": cost}, {"y": foreign}),
        lambda: net.add_op("dropout", {"x": cost}, attributes={"rate": foreign}),
        lambda: net.add_backward_ops(foreign),
        lambda: builder.add_op("fc", input=foreign, size=2),
        lambda: builder.add_op("mse", input=[cost, foreign]),
        lambda: builder.add_op("mse", input=cost, target=foreign),
        lambda: builder.backward_from(foreign),
    ):
        with pytest.raises(ol.ProgramError) as raised:
            refused()
        assert raised.value.message == f'"{foreign.name}" belongs to another program than the net'
        assert raised.value.given[1] == f"it belongs to {other.program!r}, the net to {net.program!r}"
        assert (net.program.to_bytes(), other.program.to_bytes()) == before
