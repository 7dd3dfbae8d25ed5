"""Evaluate nodes with known inputs at import: symbolic sizes by folds, numbers by running the operators."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from oarlock.interop.onnx.known_value import MOST_ELEMENTS, Known, known_numbers
from oarlock.interop.onnx.program_writer import ProgramWriter
from oarlock.interop.onnx.rule import Rule, folds
from oarlock.ir.program import Program
from oarlock.ir.size import product
from oarlock.ir.var import Var
from oarlock.runtime.executor import Executor
from oarlock.runtime.scope import Scope

if TYPE_CHECKING:
    from oarlock.interop.onnx.importer import Importer, Names, Value

__all__ = ["folded"]

_FEW = 64  # elements of a float initializer that is still treated as a setting, not as a weight


def folded(
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
