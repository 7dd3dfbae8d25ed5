"""Sanitize the JSON model of a `.pt2` archive.

PyTorch evaluates its expressions as Python, looks up its functions by name, and writes its names into Python code that it runs. Only plain
data is accepted: ATen operators and a few number functions by name, arithmetic on symbols of bounded cost, standard containers, and
identifiers.
"""

import ast
import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import torch

from oarlock.backend.torch.private import OpOverload, schema_of
from oarlock.errors import FormatError, LimitError
from oarlock.proto.limits import Limits

__all__ = ["clean_document", "is_symbol", "require_degree", "require_expression", "require_integer"]

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
_ATEN = re.compile(r"torch\.ops\.aten\.(\w{1,80})\.(\w{1,80})", re.ASCII)
_TARGETS = {
    *(f"torch.ops.higher_order.{name}" for name in _HIGHER),
    *(f"_operator.{name}" for name in _NUMBERS),
    *(f"torch.{name}" for name in _SYMBOLIC),
    *(f"math.{name}" for name in ("ceil", "floor", "trunc")),
}
_CONTAINERS = ("builtins.tuple", "builtins.list", "builtins.dict", "collections.OrderedDict")
_KEPT_METADATA = ("stack_trace", "nn_module_stack")
_NAMES = ("name", "as_name")  # names of values, graphs and arguments: PyTorch writes them as Python identifiers
_NAME = re.compile(r"[A-Za-z_]\w{0,255}", re.ASCII)
_PATHS = ("parameter_name", "buffer_name", "tensor_constant_name", "user_input_name")  # PyTorch writes these as quoted strings
_PATH = re.compile(r"[^\"'\\\x00-\x1f\x7f]{1,512}")


def clean_document(document: object, limits: Limits) -> dict[str, object]:
    """Return a copy of the model document that contains only data.

    Raises FormatError for anything else and LimitError if the document exceeds the limits.
    """
    if not isinstance(document, dict) or not isinstance(document.get("graph_module"), dict):
        raise FormatError("the archive's model is not an exported program")
    if sum(1 for _ in _nodes(document)) > limits.ops:
        raise LimitError(f"the archive's model has more than {limits.ops:,} nodes", hint="limits=Limits(ops=...)")
    cleaned = _clean(document, 0)
    assert isinstance(cleaned, dict)
    cleaned["guards_code"] = []  # Python code that checks inputs; feeds are checked in any case
    if not all(is_symbol(name) for name in cleaned.get("range_constraints") or ()):
        raise FormatError("the archive's model has a range for an invalid symbol")
    module = cleaned["graph_module"]
    calls = module.get("module_call_graph")
    if not isinstance(calls, list) or not calls or not isinstance(calls[0], dict):
        raise FormatError("the archive's model has no call signature")
    module["module_call_graph"] = calls[:1]
    module["metadata"] = {}
    signature = calls[0].get("signature")
    if not isinstance(signature, dict):
        raise FormatError("the archive's model has no call signature")
    for name in ("in_spec", "out_spec"):
        signature[name] = _clean_spec(signature.get(name))
    for name in (*_keywords(signature["in_spec"]), *(signature.get("forward_arg_names") or ())):
        _require_name(name)
    require_degree(cleaned)
    return cleaned


def _nodes(value: object):
    """Iterate over the nodes of all graphs in `value`."""
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
        raise FormatError("the archive's model is nested too deeply")
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
            raise FormatError("the archive contains a Python object", hint="only modules whose state is tensors can be imported")
    for key in _NAMES:
        if value.get(key):
            _require_name(value[key])
    for key in _PATHS:
        path = value.get(key, "")
        if not isinstance(path, str) or not _PATH.fullmatch(path or "_"):
            raise FormatError(f"the archive has an invalid tensor name: {path!r:.80}")
    if "expr_str" in value:
        require_expression(value["expr_str"])
    if value.get("as_string_to_argument"):
        raise FormatError("the archive refers to a custom kernel")
    if "as_operator" in value:
        _require_target(value["as_operator"])
    return {key: _clean(item, depth + 1) for key, item in value.items()}


def require_integer(value: object) -> int:
    """Return `value` if it is an integer of at most 64 bits. Raises FormatError."""
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
        raise FormatError(f"the archive has {value!r:.40} in place of a 64-bit integer")
    return value


def _clean_metadata(metadata: object) -> dict[str, str]:
    if not isinstance(metadata, dict):
        return {}
    return {key: metadata[key] for key in _KEPT_METADATA if isinstance(metadata.get(key), str)}


def _require_target(target: object) -> str:
    if not isinstance(target, str) or not (target in _TARGETS or _is_aten(target)):
        raise FormatError(
            f"the archive calls {target!r:.80}, which is not an ATen operator",
            hint="functions of Python and operators of other libraries are never run from a file",
        )
    return target


def _is_aten(target: str) -> bool:
    """Return whether `target` is an ATen operator on tensors.

    Excludes TorchScript functions on strings and files, which have such names too.
    """
    name = _ATEN.fullmatch(target)
    found = getattr(getattr(torch.ops.aten, name[1], None), name[2], None) if name else None
    if found is None or not isinstance(found, OpOverload):
        return False
    schema = schema_of(found)
    kinds = [str(item.type) for item in (*schema.arguments, *schema.returns)]
    return any("Tensor" in kind for kind in kinds) and not any(item.name == "filename" for item in schema.arguments)


def _require_name(name: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise FormatError(f"the archive has {name!r:.80} in place of a name", hint="PyTorch writes names into Python code that it runs")


def _keywords(spec: str) -> list[object]:
    """Return the names of the keyword arguments, if `spec` is the structure of a call's arguments."""
    children = json.loads(spec)[1]["children_spec"]
    return json.loads(children[1]["context"]) or [] if len(children) == 2 and children[1]["type"] == "builtins.dict" else []


def _clean_spec(text: object) -> str:
    """Return the structure of inputs or outputs. An unknown container with string keys becomes a dict."""
    try:
        protocol, spec = json.loads(text)  # type: ignore[arg-type]
        return json.dumps([protocol, _clean_container(spec, 0)])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise FormatError("the archive's model has no call signature") from error


def _clean_container(spec: dict, depth: int) -> dict:
    if depth > 100:
        raise ValueError
    children = [_clean_container(child, depth + 1) for child in spec["children_spec"]]
    kind, context = spec["type"], spec["context"]
    if kind is None or kind in _CONTAINERS:
        return {"type": kind, "context": context, "children_spec": children}
    keys = json.loads(context)
    if not isinstance(keys, list) or len(keys) != len(children) or not all(isinstance(key, str) for key in keys):
        raise FormatError(f"the archive's inputs or outputs are in an unknown container: {kind!r:.80}")
    return {"type": "builtins.dict", "context": context, "children_spec": children}


# Size expressions


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
_LONGEST = 1000
_MOST_TERMS = 256
_MOST_BITS = 4096
_HIGHEST_DEGREE = 32


class _Extent(NamedTuple):
    """Upper bounds for an expression after expansion: its number of terms, and the bits of its numbers."""

    terms: int
    bits: float


def require_expression(text: object) -> None:
    """Raise FormatError unless `text` is an arithmetic expression on symbols that is cheap to evaluate."""
    try:
        if not isinstance(text, str) or len(text) > _LONGEST:
            raise ValueError
        tree = ast.parse(text.strip(), mode="eval")
        names = {id(name) for node in ast.walk(tree) if _is_symbol(node) for name in ast.walk(node)}
        if not all(id(node) in names or _is_arithmetic(node) for node in ast.walk(tree)):
            raise ValueError
        _extent(tree.body)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        raise FormatError(f"the archive has an invalid size: {text!r:.80}") from None


def is_symbol(name: str) -> bool:
    """Return whether `name` is a PyTorch symbol. The number of digits is limited because PyTorch counts up to it."""
    return bool(_SYMBOL.fullmatch(name))


def _is_symbol(node: ast.AST) -> bool:
    """Return whether `node` is `Symbol('s0', integer=True)`, as sympy prints a symbol."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id != "Symbol" or len(node.args) != 1:
        return False
    name, facts = node.args[0], [item.value for item in node.keywords]
    known = isinstance(name, ast.Constant) and isinstance(name.value, str) and _SYMBOL.fullmatch(name.value)
    return bool(known) and all(isinstance(fact, ast.Constant) and isinstance(fact.value, bool) for fact in facts)


def _is_arithmetic(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS and not node.keywords
    if isinstance(node, ast.Name):
        return bool(_SYMBOL.fullmatch(node.id)) or node.id in _FUNCTIONS
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and abs(node.value) < 2**63
    return isinstance(node, _NODES)


def _extent(node: ast.expr) -> _Extent:
    """Return the extent of an arithmetic expression. Raises ValueError if it is too large or has a power that is not constant."""
    found = _extent_of(node)
    if found.terms > _MOST_TERMS or found.bits > _MOST_BITS:
        raise ValueError
    return found


def _extent_of(node: ast.expr) -> _Extent:
    kind = type(getattr(node, "op", None)).__name__
    if isinstance(node, ast.Call):
        kind = node.func.id  # type: ignore[attr-defined]
        parts = [] if kind == "Symbol" else [_extent(item) for item in node.args]
        if kind in ("Pow", "PowByNatural"):
            return _power(parts[0], node.args[1]) if len(parts) == 2 else _refuse()
    elif isinstance(node, ast.BinOp):
        parts = [_extent(node.left), _extent(node.right)]
        if kind == "Pow":
            return _power(parts[0], node.right)
    else:
        parts = [_extent(item) for item in ast.iter_child_nodes(node) if isinstance(item, ast.expr)]
    if not parts:
        number = getattr(node, "value", 0)
        return _Extent(1, math.log2(abs(number) + 2))
    if kind in ("Add", "Sub"):
        return _Extent(sum(part.terms for part in parts), sum(part.bits for part in parts))
    return _Extent(math.prod(part.terms for part in parts), sum(part.bits for part in parts))


def _power(base: _Extent, exponent: ast.expr) -> _Extent:
    if isinstance(exponent, ast.Call) and exponent.func.id == "Integer" and len(exponent.args) == 1:  # type: ignore[attr-defined]
        exponent = exponent.args[0]
    if isinstance(exponent, ast.UnaryOp) and isinstance(exponent.op, ast.USub):
        exponent = exponent.operand
    if not isinstance(exponent, ast.Constant) or not isinstance(exponent.value, int) or exponent.value > _MOST_BITS:
        return _refuse()
    return _Extent(base.terms ** min(exponent.value, 64) if base.terms > 1 else 1, base.bits * exponent.value)


def _refuse() -> _Extent:
    raise ValueError


def require_degree(document: object) -> None:
    """Raise FormatError if the nodes of a document multiply numbers until sizes grow without bound.

    Nodes are visited in order; a nested graph comes after the node that holds it. A value that no number node computes has degree 1. An
    input of a nested graph may be any number of the enclosing graph, so it has the highest degree so far.
    """
    degrees: dict[object, int] = {}
    highest, pending = 1, [document]
    while pending:
        item = pending.pop()
        if isinstance(item, list):
            pending += reversed(item)
        elif isinstance(item, dict):
            if isinstance(item.get("target"), str) and not item["target"].startswith("torch.ops."):
                found = _degree(item["target"], list(_operands(item.get("inputs"))), degrees)
                highest = max(highest, found)
                if highest > _HIGHEST_DEGREE:
                    raise FormatError(f"the archive has a size to a power above {_HIGHEST_DEGREE}")
                degrees.update(dict.fromkeys(_operands(item.get("outputs")), found))
            inner = item.get("graph")
            if isinstance(inner, dict):
                degrees.update(dict.fromkeys(_operands(inner.get("inputs")), highest))
            pending += reversed(item.values())


def _degree(target: str, operands: list[object], degrees: Mapping[object, int]) -> int:
    """Return the degree of the result of `target`. Literals have degree 1, as they can be as large as a symbol."""
    found = [degrees.get(operand, 1) for operand in operands]
    if target == "_operator.pow":
        exponent = operands[-1] if operands else None
        return max(found) * exponent if isinstance(exponent, int) and exponent >= 0 else _HIGHEST_DEGREE + 1
    return sum(found) if target == "_operator.mul" else max(found, default=1)


def _operands(value: object) -> Iterator[object]:
    """Iterate over the names and numbers anywhere in a node's arguments."""
    if isinstance(value, list):
        for item in value:
            yield from _operands(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key in ("as_name", "as_int", "as_float"):
                yield item if isinstance(item, str | int | float) else None
            else:
                yield from _operands(item)
