"""Descriptions of programs as messages: `ol.Net`, `ol.prune`, `ol.eval` and `ol.Block` take them."""

import numpy as np
import pytest
from processes import run_python

import oarlock as ol
from oarlock.ir.serialization import program_desc
from oarlock.old_names import OLD_OPERATORS
from oarlock.proto import program_pb2 as wire

X = np.array([[1, 2], [-3, 4]], "float32")
MISSING = "this BlockDesc refers to blocks that it does not contain"
HINT = "pass the ProgramDesc, which contains all blocks: oarlock.ir.serialization.program_desc(program)"


@pytest.fixture
def looping():
    """A loop, one of whose outputs no target needs."""
    with ol.Program(seed=3) as program:
        x = ol.layer.data("x", shape=[2], batch="t")
        rnn = ol.rnn()
        with rnn.step():
            step = rnn.step_input(x)
            rnn.output(ol.op.square(step, name="squared"), ol.op.tanh(step, name="bent"))
        squares, _ = rnn()
        ol.op.neg(squares, name="z")
    return program


def computed(block):
    scope = ol.Scope()
    scope["x"] = X
    block.run(scope)
    return scope["z"].tolist()


@pytest.mark.mission("B43", "N2")
def test_a_net_a_block_and_eval_take_a_program_as_a_message(looping):
    sent = wire.ProgramDesc.FromString(program_desc(looping).SerializeToString())
    for block in (ol.Net(sent).block, ol.Block(sent), ol.Net(ol.Block(sent)).block):
        assert block.program.to_bytes() == looping.to_bytes(source=False)
        assert (block.program.main, block.program.blocks[1].parent) == (block, block)
        assert computed(block) == (-X * X).tolist()
    scope = ol.Scope()
    scope["x"] = X
    with ol.scope.guard(scope):
        assert ol.eval("z", program=sent).tolist() == (-X * X).tolist()


@pytest.mark.mission("B47")
def test_a_program_as_a_message_is_pruned_to_one(looping):
    sent = program_desc(looping)
    kept = ol.prune(sent, ["z"])
    assert isinstance(kept, wire.ProgramDesc)
    assert kept == program_desc(ol.prune(looping, ["z"]))
    assert ([op.type for op in kept.blocks[1].ops], sent) == (["square"], program_desc(looping))
    assert computed(ol.Block(kept)) == (-X * X).tolist()
    del kept.blocks[0].vars[0]
    with pytest.raises(ol.VerifyError):
        ol.prune(kept, ["z"])


@pytest.mark.mission("B43")
def test_a_block_is_made_of_its_description():
    with ol.Program() as program:
        ol.op.neg(ol.op.square(ol.layer.data("x", shape=[2])), name="z")
    desc = program.main.compile()
    block = ol.Block(desc)
    assert isinstance(block, ol.ir.Block)
    assert block is block.program.main
    assert all(op.block is block for op in block.ops)
    assert all(var.block is block for var in block.vars.values())
    assert block.compile() == desc
    assert computed(block) == (-X * X).tolist()
    scope = ol.Scope()
    scope["x"] = X
    assert block.infer_shape(scope) == ol.infer_shape(block, scope)
    assert str(block.infer_shape(scope)["z"]) == "float32[2, 2]"
    scope["x"] = X[:, :1]
    with pytest.raises(ol.ShapeError, match='^"x" is declared'):
        block.infer_shape(scope)
    del desc.vars[0], desc.inputs[:]
    with pytest.raises(ol.VerifyError, match='^main, op 0 .square.: "x" is not declared in this block or its parents$'):
        ol.Block(desc)


@pytest.mark.parametrize(
    "take",
    [ol.Net, ol.Block, lambda desc: ol.prune(desc, ["z"]), lambda desc: ol.eval("z", program=desc)],
    ids=["Net", "Block", "prune", "eval"],
)
def test_a_block_that_names_blocks_which_it_does_not_hold_is_refused(looping, take):
    for block, given in ((looping.main, "block 1, which an op owns"), (looping.blocks[1], "block 0, its parent")):
        with pytest.raises(ol.VerifyError) as raised:
            take(block.compile())
        assert (raised.value.message, raised.value.given, raised.value.hint) == (MISSING, (given,), HINT)


def test_a_message_of_an_earlier_format_is_read_and_of_another_one_refused():
    with ol.Program() as program:
        ol.op.reduce_sum(ol.layer.data("x", shape=[2]), name="z")
    desc = program_desc(program)
    desc.version = 0
    assert ol.Block(desc).compile() == program.main.compile()
    desc.version = 99
    with pytest.raises(ol.FormatError, match="^this ProgramDesc has format version 99; versions 1 to 2 are supported$"):
        ol.Block(desc)
    old = next(iter(OLD_OPERATORS))
    desc.version, desc.blocks[0].ops[0].type = 1, old
    assert (ol.Block(desc).ops[0].type, desc.blocks[0].ops[0].type) == (OLD_OPERATORS[old], old)


def test_a_message_with_the_slots_of_early_files_is_read():
    with ol.Program() as program:
        ol.optimizer.Adam(0.5).minimize(ol.layer.mean(ol.layer.fc(ol.layer.data("x", shape=[2]), 1)))
    desc = program_desc(program)
    for op in desc.blocks[0].ops:
        for slot in op.inputs:
            slot.name = "rate" if (op.type, slot.name) == ("adam", "learning_rate") else slot.name
    early = desc.SerializeToString()
    assert ol.Net(desc).program.to_bytes() == program.to_bytes(source=False)
    assert desc.SerializeToString() == early


# What a process finds that does nothing else before


@pytest.mark.parametrize("package", ["oarlock.ir", pytest.param("oarlock", marks=pytest.mark.slow)])
def test_a_block_that_came_to_another_process_runs_there(tmp_path, package):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2])
        ol.optimizer.SGD(0.5).minimize(ol.layer.mean(ol.layer.fc(x, 1, name="fc")))
    (tmp_path / "program").write_bytes(program.to_bytes())
    script = f"""
from {package} import Program
block = Program.from_bytes(open("program", "rb").read()).main
assert all(hasattr(block, name) for name in ("run", "eval", "infer_shape", "new_op"))
import oarlock as ol
scope = ol.init(block.program, ol.Scope())
scope["x"] = [[1.0, 2.0]]
block.run(scope)
print(scope["fc.out"].shape == block.eval("fc.out", scope).shape == block.infer_shape(scope)["fc.out"].shape)
"""
    assert run_python(script, tmp_path) == "True\n"


@pytest.mark.mission("F5")
@pytest.mark.parametrize(
    "call",
    [
        "ol.framework.create_operation_creators().sgd",
        *(
            pytest.param(call, marks=pytest.mark.slow)
            for call in (
                "ol.registry.standard.get('sgd')",
                "ol.cpp.operator('sgd', read={}, write={})",
                "ol.op.sgd",
                "ol.Net().add_op('sgd')",
                "ol.Program().main.new_op('sgd', {}, {})",
                "ol.registry.append_op(ol.ir.Program().main, 'sgd', {})",
                "ol.runtime and ol.registry.standard.get('sgd')",
            )
        ),
    ],
)
def test_every_operator_is_there_at_the_first_call_of_a_process(tmp_path, call):
    """`sgd` is in the file that inference leaves out; a call is refused for what it lacks, not for an unknown operator."""
    script = f"""
import oarlock as ol
try:
    {call}
except ol.ArgumentError:
    pass
print(len(ol.framework.create_operation_creators()) == len(list(ol.registry.standard)) > 300)
"""
    assert run_python(script, tmp_path) == "True\n"
