"""Read a model file: check its bytes, parse it, and verify its structure."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from oarlock.errors import FormatError, LimitError
from oarlock.interop.onnx.package import get_package
from oarlock.io.files import read_file
from oarlock.proto.limits import Limits
from oarlock.proto.prescan import LENGTH, Field, Fields, Format, fields_of, scan

__all__ = ["attributes_of", "domain_of", "opsets_of", "read_model_file", "subgraphs_of"]

_LONGEST_NAME = 1024
_DATA = {"TensorProto.raw_data", "TensorProto.float_data", "TensorProto.double_data"}
_tables: dict[str, Fields] = {}
_GRAPH, _GRAPHS = 5, 10  # AttributeProto.GRAPH, GRAPHS


def read_model_file(path: str | os.PathLike[str], limits: Limits, *, untrusted: bool = False) -> Any:
    """Read the ModelProto of a file.

    Raises MissingFileError, ReadError, LimitError, FormatError, and ArgumentError if `onnx` is not installed.
    """
    onnx = get_package()
    name = Path(path).name
    data = read_file(path, largest=limits.file_bytes, limit="file_bytes", untrusted=untrusted)
    form = Format(
        fields_of(onnx.ModelProto.DESCRIPTOR, _field, _tables),
        refused=f'"{name}" is not an ONNX model, or it is truncated',
        unknown="not a field known to the installed onnx",
        too_many=f'"{name}":',
        depth=64,  # graphs are nested; protobuf itself stops at 100
    )
    scan(data, form, limits)
    try:
        model = onnx.ModelProto.FromString(data)
    except Exception as error:  # protobuf's DecodeError, or an allocation failure
        raise FormatError(form.refused, given=[str(error)[:300]]) from error
    if not model.HasField("graph") or not model.opset_import:
        raise FormatError(f'"{name}" is not an ONNX model', given=["it has no graph" if model.opset_import else "it imports no operators"])
    _Structure(model, limits).verify()
    return model


def _field(descriptor: Any, field: Field) -> Field:
    """Adapt a field to ONNX: repeated numbers may be packed, strings are Unicode, and some tensors are stored inline."""
    is_number = field.wire_types != (LENGTH,)
    return field._replace(
        wire_types=(*field.wire_types, LENGTH) if is_number and descriptor.is_repeated else field.wire_types,
        is_counted=not is_number and field.message is None and field.name not in _DATA,
        is_text=descriptor.type == descriptor.TYPE_STRING,
        is_data=field.name in _DATA,
    )


def domain_of(domain: str) -> str:
    """Return the canonical name of a domain: the domain of ONNX's own operators has two names."""
    return "" if domain == "ai.onnx" else domain


def opsets_of(holder: Any) -> dict[str, int]:
    """Return the operator set versions that a model or a function imports, by domain. Raises FormatError for conflicts."""
    found: dict[str, int] = {}
    for item in holder.opset_import:
        domain = domain_of(item.domain)
        if not 1 <= item.version < 2**31:
            raise FormatError(f"the model imports an invalid version {item.version} of the operators of {item.domain[:80]!r}")
        if found.setdefault(domain, item.version) != item.version:
            raise FormatError(
                f"the model imports two versions of the operators of {item.domain[:80]!r}: {found[domain]} and {item.version}"
            )
    return found


def attributes_of(node: Any) -> dict[str, Any]:
    """Return the attributes of a node by name, as messages. Raises FormatError for duplicates."""
    found = {attribute.name: attribute for attribute in node.attribute}
    if len(found) != len(node.attribute):
        raise FormatError(f'{node.op_type[:80]} "{node.name[:80]}" has duplicate attributes')
    return found


def subgraphs_of(node: Any) -> Iterator[Any]:
    """Iterate over the graphs nested in a node."""
    for attribute in node.attribute:
        if attribute.type == _GRAPH:
            yield attribute.g
        elif attribute.type == _GRAPHS:
            yield from attribute.graphs


class _Structure:
    """Verifies a model independent of its operators: names are defined once and before use, and functions are not recursive."""

    def __init__(self, model: Any, limits: Limits):
        self.model = model
        self.limits = limits
        self.nodes = 0

    def verify(self) -> None:
        """Raise FormatError or LimitError if the model is invalid."""
        model = self.model
        if not 3 <= model.ir_version <= 1000:
            raise FormatError(f"the model has the invalid IR version {model.ir_version}")
        opsets_of(model)
        calls: dict[tuple[str, str, str], set[tuple[str, str]]] = {}
        for function in model.functions:
            key = (domain_of(function.domain), function.name, function.overload)
            if key in calls:
                raise FormatError(f'the function "{function.name[:80]}" is defined twice')
            opsets_of(function)
            calls[key] = set()
            self._nodes(function.node, {*function.input}, 1, calls[key])
            if len(set(function.input)) != len(function.input):
                raise FormatError(f'the function "{function.name[:80]}" has duplicate inputs')
        _require_end({key[:2]: {call for other, found in calls.items() if other[:2] == key[:2] for call in found} for key in calls})
        self._graph(model.graph, (), 1, set())

    def _graph(self, graph: Any, around: tuple[set[str], ...], depth: int, calls: set[tuple[str, str]]) -> None:
        if depth > self.limits.depth:
            raise LimitError(f"graphs are nested more than {self.limits.depth} deep", hint="limits=Limits(depth=...)")
        known: set[str] = set()
        for name in [input.name for input in graph.input]:
            _define(name, known)
        for name in [tensor.name for tensor in graph.initializer] + [tensor.values.name for tensor in graph.sparse_initializer]:
            if name not in known or depth > 1:
                _define(name, known)
        names = [tensor.name for tensor in graph.initializer]
        if len(set(names)) != len(names):
            raise FormatError("the model has duplicate initializers")
        known = self._nodes(graph.node, known, depth, calls, around)
        for output in graph.output:
            if not _is_known(output.name, (known, *around)):
                raise FormatError(f'the output "{output.name[:80]}" of the graph "{graph.name[:80]}" is not defined')

    def _nodes(self, nodes: Any, known: set[str], depth: int, calls: set[tuple[str, str]], around: tuple[set[str], ...] = ()) -> set[str]:
        """Verify nodes in order; return the names defined after them."""
        for node in nodes:
            self.nodes += 1
            if self.nodes > self.limits.ops:
                raise LimitError(f"the model has more than {self.limits.ops:,} nodes", hint="limits=Limits(ops=...)")
            if not node.op_type:
                raise FormatError(f'a node "{node.name[:80]}" has no operator')
            calls.add((domain_of(node.domain), node.op_type))
            for name in node.input:
                if name and not _is_known(name, (known, *around)):
                    raise FormatError(f'{node.op_type[:80]} "{node.name[:80]}" reads "{name[:80]}" before it is defined')
            attributes_of(node)
            for graph in subgraphs_of(node):
                self._graph(graph, (known, *around), depth + 1, calls)
            for name in node.output:
                if name:
                    _define(name, known)
        return known


def _is_known(name: str, scopes: tuple[set[str], ...]) -> bool:
    return any(name in scope for scope in scopes)


def _define(name: str, known: set[str]) -> None:
    if not name or len(name) > _LONGEST_NAME:
        raise FormatError(f"a value has a name of {len(name):,} characters; 1 to {_LONGEST_NAME:,} are allowed")
    if name in known:
        raise FormatError(f'"{name[:80]}" is defined twice')
    known.add(name)


def _require_end(calls: dict[tuple[str, str], set[tuple[str, str]]]) -> None:
    """Raise FormatError if a function calls itself, directly or indirectly. Iterative, as a file may chain any number of functions."""
    left = {key: {call for call in found if call in calls} for key, found in calls.items()}
    callers: dict[tuple[str, str], list[tuple[str, str]]] = {key: [] for key in left}
    for key, found in left.items():
        for call in found:
            callers[call].append(key)
    ready = [key for key, found in left.items() if not found]
    while ready:
        done = ready.pop()
        for caller in callers[done]:
            left[caller].discard(done)
            if not left[caller]:
                ready.append(caller)
        del left[done]
    if left:
        raise FormatError(f'the function "{next(iter(left))[1][:80]}" calls itself')
