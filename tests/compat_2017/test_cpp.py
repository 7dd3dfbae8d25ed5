"""`ol.cpp`: layers as issue 3129 writes them, from variables of a scope and operators that read and write them."""

import numpy
import pytest
import torch

import oarlock as ol
from oarlock.runtime import State


@pytest.fixture
def scope():
    with ol.scope.guard(ol.Scope()) as scope, ol.Program():
        yield scope


@pytest.mark.mission("A38")
def test_a_variable_is_made_in_the_scope_and_named_when_nobody_does(scope):
    x = ol.cpp.variable(scope, "x", shape=["n", 3])
    first, second = ol.cpp.variable(scope), ol.cpp.variable(scope)
    w = ol.cpp.variable(scope, label="parameter", shape=[3, 2])
    b = ol.cpp.variable(scope, "b", label="parameter", shape=[2])
    assert list(scope) == ["x", first.name, second.name, w.name, "b"]
    assert {variable.state for variable in map(scope.find_var, scope)} == {State.DECLARED}
    assert len({x.name, first.name, second.name, w.name, b.name}) == 5
    assert ([var.parameter for var in (x, first, w, b)], w.trainable) == ([False, False, True, True], True)
    ol.init(x.block.program, scope)
    assert (scope[w.name].shape, scope["b"].tolist()) == ((3, 2), [0, 0])
    with pytest.raises(ol.ArgumentError, match="^label must be \"parameter\" or None, not 'weight'"):
        ol.cpp.variable(scope, label="weight", shape=[2])
    with pytest.raises(ol.ArgumentError, match="^a parameter needs a shape of numbers"):
        ol.cpp.variable(scope, label="parameter")
    with pytest.raises(ol.ArgumentError, match="^a parameter needs a shape of numbers"):
        ol.cpp.variable(scope, label="parameter", shape=["n", 2])


@pytest.mark.mission("A39")
def test_the_default_scope_is_the_current_one(scope):
    assert ol.cpp.default_scope() is scope
    with ol.scope.guard(ol.Scope()) as other:
        assert ol.cpp.default_scope() is other
    assert ol.cpp.default_scope() is scope


@pytest.mark.mission("E7", "A40")
def test_an_operator_reads_and_writes_variables_by_slot(scope):
    x = ol.cpp.variable(scope, "x", shape=["n", 3])
    w = ol.cpp.variable(scope, "w", label="parameter", shape=[3, 2])
    h, y = ol.cpp.variable(scope), ol.cpp.variable(scope)
    op = ol.cpp.operator("linear", read={"x": x, "w": w}, write={"out": h})
    cast = ol.cpp.operator("cast", read={"x": h}, write={"y": y}, dtype="float64")
    assert (x.readers, w.readers, h.writers, h.readers, y.readers) == ([op], [op], [op], [cast], [])
    assert (h.type_text, y.type_text) == ("float32[n, 2]", "float64[n, 2]")
    with pytest.raises(ol.ProgramError, match=f'^linear: it cannot define "{h.name}", which already has a value'):
        ol.cpp.operator("linear", read={"x": x, "w": w}, write={"out": h})
    with pytest.raises(ol.ArgumentError, match=r"^linear: read must be a dict of variables by slot, not a set(?s:.*)oarlock ops linear"):
        ol.cpp.operator("linear", read={x, w}, write={"out": h})
    with pytest.raises(ol.ArgumentError, match="^linear: w is missing"):
        ol.cpp.operator("linear", read={"x": x}, write={})


@pytest.mark.mission("E8")
def test_ops_refer_to_names_that_the_scope_of_a_run_binds(scope):
    x = ol.cpp.variable(scope, "x", shape=[2])
    y = ol.cpp.variable(scope, "y")
    ol.cpp.operator("square", read={"x": "x"}, write={"y": "y"})
    net = ol.Net(x.block.program)
    assert [(slot.name, list(slot.vars)) for slot in (*net.desc.ops[0].inputs, *net.desc.ops[0].outputs)] == [("x", ["x"]), ("y", ["y"])]
    scope.set("x", numpy.array([1, 2], "float32"))
    other = ol.Scope()
    other.set("x", numpy.array([3, 4], "float32"))
    net.run(scope)
    net.run(other)
    assert (scope[y.name].tolist(), other[y.name].tolist()) == ([1, 4], [9, 16])


def test_a_variable_that_nobody_wrote_cannot_be_read(scope):
    late = ol.cpp.variable(scope, "late")
    with pytest.raises(ol.UndefinedVarError, match=r'^relu: it reads "late" before an op writes it(?s:.*)declare inputs with their shape'):
        ol.cpp.operator("relu", read={"x": late}, write={})


def test_layers_written_so_are_the_layers(scope):
    def fc(input, output_size):
        output = ol.cpp.variable(scope)
        w = ol.cpp.variable(scope, label="parameter", shape=[input.shape[-1], output_size])
        b = ol.cpp.variable(scope, label="parameter", shape=[output_size])
        ol.cpp.operator("linear", read={"x": input, "w": w, "bias": b}, write={"out": output})
        return output

    x = ol.cpp.variable(scope, "x", shape=["n", 3])
    y = fc(x, 2)
    ol.append_backward(ol.layer.mean(y))
    ol.init(x.block.program, scope)
    scope.set("x", numpy.ones((4, 3), "float32"))
    ol.run_block(x.block, scope)
    w, b = x.block.program.parameters()
    assert torch.allclose(scope[y.name], scope["x"] @ scope[w.name] + scope[b.name])
    assert scope[f"{b.name}@GRAD"].tolist() == [0.5, 0.5]
