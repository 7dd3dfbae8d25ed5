"""Every rule of the language, broken once in a file that is otherwise legal."""

from collections.abc import Callable

import pytest
from sample_programs import running_sum

import oarlock as ol
from oarlock.ir.attribute import Sizes
from oarlock.ir.serialization import program_desc
from oarlock.ir.var import Var
from oarlock.ir.verification import verify_program
from oarlock.proto import program_pb2 as wire

# The main block: 0 recurrent (body: block 1), 1 reduce_sum, 2 subtract, 3 assign w <- w_next
# Block 1, main/rnn_0.body: 0 multiply, 1 add


def var(block: wire.BlockDesc, name: str) -> wire.VarDesc:
    return next(var for var in block.vars if var.name == name)


def refuse(change: Callable[[wire.ProgramDesc], None], message: str, error: type[ol.OarlockError] = ol.VerifyError) -> None:
    """Expect that the file is read, and that after `change` it is refused with just this message."""
    file = wire.ProgramFile(program=program_desc(running_sum()))
    ol.Program.from_bytes(file.SerializeToString())
    change(file.program)
    with pytest.raises(error) as caught:
        ol.Program.from_bytes(file.SerializeToString())
    assert str(caught.value) == message


# Blocks


def test_a_program_has_a_block():
    refuse(lambda program: program.ClearField("blocks"), "a program needs a main block; this one has no blocks")


def test_the_main_block_has_no_parent():
    def change(program):
        program.blocks[0].parent = 0

    refuse(change, "block 0: its parent must be a block before it, and only block 0 has none")


def test_every_other_block_has_a_parent():
    refuse(
        lambda program: program.blocks[1].ClearField("parent"), "block 1: its parent must be a block before it, and only block 0 has none"
    )


@pytest.mark.parametrize("parent", [1, 2, 2**32 - 1])
def test_a_parent_is_a_block_before(parent):
    def change(program):
        program.blocks[1].parent = parent

    refuse(change, "block 1: its parent must be a block before it, and only block 0 has none")


def test_a_block_belongs_to_an_op():
    def change(program):
        program.blocks.add(name="orphan", parent=0)

    refuse(
        change,
        "block 2 (orphan) belongs to no op\n"
        "  Try: if you built it, call its owner: `y = ie(condition)`, `states = rnn()`"
        "    (oarlock explain VerifyError)",
    )


@pytest.mark.mission("B53")
def test_a_block_belongs_to_one_op_only():
    def change(program):
        program.blocks[0].ops.add().CopyFrom(program.blocks[0].ops[0])

    refuse(change, "main, op 4 (recurrent): it does not own block 1 (rnn_0.body)")


@pytest.mark.mission("B53")
def test_a_block_belongs_to_an_op_of_its_parent():
    def change(program):
        program.blocks[1].ops[0].attributes.add(name="body", block=1)

    refuse(change, "main/rnn_0.body, op 0 (multiply): it does not own block 1 (rnn_0.body)")


@pytest.mark.mission("B53")
def test_an_op_owns_no_block_around_it():
    def change(program):
        program.blocks[1].ops[0].attributes.add(name="body", block=0)

    refuse(change, "main/rnn_0.body, op 0 (multiply): it does not own block 0 (main)")


def test_a_block_that_an_op_owns_exists():
    def change(program):
        program.blocks[0].ops[0].attributes[0].block = 2

    refuse(change, 'main, op 0 (recurrent): attribute "body" names block 2, which does not exist')


def test_a_block_is_found_by_one_path():
    def change(program):
        program.blocks.add(name="rnn_0.body", parent=0)

    refuse(change, "block 2: another block is called main/rnn_0.body")


# Names


def test_the_name_of_a_block_is_legal():
    def change(program):
        program.blocks[1].name = "../body"

    refuse(change, "block 1: '../body' is not a legal name")


def test_the_name_of_a_variable_is_legal():
    def change(program):
        program.blocks[0].vars[0].name = program.blocks[0].inputs[0] = program.blocks[0].ops[0].inputs[0].vars[0] = "x\n" * 300

    refuse(change, rf"block 0: {('x' + chr(10)) * 40!r} is not a legal name")


def test_a_name_is_declared_once_in_a_block():
    def change(program):
        program.blocks[1].vars.add().CopyFrom(program.blocks[1].vars[0])

    refuse(change, 'main/rnn_0.body: "xs.step_0" is declared twice')


def test_the_label_of_a_target_is_legal():
    def change(program):
        program.targets[0].label = "co st"

    refuse(change, "target 'co st' is not a legal name")


@pytest.mark.parametrize("name", ["a b", "first", "x" * 300])
def test_the_name_of_an_op_is_legal_and_its_own(name):
    def change(program):
        program.blocks[0].ops[0].name = "first"
        program.blocks[0].ops[1].name = name

    refuse(change, f"main, op 1 (reduce_sum): {name[:80]!r} is not a legal name, or is used by another op")


# Variables


@pytest.mark.parametrize(("dtype", "number"), [("unspecified", 0), ("unknown", 99)])
def test_a_dtype_is_one_of_ours(dtype, number):
    def change(program):
        program.blocks[0].vars[0].dtype = number

    refuse(change, f'main: variable "xs" is not readable: {number}')


def test_a_size_holds_something():
    def change(program):
        program.blocks[0].vars[0].shape.sizes.add()

    refuse(change, 'main: variable "xs" is not readable: a size has no value')


def test_a_size_is_not_negative():
    def change(program):
        program.blocks[0].vars[0].shape.sizes[1].number = -1

    refuse(change, 'main: variable "xs" has a size of -1')


@pytest.mark.parametrize("symbol", ["", "1+n", "n+", "((", "7", "n" * 257])
def test_a_symbol_is_spelled_canonically(symbol):
    def change(program):
        program.blocks[0].vars[0].shape.sizes[0].symbol = symbol

    refuse(change, f'main: variable "xs": {symbol[:80]!r} is not a size')


def test_a_symbol_in_an_attribute_is_spelled_canonically():
    def change(program):
        program.blocks[0].ops[1].attributes.add(name="shape").shape.sizes.add(symbol="n+")

    refuse(change, "main, op 1 (reduce_sum): attribute \"shape\": 'n+' is not a size")


def test_what_persists_stands_in_the_main_block():
    def change(program):
        var(program.blocks[1], "multiply_0").persistable = True

    refuse(
        change,
        'main/rnn_0.body: variable "multiply_0" is persistable, so it must be in the main block and not an input',
    )


def test_what_persists_is_not_fed():
    def change(program):
        var(program.blocks[0], "start").persistable = True

    refuse(change, 'main: variable "start" is persistable, so it must be in the main block and not an input')


def test_what_persists_has_sizes_that_are_numbers():
    def change(program):
        var(program.blocks[0], "w").shape.sizes[0].symbol = "n"

    refuse(change, 'main: variable "w" is persistable, so every size must be a number')


def test_what_persists_has_a_shape():
    refuse(
        lambda program: var(program.blocks[0], "w").ClearField("shape"),
        'main: variable "w" is persistable, so every size must be a number',
    )


def test_a_parameter_persists():
    def change(program):
        var(program.blocks[0], "cost").parameter = True

    refuse(change, 'main: variable "cost" is a parameter, so it must be persistable')


def test_what_is_trained_is_a_parameter():
    def change(program):
        var(program.blocks[0], "w").parameter = False

    refuse(change, 'main: variable "w" is trainable, so it must be a parameter')


def test_what_is_fed_has_a_rank():
    refuse(lambda program: var(program.blocks[0], "xs").ClearField("shape"), 'main: variable "xs" is fed, so its rank must be known')


def test_what_is_handed_in_has_no_initializer():
    def change(program):
        var(program.blocks[1], "memory_0").initializer.type = "constant"

    refuse(change, 'main/rnn_0.body: variable "memory_0" has an initializer, but the op that owns the block passes its value')


def test_a_step_takes_rows():
    def change(program):
        program.training.epochs = 1

    refuse(change, "the batch size of a training program must be at least 1, not 0")


def test_a_backend_has_a_legal_name():
    def change(program):
        program.training.batch_size = 1
        program.training.backend = "../compiler"

    refuse(change, "backend '../compiler' is not a legal name")


def test_an_attribute_of_an_initializer_is_given_once():
    def change(program):
        for value in (0.5, 1.5):
            var(program.blocks[0], "w").initializer.attributes.add(name="value", float=value)

    refuse(change, 'main: variable "w" is not readable: an attribute is given twice')


def test_an_attribute_of_an_initializer_is_no_variable():
    def change(program):
        var(program.blocks[0], "w").initializer.attributes.add(name="value", var="cost")

    refuse(change, 'main: variable "w" is not readable: a variable is not allowed here')


def test_names_that_python_gave_are_verified_too():
    program = running_sum()
    program.main.vars["a b"] = program.main.vars.pop("cost")
    with pytest.raises(ol.VerifyError, match="^block 0: 'a b' is not a legal name$"):
        verify_program(program)
    program = running_sum()
    program.targets["a b"] = program.targets.pop("cost")
    with pytest.raises(ol.VerifyError, match="^target 'a b' is not a legal name$"):
        verify_program(program)


def test_a_shape_in_an_attribute_may_hold_symbols():
    program = running_sum()
    program.main.ops[1].attributes["shape"] = Sizes((2, "n", "2*n"))
    verify_program(program)


def test_blocks_as_deep_as_anyone_likes_are_verified_without_recursion():
    """A reader stops at 32; what Python builds is verified all the same."""
    program = ol.Program()
    block = program.main
    for depth in range(3000):
        inner = program.new_block(f"b{depth}", block)
        block.append("any", {}, {}, {"body": inner})
        block = inner
    block.append("any", {"x": [Var(block, "loose", ol.DType.FLOAT32, ())]}, {}, {})
    with pytest.raises(ol.VerifyError, match="^main/b0/b1/b2/"):
        verify_program(program)


def test_what_an_op_defines_has_no_initializer():
    def change(program):
        var(program.blocks[0], "cost").initializer.type = "constant"

    refuse(change, 'main: variable "cost" has an initializer, but an op defines it')


def test_an_initializers_attribute_holds_something():
    def change(program):
        var(program.blocks[0], "w").initializer.attributes.add(name="value")

    refuse(change, 'main: variable "w" is not readable: it has no value')


def test_an_initializers_attribute_is_no_block():
    def change(program):
        var(program.blocks[0], "w").initializer.attributes.add(name="value", block=1)

    refuse(change, 'main: variable "w" is not readable: a block is not allowed here')


# Ops


def test_a_slot_is_given_once():
    def change(program):
        program.blocks[0].ops[2].inputs[1].name = "x"

    refuse(change, "main, op 2 (subtract): a slot is given twice")


def test_an_attribute_is_given_once():
    def change(program):
        program.blocks[0].ops[1].attributes.add(name="keepdim", bool=True)

    refuse(change, 'main, op 1 (reduce_sum): attribute "keepdim" is given twice')


def test_an_attribute_holds_something():
    def change(program):
        program.blocks[0].ops[1].attributes.add(name="axis")

    refuse(change, 'main, op 1 (reduce_sum): attribute "axis" is not readable: it has no value')


def test_a_dtype_in_an_attribute_is_one_of_ours():
    def change(program):
        program.blocks[0].ops[1].attributes.add(name="dtype", dtype=99)

    refuse(change, 'main, op 1 (reduce_sum): attribute "dtype" is not readable: 99')


def test_a_role_is_one_of_four():
    def change(program):
        program.blocks[0].ops[1].role = 4

    refuse(change, "main, op 1 (reduce_sum): role 4 does not exist")


@pytest.mark.mission("B39")
def test_an_argument_is_declared():
    def change(program):
        program.blocks[0].ops[1].inputs[0].vars[0] = "nothing"

    refuse(change, 'main, op 1 (reduce_sum): "nothing" is not declared in this block or its parents')


@pytest.mark.mission("B39")
def test_an_argument_is_not_found_in_a_block_inside():
    def change(program):
        program.blocks[0].ops[1].inputs[0].vars[0] = "total"

    refuse(change, 'main, op 1 (reduce_sum): "total" is not declared in this block or its parents')


def test_an_input_of_a_block_is_declared_there():
    def change(program):
        program.blocks[1].inputs[0] = "w"

    refuse(change, 'main/rnn_0.body: an input is "w", but the block does not declare it')


@pytest.mark.mission("B39")
def test_an_output_of_a_block_is_declared():
    def change(program):
        program.blocks[1].outputs[0] = "nothing"

    refuse(change, 'main/rnn_0.body: output: "nothing" is not declared in this block or its parents')


# Definitions


def test_a_variable_is_an_input_once():
    def change(program):
        program.blocks[0].inputs.append("xs")

    refuse(change, "main: a variable is an input twice")


def test_a_variable_is_defined_before_it_is_read():
    def change(program):
        first, second = program.blocks[1].ops
        swapped = [wire.OpDesc.FromString(op.SerializeToString()) for op in (second, first)]
        program.blocks[1].ClearField("ops")
        program.blocks[1].ops.extend(swapped)

    refuse(change, 'main/rnn_0.body, op 0 (add): it reads "multiply_0" before that has a value')


def test_a_variable_that_nothing_defines_is_not_read():
    def change(program):
        program.blocks[0].inputs.remove("start")

    refuse(change, 'main, op 0 (recurrent): it reads "start" before that has a value')


def test_an_op_does_not_read_what_it_defines():
    def change(program):
        program.blocks[0].ops[2].inputs[0].vars[0] = "w_next"

    refuse(change, 'main, op 2 (subtract): it reads "w_next" before that has a value')


def test_a_variable_is_defined_once():
    def change(program):
        program.blocks[1].ops.add().CopyFrom(program.blocks[1].ops[0])

    refuse(change, 'main/rnn_0.body, op 2 (multiply): "multiply_0" is defined a second time')


def test_an_input_is_not_defined_by_an_op():
    def change(program):
        program.blocks[0].ops[2].outputs[0].vars[0] = "xs"

    refuse(change, 'main, op 2 (subtract): "xs" is defined a second time')


def test_a_block_writes_nothing_around_it():
    def change(program):
        program.blocks[1].ops[0].outputs[0].vars[0] = "cost"

    refuse(
        change,
        'main/rnn_0.body, op 0 (multiply): it writes "cost", but that is not a local variable of main/rnn_0.body',
    )


def test_an_op_before_the_tail_writes_nothing_that_persists():
    def change(program):
        program.blocks[0].ops[2].outputs[0].vars[0] = "w"

    refuse(change, 'main, op 2 (subtract): it writes "w", but that is not a local variable of main')


def test_an_output_of_a_block_has_a_value():
    def change(program):
        program.blocks[1].vars.add(name="empty", dtype=wire.FLOAT32)
        program.blocks[1].outputs[0] = "empty"

    refuse(change, 'main/rnn_0.body: its output "empty" has no value')


def test_an_op_lists_what_its_block_reads_from_around_it():
    refuse(
        lambda program: program.blocks[0].ops[0].inputs[2].ClearField("vars"),
        'main, op 0 (recurrent): its block rnn_0.body reads "w", but the op does not list it',
    )


def test_an_op_lists_what_its_block_returns_from_around_it():
    def change(program):
        program.blocks[1].outputs[0] = "start"
        program.blocks[0].ops[0].inputs[1].vars[0] = "w"
        program.blocks[0].ops[0].inputs[2].vars[0] = "w"

    refuse(change, 'main, op 0 (recurrent): its block rnn_0.body reads "start", but the op does not list it')


def test_a_name_declared_in_a_block_hides_that_of_a_block_around_it_from_the_first_op_on():
    def change(program):
        program.blocks[1].vars.add(name="w", dtype=wire.FLOAT32)

    refuse(change, 'main/rnn_0.body, op 0 (multiply): it reads "w" before that has a value')


# The tail


def test_a_commit_stands_at_the_end():
    def change(program):
        ops = [program.blocks[0].ops[index] for index in (0, 1, 2, 3, 2)]
        copies = [wire.OpDesc.FromString(op.SerializeToString()) for op in ops]
        copies[4].outputs[0].vars[0] = "later"
        program.blocks[0].vars.add(name="later", dtype=wire.FLOAT32)
        program.blocks[0].ClearField("ops")
        program.blocks[0].ops.extend(copies)

    refuse(change, "main, op 3 (assign): persistable variables are written at the end of the main block only")


def test_a_block_inside_commits_nothing():
    def change(program):
        program.blocks[1].ops.add().CopyFrom(program.blocks[0].ops[3])
        program.blocks[1].ops[2].inputs[0].vars[0] = "total"

    refuse(change, "main/rnn_0.body, op 2 (assign): persistable variables are written at the end of the main block only")


def test_a_variable_is_committed_once():
    def change(program):
        program.blocks[0].ops.add().CopyFrom(program.blocks[0].ops[3])

    refuse(change, 'main, op 4 (assign): it must assign "w" one new value, once')


def test_a_commit_writes_one_variable():
    def change(program):
        program.blocks[0].vars.add(name="v", dtype=wire.FLOAT32, persistable=True).shape.SetInParent()
        program.blocks[0].ops[3].outputs[0].vars.append("v")

    refuse(change, 'main, op 3 (assign): it must assign "w" one new value, once')


def test_a_commit_reads_one_variable():
    def change(program):
        program.blocks[0].ops[3].inputs[0].vars.append("cost")

    refuse(change, 'main, op 3 (assign): it must assign "w" one new value, once')


def test_a_commit_reads_something():
    refuse(lambda program: program.blocks[0].ops[3].ClearField("inputs"), 'main, op 3 (assign): it must assign "w" one new value, once')


def test_a_commit_reads_nothing_that_persists():
    def change(program):
        program.blocks[0].ops[3].inputs[0].vars[0] = "w"

    refuse(change, 'main, op 3 (assign): it must assign "w" one new value, once')


# Targets


def test_the_main_block_hands_nothing_out():
    def change(program):
        program.blocks[0].outputs.append("cost")

    refuse(change, "main: the main block cannot have outputs; use targets")


def test_a_target_is_a_variable_of_the_main_block():
    def change(program):
        program.targets[0].var = "total"

    refuse(change, 'main: target "cost" is "total", but the block does not declare it')


def test_a_target_has_a_value():
    def change(program):
        program.blocks[0].vars.add(name="empty", dtype=wire.FLOAT32)
        program.targets[0].var = "empty"

    refuse(change, 'target "cost": nothing defines "empty"')


def test_a_label_is_given_once():
    def change(program):
        program.targets.add(label="cost", var="xs")

    refuse(change, 'target "cost" is given twice')


# Programs in memory, which resolve nothing by name


def test_a_block_cannot_read_what_its_own_variable_hides():
    """In memory an op holds variables, so it could; a run and a file go by the name."""
    with ol.Program() as program:
        xs = ol.layer.data("xs", shape=[], batch="t")
        x = ol.layer.data("x", shape=[], batch=None)
        loop = ol.rnn()
        with loop.step():
            hiding = ol.op.neg(loop.step_input(xs), name="x")
            loop.output(hiding * x)
        loop()
    with pytest.raises(ol.VerifyError) as caught:
        verify_program(program)
    assert str(caught.value) == 'main/rnn_0.body, op 1 (multiply): it reads main/x, which is hidden by another "x"'


def test_a_block_cannot_return_what_its_own_variable_hides():
    with ol.Program() as program:
        xs = ol.layer.data("xs", shape=[], batch="t")
        x = ol.layer.data("x", shape=[], batch=None)
        loop = ol.rnn()
        with loop.step():
            ol.op.neg(loop.step_input(xs), name="x")
            loop.output(x)
        loop()
    with pytest.raises(ol.VerifyError) as caught:
        verify_program(program)
    assert str(caught.value) == 'main/rnn_0.body: its output is main/x, which is hidden by another "x"'


def test_a_step_block_that_was_never_closed_is_named():
    with ol.Program() as program:
        xs = ol.layer.data("xs", shape=[], batch="t")
        loop = ol.rnn()
        with loop.step():
            loop.output(loop.step_input(xs))
    with pytest.raises(ol.VerifyError) as caught:
        verify_program(program)
    assert caught.value.message == "block 1 (rnn_0.body) belongs to no op"
    assert caught.value.hint == "if you built it, call its owner: `y = ie(condition)`, `states = rnn()`"


USES = {
    "train": lambda cost: ol.train(cost, {"x": [[1.0]]}, progress=False),
    "minimize": lambda cost: ol.optimizer.SGD(0.1).minimize(cost),
    "append_backward": lambda cost: ol.append_backward(cost),
    "gradients": lambda cost: ol.gradients([cost], [cost.block.var("x")]),
    "Net": lambda cost: ol.Net(cost.block.program).run(ol.Scope()),
    "eval": lambda cost: ol.eval(cost, {"x": [[1.0]]}),
    "prune": lambda cost: ol.prune(cost.block.program, {"cost": cost}),
    "save_model": lambda cost: ol.save_model(cost, {"w.w": [[1.0]], "w.b": [0.0]}, "never"),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_who_uses_a_program_with_such_a_step_is_told_and_the_program_stays_as_it_was(use):
    with ol.Program() as program:
        cost = ol.layer.mean(ol.layer.fc(ol.layer.data("x", shape=[1]), 1, name="w"))
        xs = ol.layer.data("xs", shape=[], batch="t")
        loop = ol.rnn()
        with loop.step():
            loop.output(loop.step_input(xs))
    before = program.to_text()
    with pytest.raises(ol.VerifyError) as caught:
        use(cost)
    assert caught.value.message == "block 1 (rnn_0.body) belongs to no op"
    assert program.to_text() == before


def test_a_variable_of_a_block_beside_is_not_read():
    with ol.Program() as program:
        xs = ol.layer.data("xs", shape=[], batch="t")
        loop = ol.rnn()
        with loop.step():
            inside = ol.op.neg(loop.step_input(xs))
            loop.output(inside)
        loop()
        other = program.main.new_var("other", ol.DType.FLOAT32, ())
        program.main.append("relu", {"x": [inside]}, {"y": [other]}, {})
    with pytest.raises(ol.VerifyError) as caught:
        verify_program(program)
    assert str(caught.value) == 'main, op 1 (relu): it reads "neg_0" before that has a value'
