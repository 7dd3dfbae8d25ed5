"""Sanitize the JSON model of a `.pt2` archive.

PyTorch evaluates its expressions as Python, looks up its functions by name, and writes its names into Python code that it runs. Only plain
data is accepted: ATen operators and a few number functions by name, arithmetic on symbols, standard containers, and identifiers.
"""

import json
import re

import torch

from oarlock.backend.torch.private import OpOverload, schema_of
from oarlock.errors import FormatError, LimitError
from oarlock.interop.torch.archive_expression import is_symbol, require_degree, require_expression
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
