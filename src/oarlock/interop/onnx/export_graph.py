"""The ONNX graph during export: nodes in order, constants, unique names, and sizes as tensors."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy

from oarlock.interop.onnx.package import get_package
from oarlock.interop.onnx.tensors import NUMBERS
from oarlock.ir.dtype import DType
from oarlock.ir.operation import Op
from oarlock.ir.polynomial import find_division, find_least
from oarlock.ir.size import Shape, Size, names_in, solve, terms

if TYPE_CHECKING:
    from oarlock.ir.var import Var

__all__ = ["Graph", "Node", "Unsupported", "Value"]

END = 2**63 - 1
"""The end of a slice without an end."""


class Unsupported(Exception):  # noqa: N818  a reason, collected into one error
    """A case that ONNX, or this opset, cannot express. `to_onnx` collects these and raises one error for all."""


@dataclass(frozen=True)
class Value:
    """A value of the graph: its name, dtype and shape."""

    name: str
    dtype: DType
    shape: Shape | None

    @classmethod
    def of(cls, var: "Var", name: str) -> "Value":
        """Return the value of a variable. Complex numbers are their parts in a last axis of 2."""
        shape = (*var.shape, 2) if var.dtype.is_complex and var.shape is not None else var.shape
        return cls(name, var.dtype.real, shape)

    @property
    def rank(self) -> int:
        """Return the number of dimensions. Raises Unsupported if it is unknown."""
        if self.shape is None:
            raise Unsupported("a value has an unknown rank")
        return len(self.shape)

    @property
    def sizes(self) -> Shape:
        if self.shape is None:
            raise Unsupported("a value has an unknown rank")
        return self.shape


Argument = Value | str | None


@dataclass
class Node:
    """One node: the names of its inputs and outputs, and its attributes; a `Graph` among them is a nested block."""

    type: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]
    name: str = ""


@dataclass
class Shared:
    """State shared by a graph and its nested graphs."""

    opset: int
    training: bool
    taken: set[str] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=dict)
    constants: dict[tuple[str, tuple[int, ...], bytes], str] = field(default_factory=dict)
    initializers: dict[str, numpy.ndarray] = field(default_factory=dict)
    inputs: list[Value] = field(default_factory=list)
    """The inputs of the main graph."""


class Graph:
    """A graph, or a nested block, to which rules append nodes.

    Calling it with a node type and inputs, as in `g("Add", x, y)`, appends a node and returns the name of its output, or a tuple of
    `outputs` names. Constants belong to the main graph and are visible in all blocks.
    """

    def __init__(self, shared: Shared, parent: "Graph | None" = None):
        self.shared = shared
        self.parent = parent
        self.step: str | None = None
        """In the body of a loop, the number of the current step: int64[]."""
        self.nodes: list[Node] = []
        self.inputs: list[Value] = []
        self.outputs: list[Value] = []
        self.op: Op | None = None
        """The op to whose rule the graph is passed."""
        self._known: dict[str, tuple[str, int]] = {}  # size -> a value that has it, and the axis
        self._linear: dict[str, list[tuple[Size, str, int]]] = {}  # name -> sizes that determine it linearly
        self._dims: dict[Size, str] = {}

    @property
    def opset(self) -> int:
        return self.shared.opset

    @property
    def training(self) -> bool:
        return self.shared.training

    def block(self) -> "Graph":
        """Return an empty block nested in this graph, with access to its values."""
        return Graph(self.shared, self)

    def steps(self) -> Iterator[str]:
        """Iterate over the step numbers of the enclosing loops, innermost first."""
        graph: Graph | None = self
        while graph is not None:
            if graph.step is not None:
                yield graph.step
            graph = graph.parent

    def require_opset(self, least: int, what: str) -> None:
        """Raise Unsupported if this opset is older than `least`."""
        if self.opset < least:
            raise Unsupported(f"{what} requires opset {least}, not {self.opset}")

    # Names and nodes

    def fresh(self, stem: str) -> str:
        """Return a unique name: `stem` itself if it is unused."""
        name, number = stem, self.shared.counts.get(stem, 0)
        while name in self.shared.taken:
            number += 1
            name = f"{stem}_{number}"
        self.shared.counts[stem] = number
        self.shared.taken.add(name)
        return name

    def __call__(self, type: str, *inputs: Argument, outputs: int = 1, **attributes: Any) -> Any:
        stem = f"{self.op.writes[0].name}/{type}" if self.op is not None and self.op.writes else type
        names = [self.fresh(stem) for _ in range(outputs)]
        self.append(type, inputs, names, attributes)
        return names[0] if outputs == 1 else tuple(names)

    def append(self, type: str, inputs: Sequence[Argument], outputs: Sequence[str], attributes: dict[str, Any]) -> None:
        """Append a node whose outputs have the given names."""
        read = [name_of(item) for item in inputs]
        while read and not read[-1]:
            read.pop()
        given = {name: value for name, value in attributes.items() if value is not None}
        self.nodes.append(Node(type, read, list(outputs), given, name=f"{outputs[0]}:{type}" if outputs else type))

    def rename(self, old: str, new: str, since: int) -> None:
        """Rename a value that is computed by a node from number `since` on, together with its readers."""
        for node in self.nodes[since:]:
            for inner in all_nodes(node):
                inner.inputs = [new if name == old else name for name in inner.inputs]
                inner.outputs = [new if name == old else name for name in inner.outputs]
                for block in blocks_of(inner):
                    block.outputs = [Value(new, value.dtype, value.shape) if value.name == old else value for value in block.outputs]
        self._known = {size: (new if name == old else name, axis) for size, (name, axis) in self._known.items()}
        self._dims = {size: new if name == old else name for size, name in self._dims.items()}

    # Constants

    def constant(self, array: numpy.ndarray) -> str:
        """Return the name of a constant; equal constants share one."""
        array = numpy.asarray(array, order="C")
        key = (str(array.dtype), array.shape, array.tobytes())
        found = self.shared.constants.get(key)
        if found is None:
            found = self.shared.constants[key] = self.fresh("constant")
            self.shared.initializers[found] = array
        return found

    def scalar(self, value: float | bool, dtype: DType) -> str:
        """Return a scalar constant."""
        return self.constant(numpy.array(value, dtype=numpy_dtype(dtype)))

    def ints(self, values: Sequence[int] | int) -> str:
        """Return an int64 constant: a vector, or a scalar for a single number."""
        return self.constant(numpy.array(values, dtype=numpy.int64))

    def constant_of(self, name: Argument) -> numpy.ndarray | None:
        """Return the constant of this name; None if the value is computed or fed."""
        given = {value.name for value in self.shared.inputs}
        return None if name_of(name) in given else self.shared.initializers.get(name_of(name))

    # Sizes

    def know(self, value: Value) -> None:
        """Record the sizes of a value that is available from here on."""
        for axis, size in enumerate(value.shape or ()):
            if isinstance(size, str) and size not in self._known:
                self._known[size] = (value.name, axis)
                solved = solve(size, 0)
                if solved is not None and solved[0] != size:
                    self._linear.setdefault(solved[0], []).append((size, value.name, axis))

    def know_size(self, size: Size, name: str, axis: int) -> None:
        """Record that an axis of the value `name` has this size."""
        if isinstance(size, str):
            self._known.setdefault(size, (name, axis))

    def dim(self, x: Value, axis: int) -> str:
        """Return the size of an axis: int64[1]."""
        size = x.sizes[axis]
        if isinstance(size, int):
            return self.ints([size])
        axis %= x.rank
        return self("Shape", x, start=axis, end=axis + 1)

    def shape(self, x: Value) -> str:
        """Return the shape of a value: int64[rank]."""
        if x.shape is not None and all(isinstance(size, int) for size in x.shape):
            return self.ints(list(x.shape))  # type: ignore[arg-type]
        return self("Shape", x)

    def size(self, size: Size, *, missing: int | None = None) -> str:
        """Return a size as int64[1], read from a value or computed. Raises Unsupported if a name is unknown in the graph.

        `missing` is the value of unknown names.
        """
        if isinstance(size, int):
            return self.ints([size])
        found = self._find_dim(size)
        if found is None:
            found = self._dims[size] = self._compute(size, missing)
        return found

    def _find_dim(self, size: Size) -> str | None:
        graph: Graph | None = self
        while graph is not None:
            if size in graph._dims:
                return graph._dims[size]
            if size in graph._known:
                name, axis = graph._known[size]  # type: ignore[index]
                found = self._dims[size] = self("Shape", name, start=axis, end=axis + 1)
                return found
            graph = graph.parent
        return None

    def _compute(self, size: Size, missing: int | None) -> str:
        """Compute a polynomial of known names, or a name determined by a size such as `2*n+1`."""
        if names_in(size) == {size}:
            for whole, name, axis in self._linear_sizes(size):  # type: ignore[arg-type]
                least = _constant_term(whole)
                factor = terms(whole)[(size,)]  # type: ignore[index]
                number = self("Shape", name, start=axis, end=axis + 1)
                number = self("Sub", number, self.ints([least])) if least else number
                return self("Div", number, self.ints([factor])) if factor != 1 else number
            if missing is not None:
                return self.ints([missing])
            raise Unsupported(f"the size {size} is unknown in the graph")
        total = None
        for factors, coefficient in terms(size).items():
            part = self.ints([coefficient])
            for factor in factors:
                division, choices = find_division(factor), find_least(factor)
                if division is not None:
                    number = self._floor_divide(self.size(division[0], missing=missing), division[1])
                elif choices is not None:
                    number = self("Min", *(self.size(choice, missing=missing) for choice in choices))
                else:
                    number = self.size(factor, missing=missing)
                part = number if part == self.ints([1]) else self("Mul", part, number)
            total = part if total is None else self("Add", total, part)
        return total if total is not None else self.ints([0])

    def _floor_divide(self, number: str, divisor: int) -> str:
        """Divide rounding down; Div rounds towards zero."""
        down = self("Mod", number, self.ints([divisor]))
        return self("Div", self("Sub", number, down), self.ints([divisor]))

    def _linear_sizes(self, name: str) -> Iterator[tuple[Size, str, int]]:
        graph: Graph | None = self
        while graph is not None:
            yield from graph._linear.get(name, ())
            graph = graph.parent

    def dims(self, shape: Shape, *, missing: int | None = None) -> str:
        """Return sizes as int64[rank]."""
        if all(isinstance(size, int) for size in shape):
            return self.ints(list(shape))  # type: ignore[arg-type]
        return self("Concat", *(self.size(size, missing=missing) for size in shape), axis=0)

    def count(self, shape: Shape) -> str:
        """Return the number of elements: int64[]."""
        if all(isinstance(size, int) for size in shape):
            return self.ints(int(numpy.prod(shape, dtype=numpy.int64)))  # type: ignore[arg-type]
        return self("ReduceProd", self.dims(shape), keepdims=0)

    # Helpers of many rules

    def cast(self, x: Argument, dtype: DType) -> str:
        if isinstance(x, Value) and x.dtype is dtype:
            return x.name
        return self("Cast", x, to=onnx_dtype(dtype))

    def reduce(self, type: str, x: Argument, axes: Sequence[int] | None, *, keepdim: bool = False) -> str:
        """Reduce over `axes`, or over all axes if None. `axes` became an input in opset 18, for ReduceSum earlier.

        A sum over several axes is computed one axis at a time: this reduces rounding errors in runtimes that add numbers sequentially.
        """
        if axes is not None and not axes:
            return name_of(x)
        keepdims = int(keepdim)
        each = range(x.rank if isinstance(x, Value) else 1) if axes is None else axes
        if type in ("ReduceSum", "ReduceMean") and not (isinstance(x, Value) and x.dtype.is_integer):
            for axis in reversed(each[1:]):
                x = self.reduce(type, x, [axis], keepdim=True)
        if axes is None:
            return self(type, x, keepdims=keepdims)
        if type == "ReduceSum" or self.opset >= 18:
            return self(type, x, self.ints(list(axes)), keepdims=keepdims)
        return self(type, x, axes=list(axes), keepdims=keepdims)

    def filled(self, value: float | bool, dtype: DType, shape: str) -> str:
        """Return a tensor filled with `value`; `shape` is int64[rank]."""
        sizes = self.constant_of(shape)
        if sizes is not None and sizes.size == 0:
            return self.scalar(value, dtype)
        return self("ConstantOfShape", shape, value=numpy.array([value], dtype=numpy_dtype(dtype)))

    def reshape(self, x: Argument, shape: Sequence[int] | str) -> str:
        """Reshape `x`. `shape` is the name of an int64[rank] value, or numbers with at most one -1."""
        if isinstance(shape, str):
            return self("Reshape", x, shape, allowzero=1)
        return self("Reshape", x, self.ints(list(shape)), allowzero=None if -1 in shape else 1)

    def squeeze(self, x: Argument, *axes: int) -> str:
        return self("Squeeze", x, self.ints(list(axes))) if axes else name_of(x)

    def unsqueeze(self, x: Argument, *axes: int) -> str:
        return self("Unsqueeze", x, self.ints(list(axes))) if axes else name_of(x)

    def slice(self, x: Argument, axis: int, start: int | str, stop: int | str = END, step: int = 1) -> str:
        """Slice one axis. A bound is a number, or the name of an int64[1] value."""
        first, last = (bound if isinstance(bound, str) else self.ints([bound]) for bound in (start, stop))
        return self("Slice", x, first, last, self.ints([axis]), *([self.ints([step])] if step != 1 else []))

    def rows(self, x: Value) -> str:
        """Flatten all axes but the last, giving a matrix."""
        if x.rank == 2:
            return x.name
        if x.rank == 1:
            return self.unsqueeze(x, 0)
        last = x.sizes[-1]
        return self.reshape(x, [-1, last] if isinstance(last, int) and last else self.matrix_shape(x))

    def matrix_shape(self, x: Value) -> str:
        return self("Concat", self.unsqueeze(self.count(x.sizes[:-1]), 0), self.dim(x, -1), axis=0)

    def arange(self, count: str) -> str:
        """Return 0, 1, ... up to `count`, exclusive, which is int64[1] or int64[]."""
        stop = self.constant_of(count)
        if stop is not None:
            return self.ints(list(range(int(stop.reshape(())))))
        return self("Range", self.ints(0), self("Squeeze", count), self.ints(1))

    def result(self, number: int = 0) -> "Var":
        """Return a variable that the op defines."""
        assert self.op is not None
        return self.op.writes[number]


def _constant_term(size: Size) -> int:
    return terms(size).get((), 0)


def name_of(x: Argument) -> str:
    return "" if x is None else x.name if isinstance(x, Value) else x


def blocks_of(node: Node) -> list[Graph]:
    return [value for value in node.attributes.values() if isinstance(value, Graph)]


def all_nodes(node: Node) -> Iterator[Node]:
    """Iterate over the node and the nodes of its nested blocks."""
    yield node
    for block in blocks_of(node):
        for inner in block.nodes:
            yield from all_nodes(inner)


def onnx_dtype(dtype: DType) -> int:
    """Return the number of a dtype in ONNX files."""
    return NUMBERS[dtype]


def numpy_dtype(dtype: DType) -> Any:
    """Return the NumPy dtype. bfloat16 comes from `ml_dtypes`, as NumPy has no such dtype."""
    if dtype is DType.BFLOAT16:
        return get_package("ml_dtypes").bfloat16  # a dependency of onnx
    return numpy.dtype(dtype.value)
