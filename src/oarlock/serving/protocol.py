"""The Open Inference Protocol v2 over REST: what a model takes and gives, requests read, answers written. No server library.

Requests and answers are JSON, and tensors may also follow it as bytes: the binary tensor data extension.
The specification: https://github.com/kserve/open-inference-protocol
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from oarlock.errors import FeedError, FormatError, UndefinedVarError
from oarlock.io.container import read_once
from oarlock.ir.program import Program
from oarlock.ir.var import Var
from oarlock.serving.tensors import DATATYPES, datatype_of, from_json, from_raw, nested_shape, to_json, to_raw
from oarlock.suggestions import did_you_mean, list_names

__all__ = ["Answer", "Request", "describe", "read_plain", "read_request", "write_answer", "write_plain"]

_MOST_AXES = 16
_MOST_ID = 256


@dataclass(frozen=True)
class Request:
    """A request: the tensors that are fed, the labels of the targets that are wanted, and the caller's `id`.

    `binary` are the labels whose tensors are wanted as bytes.
    """

    feed: dict[str, torch.Tensor]
    wanted: tuple[str, ...]
    id: str | None = None
    binary: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Answer:
    """The body of an answer, and where its JSON ends, None where it is nothing else."""

    body: bytes
    json_length: int | None = field(default=None)


def describe(name: str, program: Program, inputs: Sequence[Var]) -> dict[str, Any]:
    """The model's metadata: its inputs and outputs with datatypes and shapes, -1 for a size that a request chooses."""
    return {
        "name": name,
        "versions": [],
        "platform": "oarlock",
        "inputs": [_describe_tensor(var.name, var) for var in inputs],
        "outputs": [_describe_tensor(label, var) for label, var in program.targets.items()],
    }


def _describe_tensor(name: str, var: Var) -> dict[str, Any]:
    return {
        "name": name,
        "datatype": datatype_of(var.dtype),
        "shape": [size if isinstance(size, int) else -1 for size in var.shape or ()],
    }


def read_request(body: bytes, program: Program, *, json_length: int | None = None) -> Request:
    """The request in a body, of which the JSON is `json_length` bytes, all of it where that is None.

    Raises FormatError for what is no request, FeedError for a tensor that is not what it says, UndefinedVarError for an unknown output.
    """
    if json_length is not None and not 0 <= json_length <= len(body):
        raise FormatError(f"the JSON has {json_length} bytes by its header, and the body {len(body):,}")
    length = len(body) if json_length is None else json_length
    message = _read_json(body[:length])
    inputs = message.get("inputs")
    if not isinstance(inputs, list):
        raise FormatError('a request has "inputs", a list of tensors')
    id, raw, feed = message.get("id"), memoryview(body)[length:], dict[str, torch.Tensor]()
    if id is not None and (not isinstance(id, str) or len(id) > _MOST_ID):
        raise FormatError(f"an id is text of at most {_MOST_ID} characters")
    for item in inputs:
        name, tensor, raw = _read_tensor(item, raw)
        if name in feed:
            raise FormatError(f"{name!r:.80} is given twice")
        feed[name] = tensor
    if len(raw):
        raise FormatError(f"{len(raw):,} bytes follow those of the last tensor")
    wanted, binary = _read_outputs(message, program)
    return Request(feed, wanted, id, binary)


def _read_json(text: bytes) -> dict[str, Any]:
    return read_once(text, lambda fault: FormatError(f"the body {fault}"))


def _read_tensor(item: object, raw: memoryview) -> tuple[str, torch.Tensor, memoryview]:
    """A tensor of a request, its name, and the bytes that are left for those after it."""
    if not isinstance(item, dict):
        raise FormatError(f"a tensor is an object, not {type(item).__name__}")
    name, shape, datatype = item.get("name"), item.get("shape"), item.get("datatype")
    if not isinstance(name, str):
        raise FormatError('a tensor has a "name"')
    dtype = DATATYPES.get(datatype) if isinstance(datatype, str) else None
    if dtype is None:
        raise FormatError(f"{name!r:.80} has the datatype {datatype!r:.40}", contract="one of " + ", ".join(DATATYPES))
    if not isinstance(shape, list) or len(shape) > _MOST_AXES or not all(type(size) is int and 0 <= size < 2**31 for size in shape):
        raise FormatError(f"{name!r:.80} has no shape of at most {_MOST_AXES} whole numbers")
    count = _parameters(item).get("binary_data_size")
    if count is None:
        return name, from_json(name, item.get("data"), shape, dtype), raw
    if type(count) is not int or not 0 <= count <= len(raw) or "data" in item:
        raise FormatError(f"{name!r:.80} has a binary_data_size that the {len(raw):,} bytes after the JSON do not have, or data as well")
    return name, from_raw(name, bytes(raw[:count]), shape, dtype), raw[count:]


def _read_outputs(message: Mapping[str, Any], program: Program) -> tuple[tuple[str, ...], frozenset[str]]:
    """The labels that are wanted, all unless said otherwise, and those wanted as bytes."""
    asked = message.get("outputs")
    all_binary = _parameters(message).get("binary_data_output") is True
    if asked is None:
        return tuple(program.targets), frozenset(program.targets if all_binary else ())
    if not isinstance(asked, list) or not all(isinstance(item, dict) and isinstance(item.get("name"), str) for item in asked):
        raise FormatError('"outputs" is a list of objects with a "name"')
    wanted = tuple(dict.fromkeys(item["name"] for item in asked))
    for name in wanted:
        if name not in program.targets:
            raise UndefinedVarError(
                f"{name!r:.80} is no output of the model",
                given=[f"there are: {list_names(name, program.targets)}"],
                hint=did_you_mean(name, program.targets),
            )
    binary = {item["name"] for item in asked if _parameters(item).get("binary_data", all_binary) is True}
    return wanted, frozenset(binary)


def _parameters(item: Mapping[str, Any]) -> Mapping[str, Any]:
    found = item.get("parameters", {})
    return found if isinstance(found, dict) else {}


def write_answer(name: str, request: Request, values: Mapping[str, torch.Tensor], program: Program) -> Answer:
    """The answer to a request; its tensors are flat, in row order."""
    outputs, raw = [], []
    for label in request.wanted:
        value = values[label]
        item: dict[str, Any] = {
            "name": label,
            "datatype": datatype_of(program.targets[label].dtype),
            "shape": list(value.shape),
        }
        if label in request.binary:
            raw.append(to_raw(value))
            item["parameters"] = {"binary_data_size": len(raw[-1])}
        else:
            item["data"] = to_json(value)
        outputs.append(item)
    message = {"model_name": name, **({} if request.id is None else {"id": request.id}), "outputs": outputs}
    text = json.dumps(message, separators=(",", ":")).encode()
    return Answer(text + b"".join(raw), len(text) if raw else None)


def read_plain(body: bytes, program: Program) -> Request:
    """The request in plain JSON, `{"x": [[1.0, 2.0]]}`: nested lists by the names of inputs. Raises as `read_request`."""
    message = _read_json(body)
    inputs = {var.name: var for var in program.main.inputs}
    feed = {}
    for name, data in message.items():
        if name not in inputs:
            raise FeedError(
                f"{name!r:.80} is not an input of the program",
                contract="the program takes " + ", ".join(f"{var.name}: {var.type_text}" for var in inputs.values()),
                hint=did_you_mean(name, inputs),
            )
        feed[name] = from_json(name, data, nested_shape(data), inputs[name].dtype)
    return Request(feed, tuple(program.targets))


def write_plain(values: Mapping[str, torch.Tensor]) -> Answer:
    """The answer in plain JSON: nested lists by the labels of targets."""
    return Answer(json.dumps({label: _nested(to_json(value), list(value.shape)) for label, value in values.items()}).encode())


def _nested(flat: list[object], shape: list[int]) -> object:
    if not shape:
        return flat[0]
    for axis in range(len(shape) - 1, 0, -1):
        size, count = shape[axis], math.prod(shape[:axis])
        flat = [flat[number * size : (number + 1) * size] for number in range(count)]
    return flat
