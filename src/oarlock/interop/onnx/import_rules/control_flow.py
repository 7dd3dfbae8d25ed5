"""Import `If`, `Loop` and `Scan` as branches and loops."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from oarlock import op
from oarlock.errors import FormatError
from oarlock.interop.onnx.import_rules.forms import axis_of, constant, moved, rank_of, reshaped, shape_of
from oarlock.interop.onnx.known_value import Known
from oarlock.interop.onnx.rule import Unsupported, rule
from oarlock.ir.block import Block
from oarlock.ir.block_stack import innermost_block
from oarlock.ir.dtype import DType
from oarlock.ir.traversal import free_vars
from oarlock.ir.var import Var, is_among
from oarlock.op.control.conditional import conditional_block
from oarlock.op.control.recurrent_loop import recurrent
from oarlock.op.control.while_loop import while_
from oarlock.op.indexing import select_branch

if TYPE_CHECKING:
    from oarlock.interop.onnx.importer import Importer, Names


def _write_graph(graph: Any, inputs: Sequence["Var | Known"], importer: "Importer", names: "Names") -> "list[Var | Known]":
    """Write a nested graph into the open block; return its outputs. Raises Unsupported if a part of it is not supported."""
    inner = names.inside()
    if inner.depth > importer.limits.depth:
        raise Unsupported(f"graphs are nested more than {importer.limits.depth} deep")
    if len(graph.input) != len(inputs):
        raise FormatError(f"a nested graph takes {len(graph.input)} inputs, but gets {len(inputs)}")
    inner.values.update({item.name: value for item, value in zip(graph.input, inputs, strict=True)})
    importer.convert_graph(graph, inner)
    found = []
    for output in graph.output:
        value = inner.get(output.name)
        if not isinstance(value, Var | Known):
            raise Unsupported("a nested graph contains unsupported operators")
        found.append(value)
    return found


def _as_outputs(values: "Sequence[Var | Known]", importer: "Importer", block: Block) -> list[Var]:
    """Return values as distinct variables that the block defines."""
    found: list[Var] = []
    for value in values:
        var = importer.writer.variable(value)
        found.append(op.assign(var) if var.op is None or var.block is not block or is_among(var, found) else var)
    return found


def loop_over(
    sequences: Sequence[Var],
    initial: Sequence[Var],
    write: Callable[[Sequence[Var], Sequence[Var]], tuple[Sequence[Var], Sequence[Var]]],
    importer: "Importer",
    *,
    reverse: bool = False,
) -> tuple[list[Var], list[Var]]:
    """Write a loop over the steps of sequences, time first.

    `write` maps one step of each sequence and the state to the values to stack and the next state.
    """
    program = importer.writer.program
    block = program.new_block(f"{program.unique('scan')}.body", innermost_block(program))
    with block:
        steps = [block.new_var(program.unique("step"), var.dtype, shape_of(var)[1:]) for var in sequences]
        inside = [block.new_var(program.unique("carried"), var.dtype, var.shape) for var in initial]
        block.inputs = [*steps, *inside]
        for var in block.inputs:
            importer.writer.note_sizes(var)
        stacked, following = write(steps, inside)
        _require_types(inside, following)
        block.outputs = _as_outputs([*stacked, *following], importer, block)
    stacks, final, _ = recurrent(list(sequences), list(initial), free_vars(block), body=block, reverse=reverse)
    return list(stacks), list(final)


@rule("If", either=("condition",), folds=False)
def branches(condition, *, then_branch, else_branch, importer: "Importer", names: "Names"):
    """Choose the branch at import if the condition is known."""
    if isinstance(condition, Known):
        chosen = then_branch if condition.item() else else_branch
        return [value if isinstance(value, Known) else op.assign(value) for value in _write_graph(chosen, [], importer, names)]
    condition = _scalar(condition)
    program = importer.writer.program
    around, stem = innermost_block(program), program.unique("if")
    blocks: list[Block] = []
    for name, graph in (("then", then_branch), ("else", else_branch)):
        block = program.new_block(f"{stem}.{name}", around)
        with block:
            block.outputs = _as_outputs(_write_graph(graph, [], importer, names), importer, block)
        blocks.append(block)
    for number, (left, right) in enumerate(zip(blocks[0].outputs, blocks[1].outputs, strict=False)):
        if (left.dtype, left.shape) != (right.dtype, right.shape):
            raise Unsupported(f"output {number} is {left.type_text} in one branch, but {right.type_text} in the other")
    if len(blocks[0].outputs) != len(blocks[1].outputs):
        raise FormatError("the branches of an If have different numbers of outputs")
    whens = (condition, op.logical_not(condition))
    stacks = [conditional_block([], free_vars(block), when, body=block) for block, when in zip(blocks, whens, strict=True)]
    return [select_branch(list(pair)) for pair in zip(*stacks, strict=True)]


def _scalar(condition: Var) -> Var:
    return condition if condition.shape == () else reshaped(condition, ())


@rule("Loop", either=("most", "condition"), folds=False)
def loop(most=None, condition=None, *initial, body, importer: "Importer", names: "Names"):
    """Write a loop that ends after its maximum number of iterations, or when its condition is false."""
    program = importer.writer.program
    around, stem = innermost_block(program), program.unique("loop")
    limit = None if most is None else op.cast(reshaped(importer.writer.variable(most), ()), dtype=DType.INT64)
    if isinstance(condition, Known):
        condition = None if condition.item() else importer.writer.variable(condition)
    first = op.full(shape=(), value=0.0, dtype=DType.INT64)
    started = None if condition is None else _scalar(condition)
    going = _both(None if limit is None else op.less(first, limit), started)
    carried = [first, *initial]
    block = program.new_block(f"{stem}.body", around)
    with block:
        inside = [block.new_var(program.unique("carried"), var.dtype, var.shape) for var in carried]
        block.inputs = list(inside)
        for var in inside:
            importer.writer.note_sizes(var)
        written = _write_graph(body, [inside[0], Known.of(True, DType.BOOL), *inside[1:]], importer, names)
        if len(written) < 1 + len(initial):
            raise FormatError("the body of a Loop returns fewer values than it carries")
        again, following, stacked = written[0], written[1 : 1 + len(initial)], written[1 + len(initial) :]
        number = op.add(inside[0], constant(1, DType.INT64))
        holds = None if isinstance(again, Known) and again.item() else _scalar(importer.writer.variable(again))
        if limit is None and holds is None:
            raise Unsupported("it never ends: it has no maximum number of iterations, and its condition is always true")
        condition = _both(None if limit is None else op.less(number, limit), holds)
        block.outputs = _as_outputs([condition, *stacked, number, *following], importer, block)
    _require_types(inside[1:], block.outputs[len(block.outputs) - len(initial) :] if initial else [])
    stacks, final = while_(going, carried, free_vars(block), body=block)
    return [*final[1:], *stacks]


def _both(left: Var | None, right: Var | None) -> Var:
    if left is None:
        return op.full(shape=(), value=1.0, dtype=DType.BOOL) if right is None else right
    return left if right is None else op.logical_and(left, right)


def _require_types(before: Sequence[Var], after: Sequence[Var]) -> None:
    for number, (old, new) in enumerate(zip(before, after, strict=True)):
        if (old.dtype, old.shape) != (new.dtype, new.shape):
            raise Unsupported(f"carried value {number} changes from {old.type_text} to {new.type_text}")


@rule("Scan", since=9, folds=False)
def scan(
    *items, body, num_scan_inputs, scan_input_axes=None, scan_input_directions=None, scan_output_axes=None, scan_output_directions=None,
    importer: "Importer", names: "Names",
):  # fmt: skip
    """Write a loop over the steps of sequences, read and written along any axis and in either direction."""
    count = len(items) - num_scan_inputs
    if num_scan_inputs < 1 or count < 0:
        raise Unsupported(f"it has {len(items)} inputs, but {num_scan_inputs} sequences")
    initial, sequences = list(items[:count]), list(items[count:])
    for number, sequence in enumerate(sequences):
        axis = axis_of((scan_input_axes or [0] * num_scan_inputs)[number], rank_of(sequence))
        sequences[number] = moved(sequence, axis, 0)
        if (scan_input_directions or [0] * num_scan_inputs)[number]:
            sequences[number] = op.flip(sequences[number], axes=(0,))

    def write(steps: Sequence[Var], state: Sequence[Var]) -> tuple[Sequence[Var], Sequence[Var]]:
        written = [importer.writer.variable(value) for value in _write_graph(body, [*state, *steps], importer, names)]
        if len(written) < count:
            raise FormatError("the body of a Scan returns fewer values than it carries")
        return written[count:], written[:count]

    stacks, final = loop_over(sequences, initial, write, importer)
    for number, stacked in enumerate(stacks):
        if (scan_output_directions or [0] * len(stacks))[number]:
            stacks[number] = op.flip(stacked, axes=(0,))
        axis = axis_of((scan_output_axes or [0] * len(stacks))[number], rank_of(stacked))
        stacks[number] = moved(stacks[number], 0, axis)
    return [*final, *stacks]
