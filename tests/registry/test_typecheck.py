"""A file whose structure is sound may still say what no operator would have made."""

from collections.abc import Callable

import pytest
from sample_programs import nested_loops, running_sum

import oarlock as ol
from oarlock.ir.serialization import program_desc
from oarlock.proto import program_pb2 as wire
from oarlock.registry import Catalogue, operator, standard, typecheck

# The main block of running_sum: 0 recurrent (body: block 1), 1 reduce_sum, 2 subtract, 3 assign w <- w_next
# Block 1, main/rnn_0.body: 0 multiply, 1 add


def refuse(change: Callable[[wire.ProgramDesc], None], message: str, error: type[ol.OarlockError] = ol.VerifyError) -> None:
    """Expect that the file is structurally sound after `change`, and that its types are refused with this message."""
    file = wire.ProgramFile(program=program_desc(running_sum()))
    typecheck(ol.Program.from_bytes(file.SerializeToString()), standard)
    change(file.program)
    program = ol.Program.from_bytes(file.SerializeToString())
    with pytest.raises(error) as caught:
        typecheck(program, standard)
    assert str(caught.value) == message
    with pytest.raises(error):
        ol.Executor().run(program, scope=ol.Scope())


def var(block: wire.BlockDesc, name: str) -> wire.VarDesc:
    return next(var for var in block.vars if var.name == name)


@pytest.mark.parametrize("build", [running_sum, nested_loops])
def test_what_the_front_end_builds_has_the_types_that_follow(build):
    program = build()
    typecheck(program, standard)
    typecheck(ol.Program.from_bytes(program.to_bytes()), standard)


def test_an_operator_is_known():
    def change(program):
        program.blocks[0].ops[1].type = "reduce_sun"

    refuse(change, 'main, op 1 (reduce_sun): no operator "reduce_sun"; did you mean "reduce_sum"?', ol.UnknownOperatorError)


def test_an_operator_inside_a_block_is_known():
    def change(program):
        program.blocks[1].ops[1].type = "os.system"

    refuse(change, 'main/rnn_0.body, op 1 (os.system): no operator "os.system"', ol.UnknownOperatorError)


def test_an_input_slot_is_known():
    def change(program):
        program.blocks[0].ops[1].inputs.add(name="z", vars=["xs"])

    refuse(change, 'main, op 1 (reduce_sum): it has no input slot "z"')


def test_an_output_slot_is_known():
    def change(program):
        program.blocks[0].vars.add(name="more", dtype=wire.FLOAT32)
        program.blocks[0].ops[1].outputs.add(name="z", vars=["more"])

    refuse(change, 'main, op 1 (reduce_sum): it has no output slot "z"')


def test_an_input_slot_is_there():
    refuse(lambda program: program.blocks[0].ops[1].ClearField("inputs"), 'main, op 1 (reduce_sum): input slot "x" is missing')


def test_an_output_slot_is_there():
    def change(program):
        program.blocks[0].ops[0].ClearField("outputs")
        program.blocks[0].ops[1].inputs[0].vars[0] = "xs"

    refuse(change, 'main, op 0 (recurrent): output slot "stacked" is missing')


def test_a_slot_takes_one_variable():
    def change(program):
        program.blocks[0].ops[1].inputs[0].vars.append("xs")

    refuse(change, 'main, op 1 (reduce_sum): input slot "x" takes one variable, not 2')


def test_a_slot_takes_not_none():
    refuse(
        lambda program: program.blocks[0].ops[1].inputs[0].ClearField("vars"),
        'main, op 1 (reduce_sum): input slot "x" takes one variable, not 0',
    )


def test_a_variadic_output_has_as_many_variables_as_follow():
    def change(program):
        program.blocks[0].vars.add(name="more", dtype=wire.FLOAT32)
        program.blocks[0].ops[0].outputs[0].vars.append("more")

    refuse(change, 'main, op 0 (recurrent): output slot "stacked" has 2 variables, but 1 are inferred from its inputs')


def test_an_attribute_is_known():
    def change(program):
        program.blocks[0].ops[1].attributes.add(name="axes", int=0)

    refuse(change, "main, op 1 (reduce_sum): no attribute or input axes; its attributes: axis, keepdim")


def test_an_attribute_is_there():
    refuse(
        lambda program: program.blocks[0].ops[1].ClearField("attributes"),
        "main, op 1 (reduce_sum): an attribute is missing or not in its normalized form",
    )


def test_a_required_attribute_is_there():
    def change(program):
        del program.blocks[0].ops[0].attributes[0]
        del program.blocks[1:]

    file = wire.ProgramFile(program=program_desc(running_sum()))
    change(file.program)
    with pytest.raises(ol.VerifyError, match=r"^main, op 0 \(recurrent\): attribute body is required$"):
        typecheck(ol.Program.from_bytes(file.SerializeToString()), standard)


def test_an_attribute_is_of_its_type():
    def change(program):
        program.blocks[0].ops[1].attributes[0].int = 1

    refuse(change, "main, op 1 (reduce_sum): attribute keepdim must be bool, not 1")


def test_an_attribute_is_in_the_form_that_the_operator_gives_it():
    """An int for a float would be converted by a creator; a file holds what creators make."""

    def change(program):
        op = program.blocks[0].ops.add()
        op.CopyFrom(wire.OpDesc(type="full", outputs=[wire.SlotDesc(name="y", vars=["filled"])]))
        program.blocks[0].vars.add(name="filled", dtype=wire.FLOAT32).shape.SetInParent()
        op.attributes.add(name="dtype", dtype=wire.FLOAT32)
        op.attributes.add(name="shape").shape.SetInParent()
        op.attributes.add(name="value", int=1)
        ops = [wire.OpDesc.FromString(program.blocks[0].ops[index].SerializeToString()) for index in (4, 0, 1, 2, 3)]
        program.blocks[0].ClearField("ops")
        program.blocks[0].ops.extend(ops)

    refuse(change, "main, op 0 (full): an attribute is missing or not in its normalized form")


def test_a_shape_is_the_one_that_follows():
    def change(program):
        var(program.blocks[0], "w_next").shape.sizes[0].number = 3

    refuse(change, 'main, op 2 (subtract): "w_next" is declared as float32[3], but float32[2] is inferred from its inputs')


def test_a_rank_is_the_one_that_follows():
    def change(program):
        var(program.blocks[0], "cost").shape.sizes.add(number=1)

    refuse(change, 'main, op 1 (reduce_sum): "cost" is declared as float32[1], but float32[] is inferred from its inputs')


def test_a_symbol_is_the_one_that_follows():
    def change(program):
        var(program.blocks[0], "rnn_0.stacked.0").shape.sizes[0].symbol = "n"

    refuse(change, 'main, op 0 (recurrent): "rnn_0.stacked.0" is declared as float32[n, 2], but float32[t, 2] is inferred from its inputs')


def test_a_shape_that_is_known_is_declared():
    refuse(
        lambda program: var(program.blocks[0], "cost").ClearField("shape"),
        'main, op 1 (reduce_sum): "cost" is declared as float32[*], but float32[] is inferred from its inputs',
    )


def test_a_dtype_is_the_one_that_follows():
    def change(program):
        var(program.blocks[0], "w_next").dtype = wire.FLOAT64

    refuse(change, 'main, op 2 (subtract): "w_next" is declared as float64[2], but float32[2] is inferred from its inputs')


def test_arguments_fit_their_operator():
    def change(program):
        var(program.blocks[0], "start").dtype = wire.INT64

    refuse(change, 'main, op 0 (recurrent): the body takes "memory_0" as float32[2], but receives int64[2]')


def test_a_commit_fits_its_variable():
    def change(program):
        program.blocks[0].ops[3].inputs[0].vars[0] = "cost"

    refuse(change, 'main, op 3 (assign): "w" is declared as float32[2], but float32[] is inferred from its inputs')


def test_slots_stand_in_the_order_of_the_signature():
    """The text names outputs by their places."""

    def change(program):
        slots = program.blocks[0].ops[2].inputs
        copies = [wire.SlotDesc.FromString(slot.SerializeToString()) for slot in (slots[1], slots[0])]
        del slots[:]
        slots.extend(copies)

    refuse(change, "main, op 2 (subtract): its input slots are not in the order of its signature")


def test_what_a_rule_of_types_did_not_expect_is_refused_as_well():
    catalogue = Catalogue()

    @operator("x: T -> y: T", catalogue=catalogue)
    def first(x):
        return x[0]

    @first.infer_shape
    def first_shape(x):
        return x.shape[1:] if len(x.shape) else {}["no dimension"]

    with ol.Program() as program:
        x = ol.layer.data("x", shape=[], batch="n")
        first(x)
    x.shape = ()
    with pytest.raises(ol.VerifyError) as caught:
        typecheck(program, catalogue)
    assert caught.value.message == "main, op 0 (first): its types cannot be inferred from its inputs: KeyError: 'no dimension'"


def test_the_name_of_a_dtype_is_no_dtype():
    def change(program):
        op = program.blocks[0].ops[1]
        op.type = "cast"
        del op.attributes[:]
        op.attributes.add(name="dtype", string="float32")

    refuse(change, "main, op 1 (cast): attribute dtype must be DType, not 'float32'")


# The loop's own demands


def test_a_loop_steps_through_something():
    def change(program):
        program.blocks[0].ops[0].inputs[0].ClearField("vars")

    refuse(change, "main, op 0 (recurrent): a loop needs at least one sequence")


def test_a_sequence_has_steps():
    def change(program):
        program.blocks[0].ops[0].inputs[0].vars[0] = "number"
        program.blocks[0].inputs.append("number")
        program.blocks[0].vars.add(name="number", dtype=wire.FLOAT32).shape.SetInParent()

    refuse(change, "main, op 0 (recurrent): sequence 0 has no axis of steps")


def test_sequences_have_one_length():
    def change(program):
        program.blocks[0].ops[0].inputs[0].vars.append("start")

    refuse(change, "main, op 0 (recurrent): sequence 1 has 2 steps but sequence 0 has t")


def test_a_body_takes_what_it_is_handed():
    def change(program):
        program.blocks[0].ops[0].inputs[0].vars.append("xs")

    refuse(change, "main, op 0 (recurrent): the body takes 2 values, but receives 3")


def test_a_body_returns_enough():
    def change(program):
        program.blocks[0].ops[0].attributes[2].int = 2

    refuse(change, "main, op 0 (recurrent): the body returns 2 values, too few for 1 memories and 2 sums")


def test_no_sums_are_fewer_than_none():
    def change(program):
        program.blocks[0].ops[0].attributes[2].int = -1

    refuse(change, "main, op 0 (recurrent): the body returns 2 values, too few for 1 memories and -1 sums")


def test_a_memory_keeps_its_type():
    def change(program):
        program.blocks[1].vars.add(name="other", dtype=wire.FLOAT32).shape.SetInParent()
        op = program.blocks[1].ops.add(type="reduce_sum", inputs=[wire.SlotDesc(name="x", vars=["total"])])
        op.outputs.add(name="y", vars=["other"])
        op.attributes.add(name="keepdim", bool=False)
        program.blocks[1].outputs[1] = "other"

    refuse(change, "main, op 0 (recurrent): memory 0 begins as float32[2] but continues as float32[]")


# Sizes that only values tell


def test_a_size_that_only_values_tell_has_any_name_of_its_own_and_is_no_number():
    catalogue = Catalogue()

    @operator("x: float[n] -> y: float[?]", catalogue=catalogue)
    def positives(x):
        return x[x > 0]

    with ol.Program() as program:
        y = positives(ol.layer.data("x", shape=[], batch="symbol"))
    y.shape = ("anything",)
    typecheck(program, catalogue)
    y.shape = (3,)
    with pytest.raises(ol.VerifyError) as caught:
        typecheck(program, catalogue)
    assert (
        caught.value.message
        == 'main, op 0 (positives): "positives_0" is declared as float32[3], but float32[?] is inferred from its inputs'
    )


def test_no_symbol_stands_for_any_other():
    with ol.Program() as program:
        y = ol.op.relu(ol.layer.data("x", shape=[], batch="symbol"))
    y.shape = ("n",)
    with pytest.raises(ol.VerifyError) as caught:
        typecheck(program, standard)
    assert caught.value.message == 'main, op 0 (relu): "relu_0" is declared as float32[n], but float32[symbol] is inferred from its inputs'
