import keyword

import numpy
import pytest

import oarlock as ol
from oarlock.ir import Role
from oarlock.proto import program_pb2 as wire
from oarlock.registry import Catalogue, op_proto


def described(type, *, inputs, outputs, **fields):
    desc = wire.OpDesc(type=type, **fields)
    for slots, messages in ((inputs, desc.inputs), (outputs, desc.outputs)):
        for name, vars in slots.items():
            messages.add(name=name, vars=vars)
    return desc


@pytest.mark.mission("F3", "C26")
def test_an_operation_is_created_from_its_message_in_whatever_language_that_was_written():
    with ol.Program() as program:
        ol.layer.data("x", shape=[3])
        desc = described("cast", inputs={"x": ["x"]}, outputs={"y": ["wide"]}, name="widen")
        desc.attributes.add(name="dtype", dtype=wire.FLOAT64)
        op = ol.framework.create_operation(wire.OpDesc.FromString(desc.SerializeToString()))
    assert (op.type, op.name, program.main.ops) == ("cast", "widen", [op])
    assert program.main.var("wide").type_text == "float64[n, 3]"
    assert program.main.compile().ops[0] == desc
    (value,) = ol.Executor().run(program, {"x": numpy.ones((1, 3), "float32")}, ["wide"], scope=ol.Scope())
    assert value.dtype == numpy.float64


@pytest.mark.mission("F3")
def test_a_net_of_messages_is_the_program_that_python_writes():
    """Slots of one and of many variables, optional ones left out, attributes of each kind, and an operation that owns a block."""
    with ol.Program() as expected:
        x = ol.layer.data("x", shape=[3], batch="t")
        w = ol.layer.data("w", shape=[3, 2], batch=None)
        linear = ol.op.linear(x, w, name="rows")
        both = ol.op.concat([linear, linear], axis=1, name="both")
        shaped = ol.op.reshape(both, shape=("t", 2, 2), name="shaped")
        rnn = ol.rnn()
        with rnn.step():
            rnn.output(ol.op.clip(rnn.step_input(shaped), lower=None, upper=ol.op.full(shape=(), value=0.5), name="clipped"))
        total = ol.op.reduce_sum(rnn(), axis=0, name="total")
    messages = [desc.SerializeToString() for desc in expected.main.compile().ops]
    with ol.Program() as program:
        ol.layer.data("x", shape=[3], batch="t")
        ol.layer.data("w", shape=[3, 2], batch=None)
        body = wire.BlockDesc.FromString(expected.blocks[1].compile().SerializeToString())
        for message in messages:
            desc = wire.OpDesc.FromString(message)
            if desc.type == "recurrent":
                block = program.new_block(body.name, program.main)
                step = block.new_var(body.inputs[0], ol.DType.FLOAT32, (2, 2))
                block.inputs.append(step)
                with block:
                    for inner in body.ops:
                        ol.framework.create_operation(inner)
                block.outputs.append(block.var(body.outputs[0]))
            ol.framework.create_operation(desc)
    feed = {"x": numpy.arange(12, dtype="float32").reshape(4, 3) / 10, "w": numpy.ones((3, 2), "float32")}
    values = [ol.Executor().run(made, feed, [total.name], scope=ol.Scope())[0].tolist() for made in (program, expected)]
    assert values[0] == values[1]
    assert ol.content_hash(program) == ol.content_hash(expected)


@pytest.mark.mission("F3")
@pytest.mark.parametrize("role", Role)
def test_the_role_and_the_name_in_a_message_are_those_of_the_op(role):
    """A metric measures too. An op that is appended next is forward again."""
    with ol.Program() as program:
        ol.layer.data("x", shape=[3])
        op = ol.framework.create_operation(described("relu", inputs={"x": ["x"]}, outputs={"y": ["y"]}, name="it", role=int(role)))
        after = ol.op.neg(op.writes[0]).op
    assert (op.role, op.name, after.role) == (role, "it", Role.FORWARD)
    assert program.main.find_op("it") is op
    assert program.main.compile().ops[0].role == role


def test_a_message_that_makes_no_sense_is_refused():
    with ol.Program() as program:
        ol.layer.data("x", shape=[3])
        with pytest.raises(ol.UnknownOperatorError, match='^no operator "ralu"; did you mean "relu"'):
            ol.framework.create_operation(described("ralu", inputs={"x": ["x"]}, outputs={}))
        with pytest.raises(ol.UndefinedVarError, match='^"z" is not visible in main'):
            ol.framework.create_operation(described("relu", inputs={"x": ["z"]}, outputs={}))
        with pytest.raises(ol.ProgramError, match="^'y!' cannot be a variable's name"):
            ol.framework.create_operation(described("relu", inputs={"x": ["x"]}, outputs={"y": ["y!"]}))
        empty = described("cast", inputs={"x": ["x"]}, outputs={"y": ["y"]})
        empty.attributes.add(name="dtype")
        with pytest.raises(ol.VerifyError, match='^cast: attribute "dtype" is not readable: it has no value'):
            ol.framework.create_operation(empty)
        with pytest.raises(ol.VerifyError, match="^relu: role 4 does not exist$"):
            ol.framework.create_operation(described("relu", inputs={"x": ["x"]}, outputs={"y": ["y"]}, role=4))
        lost = described("recurrent", inputs={"sequences": ["x"]}, outputs={})
        lost.attributes.add(name="body", block=7)
        with pytest.raises(ol.VerifyError, match='^recurrent: attribute "body" is not readable'):
            ol.framework.create_operation(lost)
    assert (program.main.ops, list(program.main.vars)) == ([], ["x"])


@pytest.mark.mission("F5", "F2")
def test_creators_are_made_of_the_registered_protos_and_take_keywords():
    creators = ol.framework.create_operation_creators()
    assert set(vars(creators)) == {operator.type + "_" * keyword.iskeyword(operator.type) for operator in ol.registry.standard}
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3])
        y = creators.relu(x=x, name="y")
        with pytest.raises(TypeError, match="takes 0 positional arguments but 1 was given"):
            creators.relu(x)
        with pytest.raises(ol.ArgumentError, match="^relu: no attribute or input slope"):
            creators.relu(x=x, slope=0.5)
    assert program.main.ops[0].outputs == {"y": (y,)}
    assert creators.relu.__doc__.startswith("relu(x: float[*b]) -> y: float[*b]\n\nClamp negatives to zero")


@pytest.mark.mission("F4")
def test_a_proto_says_what_an_operator_takes_and_gives():
    proto = op_proto(ol.op.softmax_with_cross_entropy)
    assert [(slot.name, slot.dtype) for slot in proto.inputs] == [("logits", "float"), ("label", "int64")]
    assert [(slot.name, slot.intermediate) for slot in proto.outputs] == [("loss", False), ("softmax", True)]
    assert [(item.name, item.type, item.default, item.required) for item in proto.attributes] == [("ignore_index", "int", "-100", False)]
    assert (proto.type, list(proto.gradients), bool(proto.doc)) == ("softmax_with_cross_entropy", ["logits"], True)
    linear = {slot.name: slot for slot in op_proto(ol.op.linear).inputs}
    assert (linear["bias"].optional, linear["w"].optional) == (True, False)
    assert [slot.variadic for slot in op_proto(ol.op.concat).inputs] == [True]


@pytest.mark.mission("F5", "F6")
def test_a_new_operator_has_a_creator_even_under_a_name_that_python_keeps():
    catalogue = Catalogue()

    @ol.operator("x: float[*b] -> y: float[*b]", catalogue=catalogue)
    def lambda_(x, *, by: float = 2.0):
        return x * by

    assert catalogue.get("lambda") is lambda_
    assert keyword.iskeyword("lambda")
    creators = ol.framework.create_operation_creators(catalogue)
    with ol.Program() as program:
        creators.lambda_(x=ol.layer.data("x", shape=[]), by=3.0)
    assert (program.main.ops[0].type, program.main.ops[0].attributes) == ("lambda", {"by": 3.0})
    with pytest.raises(ol.DeclarationError, match='^an operator called "lambda" is already registered'):
        ol.operator("x: float[*b] -> y: float[*b]", catalogue=catalogue)(lambda_.kernel)


@pytest.mark.mission("F1")
def test_an_operator_is_a_kind_and_an_op_is_one_use_of_it():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[])
        ol.op.relu(ol.op.relu(x))
    first, second = program.main.ops
    assert first is not second
    assert first.type == second.type == ol.op.relu.type
    assert isinstance(ol.op.relu, ol.registry.Operator)
    assert isinstance(first, ol.ir.Op)


@pytest.mark.mission("A41")
def test_a_tensor_without_a_name_takes_the_type_of_what_is_written_to_it():
    with ol.Program() as program:
        accum, other = ol.framework.tensor(), ol.framework.tensor()
        assert accum.name != other.name
        assert accum.shape is None
        ol.cpp.operator("concat", read={"xs": [ol.layer.data("x", shape=[3])] * 2}, write={"y": accum}, axis=1)
        assert accum.type_text == "float32[n, 6]"
        ol.cpp.operator("relu", read={"x": accum}, write={"y": other})
        wide, flag = ol.framework.tensor(), ol.framework.tensor()
        ol.cpp.operator("cast", read={"x": accum}, write={"y": wide}, dtype="float64")
        ol.cpp.operator("greater", read={"x": wide, "y": wide}, write={"z": flag})
    assert [var.type_text for var in (wide, flag)] == ["float64[n, 6]", "bool[n, 6]"]
    assert "other" not in program.to_text(source=False)
    (value,) = ol.Executor().run(program, {"x": numpy.ones((1, 3), "float32")}, [other], scope=ol.Scope())
    assert value.tolist() == [[1] * 6]
