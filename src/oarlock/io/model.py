"""Models: a program with its values. Saved as one file, and loaded without the Python that wrote it."""

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
from oarlock.runtime.executor import Backend, Executor, require_backend
from oarlock.runtime.feed import check_feed
from oarlock.runtime.initialization import initial_value
from oarlock.runtime.ownership import own, require_not_elsewhere, states_of
from oarlock.runtime.place import CPUPlace
from oarlock.runtime.scope import Scope, frozen_in
from oarlock.runtime.value_check import require_declared
from oarlock.suggestions import did_you_mean, list_names
from oarlock.tensor.dtype import from_torch

__all__ = ["Model", "infer", "load_model", "program_of", "read_model", "save_model", "scope_of", "values_of"]


@dataclass
class Model:
    """A program, and a scope with its parameters and state.

    `limits` apply to its runs if it is untrusted. `columns` are the table columns that its inputs were fed from, if known. A training
    program may also have a `prediction`, the serialized program that predicts with the same parameters.
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
        """Return an ONNX Runtime session of the model in its current state. Its `infer(feed)` is equivalent to `ol.infer(model, feed)`.

        Raises ArgumentError if `onnxruntime` is not installed or the model is untrusted, ProgramError if ONNX cannot express it.
        """
        return _onnxruntime().OnnxRuntimeModel(self, threads=threads)


def _onnxruntime() -> Any:
    """Import the ONNX Runtime module, which belongs to a higher layer, on demand."""
    return importlib.import_module("oarlock.interop.onnx.runtime")


PathLike = str | os.PathLike[str]
_SAVE = ("dataset", "parameters", "path"), "save_model takes a target, optionally a dataset, the parameters and a path"
_LOAD = ("target", "path"), "load_model takes a path, or a target and a path"
FedColumns = Mapping[str, Sequence[str]]
Targets = Var | Sequence[Var] | Mapping[str, Var] | Program


class Trained(Protocol):
    """A program with its values: the result of `ol.train` or of `ol.load_model`."""

    @property
    def program(self) -> Program: ...


Parameters = Scope | Trained | Mapping[str, Any]
"""The source of values: a scope, the result of `ol.train` or `ol.load_model`, or arrays by name."""


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

        save_model(predict, parameters, path)       the program, pruned to the variable `predict`
        save_model([a, b], parameters, path)        the program, pruned to several variables; or {"label": variable}
        save_model(program, parameters, path)       the whole program; a training program can be continued
        save_model(result, path)                    the whole result of `ol.train` or `ol.load_model`
        save_model(cost, dataset, parameters, path) like the first, after checking that `dataset` fits the inputs

    `parameters` is a scope, the result of `ol.train`, or a dict of arrays. `path` may also be an open binary file. All arguments can be
    given by name: `save_model(predict, parameters=scope, path="model.safetensors")`. `columns` maps inputs to the table columns that they
    are fed from, which the command line finds by name; by default, a model keeps its own.

    Raises ArgumentError, FeedError if the dataset does not fit, UndefinedVarError for an unknown name in the dict, UnsetVarError or
    ShapeError if a value is missing or does not fit, ScopeError for the state of another program's optimizer, MissingFileError if there is
    no folder, WriteError if the system refuses. On an error, the file at `path` is unchanged.
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
        raise ArgumentError(f"the last argument must be a path or an open binary file, not {type(path).__name__}")
    scope = scope_of(parameters, _written_in(target))
    if program.is_training:
        require_not_elsewhere(program, scope, program.persistables())
    tensors, inputs = values_of(program, scope), {var.name for var in program.main.inputs}
    known = getattr(target, "columns", None) if columns is None else columns
    listed = {name: list(names) for name, names in (known or {}).items() if name in inputs}
    write_container(path, program.to_bytes(), tensors | listings_of(listed, getattr(target, "prediction", None)))


def values_of(program: Program, scope: Scope, *, lent: bool = True, wanted: Sequence[Var] | None = None) -> dict[str, torch.Tensor]:
    """Return the tensors of a model file of `program` by name: its persistable variables, or the `wanted` ones, and a list of frozen ones.

    With `lent`, the next run that would overwrite them works on copies. Otherwise the caller must hold `lock_of_writing` while reading.
    Raises UnsetVarError, ShapeError or DTypeError for a value that is missing or does not fit.
    """
    tensors = {var.name: _value(var, scope, lent=lent) for var in (program.persistables() if wanted is None else wanted)}
    frozen = frozen_in(scope)
    listed = sorted(frozen.intersection(_estimable(program))) if frozen else []
    if listed:
        tensors[FROZEN] = listing(listed)
    return tensors


def _in_order(names: Sequence[str], message: str, arguments: tuple[object, ...], keywords: dict[str, object]) -> tuple[object, ...]:
    """Return positional and keyword arguments in the order of `names`; the first may be missing. Raises ArgumentError."""
    count = len(arguments) + len(keywords)
    names = names if names[0] in keywords else names[-count:]
    free = [name for name in names if name not in keywords]
    given = {**dict(zip(free, arguments, strict=False)), **keywords}
    if not keywords.keys() <= set(names) or len(arguments) > len(free) or names[-1] not in given:
        raise ArgumentError(message)
    return tuple(given[name] for name in names if name in given)


def _estimable(program: Program) -> set[str]:
    """Return the names of the variables that training may change."""
    return {var.name for var in program.persistables() if var.trainable} if program.is_training else set()


def _value(var: Var, scope: Scope, *, lent: bool = True) -> torch.Tensor:
    """Return the value of a persistable variable in `scope`. Raises UnsetVarError, ShapeError or DTypeError."""
    found = scope.find_var(var.name)
    if var.name == DRAWS and (found is None or not found.is_set):
        return initial_value(var, 0)  # no random numbers were drawn yet
    if found is None or not found.is_set:
        raise UnsetVarError(
            f'the parameters have no value for "{var.name}"',
            given=[var.describe()],
            hint="pass the parameters that ol.train returned, or initialize them with ol.init(program, scope)",
        )
    held = require_declared(var, found.settle(var.dtype))
    return require_declared(var, found.value) if lent else held


def program_of(target: object) -> Program:
    """Return the program to write for a target: the program itself, or one pruned to the variables."""
    if isinstance(target, Program):
        require_targets(target.targets)
        return target
    targets = {"predict": target} if isinstance(target, Var) else target
    if isinstance(targets, list | tuple) and targets and all(isinstance(item, Var) for item in targets):
        targets = {item.name: item for item in targets}
    if not isinstance(targets, Mapping) or not targets or not all(isinstance(item, Var) for item in targets.values()):
        raise ArgumentError(f"a model is saved from variables or a program, not from {type(target).__name__} {target!r:.60}")
    return prune(next(iter(targets.values())).block.program, targets)


def _written_in(target: object) -> Program | None:
    """Return the whole program of a target."""
    if isinstance(target, Program):
        return target
    items = target.values() if isinstance(target, Mapping) else target if isinstance(target, list | tuple) else [target]
    return next((item.block.program for item in items if isinstance(item, Var)), None)


def _only_inputs(program: Program, dataset: object) -> dict[str, object]:
    if not isinstance(dataset, Mapping):
        raise ArgumentError(f"a dataset must be a dict of arrays, not {type(dataset).__name__}")
    names = {var.name for var in program.main.inputs}
    return {name: array for name, array in dataset.items() if name in names}


def scope_of(parameters: object, program: Program | None) -> Scope:
    """Return the scope of an argument `parameters`. Raises ArgumentError, or UndefinedVarError for an unknown name in a dict."""
    for holder in ("scope", "parameters"):
        if isinstance(getattr(parameters, holder, None), Scope):
            return getattr(parameters, holder)
    if isinstance(parameters, Scope):
        return parameters
    if isinstance(parameters, Mapping):
        if program is not None and COUNTER not in parameters:  # otherwise it is the whole state of a run, including its optimizer
            _require_declared_names(parameters, program)
        scope = Scope()
        for name, value in parameters.items():
            scope.set(name, value)
        return scope
    raise ArgumentError(f"parameters must be a scope, the result of ol.train, or a dict of arrays, not {type(parameters).__name__}")


def _require_declared_names(values: Mapping[str, object], program: Program) -> None:
    """Raise UndefinedVarError for a name among `values` that is neither a persistable variable nor an input of the program."""
    known = [var.name for var in (*program.persistables(), *program.main.inputs)]
    for name in values:
        if name not in known:
            raise UndefinedVarError(
                f'the program has no parameter or input "{name}"',
                location=here(),
                given=[f"there are: {list_names(str(name), known)}" if known else "it has none"],
                hint=did_you_mean(str(name), known),
            )


@overload
def load_model(path: PathLike, *, limits: Limits | None = None, untrusted: bool = False) -> Model: ...


@overload
def load_model(target: Var | str, path: PathLike, *, limits: Limits | None = None, untrusted: bool = False) -> Model: ...


@refuses_memory
def load_model(*arguments: object, limits: Limits | None = None, untrusted: bool = False, **keywords: object) -> Model:
    """Read a model file. Its program is verified, and nothing in it is run.

        load_model(path)            the program in the file and its values
        load_model(predict, path)   pruned to the variable of that name (a Var or text), which also becomes the target's label

    Both arguments can be given by name, as `target` and `path`. With `untrusted=True`, the file must not be a symbolic or hard link, and
    the runs of the model are limited (`RunLimits`). `ol.run_untrusted` does both in a process with operating-system limits.

    Raises MissingFileError, ReadError, FormatError, LimitError, VerifyError, UnknownOperatorError or UndefinedVarError.
    """
    import oarlock.op.update  # noqa: F401  registers the operators of training programs

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
        raise ArgumentError(f"a target must be a variable or its name, not {type(target).__name__}")
    var = model.program.find_target(name)
    if var is None:
        raise UndefinedVarError(
            f'"{Path(path).name}" has no variable "{name}"',
            given=[f"it was saved with only the part that computes {', '.join(model.program.targets) or 'no target'}"],
            hint="save the part that computes both: ol.save_model([cost, predict], parameters, path)",
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
    """Read a model file, or the bytes of one, with the operators in `catalogue`. A forward-only catalogue refuses training programs.

    `elsewhere` returns the value of a variable that is missing in the file, or None.
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
        raise FormatError(f'the file has no value for "{name}"', given=[variables[name].describe()])
    scope = Scope()
    for name in variables:
        var = variables[name]
        tensor = as_declared(tensors.pop(name), var.dtype)
        if tuple(tensor.shape) != var.shape or from_torch(tensor.dtype) is not var.dtype:
            raise FormatError(
                f'the file has "{name}" as {from_torch(tensor.dtype)}{list(tensor.shape)}',
                given=[var.describe()],
            )
        scope.var(name).give(tensor, own=True)
    own(program, scope, states_of(program))
    frozen = read_frozen(tensors.pop(FROZEN, None), _estimable(program))
    columns, prediction = read_columns(tensors.pop(COLUMNS, None), program), read_prediction(tensors.pop(PREDICTION, None))
    for name in _estimable(program):
        scope.var(name).estimated = name not in frozen
    for name in tensors:
        raise FormatError(f"the file contains {json.dumps(name[:80])}, which its program does not declare")
    return Model(program, scope, catalogue, RunLimits() if untrusted else None, columns, prediction)


def _refuse_training(program: Program) -> None:
    roles = [op.role for op in walk(program.main)]
    backward, update = roles.count(Role.BACKWARD), sum(op.role is Role.UPDATE for op in program.main.tail)
    if backward or update:
        raise TrainingProgramError(
            f"this is a training program: it has {backward} gradient ops and updates {update} variables",
            hint="save only the prediction with ol.save_model(predict, parameters, path), or load it with ol.load_model",
        )


def infer(target: object, *arguments: object, backend: str | None = None) -> numpy.ndarray | dict[str, numpy.ndarray]:
    """Compute the prediction of a model: an array, or a dict of arrays by label if it has several targets.

        infer(model, feed)                  the result of `ol.load_model`
        infer(predict, feed, parameters)    a variable, and the values it needs
        infer(predict, parameters)          if the inputs store their own values

    `feed` maps inputs to arrays; an unknown name raises FeedError. Nothing is modified. With `backend="onnxruntime"`, ONNX Runtime
    computes the prediction, in a session that a model reuses until its values change; the other backends are those of `Executor`. Raises
    ArgumentError, UndefinedVarError for an unknown name in a dict of parameters, and the errors of `Executor.eval`.
    """
    feed: Mapping[str, object] | None = None
    parameters: object = None
    for argument in arguments:
        if feed is None and isinstance(argument, Mapping):
            feed = argument
        elif parameters is None:
            parameters = argument
        else:
            raise ArgumentError("infer takes a target, optionally a feed, and optionally parameters")
    if isinstance(target, Var):
        program, executor = prune(target.block.program, {"predict": target}), Executor(backend=_of_executor(backend))
        kept, fed = ({var.name for var in vars} for vars in (target.block.program.persistables(), target.block.program.main.inputs))
        if parameters is None and feed and kept.intersection(feed) and not fed.intersection(feed):
            feed, parameters = None, feed  # a dict with names of parameters, but of no inputs
        scope = Scope() if parameters is None else scope_of(parameters, target.block.program)
    elif isinstance(target, Model):
        if parameters is not None:
            raise ArgumentError("a model has its own parameters; infer(model, feed) takes no others")
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
    """Return the backend for an executor, None for ONNX Runtime. Raises ArgumentError."""
    return None if backend == "onnxruntime" else require_backend(backend)
