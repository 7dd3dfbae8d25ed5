"""Write a functional ATen graph into a program, node by node, with the rule of each operator."""

import operator
from collections import Counter
from collections.abc import Sequence

import sympy
import torch
from torch.fx import GraphModule, Node

from oarlock.backend.torch.private import HigherOrderOperator, OpOverload
from oarlock.errors import OarlockError, ShapeError
from oarlock.interop.torch import control
from oarlock.interop.torch.arguments import bind, map_values, promote_arguments, select_arguments
from oarlock.interop.torch.chance import expected_value, training_flag
from oarlock.interop.torch.marks import STOP
from oarlock.interop.torch.report import Refusals, line_of
from oarlock.interop.torch.rules.arguments import variables_with_sizes
from oarlock.interop.torch.rules.registry import RESULT, Unsupported, find_rule
from oarlock.interop.torch.state import Constant, State
from oarlock.interop.torch.symbols import Symbols, variable_of_size
from oarlock.ir.block_stack import current_block
from oarlock.ir.names import DRAWS
from oarlock.ir.program import Program
from oarlock.ir.size import Size, add, format_shape, is_same, multiply, names_in, resolved
from oarlock.ir.var import Var
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.elementwise import assign
from oarlock.registry.catalogue import standard
from oarlock.registry.signature import TensorType
from oarlock.tensor.dtype import from_torch

__all__ = ["Writer"]

_CHECKS = (
    "aten._assert_async.msg",
    "aten._assert_scalar.default",
    "aten._assert_tensor_metadata.default",
    "aten.sym_constrain_range.default",
    "aten.sym_constrain_range_for_size.default",
)
_MOST_ELEMENTS = 2**28  # of a constant that is evaluated at import
_OF_A_SHAPE = tuple(f"aten.{name}.default" for name in ("zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full"))
"""Operators that fill a tensor and use only the shape of their first argument."""
_UNSET = ("aten.empty", "aten.new_empty")  # prefixes of operators that return uninitialized memory
_MOST_FILLED = 2**20  # elements of such a constant; larger ones are computed in the run


class _Broken:
    """Placeholder of a value that could not be written. Its readers are not reported again."""


BROKEN = _Broken()


class Writer:
    """Writes graphs into one program. Unsupported nodes are added to `refusals`, and writing continues after them.

    The export fixes which of two sizes is smaller, following its example: it gives `x[:, :512]` the size t. Programs use `min(t,512)`
    instead, which sets `has_other_sizes`. With `fixes_sizes`, the program uses the sizes of the export, and the run rejects other ones.
    """

    def __init__(self, program: Program, state: State, symbols: Symbols, refusals: Refusals, *, fixes_sizes: bool = False):
        self.fixes_sizes = fixes_sizes
        self.has_other_sizes = False
        self._fixed_sizes: set[str] = set()
        self._read_sizes: set[str] = set()
        self.program = program
        self.state = state
        self.symbols = symbols
        self.refusals = refusals
        self._training: Var | None = None
        self.written: Counter[tuple[str, tuple[str, ...]]] = Counter()  # (overload, the operators that replace it) -> count

    def write(self, module: GraphModule, given: Sequence[object]) -> list[object]:
        """Write `module` with the inputs `given`; return its outputs."""
        values: dict[Node, object] = {}
        inputs = iter(given)
        for node in module.graph.nodes:
            if node.op == "placeholder":
                values[node] = next(inputs)
            elif node.op == "get_attr":
                values[node] = _attribute(module, str(node.target))
            elif node.op == "output":
                made = self._read(node.args[0], values)
                return list(made) if isinstance(made, list | tuple) else [made]
            else:
                with self.program.write_as(self.program.writing[0], line_of(node)):
                    values[node] = self._call(node, values)
        raise AssertionError("a graph ends with its output")

    def require_free_sizes(self) -> None:
        """Raise ShapeError if the graph may compute with a size that the export has fixed."""
        if self._fixed_sizes & self._read_sizes:
            raise ShapeError("the export has fixed which of two sizes is smaller")

    def variable(self, value: object) -> object:
        """Return `value` with its constants converted to variables."""
        if isinstance(value, Constant):
            return self.state.constant(value)
        if isinstance(value, list | tuple):
            return [self.variable(item) for item in value]
        return value

    def variable_of(self, size: Size) -> Var:
        """Return a size as an int64[] variable."""
        return variable_of_size(size, self.program)

    def _call(self, node: Node, values: dict[Node, object]) -> object:
        name, target = str(node.target), node.target
        given = self._read((node.args, node.kwargs), values)
        if name in _CHECKS:
            return None
        if target is operator.getitem:
            return self._item(node, values)
        if _holds(given, _Broken):
            if isinstance(target, OpOverload) and find_rule(name) is None and name != STOP:
                self.refusals.add(node, "there is no rule for this operator")
            return BROKEN
        try:
            if isinstance(target, HigherOrderOperator):
                return control.write(self, node, given[0], given[1])  # type: ignore[index, arg-type]
            if _is_symbolic(node.meta.get("val")) or not isinstance(target, OpOverload):
                return self._number(node, given)
            if name == STOP:
                return self._stop(given[0][0])  # type: ignore[index]
            folded = self._fold(node, values)
            return self._apply(node, values) if folded is None else folded
        except Unsupported as refusal:
            self.refusals.add(node, refusal.why, hint=refusal.hint)
        except OarlockError as error:
            self.refusals.add(node, error.message)
        except Exception as error:  # an unexpected exception of a rule is reported like an unsupported node
            self.refusals.add(node, f"internal error: {type(error).__name__}: {error}", fault=error)
        return self._placeholder(node.meta.get("val"))

    def _read(self, arguments: object, values: dict[Node, object]) -> object:
        """Return `arguments` of a node with nodes replaced by their values."""
        return map_values(arguments, lambda item: values[item] if isinstance(item, Node) else item)

    def _item(self, node: Node, values: dict[Node, object]) -> object:
        container, number = values[node.args[0]], node.args[1]  # type: ignore[index]
        if container is BROKEN:
            return BROKEN
        found = container[number]  # type: ignore[index]
        if found is None and node.users:
            self.refusals.add(node, f"the rule does not compute result {number}", operator=str(node.args[0].target))  # type: ignore[union-attr]
            return self._placeholder(node.meta.get("val"))
        return found

    # Constants

    def _fold(self, node: Node, values: dict[Node, object]) -> object | None:
        """Evaluate `node` if all its inputs are constant; None if it is not constant or must not be evaluated."""
        of_shape = str(node.target) in _OF_A_SHAPE and not isinstance(values[node.args[0]], _Broken)  # type: ignore[index]
        read = node.all_input_nodes[of_shape:]
        if _holds([values[item] for item in read], (Var, str, _Broken)) or _is_random(node.target):
            return None
        if not self.state.exported.trusted and find_rule(str(node.target)) is None:
            return None
        results = [item for item in _flat(node.meta.get("val")) if isinstance(item, torch.Tensor)]
        if any(_is_symbolic(size) for item in results for size in item.shape):
            return None
        if sum(item.numel() for item in results) > (_MOST_FILLED if of_shape else _MOST_ELEMENTS):
            return None

        given = self._read((node.args, node.kwargs), values)
        if of_shape:
            given = ((Constant(_blank(node.args[0].meta["val"])), *given[0][1:]), given[1])  # type: ignore[index, union-attr]
        args, kwargs = map_values(given, lambda item: item.value if isinstance(item, Constant) else item)  # type: ignore[misc]
        if "device" in kwargs:
            kwargs = {**kwargs, "device": "cpu"}
        with torch.no_grad():
            made = node.target(*args, **kwargs)  # type: ignore[operator]
            if str(node.target).startswith(_UNSET):  # uninitialized memory would leak from this process into the model
                made.zero_()
        return map_values(made, lambda item: Constant(item) if isinstance(item, torch.Tensor) else item)

    # Numbers

    def _number(self, node: Node, given: object) -> object:
        """Return an integer computed from sizes: a number or a size if possible, otherwise an int64[] variable."""
        meta = node.meta.get("val")
        args, kwargs = given  # type: ignore[misc]
        if isinstance(meta, torch.SymInt):
            known = self.symbols.find_size(meta)
            if known is not None:
                self._read_sizes |= names_in(known)
                return known
            expression = meta.node.expr
            if isinstance(node.target, OpOverload) and not str(node.target).startswith("aten.sym_"):
                made = self._scalar(node, args, kwargs)
                if isinstance(made, int | Var) and isinstance(expression, sympy.Symbol):
                    self.symbols.bind(expression, made)
                return made
            made = self.symbols.evaluate(expression, self.variable_of)
            if made is None:
                raise Unsupported(f"sizes do not support this arithmetic: {expression}")
            return made
        if not isinstance(node.target, OpOverload) and not _holds(given, (Var, str)):
            return node.target(*args, **kwargs)  # type: ignore[operator]
        return self._scalar(node, args, kwargs)

    def _scalar(self, node: Node, args: Sequence[object], kwargs: object) -> object:
        """Return a number computed at run time by a rule; evaluate it now if it is constant."""
        if len(args) == 1 and isinstance(args[0], Constant):
            return args[0].value.item()
        rule = find_rule(str(node.target)) or find_rule(_python_name(node.target))
        if rule is None:
            raise Unsupported("there is no rule for this number")
        numbers = [self.variable_of(item) if isinstance(item, str) else self.variable(item) for item in args]
        return rule.function(*numbers)

    # Operators

    def _stop(self, x: object) -> object:
        if not isinstance(x, Var) or not x.dtype.is_floating:
            return x
        stopped = assign(x)
        stopped.stop_gradient = True
        return stopped

    def _apply(self, node: Node, values: dict[Node, object]) -> object:
        """Return the result of the rule of `node`, checked against the type in the export."""
        name = str(node.target)
        rule = find_rule(name)
        if rule is None:
            raise Unsupported("there is no rule for this operator")

        block = current_block()
        before = len(block.ops)
        given = select_arguments(node, bind(node, lambda item: self.variable(self._read(item, values)), self.variable_of), rule)
        given = promote_arguments(given, rule.promote, to_float=rule.to_float) if rule.promote else given
        if rule.wants_result:
            given[RESULT] = self._expected(node.meta["val"])
        made = rule.function(**given)
        if self.state.exported.draws_only_in_training:
            made = self._draw_or_mean(node, made, given)
        ops = [op for op in block.ops[before : block.tail_start] if op.type != "full" and not op.writes[0].name.startswith(DRAWS)]
        self.written[name, tuple(op.type for op in ops)] += 1
        return self._check_result(made, node.meta["val"])

    def _draw_or_mean(self, node: Node, made: object, given: dict[str, object]) -> object:
        """Return a value that is the draw in training and its expected value otherwise."""
        expected = expected_value(node, given)
        if expected is None or not isinstance(made, Var):
            return made
        if self._training is None:
            self._training = training_flag(self.program)
        return standard.get("where")(self._training, made, constant_like(expected, made))

    def _expected(self, meta: object) -> object:
        """Return the type in the export; unknown symbols become `?`."""
        if isinstance(meta, torch.Tensor):
            dtype = from_torch(meta.dtype)
            if dtype is None:
                raise Unsupported(f"programs do not support {str(meta.dtype).removeprefix('torch.')}")
            sizes = [self.symbols.find_size(size) for size in meta.shape]
            return TensorType(dtype, tuple("?" if size is None else size for size in sizes))
        if isinstance(meta, list | tuple):
            return tuple(self._expected(item) for item in meta)
        return None

    def _check_result(self, made: object, meta: object) -> object:
        """Return `made` after checking its dtype and shape against the export. Raises Unsupported for a mismatch, an internal error."""
        if isinstance(meta, list | tuple):
            if not isinstance(made, list | tuple) or len(made) != len(meta):
                raise Unsupported(f"internal error: the rule returned {made!r:.60}, expected {len(meta)} results")
            return [None if one is None else self._check_result(one, other) for one, other in zip(made, meta, strict=True)]
        if not isinstance(meta, torch.Tensor):
            return made
        if not isinstance(made, Var):
            raise Unsupported(f"internal error: the rule returned {made!r:.60}")
        made = self._fix_sizes(made, meta)
        dtype, shape = from_torch(meta.dtype), made.shape or ()
        fits = made.dtype is dtype and len(shape) == meta.ndim and all(map(self._unify, shape, meta.shape))
        if not fits:
            sizes = [str(size) if (known := self.symbols.find_size(size)) is None else known for size in meta.shape]
            raise Unsupported(f"internal error: the rule returned {made.type_text}, but the export has {dtype}{format_shape(tuple(sizes))}")
        return made

    def _fix_sizes(self, made: Var, meta: torch.Tensor) -> Var:
        """Return `made` with the sizes of the export if it has fixed the smaller of two; the run checks them."""
        if not self.fixes_sizes or made.ndim != meta.ndim:
            return made
        for axis, (ours, theirs) in enumerate(zip(made.shape or (), meta.shape, strict=True)):
            known = self.symbols.find_size(theirs)
            if known is not None and not is_same(known, ours) and self._is_one_of(known, ours):
                place: Size = add(known, multiply(ours, -1))  # only 0 is accepted
                made = standard.get("narrow")(made, variables_with_sizes([place, known], made), axis=axis, start=(place,), length=(known,))
        return made

    def _is_one_of(self, size: Size, ours: Size) -> bool:
        return isinstance(ours, str) and any(is_same(size, option) for option in resolved(ours))

    def _unify(self, ours: Size, theirs: object) -> bool:
        """Return whether a size equals the export's. An unbound symbol is bound to it."""
        known = self.symbols.find_size(theirs)
        if known is not None:
            if is_same(known, ours):
                return True
            self.has_other_sizes = True
            self._fixed_sizes |= names_in(ours)
            self._read_sizes |= names_in(ours) - names_in(known) if isinstance(known, int) else set()
            return self._is_one_of(known, ours)
        expression = theirs.node.expr  # type: ignore[attr-defined]
        if isinstance(expression, sympy.Symbol):
            self.symbols.bind(expression, ours)
        return True

    def _placeholder(self, meta: object) -> object:
        """Return a placeholder for the result of an unsupported node, so that the nodes after it are checked too."""
        if isinstance(meta, list | tuple):
            return [self._placeholder(item) for item in meta]
        if isinstance(meta, torch.SymInt):
            size = self.symbols.find_size(meta)
            if size is None:
                size = self.program.unique("size")
                if isinstance(meta.node.expr, sympy.Symbol):
                    self.symbols.bind(meta.node.expr, size)
            return size
        if not isinstance(meta, torch.Tensor) or from_torch(meta.dtype) is None:
            return BROKEN
        shape = tuple(self._placeholder(size) if isinstance(size, torch.SymInt) else size for size in meta.shape)
        return current_block().new_var(self.program.unique("refused"), from_torch(meta.dtype), shape)  # type: ignore[arg-type]


def _blank(traced: torch.Tensor) -> torch.Tensor:
    """Return a tensor of this shape and dtype, in the memory of one element; a scalar if the shape has symbols."""
    shape = () if any(map(_is_symbolic, traced.shape)) else traced.shape
    return torch.zeros((), dtype=traced.dtype).expand(shape)


def _attribute(module: GraphModule, path: str) -> object:
    found: object = module
    for part in path.split("."):
        found = getattr(found, part)
    return Constant(found, path) if isinstance(found, torch.Tensor) else found


def _flat(value: object) -> list[object]:
    return [part for item in value for part in _flat(item)] if isinstance(value, list | tuple) else [value]


def _holds(value: object, kinds: type | tuple[type, ...]) -> bool:
    """Return whether nested lists, tuples and dicts contain an instance of `kinds`. Use only on arguments whose strings are sizes."""
    if isinstance(value, dict):
        return any(_holds(item, kinds) for item in value.values())
    if isinstance(value, list | tuple):
        return any(_holds(item, kinds) for item in value)
    return isinstance(value, kinds)


def _is_random(target: object) -> bool:
    return torch.Tag.nondeterministic_seeded in getattr(target, "tags", ())


def _is_symbolic(value: object) -> bool:
    return isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool)


def _python_name(target: object) -> str:
    """Return the name of a Python function as in rules, such as `operator.add` or `math.sqrt`."""
    return f"{getattr(target, '__module__', '').removeprefix('_')}.{getattr(target, '__name__', '')}"
