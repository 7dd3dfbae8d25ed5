"""Weights from safetensors files, by their own names, into the variables of a program."""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from oarlock.errors import ArgumentError, DTypeError, LimitError, ShapeError, UndefinedVarError
from oarlock.interop.tied_names import find_tied_names
from oarlock.io.container import PROGRAM
from oarlock.io.tensor_file import TensorEntry
from oarlock.io.weight_files import WeightFiles
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.program import Program
from oarlock.ir.size import format_shape
from oarlock.out_of_memory import refuses_memory
from oarlock.proto.limits import Limits
from oarlock.runtime.initialization import init
from oarlock.runtime.ownership import states_of
from oarlock.runtime.scope import Scope
from oarlock.runtime.value import first_beyond
from oarlock.suggestions import find_near
from oarlock.tensor.dtype import from_torch, to_torch

__all__ = ["LoadedWeights", "Source", "load_weights"]

Source = str | tuple[str, Sequence[int]] | None
"""Where a variable comes from: the name of a tensor; that, and its axes in their new order; or None for nowhere."""

_LISTED = 12  # names of each kind in a message


class _Wanted(NamedTuple):
    """The declared type of a variable."""

    dtype: DType
    shape: tuple[int | str, ...]

    @property
    def type_text(self) -> str:
        return f"{self.dtype}{format_shape(self.shape)}"


class _Taken(NamedTuple):
    """The tensor that a variable is given, and its axes in their new order, None where they stay."""

    name: str
    axes: tuple[int, ...] | None

    def turned(self, shape: Sequence[int]) -> tuple[int, ...]:
        return tuple(shape) if self.axes is None else tuple(shape[axis] for axis in self.axes)


@dataclass(frozen=True)
class LoadedWeights:
    """The result of `load_weights`: the `scope` that holds the values now, and the names of the variables that were `loaded`.

    `missing` are the variables that no tensor was found for, and `unexpected` the tensors that no variable was given; both are empty
    unless `strict` was False.
    """

    scope: Scope
    loaded: tuple[str, ...]
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]


@refuses_memory
def load_weights(
    target: object,
    path: str | os.PathLike[str],
    *,
    names: Mapping[str, Source] | Callable[[str], Source] | None = None,
    strict: bool = True,
    transpose: Collection[str] | Callable[[str], bool] = (),
    cast: bool = False,
    limits: Limits | None = None,
    untrusted: bool = False,
) -> LoadedWeights:
    """Fill variables with the tensors of a safetensors file, or of a folder of Hugging Face, sharded or not.

        ol.load_weights(model, "model.safetensors")               what ol.load_model, ol.train or ol.from_torch returned
        ol.load_weights(scope, "bert/", names=lambda name: f"bert.{name}")
        scope = ol.load_weights(program, "gpt2/").scope           a scope of its own, in which nothing else was drawn

    `target` says what is wanted: the parameters of a program and what its layers keep, such as running statistics, but nothing of an
    optimizer; of a scope, the tensors in it. Only these are read. `path` is a safetensors file, a `.safetensors.index.json`, or a folder
    that has one. No other format is read, and no pickle ever.

    `names` says what a variable is called in the files: a function of its name, or a dict for those whose names differ. Several
    variables may be given one tensor; None leaves a variable as it is. A `linear` of ours reads `w: [k, n]`, and a layer of PyTorch keeps
    it as [n, k]: variables in `transpose`, or for which it is true as a function, are given the tensor with its axes in reverse.
    `names={"w": ("weight", (1, 0))}` says the same of one, and of more axes in what order they come. Nothing is turned unasked: of a
    square matrix no shape tells that it is.

    A variable of a module that `ol.from_torch` brought in may have several names there, as tied weights do. The tensor of any of them is
    enough; where the files have several, these are equal.

    With `strict`, every wanted variable has its tensor and every tensor its variable. Dtypes are equal, or with `cast` floats are rounded
    to the declared float; a number that would become infinite is refused.
    With `untrusted`, no file may be a link. `limits` are those of `ol.load_model`.

    Everything is checked by the headers, then read, and only then is a value replaced. Raises UndefinedVarError for what is missing or
    unexpected, all of it in one message; ShapeError or DTypeError, likewise; ArgumentError for tensors of one variable that differ;
    FormatError, LimitError, MissingFileError or ReadError.
    """
    program, scope = _program_and_scope(target)
    transpose = (transpose,) if isinstance(transpose, str) else transpose
    wanted = _wanted_of(program) if program is not None else _held_in(scope)
    files = WeightFiles.find(path, limits=limits, untrusted=untrusted)
    tied = {other: name for other, name in find_tied_names(program, scope).items() if name in wanted and other not in wanted}
    named = wanted | {other: wanted[name] for other, name in tied.items()}
    taken = {name: found for name in named if (found := _taken_by(name, named[name], names, transpose)) is not None}
    taken = {name: each for name, each in taken.items() if tied.get(name, name) in taken}
    _require_known(names, transpose, named)
    found_of = {tied.get(name, name) for name, each in taken.items() if each.name in files.file_of}
    missing = [name for name in taken if name in wanted and name not in found_of]
    used = {each.name for each in taken.values()}
    of_ours = PROGRAM in files.file_of
    unexpected = [
        name for name in sorted(files.file_of) if name not in used and not (of_ours and ("@" in name or name.startswith("oarlock.")))
    ]
    if strict and (missing or unexpected):
        raise _not_the_same(missing, unexpected, {name: each for name, each in taken.items() if name in wanted}, wanted, files)
    taken = {name: each for name, each in taken.items() if each.name in files.file_of}
    _verify(taken, named, files, cast)
    values = _joined(_read(taken, named, files), taken, tied, files)
    values = {name: values[name] for name in wanted if name in values}
    for name, value in values.items():
        scope.var(name).give(value, own=True)
    if program is not None and isinstance(target, Program):
        init(program, scope, limits=limits)
    return LoadedWeights(scope, tuple(values), tuple(missing), tuple(unexpected))


def _joined(
    values: dict[str, torch.Tensor], taken: Mapping[str, _Taken], tied: Mapping[str, str], files: WeightFiles
) -> dict[str, torch.Tensor]:
    """The value of each variable, of that of any of its names. Raises ArgumentError where the values of two of them differ."""
    found = {name: value for name, value in values.items() if name not in tied}
    by = {name: name for name in found}
    for other in (name for name in values if name in tied):
        name = tied[other]
        if name not in found:
            found[name], by[name] = values[other], other
        elif not _same_bits(found[name], values[other]):
            several = [f'"{taken[key].name}" in "{files.file_of[taken[key].name]}"' for key in (by[name], other)]
            raise ArgumentError(
                f'"{taken[by[name]].name}" and "{taken[other].name}" are one variable, "{name}", and their tensors differ',
                location=here(),
                given=several,
                hint=f'names={{"{other}": None}} leaves "{taken[other].name}" out, with strict=False',
            )
    return found


def _same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    flat, others = (tensor.contiguous().reshape(-1).view(torch.uint8) for tensor in (one, other))
    return torch.equal(flat, others)


def _program_and_scope(target: object) -> tuple[Program | None, Scope]:
    """The program that declares what is wanted, None where a scope does; and the scope to fill."""
    if isinstance(target, Program):
        return target, Scope()
    if isinstance(target, Scope):
        return None, target
    program = getattr(target, "program", None)
    scope = next((found for name in ("scope", "parameters") if isinstance(found := getattr(target, name, None), Scope)), None)
    if not isinstance(program, Program) or scope is None:
        raise ArgumentError(f"weights are loaded into a model, a scope or a program, not into a {type(target).__name__}", location=here())
    return program, scope


def _wanted_of(program: Program) -> dict[str, _Wanted]:
    states = set(states_of(program))
    return {var.name: _Wanted(var.dtype, var.shape or ()) for var in program.persistables() if var not in states and "@" not in var.name}


def _held_in(scope: Scope) -> dict[str, _Wanted]:
    wanted = {}
    for name in scope:
        found = scope.find_local_var(name)
        value = None if found is None or found.owner is not None or "@" in name else found.held
        dtype = from_torch(value.dtype) if isinstance(value, torch.Tensor) else None
        if isinstance(value, torch.Tensor) and dtype is not None:
            wanted[name] = _Wanted(dtype, tuple(value.shape))
    if not wanted:
        raise ArgumentError(
            "the scope holds no tensors, so nothing says which weights are wanted",
            location=here(),
            hint="ol.load_weights(program, path).scope, or ol.init(program, scope) before",
        )
    return wanted


def _taken_by(
    name: str,
    wanted: _Wanted,
    names: Mapping[str, Source] | Callable[[str], Source] | None,
    transpose: Collection[str] | Callable[[str], bool],
) -> _Taken | None:
    """The tensor for the variable `name`; None where it is to stay as it is. Raises ArgumentError."""
    source: Source = name if names is None else names(name) if callable(names) else names.get(name, name)
    turned = transpose(name) if callable(transpose) else name in transpose
    axes: Sequence[int] | None = tuple(reversed(range(len(wanted.shape)))) if turned else None
    if isinstance(source, tuple) and len(source) == 2:
        if turned:
            raise ArgumentError(f'"{name}" is turned by names and by transpose: one of them says how', location=here())
        source, axes = source
        if sorted(axes) != list(range(len(wanted.shape))):
            raise ArgumentError(f'names turns "{name}" by {axes!r:.60}, which are not the {len(wanted.shape)} axes of it', location=here())
    if source is None:
        return None
    if not isinstance(source, str):
        raise ArgumentError(
            f'names gives {source!r:.60} for "{name}"',
            location=here(),
            contract="a tensor's name, or (name, axes), or None for a variable that stays as it is",
        )
    return _Taken(source, None if axes is None else tuple(axes))


def _require_known(names: object, transpose: object, wanted: Mapping[str, _Wanted]) -> None:
    """Raise UndefinedVarError for a name that is given for a variable which nothing wants: it would change nothing, unseen."""
    for given in (names, transpose):
        for name in given if isinstance(given, Collection) and not callable(given) else ():
            if name not in wanted:
                near = find_near(str(name), wanted)
                raise UndefinedVarError(
                    f"{name!r:.80} is in {'names' if given is names else 'transpose'}, and no variable that is to be loaded is called so",
                    location=here(),
                    hint=f'did you mean "{near}"?' if near else None,
                )


def _not_the_same(
    missing: Sequence[str],
    unexpected: Sequence[str],
    taken: Mapping[str, _Taken],
    wanted: Mapping[str, _Wanted],
    files: WeightFiles,
) -> UndefinedVarError:
    """The error for variables without tensors and tensors without variables."""

    def line(kind: str, name: str, text: str, others: Iterable[str]) -> str:
        near = find_near(name, others)
        return f"{kind} {text}" + (f', near "{near}"' if near else "")

    shown = unexpected[:_LISTED]
    entries = files.entries(shown)
    lines = [
        line("missing   ", taken[name].name, f'"{taken[name].name}" for "{name}" {wanted[name].type_text}', unexpected)
        for name in missing[:_LISTED]
    ]
    lines += [f"and {len(missing) - _LISTED} more are missing"] if len(missing) > _LISTED else []
    absent = [taken[name].name for name in missing]
    lines += [line("unexpected", name, f'"{name}" {entries[name].type_text}', absent) for name in shown]
    lines += [f"and {len(unexpected) - _LISTED} more are unexpected"] if len(unexpected) > _LISTED else []
    counts = [f"{len(missing)} of {len(taken)} variables have no tensor"] if missing else []
    counts += (
        [f"{_count(len(unexpected), 'tensor')} of {len(files.file_of)} {_are(len(unexpected))} wanted by no variable"] if unexpected else []
    )
    return UndefinedVarError(
        f'"{files.path.name}": {", and ".join(counts)}',
        location=here(),
        given=lines,
        hint='names={"variable": "tensor"} or names=function says what is called otherwise; strict=False loads what there is',
    )


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _verify(taken: Mapping[str, _Taken], wanted: Mapping[str, _Wanted], files: WeightFiles, cast: bool) -> None:
    """Raise ShapeError, DTypeError or LimitError for tensors that do not fit their variables, all of one kind in one message."""
    entries = files.entries(each.name for each in taken.values())
    by_shape = {name: each for name, each in taken.items() if not _fits(each, entries[each.name], wanted[name].shape)}
    by_dtype = {name: each for name, each in taken.items() if not _may_become(entries[each.name], wanted[name].dtype, cast)}

    def lines(wrong: Mapping[str, _Taken]) -> list[str]:
        found = [_mismatch(name, each, entries[each.name], wanted[name], files) for name, each in wrong.items()]
        return found[:_LISTED] + ([f"and {len(found) - _LISTED} more"] if len(found) > _LISTED else [])

    if by_shape:
        turned = [name for name, each in by_shape.items() if tuple(reversed(each.turned(entries[each.name].shape))) == wanted[name].shape]
        raise ShapeError(
            f"{_count(len(by_shape), 'tensor')} of {len(taken)} {_are(len(by_shape))} of another shape than the variable",
            location=here(),
            given=lines(by_shape),
            hint=f"transpose={turned[:4]!r:.200}: a layer of PyTorch keeps [n, k] where linear reads [k, n]" if turned else None,
        )
    if by_dtype:
        floats = all((known := entries[each.name].known_dtype) and known.is_floating for each in by_dtype.values())
        raise DTypeError(
            f"{_count(len(by_dtype), 'tensor')} of {len(taken)} {_are(len(by_dtype))} of another dtype than the variable",
            location=here(),
            given=lines(by_dtype),
            hint="cast=True rounds floats to the declared float" if floats else None,
        )
    total = sum(entries[each.name].end - entries[each.name].begin for each in taken.values())
    if total > files.limits.parameter_bytes:
        raise LimitError(
            f'"{files.path.name}": {total:,} bytes of weights, where {files.limits.parameter_bytes:,} are allowed',
            hint="limits=Limits(parameter_bytes=...)",
        )


def _fits(taken: _Taken, entry: TensorEntry, shape: tuple[int | str, ...]) -> bool:
    return len(entry.shape) == len(shape) and taken.turned(entry.shape) == shape


def _may_become(entry: TensorEntry, dtype: DType, cast: bool) -> bool:
    known = entry.known_dtype
    return known is dtype or bool(cast and known is not None and known.is_floating and dtype.is_floating)


def _mismatch(name: str, taken: _Taken, entry: TensorEntry, wanted: _Wanted, files: WeightFiles) -> str:
    turned = "" if taken.axes is None else f" with its axes as {taken.axes}"
    return f'"{name}" is {wanted.type_text}, and "{taken.name}" in "{files.file_of[taken.name]}" is {entry.type_text}{turned}'


def _read(taken: Mapping[str, _Taken], wanted: Mapping[str, _Wanted], files: WeightFiles) -> dict[str, torch.Tensor]:
    """The value of each variable, in memory of its own, in the order of the variables."""
    of_tensor: dict[str, list[str]] = {}
    for name, each in taken.items():
        of_tensor.setdefault(each.name, []).append(name)
    values: dict[str, torch.Tensor] = {}
    for tensor_name, tensor in files.read(of_tensor):
        for number, name in enumerate(of_tensor[tensor_name]):
            axes, dtype = taken[name].axes, to_torch(wanted[name].dtype)
            turned = tensor if axes is None else tensor.permute(axes)
            is_first_as_it_is = number == 0 and axes is None and turned.dtype is dtype
            values[name] = turned if is_first_as_it_is else turned.to(dtype, memory_format=torch.contiguous_format, copy=True)
            beyond = None if values[name].dtype is turned.dtype else first_beyond(turned, values[name])
            if beyond is not None:
                raise DTypeError(
                    f'"{tensor_name}" holds {beyond!r}, which is beyond {wanted[name].dtype}, the dtype of "{name}"',
                    location=here(),
                    given=[f'"{name}" is {wanted[name].type_text}'],
                    hint=f'names={{"{name}": None}} leaves the variable as it is',
                )
    return {name: values[name] for name in taken}
