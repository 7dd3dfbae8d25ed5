"""The meaning of a program, a second time: PyTorch and its autograd, from the file format and the pages, and nothing of ours.

It reads the bytes of a program (`docs/reference/language.md`) and runs its forward ops in float64, block by block, in plain PyTorch.
Gradient ops are not looked at: gradients are PyTorch's. So it imports torch, numpy and the module of the format, which a test checks.
"""

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy
import torch

from oarlock.proto import program_pb2 as wire

__all__ = ["REFUSALS", "Evaluated", "evaluate"]

DTYPES = {
    **dict.fromkeys((wire.FLOAT16, wire.BFLOAT16, wire.FLOAT32, wire.FLOAT64), torch.float64),
    wire.INT8: torch.int8, wire.INT16: torch.int16, wire.INT32: torch.int32, wire.INT64: torch.int64,
    wire.UINT8: torch.uint8, wire.BOOL: torch.bool,
}  # fmt: skip
MAX_TRIPS = 10_000
REFUSALS = (RuntimeError, ValueError, IndexError, LookupError)


@dataclass
class Evaluated:
    """The results of evaluating a program.

    `values` are the main block's, by name. `gradients` are those of the weighed sum of the targets, None where autograd has none;
    `second` those of the sum of all `gradients`. `trace` says which way each decision went: iterations, rows, sides of kinks.
    `refused` says whether PyTorch refused an op in a block, the values of which nothing else may have read.
    """

    values: dict[str, torch.Tensor]
    gradients: dict[str, torch.Tensor | None] = field(default_factory=dict)
    second: dict[str, torch.Tensor | None] = field(default_factory=dict)
    trace: list[object] = field(default_factory=list)
    refused: bool = False


def evaluate(
    data: bytes,
    arrays: Mapping[str, numpy.ndarray],
    targets: Mapping[str, numpy.ndarray] | None = None,
    wanted: Sequence[str] = (),
    *,
    second: bool = False,
    masks: Mapping[str, numpy.ndarray] | None = None,
    refusing: bool = False,
) -> Evaluated:
    """Run a `ProgramFile` on `arrays`, the values of inputs and parameters; differentiate where there are `targets`.

    `targets` gives each target the weight of its elements; `wanted` are variables of the main block. With `second`, the sum of the
    gradients is differentiated again. `masks` are those of dropouts in training, by the path of their scope and their name:
    `main/rnn_0/3/dropout_0.mask`; without them nothing is dropped. With `refusing`, an op that PyTorch refuses leaves its outputs without
    values, and so does each op that reads one.
    """
    program = wire.ProgramFile.FromString(data).program
    run = _Run(program, masks, refusing)
    main = _Frame(program.blocks[0], "main", wanted=wanted)
    for var in program.blocks[0].vars:
        if var.name in arrays or var.name == "@RANDOM":  # which begins by itself
            main.define(var.name, _tensor(arrays.get(var.name, numpy.int64(0))))
            run.bind(var, main[var.name])
    with torch.set_grad_enabled(targets is not None):
        run.run_ops(main)
    found = Evaluated(main.values, trace=run.trace, refused=run.refused)
    if targets is not None:
        cost = sum((main.values[name] * _tensor(weight)).sum() for name, weight in targets.items())
        found.gradients = _differentiate(cost, main.values, wanted, again=second)  # type: ignore[arg-type]
        if second:
            whole = sum((gradient.sum() for gradient in found.gradients.values() if gradient is not None), torch.zeros(()))
            found.second = _differentiate(whole, main.values, wanted, again=False)
    return found


def _tensor(array: numpy.ndarray) -> torch.Tensor:
    tensor = torch.tensor(numpy.asarray(array))
    return tensor.to(torch.float64) if tensor.is_floating_point() else tensor


def _differentiate(cost: torch.Tensor, given: Mapping[str, torch.Tensor], wanted: Sequence[str], *, again: bool) -> dict:
    if not cost.requires_grad:
        return dict.fromkeys(wanted)
    found = torch.autograd.grad(cost, [given[name] for name in wanted], allow_unused=True, create_graph=again)
    return dict(zip(wanted, found, strict=True))


class _Frame:
    """The values of one run of a block, whose scope has a path. Names are looked up where they are declared, from the inside out."""

    def __init__(self, block: wire.BlockDesc, path: str, around: "_Frame | None" = None, wanted: Sequence[str] = ()):
        self.block = block
        self.path = path
        self.around = around
        self.wanted = wanted
        self.declared = {var.name: var for var in block.vars}
        self.values: dict[str, torch.Tensor] = {}

    def __getitem__(self, name: str) -> torch.Tensor:
        frame: _Frame | None = self
        while frame is not None and name not in frame.declared:
            frame = frame.around
        if frame is None or name not in frame.values:
            raise LookupError(f'"{name}" has no value in {self.block.name}')
        return frame.values[name]

    def define(self, name: str, value: torch.Tensor) -> None:
        """Give a variable its value; where it stops gradients, they end here, and where one is wanted they begin."""
        value = value.detach() if self.declared[name].stop_gradient else value
        if name in self.wanted:  # a tensor of its own: what another variable shares with it is not its gradient
            value = value.clone() if value.requires_grad else value.clone().requires_grad_(True)
        self.values[name] = value


class _Run:
    def __init__(self, program: wire.ProgramDesc, masks: Mapping[str, numpy.ndarray] | None, refusing: bool):
        self.refusing = refusing
        self.refused = False
        self.program = program
        self.masks = masks
        self.symbols: dict[str, int] = {}
        self.trace: list[object] = []
        self.owners = {"recurrent": self._recurrent, "while": self._while, "conditional_block": self._branch}

    # Sizes

    def bind(self, var: wire.VarDesc, value: torch.Tensor) -> None:
        """Learn the symbols of a variable's shape from its value."""
        for item, size in zip(var.shape.sizes, value.shape, strict=False):
            if item.WhichOneof("value") == "symbol":
                name, sign, number = item.symbol.partition("-") if "-" in item.symbol else item.symbol.partition("+")
                if not sign or number.isdigit():  # n+1 tells n
                    self.symbols[name] = size + (int(number or 0) if sign == "-" else -int(number or 0))

    def sizes(self, shape: wire.ShapeDesc) -> list[int]:
        return [self._size(item.symbol) if item.WhichOneof("value") == "symbol" else item.number for item in shape.sizes]

    def _size(self, symbol: str) -> int:
        """A size as the language writes it. 0 for what no value has told: there are no elements then."""
        names: dict[str, int] = {}

        def short(found: re.Match) -> str:
            names[f"v{len(names)}"] = self.symbols.get(found.group(), 0)
            return f"v{len(names) - 1}"

        # a division binds tighter than a product, as a power does in Python
        text = re.sub(r"[A-Za-z_][A-Za-z0-9_.@]*", short, symbol.replace("min(", "(").replace("//", "**"))
        return _number(ast.parse(text, mode="eval").body, names)

    def empty(self, var: wire.VarDesc, *leading: int) -> torch.Tensor:
        return torch.zeros([*leading, *self.sizes(var.shape)], dtype=DTYPES[var.dtype])

    # Ops

    def run_ops(self, frame: _Frame) -> None:
        for op in frame.block.ops:
            if op.role == wire.FORWARD and not any(frame.declared[name].persistable for slot in op.outputs for name in slot.vars):
                try:
                    self._run_op(op, frame)  # what writes a persistable variable does so after the step
                except REFUSALS:
                    if not self.refusing:
                        raise
                    self.refused |= frame.around is not None

    def _run_op(self, op: wire.OpDesc, frame: _Frame) -> None:
        inputs = {slot.name: [frame[name] for name in slot.vars] for slot in op.inputs}
        attributes = {item.name: self._attribute(item, frame) for item in op.attributes}
        if op.type in self.owners:
            results = self.owners[op.type](frame, inputs, **attributes)
        elif op.type == "dropout":
            results = self._dropout(f"{frame.path}/{op.outputs[1].vars[0]}", inputs["x"][0])
        else:
            several = {"xs", "stacks"} | ({"like"} if op.type in ("split_like", "broadcast_to") else set())
            arguments = {slot: vars if slot in several else vars[0] for slot, vars in inputs.items()}
            result = OPERATORS[op.type](**arguments, **attributes)
            results = result if isinstance(result, tuple) else (result,)
            if op.type in DECISIONS:
                self.trace.append((op.type, DECISIONS[op.type](results, **arguments).flatten().tolist()))
        for slot, result in zip(op.outputs, results, strict=True):
            for name, value in zip(slot.vars, result if isinstance(result, list) else [result], strict=True):
                self.bind(frame.declared[name], value)
                frame.define(name, value)

    def _dropout(self, path: str, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        mask = torch.ones_like(x) if self.masks is None else _tensor(self.masks[path])
        return x * mask, mask

    def _attribute(self, item: wire.AttributeDesc, frame: _Frame) -> object:
        kind = item.WhichOneof("value")
        value = getattr(item, kind)
        if kind in ("ints", "floats", "strings"):
            return list(value.values)
        if kind == "shape":
            return self.sizes(value)
        if kind == "dtype":
            return DTYPES[value]
        return frame[value].item() if kind == "var" else value

    # Ops that own blocks

    def _enter(self, block: wire.BlockDesc, around: _Frame, given: Sequence[torch.Tensor], trip: int | None = None) -> list[torch.Tensor]:
        """The outputs of a block. Its scope has the block's name; that of an iteration is inside the loop's."""
        name = block.name if trip is None else f"{block.name.partition('.')[0]}/{trip}"
        frame = _Frame(block, f"{around.path}/{name}", around)
        for name, value in zip(block.inputs, given, strict=True):
            self.bind(frame.declared[name], value)
            frame.define(name, value)
        self.run_ops(frame)
        return [frame[name] for name in block.outputs]

    def _find(self, name: str, block: wire.BlockDesc) -> wire.VarDesc:
        """The declaration that `name` means in `block`."""
        while True:
            for var in block.vars:
                if var.name == name:
                    return var
            block = self.program.blocks[block.parent]

    def _recurrent(self, frame: _Frame, inputs: Mapping[str, list], body: int, summed: int = 0, reverse: bool = False):
        block = self.program.blocks[body]
        sequences, memories = inputs.get("sequences", []), list(inputs.get("initial", []))
        first_memory = len(block.outputs) - summed - len(memories)
        declared = [self._find(name, block) for name in block.outputs]
        rows = _Rows(inputs["splits"][0]) if "splits" in inputs else None
        by_row = [rows is not None and _leading(var) == _leading(self._find(block.inputs[0], block)) for var in declared]
        count = len(sequences[0]) if rows is None else rows.count
        self.trace.append(("trips", count))
        stacks: list[list[torch.Tensor]] = [[] for _ in range(first_memory)]
        totals: list[torch.Tensor] = []
        for step in reversed(range(count)) if reverse else range(count):
            if rows is None:
                handed = self._enter(block, frame, [sequence[step] for sequence in sequences] + memories, step)
            else:
                active = rows.active(step)
                given = [sequence[rows.starts[active] + step] for sequence in sequences]
                pairs = zip(memories, by_row[first_memory:], strict=False)
                handed = self._enter(block, frame, given + [memory[active] if cut else memory for memory, cut in pairs], step)
            for stack, value in zip(stacks, handed, strict=False):
                stack.append(value)
            after = handed[first_memory : first_memory + len(memories)]
            for number, value in enumerate(after):
                cut = by_row[first_memory + number]
                memories[number] = memories[number].index_copy(0, rows.active(step), value) if rows is not None and cut else value
            parts = handed[first_memory + len(memories) :]
            totals = [total + part for total, part in zip(totals, parts, strict=True)] if totals else parts
        if not count:
            totals = [self.empty(var) for var in declared[first_memory + len(memories) :]]
        stacked = []
        for stack, var, cut in zip(stacks, declared, by_row, strict=False):
            values = stack[::-1] if reverse else stack
            if cut:
                stacked.append(rows.in_order(values, self.empty(var)))  # type: ignore[union-attr]
            else:
                stacked.append(torch.stack(values) if values else self.empty(var, 0))
        return stacked, memories, totals

    def _while(self, frame: _Frame, inputs: Mapping[str, list], body: int, max_trips: int = 0):
        block = self.program.blocks[body]
        (condition,), carried = inputs["condition"], list(inputs.get("initial", []))
        count = len(block.outputs) - 1 - len(carried)
        stacks: list[list[torch.Tensor]] = [[] for _ in range(count)]
        trips = 0
        while bool(condition):
            assert trips < (max_trips or MAX_TRIPS), "more trips than allowed"
            condition, *handed = self._enter(block, frame, carried, trips)
            for stack, value in zip(stacks, handed, strict=False):
                stack.append(value)
            carried = handed[count:]
            trips += 1
        self.trace.append(("trips", trips))
        declared = [self._find(name, block) for name in block.outputs[1 : 1 + count]]
        return [torch.stack(stack) if stack else self.empty(var, 0) for stack, var in zip(stacks, declared, strict=True)], carried

    def _branch(self, frame: _Frame, inputs: Mapping[str, list], body: int):
        block = self.program.blocks[body]
        values = inputs.get("values", [])
        if "when" not in inputs:
            return (self._enter(block, frame, values),)
        runs = bool(inputs["when"][0])
        self.trace.append(("conditional_block", runs))
        if not runs:
            return ([self.empty(self._find(name, block), 0) for name in block.outputs],)
        return ([value[None] for value in self._enter(block, frame, [value[0] for value in values])],)


class _Rows:
    """Ragged rows: where they begin, and which of them have a step, the longest first."""

    def __init__(self, splits: torch.Tensor):
        self.starts = splits[:-1]
        self.lengths = splits[1:] - splits[:-1]
        self.count = max(self.lengths.tolist(), default=0)
        self._longest_first = sorted(range(len(self.lengths)), key=lambda row: -int(self.lengths[row]))

    def active(self, step: int) -> torch.Tensor:
        return torch.tensor([row for row in self._longest_first if self.lengths[row] > step], dtype=torch.int64)

    def in_order(self, steps: list[torch.Tensor], empty: torch.Tensor) -> torch.Tensor:
        """The outputs of each step for its rows, row after row."""
        found = {}
        for step, value in enumerate(steps):
            found |= {int(self.starts[row]) + step: element for row, element in zip(self.active(step).tolist(), value, strict=True)}
        return torch.stack([found[place] for place in sorted(found)]) if found else empty[:0]


def _leading(var: wire.VarDesc) -> str:
    """The symbol that a variable's shape begins with."""
    return var.shape.sizes[0].symbol if var.shape.sizes else ""


# The operators, as their pages say


def _number(tree: ast.expr, names: Mapping[str, int]) -> int:
    """Arithmetic on sizes. Sizes with commas between them in parentheses are the least of these."""
    if isinstance(tree, ast.Tuple):
        return min(_number(item, names) for item in tree.elts)
    if isinstance(tree, ast.UnaryOp):
        return -_number(tree.operand, names)
    if isinstance(tree, ast.BinOp):
        left, right = _number(tree.left, names), _number(tree.right, names)
        return {"Add": left + right, "Sub": left - right, "Mult": left * right, "Pow": left // max(right, 1)}[type(tree.op).__name__]
    return names[tree.id] if isinstance(tree, ast.Name) else int(ast.literal_eval(tree))


def _sliced(
    x: torch.Tensor, axis: int = 0, start: int = 0, stop: int | None = None, step: int | None = None, clip: bool = False
) -> torch.Tensor:
    axis %= x.ndim
    ends = [value + x.shape[axis] if value < 0 else value for value in (start, x.shape[axis] if stop is None else stop)]
    assert clip or 0 <= ends[0] <= ends[1] <= x.shape[axis], "a slice beyond the axis"
    return x[(slice(None),) * axis + (slice(start, stop, step),)]


def _rows_in_order(condition: torch.Tensor, yes: torch.Tensor, no: torch.Tensor) -> torch.Tensor:
    sides = {True: iter(yes), False: iter(no)}
    rows = [next(sides[holds]) for holds in condition.tolist()]
    return torch.stack(rows) if rows else yes


def _cross_entropy(logits: torch.Tensor, label: torch.Tensor, ignore_index: int = -100) -> tuple[torch.Tensor, torch.Tensor]:
    counted = label != ignore_index
    chances = torch.log_softmax(logits, dim=-1).gather(-1, torch.where(counted, label, 0)[..., None])[..., 0]
    return torch.where(counted, -chances, torch.zeros_like(chances)), torch.softmax(logits, dim=-1)


def _pieces(x: torch.Tensor, like: list[torch.Tensor], axis: int = 0) -> tuple[list[torch.Tensor]]:
    return (list(torch.split(x, [item.shape[axis] for item in like], dim=axis)),)


def _reduced(x: torch.Tensor, axis: int | None, keepdim: bool, reduce: Callable) -> torch.Tensor:
    return reduce(x, dim=tuple(range(x.ndim)) if axis is None else axis, keepdim=keepdim) if x.ndim else reduce(x)


def _placed(values: torch.Tensor, rows: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    zeros = torch.zeros(like.shape, dtype=values.dtype)
    return zeros.index_add(0, rows.reshape(-1), values.reshape(-1, *like.shape[1:])) if len(rows.reshape(-1)) else zeros


def _elements(splits: torch.Tensor, rows: torch.Tensor, like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    sequences = [torch.arange(int(splits[row]), int(splits[row + 1])) for row in rows.tolist()]
    lengths = torch.tensor([0, *map(len, sequences)])
    return torch.cat([lengths[:0], *sequences]), lengths.cumsum(0)


def _sequences(x: torch.Tensor, splits: torch.Tensor) -> list[torch.Tensor]:
    return [x[start:end] for start, end in pairwise(splits.tolist())]


def _pooled(x: torch.Tensor, splits: torch.Tensor, pool: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    return torch.stack([pool(part) for part in _sequences(x, splits)]) if len(splits) > 1 else x[:0]


def _normalized(x: torch.Tensor, scale: torch.Tensor | None, bias: torch.Tensor | None, epsilon: float) -> tuple[torch.Tensor, ...]:
    mean = x.mean(-1, keepdim=True)
    rstd = (((x - mean) ** 2).mean(-1, keepdim=True) + epsilon) ** -0.5
    y = (x - mean) * rstd
    y = y if scale is None else y * scale
    return y if bias is None else y + bias, mean, rstd


def _attended(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, heads: int = 1, causal: bool = False) -> tuple:
    q, k, v = (torch.stack(x.chunk(heads, -1), -3) for x in (query, key, value))
    fit = q @ k.mT / q.shape[-1] ** 0.5
    if causal:
        later = torch.arange(fit.shape[-1]) > torch.arange(fit.shape[-2])[:, None] + (fit.shape[-1] - fit.shape[-2])
        fit = fit.masked_fill(later, -torch.inf)
    return torch.cat((torch.softmax(fit, -1) @ v).unbind(-3), -1), torch.logsumexp(fit, -1)


NAMES = {"x": "input", "filter": "weight"}  # of arguments, in PyTorch

OPERATORS: dict[str, Callable] = {
    # element by element
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "neg": lambda x: -x,
    "square": lambda x: x**2,
    "sqrt": lambda x: x**0.5,
    "exp": torch.exp,
    "log": torch.log,
    "abs": torch.abs,
    "clip": lambda x, lower=None, upper=None: x if lower is None and upper is None else torch.clamp(x, lower, upper),
    "assign": lambda x: x,
    "sum": lambda xs: sum(xs[1:], xs[0]),
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "softmax": lambda x: torch.softmax(x, dim=-1),
    "cast": lambda x, dtype: x.to(dtype),
    "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y,
    "less": lambda x, y: x < y,
    "less_equal": lambda x, y: x <= y,
    "equal": lambda x, y: x == y,
    "not_equal": lambda x, y: x != y,
    "logical_and": lambda x, y: x & y,
    "logical_or": lambda x, y: x | y,
    "logical_not": lambda x: ~x,
    "any": lambda x, axis=None, keepdim=False: _reduced(x, axis, keepdim, torch.any),
    "all": lambda x, axis=None, keepdim=False: _reduced(x, axis, keepdim, torch.all),
    "layer_norm": lambda x, scale=None, bias=None, epsilon=1e-5: _normalized(x, scale, bias, epsilon),
    # matrices, reductions, shapes
    "linear": lambda x, w, bias=None: torch.matmul(x, w) if bias is None else torch.matmul(x, w) + bias,
    "conv2d": lambda **given: torch.nn.functional.conv2d(**{NAMES.get(name, name): value for name, value in given.items()}),
    "scaled_dot_product_attention": _attended,
    "matmul": lambda x, y: torch.matmul(x, y),
    "mean": lambda x, axis=None, keepdim=False: _reduced(x, axis, keepdim, torch.mean),
    "reduce_sum": lambda x, axis=None, keepdim=False: _reduced(x, axis, keepdim, torch.sum),
    "sum_to_shape": lambda x, like: x.sum_to_size(like.shape),
    "broadcast_to": lambda x, shape, like=(): x.expand(shape),
    "broadcast_to_like": lambda x, like: x.expand(like.shape),
    "full": lambda shape, value, dtype=torch.float64: torch.full(shape, value, dtype=dtype),
    "full_like": lambda like, value, dtype=torch.float64: torch.full(like.shape, value, dtype=dtype),
    "concat": lambda xs, axis=0: torch.cat(xs, dim=axis),
    "slice": _sliced,
    "flip": lambda x, axes: torch.flip(x, axes),
    "split": lambda x, sections, axis=0: list(torch.tensor_split(x, sections, dim=axis)),
    "split_like": _pieces,
    "reshape": lambda x, shape: x.reshape(shape),
    "match_last_axis": lambda x, like: x,
    "match_shape": lambda x, like: x,
    "reshape_like": lambda x, like: x.reshape(like.shape),
    "transpose": lambda x, axes: x.permute(*axes),
    "flatten": lambda x, start=1: x.reshape(*x.shape[:start], int(numpy.prod(x.shape[start:]))),
    "softmax_with_cross_entropy": _cross_entropy,
    # sequences
    "sequence_lengths": lambda splits: splits.diff(),
    "sequence_sum": lambda x, splits: _pooled(x, splits, lambda part: part.sum(0)),
    "sequence_mean": lambda x, splits: _pooled(x, splits, lambda part: part.sum(0) / max(1, len(part))),
    "sequence_first": lambda x, splits: _pooled(x, splits, lambda part: part[0] if len(part) else part.sum(0)),
    "sequence_last": lambda x, splits: _pooled(x, splits, lambda part: part[-1] if len(part) else part.sum(0)),
    "sequence_expand": lambda x, splits, like: torch.repeat_interleave(x, splits.diff(), dim=0),
    "sequence_softmax": lambda x, splits: torch.cat([torch.softmax(part, 0) for part in _sequences(x, splits)] or [x]),
    # rows
    "nonzero": lambda condition, value=True: torch.nonzero(condition == value)[:, 0],
    "gather": lambda x, rows: x[rows],
    "scatter_add": _placed,
    "sequence_elements": _elements,
    "sequence_splits": lambda splits, elements: torch.stack([(elements < split).sum() for split in splits]),
    "merge": _rows_in_order,
    "select_branch": lambda stacks: next(stack[0] for stack in stacks if len(stack)),
}

# Which way an operator went, element by element: where that changes, values jump or have a kink.
DECISIONS: dict[str, Callable] = {
    **dict.fromkeys(("greater", "greater_equal", "less", "less_equal", "equal", "not_equal"), lambda results, **given: results[0]),
    "relu": lambda results, x: x > 0,
    "abs": lambda results, x: x > 0,
    "clip": lambda results, x, lower=None, upper=None: torch.stack([results[0].detach() == x, results[0].detach() > x]),
    "cast": lambda results, x, **given: results[0] if not results[0].is_floating_point() else torch.zeros(0),
}
