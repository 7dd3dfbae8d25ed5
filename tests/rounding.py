"""Which values of a program are promised to the bit, whoever computes them, and which are promised within rounding."""

from collections.abc import Mapping

import numpy
import torch
from tolerances import PLANS_DIFFER

import oarlock as ol
from oarlock.ir.operation import Op
from oarlock.ir.traversal import walk_ops
from oarlock.registry.catalogue import standard

__all__ = ["require_as_interpreted", "rounded_by_place"]


def rounded_by_place(program: ol.Program) -> set[str]:
    """The variables that depend on an op which rounds by place, in this step or by what a step before has committed.

    Of a block in which there is such an op it is all variables.
    """
    rounded: set[str] = set()
    count = -1
    while count != len(rounded):  # a commit changes what the first op of the next step reads
        count = len(rounded)
        for op in program.main.ops:
            if _rounds(op) or any(var.name in rounded for var in op.reads):
                rounded.update(var.name for each in walk_ops([op]) for var in each.writes)
    return rounded


def _rounds(op: Op) -> bool:
    """Whether an op, or one in a block of it, rounds by place."""
    return any(not each.is_commit and standard.get(each.type).sensitive_to == "place" for each in walk_ops([op]))


def require_as_interpreted(program: ol.Program, values: Mapping[str, object], expected: Mapping[str, object]) -> None:
    """That what a plan without passes computes of variables, arrays or tensors by name, is what the interpreter computes.

    It is the same bits, or within rounding where a variable is rounded by place.
    """
    rounded = rounded_by_place(program)
    for name, wanted in expected.items():
        one, other = (numpy.asarray(value) for value in (values[name], wanted))
        assert (one.dtype, one.shape) == (other.dtype, other.shape), name
        if name in rounded and one.dtype.kind == "f":
            relative, absolute = PLANS_DIFFER[torch.from_numpy(one).dtype]
            numpy.testing.assert_allclose(one, other, rtol=relative, atol=absolute, equal_nan=True, err_msg=name)
        else:
            assert one.tobytes() == other.tobytes(), name
