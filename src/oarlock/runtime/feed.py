"""Checks of the feed against the declared inputs of a program, before a run; ragged values become elements and row splits."""

from collections.abc import Mapping

import numpy
import torch

from oarlock.errors import ArgumentError, FeedError, OarlockError
from oarlock.ir.program import Program
from oarlock.ir.size import evaluate, solve
from oarlock.ir.var import Var, is_among
from oarlock.runtime.initialization import initial_value
from oarlock.runtime.place import Place, device_of, is_meta
from oarlock.runtime.ragged import Ragged, flatten
from oarlock.runtime.scope import Scope
from oarlock.runtime.value import describe_value, find_dense_form, is_dense, read_as, to_numpy, to_tensor
from oarlock.suggestions import did_you_mean
from oarlock.tensor.dtype import from_torch, to_torch

__all__ = ["as_ragged", "check_feed", "spread_ragged"]


def check_feed(
    program: Program, feed: Mapping[str, object], needed: set[Var], place: Place, scope: Scope | None = None
) -> dict[str, torch.Tensor]:
    """Return the input tensors of a run, by name. Raises FeedError, with all problems of one input in one message.

    Inputs that nothing needs may be omitted or fed without effect. An input with an initial value, or with a value in `scope`, may be
    omitted; that value is then checked like a fed one.
    """
    inputs = {var.name: var for var in program.main.inputs}
    for name in feed:
        if name not in inputs:
            raise FeedError(
                f'"{name}" is not an input of the program',
                contract=_contract(program),
                given=[f'"{name}" fed'],
                hint=did_you_mean(name, inputs),
            )
    feed = spread_ragged(program, feed)
    tensors: dict[str, torch.Tensor] = {}
    sizes: dict[str, tuple[int, str]] = {}
    for name, var in inputs.items():
        if name in feed:
            tensors[name] = _check_one(program, var, feed[name], sizes, place, "fed as")
        elif var in needed and var.initializer is not None:
            tensors[name] = _check_one(program, var, initial_value(var, program.seed), sizes, place, "carries")
        elif var in needed and (found := _in_scope(scope, var)) is not None:
            tensors[name] = _check_one(program, var, found, sizes, place, "is in the scope as")
        elif var in needed:
            fed = ", ".join(f'"{other}"' for other in feed) or "nothing"
            raise FeedError(
                f'"{name}" is not fed',
                location=var.location,
                contract=_contract(program),
                given=[f"{fed} fed"],
                hint=_cut_hint(program, var),
            )
    _check_products(program, inputs, tensors, sizes)
    return tensors


def _in_scope(scope: Scope | None, var: Var) -> object:
    """Return the value of `var` in `scope` or a parent, with Python numbers converted to its dtype; None if there is none."""
    found = None if scope is None else scope.find_var(var.name)
    if found is None or not found.is_set:
        return None
    found.settle(var.dtype)
    return found.value


def _check_one(program: Program, var: Var, value: object, sizes: dict[str, tuple[int, str]], place: Place, verb: str) -> torch.Tensor:
    try:
        tensor = read_as(value, var.dtype)
    except OarlockError as error:
        raise FeedError(f'"{var.name}": {error.message}', location=var.location, contract=_contract(program)) from None
    if not is_dense(tensor, is_meta(place)):
        raise FeedError(
            f'"{var.name}" must be {var.type_text}, not {describe_value(tensor)}',
            location=var.location,
            contract=_contract(program),
            hint=f'convert it to a dense tensor: feed={{"{var.name}": {find_dense_form(tensor)}}}',
        )
    actual = f'"{var.name}" {verb} {from_torch(tensor.dtype)}{list(tensor.shape)}'
    if tensor.dtype != to_torch(var.dtype):
        raise FeedError(
            f'"{var.name}" must be {var.dtype}, not {from_torch(tensor.dtype)}',
            location=var.location,
            contract=_contract(program),
            given=[actual],
            hint=f'feed={{"{var.name}": array.astype("{var.dtype}")}}',
        )
    declared = var.shape or ()
    agrees = len(declared) == tensor.ndim
    wrong = None
    for size, number in zip(declared, tensor.shape, strict=False):
        if isinstance(size, int):
            agrees = agrees and size == number
            continue
        symbol, solved = solve(size, number) or ("", 0)
        agrees = agrees and solved is not None
        if symbol and solved is not None:
            wrong = _disagreement(var, symbol, solved, sizes) or wrong
    if var.row_splits_of is not None and agrees and not wrong:
        wrong = _bad_splits(var, tensor) or _disagreement(var, var.row_splits_of, int(tensor[-1]), sizes)
    if not agrees:
        wrong = f'"{var.name}" must have shape {var.type_text.removeprefix(str(var.dtype))}, not {list(tensor.shape)}'
    if wrong:
        raise FeedError(wrong, location=var.location, contract=_contract(program), given=[actual])
    return tensor.to(device_of(place))


def _disagreement(var: Var, symbol: str, number: int, sizes: dict[str, tuple[int, str]]) -> str | None:
    """Record the size of `symbol`; return an error text if another input gave it a different size."""
    known, other = sizes.setdefault(symbol, (number, var.name))
    return None if known == number else f'"{var.name}" has {symbol} = {number}, but "{other}" has {symbol} = {known}'


def _bad_splits(var: Var, splits: torch.Tensor) -> str | None:
    """Return an error text if the row splits are invalid, else None."""
    if not len(splits) or splits[0] != 0:
        return f'"{var.name}" must start with 0, not {int(splits[0]) if len(splits) else "nothing"}'
    falls = (splits[1:] < splits[:-1]).nonzero()  # compared, not subtracted: a difference could overflow
    return f'"{var.name}" must not decrease, but {int(splits[falls[0]])} is followed by {int(splits[falls[0] + 1])}' if len(falls) else None


def _check_products(
    program: Program, inputs: Mapping[str, Var], tensors: Mapping[str, torch.Tensor], sizes: Mapping[str, tuple[int, str]]
) -> None:
    """Check sizes that combine several symbols, now that all symbols are known."""
    known = {symbol: number for symbol, (number, _) in sizes.items()}
    for name, tensor in tensors.items():
        for size, number in zip(inputs[name].shape or (), tensor.shape, strict=True):
            expected = None if size in known else evaluate(size, known)
            if expected is not None and expected != number:
                raise FeedError(
                    f'"{name}" has {size} = {number}, but the other inputs imply {size} = {expected}',
                    location=inputs[name].location,
                    contract=_contract(program),
                    given=[f'"{name}" is {from_torch(tensor.dtype)}{list(tensor.shape)}'],
                )


def _cut_hint(program: Program, var: Var) -> str | None:
    """Return a hint to feed a Ragged instead of row splits."""
    rows = next((other.name for other, levels in program.ragged_inputs().items() if is_among(var, levels)), None)
    return f'it contains the row splits of "{rows}": feed={{"{rows}": ol.Ragged.from_lists(rows)}}' if rows else None


def _contract(program: Program) -> str:
    return "the program takes " + ", ".join(f"{var.name}: {var.type_text}" for var in program.main.inputs)


def spread_ragged(program: Program, feed: Mapping[str, object]) -> dict[str, object]:
    """Return `feed` with each ragged value replaced by its elements and row splits. Raises FeedError.

    Plain arrays are unchanged, and so is an input that is fed together with all its row splits.
    """
    spread = dict(feed)
    levels_of = program.ragged_inputs()
    cut_by: dict[str, str] = {}
    for var in program.main.inputs:
        value, levels = feed.get(var.name), levels_of.get(var, [])
        if isinstance(value, Ragged) and not levels:
            raise FeedError(
                f'"{var.name}" is not a ragged input, but a Ragged is fed',
                location=var.location,
                given=[f'"{var.name}" fed as {value!r}'],
                hint=f'declare a ragged input by ol.layer.data("{var.name}", ..., ragged=1)',
            )
        apart = all(splits.name in feed for splits in levels)
        if not isinstance(value, Ragged) and (apart or not _is_rows(value)):
            continue
        ragged = as_ragged(var, value, len(levels))
        spread[var.name] = ragged.values
        for splits, cut in zip(levels, ragged.splits, strict=True):
            if splits.name in spread and not numpy.array_equal(to_numpy(to_tensor(spread[splits.name])), cut):
                other = f'"{cut_by[splits.name]}"' if splits.name in cut_by else f'"{splits.name}", also fed,'
                lengths = numpy.diff(cut), numpy.diff(to_numpy(to_tensor(spread[splits.name])))
                raise FeedError(
                    f'"{var.name}" and {other} have different row lengths',
                    location=var.location,
                    given=["rows of lengths {} and {}".format(*(f"{item.tolist()!r:.60}" for item in lengths))],
                )
            spread[splits.name] = cut
            cut_by.setdefault(splits.name, var.name)
    return spread


def as_ragged(var: Var, value: object, levels: int) -> Ragged:
    """Return `value` as a Ragged for the ragged input `var`. Raises FeedError.

    Accepts a Ragged; a list of rows, each a list or an array; or a pair of elements and row lengths, or of padded rows and row lengths,
    which differ in rank. Python numbers take the dtype of `var`.
    """
    try:
        ragged = (
            value
            if isinstance(value, Ragged)
            else _of_pair(var, value, levels)
            if isinstance(value, tuple)
            else _of_lists(var, value, levels)
        )
    except OarlockError as error:
        raise FeedError(f'"{var.name}": {error.message}', location=var.location, hint=_ragged_hint(var, levels)) from None
    if ragged.levels != levels:
        raise FeedError(
            f'"{var.name}" has {levels} level{"s" if levels > 1 else ""} of rows, but the fed value has {ragged.levels}',
            location=var.location,
            given=[f'"{var.name}" fed as {ragged!r}'],
            hint=_ragged_hint(var, levels),
        )
    return ragged


def _is_rows(value: object) -> bool:
    """Return whether `value` consists of rows, not of elements only."""
    return isinstance(value, list | tuple) or (isinstance(value, numpy.ndarray) and value.dtype == object)


def _of_lists(var: Var, value: object, levels: int) -> Ragged:
    elements, splits = flatten(value, levels)  # type: ignore[arg-type]
    if isinstance(elements, numpy.ndarray):
        return Ragged(elements, tuple(splits))
    if not elements:
        elements = torch.zeros([0, *(size if isinstance(size, int) else 0 for size in (var.shape or ())[1:])], dtype=to_torch(var.dtype))
    return Ragged(to_numpy(read_as(elements, var.dtype)), tuple(splits))


def _of_pair(var: Var, value: tuple, levels: int) -> Ragged:
    rank = len(var.shape or ())
    if levels == 1 and len(value) == 2 and _is_lengths(value[1]):
        dimensions = getattr(value[0], "ndim", None)
        if dimensions in (rank, rank + 1):
            return (Ragged.from_lengths if dimensions == rank else Ragged.from_padded)(*value)
    raise ArgumentError("a tuple must be (elements, lengths) or (padded rows, lengths)")


def _is_lengths(value: object) -> bool:
    """Return whether `value` may be row lengths: an array of one dimension, or a list of integers."""
    if isinstance(value, list | tuple):
        return all(isinstance(item, int | numpy.integer) and not isinstance(item, bool) for item in value)
    return getattr(value, "ndim", None) == 1


def _ragged_hint(var: Var, levels: int) -> str:
    return f'use feed={{"{var.name}": ol.Ragged.from_lists(rows{f", levels={levels}" if levels > 1 else ""})}}'
