"""`load_weights`: load safetensors files into the variables of a program, by tensor name."""

import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from oarlock.errors import ArgumentError, DTypeError, FormatError, LimitError, ShapeError, UndefinedVarError
from oarlock.io.container import PROGRAM
from oarlock.io.tensor_file import TensorEntry
from oarlock.io.weight_files import WeightFiles
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.names import ALIASES
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

__all__ = ["LoadedWeights", "Source", "find_tied_names", "load_weights"]

Source = str | tuple[str, Sequence[int]] | None
"""The source of a variable: a tensor's name; its name and a permutation of its axes; or None to keep the variable."""

_LISTED = 12  # names of each kind in a message


class _Wanted(NamedTuple):
    """The declared type of a variable."""

    dtype: DType
    shape: tuple[int | str, ...]

    @property
    def type_text(self) -> str:
        return f"{self.dtype}{format_shape(self.shape)}"


class _Taken(NamedTuple):
    """The tensor for a variable, and the permutation of its axes, or None."""

    name: str
    axes: tuple[int, ...] | None

    def turned(self, shape: Sequence[int]) -> tuple[int, ...]:
        return tuple(shape) if self.axes is None else tuple(shape[axis] for axis in self.axes)


@dataclass(frozen=True)
class LoadedWeights:
    """The result of `load_weights`: the `scope` with the values, and the names of the `loaded` variables.

    `missing` lists the variables without a tensor, and `unexpected` the tensors without a variable; both are empty unless `strict` is
    False.
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
    """Load a safetensors file, or a Hugging Face folder, sharded or not, into variables.

        ol.load_weights(model, "model.safetensors")               a result of ol.load_model, ol.train or ol.from_torch
        ol.load_weights(scope, "bert/", names=lambda name: f"bert.{name}")
        scope = ol.load_weights(program, "gpt2/").scope           a new scope, without initializing the loaded variables first

    `target` determines the variables: the parameters of a program and persistent values such as running statistics, but no optimizer state;
    for a scope, its tensors. Only these are read. `path` is a safetensors file, a `.safetensors.index.json`, or a folder that contains one.
    No other format is read, and never a pickle.

    `names` maps variables to tensors: a function of the variable's name, or a dict for those whose names differ. Several variables may load
    one tensor; None keeps a variable's value. `linear` stores `w: [k, n]`, while PyTorch layers store [n, k]: `transpose` lists the
    variables to load with reversed axes, or is a predicate of the name. `names={"w": ("weight", (1, 0))}` does the same for one variable,
    with any permutation. Tensors are never transposed implicitly, as the shape of a square matrix does not show its orientation.

    A variable imported by `ol.from_torch` may have several tied names. A tensor for any of them is enough; if the files have several, they
    must be equal.

    With `strict`, each variable must have a tensor and each tensor a variable. Dtypes must be equal; with `cast`, floats are rounded to the
    declared float dtype, and numbers that would overflow to infinity are rejected. With `untrusted`, symbolic links are rejected. `limits`
    are as for `ol.load_model`.

    All headers are checked and all tensors read before any value is replaced. Raises UndefinedVarError with all missing and unexpected
    names; ShapeError or DTypeError with all mismatches; ArgumentError if tensors of tied names differ; FormatError, LimitError,
    MissingFileError or ReadError.
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
    """Merge the values of tied names. Raises ArgumentError if they differ."""
    found = {name: value for name, value in values.items() if name not in tied}
    by = {name: name for name in found}
    for other in (name for name in values if name in tied):
        name = tied[other]
        if name not in found:
            found[name], by[name] = values[other], other
        elif not _same_bits(found[name], values[other]):
            several = [f'"{taken[key].name}" in "{files.file_of[taken[key].name]}"' for key in (by[name], other)]
            raise ArgumentError(
                f'"{taken[by[name]].name}" and "{taken[other].name}" are tied to one variable, "{name}", but their tensors differ',
                location=here(),
                given=several,
                hint=f'use names={{"{other}": None}} with strict=False to skip "{taken[other].name}"',
            )
    return found


def _same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    flat, others = (tensor.contiguous().reshape(-1).view(torch.uint8) for tensor in (one, other))
    return torch.equal(flat, others)


def _program_and_scope(target: object) -> tuple[Program | None, Scope]:
    """Return the program that declares the variables, or None if a scope does, and the scope to fill."""
    if isinstance(target, Program):
        return target, Scope()
    if isinstance(target, Scope):
        return None, target
    program = getattr(target, "program", None)
    scope = next((found for name in ("scope", "parameters") if isinstance(found := getattr(target, name, None), Scope)), None)
    if not isinstance(program, Program) or scope is None:
        raise ArgumentError(f"load_weights takes a model, a scope or a program, not {type(target).__name__}", location=here())
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
            "the scope has no tensors, so the variables to load are unknown",
            location=here(),
            hint="use ol.load_weights(program, path).scope, or call ol.init(program, scope) first",
        )
    return wanted


def _taken_by(
    name: str,
    wanted: _Wanted,
    names: Mapping[str, Source] | Callable[[str], Source] | None,
    transpose: Collection[str] | Callable[[str], bool],
) -> _Taken | None:
    """Return the tensor for the variable `name`; None to keep its value. Raises ArgumentError."""
    source: Source = name if names is None else names(name) if callable(names) else names.get(name, name)
    turned = transpose(name) if callable(transpose) else name in transpose
    axes: Sequence[int] | None = tuple(reversed(range(len(wanted.shape)))) if turned else None
    if isinstance(source, tuple) and len(source) == 2:
        if turned:
            raise ArgumentError(f'both names and transpose permute "{name}": use only one of them', location=here())
        source, axes = source
        if sorted(axes) != list(range(len(wanted.shape))):
            raise ArgumentError(
                f'names permutes "{name}" by {axes!r:.60}, which is not a permutation of its {len(wanted.shape)} axes', location=here()
            )
    if source is None:
        return None
    if not isinstance(source, str):
        raise ArgumentError(
            f'names gives {source!r:.60} for "{name}"',
            location=here(),
            contract="a tensor's name, (name, axes), or None to keep the variable",
        )
    return _Taken(source, None if axes is None else tuple(axes))


def _require_known(names: object, transpose: object, wanted: Mapping[str, _Wanted]) -> None:
    """Raise UndefinedVarError if `names` or `transpose` lists an unknown variable, which would otherwise be ignored."""
    for given in (names, transpose):
        for name in given if isinstance(given, Collection) and not callable(given) else ():
            if name not in wanted:
                near = find_near(str(name), wanted)
                raise UndefinedVarError(
                    f"{'names' if given is names else 'transpose'} has {name!r:.80}, but there is no such variable to load",
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
    """Return the error for variables without tensors and tensors without variables."""

    def line(kind: str, name: str, text: str, others: Iterable[str]) -> str:
        near = find_near(name, others)
        return f"{kind} {text}" + (f', similar to "{near}"' if near else "")

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
        [f"{_count(len(unexpected), 'tensor')} of {len(files.file_of)} {_are(len(unexpected))} not used by any variable"]
        if unexpected
        else []
    )
    return UndefinedVarError(
        f'"{files.path.name}": {", and ".join(counts)}',
        location=here(),
        given=lines,
        hint='map different names with names={"variable": "tensor"} or names=function; load the rest with strict=False',
    )


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _verify(taken: Mapping[str, _Taken], wanted: Mapping[str, _Wanted], files: WeightFiles, cast: bool) -> None:
    """Raise ShapeError, DTypeError or LimitError for tensors that do not fit their variables, with all mismatches of one kind."""
    entries = files.entries(each.name for each in taken.values())
    by_shape = {name: each for name, each in taken.items() if not _fits(each, entries[each.name], wanted[name].shape)}
    by_dtype = {name: each for name, each in taken.items() if not _may_become(entries[each.name], wanted[name].dtype, cast)}

    def lines(wrong: Mapping[str, _Taken]) -> list[str]:
        found = [_mismatch(name, each, entries[each.name], wanted[name], files) for name, each in wrong.items()]
        return found[:_LISTED] + ([f"and {len(found) - _LISTED} more"] if len(found) > _LISTED else [])

    if by_shape:
        turned = [name for name, each in by_shape.items() if tuple(reversed(each.turned(entries[each.name].shape))) == wanted[name].shape]
        raise ShapeError(
            f"the shape of {_count(len(by_shape), 'tensor')} of {len(taken)} differs from the variable's",
            location=here(),
            given=lines(by_shape),
            hint=f"use transpose={turned[:4]!r:.200}: PyTorch layers store [n, k], and linear reads [k, n]" if turned else None,
        )
    if by_dtype:
        floats = all((known := entries[each.name].known_dtype) and known.is_floating for each in by_dtype.values())
        raise DTypeError(
            f"the dtype of {_count(len(by_dtype), 'tensor')} of {len(taken)} differs from the variable's",
            location=here(),
            given=lines(by_dtype),
            hint="use cast=True to round floats to the declared dtype" if floats else None,
        )
    total = sum(entries[each.name].end - entries[each.name].begin for each in taken.values())
    if total > files.limits.parameter_bytes:
        raise LimitError(
            f'"{files.path.name}": {total:,} bytes of weights exceed the limit of {files.limits.parameter_bytes:,}',
            hint="limits=Limits(parameter_bytes=...)",
        )


def _fits(taken: _Taken, entry: TensorEntry, shape: tuple[int | str, ...]) -> bool:
    return len(entry.shape) == len(shape) and taken.turned(entry.shape) == shape


def _may_become(entry: TensorEntry, dtype: DType, cast: bool) -> bool:
    known = entry.known_dtype
    return known is dtype or bool(cast and known is not None and known.is_floating and dtype.is_floating)


def _mismatch(name: str, taken: _Taken, entry: TensorEntry, wanted: _Wanted, files: WeightFiles) -> str:
    turned = "" if taken.axes is None else f" with axes {taken.axes}"
    return f'"{name}" is {wanted.type_text}, but "{taken.name}" in "{files.file_of[taken.name]}" is {entry.type_text}{turned}'


def _read(taken: Mapping[str, _Taken], wanted: Mapping[str, _Wanted], files: WeightFiles) -> dict[str, torch.Tensor]:
    """Read the value of each variable, in the order of the variables. Values do not share memory."""
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
                    f'"{tensor_name}" contains {beyond!r}, which overflows {wanted[name].dtype}, the dtype of "{name}"',
                    location=here(),
                    given=[f'"{name}" is {wanted[name].type_text}'],
                    hint=f'use names={{"{name}": None}} to keep the value of the variable',
                )
    return {name: values[name] for name in taken}


# Tied names


def find_tied_names(program: Program | None, scope: Scope) -> dict[str, str]:
    """Return other names of variables, mapped to the variables. They are read from the scope or, failing that, the program.

    Raises FormatError for an invalid table.
    """
    if (found := scope.find_var(ALIASES)) is not None and found.is_set:
        try:
            data = bytes(scope[ALIASES].tolist())  # type: ignore[attr-defined]
        except (AttributeError, TypeError, ValueError):
            data = b""
    else:
        var = None if program is None else program.main.find_var(ALIASES)
        if var is None or var.initializer is None:
            return {}
        data = var.initializer.attributes.get("data", b"")
    try:
        read = json.loads(data)  # type: ignore[arg-type]
    except (TypeError, ValueError, RecursionError):
        read = None
    if not isinstance(read, dict) or not all(isinstance(item, str) for item in read.values()):
        raise FormatError(f"{ALIASES} is not a valid table of tied names")
    return read
