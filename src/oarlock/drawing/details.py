"""The texts of tooltips, for ops, variables and layers.

Names, source lines and attributes are untrusted. `plain` converts each to a short printable line; the drawing escapes the rest.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from oarlock.errors import visible
from oarlock.ir.attribute import format_attribute
from oarlock.ir.block import Block
from oarlock.ir.location import Location
from oarlock.ir.operation import Op
from oarlock.ir.var import HeldValue, Var

__all__ = ["count_text", "describe_layer", "describe_op", "describe_var", "memory_text", "operators_text", "plain", "shorten", "type_of"]

_LONGEST = 160  # characters of a line
_MOST = 16  # the most variables of a slot to list


def plain(text: str, longest: int = _LONGEST) -> str:
    """Return `text` as one printable line of at most `longest` characters."""
    text = visible(text[: longest + 1])
    return text if len(text) <= longest else text[: longest - 3] + "..."


def shorten(name: str, longest: int) -> str:
    """Return a name without its middle, if it is longer than `longest`."""
    if len(name) <= longest:
        return name
    head = (longest - 3) // 3
    return f"{name[:head]}...{name[len(name) - (longest - 3 - head) :]}"


def type_of(var: Var) -> str:
    """Return the type of a variable as text, such as `float32[n, 10]`."""
    return plain(var.type_text, 80)


def describe_op(op: Op, *, source: bool = True) -> str:
    """Describe an op: its source line (unless `source` is False), operator, variables by slot with their types, and attributes."""
    rows = []
    for mark, slots in (("", op.inputs), ("-> ", op.outputs)):
        for slot, vars in slots.items():
            rows += [
                (mark + (slot if number == 0 else ""), var.name, var.type_text + _kind(var)) for number, var in enumerate(vars[:_MOST])
            ]
            if len(vars) > _MOST:
                rows.append(("", f"... {len(vars) - _MOST} more", ""))
    lines = [*_author(op.location if source else None), plain(op.type) + (f' "{plain(op.name)}"' if op.name else ""), *_columns(rows)]
    return "\n".join([*lines, *_attributes(op.attributes)])


def describe_var(var: Var, *, source: bool = True) -> str:
    """Describe a variable: its source line and type; for a persistable one, also its initializer and size in memory."""
    starts = []
    if var.initializer is not None and not isinstance(var.initializer, HeldValue):
        starts = [plain(f"starts as {var.initializer.type}"), *_attributes(var.initializer.attributes)]
    memory = [memory_text(bytes_of([var]))] if var.persistable else []
    return "\n".join([*_author(var.location if source else None), f"{plain(var.name)}: {type_of(var)}{_kind(var)}", *starts, *memory])


def describe_layer(name: str, ops: Sequence[Op], parameters: Sequence[Var], *, source: bool = True) -> str:
    """Describe a layer: its full name, the source line of its first op, its operators and its parameters."""
    located = next((op.location for op in ops if source and op.location is not None), None)
    lines = [*_author(located), plain(name), f"{len(ops)} ops: {operators_text(ops, 12)}"]
    if parameters:
        lines.append(f"{count_text(elements_of(parameters))} numbers in {len(parameters)} parameters, {memory_text(bytes_of(parameters))}")
        lines += _columns([("", var.name, var.type_text) for var in parameters[:_MOST]])
    return "\n".join(lines)


def operators_text(ops: Iterable[Op], most: int) -> str:
    """Format operators with their counts, such as `linear x4, relu`, the most frequent first."""
    counts = Counter(op.type for op in ops).most_common()
    shown = [plain(type, 40) + (f" \u00d7{count}" if count > 1 else "") for type, count in counts[:most]]
    return ", ".join([*shown, "..."] if len(counts) > most else shown)


def elements_of(vars: Iterable[Var]) -> int:
    """Return the number of elements of variables; symbolic sizes are ignored."""
    return sum(math.prod(size for size in var.shape or () if isinstance(size, int)) for var in vars)


def bytes_of(vars: Iterable[Var]) -> int:
    return sum(elements_of([var]) * var.dtype.itemsize for var in vars)


def count_text(count: int) -> str:
    return f"{count:,}"


def memory_text(count: float) -> str:
    """Format a size in bytes, such as 512 B or 1.5 MiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def _author(location: Location | None) -> list[str]:
    if location is None:
        return []
    function = "" if location.function == "<module>" else f" in {plain(location.function)}"
    return [f"{plain(location.file)}:{location.line}{function}", *([f"    {plain(location.text, 200)}"] if location.text else []), ""]


def _kind(var: Var) -> str:
    return "" if not var.persistable else "  parameter" if var.trainable else "  frozen" if var.parameter else "  state"


def _columns(rows: Sequence[tuple[str, str, str]]) -> list[str]:
    wide = [max((min(len(row[column]), 60) for row in rows), default=0) for column in (0, 1)]
    return [f"  {plain(a, 60):<{wide[0]}}  {plain(b, 60):<{wide[1]}}  {plain(c, 100)}".rstrip() for a, b, c in rows]


def _attributes(attributes: Mapping[str, object]) -> list[str]:
    return [plain(f"  {name} = {_value_text(attributes[name])}") for name in sorted(attributes)]


def _value_text(value: object) -> str:
    """Format an attribute: bytes as their size, a long list truncated."""
    if isinstance(value, Block):
        return f"block {value.name}"
    if isinstance(value, Var):
        return value.name
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    if isinstance(value, tuple) and len(value) > _MOST:
        return f"{format_attribute(value[:_MOST])[:-1]}, ... {len(value) - _MOST} more]"
    return format_attribute(value)
