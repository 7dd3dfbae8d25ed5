"""Oarlock: a model (forward, backward, update and control flow) is one program.

    import oarlock as ol

Names are imported on first use, so that `oarlock.ir` and `oarlock.inference` stay light.
"""

import importlib
from types import ModuleType

from oarlock.garbage_collection import collection_paused

__version__ = "0.1.0.dev0"

_MODULES = (
    "cpp",
    "data",
    "datasets",
    "errors",
    "framework",
    "inference",
    "io",
    "ir",
    "layer",
    "metric",
    "net",
    "op",
    "optimizer",
    "passes",
    "profiling",
    "registry",
    "runtime",
    "scope",
    "testing",
    "training",
    "variable",
)
_OF_2017 = ("cpp", "framework", "net", "scope", "variable")  # defined in compat_2017
_WITH_OPERATORS = ("cpp", "framework", "layer", "metric", "net", "op", "optimizer", "registry", "runtime", "testing", "variable")

_NAMES = {
    "oarlock.cli.untrusted_run": ("ProcessLimits", "run_untrusted"),
    "oarlock.drawing": ("ProgramDrawing", "draw"),
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
        "NotFiniteError",
        "OarlockError",
        "ProgramError",
        "ReadError",
        "ScopeError",
        "ShapeError",
        "TrainingProgramError",
        "UndefinedVarError",
        "UnknownOperatorError",
        "UnsetVarError",
        "UnsupportedError",
        "VerifyError",
        "WorkerError",
        "WriteError",
    ),
    "oarlock.interop.onnx.importing": ("from_onnx",),
    "oarlock.interop.torch.imported": ("from_torch", "to_torch_state"),
    "oarlock.ir": ("Block", "DType", "Program", "Var", "default_program", "get_variable"),
    "oarlock.ir.diff": ("diff_programs",),
    "oarlock.ir.content_hash": ("content_hash",),
    "oarlock.ir.row_gradient": ("RowGradient",),
    "oarlock.interop.onnx.export": ("to_onnx",),
    "oarlock.interop.weights": ("load_weights",),
    "oarlock.io": ("Model", "infer", "load_model", "save_model"),
    "oarlock.io.quantization": ("quantize",),
    "oarlock.compat_2017.evaluation": ("evaluate as eval",),
    "oarlock.layer": (
        "case",
        "cond",
        "ifelse",
        "initializer",
        "larger_than",
        "minibatch",
        "sequence",
        "switch",
        "switch_case",
        "var",
        "while_loop",
    ),
    "oarlock.layer.parameter_options": ("at_place",),
    "oarlock.layer.dense": ("fc",),
    "oarlock.layer.inputs": ("variable as Variable",),
    "oarlock.layer.program_summary": ("ProgramSummary", "SummaryRow", "summary"),
    "oarlock.layer.control.rnn": ("rnn",),
    "oarlock.layer.control.step_network": ("create_rnn",),
    "oarlock.compat_2017.net": ("Net", "NetBuilder"),
    "oarlock.op.activation": ("sigmoid",),
    "oarlock.op.elementwise": ("add",),
    "oarlock.passes.backward": ("append_backward", "gradients"),
    "oarlock.passes.pruning": ("prune",),
    "oarlock.profiling": ("Profile", "profile"),
    "oarlock.proto.limits": ("Limits",),
    "oarlock.registry": ("Case", "GradCheck", "Rejects", "operator", "parse_program"),
    "oarlock.runtime": (
        "CPUPlace",
        "Context",
        "Executor",
        "GPUPlace",
        "Place",
        "ProcessSettings",
        "Ragged",
        "RunLimits",
        "Scope",
        "Step",
        "infer_shape",
        "init",
        "run_block",
        "configure_process",
    ),
    "oarlock.training": ("TrainingResult", "evaluate", "settings", "train"),
}
_HOMES: dict[str, tuple[str, str]] = {}
for _module, _names in _NAMES.items():
    for _name in _names:
        _there, _, _here = _name.partition(" as ")
        _HOMES[_here or _there] = (_module, _there)

__all__ = sorted([*_MODULES, *_HOMES])


def __getattr__(name: str) -> object:
    if name in _HOMES or name in _WITH_OPERATORS:
        _load("oarlock.op.update")  # registers all operators, and arithmetic on variables
    if name in _MODULES:
        value = _load(f"oarlock.compat_2017.{name}" if name in _OF_2017 else f"oarlock.{name}")
    elif name in _HOMES:
        module, attribute = _HOMES[name]
        value = _load("oarlock.registry.checked_call").checked(getattr(_load(module), attribute))
    else:
        from oarlock.old_names import OLD_FUNCTIONS, renamed
        from oarlock.suggestions import no_attribute

        if name in OLD_FUNCTIONS:
            return __getattr__(renamed("function", name, OLD_FUNCTIONS))
        raise no_attribute("oarlock", name, __all__)
    globals()[name] = value
    return value


def _load(module: str) -> ModuleType:
    with collection_paused():
        return importlib.import_module(module)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
