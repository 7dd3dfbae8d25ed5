"""Attributes that an operator got when there were programs with it: an op holds one only where it is not the default."""

import pytest

import oarlock as ol
from oarlock.errors import DeclarationError
from oarlock.op.pooling import max_pool2d_dx
from oarlock.registry import Catalogue, operator, standard
from oarlock.registry.value_checks import may_skip_checks


def _convolved(**attributes: object) -> ol.Program:
    with ol.Program() as program:
        x, filter = ol.layer.data("x", [2, 6, 6]), ol.layer.data("filter", [3, 2, 2, 2], batch=None)
        y = ol.op.conv2d(x, filter, **attributes)
        program.targets["dx"] = ol.gradients([ol.op.reduce_sum(ol.op.square(y))], [x, filter])[1]
    return program


def test_the_default_of_a_later_attribute_is_not_held_and_changes_no_text():
    plain, stated = _convolved(), _convolved(dilation=(1, 1), groups=1)
    assert stated.to_text(source=False) == plain.to_text(source=False)
    assert "groups" not in plain.to_text()
    assert ol.Executor().plan(stated, ["dx"]).text == ol.Executor().plan(plain, ["dx"]).text


def test_another_value_is_held_by_the_gradients_too():
    text = _convolved(dilation=(2, 1)).to_text(source=False)
    assert text.count("dilation=[2, 1]") == 3
    assert ol.registry.parse_program(text).to_text(source=False) == text


def test_a_kernel_without_the_default_is_refused():
    catalogue = Catalogue()

    @operator("x: float[*b] -> y: float[*b]", added_later=("factor",), catalogue=catalogue)
    def scaled(x, *, factor: float = 2.0):
        return x * factor

    @scaled.gradient("x")
    def scaled_dx(dy, *, factor):
        return dy * factor

    @operator("x: float[*b] -> y: float[*b]", added_later=("factor",), catalogue=catalogue)
    def scaled_by(x, *, factor: float):
        return x * factor

    assert scaled.convert_attributes({"factor": 2}) == {}
    assert scaled.convert_attributes({"factor": 3}) == {"factor": 3.0}
    for each in (scaled_dx, scaled_by):
        with pytest.raises(DeclarationError, match=f"^{each.type}: factor was added later, so the kernel must declare its default too$"):
            _ = each.attributes


def test_an_index_made_by_other_windows_is_not_trusted():
    with ol.Program() as program:
        x = ol.layer.data("x", [1, 5, 5], dtype="float64")
        windows = {"stride": (1, 1), "padding": (0, 0)}
        pooled = ol.op.max_pool2d(x, size=(2, 2), dilation=(2, 2), **windows)
        index = program.main.ops[-1].outputs["index"][0]
        max_pool2d_dx(index, pooled, x, size=(2, 2), dilation=(2, 2), **windows)
        max_pool2d_dx(index, pooled, x, size=(3, 3), **windows)
    own, other = program.main.ops[-2:]
    assert may_skip_checks(standard.get("max_pool2d_dx"), own)
    assert not may_skip_checks(standard.get("max_pool2d_dx"), other)
