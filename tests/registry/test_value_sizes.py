"""Sizes that only values tell: each has a name of its own, so no kernel is handed memory that is smaller than its program says."""

import numpy as np
import pytest

import oarlock as ol
from oarlock.registry import parse_program

EXECUTORS = {
    "interpreter": ol.Executor(interpret=True),
    "plan_without_passes": ol.Executor(passes=()),
    "plan": ol.Executor(),
}


def refusal(text: str) -> str:
    """Why a program in text form is refused."""
    with pytest.raises(ol.VerifyError) as caught:
        parse_program(f"program seed=0\n{text}")
    return caught.value.message


def test_rows_that_are_chosen_are_not_as_many_as_are_fed():
    message = refusal("""
        block main(c: bool[n], x: float32[n, 2], s: float32[n, 1]) {
          r: int64[n] = nonzero(condition=c, value=true)
          m: float32[n, 1] = gather(x=s, rows=r)
          y: float32[n, 2] = layer_norm_grad(x=x, mean=m, rstd=m, dy=x)
        }""")
    assert message == (
        'main, op 0 (nonzero): "r" is declared as int64[n], but an earlier variable has size n too; '
        "a size that depends on values needs a unique name"
    )


def test_two_ops_do_not_make_one_size():
    message = refusal("""
        block main(c: bool[n], d: bool[m]) {
          r: int64[k] = nonzero(condition=c, value=true)
          s: int64[k] = nonzero(condition=d, value=true)
        }""")
    assert message == (
        'main, op 1 (nonzero): "s" is declared as int64[k], but the result of nonzero has size k too; '
        "a size that depends on values needs a unique name"
    )


def test_blocks_side_by_side_do_not_make_one_size():
    message = refusal("""
        block main(c: bool[n], p: bool[], q: bool[]) {
          [a: int64[ran, k]] = conditional_block(values=[], free=[c], when=p, body={first})
            block first() -> (r) {
              r: int64[k] = nonzero(condition=c, value=true)
            }
          [b: int64[also, k]] = conditional_block(values=[], free=[c], when=q, body={second})
            block second() -> (s) {
              s: int64[k] = nonzero(condition=c, value=false)
            }
        }""")
    assert message == (
        'main/second, op 0 (nonzero): "s" is declared as int64[k], but the result of nonzero has size k too; '
        "a size that depends on values needs a unique name"
    )


def test_nor_where_the_first_keeps_it_inside():
    message = refusal("""
        block main(c: bool[n], p: bool[]) {
          [a: int64[ran]] = conditional_block(values=[], free=[c], when=p, body={first})
            block first() -> (count) {
              r: int64[k] = nonzero(condition=c, value=true)
              count: int64[] = numel(like=r, dtype=int64)
            }
          s: int64[k] = nonzero(condition=c, value=false)
        }""")
    assert message == (
        'main, op 1 (nonzero): "s" is declared as int64[k], but the result of nonzero has size k too; '
        "a size that depends on values needs a unique name"
    )


@pytest.mark.parametrize("size", ["2*k", "k+1", "n", "3"])
def test_what_only_values_tell_is_called_by_a_name(size: str):
    """Not by a sum or product of names, of which nobody could say what they are, and not by a number."""
    assert "declared as int64" in refusal(f"""
        block main(c: bool[n]) {{
          r: int64[{size}] = nonzero(condition=c, value=true)
        }}""")


def test_two_sizes_of_one_op_are_two():
    message = refusal("""
        block main(shape: int64[2]) {
          y: float32[k, k] = full(shape=$shape, value=0.0, dtype=float32)
        }""")
    assert message == 'main, op 0 (full): "y" is declared as float32[k, k], but float32[?, ?] is inferred from its inputs'


def test_a_sum_over_the_steps_has_a_size_that_no_step_makes():
    message = refusal("""
        block main(c: bool[t, n], x: float32[n, 2]) {
          [], [], [total: float32[k, 2]] = recurrent(sequences=[c], initial=[], free=[x], body={step}, summed=1, reverse=false)
            block step(now: bool[n]) -> (part) {
              r: int64[k] = nonzero(condition=now, value=true)
              part: float32[k, 2] = gather(x=x, rows=r)
            }
        }""")
    assert message == "main, op 0 (recurrent): sum 0 is float32[k, 2], whose size may differ between steps"


TWO_LOOPS = """
    block main(a: float32[t, 2], a.splits: int64[n+1] row_splits_of t, b: float32[u, 2], b.splits: int64[m+1] row_splits_of u) {
      [x: float32[p, 2, k]], [], [] = recurrent(sequences=[a], initial=[], free=[], splits=a.splits, body={first}, summed=0, reverse=false)
        block first(a_now: float32[k, 2]) -> (turned) {
          turned: float32[2, k] = transpose(x=a_now, axes=[1, 0])
        }
      [y: float32[q, 2, ROWS]], [], [] = recurrent(
        sequences=[b], initial=[], free=[], splits=b.splits, body={second}, summed=0, reverse=false)
        block second(b_now: float32[ROWS, 2]) -> (turned) {
          turned: float32[2, ROWS] = transpose(x=b_now, axes=[1, 0])
        }
    }"""


def _summed(text: str, stack: str, rows: str, step: str) -> str:
    """The loops, of which one returns a number for each step in place of its rows."""
    turned, number = f"turned: float32[2, {rows}] = transpose(x={step}, axes=[1, 0])", "turned: float32[] = reduce_sum(x="
    assert f"{stack}, 2, {rows}]" in text
    assert turned in text
    return text.replace(f"{stack}, 2, {rows}]", f"{stack}]").replace(turned, f"{number}{step}, keepdim=false)")


def test_two_ragged_loops_do_not_count_different_rows_by_one_name():
    message = refusal(TWO_LOOPS.replace("ROWS", "k"))
    assert message == (
        "main, op 1 (recurrent): its block uses k as its number of rows, but an earlier variable has size k too; "
        "a size that depends on values needs a unique name"
    )
    parse_program("program seed=0" + TWO_LOOPS.replace("ROWS", "l"))


def test_what_two_loops_call_by_one_name_stays_inside_them():
    """One that returns it, though after the other, would have them taken for one."""
    apart = _summed(TWO_LOOPS, "x: float32[p", "k", "a_now")
    assert refusal(apart.replace("ROWS", "k")) == (
        'main: "y" is declared as float32[q, 2, k], but main/first and main/second use k for different rows'
    )
    parse_program("program seed=0" + apart.replace("ROWS", "l"))
    inside = _summed(apart, "y: float32[q", "ROWS", "b_now")
    parse_program("program seed=0" + inside.replace("ROWS", "k"))


def test_a_size_that_is_known_inside_a_block_is_not_made_there():
    message = refusal("""
        block main(c: bool[t, n]) {
          [s: int64[t, n]], [], [] = recurrent(sequences=[c], initial=[], free=[], body={step}, summed=0, reverse=false)
            block step(now: bool[n]) -> (s) {
              s: int64[n] = nonzero(condition=now, value=true)
            }
        }""")
    assert message == (
        'main/step, op 0 (nonzero): "s" is declared as int64[n], but an earlier variable has size n too; '
        "a size that depends on values needs a unique name"
    )


HANDED_BACK = """
    block main(x: float32[t, 2], splits: int64[n+1] row_splits_of t, y: float32[s, 2, k], z: float32[k, 2]) {
      [out: float32[s]], [], [] = recurrent(sequences=[x, y], initial=[], free=[], splits=splits, body={step}, summed=0, reverse=false)
        block step(now: float32[k, 2], turned: float32[2, k]) -> (both) {
          back: float32[k, 2] = transpose(x=turned, axes=[1, 0])
          product: float32[k, 2] = multiply(x=now, y=back)
          both: float32[] = reduce_sum(x=product, keepdim=false)
        }
    }
    target out = out"""


@pytest.mark.parametrize("name", EXECUTORS)
def test_rows_that_have_a_step_are_as_many_as_what_tells_them_otherwise(name: str):
    """A gradient reads, step by step, what a forward step was given; where sizes lie a run refuses them before a kernel reads them."""
    program = parse_program(f"program seed=0\n{HANDED_BACK}")
    x = np.arange(8, dtype="float32").reshape(4, 2)
    even = {"x": x, "splits": np.array([0, 2, 4]), "y": np.ones((2, 2, 2), "float32"), "z": np.ones((2, 2), "float32")}
    assert EXECUTORS[name].run(program, even, ["out"], scope=ol.Scope())[0].tolist() == [0 + 1 + 4 + 5, 2 + 3 + 6 + 7]
    lie = {**even, "splits": np.array([0, 3, 4]), "y": np.ones((3, 2, 2), "float32")}
    with pytest.raises(ol.KernelError) as caught:
        EXECUTORS[name].run(program, lie, ["out"], scope=ol.Scope())
    assert caught.value.message == 'recurrent: "turned" is declared float32[2, k], but is [2, 2] with k = 1'


RAN = """
    block main(x: float32[n, 2], when: bool[]) {
      [y: float32[n, 2]] = conditional_block(values=[x], free=[], when=when, body={once})
        block once(row: float32[2]) -> (after) {
          after: float32[2] = relu(x=row)
        }
    }
    target y = y"""


@pytest.mark.parametrize("name", EXECUTORS)
def test_a_branch_that_may_run_is_given_one_value_or_none(name: str):
    """Its values have one row where it runs and none where it does not; then what it returns has as many as they."""
    program = parse_program(f"program seed=0\n{RAN}")
    for rows in (0, 1):
        x = np.full((rows, 2), 3.0, "float32")
        (y,) = EXECUTORS[name].run(program, {"x": x, "when": np.array(bool(rows))}, ["y"], scope=ol.Scope())
        assert np.array_equal(y, x)
    for rows, when, message in (
        (3, True, "conditional_block: a value of 3 rows, but the block runs"),
        (0, True, "conditional_block: a value of 0 rows, but the block runs"),
        (1, False, "conditional_block: a value of 1 row, but the block does not run"),
    ):
        with pytest.raises(ol.KernelError) as caught:
            EXECUTORS[name].run(program, {"x": np.zeros((rows, 2), "float32"), "when": np.array(when)}, ["y"], scope=ol.Scope())
        assert caught.value.message == message
