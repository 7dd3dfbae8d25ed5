"""ONNX models, spoilt in their bytes or in what they say; what may come of one is a program within its limits, or an error of ours."""

import copy
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

import oarlock as ol
from fuzz.files import field, varint
from fuzz.judging import RUN, require_readable
from oarlock.ir.size import evaluate, names_in

__all__ = ["REFUSALS", "judge_onnx", "make_onnx"]

REFUSALS = (ol.FormatError, ol.LimitError, ol.MissingFileError, ol.ReadError, ol.UnsupportedError, ol.VerifyError)
_FLOAT, _INT64, _BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
_node = helper.make_node
_NUMBERS = [-1, 0, 1, 2, 3, 7, 64, 2**16, 2**31 - 1, 2**31, 2**62, 2**63 - 1, -(2**31), -(2**63)]
_TEXTS = ["", "x", "y", "../x", "\x1b[2J", "a" * 5000, "\u202e", "__class__", "state", "sum", "axes", "w"]
_TYPES = [
    "Relu",
    "Add",
    "Reshape",
    "If",
    "Loop",
    "Scan",
    "Gather",
    "Conv",
    "Constant",
    "Tile",
    "ConstantOfShape",
    "Range",
    "Expand",
    "Pad",
    "Resize",
    "LSTM",
    "TopK",
    "OneHot",
    "Slice",
    "Split",
    "Concat",
    "MatMul",
    "Softmax",
    "Attention",
    "Einsum",
    "Col2Im",
    "DFT",
    "Cast",
    "Where",
    "ScatterND",
    "GatherND",
    "Shape",
    "Transpose",
    "Squeeze",
    "Unsqueeze",
    "MaxPool",
    "AveragePool",
    "Halve",
]


def _tensor(name: str, values: object, dtype: str = "float32") -> onnx.TensorProto:
    return numpy_helper.from_array(numpy.array(values, dtype=dtype), name)


def _info(name: str, kind: int, shape: list | None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


@cache
def _seeds() -> dict[str, onnx.ModelProto]:
    """Models of every kind of structure: shapes computed, images, branches in loops, functions, tensors in other files."""
    body = helper.make_graph(
        [
            _node("Less", ["state", "bound"], ["small"]),
            _node(
                "If",
                ["small"],
                ["after"],
                then_branch=helper.make_graph([_node("Add", ["state", "one"], ["up"])], "then", [], [_info("up", _FLOAT, None)]),
                else_branch=helper.make_graph([_node("Neg", ["state"], ["down"])], "else", [], [_info("down", _FLOAT, None)]),
            ),
            _node("Identity", ["go"], ["again"]),
        ],
        "body",
        [_info("i", _INT64, []), _info("go", _BOOL, []), _info("state", _FLOAT, [])],
        [_info("again", _BOOL, None), _info("after", _FLOAT, None), _info("after", _FLOAT, None)],
    )
    step = helper.make_graph(
        [_node("Add", ["h", "part"], ["next"]), _node("Tanh", ["next"], ["seen"])],
        "step",
        [_info("h", _FLOAT, [3]), _info("part", _FLOAT, [3])],
        [_info("next", _FLOAT, None), _info("seen", _FLOAT, None)],
    )
    halve = helper.make_function("own", "Halve", ["a"], ["b"], [_node("Mul", ["a", "a"], ["c"]), _node("Sqrt", ["c"], ["b"])],
                                 [helper.make_opsetid("", 21)])  # fmt: skip
    nodes = {
        "shapes": [
            _node("MatMul", ["x", "w"], ["product"]),
            _node("Shape", ["product"], ["whole"]),
            _node("Gather", ["whole", "zero"], ["rows"]),
            _node("Concat", ["rows", "rest"], ["shape"], axis=0),
            _node("Reshape", ["product", "shape"], ["grid"]),
            _node("Transpose", ["grid"], ["turned"], perm=[0, 2, 1]),
            _node("Halve", ["turned"], ["half"], domain="own"),
            _node("Softmax", ["half"], ["y"], axis=-1),
        ],
        "images": [
            _node("Conv", ["image", "filter"], ["maps"], pads=[1, 1, 1, 1], kernel_shape=[3, 3]),
            _node("BatchNormalization", ["maps", "scale", "scale", "scale", "scale"], ["normal"]),
            _node("Relu", ["normal"], ["bent"]),
            _node("MaxPool", ["bent"], ["pooled"], kernel_shape=[2, 2], strides=[2, 2]),
            _node("GlobalAveragePool", ["pooled"], ["mean"]),
            _node("Flatten", ["mean"], ["y"]),
        ],
        "loops": [
            _node("ReduceSum", ["x"], ["sum"], keepdims=0),
            _node("Loop", ["trips", "", "sum"], ["last", "all"], body=body),
            _node("Scan", ["start", "x"], ["state", "steps"], body=step, num_scan_inputs=1),
            _node("ReduceSum", ["steps", "axes"], ["y"], keepdims=0),
        ],
    }
    tensors = [_tensor("w", numpy.ones((3, 4))), _tensor("zero", [0], "int64"), _tensor("rest", [2, 2], "int64"),
               _tensor("filter", numpy.ones((2, 1, 3, 3))), _tensor("scale", [1.0, 2.0]), _tensor("trips", 4, "int64"),
               _tensor("bound", 2.0), _tensor("one", 1.0), _tensor("start", numpy.zeros(3)), _tensor("axes", [1], "int64")]  # fmt: skip
    found = {}
    for name, given in nodes.items():
        shape = ["n", 1, 6, 6] if name == "images" else ["n", 3]
        graph = helper.make_graph(given, name, [_info("image" if name == "images" else "x", _FLOAT, shape)], [_info("y", _FLOAT, None)],
                                  [copy.deepcopy(tensor) for tensor in tensors])  # fmt: skip
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
        found[name] = helper.make_model(graph, opset_imports=opsets, functions=[halve], ir_version=10)
    external = copy.deepcopy(found["shapes"])
    weight = external.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "weights.bin"), ("offset", "0"), ("length", "48")):
        weight.external_data.add(key=key, value=value)
    found["external"] = external
    return found


_MUTATORS: list[Callable[[Random, onnx.ModelProto], None]] = []


def _of_model(function):
    _MUTATORS.append(function)
    return function


def _graphs(model: onnx.ModelProto) -> list[onnx.GraphProto]:
    found, pending = [], [model.graph]
    while pending:
        graph = pending.pop()
        found.append(graph)
        pending += [attribute.g for node in graph.node for attribute in node.attribute if attribute.HasField("g")]
    return found


def _some(random: Random, items):
    return random.choice(list(items)) if len(items) else None


def _some_node(random: Random, model: onnx.ModelProto) -> onnx.NodeProto | None:
    nodes = [node for graph in _graphs(model) for node in graph.node] + [node for function in model.functions for node in function.node]
    return _some(random, nodes)


@_of_model
def an_operator(random, model):
    node = _some_node(random, model)
    if node is not None:
        node.op_type = random.choice([*_TYPES, *_TEXTS])
        node.domain = random.choice([node.domain, "", "own", "ai.onnx.ml", "com.acme"])


@_of_model
def an_input_of_a_node(random, model):
    node = _some_node(random, model)
    if node is not None and node.input:
        node.input[random.randrange(len(node.input))] = random.choice([*_TEXTS, "zero", "rest", "trips", "filter", "scale"])


@_of_model
def inputs_more_or_fewer(random, model):
    node = _some_node(random, model)
    if node is not None:
        if random.random() < 0.5 and node.input:
            del node.input[random.randrange(len(node.input)) :]
        else:
            node.input.extend([random.choice(["w", "zero", "", "rest", "start"])] * random.choice([1, 2, 40]))


@_of_model
def an_output_of_a_node(random, model):
    node = _some_node(random, model)
    if node is not None:
        node.output.append(random.choice(_TEXTS)) if random.random() < 0.5 or not node.output else node.output.pop()


@_of_model
def a_number_of_an_attribute(random, model):
    node = _some_node(random, model)
    attribute = _some(random, node.attribute) if node is not None else None
    if attribute is not None:
        attribute.i = random.choice(_NUMBERS)
        for numbers in (attribute.ints,):
            if numbers:
                numbers[random.randrange(len(numbers))] = random.choice(_NUMBERS)
        attribute.f = random.choice([0.0, -1.0, float("nan"), float("inf"), 1e30])


@_of_model
def another_attribute(random, model):
    node = _some_node(random, model)
    if node is not None:
        names = ["axis", "axes", "perm", "to", "pads", "strides", "kernel_shape", "dilations", "group", "keepdims", "mode", "body",
                 "num_scan_inputs", "then_branch", "value", "blocksize", "equation", "size", "direction", "hidden_size"]  # fmt: skip
        values = [random.choice(_NUMBERS),
                  [random.choice(_NUMBERS) for _ in range(random.choice([1, 2, 4, 50]))], 0.5, "SAME_UPPER", "x" * 500,
                  _tensor("", [random.choice([1, 5, 2**40])], "int64"), model.graph if random.random() < 0.1 else 1]  # fmt: skip
        node.attribute.append(helper.make_attribute(random.choice(names), random.choice(values)))


@_of_model
def kinds_of_attributes(random, model):
    node = _some_node(random, model)
    attribute = _some(random, node.attribute) if node is not None else None
    if attribute is not None:
        attribute.type = random.randrange(15)


@_of_model
def nodes_in_another_order(random, model):
    graph = random.choice(_graphs(model))
    nodes = list(graph.node)
    if nodes:
        kind = random.choice(["shuffled", "twice", "gone"])
        random.shuffle(nodes) if kind == "shuffled" else nodes.append(random.choice(nodes)) if kind == "twice" else nodes.pop()
        del graph.node[:]
        graph.node.extend(nodes)


@_of_model
def sizes_of_a_tensor(random, model):
    tensor = _some(random, random.choice(_graphs(model)).initializer)
    if tensor is not None:
        del tensor.dims[:]
        tensor.dims.extend(random.choice(_NUMBERS) for _ in range(random.choice([0, 1, 2, 3, 17, 300])))


@_of_model
def elements_of_a_tensor(random, model):
    tensor = _some(random, random.choice(_graphs(model)).initializer)
    if tensor is not None and tensor.data_type == _INT64:
        count = len(tensor.raw_data) // 8
        tensor.raw_data = numpy.array([random.choice(_NUMBERS) for _ in range(count)], dtype="int64").tobytes()
    elif tensor is not None:
        tensor.raw_data = random.choice([b"", tensor.raw_data[:-1], tensor.raw_data * 2, b"\xff" * len(tensor.raw_data)])


@_of_model
def the_type_of_a_tensor(random, model):
    tensor = _some(random, random.choice(_graphs(model)).initializer)
    if tensor is not None:
        tensor.data_type = random.randrange(30)


@_of_model
def numbers_in_place_of_bytes(random, model):
    tensor = _some(random, random.choice(_graphs(model)).initializer)
    if tensor is not None:
        tensor.ClearField("raw_data")
        getattr(tensor, random.choice(["float_data", "double_data"])).extend([1.0] * random.choice([0, 2, 12]))
        getattr(tensor, random.choice(["int32_data", "int64_data"])).extend(
            [random.choice([0, 1, 2**31 - 1, -1])] * random.choice([0, 1, 12])
        )


@_of_model
def external_data(random, model):
    tensor = _some(random, model.graph.initializer)
    if tensor is not None:
        tensor.data_location = TensorProto.EXTERNAL
        del tensor.external_data[:]
        places = [
            "weights.bin",
            "../weights.bin",
            "/etc/passwd",
            "link.bin",
            "folder",
            "",
            ".",
            "a/../weights.bin",
            "C:\\x",
            "weights.bin\0",
        ]
        tensor.external_data.add(key="location", value=random.choice(places))
        for key in ("offset", "length"):
            if random.random() < 0.7:
                tensor.external_data.add(key=key, value=random.choice(["0", "48", "-1", "9" * 30, "1e3", " 1", "", "16"]))


@_of_model
def a_function_that_calls(random, model):
    node = _some(random, model.functions[0].node) if model.functions else None
    if node is not None:
        node.op_type, node.domain = "Halve", "own"


@_of_model
def functions_that_double(random, model):
    """Each calls the one before twice: what is written of it doubles with each."""
    for number in range(random.choice([3, 40])):
        before = ("Halve", "own") if number == 0 else (f"Twice{number - 1}", "own")
        nodes = [_node(before[0], ["a"], ["c"], domain="own"), _node(before[0], ["c"], ["b"], domain="own")]
        model.functions.append(helper.make_function("own", f"Twice{number}", ["a"], ["b"], nodes, [helper.make_opsetid("own", 1)]))
    node = _some_node(random, model)
    if node is not None:
        node.op_type, node.domain = f"Twice{number}", "own"


@_of_model
def names_and_versions(random, model):
    kind = random.choice(["opset", "ir", "domain", "input", "output", "twice"])
    if kind == "opset":
        model.opset_import[0].version = random.choice(_NUMBERS)
    elif kind == "ir":
        model.ir_version = random.choice(_NUMBERS)
    elif kind == "domain":
        model.opset_import.add(domain=random.choice(["", "ai.onnx", "own", "x" * 500]), version=random.choice(_NUMBERS))
    elif kind == "twice":
        model.graph.initializer.append(model.graph.initializer[0])
    else:
        item = (model.graph.input if kind == "input" else model.graph.output)[0]
        item.name = random.choice(_TEXTS)


@_of_model
def the_type_of_an_input(random, model):
    kind = model.graph.input[0].type
    if random.random() < 0.3:
        kind.sequence_type.elem_type.tensor_type.elem_type = 1
        return
    kind.tensor_type.elem_type = random.randrange(30)
    for size in kind.tensor_type.shape.dim:
        if random.random() < 0.6:
            size.dim_value = random.choice(_NUMBERS)
        else:
            size.dim_param = random.choice([*_TEXTS, "2*n+1", "n", "(n)//2", "n" * 400, "batch size", "-n"])


@_of_model
def graphs_in_graphs(random, model):
    graph = helper.make_graph([], "innermost", [], [_info("x", _FLOAT, None)])
    for _ in range(random.choice([5, 20, 30])):
        node = _node("If", ["yes"], ["deep"], then_branch=graph, else_branch=graph) if random.random() < 0.02 else None
        node = node or _node("If", ["yes"], ["deep"], then_branch=graph)
        graph = helper.make_graph([node], "around", [], [_info("deep", _FLOAT, None)])
    model.graph.node.extend(graph.node)


def make_onnx(random: Random) -> bytes:
    """A model with something changed in what it says, or in its bytes."""
    model = copy.deepcopy(random.choice(list(_seeds().values())))
    if random.random() < 0.75:
        for _ in range(random.choice([1, 1, 2, 4])):
            try:
                random.choice(_MUTATORS)(random, model)
            except (ValueError, TypeError):  # what no message can hold
                continue
        try:
            return model.SerializeToString()
        except ValueError:
            return b""
    data = bytearray(model.SerializeToString())
    kind = random.choice(["bits", "bits", "cut", "moved", "twice", "deep", "many", "lengths", "text", "unknown"])
    if kind == "cut":
        return bytes(data[: random.randrange(len(data))])
    if kind == "twice":
        return bytes(data) * 2
    if kind == "deep":
        payload = b""
        for _ in range(random.choice([60, 64, 100, 3000])):
            payload = field(random.choice([1, 5, 6, 7]), payload)
        return bytes(data) + field(7, payload)
    if kind == "many":
        return field(7, field(random.choice([1, 5, 11, 15]), b"") * random.choice([1000, 60_000])) + bytes(data)
    if kind == "unknown":
        return bytes(data) + random.choice([field(99, b"x"), b"\xf8\x06\x01", b"\x1b\x1c", b"\x00", b"\x07", varint(2**69)])
    if kind == "text":
        return bytes(data).replace(b"MatMul", b"Mat\xff\xc0l").replace(b"Conv", b"\xff\xffnv")
    for _ in range(random.choice([1, 1, 2, 8])):
        at = random.randrange(len(data))
        if kind == "bits":
            data[at] ^= 1 << random.randrange(8)
        elif kind == "lengths":
            data[at : at + 2] = random.choice([b"\xff\xff\xff\xff\x0f", b"\xff" * 9 + b"\x01", b"\xff" * 11, b"\x00\x00"])
        else:
            start = random.randrange(len(data))
            data[at:at] = data[start : start + 60]
    return bytes(data)


def judge_onnx(folder: Path, data: bytes) -> str:
    """The outcome of a model: the class of the refusal, or what its run came to. Raises whatever is not one of ours."""
    path = folder / "a\x1b[2J.onnx"
    path.write_bytes(data)
    weights, link = folder / "weights.bin", folder / "link.bin"
    if not weights.exists():
        weights.write_bytes(numpy.ones(12, "float32").tobytes())
        link.symlink_to("/etc/passwd")
        (folder / "folder").mkdir()
    try:
        model = ol.from_onnx(path, untrusted=True)
    except REFUSALS as error:
        require_readable(error)
        return type(error).__name__
    feed = {}
    for var in model.program.main.inputs:
        shape = [max(evaluate(size, dict.fromkeys(names_in(size), 2)) or 0, 0) for size in var.shape or ()]
        shape = shape if numpy.prod([float(max(size, 1)) for size in shape]) <= 2**20 else [1 for _ in shape]
        feed[var.name] = numpy.zeros(shape, str(var.dtype)) if str(var.dtype) != "bfloat16" else numpy.zeros(shape, "float32")
    try:
        ol.Executor(limits=RUN).eval(model.program, list(model.program.targets), feed, scope=model.scope)
    except ol.OarlockError as error:
        require_readable(error)
        return f"runs into {type(error).__name__}"
    return "runs"
