"""Converts exceptions of kernels to KernelError, with the user's line, the position in the run and the inputs."""

from collections.abc import Mapping

import torch

from oarlock.errors import KernelError
from oarlock.ir.operation import Op
from oarlock.ir.var import Var

__all__ = ["explain"]


def explain(error: Exception, op: Op, values: Mapping[Var, object], path: str) -> KernelError:
    """Return the KernelError for `error`, raised by the kernel of `op` on `values` in the scope at `path`."""
    reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    width = max((len(slot) for slot in op.inputs), default=0)
    given = [f'{slot:<{width}} = "{var.name}" {_describe(values[var])}' for slot, vars in op.inputs.items() for var in vars]
    where = f"{op.block.path}, op {op.block.ops.index(op)} of {len(op.block.ops)}"
    return KernelError(
        f"{op.type}: {reason}",
        location=op.location,
        running=where + (f", scope {path}" if path else ""),
        given=given,
        hint="no state was changed; fix the inputs and run the step again",
        op=op.type,
    )


def _describe(value: object) -> str:
    """Describe a value: `int64[32], values 3 to 10000`."""
    if not isinstance(value, torch.Tensor):
        return repr(value)
    text = f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if value.numel() and not value.is_complex():
        text += f", values {value.min().item():.6g} to {value.max().item():.6g}" if value.dtype != torch.bool else ""
    return text
