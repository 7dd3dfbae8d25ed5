"""Models and weights of strangers: windows without a step, files under a second name, numbers that no float holds, too little memory."""

import os
import sys
from pathlib import Path
from typing import Any

import numpy
import onnx
import pytest
import safetensors.torch
import torch
from onnx import TensorProto, helper
from processes import run_forked

import oarlock as ol

# Windows

WINDOW = {"kernel_shape": [2, 2], "strides": [1, 1], "pads": [0, 0, 0, 0], "dilations": [1, 1]}
IMAGES = {
    "MaxPool": (WINDOW, [[1, 2, 6, 6]]),
    "AveragePool": (WINDOW, [[1, 2, 6, 6]]),
    "LpPool": ({**WINDOW, "p": 2}, [[1, 2, 6, 6]]),
    "Conv": ({**WINDOW, "group": 1}, [[1, 2, 6, 6], [4, 2, 2, 2]]),
    "ConvTranspose": ({**WINDOW, "group": 1, "output_padding": [0, 0]}, [[1, 2, 6, 6], [2, 4, 2, 2]]),
    "MaxUnpool": ({name: WINDOW[name] for name in ("kernel_shape", "strides", "pads")}, [[1, 2, 6, 6], [1, 2, 6, 6]]),
    "DepthToSpace": ({"blocksize": 2}, [[1, 4, 6, 6]]),
    "SpaceToDepth": ({"blocksize": 2}, [[1, 4, 6, 6]]),
    "GroupNormalization": ({"num_groups": 2}, [[1, 2, 6, 6], [2], [2]]),
    "LRN": ({"size": 3}, [[1, 2, 6, 6]]),
    "GlobalLpPool": ({"p": 2}, [[1, 2, 6, 6]]),
    "Split": ({"axis": 1, "num_outputs": 1}, [[1, 2, 6, 6]]),
}
TRIALS = [(kind, name) for kind, (attributes, _) in IMAGES.items() for name in attributes if name not in ("pads", "axis")]


def refusal(path: Path, kind: str, **attributes: Any) -> str:
    """The message by which a model of one node is refused."""
    names = [f"x{number}" for number in range(len(IMAGES[kind][1]))]
    dtypes = [TensorProto.INT64 if kind == "MaxUnpool" and number else TensorProto.FLOAT for number in range(len(names))]
    given = [helper.make_tensor_value_info(*item) for item in zip(names, dtypes, IMAGES[kind][1], strict=True)]
    node = helper.make_node(kind, names, ["y"], **attributes)
    graph = helper.make_graph([node], "g", given, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]).SerializeToString())
    with pytest.raises(ol.OarlockError) as raised:
        ol.from_onnx(path)
    return str(raised.value)


@pytest.mark.parametrize(("kind", "name"), TRIALS)
@pytest.mark.parametrize("number", [0, -1, -(2**62)])
@pytest.mark.parametrize("more", [{}, {"auto_pad": "SAME_UPPER"}, {"ceil_mode": 1}], ids=["", "same", "ceil"])
def test_an_attribute_that_is_too_small_is_an_error_that_says_so(tmp_path, kind, name, number, more):
    attributes, _ = IMAGES[kind]
    taken = {"ceil_mode": ("MaxPool", "AveragePool", "LpPool"), "auto_pad": ("MaxPool", "AveragePool", "LpPool", "Conv", "ConvTranspose")}
    if not all(kind in taken[key] for key in more):
        pytest.skip("the operator has no such attribute")
    if (kind, name, number) == ("ConvTranspose", "output_padding", 0):
        pytest.skip("that is the usual one")
    value = attributes[name]
    spoilt = [[number, *value[1:]], [number] * len(value)] if isinstance(value, list) else [number]
    for each in spoilt:
        given = {**attributes, name: each, **more}
        if "auto_pad" in more:
            del given["pads"]
        said = refusal(tmp_path / "model.onnx", kind, **given)
        for word in ("ZeroDivisionError", "ValueError", "TypeError", "IndexError", "OverflowError", "Traceback"):
            assert word not in said


def test_a_pool_without_a_step_is_refused_in_these_words(tmp_path):
    said = refusal(tmp_path / "model.onnx", "MaxPool", **{**WINDOW, "strides": [0, 1]})
    assert "MaxPool (y): its strides [0, 1] must be at least 1" in said


@pytest.mark.parametrize("number", [0, -1])
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *[(f"{kind}_pool{count}d", name) for kind in ("max", "average") for count in (1, 2, 3) for name in ("size", "stride")],
        *[(f"max_pool{count}d", "dilation") for count in (1, 2, 3)],
        *[(f"conv{kind}{count}d", name) for kind in ("", "_transpose") for count in (1, 2, 3) for name in ("stride", "dilation", "groups")],
    ],
)
def test_our_operators_refuse_a_window_that_is_none(kind, name, number):
    count = int(kind[-2])
    with ol.Program():
        x = ol.layer.data("x", shape=[2, *[6] * count])
        w = [ol.layer.data("w", shape=[2, 2, *[3] * count], batch=None)] if "conv" in kind else []
        attributes = {"size": (2,) * count, "stride": (1,) * count} if "pool" in kind else {"stride": (1,) * count}
        attributes[name] = number if name == "groups" else (number,) * count
        with pytest.raises(ol.OarlockError) as raised:
            getattr(ol.op, kind)(x, *w, **attributes)
        assert str(number) in str(raised.value)


@pytest.mark.parametrize("kind", ["max_pool2d", "average_pool2d", "conv2d", "conv_transpose2d"])
def test_our_operators_refuse_a_negative_padding(kind):
    with ol.Program():
        x = ol.layer.data("x", shape=[2, 6, 6])
        w = [ol.layer.data("w", shape=[2, 2, 3, 3], batch=None)] if "conv" in kind else []
        with pytest.raises(ol.OarlockError) as raised:
            getattr(ol.op, kind)(x, *w, padding=(-1, -1), **({"size": (2, 2)} if "pool" in kind else {}))
        assert "-1" in str(raised.value)


# Files


def external_model(folder: Path) -> Path:
    values = numpy.arange(4, dtype="float32")
    tensor = helper.make_tensor("w", TensorProto.FLOAT, [4], values.tobytes(), raw=True)
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
        [tensor],
    )
    path = folder / "model.onnx"
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]),
        str(path),
        save_as_external_data=True,
        location="w.bin",
        size_threshold=0,
    )
    return path


def test_external_data_under_a_second_name_is_read_only_of_a_model_that_is_trusted(tmp_path):
    path = external_model(tmp_path)
    assert numpy.asarray(ol.from_onnx(path, untrusted=True).scope["w"]).tolist() == [0, 1, 2, 3]
    os.link(tmp_path / "w.bin", tmp_path / "other")
    assert numpy.asarray(ol.from_onnx(path).scope["w"]).tolist() == [0, 1, 2, 3]
    with pytest.raises(ol.FormatError) as raised:
        ol.from_onnx(path, untrusted=True)
    assert raised.value.message == 'external data: "w.bin" has 2 hard links, which is not allowed for untrusted files'
    assert raised.value.hint == "copy the file, or import the model without untrusted if you trust it"


# Casts


def values(scope: ol.Scope, name: str) -> torch.Tensor:
    held = scope[name]
    assert isinstance(held, torch.Tensor)
    return held


@pytest.mark.parametrize(
    ("of", "to", "number"),
    [
        ("float64", "float32", 1e300),
        ("float64", "float16", 70000.0),
        ("float64", "bfloat16", -3.4e38),
        ("float32", "float16", 65520.0),
        ("float32", "bfloat16", 3.4e38),
    ],
)
def test_weights_that_would_become_infinite_are_refused_with_the_name_and_the_value(tmp_path, of, to, number):
    with ol.Program() as program:
        ol.layer.create_parameter([3], name="w", dtype=to)
        ol.layer.create_parameter([3], name="v", dtype=to)
    weights = torch.tensor([1.0, number, 2.0], dtype=getattr(torch, of))
    held = weights[1].item()
    safetensors.torch.save_file({"there": weights, "v": torch.ones(3, dtype=getattr(torch, of))}, tmp_path / "w.safetensors")
    scope = ol.init(program, ol.Scope())
    before = {name: values(scope, name).clone() for name in ("w", "v")}
    with pytest.raises(ol.DTypeError) as raised:
        ol.load_weights(scope, tmp_path / "w.safetensors", names={"w": "there"}, cast=True)
    assert raised.value.message == f'"there" contains {held!r}, which overflows {to}, the dtype of "w"'
    assert all(torch.equal(values(scope, name), value) for name, value in before.items()), "nothing was replaced"
    weights[1] = float("inf")
    safetensors.torch.save_file({"there": weights, "v": torch.ones(3, dtype=getattr(torch, of))}, tmp_path / "w.safetensors")
    ol.load_weights(scope, tmp_path / "w.safetensors", names={"w": "there"}, cast=True)
    assert torch.isinf(values(scope, "w")[1])


# Memory

LIMITED = """
import resource, sys
from pathlib import Path
import oarlock as ol, onnx, oarlock.data, oarlock.interop.onnx, oarlock.interop.weights
from oarlock import inference
what, path = sys.argv[1:3]
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 100 * 2**20,) * 2)
try:
    if what == "from_onnx":
        ol.from_onnx(path)
    elif what == "load_model":
        ol.load_model(path)
    elif what == "inference":
        inference.load_model(path)
    elif what == "load_weights":
        with ol.Program() as program:
            ol.layer.create_parameter([2**26], name="w", initializer=ol.layer.initializer.constant(0.0))
        ol.load_weights(program, path)
    else:
        ol.data.read(path)
except ol.OarlockError as error:
    print(type(error).__name__, error.message)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the limit is the system's")
@pytest.mark.parametrize("what", ["from_onnx", "load_model", "inference", "load_weights", "read"])
def test_too_little_memory_is_an_error_of_ours(tmp_path, what):
    path = tmp_path / {"from_onnx": "m.onnx", "read": "rows.csv"}.get(what, "m.safetensors")
    count = 2**26
    if what == "from_onnx":
        tensor = helper.make_tensor("w", TensorProto.FLOAT, [count], bytes(4 * count), raw=True)
        info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [count]) for name in "xy"]
        graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", info[:1], info[1:], [tensor])
        path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
    elif what == "read":
        path.write_text("x,y\n" + "123456,654321\n" * 2_000_000)
    elif what == "load_weights":
        safetensors.torch.save_file({"w": torch.zeros(count)}, path)
    else:
        with ol.Program() as program:
            program.targets["y"] = ol.op.add(ol.layer.data("x", [count], batch=None), ol.layer.create_parameter([count], name="w"))
        ol.save_model(program, _held(count), path)
    said = run_forked(LIMITED, tmp_path, what, path)
    assert said.startswith("LimitError "), said
    assert "not enough memory" in said


def _held(count: int) -> ol.Scope:
    scope = ol.Scope()
    scope.set("w", torch.zeros(count))
    return scope
