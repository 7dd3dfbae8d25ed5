"""The order of passes, and what holds for each of them."""

from collections import Counter
from random import Random

import pytest
from generated.making import make
from generated.rewriting import Rewritings
from generated.running import DisagreementError
from generated.training import trained

import oarlock as ol
from oarlock.ir.traversal import inner_blocks
from oarlock.old_names import OLD_PASSES
from oarlock.passes.pipeline import PASSES, in_turn, optimize
from oarlock.registry.catalogue import standard


def test_passes_take_turns_twice_and_those_that_leave_less_to_do_come_last():
    assert in_turn(["multi_output_fusion", "fuse_sums", "cse", "multi_tensor_updates"]) == [
        "cse",
        "fuse_sums",
        "cse",
        "fuse_sums",
        "multi_output_fusion",
        "multi_tensor_updates",
    ]


def _ops(program: ol.Program) -> list[list[str]]:
    return [[op.type for op in block.ops] for block in inner_blocks(program.main)]


@pytest.mark.parametrize("number", range(0, 40, 4))
def test_sequences_that_are_followed_once_lead_where_optimize_leads(number):
    program, names = trained(make(7, number), Random(number))
    rewritings = Rewritings(program, names)
    for passes in (
        tuple(PASSES),
        ("batch_epilogue", "batch_prologue"),
        ("cse",),
        ("splat_propagation", "canonicalize"),
        ("fuse_sums", "inline", "licm"),
    ):
        copy = program.clone()
        applied = optimize(copy, [copy.main.vars[name] for name in names], standard, passes, checked=True)
        state, counts = rewritings.after(passes)
        assert _ops(state.program) == _ops(copy)
        assert counts == Counter(applied)
    rewritings.check()


def test_a_pass_that_says_that_it_did_nothing_is_believed_only_where_that_is_so(monkeypatch):
    def rename(program: ol.Program, catalogue: object) -> int:
        program.main.rename(program.main.inputs[0], "other")
        return 0

    with ol.Program() as program:
        y = ol.op.tanh(ol.layer.data("x", [2]))
    honest = Rewritings(program, [y.name])
    assert honest.after(["fuse_sums"])[0] is honest.start
    honest.check()
    monkeypatch.setitem(PASSES, "fuse_sums", rename)
    rewritings = Rewritings(program, [y.name])
    rewritings.after(["fuse_sums"])
    with pytest.raises(DisagreementError, match="one of fuse_sums changes what it says that it does not"):
        rewritings.check()


@pytest.mark.parametrize(("says", "when"), [(1, "after the pass fuse_sums"), (0, "after all passes")])
def test_a_pass_that_leaves_an_illegal_program_is_named_where_passes_are_checked(says, when, monkeypatch):
    def transpose(program: ol.Program, catalogue: object) -> int:
        program.main.ops[0].type = "matrix_transpose"
        return says

    with ol.Program() as program:
        y = ol.op.tanh(ol.layer.data("x", [2, 3], batch=None))
    monkeypatch.setitem(PASSES, "fuse_sums", transpose)
    with pytest.raises(ol.VerifyError) as caught:
        optimize(program, [y], standard, ("cse", "fuse_sums"), checked=True)
    assert str(caught.value).splitlines()[0] == (
        f'{when}: main, op 0 (matrix_transpose): "tanh_0" is declared as float32[2, 3], but float32[3, 2] is inferred from its inputs'
    )


def test_a_name_that_no_pass_has_is_refused():
    with pytest.raises(ol.ArgumentError) as caught:
        ol.Executor(passes=("licn",))
    assert str(caught.value) == (
        f'there is no pass "licn"\n      the passes are {", ".join(PASSES)}\n  Try: did you mean "licm"?    (oarlock explain ArgumentError)'
    )


def test_an_old_name_of_a_pass_works_and_warns():
    with pytest.warns(DeprecationWarning, match='^the pass "hoist" is called "licm" now$') as warned:
        executor = ol.Executor(passes=("hoist", "cse"))
    assert executor.passes == ("licm", "cse")
    assert warned[0].filename == __file__


def test_each_pass_that_has_an_old_name_is_there():
    assert set(OLD_PASSES.values()) < set(PASSES)
    assert not set(OLD_PASSES) & set(PASSES)
