import math

import pytest

import oarlock as ol
from oarlock.ir.attribute import Sizes, format_attribute, read_attribute, write_attribute
from oarlock.proto import program_pb2 as wire

VALUES = [
    (True, "true"),
    (False, "false"),
    (3, "3"),
    (-(2**63), "-9223372036854775808"),
    (0.5, "0.5"),
    (math.inf, "inf"),
    ("a", '"a"'),
    ('say "\\"\n', '"say \\"\\\\\\"\\n"'),
    (b"abc", 'bytes("YWJj")'),
    (ol.DType.INT8, "int8"),
    (Sizes(("n", 2, "2*n+1")), "shape[n, 2, 2*n+1]"),
    (Sizes(()), "shape[]"),
    ((1, 2), "[1, 2]"),
    ((), "[]"),
    ((0.5, 2.0), "[0.5, 2.0]"),
    (("a", "b"), '["a", "b"]'),
]


@pytest.mark.parametrize(("value", "text"), VALUES, ids=[text for _, text in VALUES])
def test_an_attribute_is_written_read_and_printed(value, text):
    desc = wire.AttributeDesc()
    write_attribute("name", value, desc)
    found = read_attribute(wire.AttributeDesc.FromString(desc.SerializeToString()))
    assert (desc.name, found, type(found)) == ("name", value, type(value))
    assert format_attribute(value) == text


@pytest.mark.parametrize("value", [None, [1], {}, (1, "a"), (True,), object, 1j], ids=repr)
def test_an_attribute_cannot_hold_just_anything(value):
    with pytest.raises(ol.ArgumentError) as caught:
        write_attribute("name", value, wire.AttributeDesc())
    assert str(caught.value) == f"{value!r} is not a valid attribute"


@pytest.mark.parametrize("value", [2**63, (2**63,), "\ud800"], ids=["int", "ints", "string"])
def test_an_attribute_cannot_hold_what_the_file_cannot(value):
    with pytest.raises(ol.ArgumentError, match=r"^.* is not a valid attribute: "):
        write_attribute("name", value, wire.AttributeDesc())


def test_an_attribute_that_holds_nothing_is_not_read():
    with pytest.raises(ValueError, match="^it has no value$"):
        read_attribute(wire.AttributeDesc(name="name"))
