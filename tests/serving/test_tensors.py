"""Tensors as JSON and as bytes: every dtype there and back, and what is no tensor."""

import json
import math

import pytest
import torch

import oarlock as ol
from oarlock.ir.dtype import DType
from oarlock.serving.tensors import DATATYPES, datatype_of, from_json, from_raw, nested_shape, to_json, to_raw
from oarlock.tensor.dtype import to_torch

EVERY = pytest.mark.parametrize("dtype", [dtype for dtype in DType if not dtype.is_complex], ids=str)  # JSON has no complex numbers


def values(dtype: DType) -> torch.Tensor:
    made = torch.tensor([[0.1, -3.25, 7.0], [1e-3, 0.0, 1.0]], dtype=torch.float64)
    return (made.abs() if dtype is DType.UINT8 else made).to(to_torch(dtype))


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.dtype is other.dtype and one.shape == other.shape and to_raw(one) == to_raw(other)


@EVERY
def test_every_dtype_has_a_datatype(dtype):
    assert DATATYPES[datatype_of(dtype)] is dtype


@EVERY
def test_json_gives_the_same_bits_back(dtype):
    for tensor in (values(dtype), values(dtype)[:0], values(dtype)[0, 0]):
        written = json.loads(json.dumps(to_json(tensor), allow_nan=False))
        assert same_bits(from_json("x", written, list(tensor.shape), dtype), tensor)
        assert same_bits(from_json("x", tensor.tolist(), list(tensor.shape), dtype), tensor)


@EVERY
def test_bytes_give_the_same_bits_back(dtype):
    for tensor in (values(dtype), values(dtype)[:0], values(dtype)[0, 0], values(dtype).mT):
        assert same_bits(from_raw("x", to_raw(tensor), list(tensor.shape), dtype), tensor)


@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.FLOAT64], ids=str)
def test_what_json_has_no_numbers_for_is_spelled(dtype):
    tensor = torch.tensor([math.nan, math.inf, -math.inf, 1.0], dtype=to_torch(dtype))
    written = to_json(tensor)
    assert written == ["NaN", "Infinity", "-Infinity", 1.0]
    back = from_json("x", written, [4], dtype)
    assert math.isnan(back[0])
    assert back[1:].tolist() == [math.inf, -math.inf, 1.0]


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63), 2**53 + 1])
def test_whole_numbers_are_not_read_as_floats(number):
    assert from_json("x", [number], [1], DType.INT64).item() == number


@pytest.mark.parametrize(
    ("data", "shape", "dtype", "message"),
    [
        ([1, 2], [3], DType.INT64, '"x" of shape [3] needs 3 elements, but has 2'),
        ([[1], [2, 3]], [2, 2], DType.INT64, '"x" has shape [2, 2], but its data is nested differently'),
        ([[1, 2], 3], [2, 2], DType.INT64, '"x" has shape [2, 2], but its data is nested differently'),
        ([[1, 2]], [2, 1], DType.INT64, '"x" has shape [2, 1], but its data is nested differently'),
        ([1, [2]], [2], DType.INT64, '"x" must contain int64 data, not [2]'),
        ([1.5], [1], DType.INT64, '"x" must contain int64 data, not 1.5'),
        ([True], [1], DType.INT64, '"x" must contain int64 data, not True'),
        ([1], [1], DType.BOOL, '"x" must contain bool data, not 1'),
        (["a"], [1], DType.FLOAT32, "\"x\" must contain float32 data, not 'a'"),
        ([None], [1], DType.FLOAT32, '"x" must contain float32 data, not None'),
        ([2**63], [1], DType.INT64, '"x": a number is out of range for int64'),
        ([300], [1], DType.UINT8, '"x": a number is out of range for uint8'),
        ([-1], [1], DType.UINT8, '"x": a number is out of range for uint8'),
        ([10**400], [1], DType.FLOAT64, '"x": a number is out of range for float64'),
        ("text", [1], DType.FLOAT32, '"x" needs a list as data'),
        ({"a": 1}, [1], DType.FLOAT32, '"x" needs a list as data'),
        (None, [0], DType.FLOAT32, '"x" needs a list as data'),
    ],
)
def test_what_is_no_such_tensor_is_refused(data, shape, dtype, message):
    with pytest.raises(ol.FeedError) as raised:
        from_json("x", data, shape, dtype)
    assert raised.value.message == message


def test_bytes_that_are_no_such_tensor_are_refused():
    with pytest.raises(ol.FeedError, match="needs 8 bytes, but has 7"):
        from_raw("x", b"1234567", [2], DType.FLOAT32)
    with pytest.raises(ol.FeedError, match="a byte is neither 0 nor 1"):
        from_raw("x", b"\0\2", [2], DType.BOOL)


def test_the_shape_of_nested_lists():
    assert nested_shape([[1, 2, 3], [4]]) == [2, 3]
    assert nested_shape(3) == []
    assert nested_shape([]) == [0]
    deep: object = 1
    for _ in range(100):
        deep = [deep]
    assert len(nested_shape(deep)) == 16
