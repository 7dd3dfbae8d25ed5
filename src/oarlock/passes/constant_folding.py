"""Constant folding: what is computed of constants alone is a constant."""

import math
from collections.abc import Mapping

import torch

from oarlock.ir.attribute import Sizes
from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.var import Var
from oarlock.passes.rewriter import declare, is_pure, new_op, rewrite
from oarlock.registry.catalogue import Catalogue
from oarlock.registry.declaration import Operator
from oarlock.registry.value_checks import checks_values

__all__ = ["constant_folding", "is_small"]

_MOST_ELEMENTS = 4096  # that are computed while a plan is prepared


def constant_folding(program: Program, catalogue: Catalogue) -> int:
    """Fold the constants of `program`; return how many ops became one.

    Before                                   After
        zero = full(0, int64)                    c = full(true, bool)
        limit = full(50, int64)                  s, n = while(c, s0, zero, body=...)
        c = less(zero, limit)
        s, n = while(c, s0, zero, body=...)

    Legal for an op of constants, and of shapes that are numbers, that computes the same at any time and cannot refuse values, where each
    result is one finite number repeated: it becomes a `full`, so that the program stays data. The op's own kernel computes it, once: values
    keep their bits. Does not apply to results of different elements, or to tensors of more than 4096: the plan would wait for these.
    """
    return rewrite(program, _Folding(catalogue))


class _Folding:
    def __init__(self, catalogue: Catalogue):
        self.catalogue = catalogue
        self.constants: set[Var] = set()

    def __call__(self, op: Op, before: list[Op]) -> Mapping[Var, Var]:
        operator = self.catalogue.get(op.type)
        if op.type == "full":
            if is_small(op.writes[0]) and not any(isinstance(value, Var) for value in op.attributes.values()):
                self.constants.update(op.writes)
            return {}
        if not self._is_foldable(operator, op):
            return {}
        try:
            results = _compute(operator, op, self.catalogue)
        except Exception:  # it fails when it runs, too, and the message tells where
            return {}
        numbers = [_repeated(result) for result in results]
        if None in numbers:
            return {}
        replaced: dict[Var, Var] = {}
        for var, number, result in zip(op.writes, numbers, results, strict=True):
            replaced[var] = declare(var, tuple(result.shape))
            attributes = {"shape": Sizes(result.shape), "value": number, "dtype": var.dtype}
            before.append(new_op(op, "full", {}, {"y": replaced[var]}, self.catalogue, attributes))
        self.constants.update(replaced.values())
        return replaced

    def _is_foldable(self, operator: Operator, op: Op) -> bool:
        if checks_values(operator, op) or not is_pure(operator, op) or op.is_commit or not op.inputs:
            return False
        if any(isinstance(value, Var) for value in op.attributes.values()) or not all(map(is_small, op.writes)):
            return False
        shape_only = {slot.name for slot in operator.signature.inputs if slot.shape_only}
        return all(_is_static(var) if slot in shape_only else var in self.constants for slot, vars in op.inputs.items() for var in vars)


def _is_static(var: Var) -> bool:
    return var.shape is not None and all(isinstance(size, int) for size in var.shape)


def is_small(var: Var) -> bool:
    """Whether `var` has so few elements, by its declared shape, that a plan may have them while it is prepared."""
    return _is_static(var) and math.prod(var.shape or ()) <= _MOST_ELEMENTS  # type: ignore[arg-type]


def _compute(operator: Operator, op: Op, catalogue: Catalogue) -> list[torch.Tensor]:
    """The results of the kernel, on the CPU."""
    with torch.no_grad(), torch.device("cpu"):
        return operator.run(op, lambda var: _value(var, catalogue), lambda var: torch.Size(var.shape))  # type: ignore[arg-type]


def _value(var: Var, catalogue: Catalogue) -> torch.Tensor:
    assert var.op is not None
    (value,) = _compute(catalogue.get("full"), var.op, catalogue)
    return value


def _repeated(tensor: torch.Tensor) -> float | None:
    """The number that every element is, as a `full` holds it; None where they differ, or where it cannot."""
    if not tensor.numel():
        return None
    first = tensor.reshape(-1)[0]
    number = float((first.real if first.is_complex() else first).item())
    filled = torch.full(tensor.shape, number, dtype=tensor.dtype) if math.isfinite(number) else None
    return number if filled is not None and _bits(filled) == _bits(tensor) else None


def _bits(tensor: torch.Tensor) -> bytes:
    """The elements as bytes, of a copy: one element alone may lie at any distance from the next, and be called contiguous."""
    return tensor.clone(memory_format=torch.contiguous_format).view(-1).view(torch.uint8).numpy().tobytes()
