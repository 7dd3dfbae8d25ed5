"""A model: a program and the values that it needs. Saved as one file, loaded without the Python that wrote it."""

import importlib
import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, overload

import numpy
import torch

from oarlock.errors import ArgumentError, FormatError, TrainingProgramError, UndefinedVarError, UnsetVarError
from oarlock.io.container import as_declared, read_container, write_container
from oarlock.io.listings import COLUMNS, FROZEN, PREDICTION, listing, listings_of, read_columns, read_frozen, read_prediction
from oarlock.ir.location import here
from oarlock.ir.names import COUNTER, DRAWS
from oarlock.ir.operation import Role
from oarlock.ir.program import Program
from oarlock.ir.serialization import read_program
from oarlock.ir.traversal import walk
from oarlock.ir.var import Var
from oarlock.out_of_memory import refuses_memory
from oarlock.passes.pruning import prune, require_targets
from oarlock.proto.limits import Limits
from oarlock.registry.catalogue import Catalogue, standard
from oarlock.registry.type_check import typecheck
from oarlock.runtime.budget import RunLimits
from oarlock.runtime.declaration_check import require_declared
from oarlock.runtime.executor import Backend, Executor, require_backend
from oarlock.runtime.feed import check_feed
from oarlock.runtime.initialization import initial_value
from oarlock.runtime.ownership import own, require_not_elsewhere, states_of
from oarlock.runtime.place import CPUPlace
from oarlock.runtime.scope import Scope, frozen_in
from oarlock.suggestions import did_you_mean, list_names
from oarlock.tensor.dtype import from_torch

__all__ = ["Model", "infer", "load_model", "program_of", "read_model", "save_model", "scope_of", "values_of"]


@dataclass
class Model:
    """A program, and a scope that holds its parameters and state; `limits` of its runs, where a stranger wrote it; and the `columns` of
    the table that inputs were fed from, where they are known. A training program may have a `prediction` beside it: the bytes of the
    program that predicts by the same parameters.
    """

    program: Program
    scope: Scope
    catalogue: Catalogue = field(default=standard, repr=False)
    limits: RunLimits | None = field(default=None, repr=False)
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict, repr=False)
    prediction: bytes | None = field(default=None, repr=False)
    executor: Executor = field(init=False, repr=False)
    sessions: dict[str, Any] = field(init=False, repr=False, default_factory=dict)  # of other runtimes, by backend

    def __post_init__(self) -> None:
        self.executor = Executor(catalogue=self.catalogue, limits=self.limits)

    def to_onnxruntime(self, *, threads: int | None = None) -> Any:
        """The model, as it is now, in a session of ONNX Runtime: `infer(feed)` takes and gives what `ol.infer(model, feed)` does.

        Raises ArgumentError where `onnxruntime` is not installed and for an untrusted model, ProgramError with what ONNX cannot say.
        """
        return _onnxruntime().OnnxRuntimeModel(self, threads=threads)


def _onnxruntime() -> Any:
    """The module of a floor above, which is imported by whoever asks for it."""
    return importlib.import_module("oarlock.interop.onnx.runtime")


PathLike = str | os.PathLike[str]
_SAVE = ("dataset", "parameters", "path"), "save_model takes a target, perhaps a dataset, the parameters and a path"
_LOAD = ("target", "path"), "load_model takes a path, or a target and a path"
FedColumns = Mapping[str, Sequence[str]]
Targets = Var | Sequence[Var] | Mapping[str, Var] | Program


class Trained(Protocol):
    """A program with its values: the result of `ol.train` or of `ol.load_model`."""

    @property
    def program(self) -> Program: ...


Parameters = Scope | Trained | Mapping[str, Any]
"""Where values are found: a scope, the result of `ol.train` or `ol.load_model`, or arrays by name."""


@overload
def save_model(
    target: Targets, parameters: Parameters, path: PathLike | io.BufferedIOBase, *, columns: FedColumns | None = None
) -> None: ...


@overload
def save_model(
    target: Targets,
    dataset: Mapping[str, Any],
    parameters: Parameters,
    path: PathLike | io.BufferedIOBase,
    *,
    columns: FedColumns | None = None,
) -> None: ...


@overload
def save_model(target: Trained, path: PathLike | io.BufferedIOBase, *, columns: FedColumns | None = None) -> None: ...


def save_model(target: object = None, *arguments: object, columns: FedColumns | None = None, **keywords: object) -> None:
    """Write a program and its values to one file.

        save_model(predict, parameters, path)       a program pruned to the variable `predict`
        save_model([a, b], parameters, path)        a program pruned to several variables; or {"label": variable}
        save_model(program, parameters, path)       a whole program: a training program goes on where it stopped
        save_model(result, path)                    the result of `ol.train` or `ol.load_model`, whole
        save_model(cost, dataset, parameters, path) as the first, after a check that `dataset` fits its inputs

    `parameters` is a scope, the result of `ol.train`, or a dict of arrays; `path` may also be an open binary file. All arguments may be
    given by these names: `save_model(predict, parameters=scope, path="model.safetensors")`. `columns` are those of a table that inputs
    are fed from, by their names there: the command line finds them by these. A model keeps its own, unless others are given.
    Raises ArgumentError, FeedError for a dataset that does not fit, UndefinedVarError for a name in the dict that nothing has,
    UnsetVarError or ShapeError for a value that is missing or does not fit, ScopeError for the state of another program's optimizer,
    MissingFileError where there is no folder, WriteError where the system refuses; the file at `path` is then as it was.
    """
    program = getattr(target, "program", None)
    arguments = _in_order(*_SAVE, arguments, keywords)
    path, parameters = arguments[-1], target
    if len(arguments) > 1:
        program, parameters = program_of(target), arguments[-2]
        if len(arguments) == 3:
            check_feed(program, _only_inputs(program, arguments[0]), set(program.main.inputs), CPUPlace())
    if program is None:
        raise ArgumentError(_SAVE[1])
    if not isinstance(path, str | os.PathLike | io.BufferedIOBase):
        raise ArgumentError(f"the path comes last, and is text, not {type(path).__name__}")
    scope = scope_of(parameters, _written_in(target))
    if program.is_training:
        require_not_elsewhere(program, scope, program.persistables())
    tensors, inputs = values_of(program, scope), {var.name for var in program.main.inputs}
    known = getattr(target, "columns", None) if columns is None else columns
    listed = {name: list(names) for name, names in (known or {}).items() if name in inputs}
    write_container(path, program.to_bytes(), tensors | listings_of(listed, getattr(target, "prediction", None)))


def values_of(program: Program, scope: Scope, *, lent: bool = True, wanted: Sequence[Var] | None = None) -> dict[str, torch.Tensor]:
    """The tensors that a file of `program` holds, by name: what persists, or of that what is wanted, and a list of what training leaves
    as it is.

    They are lent: the next run that would write over them works on copies. Where they are not, who reads them holds `lock_of_writing`.

    Raises UnsetVarError, ShapeError or DTypeError for a value that is missing or does not fit.
    """
    tensors = {var.name: _value(var, scope, lent=lent) for var in (program.persistables() if wanted is None else wanted)}
    frozen = frozen_in(scope)
    listed = sorted(frozen.intersection(_estimable(program))) if frozen else []
    if listed:
        tensors[FROZEN] = listing(listed)
    return tensors


def _in_order(names: Sequence[str], message: str, arguments: tuple[object, ...], keywords: dict[str, object]) -> tuple[object, ...]:
    """The arguments with these `names`, of which the first may be missing, by place or by name. Raises ArgumentError with `message`."""
    count = len(arguments) + len(keywords)
    names = names if names[0] in keywords else names[-count:]
    free = [name for name in names if name not in keywords]
    given = {**dict(zip(free, arguments, strict=False)), **keywords}
    if not keywords.keys() <= set(names) or len(arguments) > len(free) or names[-1] not in given:
        raise ArgumentError(message)
    return tuple(given[name] for name in names if name in given)


def _estimable(program: Program) -> set[str]:
    """The names of what training may change."""
    return {var.name for var in program.persistables() if var.trainable} if program.is_training else set()


def _value(var: Var, scope: Scope, *, lent: bool = True) -> torch.Tensor:
    """The value of a persistable variable in `scope`. Raises UnsetVarError, ShapeError or DTypeError."""
    found = scope.find_var(var.name)
    if var.name == DRAWS and (found is None or not found.is_set):
        return initial_value(var, 0)  # nothing was drawn
    if found is None or not found.is_set:
        raise UnsetVarError(
            f'the parameters hold no value of "{var.name}"',
            given=[var.describe()],
            hint="ol.train returns parameters; ol.init(program, scope) makes first ones",
        )
    held = require_declared(var, found.settle(var.dtype))
    return require_declared(var, found.value) if lent else held


def program_of(target: object) -> Program:
    """The program to write for a target: itself, or pruned to the variables."""
    if isinstance(target, Program):
        require_targets(target.targets)
        return target
    targets = {"predict": target} if isinstance(target, Var) else target
    if isinstance(targets, list | tuple) and targets and all(isinstance(item, Var) for item in targets):
        targets = {item.name: item for item in targets}
    if not isinstance(targets, Mapping) or not targets or not all(isinstance(item, Var) for item in targets.values()):
        raise ArgumentError(f"a model is saved by its variables or its program, not by {type(target).__name__} {target!r:.60}")
    return prune(next(iter(targets.values())).block.program, targets)


def _written_in(target: object) -> Program | None:
    """The whole program of a target."""
    if isinstance(target, Program):
        return target
    items = target.values() if isinstance(target, Mapping) else target if isinstance(target, list | tuple) else [target]
    return next((item.block.program for item in items if isinstance(item, Var)), None)


def _only_inputs(program: Program, dataset: object) -> dict[str, object]:
    if not isinstance(dataset, Mapping):
        raise ArgumentError(f"a dataset is a dict of arrays, not {type(dataset).__name__}")
    names = {var.name for var in program.main.inputs}
    return {name: array for name, array in dataset.items() if name in names}


def scope_of(parameters: object, program: Program | None) -> Scope:
    """The scope in what may be passed as parameters of `program`. Raises ArgumentError, UndefinedVarError for a name in a dict."""
    for holder in ("scope", "parameters"):
        if isinstance(getattr(parameters, holder, None), Scope):
            return getattr(parameters, holder)
    if isinstance(parameters, Scope):
        return parameters
    if isinstance(parameters, Mapping):
        if program is not None and COUNTER not in parameters:  # else it is all that a run left, its optimizer's state too
            _require_declared_names(parameters, program)
        scope = Scope()
        for name, value in parameters.items():
            scope.set(name, value)
        return scope
    raise ArgumentError(f"parameters are a scope, what ol.train returned, or a dict of arrays, not {type(parameters).__name__}")


def _require_declared_names(values: Mapping[str, object], program: Program) -> None:
    """Raise UndefinedVarError for a name among `values` that nothing in the program has which holds a value."""
    known = [var.name for var in (*program.persistables(), *program.main.inputs)]
    for name in values:
        if name not in known:
            raise UndefinedVarError(
                f'"{name}" is given a value, and no parameter or input of the program is called so',
                location=here(),
                given=[f"there are: {list_names(str(name), known)}" if known else "there is nothing"],
                hint=did_you_mean(str(name), known),
            )


@overload
def load_model(path: PathLike, *, limits: Limits | None = None, untrusted: bool = False) -> Model: ...


@overload
def load_model(target: Var | str, path: PathLike, *, limits: Limits | None = None, untrusted: bool = False) -> Model: ...


@refuses_memory
def load_model(*arguments: object, limits: Limits | None = None, untrusted: bool = False, **keywords: object) -> Model:
    """Read a model file; nothing in it is run, and its program is verified first.

        load_model(path)            the program in the file and its values
        load_model(predict, path)   pruned to the variable of that name, a Var or text, which is its target's label too

    Both may be given by the names `target` and `path`.
    With `untrusted`, the file must be no symbolic or hard link, and what the model runs is counted (`RunLimits`).
    `ol.run_untrusted` also puts both into a process with limits of the system's own.

    Raises MissingFileError, ReadError, FormatError, LimitError, VerifyError, UnknownOperatorError or UndefinedVarError.
    """
    import oarlock.op.update  # noqa: F401  training programs use its operators

    arguments = _in_order(*_LOAD, arguments, keywords)
    path = arguments[-1]
    if not isinstance(path, str | os.PathLike):
        raise ArgumentError(_LOAD[1])
    model = read_model(path, standard, limits=limits, untrusted=untrusted)
    if len(arguments) == 1:
        return model
    target = arguments[0]
    name = target.name if isinstance(target, Var) else target
    if not isinstance(name, str):
        raise ArgumentError(f"a target is a variable or its name, not {type(target).__name__}")
    var = model.program.find_target(name)
    if var is None:
        raise UndefinedVarError(
            f'"{Path(path).name}" holds no variable "{name}"',
            given=[f"it was saved for {', '.join(model.program.targets) or 'no target'}, and holds what that needs"],
            hint="ol.save_model([cost, predict], parameters, path) saves what both need",
        )
    return Model(prune(model.program, {name: var}), model.scope, limits=model.limits, columns=model.columns)


def read_model(
    path: str | os.PathLike[str] | bytes,
    catalogue: Catalogue,
    *,
    elsewhere: Callable[[Var], torch.Tensor | None] | None = None,
    limits: Limits | None = None,
    untrusted: bool = False,
) -> Model:
    """Read a model file, or the bytes of one, whose operators are in `catalogue`. One without gradients refuses training programs.

    `elsewhere` gives the value of a variable of which the file has none, or None where there is none there either.
    """
    data, tensors = read_container(path, limits=limits, untrusted=untrusted)
    program = read_program(data, limits=limits)
    if catalogue.is_forward_only:
        _refuse_training(program)
    typecheck(program, catalogue)
    variables = {var.name: var for var in program.persistables()}
    for name in sorted(variables.keys() - tensors.keys()):
        found = None if elsewhere is None else elsewhere(variables[name])
        if found is not None:
            tensors[name] = found
            continue
        raise FormatError(f'the file holds no value of "{name}"', given=[variables[name].describe()])
    scope = Scope()
    for name in variables:
        var = variables[name]
        tensor = as_declared(tensors.pop(name), var.dtype)
        if tuple(tensor.shape) != var.shape or from_torch(tensor.dtype) is not var.dtype:
            raise FormatError(
                f'the file holds "{name}" as {from_torch(tensor.dtype)}{list(tensor.shape)}',
                given=[var.describe()],
            )
        scope.var(name).give(tensor, own=True)
    own(program, scope, states_of(program))
    frozen = read_frozen(tensors.pop(FROZEN, None), _estimable(program))
    columns, prediction = read_columns(tensors.pop(COLUMNS, None), program), read_prediction(tensors.pop(PREDICTION, None))
    for name in _estimable(program):
        scope.var(name).estimated = name not in frozen
    for name in tensors:
        raise FormatError(f"the file holds {json.dumps(name[:80])}, which its program does not declare")
    return Model(program, scope, catalogue, RunLimits() if untrusted else None, columns, prediction)


def _refuse_training(program: Program) -> None:
    roles = [op.role for op in walk(program.main)]
    backward, update = roles.count(Role.BACKWARD), sum(op.role is Role.UPDATE for op in program.main.tail)
    if backward or update:
        raise TrainingProgramError(
            f"this is a training program: it has {backward} gradient ops and updates {update} variables",
            hint="save what predicts with ol.save_model(predict, parameters, path), or load it with ol.load_model",
        )


def infer(target: object, *arguments: object, backend: str | None = None) -> numpy.ndarray | dict[str, numpy.ndarray]:
    """Compute what a model predicts: one array, or a dict of them by label where it has several targets.

        infer(model, feed)                  what `ol.load_model` returned
        infer(predict, feed, parameters)    a variable, and the values it needs
        infer(predict, parameters)          where the inputs carry their values

    `feed` maps inputs to arrays; names that are no inputs raise FeedError. Nothing is changed by it. With `backend="onnxruntime"`, ONNX
    Runtime computes it, in a session that a model keeps as long as its values stay; other backends are those of `Executor`.
    Raises ArgumentError, UndefinedVarError for a name in a dict of parameters that nothing has, and what `Executor.eval` raises.
    """
    feed: Mapping[str, object] | None = None
    parameters: object = None
    for argument in arguments:
        if feed is None and isinstance(argument, Mapping):
            feed = argument
        elif parameters is None:
            parameters = argument
        else:
            raise ArgumentError("infer takes a target, perhaps a feed, and perhaps parameters")
    if isinstance(target, Var):
        program, executor = prune(target.block.program, {"predict": target}), Executor(backend=_of_executor(backend))
        kept, fed = ({var.name for var in vars} for vars in (target.block.program.persistables(), target.block.program.main.inputs))
        if parameters is None and feed and kept.intersection(feed) and not fed.intersection(feed):
            feed, parameters = None, feed  # values by the names of parameters, and of nothing that is fed
        scope = Scope() if parameters is None else scope_of(parameters, target.block.program)
    elif isinstance(target, Model):
        if parameters is not None:
            raise ArgumentError("a model has its parameters already; infer(model, feed) takes no others")
        program, executor, scope = target.program, target.executor, target.scope
        if _of_executor(backend) is not None:
            executor = Executor(catalogue=target.catalogue, limits=target.limits, backend=_of_executor(backend))
    else:
        raise ArgumentError(f"infer takes a model or a variable, not {type(target).__name__}")
    if backend == "onnxruntime":
        return _onnxruntime().runtime_of(target if isinstance(target, Model) else Model(program, scope)).infer(feed)
    values = executor.eval(program, list(program.targets), feed, scope=scope)
    results = {label: numpy.asarray(value) for label, value in zip(program.targets, values, strict=True)}
    return next(iter(results.values())) if len(results) == 1 else results


def _of_executor(backend: str | None) -> Backend | None:
    """The backend of an executor; None for ONNX Runtime, which is none. Raises ArgumentError."""
    return None if backend == "onnxruntime" else require_backend(backend)
