"""Each 23rd program of the grid of `generated.steps`: what varies from trip to trip beside what does not, before and after the passes."""

import numpy
import pytest
from generated.steps import LENGTHS, Variant, arrays_of, check, differentiate, variants, write
from tolerances import PASSES_DIFFER

import oarlock as ol

FEW = list(variants(23))


def test_there_are_seventy_nine_of_each_loop_each_value_and_each_place():
    assert len(FEW) == 79
    for part in ("loop", "varying", "fixed", "way", "place"):
        everything = {getattr(variant, part) for variant in variants()}
        assert {getattr(variant, part) for variant in FEW} == everything


@pytest.mark.parametrize("variant", FEW, ids=str)
def test_gradients_of_a_step_are_those_of_autograd_before_and_after_all_passes(variant):
    check(variant, ("equal", "uneven", "with empty rows"), passes=())


@pytest.mark.parametrize("variant", FEW[3::14], ids=str)
def test_gradients_of_a_step_are_the_same_after_each_pass_alone_and_where_no_row_has_a_step(variant):
    check(variant, ("uneven", "all empty", "no rows"))


@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
def test_the_grid_agrees_with_what_can_be_worked_out_by_hand(lengths):
    forward, cost = write(Variant("ragged", "row", "a product", "multiply", "as it is"))
    program, gradients = differentiate(forward, cost)
    arrays = arrays_of(program, lengths)
    feed = {var.name: arrays[var.name] for var in program.main.inputs}
    total, ds, dx = ol.Executor().run(program, feed, [cost, gradients["s"], gradients["x"]], scope=ol.Scope())
    x, s, count = arrays["x"], arrays["s"], numpy.array(lengths, "float64").reshape(-1, 1)
    numpy.testing.assert_allclose(total, numpy.sum(count * x**2 * s**4), *PASSES_DIFFER)
    numpy.testing.assert_allclose(ds, numpy.sum(count * 4 * x**2 * s**3), *PASSES_DIFFER)
    numpy.testing.assert_allclose(dx, count * 2 * x * s**4, *PASSES_DIFFER)
