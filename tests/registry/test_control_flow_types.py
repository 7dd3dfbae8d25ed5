"""`while` and `conditional_block` in a file: what their operators would not have made is refused, op by op."""

from collections.abc import Callable

import pytest

import oarlock as ol
from oarlock.ir.serialization import program_desc
from oarlock.proto import program_pb2 as wire
from oarlock.registry import standard, typecheck

# The main block of `chosen_and_repeated`: 0 fill, 1 less, 2 logical_not, 3 branch, 4 branch, 5 choose, 6 while, 7 reduce_sum
# Block 1 main/cond_0.true, block 2 main/cond_0.false, block 3 main/while_0.body: 0 add, 1 less


def chosen_and_repeated() -> ol.Program:
    """x or its square, doubled until it is at least `limit`; with a stack."""
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[], batch=None)
        limit = ol.layer.data("limit", shape=[], batch=None)
        y = ol.cond(x < limit, lambda: ol.op.square(x), lambda: ol.op.neg(x))
        loop = ol.while_loop(y < limit, max_trips=50)
        with loop.block():
            after = y + y
            loop.carry(y, after)
            loop.update_condition(after < limit)
            loop.output(after)
        _, every = loop()
        program.targets["total"] = ol.op.reduce_sum(every)
    return program


def find(block: wire.BlockDesc, type: str, number: int = 0) -> wire.OpDesc:
    return [op for op in block.ops if op.type == type][number]


def slot(op: wire.OpDesc, name: str) -> wire.SlotDesc:
    return next(slot for slot in (*op.inputs, *op.outputs) if slot.name == name)


def var(block: wire.BlockDesc, name: str) -> wire.VarDesc:
    return next(var for var in block.vars if var.name == name)


def attribute(op: wire.OpDesc, name: str) -> wire.AttributeDesc:
    return next(item for item in op.attributes if item.name == name)


def refuse(change: Callable[[wire.ProgramDesc], None], message: str) -> None:
    """Expect that the file is structurally sound after `change`, and that its types are refused with this message."""
    file = wire.ProgramFile(program=program_desc(chosen_and_repeated()))
    typecheck(ol.Program.from_bytes(file.SerializeToString()), standard)
    change(file.program)
    program = ol.Program.from_bytes(file.SerializeToString())
    with pytest.raises(ol.VerifyError) as caught:
        typecheck(program, standard)
    assert str(caught.value) == message
    with pytest.raises(ol.VerifyError):
        ol.Executor().run(program, {"x": 1.0, "limit": 3.0}, ["total"], scope=ol.Scope())


def number_of(program: ol.Program, type: str) -> int:
    return next(number for number, op in enumerate(program.main.ops) if op.type == type)


WHILE = f"main, op {number_of(chosen_and_repeated(), 'while')} (while)"
BRANCH = f"main, op {number_of(chosen_and_repeated(), 'conditional_block')} (conditional_block)"


def test_the_program_is_what_its_operators_make():
    program = chosen_and_repeated()
    typecheck(ol.Program.from_bytes(program.to_bytes()), standard)
    assert ol.Executor().run(program, {"x": 1.5, "limit": 9.0}, ["total"], scope=ol.Scope()) == [4.5 + 9.0]


def test_the_condition_of_a_while_is_one_bool():
    def change(program):
        slot(find(program.blocks[0], "while"), "condition").vars[0] = "limit"

    refuse(change, f"{WHILE}: condition must be bool, not float32")


def test_the_next_condition_is_one_bool():
    def change(program):
        program.blocks[3].outputs[0] = program.blocks[3].outputs[1]

    refuse(change, f"{WHILE}: the next condition must be bool[], not float32[]")


def test_a_body_takes_as_many_values_as_are_carried():
    def change(program):
        slot(find(program.blocks[0], "while"), "initial").vars.append("limit")

    refuse(change, f"{WHILE}: the body takes 1 values, but 2 are carried")


def test_a_body_returns_a_condition_and_what_is_carried():
    def change(program):
        del program.blocks[3].outputs[1:]

    refuse(change, f"{WHILE}: the body returns 1 values, too few for a condition and 1 carried values")


def test_a_body_takes_a_carried_value_as_the_type_that_it_has():
    def change(program):
        var(program.blocks[3], program.blocks[3].inputs[0]).dtype = wire.FLOAT64

    refuse(change, f'{WHILE}: the body takes "select_branch_0_0" as float64[], but receives float32[]')


def test_a_carried_value_goes_on_as_the_type_that_it_had():
    def change(program):
        program.blocks[3].outputs[2] = program.blocks[3].outputs[0]

    refuse(change, f"{WHILE}: carried value 0 begins as float32[] but continues as bool[]")


def test_what_is_returned_has_as_many_variables_as_follow():
    def change(program):
        del slot(find(program.blocks[0], "while"), "stacked").vars[:]
        slot(find(program.blocks[0], "reduce_sum"), "x").vars[0] = "x"

    refuse(change, f'{WHILE}: output slot "stacked" has 0 variables, but 1 are inferred from its inputs')


def test_a_stack_has_a_size_in_front_that_has_a_name():
    def change(program):
        stack = slot(find(program.blocks[0], "while"), "stacked").vars[0]
        var(program.blocks[0], stack).shape.sizes[0].CopyFrom(wire.SizeDesc(number=3))

    refuse(change, f'{WHILE}: "while_0.stacked.0" is declared as float32[3], but float32[?] is inferred from its inputs')


def test_a_number_of_trips_is_none_that_is_negative():
    def change(program):
        attribute(find(program.blocks[0], "while"), "max_trips").int = -1

    refuse(change, f"{WHILE}: max_trips must be at least 1, or 0 for no limit, not -1")


def test_a_while_has_a_body():
    def change(program):
        op = find(program.blocks[0], "while")
        op.attributes.remove(attribute(op, "body"))
        del program.blocks[3]

    refuse(change, f"{WHILE}: attribute body is required")


def test_when_is_one_bool():
    def change(program):
        slot(find(program.blocks[0], "conditional_block"), "when").vars[0] = "limit"

    refuse(change, f"{BRANCH}: when must be bool, not float32")


def test_a_body_of_a_branch_takes_the_values_that_it_is_handed():
    def change(program):
        slot(find(program.blocks[0], "conditional_block"), "values").vars.append("x")

    refuse(change, f"{BRANCH}: the body takes 0 values, but receives 1")


def test_a_branch_that_may_not_run_takes_and_gives_a_dimension_more():
    def change(program):
        block = program.blocks[1]
        block.vars.add(name="given", dtype=wire.FLOAT32).shape.SetInParent()
        block.inputs.append("given")
        slot(find(program.blocks[0], "conditional_block"), "values").vars.append("x")

    refuse(change, f'{BRANCH}: "given" receives float32[], which needs a first axis of size 1 or 0')


def test_what_a_branch_returns_is_what_its_body_returns():
    def change(program):
        block = program.blocks[1]
        block.vars[0].dtype = wire.FLOAT64
        outputs = [wire.SlotDesc(name="y", vars=[block.vars[0].name])]
        block.ops[0].CopyFrom(wire.OpDesc(type="cast", inputs=[wire.SlotDesc(name="x", vars=["x"])], outputs=outputs))
        block.ops[0].attributes.add(name="dtype", dtype=wire.FLOAT64)

    refuse(change, f'{BRANCH}: "cond_0.true.out.0" is declared as float32[size_0], but float64[?] is inferred from its inputs')


def test_a_branch_always_returns_what_it_may_not_have():
    """Without `when` it always runs, and nothing has a dimension more."""

    def change(program):
        op = find(program.blocks[0], "conditional_block")
        op.inputs.remove(slot(op, "when"))

    refuse(change, f'{BRANCH}: "cond_0.true.out.0" is declared as float32[size_0], but float32[] is inferred from its inputs')
