"""Inference only: no optimizer, no training, no gradient operators.

from oarlock import inference
model = inference.load_model("digits.safetensors")
inference.infer(model, {"image": images})
"""

import os

import oarlock.op  # noqa: F401  registers the operators
from oarlock.io.model import Model, infer, read_model
from oarlock.out_of_memory import refuses_memory
from oarlock.proto.limits import Limits
from oarlock.registry.catalogue import standard
from oarlock.runtime.scope import Scope
from oarlock.suggestions import suggest_names

__all__ = ["Model", "Scope", "infer", "load_model"]


@refuses_memory
def load_model(path: str | os.PathLike[str], *, limits: Limits | None = None, untrusted: bool = False) -> Model:
    """Read a model file, like `ol.load_model`. Raises the same errors, and TrainingProgramError for a training program."""
    return read_model(path, standard.forward_only(), limits=limits, untrusted=untrusted)


suggest_names(__name__)
