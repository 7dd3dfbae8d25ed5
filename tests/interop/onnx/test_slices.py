"""Slices with bounds beyond an axis whose size is a symbol: what comes in and what goes out, beside ONNX Runtime."""

import numpy
import pytest

pytest.importorskip("onnxruntime")

import onnxruntime
from interop.onnx.models import INT64, model, node, tensor, written
from interop.onnx.onnx_sessions import session_of

import oarlock as ol

FAR, LEAST, FAR_32 = 2**63 - 1, -(2**63), 2**31 - 1
BOUNDS = {
    "constant_beyond": (0, 512, 1),
    "last_ones": (-4, FAR, 1),
    "from_on": (5, FAR_32, 1),
    "inner": (1, -1, 1),
    "none_left": (4, 2, 1),
    "from_far_back": (-512, 2, 1),
    "every_other": (LEAST, FAR, 2),
    "back": (-1, LEAST, -1),
    "back_from_far": (FAR, LEAST, -1),
    "back_between": (5, 0, -2),
    "back_from_beyond": (600, -4, -1),
    "back_from_far_back": (-600, LEAST, -1),
    "back_from_the_third_last": (-3, -600, -1),
    "back_to_the_front_in_32_bits": (FAR_32, -FAR_32, -3),
}
SIZES = (1, 2, 3, 4, 5, 7, 600)


def matrix(t: int, rows: int = 2) -> numpy.ndarray:
    return numpy.random.default_rng(t).normal(size=(rows, t)).astype("float32")


@pytest.mark.parametrize("size", ["t", 3, 7])
@pytest.mark.parametrize("name", BOUNDS)
def test_a_slice_that_comes_in_is_clipped_as_the_runtime_clips_it(name, size, tmp_path):
    start, end, step = BOUNDS[name]
    constants = [tensor(key, [value], "int64") for key, value in (("start", start), ("end", end), ("axis", 1), ("step", step))]
    built = model([node("Slice", ["x", "start", "end", "axis", "step"], ["y"])], {"x": ["n", size]}, ["y"], constants)
    imported = ol.from_onnx(written(tmp_path, built))
    session = onnxruntime.InferenceSession(built.SerializeToString())
    for t in SIZES if size == "t" else [size]:
        (wanted,) = session.run(None, {"x": matrix(t)})
        assert numpy.array_equal(ol.infer(imported, {"x": matrix(t)}), wanted), t


def test_what_is_sliced_alike_keeps_one_size_and_joins_again(tmp_path):
    names = [("one", 1), ("zero", 0), ("less", -1), ("far", FAR), ("axis", 1)]
    constants = [tensor(key, [value], "int64") for key, value in names]
    built = model(
        [
            node("Slice", ["x", "one", "far", "axis"], ["later"]),
            node("Slice", ["x", "zero", "less", "axis"], ["earlier"]),
            node("Sub", ["later", "earlier"], ["difference"]),
            node("Shape", ["difference"], ["shape"]),
            node("Reshape", ["difference", "row"], ["flat"]),
            node("Reshape", ["flat", "shape"], ["y"]),
        ],
        {"x": ["n", "t"]},
        ["y"],
        [*constants, tensor("row", [-1], "int64")],
    )
    imported = ol.from_onnx(written(tmp_path, built))
    assert imported.program.targets["y"].shape == ("n", "t-min(t,1)")
    for t in (0, 1, 2, 7):
        assert numpy.array_equal(ol.infer(imported, {"x": matrix(t)}), numpy.diff(matrix(t)))


def test_a_bound_that_counts_from_the_size_of_another_axis_is_refused_beyond_the_axis(tmp_path):
    constants = [tensor(key, [value], "int64") for key, value in (("zero", 0), ("axis", 1))]
    built = model(
        [node("Shape", ["like"], ["end"], end=1), node("Slice", ["x", "zero", "end", "axis"], ["y"])],
        {"x": ["n", "t"], "like": ["m"]},
        ["y"],
        constants,
    )
    imported = ol.from_onnx(written(tmp_path, built))
    feed = {"x": matrix(5), "like": numpy.zeros(3, "float32")}
    assert numpy.array_equal(ol.infer(imported, feed), matrix(5)[:, :3])
    with pytest.raises(ol.ShapeError) as raised:
        ol.infer(imported, {**feed, "like": numpy.zeros(7, "float32")})
    assert raised.value.message == "narrow: axis 1 has size 5, so 7 elements from 0 are out of range"


def test_a_slice_back_between_bounds_that_the_run_tells(tmp_path):
    constants = [tensor(key, [value], "int64") for key, value in (("axis", 1), ("step", -1), ("end", LEAST))]
    built = model(
        [node("Slice", ["x", "start", "end", "axis", "step"], ["y"])],
        {"x": ["n", "t"], "start": (INT64, [1])},
        ["y"],
        constants,
    )
    imported = ol.from_onnx(written(tmp_path, built))
    session = onnxruntime.InferenceSession(built.SerializeToString())
    for start in (0, 2, 600, -1, -3, -600):
        feed = {"x": matrix(4), "start": numpy.array([start])}
        (wanted,) = session.run(None, feed)
        assert numpy.array_equal(ol.infer(imported, feed), wanted), start


CUTS = {
    ":512": slice(None, 512),
    "-4:": slice(-4, None),
    "5:": slice(5, None),
    "1:-1": slice(1, -1),
    "-512:2": slice(-512, 2),
    "::-1": slice(None, None, -1),
    "5::-2": slice(5, None, -2),
}


@pytest.mark.parametrize("text", CUTS)
def test_a_slice_and_its_gradient_go_out(text):
    cut = (slice(None), CUTS[text])
    with ol.Program() as program:
        x = ol.layer.data("x", ["t"])
        y = x[cut]
        program.targets["y"] = ol.op.flatten(y * 2.0, start=0)
        program.targets["count"] = ol.op.size(y, axis=1)
        (program.targets["slope"],) = ol.gradients([ol.op.reduce_sum(y * y)], [x])
    session = session_of(program, ol.Scope())
    for t in SIZES:
        given, found = matrix(t), session.run({"x": matrix(t)})
        slope = numpy.zeros_like(given)
        slope[cut] = 2 * given[cut]
        assert numpy.array_equal(found["y"], 2 * given[cut].ravel()), t
        assert found["count"] == given[cut].shape[1]
        assert numpy.array_equal(found["slope"], slope), t


def test_a_size_that_is_the_least_of_others_goes_out_as_arithmetic():
    with ol.Program() as program:
        x = ol.layer.data("x", ["t"])
        row = ol.op.broadcast_to(ol.op.full(shape=(1,), value=1.0), [x], shape=("(min(t,5)+1)//2+2*min(t,3)",))
        program.targets["y"] = row
    for t in (1, 3, 4, 7):
        (found,) = session_of(program, ol.Scope()).run({"x": matrix(t)}).values()
        assert found.shape == (2 * min(t, 3) + (min(t, 5) + 1) // 2,)
        (ours,) = ol.Executor().run(program, {"x": matrix(t)}, [row], scope=ol.Scope())
        assert ours.shape == found.shape


def test_a_size_that_is_read_as_a_value_is_arithmetic_of_the_run(tmp_path):
    """Twice a part of every other column, of which the size is twice a floor division: a division binds tighter than a product."""
    constants = [
        tensor(key, [value], "int64") for key, value in (("zero", 0), ("one", 1), ("five", 5), ("far", FAR), ("axis", 1), ("two", 2))
    ]
    built = model(
        [
            node("Slice", ["x", "one", "far", "axis", "two"], ["odd"]),
            node("Slice", ["x", "zero", "five", "axis"], ["first"]),
            node("Concat", ["odd", "odd", "first"], ["whole"], axis=1),
            node("Shape", ["whole"], ["count"], start=1),
            node("Cast", ["count"], ["y"], to=1),
        ],
        {"x": ["n", "t"]},
        ["y"],
        constants,
    )
    imported = ol.from_onnx(written(tmp_path, built))
    for t in (0, 1, 2, 3, 7, 8):
        assert ol.infer(imported, {"x": matrix(t)}) == 2 * (t // 2) + min(t, 5)
