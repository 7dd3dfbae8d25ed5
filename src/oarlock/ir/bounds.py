"""Size and name checks on a program message, run before any object is built from it.

Names are checked first, so later messages may quote them.
"""

from oarlock.errors import LimitError, VerifyError
from oarlock.ir.dtype import DType
from oarlock.ir.names import is_name
from oarlock.proto import program_pb2 as wire
from oarlock.proto.limits import Limits

__all__ = ["check_bounds", "check_source_bounds"]


def check_bounds(desc: wire.ProgramDesc, limits: Limits) -> None:
    """Check the number of parts, tensor sizes and names of a message, in linear time.

    Raises LimitError or VerifyError that name the block, the op or the variable.
    """
    bounds = _Bounds(limits)
    bounds.require("", len(desc.blocks), "blocks")
    bounds.require("", sum(len(block.vars) for block in desc.blocks), "vars")
    bounds.require("", sum(len(block.ops) for block in desc.blocks), "ops")
    slots = (slot for block in desc.blocks for op in block.ops for slot in (*op.inputs, *op.outputs))
    bounds.require("", sum(len(slot.vars) for slot in slots), "arguments")
    depths: list[int] = []
    for index, block in enumerate(desc.blocks):
        nested = block.HasField("parent") and block.parent < index
        depths.append(depths[block.parent] + 1 if nested else 1)
        bounds.require(f"block {index}: ", depths[-1], "depth")
        bounds.block(index, block)
    for target in desc.targets:
        if not is_name(target.label):
            raise VerifyError(f"target {target.label[:80]!r} is not a legal name")
        bounds.names("a target", target.var)


def check_source_bounds(desc: wire.SourceDesc, limits: Limits) -> None:
    """Check the lengths of source locations. Raises LimitError for a line, or a total of expanded text, that is too long."""
    bounds = _Bounds(limits)
    lengths = [len(text.encode()) for text in desc.strings]
    bounds.require("the author's lines: ", max(lengths, default=0), "location_text_bytes")
    sizes = {number: length for number, length in enumerate(lengths) if length}
    places = (place for block in desc.blocks for places in (block.vars, block.ops) for place in places)
    total = sum(sizes.get(number, 0) for place in places for number in (place.file, place.function, place.text))
    bounds.require("the author's lines: ", total, "location_bytes")


class _Bounds:
    """The limits and the counts accumulated so far."""

    def __init__(self, limits: Limits):
        self.limits = limits
        self.legal: set[str] = set()
        self.symbols: set[str] = set()
        self.symbol_bytes = 0
        self.parameter_bytes = 0

    def require(self, where: str, count: int, name: str) -> None:
        allowed = getattr(self.limits, name)
        if count > allowed:
            raise LimitError(f"{where}{count:,} {name.replace('_', ' ')}, but the limit is {allowed:,}", hint=f"limits=Limits({name}=...)")

    def names(self, where: str, *names: str) -> None:
        for name in names:
            if name not in self.legal:
                if not is_name(name):
                    raise VerifyError(f"{where}: {name[:80]!r} is not a legal name")
                self.legal.add(name)

    def block(self, index: int, block: wire.BlockDesc) -> None:
        where = f"block {index}"
        self.names(where, block.name)
        for var in block.vars:
            self.names(where, var.name)
            place = f'{where}, "{var.name}": '
            self.shape(place, var.shape)
            self.symbol(place, var.row_splits_of)
            self.tensor(place, var)
            self.names(place[:-2], *([var.initializer.type] if var.initializer.type else ()))
            self.attributes(place, var.initializer.attributes)
        self.names(where, *block.inputs, *block.outputs)
        for number, op in enumerate(block.ops):
            self.names(f"{where}, op {number}", op.type)
            place = f"{where}, op {number} ({op.type}): "
            for slot in (*op.inputs, *op.outputs):
                self.names(place[:-2], slot.name, *slot.vars)
            self.attributes(place, op.attributes)

    def attributes(self, where: str, attributes) -> None:
        self.require(where, len(attributes), "attributes_per_op")
        for item in attributes:
            self.names(where[:-2], item.name, *([item.var] if item.WhichOneof("value") == "var" else ()))
            for text in (item.string, *item.strings.values):
                self.require(where, len(text.encode()), "text_bytes")
            self.require(where, max(len(item.ints.values), len(item.floats.values), len(item.strings.values)), "list_items")
            self.shape(where, item.shape)

    def shape(self, where: str, shape: wire.ShapeDesc) -> None:
        self.require(where, len(shape.sizes), "rank")
        for size in shape.sizes:
            self.require(where, size.number, "size")
            self.symbol(where, size.symbol)

    def symbol(self, where: str, symbol: str) -> None:
        if symbol and symbol not in self.symbols:
            self.symbols.add(symbol)
            self.symbol_bytes += len(symbol.encode())
            self.require(where, self.symbol_bytes, "symbol_bytes")

    def tensor(self, where: str, var: wire.VarDesc) -> None:
        """Check the known sizes. A size of 0 counts as 1, because strides are computed from it too."""
        elements = 1
        for size in var.shape.sizes:
            elements *= max(size.number, 1)
        count = elements * DType.from_number(var.dtype).itemsize if DType.is_number(var.dtype) else 0
        self.require(where, elements, "elements")
        self.require(where, count, "tensor_bytes")
        if var.persistable:
            self.parameter_bytes += count
            self.require(where, self.parameter_bytes, "parameter_bytes")
