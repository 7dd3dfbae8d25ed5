"""Signatures of operators on one line, including properties that passes rely on.

    x: float[*b k], w: float[k n], bias?: float[n] -> out: float[*b n]

A slot is `name: dtype[axes]`; `name?` is optional, `*name` takes any number of tensors. Without brackets, the shape is not restricted. An
axis is one of

    k  8      a size, the same for each use of the name; a number
    k!        in an input, a size of at least 1
    *b        any number of leading axes. A promise: their indexes are computed independently, with the other inputs shared
    ...s      any number of axes, no promise
    ...s-{axis}   in an output, the axes ...s without the one in the attribute `axis`, without all if it is None; if the attribute
              `keepdim` is true, that axis has size 1. `{axis!}` rejects an axis of size 0
    *#s       any number of axes, broadcast with every other `*#s`
    *~b       like `*b`, and `...~s` like `...s`: a call repeats inputs along axes that are 1 or missing
    {depth}   the value of an attribute
    k_i       in a variadic slot, a size that differs for each tensor; `sum(k_i)` is their sum
    ?         an output size that depends on values
    n+m 2*k   in an output, arithmetic on sizes; in an input only `n+1`

A dtype is a dtype name, or a class, which is the same dtype in all slots: `float`, `integer`, `real` for both, `complex`, `inexact` for
floats and complex numbers, `number` for all of these. `complex.real` is the float dtype of the parts of `complex`, and so is `number.real`,
except that real dtypes are unchanged; `float.complex` is the complex dtype with such parts. `T`, `U` are any dtype, the same in all slots;
`any` is not restricted; `shape` is a slot of which only the shape is read; in an output, `{dtype}` is the value of an attribute.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from oarlock.errors import DeclarationError, DTypeError, ShapeError
from oarlock.ir.dtype import DType
from oarlock.ir.shape_rules import gives_way, may_be, may_be_broadcast, require_axes
from oarlock.ir.size import Shape, Size, add, can_be_equal, format_shape, rename
from oarlock.registry.dtype_class import bind_dtype, find_dtype, is_dtype_text

__all__ = [
    "Axis",
    "Binding",
    "Signature",
    "Slot",
    "TensorType",
    "parse_signature",
    "require_size",
]

_SLOT = re.compile(r"(\*?)([A-Za-z_]\w*)(\??): (sum )?([A-Za-z]\w*(?:\.(?:real|complex))?|\{\w+\})(?:\[([^\]]*)\])?$")
_REPEATED = re.compile(r"^(\*|\.\.\.)(?=\w)")
_AXIS = re.compile(
    r"\*#(?P<broadcast>\w+)|\*(?P<group>\w+)|\.\.\.(?P<without>\w+-\{\w+!?\})|\.\.\.(?P<rank>\w+)|\{(?P<attribute>\w+)\}|(?P<fresh>\?)|sum\((?P<sum>\w+_i)\)"
    r"|(?P<each>[A-Za-z]\w*_i)|(?P<size>(?:\d+|[A-Za-z]\w*)(?:[+*](?:\d+|[A-Za-z]\w*))*)"
)


class TensorType(NamedTuple):
    """The type of a tensor before it is computed. `shape` is None if the rank is unknown."""

    dtype: DType
    shape: Shape | None

    def __str__(self) -> str:
        return f"{self.dtype}{format_shape(self.shape)}"


class Axis(NamedTuple):
    """One axis in brackets: its kind (a group name of the pattern above) and its text."""

    kind: str
    name: str

    def __str__(self) -> str:
        marks = {"broadcast": "*#{}", "group": "*{}", "rank": "...{}", "without": "...{}", "attribute": "{{{}}}", "sum": "sum({})"}
        return marks.get(self.kind, "{}").format(self.name)


_MANY = ("broadcast", "group", "rank", "without")  # axes that match any number of dimensions


@dataclass(frozen=True)
class Slot:
    """One input or output of an operator."""

    name: str
    dtype: str
    axes: tuple[Axis, ...] | None
    optional: bool = False
    variadic: bool = False
    summed: bool = False
    like: str | None = None  # an output with the shape of this input
    filled: frozenset[str] = frozenset()  # names of sizes of at least 1
    repeated: bool = False  # whether calls repeat it along its axes `*~b`

    @property
    def shape_only(self) -> bool:
        return self.dtype == "shape"

    @property
    def takes_number(self) -> bool:
        """Whether a number may be passed instead of a variable: it broadcasts with the others, or the slot takes a scalar."""
        if self.variadic or self.axes is None:
            return False
        return not self.axes or [axis.kind for axis in self.axes] == ["broadcast"] or (self.repeated and len(self.axes) == 1)

    @property
    def leading_group(self) -> str | None:
        """The group `*b` at the start of the axes, or None."""
        first = self.axes[0] if self.axes else None
        return first.name if first and first.kind == "group" else None

    def dimensions(self, rank: int) -> list[tuple[str, int]]:
        """Return the name of each dimension of a tensor of this `rank`, and its index within the dimensions of that name."""
        found: list[tuple[str, int]] = []
        for axis in self.axes or ():
            count = rank - len(self.axes or ()) + 1 if axis.kind in _MANY else 1
            found += [(axis.name, number) for number in range(count)]
        return found

    @property
    def shape_text(self) -> str:
        if self.axes is None:
            return ""
        texts = [f"{axis}{'!' * (axis.name in self.filled)}" for axis in self.axes]
        if self.repeated:
            texts = [_REPEATED.sub(r"\1~", text) for text in texts]
        return f"[{' '.join(texts)}]"

    def __str__(self) -> str:
        head = f"{'*' if self.variadic else ''}{self.name}{'?' if self.optional else ''}"
        return f"{head}: {'sum ' if self.summed else ''}{self.dtype}{self.shape_text}"


@dataclass
class Binding:
    """The sizes and dtypes bound to the names of a signature by the arguments of one use."""

    sizes: dict[str, Size] = field(default_factory=dict)
    groups: dict[str, Shape] = field(default_factory=dict)
    beside: dict[str, Size] = field(default_factory=dict)  # n for `n+1`; a size called n takes precedence
    sums: dict[str, Size] = field(default_factory=dict)
    dtypes: dict[str, DType] = field(default_factory=dict)
    shapes: dict[str, Shape] = field(default_factory=dict)  # complete shapes of single-tensor slots
    source: dict[str, str] = field(default_factory=dict)  # the slot that first bound a name
    is_proved: bool = True  # whether the sizes fit for all values of their symbols


@dataclass(frozen=True)
class Signature:
    """The slots of an operator, in order."""

    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]

    def __str__(self) -> str:
        return f"{', '.join(map(str, self.inputs))} -> {', '.join(map(str, self.outputs))}".strip()

    @cached_property
    def _in_order(self) -> tuple[Slot, ...]:
        """The inputs, with those whose dtype follows from another one last."""
        return tuple(sorted(self.inputs, key=lambda slot: "." in slot.dtype))

    @cached_property
    def repeats(self) -> bool:
        """Whether a call repeats inputs: some slot has an axis `*~b`."""
        return any(slot.repeated for slot in self.inputs)

    def input(self, name: str) -> Slot | None:
        return next((slot for slot in self.inputs if slot.name == name), None)

    def output(self, name: str) -> Slot | None:
        return next((slot for slot in self.outputs if slot.name == name), None)

    def bind(self, given: Mapping[str, Sequence[TensorType]]) -> Binding:
        """Bind every name to the arguments. Raises ShapeError or DTypeError if they are inconsistent."""
        binding = Binding()
        for slot in self._in_order:
            for type in given.get(slot.name, ()):
                bind_dtype(slot.name, slot.dtype, type.dtype, binding.dtypes, binding.source)
                if slot.axes is not None and type.shape is not None:
                    _bind_shape(slot, type.shape, binding)
                if not slot.variadic and type.shape is not None:
                    binding.shapes[slot.name] = type.shape
        binding.sizes = binding.beside | binding.sizes
        return binding

    def infer(self, binding: Binding, attributes: Mapping[str, object], fresh: Callable[[], str]) -> dict[str, TensorType]:
        """Return the type of each non-variadic output; `fresh` returns a name for a size that depends on values."""
        return {
            slot.name: TensorType(self.infer_dtype(slot, binding, attributes), _infer_shape(slot, binding, attributes, fresh))
            for slot in self.outputs
            if not slot.variadic
        }

    def infer_dtype(self, slot: Slot, binding: Binding, attributes: Mapping[str, object]) -> DType:
        """Return the dtype of an output. Raises DTypeError if it cannot be inferred."""
        if slot.dtype.startswith("{"):
            return DType.of(attributes[slot.dtype.strip("{}")])  # type: ignore[arg-type]
        found = find_dtype(slot.dtype, binding.dtypes, binding.source)
        if found is None:
            raise DTypeError(f"the dtype of {slot.name} cannot be inferred")
        return found

    @property
    def row_group(self) -> str | None:
        """The group `*b` that leads every output and some input, whose indexes are computed independently; else None."""
        groups = {slot.leading_group for slot in self.outputs}
        group = groups.pop() if len(groups) == 1 else None
        return group if any(slot.leading_group == group for slot in self.inputs) else None


def _bind_shape(slot: Slot, shape: Shape, binding: Binding) -> None:
    axes = slot.axes or ()
    many = next((number for number, axis in enumerate(axes) if axis.kind in _MANY), None)
    fixed = len(axes) - (many is not None)
    if len(shape) < fixed or (many is None and len(shape) > fixed):
        least = "at least " if many is not None else ""
        raise ShapeError(
            f"{slot.name} has {len(shape)} dimension{'' if len(shape) == 1 else 's'}, but {slot.shape_text} needs {least}{fixed}"
        )
    at = 0
    for axis in axes:
        if axis.kind in _MANY:
            width = len(shape) - fixed
            _bind_group(axis, shape[at : at + width], slot, binding)
            at += width
        else:
            _bind_size(axis, shape[at], slot, binding)
            at += 1


def _bind_group(axis: Axis, sizes: Shape, slot: Slot, binding: Binding) -> None:
    known = binding.groups.get(axis.name)
    if known is None:
        binding.groups[axis.name] = sizes
        binding.source[axis.name] = slot.name
        return
    first = binding.source[axis.name]
    if axis.kind == "broadcast":
        binding.groups[axis.name] = _broadcast(known, sizes, first, slot.name, binding)
        return
    if len(known) != len(sizes):
        raise ShapeError(f"{axis} is {format_shape(known)} in {first} but {format_shape(sizes)} in {slot.name}")
    binding.groups[axis.name] = tuple(_same_size(str(axis), a, b, first, slot.name, binding) for a, b in zip(known, sizes, strict=True))


def _bind_size(axis: Axis, size: Size, slot: Slot, binding: Binding) -> None:
    if axis.kind == "each":
        binding.sums[axis.name] = add(binding.sums.get(axis.name, 0), size)
        return
    if axis.name.isdigit():
        _same_size("a dimension", int(axis.name), size, "the signature", slot.name, binding)
        return
    if size == 0 and (axis.name.endswith("+1") or axis.name in slot.filled):
        raise ShapeError(f"{slot.name} has size 0, but {axis.name} must be at least 1")
    if isinstance(size, str) and (axis.name.endswith("+1") or axis.name in slot.filled) and can_be_equal(size, 0):
        binding.is_proved = False
    if axis.name.endswith("+1"):
        binding.beside[axis.name.removesuffix("+1")] = add(size, -1)
        return
    first = binding.source.setdefault(axis.name, slot.name)
    known = binding.sizes.get(axis.name, size)
    binding.sizes[axis.name] = _same_size(f"dimension {axis.name}", known, size, first, slot.name, binding)


def _same_size(what: str, a: Size, b: Size, first: str, second: str, binding: Binding) -> Size:
    """Return the common value of two sizes. A number and a symbol may be equal, which is checked in the run."""
    if a == b:
        return a
    if isinstance(a, int) != isinstance(b, int) and may_be(a, b):
        binding.is_proved = False
        return a if isinstance(a, int) else b
    raise ShapeError(f"{what} is {a} in {first} but {b} in {second}")


def _broadcast(a: Shape, b: Shape, first: str, second: str, binding: Binding) -> Shape:
    sizes: list[Size] = []
    for back in range(max(len(a), len(b)), 0, -1):
        left = a[-back] if back <= len(a) else 1
        right = b[-back] if back <= len(b) else 1
        if gives_way(left, right) or gives_way(right, left):
            sizes.append(right if gives_way(left, right) else left)
        elif left == right:
            sizes.append(left)
        elif isinstance(left, int) != isinstance(right, int) and may_be_broadcast(left, right):
            binding.is_proved = False
            sizes.append(left if isinstance(left, int) else right)
        else:
            raise ShapeError(
                f"{first} {format_shape(a)} and {second} {format_shape(b)} do not broadcast: {left} and {right} are different sizes"
            )
    return tuple(sizes)


def _infer_shape(slot: Slot, binding: Binding, attributes: Mapping[str, object], fresh: Callable[[], str]) -> Shape | None:
    if slot.like is not None:
        return binding.shapes.get(slot.like)
    if slot.axes is None:
        return None
    sizes: list[Size] = []
    for axis in slot.axes:
        if axis.kind == "without" and axis.name not in binding.groups:
            left = _without(axis.name, binding, attributes)
            if left is None:
                return None
            sizes += left
        elif axis.kind in _MANY:
            if axis.name not in binding.groups:
                return None
            sizes += binding.groups[axis.name]
        elif axis.kind == "fresh":
            sizes.append(fresh())
        elif axis.kind == "attribute":
            sizes.append(require_size(axis.name, attributes[axis.name]))
        elif axis.kind == "sum":
            sizes.append(binding.sums.get(axis.name.removesuffix(")"), 0))
        elif axis.name.isdigit():
            sizes.append(int(axis.name))
        else:
            sizes.append(rename(axis.name, binding.sizes))
    return tuple(sizes)


def _without(text: str, binding: Binding, attributes: Mapping[str, object]) -> Shape | None:
    """Return the sizes of `s-{axis}`; None if those of `s` are unknown. Raises ShapeError."""
    group, _, name = text.removesuffix("}").removesuffix("!").partition("-{")
    shape, axis, owner = binding.groups.get(group), attributes.get(name), binding.source.get(group)
    if shape is None:
        return None
    left_out = require_axes(shape, axis, owner, name)  # type: ignore[arg-type]
    if "!" in text and any(isinstance(shape[number], str) and can_be_equal(shape[number], 0) for number in left_out):
        binding.is_proved = False
    if "!" in text and any(shape[number] == 0 for number in left_out):
        where = "" if axis is None else f" along {name} {axis}"
        raise ShapeError(f"{owner} has no elements{where}, but needs at least one")
    stays = (1,) if attributes.get("keepdim") else ()
    return tuple(size for number, item in enumerate(shape) for size in (stays if number in left_out else (item,)))


def require_size(name: str, value: object) -> Size:
    """Return the value of an attribute as a size. Raises ShapeError if it is negative."""
    if isinstance(value, int) and value < 0:
        raise ShapeError(f"{name} is {value}, but a size must be at least 0")
    return value  # type: ignore[return-value]


def parse_signature(text: str) -> Signature:
    """Parse `inputs -> outputs`. Raises DeclarationError."""
    left, arrow, right = text.partition("->")
    if not arrow:
        raise DeclarationError(f"a signature has the form 'inputs -> outputs'; there is no '->' in {text!r}")
    signature = Signature(*(tuple(_parse_slot(part, text) for part in _split(side)) for side in (left, right)))
    attribute_dtypes = [slot.name for slot in signature.inputs if slot.dtype.startswith("{")]
    if attribute_dtypes:
        raise DeclarationError(f"{attribute_dtypes[0]} is an input, so its dtype cannot be an attribute, in {text!r}")
    return signature


def _split(side: str) -> list[str]:
    return [part.strip() for part in re.split(r",(?![^\[]*\])", side) if part.strip()]


def _parse_slot(text: str, whole: str) -> Slot:
    match = _SLOT.match(text)
    if not match:
        raise DeclarationError(f"{text!r} is not a slot such as 'x: float[*b k]', in {whole!r}")
    star, name, question, summed, dtype, axes = match.groups()
    if not is_dtype_text(dtype):
        raise DeclarationError(f"{dtype!r} is not a dtype of a signature, in {whole!r}")
    filled = frozenset(re.findall(r"(?<!\S)(\w+)!", axes or ""))
    repeated = "~" in (axes or "")
    axes = axes and re.sub(r"(\*|\.\.\.)~(?=\w)", r"\1", axes)
    parsed = None if axes is None else tuple(_parse_axis(axis, whole) for axis in re.sub(r"(?<!\S)(\w+)!", r"\1", axes).split())
    if parsed and sum(axis.kind in _MANY for axis in parsed) > 1:
        raise DeclarationError(f"{text!r} has two axis groups, in {whole!r}")
    return Slot(name, dtype, parsed, optional=bool(question), variadic=bool(star), summed=bool(summed), filled=filled, repeated=repeated)


def _parse_axis(text: str, whole: str) -> Axis:
    match = _AXIS.fullmatch(text)
    if not match:
        raise DeclarationError(f"{text!r} is not an axis, in {whole!r}")
    kind = match.lastgroup or "size"
    return Axis(kind, match[kind])


def renamed(slot: Slot, name: str, **changes: object) -> Slot:
    """Return `slot` with another name."""
    return replace(slot, name=name, **changes)  # type: ignore[arg-type]
