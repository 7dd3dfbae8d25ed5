"""Find the function bodies of ONNX operators that are defined by other operators."""

from collections.abc import Mapping, Sequence
from typing import Any

from oarlock.interop.onnx.element_types import NUMBERS
from oarlock.interop.onnx.known_value import Known
from oarlock.interop.onnx.package import get_package
from oarlock.ir.var import Var

__all__ = ["find_body"]


def find_body(
    node: Any, attributes: Mapping[str, Any], domain: str, opset: int | None, inputs: Sequence[object]
) -> tuple[Any, dict[str, Any]] | None:
    """Return the FunctionProto of a node with these inputs, and the default attributes in its schema.

    None if there is no schema, or the schema has no body.
    """
    onnx = get_package()
    if opset is None:
        return None
    try:
        schema = onnx.defs.get_schema(node.op_type, min(opset, onnx.defs.onnx_opset_version()) if not domain else opset, domain)
    except onnx.defs.SchemaError:
        return None
    defaults = {name: item.default_value for name, item in schema.attributes.items() if item.default_value.type}
    if schema.has_function:
        return schema.function_body, defaults
    if not schema.has_context_dependent_function or not all(item is None or isinstance(item, Var | Known) for item in inputs):
        return None
    types = [_type_of(item, onnx).SerializeToString() for item in inputs]
    try:
        body = schema.get_context_dependent_function(_with(node, attributes, onnx).SerializeToString(), types)
        return (onnx.FunctionProto.FromString(body), defaults) if body else None
    except Exception:  # the schema does not support the node: it has no body for it
        return None


def _with(node: Any, attributes: Mapping[str, Any], onnx: Any) -> Any:
    """Return the node with its attributes, in which references are resolved."""
    found = onnx.NodeProto()
    found.CopyFrom(node)
    del found.attribute[:]
    for name, attribute in attributes.items():
        found.attribute.add().CopyFrom(attribute)
        found.attribute[-1].name = name
    return found


def _type_of(value: object, onnx: Any) -> Any:
    """Return the type of an input as a TypeProto; an empty one for an omitted input."""
    if not isinstance(value, Var | Known):
        return onnx.TypeProto()
    shape = None if value.shape is None else [size if isinstance(size, int) else None for size in value.shape]
    return onnx.helper.make_tensor_type_proto(NUMBERS[value.dtype], shape)
