"""Convert ops to ONNX nodes, each by its rule. Ops without a rule are collected and reported at the end."""

from collections.abc import Iterable, Sequence

import oarlock.interop.onnx.export_rules  # noqa: F401  the rules of our operators
from oarlock.errors import ProgramError
from oarlock.interop.onnx.export_graph import Graph, Unsupported, Value
from oarlock.interop.onnx.export_rule import find_block_rule, find_complex_rule, find_rule
from oarlock.interop.onnx.uneven_stack import UnevenStack
from oarlock.ir.block import Block
from oarlock.ir.location import Location
from oarlock.ir.operation import Op
from oarlock.ir.var import Var
from oarlock.registry.catalogue import Catalogue

__all__ = ["Lowering"]


class Lowering:
    """The ONNX value of each variable, and the ops that ONNX cannot express."""

    def __init__(self, catalogue: Catalogue, labels: dict[Var, str] | None = None):
        self.catalogue = catalogue
        self.labels = labels or {}
        self.values: dict[Var, Value] = {}
        self.uneven: dict[Var, UnevenStack] = {}
        """Stacks whose values may differ in size between iterations, so that no ONNX value holds them."""
        self.refused: list[tuple[Op, str]] = []

    def give(self, graph: Graph, var: Var, name: str) -> Value:
        """Bind `var` to the value of this name."""
        value = Value.of(var, name)
        self.values[var] = value
        graph.know(value)
        return value

    def alias(self, inner: Var, outer: Var) -> None:
        """Bind `inner` to the value of `outer`."""
        if outer in self.uneven:
            self.uneven[inner] = self.uneven[outer]
        else:
            self.values[inner] = self.values[outer]

    def give_step(self, graph: Graph, inner: Graph, var: Var, sequence: "Value | UnevenStack", step: str) -> None:
        """Bind `var`, in the block of a loop, to one step of a sequence of the outer graph; `step` is int64[]."""
        taken = sequence.step(graph, inner, step) if isinstance(sequence, UnevenStack) else inner("Gather", sequence, step, axis=0)
        self._hold(inner, var, taken)

    def _hold(self, graph: Graph, var: Var, held: "str | UnevenStack") -> None:
        if isinstance(held, UnevenStack):
            self.uneven[var] = held
            graph.know_size((var.shape or (0,))[0], held.steps, 0)
        else:
            self.give(graph, var, held)

    def value(self, var: Var) -> Value:
        """Return the value of a variable. Raises Unsupported for an uneven stack."""
        if var in self.uneven:
            raise Unsupported(f'the values of "{var.name}", {var.type_text}, differ in size between iterations, but it is read as a whole')
        return self.values[var]

    def require_whole(self, var: Var) -> None:
        """Record an output of the graph as unsupported if it is an uneven stack."""
        if var.op is not None and var in self.uneven:
            self.refused.append(
                (var.op, f'the values of "{var.name}", {var.type_text}, differ in size between iterations, but it is an output')
            )

    def name_for(self, graph: Graph, var: Var) -> str:
        """Return the name in the graph of a variable that an op defines."""
        label = self.labels.get(var)
        return label if label is not None else graph.fresh(var.name)

    def ops(self, graph: Graph, ops: Iterable[Op]) -> None:
        """Append the nodes of `ops`."""
        for op in ops:
            self._op(graph, op)

    def _op(self, graph: Graph, op: Op) -> None:
        before, graph.op = graph.op, op
        since = len(graph.nodes)
        try:
            named = self._apply(graph, op)
        except Unsupported as reason:
            self.refused.append((op, str(reason)))
            named = {var: graph.fresh(f"{var.name}@REFUSED") for var in op.writes}
        for var, name in named.items():
            if isinstance(name, UnevenStack):
                self._hold(graph, var, name)
            else:
                self._define(graph, var, name, since)
        graph.op = before

    def _apply(self, graph: Graph, op: Op) -> dict[Var, "str | UnevenStack"]:
        """Apply the rule of an op; return the name of each variable that it defines. Raises Unsupported."""
        is_complex = any(var.dtype.is_complex for var in (*op.reads, *op.writes))
        block_rule = find_block_rule(op.type)
        if block_rule is not None and not is_complex:
            return dict(zip(op.writes, block_rule(self, graph, op), strict=True))
        rule = find_complex_rule(op.type) if is_complex else find_rule(op.type)
        if rule is None:
            raise Unsupported("ONNX has no operator for complex numbers" if is_complex else "it has no export rule")
        operator = self.catalogue.get(op.type)
        given = {slot: [self.value(var) for var in vars] for slot, vars in op.inputs.items()}
        attributes = {name: self.value(value) if isinstance(value, Var) else value for name, value in op.attributes.items()}
        results = operator.results(rule(graph, *operator.in_order(given), **attributes))
        named: dict[Var, str | UnevenStack] = {}
        for slot, vars in op.outputs.items():
            for var, result in zip(vars, results[slot], strict=True):
                named[var] = result.name if isinstance(result, Value) else result
        return named

    def _define(self, graph: Graph, var: Var, name: str, since: int) -> None:
        """Rename a result to the variable's name if a node of this op computes it."""
        made = any(name in node.outputs for node in graph.nodes[since:])
        taken = any(name == value.name for other in (var.op.writes if var.op else ()) if (value := self.values.get(other)))
        if made and not taken:
            own = self.name_for(graph, var)
            graph.rename(name, own, since)
            name = own
        elif var in self.labels:
            own = self.labels[var]
            graph.append("Identity", [name], [own], {})
            name = own
        self.give(graph, var, name)

    # Blocks

    def enter(self, graph: Graph, var: Var) -> Value:
        """Add an input to a block, for a variable."""
        return self.give(graph, var, graph.fresh(var.name))

    def leave(self, graph: Graph, name: str, var: Var, shape: Sequence | None = None) -> Value:
        """Add an output to a block. It must be computed by a node of the block and occur only once."""
        made = any(name in node.outputs for node in graph.nodes)
        if not made or any(value.name == name for value in graph.outputs):
            name = graph("Identity", name)
        value = Value(name, var.dtype, var.shape if shape is None else tuple(shape))
        graph.outputs.append(value)
        return value

    def block(self, graph: Graph, block: Block) -> None:
        """Append the ops of a block."""
        self.ops(graph, block.ops)

    def require_all(self, opset: int) -> None:
        """Raise ProgramError with all unsupported ops and their lines, if any."""
        if not self.refused:
            return
        count = len(self.refused)
        raise ProgramError(
            f"{count} op{'' if count == 1 else 's'} cannot be expressed in ONNX opset {opset}",
            given=[f"{op.type} of {op.writes[0].name}: {reason}{_at(op.location)}" for op, reason in self.refused],
            hint="prune the program to targets that can be exported, or use other operators; "
            "for a custom operator, declare a rule with oarlock.interop.onnx.export_rule",
        )


def _at(location: Location | None) -> str:
    return f", at {location.file}:{location.line}" if location is not None else ""
