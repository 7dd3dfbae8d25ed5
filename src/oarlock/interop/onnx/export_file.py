"""An ONNX model as a file: one message, or one with its large tensors in a file beside it, where a message cannot hold them."""

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

_LARGEST = 2**31 - 2**24  # bytes of tensors in one message, which is less than 2**31 bytes in all
_SMALLEST_OUTSIDE = 1024  # bytes: smaller tensors, such as shapes, stay in the message
_ALIGNMENT = 4096  # of tensors in the file beside it, which can then be mapped


def write_model_file(model: Any, path: str | os.PathLike[str] | io.BufferedIOBase) -> None:
    """Write the file; with its tensors in `NAME.data` beside it where they are too large for one message.

    Raises ArgumentError for such a model and a file that is open, and what `write_file` raises.
    """
    large = sum(len(tensor.raw_data) for tensor in _tensors(model.graph)) > _LARGEST
    if isinstance(path, io.BufferedIOBase):
        if large:
            raise ArgumentError(
                "the model has more than 2 GiB of values, which one message of ONNX does not hold",
                location=here(),
                hint="give a path: the values are then written to a file beside it",
            )
        path.write(model.SerializeToString())
        return
    if large:
        beside = Path(path).with_name(f"{Path(path).name}.data")
        write_file(beside, memoryview(_moved_out(model, beside.name)))
    write_file(path, model.SerializeToString())


def _moved_out(model: Any, location: str) -> bytearray:
    """The bytes of the large tensors, which `model` then says to be in a file at `location`, each at a page of its own."""
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
    """The tensors of a graph and of the graphs inside it."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            elif attribute.HasField("g"):
                yield from _tensors(attribute.g)
