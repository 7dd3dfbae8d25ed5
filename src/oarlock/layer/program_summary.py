"""Summary of a program as a table: layers, outputs, parameters and multiply-adds."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from io import StringIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from oarlock.drawing.details import memory_text
from oarlock.drawing.table import table_html
from oarlock.errors import ArgumentError, OarlockError
from oarlock.ir.block import Block
from oarlock.ir.block_stack import default_program
from oarlock.ir.layer_names import layer_of
from oarlock.ir.location import here
from oarlock.ir.operation import Op, Role
from oarlock.ir.program import Program
from oarlock.ir.size import Shape, Size, add, divide, evaluate, is_symbol, multiply, names_in, product, rename
from oarlock.ir.var import Var
from oarlock.registry.range_check import require_count

__all__ = ["ProgramSummary", "SummaryRow", "count_multiply_adds", "find_multiply_adds", "summary"]

_SHOWN = 3  # operators listed in a row
_TITLES = ("layer", "operators", "output", "trainable", "frozen", "memory", "multiply-adds")
_NUMBERS = (3, 4, 5, 6)  # columns


@dataclass(frozen=True)
class SummaryRow:
    """A layer, or consecutive ops outside all layers: name, nesting depth in blocks, and numbers.

    `ops` are its operators, `output` is the type of the last result, such as `float32[n, 10]`. A parameter that several rows read counts in
    the first. `multiply_adds` is a number, an expression in symbolic sizes, or None if it is unknown.
    """

    name: str
    ops: tuple[str, ...]
    depth: int
    output: str
    trainable: int
    frozen: int
    parameter_bytes: int
    multiply_adds: Size | None


@dataclass(frozen=True)
class ProgramSummary:
    """The rows of `ol.summary`, and their totals. `str` formats them as a table.

    `state_bytes` is the size of all state other than parameters: running statistics and optimizer state. `multiply_adds` is None if those
    of any row are unknown.
    """

    rows: tuple[SummaryRow, ...]
    trainable: int
    frozen: int
    parameter_bytes: int
    state_bytes: int
    multiply_adds: Size | None
    sizes: dict[str, int] = field(default_factory=dict)

    @property
    def parameters(self) -> int:
        """The number of elements of all parameters."""
        return self.trainable + self.frozen

    def __str__(self) -> str:
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for number, title in enumerate(_TITLES):
            table.add_column(title, justify="right" if number in _NUMBERS else "left", no_wrap=True)
        for cells in self._cells("  "):
            table.add_row(*cells)
        text = StringIO()
        Console(file=text, width=1000, color_system=None, markup=False, highlight=False, legacy_windows=False).print(table)
        return "\n".join([*(line.rstrip() for line in text.getvalue().splitlines()), "", self._totals()])

    def _repr_html_(self) -> str:
        """Return the table as HTML, for notebooks."""
        return table_html(_TITLES, self._cells("\u2003"), numbers=_NUMBERS, note=self._totals())

    def _cells(self, indent: str) -> Iterator[list[str]]:
        for row in self.rows:
            memory = memory_text(row.parameter_bytes) if row.parameter_bytes else ""
            numbers = [f"{count:,}" if count else "" for count in (row.trainable, row.frozen)]
            taken = "" if row.multiply_adds == 0 else _count(row.multiply_adds)
            yield [indent * row.depth + row.name, _list(row.ops), row.output, *numbers, memory, taken]

    def _totals(self) -> str:
        sizes = ", ".join(f"{name} = {size}" for name, size in self.sizes.items())
        return (
            f"{self.trainable:,} trainable and {self.frozen:,} frozen numbers in {memory_text(self.parameter_bytes)}, "
            f"{memory_text(self.state_bytes)} of state\n{_count(self.multiply_adds)} multiply-adds forward"
            + (f", for {sizes}" if sizes else "")
        )


def summary(program: Program | None = None, *, depth: int | None = None, sizes: Mapping[str, int] | None = None) -> ProgramSummary:
    """Summarize the layers of a program as a table for `print`: outputs, parameters and multiply-adds, without gradients and updates.

    Each row is a layer, identified by the names of its parameters, or consecutive ops outside all layers, named after their result or the
    enclosing layer. Ops inside a loop or a branch are indented below it and count for one step. `depth` is the number of name parts that
    are kept: at 1, `encoder.0.attention.query` belongs to `encoder`. Multiply-adds include products, convolutions and attention, for one
    row of the first input; `sizes` gives values for symbolic sizes, such as ``sizes={"n": 32, "t": 100}``. `program` defaults to the
    current default program. Raises ArgumentError.
    """
    program = default_program() if program is None else program
    if not isinstance(program, Program):
        raise ArgumentError(
            f"summary: program must be a Program, not {type(program).__name__}", location=here(), hint="ol.summary(model.program)"
        )
    if depth is not None:
        require_count("summary: depth", depth)
    known = dict(_first_size(program)) if sizes is None else dict(sizes)
    if not all(isinstance(name, str) and is_symbol(name) and isinstance(size, int) and size >= 0 for name, size in known.items()):
        raise ArgumentError("summary: sizes must map names of sizes to integers", location=here(), hint='sizes={"n": 1}')
    found = _Reader(depth, known)
    rows, total = found.read(program.main, 0)
    parameters = program.parameters()
    states = [var for var in program.persistables() if not var.parameter]
    return ProgramSummary(
        tuple(rows),
        sum(_elements(var) for var in parameters if var.trainable),
        sum(_elements(var) for var in parameters if not var.trainable),
        _bytes(parameters),
        _bytes(states),
        total,
        {name: size for name, size in known.items() if any(name in names_in(size) for size in _sizes_of(program))},
    )


@dataclass
class _Reader:
    """A reader of the rows of blocks, in program order; each parameter counts where it is first read."""

    depth: int | None
    sizes: dict[str, int]
    counted: set[Var] = field(default_factory=set)

    def read(self, block: Block, level: int) -> tuple[list[SummaryRow], Size | None]:
        """Return the rows of a block and its nested blocks, and the multiply-adds of the block."""
        rows: list[SummaryRow] = []
        total: Size | None = 0
        for name, ops in self._groups(block):
            row = self._row(name, ops, level)
            inside: list[SummaryRow] = []
            for op in ops:
                for inner in op.blocks:
                    made, taken = self.read(inner, level + 1)
                    inside += made
                    row = replace(row, multiply_adds=_sum(row.multiply_adds, _over_steps(op, inner, taken, self.sizes)))
            rows += [row, *inside]
            total = _sum(total, row.multiply_adds)
        return rows, total

    def _groups(self, block: Block) -> list[tuple[str, list[Op]]]:
        """Return the ops grouped by layer; consecutive ops outside all layers form a group, and so does each op with blocks."""
        groups: list[tuple[str | None, list[Op]]] = []
        for op in block.ops:
            if op.role is not Role.FORWARD or op.is_commit or all(var.name.startswith("@") for var in op.writes):
                continue
            owner = None if op.blocks else self._owner(op)
            joins = bool(groups) and not op.blocks and not groups[-1][1][-1].blocks
            if joins and owner is not None and groups[-1][0] is None and len(groups) > 1 and groups[-2][0] == owner:
                (_, between), (_, before) = groups.pop(), groups.pop()  # inside one layer
                groups.append((owner, [*before, *between, op]))
            elif joins and groups[-1][0] == owner:
                groups[-1][1].append(op)
            else:
                groups.append((owner, [op]))
        owners = [owner for owner, _ in groups]
        return [(owner or _between(owners, number) or _name_of(ops[-1]), ops) for number, (owner, ops) in enumerate(groups)]

    def _owner(self, op: Op) -> str | None:
        """Return the layer of an op: the owner of the parameters that it reads or of the result that it defines."""
        return ".".join(layer_of(op)[: self.depth]) or None

    def _row(self, name: str, ops: list[Op], level: int) -> SummaryRow:
        read = dict.fromkeys(var for op in ops if not op.blocks for var in op.reads)  # reads of blocks are counted in the blocks
        parameters = [var for var in read if var.parameter and var not in self.counted]
        self.counted.update(parameters)
        total: Size | None = 0
        for op in ops:
            total = _sum(total, _at(find_multiply_adds(op), self.sizes))
        result = next((var for var in ops[-1].writes), None)
        return SummaryRow(
            name,
            tuple(op.type for op in ops),
            level,
            "" if result is None else result.type_text,
            sum(_elements(var) for var in parameters if var.trainable),
            sum(_elements(var) for var in parameters if not var.trainable),
            _bytes(parameters),
            total,
        )


def _name_of(op: Op) -> str:
    """Return a name for ops outside all layers: that of the block, or of the result."""
    if op.blocks:
        return op.blocks[0].name.partition(".")[0]
    return next((var.name for var in op.writes), op.type)


def _between(owners: list[str | None], number: int) -> str | None:
    """Return the common name prefix of the neighbouring layers, such as `encoder.0` for `encoder.0.norm` and `encoder.0.linear`."""
    before, behind = (((owners[at] or "") if 0 <= at < len(owners) else "").split(".") for at in (number - 1, number + 1))
    shared = []
    for left, right in zip(before, behind, strict=False):
        if left != right:
            break
        shared.append(left)
    return ".".join(shared) or None


def _over_steps(op: Op, inner: Block, taken: Size | None, sizes: Mapping[str, int]) -> Size | None:
    """Return the multiply-adds of all steps of a loop, or None if unknown; a branch counts as taken once."""
    sequence = next(iter(op.inputs.get("sequences", ())), None)
    if taken is None or taken == 0 or op.type == "conditional_block":
        return taken
    if op.type != "recurrent" or sequence is None or not sequence.shape:
        return None
    if "splits" not in op.inputs and not op.attributes.get("segments"):
        return _times(taken, _at(sequence.shape[0], sizes))
    rows = inner.inputs[0].shape if inner.inputs else None  # the rows of a step or the steps of a segment, which sum to the total
    if not rows or not isinstance(rows[0], str):
        return None
    each = divide(taken, rows[0])
    return None if each is None or rows[0] in names_in(each) else _times(each, _at(sequence.shape[0], sizes))


def _first_size(program: Program) -> Iterator[tuple[str, int]]:
    """Yield the symbolic row count of the first input with the value 1."""
    for var in program.main.inputs[:1]:
        if var.shape and isinstance(var.shape[0], str) and names_in(var.shape[0]) == {var.shape[0]}:
            yield var.shape[0], 1


def _sizes_of(program: Program) -> Iterator[Size]:
    for block in program.blocks:
        for var in block.vars.values():
            yield from var.shape or ()


def _at(size: Size | None, sizes: Mapping[str, int]) -> Size | None:
    """Return `size` with known names replaced by their values."""
    if size is None or isinstance(size, int):
        return size
    found = evaluate(size, sizes)
    return rename(size, sizes) if found is None else found


def _sum(left: Size | None, right: Size | None) -> Size | None:
    return None if left is None or right is None else _spelled(add, left, right)


def _times(left: Size | None, right: Size | None) -> Size | None:
    return 0 if left == 0 else None if left is None or right is None else _spelled(multiply, left, right)


def _spelled(operation, left: Size, right: Size) -> Size | None:
    try:
        return operation(left, right)
    except OarlockError:  # the expression exceeds the maximal length of a size
        return None


def _elements(var: Var) -> int:
    return math.prod(size for size in var.shape or () if isinstance(size, int))


def _bytes(vars: Iterable[Var]) -> int:
    return sum(_elements(var) * var.dtype.itemsize for var in vars)


def _list(ops: tuple[str, ...]) -> str:
    """Return the first operators as a list."""
    names = list(dict.fromkeys(ops))
    return ", ".join(names[:_SHOWN]) + (" ..." if len(names) > _SHOWN else "")


def _count(number: Size | None) -> str:
    return "?" if number is None else f"{number:,}" if isinstance(number, int) else number


Shapes = Mapping[str, Shape]


def find_multiply_adds(op: Op) -> Size | None:
    """Return the multiply-adds of one op: 0 if its operator is not counted, None if its shapes do not determine them.

    An op with blocks counts as 0; the ops in its blocks are counted on their own.
    """
    shapes: dict[str, Shape] = {}
    for slot, vars in [*op.inputs.items(), *op.outputs.items()]:
        if len(vars) == 1 and vars[0].shape is not None:
            shapes[slot] = vars[0].shape
    return count_multiply_adds(op.type, shapes)


def count_multiply_adds(type: str, shapes: Shapes) -> Size | None:
    """Return the multiply-adds of an operator with the given shapes of its slots; covers gradients and fused operators too."""
    rule = _RULES.get(type)
    if rule is None:
        return 0
    try:
        return rule(shapes)
    except (KeyError, IndexError, ValueError, OarlockError):  # an unknown shape, or an invalid untrusted program
        return None


def _linear(shapes: Shapes) -> Size:
    return multiply(product(shapes["x"]), shapes["w"][1])


def _matmul(shapes: Shapes) -> Size:
    return multiply(product(shapes["x"]), shapes["y"][-1])


def _convolution(shapes: Shapes) -> Size:
    return multiply(product(shapes["y"]), product(shapes["filter"][1:]))


def _transposed(shapes: Shapes) -> Size:
    return multiply(product(shapes["x"]), product(shapes["filter"][1:]))


def _attention(shapes: Shapes) -> Size:
    """Count the products of the scores and of the values; heads only divide the columns."""
    queries, key, value = shapes["query"], shapes["key"], shapes["value"]
    return multiply(multiply(product(queries[:-1]), key[-2]), add(queries[-1], value[-1]))


def _twice(rule: Callable[[Shapes], Size]) -> Callable[[Shapes], Size]:
    return lambda shapes: multiply(2, rule(shapes))


def _by(slot: str, factor: Callable[[Shapes], Size]) -> Callable[[Shapes], Size]:
    """Return a rule for one product of `factor` terms per element of `slot`."""
    return lambda shapes: multiply(product(shapes[slot]), factor(shapes))


def _of_filter(slot: str, elements: str) -> Callable[[Shapes], Size]:
    return _by(elements, lambda shapes: product(shapes[slot][1:]))


_RULES: dict[str, Callable[[Shapes], Size]] = {
    "linear": _linear,
    "linear_dx": _by("dout", lambda shapes: shapes["w"][0]),
    "linear_dw": _by("x", lambda shapes: shapes["dout"][-1]),
    "linear_int8": _by("q", lambda shapes: shapes["w"][1]),
    "embedding_linear": _by("out", lambda shapes: shapes["w"][0]),
    "addmm": _linear,
    "addmm_nt": _by("x", lambda shapes: shapes["w"][0]),
    "addmm_tn": _by("x", lambda shapes: shapes["dout"][-1]),
    "sgd_addmm": _by("x", lambda shapes: shapes["dout"][-1]),
    "matmul": _matmul,
    "matmul_dx": _by("dz", lambda shapes: shapes["y"][-2]),
    "matmul_dy": _by("x", lambda shapes: shapes["dz"][-1]),
    "dot": lambda shapes: product(shapes["x"]),
    "scaled_dot_product_attention": _attention,
    "scaled_dot_product_attention_backward": _twice(_attention),
}
for _axes in (1, 2, 3):
    _RULES |= {
        f"conv{_axes}d": _convolution,
        f"conv{_axes}d_dx": _of_filter("filter", "dy"),
        f"conv{_axes}d_dfilter": _of_filter("filter_shape", "dy"),
        f"conv{_axes}d_backward_of_parameters": _of_filter("filter_shape", "dy"),
        f"conv{_axes}d_backward": _twice(_of_filter("filter", "dy")),
        f"conv{_axes}d_backward_without_bias": _twice(_of_filter("filter", "dy")),
        f"conv_transpose{_axes}d": _transposed,
        f"conv_transpose{_axes}d_dx": _of_filter("filter", "x_shape"),
        f"conv_transpose{_axes}d_dfilter": _of_filter("filter_shape", "x"),
    }
