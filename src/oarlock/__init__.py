"""Oarlock: a model - forward, backward, update and control flow - is one program.

    import oarlock as ol

Names load what they need when they are first used, so that `oarlock.ir` and `oarlock.inference` stay light.
"""

import importlib

__version__ = "0.1.0.dev0"

_MODULES = (
    "datasets",
    "errors",
    "inference",
    "initializer",
    "io",
    "ir",
    "layer",
    "op",
    "optimizer",
    "passes",
    "registry",
    "runtime",
    "training",
)

_NAMES = {
    "oarlock.errors": (
        "ArgumentError",
        "DTypeError",
        "DataError",
        "DeclarationError",
        "FeedError",
        "FormatError",
        "GradientError",
        "KernelError",
        "LimitError",
        "MissingFileError",
        "OarlockError",
        "ProgramError",
        "ScopeError",
        "ShapeError",
        "TrainingProgramError",
        "UndefinedVarError",
        "UnknownOperatorError",
        "UnsetVarError",
        "VerifyError",
    ),
    "oarlock.ir": ("DType", "Program", "Var", "default_program"),
    "oarlock.io": ("Model", "infer", "load_model", "save_model"),
    "oarlock.layer": ("rnn",),
    "oarlock.passes.backward": ("append_backward", "gradients"),
    "oarlock.passes.pruning": ("prune",),
    "oarlock.proto.limits": ("Limits",),
    "oarlock.registry": ("Case", "GradCheck", "Rejects", "operator"),
    "oarlock.runtime": ("CPUPlace", "Context", "Executor", "GPUPlace", "Scope", "init"),
    "oarlock.training": ("TrainingResult", "train"),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted([*_MODULES, *_HOMES])


def __getattr__(name: str) -> object:
    if name == "initializer":
        value = importlib.import_module("oarlock.layer.initializer")
    elif name in _MODULES:
        value = importlib.import_module(f"oarlock.{name}")
    elif name in _HOMES:
        importlib.import_module("oarlock.op")  # arithmetic on variables, and the operators that files name
        value = getattr(importlib.import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module 'oarlock' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
