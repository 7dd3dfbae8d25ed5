"""A block runs itself and evaluates targets of it; pruning and evaluating take variables, names, lists and descriptions."""

import numpy as np
import pytest

import oarlock as ol
from oarlock.proto import program_pb2 as wire

X = np.array([[1, 2], [-3, 4]], "float32")


@pytest.fixture
def program():
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", shape=[2])
        y = ol.op.square(x, name="y")
        ol.op.neg(y, name="z")
        ol.op.tanh(x, name="aside")
        program.targets["answer"] = ol.layer.fc(y, 1, name="fc")
    return program


@pytest.mark.mission("B42", "B44", "B46")
@pytest.mark.parametrize("where", [None, ol.CPUPlace(), "context"])
def test_a_block_runs_its_ops_in_order_in_a_scope(program, where):
    scope = ol.init(program, ol.Scope())
    scope["x"] = X
    context = ol.Context(ol.Scope(), training=True) if where == "context" else where
    program.main.run(scope, context, 0, 2)
    assert scope["z"].tolist() == (-X * X).tolist()
    assert "aside" not in scope
    program.main.run(scope, context, 2)
    np.testing.assert_allclose(scope["aside"], np.tanh(X), rtol=1e-6)


@pytest.mark.mission("B48")
def test_a_block_evaluates_targets_and_leaves_the_scope_as_it_is(program):
    scope = ol.init(program, ol.Scope())
    scope["x"] = X
    before = list(scope)
    z, y = program.main.eval(["z", program.main.var("y")], scope, ol.CPUPlace())
    assert (z.tolist(), y.tolist()) == ((-X * X).tolist(), (X * X).tolist())
    assert program.main.eval(["z"], scope, None, {"x": -2 * X})[0].tolist() == (-4 * X * X).tolist()
    for one in ("z", program.main.var("z")):
        assert program.main.eval(one, scope).tolist() == (-X * X).tolist()
        assert program.main.eval((one,), scope)[0].tolist() == (-X * X).tolist()
    with pytest.raises(ol.ArgumentError, match="^fetch must be a list of variables or names, not int 3\n"):
        program.main.eval(3, scope)
    assert list(scope) == before
    with pytest.raises(ol.UndefinedVarError, match='did you mean "aside"'):
        program.main.eval(["asid"], scope)


def test_a_block_inside_another_is_not_evaluated_alone():
    with ol.Program() as program:
        x = ol.sequence([1, 2])
        rnn = ol.rnn()
        with rnn.step():
            rnn.output(ol.op.tanh(x))
        rnn()
    with pytest.raises(ol.ProgramError, match=r"^main/rnn_0.body is a nested block"):
        program.blocks[1].eval(["tanh_0"], ol.Scope())


@pytest.mark.mission("B47", "B49")
@pytest.mark.parametrize("targets", ["z", ["z"], ("z",), {"z": "z"}, "var", ["var"], {"z": "var"}], ids=str)
def test_pruning_takes_names_variables_and_lists_of_them(program, targets):
    z = program.main.var("z")
    given = {"z": z} if targets == {"z": "var"} else z if targets == "var" else [z] if targets == ["var"] else targets
    pruned = ol.prune(program, given)
    assert [op.type for op in pruned.main.ops] == ["square", "neg"]
    assert pruned.targets == {"z": pruned.main.var("z")}
    assert pruned.to_bytes() == ol.prune(program, {"z": z}).to_bytes()
    assert ol.prune(program, ["z", "aside"]).targets.keys() == {"z", "aside"}


@pytest.mark.mission("B47")
def test_a_block_is_pruned_to_that_of_a_new_program(program):
    kept = ol.prune(program.main, ["z"])
    assert isinstance(kept, ol.ir.Block)
    assert kept.program.to_bytes() == ol.prune(program, ["z"]).to_bytes()
    assert kept.program is not program
    for wrong, given in ((None, "NoneType None"), (3, "int 3"), (ol.Net(program), "Net <Net of 4 ops>")):
        with pytest.raises(ol.ArgumentError) as raised:
            ol.prune(wrong, ["z"])
        assert raised.value.message == f"prune takes a program, its main block, a BlockDesc or a ProgramDesc, not {given}"


def test_a_block_inside_another_is_not_pruned_alone():
    with ol.Program() as program:
        x, rnn = ol.layer.data("x", shape=[]), ol.rnn()
        with rnn.step():
            rnn.output(ol.op.tanh(rnn.step_input(x)))
        rnn()
    inner = program.blocks[1]
    for ask, what in ((lambda: ol.prune(inner, ["tanh_0"]), "prune"), (lambda: ol.eval("tanh_0", program=inner), "eval")):
        with pytest.raises(ol.ProgramError) as raised:
            ask()
        assert raised.value.message == f"{what}: main/rnn_0.body is inside another block, by whose op it is run"
        assert raised.value.hint == "give the program, or program.main; what the blocks inside it do for the targets is kept"


@pytest.mark.parametrize(
    ("targets", "error"),
    [
        ([], ol.ArgumentError),
        ([3], ol.ArgumentError),
        (None, ol.ArgumentError),
        ("zz", ol.UndefinedVarError),
        ({"a b": "z"}, ol.ProgramError),
    ],
)
def test_what_is_no_target_is_refused(program, targets, error):
    with pytest.raises(error):
        ol.prune(program, targets)


@pytest.mark.mission("B47")
def test_a_description_is_pruned_to_a_description_which_runs_elsewhere(program):
    desc = program.main.compile()
    kept = ol.prune(desc, ["z"])
    assert isinstance(kept, wire.BlockDesc)
    assert [op.type for op in kept.ops] == ["square", "neg"]
    assert [op.type for op in desc.ops] == ["square", "neg", "tanh", "linear"], "it is not changed"
    sent = wire.BlockDesc.FromString(kept.SerializeToString())
    scope = ol.Scope()
    scope["x"] = X
    ol.Net(sent).block.run(scope, ol.CPUPlace())
    assert scope["z"].tolist() == (-X * X).tolist()
    with ol.scope.guard(scope):
        assert ol.eval("z", program=sent).tolist() == (-X * X).tolist()
    del sent.vars[0]
    with pytest.raises(ol.OarlockError):
        ol.prune(sent, ["z"])


def test_eval_takes_names_of_the_program_that_is_being_written_or_is_given(program):
    with ol.scope.guard(ol.Scope()):
        with program:
            assert ol.eval("z", {"x": X}).tolist() == (-X * X).tolist()
        y, z = ol.eval([program.main.var("y"), "z"], {"x": X})
        assert (y.tolist(), z.tolist()) == ((X * X).tolist(), (-X * X).tolist())
        answer = ol.eval("answer", {"x": X}, program=program)
        np.testing.assert_allclose(answer, X * X @ ol.scope.current()["fc.w"].numpy(), rtol=1e-6)
        for wrong, given in (
            ([], r"list \[\]"),
            ([3], r"list \[3\]"),
            (3, "int 3"),
            ({"z": "z"}, "dict {'z': 'z'}"),
            (None, "NoneType None"),
        ):
            with pytest.raises(ol.ArgumentError, match=f"^eval: expected a variable or its name, or a list of them, not {given}\n"):
                ol.eval(wrong, {"x": X}, program=program)
        with pytest.raises(ol.ArgumentError, match="program must be a program, its main block, a BlockDesc or a ProgramDesc, not int 3"):
            ol.eval("z", {"x": X}, program=3)
        assert ol.eval(("z",), {"x": X}, program=program.main)[0].tolist() == (-X * X).tolist()
