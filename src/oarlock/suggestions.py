"""Suggestions for unknown names: similar names, ignoring case, and the same name in other modules."""

import difflib
import importlib
import sys
from collections.abc import Iterable
from types import ModuleType

from oarlock.errors import ArgumentError

__all__ = [
    "NAMES_OF_OTHERS",
    "OPERATORS_OF_OTHERS",
    "OPTIMIZERS_OF_OTHERS",
    "did_you_mean",
    "find_near",
    "list_names",
    "no_attribute",
    "no_member",
    "refuse_calls",
    "suggest_names",
]

NAMES_OF_OTHERS = {
    "T_0": ("period",),
    "T_max": ("steps",),
    "T_mult": ("multiplier",),
    "activation": ("act",),
    "base_lr": ("least",),
    "betas": ("beta1",),
    "clipnorm": ("clip",),
    "clipvalue": ("clip",),
    "decay_steps": ("steps", "every"),
    "dim": ("axis", "axes"),
    "dims": ("axes", "axis"),
    "eps": ("epsilon",),
    "eta_min": ("end",),
    "global_clipnorm": ("clip",),
    "history_size": ("history",),
    "in_features": ("size",),
    "initial_accumulator_value": ("initial_sum",),
    "initial_learning_rate": ("rate",),
    "input": ("x",),
    "keep_dims": ("keepdim",),
    "keepdims": ("keepdim",),
    "kernel_size": ("size",),
    "lambd": ("bound",),
    "line_search_fn": ("line_search",),
    "lr": ("learning_rate", "rate"),
    "lr_decay": ("rate_decay",),
    "max": ("upper",),
    "max_eval": ("evaluations",),
    "max_iter": ("iterations",),
    "max_lr": ("rate", "most"),
    "max_val": ("upper",),
    "min": ("lower",),
    "min_lr": ("least",),
    "min_val": ("lower",),
    "negative_slope": ("slope",),
    "num_classes": ("depth", "classes"),
    "num_groups": ("groups",),
    "other": ("y",),
    "out_features": ("size",),
    "p": ("rate",),
    "pct_start": ("rising",),
    "step_size": ("every",),
    "target": ("label", "y"),
    "tensors": ("xs",),
    "tolerance_grad": ("gradient_tolerance",),
    "total_iters": ("steps",),
    "total_steps": ("steps",),
    "units": ("size",),
    "weight": ("w", "filter", "scale"),
}
"""Argument names of PyTorch, NumPy and Keras, and the possible names of the same arguments here."""

OPERATORS_OF_OTHERS = {
    "avg_pool1d": "average_pool1d",
    "avg_pool2d": "average_pool2d",
    "avg_pool3d": "average_pool3d",
    "cat": "concat",
    "clamp": "clip",
    "concatenate": "concat",
    "div": "divide",
    "expand": "broadcast_to",
    "ge": "greater_equal",
    "gt": "greater",
    "le": "less_equal",
    "logsigmoid": "log_sigmoid",
    "lt": "less",
    "max": "reduce_max",
    "min": "reduce_min",
    "mul": "multiply",
    "ne": "not_equal",
    "norm": "vector_norm",
    "permute": "transpose",
    "pow": "power",
    "prod": "reduce_prod",
    "rand": "random_uniform",
    "randn": "random_normal",
    "std": "standard_deviation",
    "sub": "subtract",
    "sum": "reduce_sum",
    "topk": "top_k",
    "var": "variance",
}
"""Operator names of PyTorch and NumPy, and the names of the same operators here."""

OPTIMIZERS_OF_OTHERS = {
    "ConstantLR": "schedule.Constant",
    "CosineAnnealingLR": "schedule.CosineDecay",
    "CosineAnnealingWarmRestarts": "schedule.CosineRestarts",
    "CosineDecayRestarts": "schedule.CosineRestarts",
    "CyclicLR": "schedule.Cyclic",
    "EMA": "ExponentialAverage",
    "ExponentialLR": "schedule.ExponentialDecay",
    "LambdaLR": "schedule.Schedule",
    "LinearLR": "schedule.LinearDecay",
    "MultiStepLR": "schedule.MultiStepDecay",
    "OneCycleLR": "schedule.OneCycle",
    "PiecewiseConstantDecay": "schedule.Piecewise",
    "PolynomialLR": "schedule.PolynomialDecay",
    "ReduceLROnPlateau": "schedule.ReduceOnPlateau",
    "SequentialLR": "schedule.Sequential",
    "StepLR": "schedule.StepDecay",
    "clip_grad_norm_": "ClipByGlobalNorm",
    "clip_grad_value_": "ClipByValue",
}
"""Names of schedules and other classes of PyTorch and Keras, and their equivalents in `ol.optimizer`."""

_LISTED = 12  # names in a message
_LONGEST = 200  # the longest name to compare with others, in characters; the time is quadratic
_LIKE = 0.6
_MUCH_ALIKE = 0.75  # names of other modules must be more similar to be suggested
_SEARCHED = (
    "oarlock",
    "oarlock.layer",
    "oarlock.metric",
    "oarlock.optimizer",
    "oarlock.optimizer.schedule",
    "oarlock.op",
    "oarlock.layer.initializer",
    "oarlock.datasets",
)


def find_near(name: str, known: Iterable[str]) -> str | None:
    """Return the name in `known` that corresponds to `name` in other frameworks, or the most similar one, ignoring case, or None."""
    names = list(known)
    return next((each for each in NAMES_OF_OTHERS.get(name, ()) if each in names), None) or next(iter(_near(name, names, 1)), None)


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Return a hint with the most similar name in `known`, or None if there is none."""
    near = find_near(name, known)
    return f'did you mean "{near}"?' if near else None


def list_names(name: str, known: Iterable[str]) -> str:
    """Format the first of `known` as text, similar names first, with the number of further ones."""
    names = list(dict.fromkeys(known))
    names = list(dict.fromkeys([*_near(name, names, _LISTED), *names]))
    return ", ".join(names[:_LISTED]) + (f", and {len(names) - _LISTED} more" if len(names) > _LISTED else "")


def _near(name: str, known: Iterable[str], count: int, like: float = _LIKE) -> list[str]:
    if len(name) > _LONGEST:
        return []
    by_lower: dict[str, list[str]] = {}
    for each in known:
        by_lower.setdefault(each.lower(), []).append(each)
    near = difflib.get_close_matches(name.lower(), by_lower, n=count, cutoff=like)
    return [each for lower in near for each in sorted(by_lower[lower], key=lambda each: each != name)]


def no_attribute(module: str, name: str, known: Iterable[str], *, instead: str | None = None) -> AttributeError:
    """Return the error for a missing `name` in a module, with a suggestion from `known`, from another module, or `instead`."""
    hint = instead or _hint(module, name, known)
    return AttributeError(f"module {module!r} has no attribute {name!r:.80}; {hint}", name=name)


def no_member(kind: str, name: str, known: Iterable[str]) -> AttributeError:
    """Return the error for a missing attribute of a variable, with a suggestion of an attribute, or a function of that name."""
    message = f"{kind!r} object has no attribute {name!r:.80}"
    if name.startswith("_"):
        return AttributeError(message, name=name)
    functions = [(place, each) for place in ("oarlock.op", "oarlock.layer") for each in _names_of(place)]
    called = OPERATORS_OF_OTHERS.get(name, name)
    function = next((f"{_short(place)}.{each}(x)" for place, each in functions if each == called), None)
    near = find_near(name, [each for each in known if not each.startswith("_")])
    hint = f"; {function} is a function" if function else f"; did you mean {near}?" if near else ""
    return AttributeError(message + hint, name=name)


def suggest_names(module: str) -> None:
    """Make a module suggest similar names for a missing attribute. Modules with their own `__getattr__` are unchanged."""
    found = sys.modules[module]
    if type(found) is ModuleType and "__getattr__" not in vars(found):
        found.__class__ = _Suggesting


class _Suggesting(ModuleType):
    def __getattr__(self, name: str) -> object:
        raise no_attribute(self.__name__, name, vars(self).get("__all__") or list(vars(self)))


def refuse_calls(package: str) -> None:
    """Make modules inside `package` raise ArgumentError when they are called like a function, with a suggestion."""
    for module in list(vars(sys.modules[package]).values()):  # a copy, because other threads may import
        if type(module) in (ModuleType, _Suggesting) and module.__name__.startswith(f"{package}."):
            module.__class__ = _Uncalled
            refuse_calls(module.__name__)


class _Uncalled(_Suggesting):
    def __call__(self, *arguments: object, **keywords: object) -> object:
        package, _, name = self.__name__.rpartition(".")
        hint = _hint(package, name, _names_of(package))
        raise ArgumentError(f"{_short(self.__name__)} is a module and cannot be called", hint=hint)


def _hint(module: str, name: str, known: Iterable[str]) -> str:
    return _meant(module, name, known) or f"dir({_short(module)}) lists all names"


def _meant(module: str, name: str, known: Iterable[str]) -> str | None:
    """Return a hint with the intended name, or None if there is none. An equal name in another module precedes a similar name here."""
    if name.startswith("_"):  # looked up by Python and tools
        return None
    here = [each for each in known if not each.startswith("_")]
    if module == "oarlock.op" and OPERATORS_OF_OTHERS.get(name) in here:
        return f"did you mean {_short(module)}.{OPERATORS_OF_OTHERS[name]}?"
    if module.startswith("oarlock.optimizer") and name in OPTIMIZERS_OF_OTHERS:
        return f"did you mean ol.optimizer.{OPTIMIZERS_OF_OTHERS[name]}?"
    there = {place: _names_of(place) for place in _SEARCHED if place != module}
    near = _near(name, here, 1)
    same = [(place, each) for place, names in [(module, here), *there.items()] for each in names if each.lower() == name.lower()]
    similar = [(place, each) for place, names in there.items() for each in _near(name, names, 1, _MUCH_ALIKE)]
    mine = [(module, near[0])] if near else []
    found = same or sorted(mine + similar, key=lambda each: -difflib.SequenceMatcher(None, each[1].lower(), name.lower()).ratio())
    place, meant = found[0] if found else ("", "")
    return f"did you mean {_short(place)}.{meant}?" if found else None


def _names_of(place: str) -> list[str]:
    """Return the public names of a module, without submodules."""
    module = importlib.import_module(place)
    names = dir(module) if place == "oarlock.op" else getattr(module, "__all__", ())
    return [name for name in names if not name.startswith("_") and not isinstance(vars(module).get(name), ModuleType)]


def _short(module: str) -> str:
    return module.replace("oarlock", "ol", 1).replace(".compat_2017", "")  # users do not write it
