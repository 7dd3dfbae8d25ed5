"""Values begin where kernels read them fastest, wherever they came from: elsewhere a product of one row took half as long again."""

import numpy
import pytest
import torch

import oarlock as ol

LINE = 64  # bytes that a processor reads at once


def misaligned(values):
    """The same array, in memory that begins in the middle of a cache line."""
    room = numpy.empty(values.nbytes + 2 * LINE, dtype=numpy.uint8)
    start = -room.ctypes.data % LINE + 16
    array = room[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    array[...] = values
    assert array.ctypes.data % LINE == 16
    return array


def is_aligned(tensor):
    return tensor.data_ptr() % LINE == 0


ARRAYS = {
    "rows": numpy.arange(12.0, dtype="float32").reshape(3, 4),
    "columns": numpy.asfortranarray(numpy.arange(12.0).reshape(3, 4)),
    "backwards": numpy.arange(12)[::-1],
    "one number": numpy.array(7.0),
    "none": numpy.zeros((0, 3), dtype="int32"),
}


@pytest.mark.parametrize("array", list(ARRAYS.values()), ids=list(ARRAYS))
def test_an_array_is_copied_to_an_aligned_tensor(array):
    scope = ol.Scope()
    given = misaligned(array) if array.size else array
    scope["w"] = given
    held = scope["w"]
    assert held.is_contiguous()
    assert is_aligned(held)
    assert numpy.array_equal(held.numpy(), array)
    assert held.numpy().dtype == array.dtype
    if array.size:
        given[...] = 0
        assert numpy.array_equal(scope["w"].numpy(), array), "it is a copy"


def test_a_read_only_array_is_copied_without_a_warning(recwarn):
    array = numpy.ones(3)
    array.flags.writeable = False
    scope = ol.Scope()
    scope["w"] = array
    assert torch.equal(scope["w"], torch.ones(3, dtype=torch.float64))
    assert not recwarn.list


def test_what_is_drawn_or_read_from_a_file_is_aligned(tmp_path):
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", shape=[3])
        program.targets["y"] = ol.layer.fc(ol.layer.fc(x, 5, name="f"), 7, name="g")
    scope = ol.init(program, ol.Scope())
    assert all(is_aligned(scope[name]) for name in scope)
    path = tmp_path / "model.safetensors"
    ol.save_model(program, scope, path)
    model = ol.load_model(path)
    held = [model.scope[name] for name in model.scope]
    assert len(held) == 4
    assert all(map(is_aligned, held))
