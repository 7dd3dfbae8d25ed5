"""Program -> Program, one idea per file. Here are those that a user asks for; each is loaded when it is first used."""

import importlib
from typing import TYPE_CHECKING

from oarlock.registry.checked_call import checked
from oarlock.suggestions import no_attribute

if TYPE_CHECKING:
    from oarlock.passes.parallel.rewrite import data_parallel, tensor_parallel
    from oarlock.passes.parallel.sharded_optimizer import shard_optimizer
    from oarlock.passes.precision.mixed import mixed_precision
    from oarlock.passes.precision.quantization import quantize
    from oarlock.passes.recomputation.recompute import recompute

__all__ = ["data_parallel", "mixed_precision", "quantize", "recompute", "shard_optimizer", "tensor_parallel"]

_HOMES = {
    "data_parallel": "oarlock.passes.parallel.rewrite",
    "mixed_precision": "oarlock.passes.precision.mixed",
    "quantize": "oarlock.passes.precision.quantization",
    "recompute": "oarlock.passes.recomputation.recompute",
    "shard_optimizer": "oarlock.passes.parallel.sharded_optimizer",
    "tensor_parallel": "oarlock.passes.parallel.rewrite",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise no_attribute(__name__, name, __all__)
    globals()[name] = value = checked(getattr(importlib.import_module(_HOMES[name]), name))
    return value
