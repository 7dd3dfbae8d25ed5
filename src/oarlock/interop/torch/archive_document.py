"""The JSON of a `.pt2` archive, made safe: PyTorch evaluates its expressions as Python, and looks its functions up by name.

What is let through is data: operators of ATen and a few functions on numbers by their names, arithmetic on symbols, plain containers.
"""

import ast
import json
import re

from oarlock.errors import FormatError, LimitError
from oarlock.proto.limits import Limits

__all__ = ["clean_document", "require_integer"]

_HIGHER = ("cond", "while_loop", "scan", "wrap_with_set_grad_enabled", "wrap_with_autocast")
_NUMBERS = (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "neg",
    "pow",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "and_",
    "or_",
    "not_",
    "getitem",
)
_SYMBOLIC = ("sym_float", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sum", "_sym_sqrt")
_ATEN = re.compile(r"torch\.ops\.aten\.\w{1,80}\.\w{1,80}", re.ASCII)
_TARGETS = {
    *(f"torch.ops.higher_order.{name}" for name in _HIGHER),
    *(f"_operator.{name}" for name in _NUMBERS),
    *(f"torch.{name}" for name in _SYMBOLIC),
    *(f"math.{name}" for name in ("ceil", "floor", "trunc")),
}
_FUNCTIONS = {
    *("FloorDiv", "ModularIndexing", "Where", "PythonMod", "Mod", "CleanDiv", "CeilToInt", "FloorToInt", "CeilDiv", "PowByNatural"),
    *("IntTrueDiv", "FloatTrueDiv", "ToFloat", "TruncToInt", "RoundToInt", "Max", "Min", "Not", "And", "Or"),
    *("Add", "Mul", "Pow", "Integer", "Rational", "Float", "Eq", "Ne"),
    *("Equality", "Unequality", "StrictLessThan", "LessThan", "StrictGreaterThan", "GreaterThan"),
}
_SYMBOL = re.compile(r"[a-z]{1,4}\d{1,6}|int_oo|True|False", re.ASCII)
_NODES = (
    *(ast.Expression, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Load),
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.BitAnd, ast.BitOr, ast.Invert, ast.USub, ast.UAdd, ast.Not),
    *(ast.And, ast.Or, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE),
)
_LONGEST_EXPRESSION = 1000
_HIGHEST_POWER = 8
_CONTAINERS = ("builtins.tuple", "builtins.list", "builtins.dict", "collections.OrderedDict")
_KEPT_METADATA = ("stack_trace", "nn_module_stack")


def clean_document(document: object, limits: Limits) -> dict[str, object]:
    """The document of a model with nothing in it but data. Raises FormatError for anything else, LimitError for more than is allowed."""
    if not isinstance(document, dict) or not isinstance(document.get("graph_module"), dict):
        raise FormatError("the archive's model is no exported program")
    if sum(1 for _ in _nodes(document)) > limits.ops:
        raise LimitError(f"the archive's model has more than {limits.ops:,} nodes", hint="limits=Limits(ops=...)")
    cleaned = _clean(document, 0)
    assert isinstance(cleaned, dict)
    cleaned["guards_code"] = []  # Python, which checks what a caller gives; a feed of ours is checked anyway
    module = cleaned["graph_module"]
    calls = module.get("module_call_graph")
    if not isinstance(calls, list) or not calls or not isinstance(calls[0], dict):
        raise FormatError("the archive's model does not say how it is called")
    module["module_call_graph"] = calls[:1]
    module["metadata"] = {}
    signature = calls[0].get("signature")
    if not isinstance(signature, dict):
        raise FormatError("the archive's model does not say how it is called")
    for name in ("in_spec", "out_spec"):
        signature[name] = _clean_spec(signature.get(name))
    return cleaned


def _nodes(value: object):
    """Every node of every graph in `value`."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            if "inputs" in item and "target" in item:
                yield item
            pending += item.values()
        elif isinstance(item, list):
            pending += item


def _clean(value: object, depth: int) -> object:
    if depth > 200:
        raise FormatError("the archive's model is nested too deep")
    if isinstance(value, list):
        return [_clean(item, depth + 1) for item in value]
    if isinstance(value, bool) or value is None or isinstance(value, str | float):
        return value
    if isinstance(value, int):
        return require_integer(value)
    assert isinstance(value, dict)
    if value.keys() == {"type", "index"}:
        return {"type": "cpu", "index": None}
    if "inputs" in value and "target" in value:
        value = {**value, "target": _require_target(value["target"]), "metadata": _clean_metadata(value.get("metadata"))}
    for key in ("as_custom_obj", "custom_obj", "class_fqn"):
        if value.get(key) is not None:
            raise FormatError("the archive holds an object of Python", hint="a module whose tensors are all it holds can come in")
    if "expr_str" in value:
        _require_expression(value["expr_str"])
    if "as_operator" in value:
        _require_target(value["as_operator"])
    return {key: _clean(item, depth + 1) for key, item in value.items()}


def require_integer(value: object) -> int:
    """`value` as a number that 64 bits hold. Raises FormatError."""
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
        raise FormatError(f"the archive holds {value!r:.40} where a whole number of 64 bits is due")
    return value


def _clean_metadata(metadata: object) -> dict[str, str]:
    if not isinstance(metadata, dict):
        return {}
    return {key: metadata[key] for key in _KEPT_METADATA if isinstance(metadata.get(key), str)}


def _require_target(target: object) -> str:
    if not isinstance(target, str) or not (_ATEN.fullmatch(target) or target in _TARGETS):
        raise FormatError(
            f"the archive calls {target!r:.80}, which is no operator of ATen",
            hint="operators of other libraries, and Python's own functions, are not run out of a file",
        )
    return target


def _require_expression(text: object) -> None:
    """Raise FormatError for an expression that is more than arithmetic on symbols: PyTorch lets Python evaluate it."""
    try:
        if not isinstance(text, str) or len(text) > _LONGEST_EXPRESSION:
            raise ValueError
        tree = ast.parse(text.strip(), mode="eval")
        names = {id(name) for node in ast.walk(tree) if _is_symbol(node) for name in ast.walk(node)}
        if not all(id(node) in names or _is_arithmetic(node) for node in ast.walk(tree)):
            raise ValueError
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        raise FormatError(f"the archive has {text!r:.80} for a size") from None


def _is_symbol(node: ast.AST) -> bool:
    """Whether this is `Symbol('s0', integer=True)`, as sympy writes one."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id != "Symbol" or len(node.args) != 1:
        return False
    name, facts = node.args[0], [item.value for item in node.keywords]
    known = isinstance(name, ast.Constant) and isinstance(name.value, str) and _SYMBOL.fullmatch(name.value)
    return bool(known) and all(isinstance(fact, ast.Constant) and isinstance(fact.value, bool) for fact in facts)


def _is_arithmetic(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        if not isinstance(node.func, ast.Name) or node.func.id not in _FUNCTIONS or node.keywords:
            return False
        return node.func.id != "Pow" or (len(node.args) == 2 and _is_low(node.args[1]))
    if isinstance(node, ast.Name):
        return bool(_SYMBOL.fullmatch(node.id)) or node.id in _FUNCTIONS
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and abs(node.value) < 2**63
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return _is_low(node.right)
    return isinstance(node, _NODES)


def _is_low(node: ast.AST) -> bool:
    """Whether this is a small whole number: a power that sympy works out at once."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Integer" and len(node.args) == 1:
        node = node.args[0]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and isinstance(node.value, int) and abs(node.value) <= _HIGHEST_POWER


def _clean_spec(text: object) -> str:
    """The structure of inputs or outputs; a container of somebody else's, whose keys are text, is a dict."""
    try:
        protocol, spec = json.loads(text)  # type: ignore[arg-type]
        return json.dumps([protocol, _clean_container(spec, 0)])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise FormatError("the archive's model does not say how it is called") from error


def _clean_container(spec: dict, depth: int) -> dict:
    if depth > 100:
        raise ValueError
    children = [_clean_container(child, depth + 1) for child in spec["children_spec"]]
    kind, context = spec["type"], spec["context"]
    if kind is None or kind in _CONTAINERS:
        return {"type": kind, "context": context, "children_spec": children}
    keys = json.loads(context)
    if not isinstance(keys, list) or len(keys) != len(children) or not all(isinstance(key, str) for key in keys):
        raise FormatError(f"the archive's inputs or outputs stand in a {kind!r:.80}, which nothing here knows")
    return {"type": "builtins.dict", "context": context, "children_spec": children}
