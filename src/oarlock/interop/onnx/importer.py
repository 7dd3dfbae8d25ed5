"""Import a model node by node: by rules, by functions, or as known values. Unsupported nodes are collected."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from oarlock.errors import FormatError, LimitError, OarlockError
from oarlock.interop.onnx.known_value import MOST_ELEMENTS, Known, known_numbers
from oarlock.interop.onnx.model_file import attributes_of, domain_of, opsets_of
from oarlock.interop.onnx.nodes import find_body, read_attributes, substituted
from oarlock.interop.onnx.program_writer import ProgramWriter
from oarlock.interop.onnx.rule import Gap, Rule, Unsupported, find_rule, folds
from oarlock.interop.onnx.tensors import DTYPES, TensorReader, UnknownElementTypeError
from oarlock.ir.block_stack import innermost_block
from oarlock.ir.program import Program
from oarlock.ir.size import Size, product
from oarlock.ir.var import Var
from oarlock.proto.limits import Limits
from oarlock.runtime.executor import Executor
from oarlock.runtime.scope import Scope

__all__ = ["Importer", "Missing", "Names", "Value", "fold_node"]


@dataclass(frozen=True, eq=False)
class Missing:
    """The output of an unsupported node. Nodes that read it are skipped."""


Value = Var | Known | Missing | None


@dataclass
class Names:
    """The values of a graph or of a function body by name, and the enclosing graph."""

    around: "Names | None" = None
    opsets: Mapping[str, int] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)
    depth: int = 1
    values: dict[str, Value] = field(default_factory=dict)

    def inside(self) -> "Names":
        """Return the names for a nested graph."""
        return Names(self, self.opsets, self.given, self.depth + 1)

    def get(self, name: str) -> Value:
        """Return the value `name`; None for an omitted input. Raises FormatError if it is undefined."""
        names: Names | None = self if name else None
        while names is not None:
            if name in names.values:
                return names.values[name]
            names = names.around
        if name:
            raise FormatError(f'"{name[:80]}" is read before it is defined')
        return None


class Importer:
    """One import: the model, the program, and the unsupported nodes found so far."""

    def __init__(self, model: Any, writer: ProgramWriter, reader: TensorReader, limits: Limits):
        self.model = model
        self.writer = writer
        self.reader = reader
        self.limits = limits
        self.gaps: list[Gap] = []
        self.nodes = 0
        self.functions = {(domain_of(each.domain), each.name): each for each in model.functions}
        self.declared = {item.name: item.type for item in (*model.graph.value_info, *model.graph.output)}

    def convert_graph(self, graph: Any, names: Names) -> None:
        """Write the nodes of a graph into the open block; their outputs are added to `names`."""
        for tensor in graph.initializer:
            if tensor.name not in names.values:
                names.values[tensor.name] = self._initializer(tensor)
        for tensor in graph.sparse_initializer:
            self.note("sparse tensor", tensor.values.name, "sparse tensors are not supported")
            names.values[tensor.values.name] = Missing()
        for node in graph.node:
            self.convert_node(node, names)

    def _initializer(self, tensor: Any) -> Value:
        try:
            dtype, shape, read = self.reader.open(tensor, f'the initializer "{tensor.name[:80]}"')
        except UnknownElementTypeError as error:
            self.note("initializer", tensor.name, f"tensors of {error} are not supported")
            return Missing()
        return Known(dtype, shape, read, parameter=tensor.name)

    def convert_node(self, node: Any, names: Names) -> None:
        """Write one node; if that is not possible, record a gap."""
        self.nodes += 1
        if self.nodes > self.limits.ops:
            raise LimitError(
                f"with its functions expanded, the model has more than {self.limits.ops:,} nodes", hint="limits=Limits(ops=...)"
            )
        domain = domain_of(node.domain)
        inputs = [names.get(name) for name in node.input]
        try:
            attributes = substituted(attributes_of(node), names.given)
            outputs = self._require_outputs(node, self._outputs(node, domain, attributes, inputs, names))
        except Unsupported as reason:
            self._gap(node, reason)
            outputs = [self._placeholder(name) for name in node.output]
        except (LimitError, FormatError):
            raise
        except OarlockError as error:
            self._gap(node, Unsupported(error.message))
            outputs = [self._placeholder(name) for name in node.output]
        for name, value in zip(node.output, outputs, strict=False):
            if name:
                names.values[name] = value

    def _require_outputs(self, node: Any, outputs: Sequence[Value]) -> list[Value]:
        found = [*outputs, *[None] * len(node.output)][: len(node.output)]
        for number, (name, item) in enumerate(zip(node.output, found, strict=True)):
            if name and item is None:
                raise Unsupported(f"its output {number} is read but not computed")
        return found

    def _outputs(self, node: Any, domain: str, attributes: Mapping[str, Any], inputs: Sequence[Value], names: Names) -> Sequence[Value]:
        """Return the outputs of a node, in order."""
        function = self.functions.get((domain, node.op_type))
        if function is not None:
            return self._call_function(function, attributes, inputs, names, opsets_of(function))
        opset = names.opsets.get(domain)
        found = find_rule(node.op_type, opset) if domain == "" and opset is not None else None
        if any(isinstance(item, Missing) for item in inputs):
            if found is None and find_body(node, attributes, domain, opset, inputs) is None:
                raise Unsupported(_no_rule(domain, opset))
            return [Missing() for _ in node.output]
        if found is not None:
            values = read_attributes(attributes, node, self.reader)
            known = fold_node(self, found, node, values, inputs, names)
            return known if known is not None else self.apply(found, node, values, inputs, names)
        body = find_body(node, attributes, domain, opset, inputs)
        if body is None:
            raise Unsupported(_no_rule(domain, opset))
        function, defaults = body
        return self._call_function(function, {**defaults, **attributes}, inputs, names, {**names.opsets, **opsets_of(function)})

    def _call_function(
        self, function: Any, attributes: Mapping[str, Any], inputs: Sequence[Value], names: Names, opsets: Mapping[str, int]
    ) -> list[Value]:
        """Write the body of a function; return its outputs."""
        if names.depth >= self.limits.depth:
            raise LimitError(f"functions and graphs are nested more than {self.limits.depth} deep", hint="limits=Limits(depth=...)")
        if len(inputs) > len(function.input):
            raise Unsupported(f"it has {len(inputs)} inputs, but the function takes {len(function.input)}")
        given = {attribute.name: attribute for attribute in function.attribute_proto} | dict(attributes)
        inner = Names(None, opsets, given, names.depth + 1)
        for number, name in enumerate(function.input):
            inner.values[name] = inputs[number] if number < len(inputs) else None
        for node in function.node:
            self.convert_node(node, inner)
        return [inner.values.get(name) for name in function.output]

    def apply(self, found: Rule, node: Any, values: Mapping[str, Any], inputs: Sequence[Value], names: Names) -> list[Value]:
        """Return the results of the rule of a node. Raises Unsupported, or the errors of the operators that it writes."""
        slots = [*found.inputs, *[found.variadic] * (len(inputs) - len(found.inputs))] if found.variadic else list(found.inputs)
        if len(inputs) > len(slots) and any(item is not None for item in inputs[len(slots) :]):
            raise Unsupported(f"it has {len(inputs)} inputs, but only {len(slots)} are supported")
        given = list(inputs[: len(slots)]) + [None] * (found.least - len(inputs))
        for slot, item in zip(slots[: found.least], given, strict=False):
            if item is None:
                raise Unsupported(f"its input {slot} is missing")
        keywords: dict[str, Any] = {}
        for name, default in found.attributes.items():
            if name in values:
                keywords[name] = values[name]
            elif name in ("outputs", "opset", "importer", "names"):
                keywords[name] = {"outputs": len(node.output), "opset": names.opsets[""], "importer": self, "names": names}[name]
            elif default is inspect.Parameter.empty:
                raise Unsupported(f"its attribute {name} is missing")
        unknown = sorted(set(values) - set(found.attributes))
        if unknown:
            raise Unsupported(f"its attribute {unknown[0][:40]} is not supported")
        arguments = [self._argument(found, slot or "", item) for slot, item in zip(slots, given, strict=False)]
        try:
            result = found.function(*arguments, **keywords)
        except (Unsupported, OarlockError):
            raise
        except ArithmeticError as error:  # a division by 0, whose message says less than the attributes
            shown = ", ".join(f"{name}={value!r:.40}" for name, value in list(values.items())[:8])
            raise Unsupported(f"its attributes are inconsistent: {shown}"[:300]) from error
        except Exception as error:  # a malformed node that no rule expects
            raise Unsupported(f"its rule failed: {type(error).__name__}: {error}"[:300]) from error
        results = list(result) if isinstance(result, list | tuple) else [result]
        for item in results:
            if isinstance(item, Var):
                self.writer.note_sizes(item)
        return results

    def _argument(self, found: Rule, slot: str, item: Value) -> Any:
        """Return an input in the form that the rule takes."""
        if item is None:
            return None
        if isinstance(item, Known) and slot in (found.known | found.either):
            return item
        if slot in found.known:
            raise Unsupported(f"its input {slot} is computed at run time, but must be known at import", unknown=slot)
        return self.writer.variable(item)  # type: ignore[arg-type]

    # Unsupported nodes

    def _gap(self, node: Any, reason: Unsupported) -> None:
        unknown = None
        if reason.unknown is not None:
            found = find_rule(node.op_type, self._opset_of(node))
            slots = found.inputs if found is not None else ()
            number = slots.index(reason.unknown) if reason.unknown in slots else len(node.input)
            unknown = node.input[number] if number < len(node.input) else None
        hint = reason.hint
        if unknown is not None and unknown in {item.name for item in self.model.graph.input}:
            hint = hint or f"pass values={{{unknown[:60]!r}: ...}} to make the input a constant"
        domain = domain_of(node.domain)
        operator = f"{domain[:60]}.{node.op_type[:60]}" if domain else node.op_type[:60]
        self.note(operator, node.name or next(iter(node.output), ""), reason.reason, hint, unknown)

    def _opset_of(self, node: Any) -> int:
        return opsets_of(self.model).get("", 0)

    def note(self, operator: str, node: str, reason: str, hint: str | None = None, unknown: str | None = None) -> None:
        """Add an unsupported node."""
        self.gaps.append(Gap(operator, node[:120], reason, hint, unknown))

    def _placeholder(self, name: str) -> Value:
        """Return a placeholder for the output of an unsupported node: a variable if its type is declared, so that readers are checked."""
        kind = self.declared.get(name)
        if (
            kind is None
            or not kind.HasField("tensor_type")
            or kind.tensor_type.elem_type not in DTYPES
            or not kind.tensor_type.HasField("shape")
        ):
            return Missing()
        program = self.writer.program
        shape: list[Size] = []
        for size in kind.tensor_type.shape.dim:
            shape.append(size.dim_value if size.HasField("dim_value") and size.dim_value >= 0 else program.unique("size"))
        block = innermost_block(program)
        return block.new_var(program.unique("missing"), DTYPES[kind.tensor_type.elem_type], tuple(shape))


def _no_rule(domain: str, opset: int | None) -> str:
    if opset is None:
        return "the model does not import its operator set"
    if domain:
        return f"the domain {domain[:60]} is unknown, and the model has no function for it"
    return f"there is no rule and no ONNX function for it in opset {opset}"


# Known inputs


_FEW = 64  # elements of a float initializer that is still treated as a setting, not as a weight


def fold_node(
    importer: "Importer", rule: Rule, node: Any, values: Mapping[str, Any], inputs: "Sequence[Value]", names: "Names"
) -> "Sequence[Value] | None":
    """Return the outputs of a node if its inputs are known and small; None if it must be computed in the run."""
    if not rule.folds or not node.input or not all(item is None or _is_setting(item, importer) for item in inputs):
        return None
    known: list[Any] = list(inputs)
    function = folds.get(node.op_type)
    if function is not None and all(item is None or not item.dtype.is_floating for item in known):
        try:
            result = function(*[None if item is None else item for item in known], **values)
        except Exception:  # a malformed node that no fold expects: its rule reports the problem
            result = None
        if result is not None:
            return list(result) if isinstance(result, list | tuple) else [result]
    if any(item is not None and item.sizes is not None for item in known):
        return None
    return _computed(importer, rule, node, values, known, names)


def _is_setting(item: object, importer: "Importer") -> bool:
    """Return whether a value is known and not a parameter of the program."""
    if not isinstance(item, Known) or item.count > MOST_ELEMENTS:
        return False
    weight = item.parameter is not None and item.dtype.is_floating
    return not weight or (item.count <= _FEW and item.parameter not in importer.writer.trainable)


def _computed(
    importer: "Importer", rule: Rule, node: Any, values: Mapping[str, Any], inputs: "list[Known | None]", names: "Names"
) -> "Sequence[Value] | None":
    """Return the results of a rule, evaluated in a temporary program."""
    program, outer = Program(), importer.writer
    try:
        with program:
            importer.writer = writer = ProgramWriter(program)
            results = importer.apply(rule, node, values, inputs, names)
    finally:
        importer.writer = outer
    vars = [item for item in results if isinstance(item, Var)]
    sizes = [product(var.shape) if var.shape is not None else "?" for var in program.main.vars.values()]
    if program.blocks[1:] or not all(isinstance(size, int) and size <= MOST_ELEMENTS for size in sizes):
        return None
    scope = Scope()
    for name, value in writer.values.items():
        scope.var(name).give(value.tensor, own=True)
    found = Executor(interpret=True).eval(program, vars, scope=scope, return_numpy=False) if vars else []
    computed = iter(found)
    return [known_numbers(torch.as_tensor(next(computed))) if isinstance(item, Var) else item for item in results]
