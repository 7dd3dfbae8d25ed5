"""The Open Inference Protocol v2 over REST: model metadata, parsing of requests, formatting of answers. Uses no server library.

Requests and answers are JSON; tensors may also follow as bytes, with the binary tensor data extension. The specification:
https://github.com/kserve/open-inference-protocol
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from oarlock.errors import FeedError, FormatError, UndefinedVarError
from oarlock.io.container import read_once
from oarlock.ir.program import Program
from oarlock.ir.var import Var
from oarlock.serving.limits import ServingLimits
from oarlock.serving.refusal import too_much
from oarlock.serving.tensors import (
    DATATYPES,
    datatype_of,
    from_json,
    from_raw,
    json_pieces,
    nested_json_pieces,
    nested_shape,
    raw_pieces,
)
from oarlock.suggestions import did_you_mean, list_names

__all__ = ["Answer", "Request", "describe", "read_plain", "read_request", "write_answer", "write_plain"]

FEWER = "request fewer rows or outputs, or raise oarlock serve FILE --answer-bytes"
_MOST_AXES = 16
_MOST_ID = 256
_PIECE_BYTES = 2**17


@dataclass(frozen=True)
class Request:
    """A request: the input tensors, the labels of the requested targets, and the caller's `id`.

    `binary` are the labels whose tensors are requested as bytes.
    """

    feed: dict[str, torch.Tensor]
    wanted: tuple[str, ...]
    id: str | None = None
    binary: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Answer:
    """The body of an answer in pieces. `json_length` is the length of its JSON if bytes follow, else None."""

    pieces: Sequence[bytes]
    json_length: int | None = field(default=None)

    @property
    def length(self) -> int:
        return sum(map(len, self.pieces))


def describe(name: str, program: Program, inputs: Sequence[Var]) -> dict[str, Any]:
    """Return the metadata of a model: datatypes and shapes of its inputs and outputs, with -1 for variable sizes."""
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


def read_request(body: bytes, program: Program, limits: ServingLimits, *, json_length: int | None = None) -> Request:
    """Parse a request. The JSON is the first `json_length` bytes of the body, or all of it if that is None.

    Raises FormatError for an invalid request, FeedError for an invalid tensor, UndefinedVarError for an unknown output, Refusal if a limit
    is exceeded.
    """
    if json_length is not None and not 0 <= json_length <= len(body):
        raise FormatError(f"the header declares {json_length} bytes of JSON, but the body has only {len(body):,}")
    length = len(body) if json_length is None else json_length
    message = _read_json(body[:length], limits)
    inputs = message.get("inputs")
    if not isinstance(inputs, list):
        raise FormatError('a request needs "inputs", a list of tensors')
    id, raw, feed = message.get("id"), memoryview(body)[length:], dict[str, torch.Tensor]()
    known = {var.name: var for var in program.main.inputs}
    if id is not None and (not isinstance(id, str) or len(id) > _MOST_ID):
        raise FormatError(f"the id must be a string of at most {_MOST_ID} characters")
    for item in inputs:
        name = _name_of(item)
        if name not in known:
            raise _unknown_input(f'"{name:.80}"', name, known)
        if name in feed:
            raise FormatError(f"{name!r:.80} is given twice")
        feed[name], raw = _read_tensor(name, item, raw, limits)
    if len(raw):
        raise FormatError(f"{len(raw):,} unexpected bytes after the last tensor")
    wanted, binary = _read_outputs(message, program)
    return Request(feed, wanted, id, binary)


def _read_json(text: bytes, limits: ServingLimits) -> dict[str, Any]:
    """Parse a JSON object. Raises Refusal for too many values: each one costs up to 200 bytes and some time."""
    values = 1 + sum(text.count(mark) for mark in (b",", b"[", b"{"))  # also counts marks inside strings, which are rare in requests
    if values > limits.json_values:
        hint = "send tensors as bytes after the JSON (binary_data_size), or raise oarlock serve FILE --json-values"
        raise too_much("json_values", f"the JSON has more than {limits.json_values:,} values", hint=hint)
    return read_once(text, lambda fault: FormatError(f"the body {fault}"))


def _require_few_rows(name: str, shape: Sequence[int], limits: ServingLimits) -> None:
    """Check the number of rows. Raises Refusal. For a tensor without elements, which is free to send, all sizes count."""
    rows = math.prod(size or 1 for size in shape) if 0 in shape else max(shape[:1], default=1)
    if rows > limits.rows:
        hint = "send fewer rows per request, or raise oarlock serve FILE --rows"
        raise too_much("rows", f"{name!r:.80} has {rows:,} rows, but the limit is {limits.rows:,}", hint=hint)


def _name_of(item: object) -> str:
    if not isinstance(item, dict):
        raise FormatError(f"a tensor must be an object, not {type(item).__name__}")
    name = item.get("name")
    if not isinstance(name, str):
        raise FormatError('a tensor needs a "name"')
    return name


def _unknown_input(shown: str, name: str, inputs: Mapping[str, Var]) -> FeedError:
    return FeedError(
        f"{shown} is not an input of the program",
        contract="the program takes " + ", ".join(f"{var.name}: {var.type_text}" for var in inputs.values()),
        hint=did_you_mean(name, inputs),
    )


def _read_tensor(name: str, item: Mapping[str, Any], raw: memoryview, limits: ServingLimits) -> tuple[torch.Tensor, memoryview]:
    """Parse a tensor of a request; return it and the remaining bytes after the JSON."""
    shape, datatype = item.get("shape"), item.get("datatype")
    dtype = DATATYPES.get(datatype) if isinstance(datatype, str) else None
    if dtype is None:
        raise FormatError(f"{name!r:.80} has the unknown datatype {datatype!r:.40}", contract="one of " + ", ".join(DATATYPES))
    if not isinstance(shape, list) or len(shape) > _MOST_AXES or not all(type(size) is int and 0 <= size < 2**31 for size in shape):
        raise FormatError(f"{name!r:.80} needs a shape of at most {_MOST_AXES} non-negative integers")
    count = _parameters(item).get("binary_data_size")
    if count is None:
        tensor = from_json(name, item.get("data"), shape, dtype)
        _require_few_rows(name, shape, limits)
        return tensor, raw
    if type(count) is not int or not 0 <= count <= len(raw) or "data" in item:
        raise FormatError(f"{name!r:.80} has data as well, or a binary_data_size beyond the {len(raw):,} bytes after the JSON")
    tensor = from_raw(name, bytes(raw[:count]), shape, dtype)
    _require_few_rows(name, shape, limits)
    return tensor, raw[count:]


def _read_outputs(message: Mapping[str, Any], program: Program) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the requested labels, by default all, and those requested as bytes."""
    asked = message.get("outputs")
    all_binary = _parameters(message).get("binary_data_output") is True
    if asked is None:
        return tuple(program.targets), frozenset(program.targets if all_binary else ())
    if not isinstance(asked, list) or not all(isinstance(item, dict) and isinstance(item.get("name"), str) for item in asked):
        raise FormatError('"outputs" must be a list of objects with a "name"')
    wanted = tuple(dict.fromkeys(item["name"] for item in asked))
    for name in wanted:
        if name not in program.targets:
            raise UndefinedVarError(
                f"{name!r:.80} is not an output of the model",
                given=[f"there are: {list_names(name, program.targets)}"],
                hint=did_you_mean(name, program.targets),
            )
    binary = {item["name"] for item in asked if _parameters(item).get("binary_data", all_binary) is True}
    return wanted, frozenset(binary)


def _parameters(item: Mapping[str, Any]) -> Mapping[str, Any]:
    found = item.get("parameters", {})
    return found if isinstance(found, dict) else {}


def write_answer(name: str, request: Request, values: Mapping[str, torch.Tensor], program: Program, limits: ServingLimits) -> Answer:
    """Format the answer to a request; tensors are flat, in row-major order. Raises Refusal beyond `answer_bytes`."""
    raw = [piece for label in request.wanted if label in request.binary for piece in raw_pieces(values[label])]
    text = gather(_answer_text(name, request, values, program), limits.answer_bytes - sum(map(len, raw)), limits)
    return Answer([*text, *raw], sum(map(len, text)) if request.binary else None)


def _answer_text(name: str, request: Request, values: Mapping[str, torch.Tensor], program: Program) -> Iterator[str]:
    head = {"model_name": name, **({} if request.id is None else {"id": request.id})}
    yield _json(head)[:-1] + ',"outputs":['
    for number, label in enumerate(request.wanted):
        value = values[label]
        item: dict[str, Any] = {
            "name": label,
            "datatype": datatype_of(program.targets[label].dtype),
            "shape": list(value.shape),
        }
        if label in request.binary:
            item["parameters"] = {"binary_data_size": value.nbytes}
        yield "," * (number > 0) + _json(item)[:-1]
        if label not in request.binary:
            yield ',"data":'
            yield from json_pieces(value)
        yield "}"
    yield "]}"


def _json(content: object) -> str:
    return json.dumps(content, separators=(",", ":"))


def gather(texts: Iterable[str], largest: int, limits: ServingLimits) -> list[bytes]:
    """Join texts into pieces of a body. Raises Refusal as soon as they exceed `largest` bytes."""
    pieces, parts, total, size = list[bytes](), list[bytes](), 0, 0
    for text in texts:
        parts.append(text.encode())
        size += len(parts[-1])
        total += len(parts[-1])
        if total > largest:
            raise too_much("answer_bytes", f"the answer has more than {limits.answer_bytes:,} bytes", hint=FEWER)
        if size >= _PIECE_BYTES:
            pieces.append(b"".join(parts))
            parts, size = [], 0
    return [*pieces, b"".join(parts)] if parts else pieces


def read_plain(body: bytes, program: Program, limits: ServingLimits) -> Request:
    """Parse a plain JSON request, `{"x": [[1.0, 2.0]]}`: nested lists by input name. Raises as `read_request` does."""
    message = _read_json(body, limits)
    inputs = {var.name: var for var in program.main.inputs}
    feed = {}
    for name, data in message.items():
        if name not in inputs:
            raise _unknown_input(f"{name!r:.80}", name, inputs)
        shape = nested_shape(data)
        feed[name] = from_json(name, data, shape, inputs[name].dtype)
        _require_few_rows(name, shape, limits)
    return Request(feed, tuple(program.targets))


def write_plain(values: Mapping[str, torch.Tensor], limits: ServingLimits) -> Answer:
    """Format an answer in plain JSON: nested lists by target label. Raises Refusal beyond `answer_bytes`."""
    return Answer(gather(_plain_text(values), limits.answer_bytes, limits))


def _plain_text(values: Mapping[str, torch.Tensor]) -> Iterator[str]:
    for number, (label, value) in enumerate(values.items()):
        yield (", " if number else "{") + json.dumps(label) + ": "
        yield from nested_json_pieces(value)
    yield "}" if values else "{}"
