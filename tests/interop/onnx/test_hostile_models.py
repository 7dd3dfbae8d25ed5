"""ONNX files that are wrong, and those that mean harm: refused by errors of ours, before anything is made of them."""

import os
from pathlib import Path
from random import Random

import numpy
import pytest
from fuzz.files import field, varint
from fuzz.onnx_models import judge_onnx, make_onnx
from interop.onnx.models import INT64, model, node, tensor, written
from onnx import TensorProto, helper

import oarlock as ol


def small():
    return model([node("MatMul", ["x", "w"], ["y"])], {"x": ["n", 2]}, ["y"], [tensor("w", [[1.0], [2.0]])])


def refused(path: Path, kind: type[ol.OarlockError], **keywords) -> str:
    with pytest.raises(kind) as caught:
        ol.from_onnx(path, **keywords)
    return str(caught.value)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: data[:-3], "needs"),
        (lambda data: data + field(99, b"x"), "number 99 is not a field known to the installed onnx"),
        (lambda data: data + data, "is given twice"),
        (lambda data: data.replace(b"MatMul", b"Mat\xff\xffl"), "NodeProto.op_type is not Unicode"),
        (lambda data: data + varint(7 << 3 | 0) + b"\x01", "is given twice"),
        (lambda data: data + b"\xff" * 11, "a number does not end"),
    ],
)
def test_bytes_that_are_no_model_are_refused_before_they_are_parsed(change, reason, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(change(small().SerializeToString()))
    message = refused(path, ol.FormatError)
    assert message.startswith('"model.onnx" is not an ONNX model, or it is truncated')
    assert reason in message


def test_messages_deep_in_one_another_are_refused(tmp_path):
    payload = b""
    for number in (6, 5, 1) * 40:  # a graph in an attribute of a node of a graph
        payload = field(number, payload)
    path = tmp_path / "model.onnx"
    path.write_bytes(field(7, payload))
    assert "messages are nested more than 64 deep" in refused(path, ol.FormatError)


def test_what_is_counted_has_limits(tmp_path):
    path = written(tmp_path, small())
    assert refused(path, ol.LimitError, limits=ol.Limits(messages=3)).startswith('"model.onnx": more than 3 messages')
    assert refused(path, ol.LimitError, limits=ol.Limits(texts=3)).startswith('"model.onnx": more than 3 texts')
    assert refused(path, ol.LimitError, limits=ol.Limits(file_bytes=10)).startswith('"model.onnx" has')
    assert refused(path, ol.LimitError, limits=ol.Limits(program_bytes=10)).startswith('"model.onnx": more than 10 program bytes')
    assert "2 elements, but the limit is 1" in refused(path, ol.LimitError, limits=ol.Limits(elements=1))
    assert "8 parameter bytes, but the limit is 7" in refused(path, ol.LimitError, limits=ol.Limits(parameter_bytes=7))
    assert "more than 0 nodes" in refused(path, ol.LimitError, limits=ol.Limits(ops=0))


def test_functions_that_double_are_refused_after_so_many_nodes(tmp_path):
    functions, before = [], "Relu"
    for number in range(40):
        domain = "own" if number else ""
        nodes = [node(before, ["a"], ["c"], domain=domain), node(before, ["c"], ["b"], domain=domain)]
        functions.append(helper.make_function("own", f"Twice{number}", ["a"], ["b"], nodes, [helper.make_opsetid("", 21)]))
        before = f"Twice{number}"
    built = model([node(before, ["x"], ["y"], domain="own")], {"x": [2]}, ["y"], functions=functions, domains=["own"])
    message = refused(written(tmp_path, built), ol.LimitError, limits=ol.Limits(ops=500, depth=64))
    assert "with its functions expanded, the model has more than 500 nodes" in message
    assert "functions and graphs are nested more than 32 deep" in refused(tmp_path / "model.onnx", ol.LimitError)


def test_a_function_that_calls_itself_by_way_of_another_is_refused(tmp_path):
    def function(name, calls):
        return helper.make_function("own", name, ["a"], ["b"], [node(calls, ["a"], ["b"], domain="own")], [helper.make_opsetid("own", 1)])

    functions = [function("One", "Two"), function("Two", "One")]
    built = model([node("One", ["x"], ["y"], domain="own")], {"x": [2]}, ["y"], functions=functions, domains=["own"])
    assert "calls itself" in refused(written(tmp_path, built), ol.FormatError)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([node("Relu", ["z"], ["y"], name="r")], 'Relu "r" reads "z" before it is defined'),
        ([node("Relu", ["x"], ["a"]), node("Neg", ["x"], ["a"]), node("Neg", ["a"], ["y"])], '"a" is defined twice'),
        ([node("Relu", ["x"], ["a"])], 'the output "y" of the graph "graph" is not defined'),
        ([node("Relu", ["y"], ["a"]), node("Neg", ["x"], ["y"])], 'reads "y" before it is defined'),
    ],
)
def test_a_graph_that_is_none_is_refused(nodes, message, tmp_path):
    assert message in refused(written(tmp_path, model(nodes, {"x": [2]}, ["y"])), ol.FormatError)


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ([2, 2], '"w" has 8 bytes, but float32[2, 2] needs 16'),
        ([-2, -1], '"w" has a negative size: [-2, -1]'),
        ([1] * 17, "17 rank, but the limit is 16"),
        ([2**40, 0], "elements, but the limit is 2,147,483,647"),
    ],
)
def test_a_tensor_whose_sizes_lie_is_refused(dims, message, tmp_path):
    built = small()
    del built.graph.initializer[0].dims[:]
    built.graph.initializer[0].dims.extend(dims)
    with pytest.raises((ol.FormatError, ol.LimitError)) as caught:
        ol.from_onnx(written(tmp_path, built))
    assert message in str(caught.value)


def external(folder: Path, **entries: str) -> Path:
    built = small()
    weight = built.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        weight.external_data.add(key=key, value=value)
    return written(folder, built)


def test_tensors_in_other_files_are_read_where_they_stand(tmp_path):
    inner = tmp_path / "weights"
    inner.mkdir()
    (inner / "w.bin").write_bytes(b"----" + numpy.array([3.0, 4.0], "float32").tobytes() + b"----")
    imported = ol.from_onnx(external(tmp_path, location="weights/w.bin", offset="4", length="8"))
    assert imported.scope["w"].tolist() == [[3.0], [4.0]]


@pytest.mark.parametrize(
    "location", ["../w.bin", "/etc/passwd", "a/../../w.bin", "", ".", "a\\w.bin", "C:w.bin", "./w.bin", "x//w.bin", "w.bin\0"]
)
def test_a_path_that_leaves_the_folder_of_the_model_is_no_path(location, tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "w.bin").write_bytes(b"\0" * 8)
    assert "which is not a path in the model folder" in refused(external(inside, location=location), ol.FormatError)


def test_no_link_is_followed_to_a_tensor(tmp_path):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "w.bin").write_bytes(b"\0" * 8)
    (inside / "link.bin").symlink_to(outside / "w.bin")
    (inside / "folder").symlink_to(outside)
    os.mkfifo(inside / "pipe")
    for location in ("link.bin", "folder/w.bin"):
        assert "is a link or reached through one" in refused(external(inside, location=location), ol.FormatError)
    assert "is not a file" in refused(external(inside, location="pipe"), ol.FormatError)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"offset": "4"}, "ends at byte 12 of 'w.bin', which has 8"),
        ({"offset": "-1"}, "has the invalid offset '-1'"),
        ({"length": "9"}, "has 9 bytes, but its shape and type need 8"),
        ({"offset": "9" * 30}, "has the invalid offset"),
    ],
)
def test_a_region_outside_of_a_file_is_refused(entries, message, tmp_path):
    (tmp_path / "w.bin").write_bytes(b"\0" * 8)
    assert message in refused(external(tmp_path, location="w.bin", **entries), ol.FormatError)


def test_what_is_missing_or_not_a_file_is_said(tmp_path):
    assert 'there is no file "w.bin" in the model folder' in refused(external(tmp_path, location="w.bin"), ol.MissingFileError)
    assert "there is no file" in refused(tmp_path / "none.onnx", ol.MissingFileError)
    (tmp_path / "empty.onnx").write_bytes(b"")
    assert "it imports no operators" in refused(tmp_path / "empty.onnx", ol.FormatError)


def test_shapes_that_would_fill_the_memory_are_computed_when_a_run_is_limited(tmp_path):
    built = model(
        [node("ConstantOfShape", ["huge"], ["zeros"]), node("ReduceSum", ["zeros"], ["sum"], keepdims=0), node("Add", ["x", "sum"], ["y"])],
        {"x": [2]},
        ["y"],
        [tensor("huge", [2**20, 2**20, 2**20], "int64")],
    )
    with pytest.raises(ol.OarlockError):
        imported = ol.from_onnx(written(tmp_path, built), untrusted=True)
        ol.infer(imported, {"x": numpy.zeros(2, "float32")})


@pytest.mark.parametrize(
    ("nodes", "inputs"),
    [
        ([node("LRN", ["x"], ["y"], size=2**62)], {"x": [1, 2, 3, 3]}),
        ([node("Split", ["x"], ["y"], num_outputs=2**62)], {"x": [4]}),
        ([node("Resize", ["x", "", "scale"], ["y"])], {"x": [1, 1, 2, 2]}),
        ([node("Reshape", ["x", "shape"], ["y"])], {"x": [4], "shape": (INT64, [2**31 - 1])}),
        ([node("Expand", ["x", "shape"], ["y"])], {"x": [4], "shape": (INT64, [2**31 - 1])}),
        ([node("Unsqueeze", ["x", "many"], ["y"])], {"x": [4]}),
        ([node("Col2Im", ["x", "huge", "huge"], ["y"])], {"x": [1, 4, 4]}),
    ],
)
def test_numbers_that_would_keep_the_reader_busy_for_ever_are_refused(nodes, inputs, tmp_path):
    initializers = [
        tensor("scale", [1.0, 1.0, 2.0**19, 2.0**19]),
        tensor("many", numpy.arange(5000), "int64"),
        tensor("huge", [2**40] * 2, "int64"),
    ]
    built = model(nodes, inputs, ["y"], initializers)
    assert "cannot be imported" in refused(written(tmp_path, built), ol.UnsupportedError)


def test_spoilt_models_end_in_errors_of_ours_or_run(tmp_path):
    outcomes = {judge_onnx(tmp_path, make_onnx(Random(f"0 {number}"))) for number in range(150)}
    assert {"FormatError", "UnsupportedError", "runs"} <= outcomes
