"""The numbers that a dtype can hold."""

import pytest

from oarlock.ir.dtype import DType


@pytest.mark.parametrize(
    ("dtype", "held", "not_held"),
    [
        (DType.FLOAT32, [0.1, -1e300, float("nan")], []),
        (DType.INT8, [-128, 127, 3.0], [-129, 128, 0.5, float("nan"), float("inf")]),
        (DType.UINT8, [0, 255], [-1, 256]),
        (DType.INT64, [-(2**63)], [2**63]),
        (DType.BOOL, [0.0, 1.0], [2.0, 0.5]),
    ],
)
def test_a_dtype_holds_its_range_and_a_float_any_number(dtype, held, not_held):
    assert all(map(dtype.holds, held))
    assert not any(map(dtype.holds, not_held))
