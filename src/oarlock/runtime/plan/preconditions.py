"""The preconditions of a plan that writes over values: there is no way back when an update fails then."""

import math
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

import torch

from oarlock.ir.operation import Op
from oarlock.tensor.dtype import to_torch

if TYPE_CHECKING:
    from oarlock.runtime.plan.emitter import Emitter

__all__ = ["attributes_fit", "write_preconditions"]


def write_preconditions(emitter: "Emitter", updates: Sequence[Op]) -> None:
    """Write the calls of the preconditions of some ops, each once for what it is given."""
    source, written = emitter.source, set[str]()
    for op in updates:
        for check, names in emitter.catalogue.get(op.type).preconditions.items():
            for arguments in product(*(_texts(emitter, op, name) for name in names)):
                call = f"{source.bind(check.__name__.strip('_'), check)}({', '.join(arguments)})"
                if call not in written:
                    source.write(call, op)
                    written.add(call)


def _texts(emitter: "Emitter", op: Op, name: str) -> list[str]:
    """The texts of what one parameter of a precondition is given: of a variadic slot, each in turn."""
    if name in op.inputs:
        return [emitter.source.name(var) for var in op.inputs[name]]
    dtypes = dict.fromkeys(var.dtype for var in op.inputs[name.removesuffix("_dtype")])
    return [emitter.source.bind(str(dtype), to_torch(dtype)) for dtype in dtypes]


def attributes_fit(op: Op) -> bool:
    """Whether results of an op hold the numbers among its attributes, which kernels convert to their dtype, and refuse otherwise."""
    largest = min((torch.finfo(to_torch(var.dtype)).max for var in op.writes if var.dtype.is_floating), default=math.inf)
    numbers = [value for value in op.attributes.values() if isinstance(value, float)]
    return all(abs(number) <= largest or not math.isfinite(number) for number in numbers)
