"""Write an ONNX model as one file, or with large tensors in a second file if one message cannot hold them."""

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from oarlock.errors import ArgumentError
from oarlock.interop.onnx.package import get_package
from oarlock.io.atomic_write import write_file
from oarlock.ir.location import here

__all__ = ["write_model_file"]

_LARGEST = 2**31 - 2**24  # bytes of tensors in one message, whose total must stay below 2**31
_SMALLEST_OUTSIDE = 1024  # bytes: smaller tensors, such as shapes, stay in the message
_ALIGNMENT = 4096  # of tensors in the second file, so that they can be memory-mapped


def write_model_file(model: Any, path: str | os.PathLike[str] | io.BufferedIOBase) -> None:
    """Write the file; its tensors go to `NAME.data` in the same folder if they are too large for one message.

    Raises ArgumentError for such a model and an open file, and the errors of `write_file`.
    """
    large = sum(len(tensor.raw_data) for tensor in _tensors(model.graph)) > _LARGEST
    if isinstance(path, io.BufferedIOBase):
        if large:
            raise ArgumentError(
                "the model has more than 2 GiB of values, which do not fit in one ONNX message",
                location=here(),
                hint="pass a path, so that the values can be written to a second file",
            )
        path.write(model.SerializeToString())
        return
    if large:
        beside = Path(path).with_name(f"{Path(path).name}.data")
        write_file(beside, memoryview(_moved_out(model, beside.name)))
    write_file(path, model.SerializeToString())


def _moved_out(model: Any, location: str) -> bytearray:
    """Move the large tensors of `model` to an external file at `location`; return its bytes. Each tensor starts on a page."""
    data = bytearray()
    for tensor in _tensors(model.graph):
        raw = tensor.raw_data
        if len(raw) < _SMALLEST_OUTSIDE:
            continue
        data.extend(bytes(-len(data) % _ALIGNMENT))
        for key, value in (("location", location), ("offset", len(data)), ("length", len(raw))):
            tensor.external_data.add(key=key, value=str(value))
        data.extend(raw)
        tensor.ClearField("raw_data")
        tensor.data_location = get_package().TensorProto.EXTERNAL
    return data


def _tensors(graph: Any) -> Iterator[Any]:
    """Iterate over the tensors of a graph and of its nested graphs."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            elif attribute.HasField("g"):
                yield from _tensors(attribute.g)
