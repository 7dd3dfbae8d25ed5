"""Write an exported graph into a program: its inputs, the module's tensors, its outputs, and buffer updates for the next step."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import sympy
import torch
from torch.export.graph_signature import ConstantArgument, InputKind, InputSpec, OutputKind
from torch.fx import Node

from oarlock.errors import OarlockError, ProgramError, ShapeError
from oarlock.interop.torch.export import Exported
from oarlock.interop.torch.report import Refusals, Report
from oarlock.interop.torch.rewrites import compute_constants, replace_formulas, roll_halves
from oarlock.interop.torch.state import Constant, State
from oarlock.interop.torch.symbols import Symbols
from oarlock.interop.torch.transposes import cancel_transposes
from oarlock.interop.torch.writer import Writer
from oarlock.ir.block_stack import current_block
from oarlock.ir.location import here
from oarlock.ir.names import next_name
from oarlock.ir.operation import Role
from oarlock.ir.program import Program
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.size import format_shape
from oarlock.ir.traversal import walk
from oarlock.ir.var import HeldValue, Var
from oarlock.op.elementwise import assign

__all__ = ["Graph", "Input", "Written", "write_graph"]


@dataclass
class Input:
    """An input of the graph, by its path: the traced tensor, or its value if it is not a tensor."""

    name: str
    traced: object
    symbols: dict[int, str] = field(default_factory=dict)

    @property
    def is_tensor(self) -> bool:
        return isinstance(self.traced, torch.Tensor)


@dataclass
class Graph:
    """A graph to write: the export, its inputs in order, and the labels of its outputs."""

    exported: Exported
    inputs: list[Input]
    labels: list[str]


@dataclass
class Written:
    """The outputs of a written graph, in order, and the report. An output is None if it is neither a tensor nor a number."""

    outputs: list[object]
    report: Report


def write_graph(graph: Graph, program: Program, given: Sequence[object], prefix: str = "") -> Written:
    """Write `graph` into `program`, with variables for its tensors. Raises UnsupportedError and leaves the program unchanged on failure.

    Slices get the sizes that PyTorch gives them outside an export. If the graph computes with sizes that the export has fixed, it is
    written with the fixed sizes, and the run rejects other ones.
    """

    def writer_of(*, fixes_sizes: bool) -> Writer:
        state = State(program, graph.exported, prefix)
        return Writer(program, state, Symbols(), Refusals(graph.exported.name), fixes_sizes=fixes_sizes)

    writer = writer_of(fixes_sizes=False)
    try:
        return _write(graph, writer, given)
    except OarlockError:
        if not writer.has_other_sizes:
            raise
    return _write(graph, writer_of(fixes_sizes=True), given)


def _write(graph: Graph, writer: Writer, given: Sequence[object]) -> Written:
    program, state, symbols, refusals = writer.program, writer.state, writer.symbols, writer.refusals
    with undone_on_error(program):
        start = program.main.tail_start
        _bind_symbols(graph, given, symbols)
        state.declare_all()
        signature = graph.exported.program.graph_signature
        mutated = set(signature.buffers_to_mutate.values())
        inputs = iter(given)
        values = [_value_of(spec, state, mutated, inputs) for spec in signature.input_specs]
        made = writer.write(graph.exported.program.graph_module, values)
        writer.require_free_sizes()
        outputs: list[object] = []
        end = next(node for node in reversed(graph.exported.program.graph.nodes) if node.op == "output")
        for spec, value in zip(signature.output_specs, made, strict=True):
            if spec.kind is OutputKind.USER_OUTPUT:
                outputs.append(spec.arg.value if isinstance(spec.arg, ConstantArgument) else writer.variable(value))
            elif spec.kind is OutputKind.BUFFER_MUTATION:
                _commit(program, state.variable(str(spec.target)), writer.variable(value), refusals, end)
            else:
                what = str(spec.kind).rpartition(".")[2].lower().replace("_", " ")
                refusals.add(end, f"{spec.target}: only buffers can be updated in place, and this is a {what}", operator="in-place")
        refusals.raise_if_any("from_torch")
        _freeze_unreached(program, outputs)
        replace_formulas(program, start, outputs)
        cancel_transposes(program, start, outputs)
        roll_halves(program, start, outputs)
        compute_constants(program, state)
        _drop_unread(program, state, start, outputs)
    return Written(outputs, Report(dict(writer.written)))


def _freeze_unreached(program: Program, outputs: Sequence[object]) -> None:
    """Freeze the parameters whose gradient reaches no output: PyTorch gives them no gradient either, so they must not be updated."""
    reached = {var for var in outputs if isinstance(var, Var) and var.dtype.is_floating}
    read: set[Var] = set()
    for op in reversed(program.main.ops):
        read.update(op.reads)
        if any(var in reached and not var.stop_gradient for var in op.writes):
            reached.update(var for var in op.reads if var.dtype.is_floating)
    for var in program.parameters():
        if var.trainable and var in read and var not in reached and isinstance(var.initializer, HeldValue):
            var.trainable = False
            program.changed()


def _drop_unread(program: Program, state: State, start: int, outputs: Sequence[object]) -> None:
    """Drop unread ops from `start` on, such as sizes known from a shape, unused results and constants."""
    main = program.main
    read = {var for var in outputs if isinstance(var, Var)} | set(program.targets.values())
    read.update(var for op in main.tail for var in op.reads)
    kept = []
    for op in reversed(main.ops[start : main.tail_start]):
        if op.blocks or any(var in read for var in op.writes):
            read.update(op.reads)
            kept.append(op)
        else:
            for var in op.writes:
                del main.vars[var.name]
    main.ops[start : main.tail_start] = kept[::-1]
    returned = (var for block in program.blocks for var in block.outputs)
    state.drop_unread({*read, *returned, *(var for op in walk(main) for var in op.reads)})
    program.changed()


def _value_of(spec: InputSpec, state: State, mutated: set[str], given) -> object:
    target = str(spec.target)
    if spec.kind is InputKind.USER_INPUT:
        return next(given)
    if spec.kind is InputKind.PARAMETER or target in mutated:
        return state.variable(target)
    return Constant(state.value(target), target)


def _commit(program: Program, var: Var, given: object, refusals: Refusals, node: Node) -> None:
    """Make `given` the value of `var` after a training step."""
    main = program.main
    if not isinstance(given, Var) or (given.dtype, given.shape) != (var.dtype, var.shape):
        refusals.add(node, f'"{var.name}" would become {given.type_text if isinstance(given, Var) else given!r:.60}', operator="in-place")
        return
    if current_block() is not main:
        refusals.add(node, f'"{var.name}" cannot be updated from {current_block().path}: call the module outside', operator="in-place")
        return
    value = given
    if value.op is None or value.block is not main or value.name.endswith(next_name("")) or main.find_var(next_name(var.name)) is not None:
        value = assign(value)
    if main.find_var(next_name(var.name)) is None:
        main.rename(value, next_name(var.name))
    try:
        main.commit(var, value, role=Role.FORWARD)
    except ProgramError as error:
        refusals.add(node, error.message, operator="in-place", hint="a module with running statistics can be called only once per step")


def _bind_symbols(graph: Graph, given: Sequence[object], symbols: Symbols) -> None:
    """Bind each symbol of the graph to a size of the given variables. Raises ShapeError if a variable does not fit."""
    pairs = [(item, var) for item, var in zip(graph.inputs, given, strict=True) if isinstance(var, Var)]
    for item, var in pairs:
        shape = var.shape or ()
        assert isinstance(item.traced, torch.Tensor)
        if len(shape) != item.traced.ndim:
            raise _shape_error(item, var, "a different number of dimensions")
        for size, traced in zip(shape, item.traced.shape, strict=True):
            if isinstance(traced, torch.SymInt) and isinstance(traced.node.expr, sympy.Symbol):
                symbols.bind(traced.node.expr, size)
    for item, var in pairs:
        for axis, traced in enumerate(item.traced.shape):  # type: ignore[attr-defined]
            size = (var.shape or ())[axis]
            if symbols.find_size(traced) != size:
                fixed = not isinstance(traced, torch.SymInt)
                raise _shape_error(
                    item, var, f"size {size} on axis {axis}, but the module was imported for {symbols.find_size(traced)}", fixed=fixed
                )


def _shape_error(item: Input, var: Var, why: str, *, fixed: bool = False) -> ShapeError:
    assert isinstance(item.traced, torch.Tensor)
    return ShapeError(
        f'from_torch: the input "{item.name}" has {why}',
        location=here(),
        contract=f"the example had {format_shape(tuple(int(size) if isinstance(size, int) else str(size) for size in item.traced.shape))}",
        given=[var.describe()],
        hint=f'from_torch(..., dynamic={{"{item.name}": {{0: "n"}}}}) makes the size symbolic' if fixed else None,
    )
