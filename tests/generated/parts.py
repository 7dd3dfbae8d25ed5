"""Parts of a program: any of its values alone, in whatever way it is asked for, is what it is in a run of the whole."""

from collections.abc import Iterator
from contextlib import suppress
from random import Random

import numpy
import torch

import oarlock as ol
from generated.making import Case
from generated.running import (
    Arrays,
    DisagreementError,
    feed_of,
    require_alike,
    require_all_same,
    require_planned,
    require_same,
    run,
    scope_of,
)
from oarlock.ir.block import Block

__all__ = ["check_parts"]


def check_parts(case: Case, program: ol.Program, values: Arrays, random: Random) -> None:
    """Some of the checks. `program` has gradients, and `values` are what the interpreter computes of it."""
    _, scopes = ol.Executor().run(program, feed_of(program, case.arrays), scope=scope_of(program, case.arrays), keep_scopes=True)
    held = {var.name: scopes["main"][var.name] for op in program.main.ops for var in op.writes}
    everything = {name: value.numpy() for name, value in held.items() if isinstance(value, torch.Tensor)}  # else it is an uneven stack
    if not everything:
        return
    require_all_same("where everything is fetched", {name: everything[name] for name in values if name in everything}, values)
    for part in random.sample((_check_all, _check_single, _check_pruned, _check_kept_tensors, _check_paths), 2):
        part(case, program, everything, random)


def _check_all(case: Case, program: ol.Program, values: Arrays, random: Random) -> None:
    names = list(values)
    require_planned(program, "where everything is fetched by a plan", run(program, case.arrays, names, ol.Executor(passes=())), values)
    require_alike("where everything is fetched after the passes", run(program, case.arrays, names, ol.Executor()), values)


def _check_single(case: Case, program: ol.Program, values: Arrays, random: Random) -> None:
    for name in _some(list(values), 2, random):
        require_all_same("fetched alone", run(program, case.arrays, [name]), values)
        require_planned(program, "fetched alone by a plan", run(program, case.arrays, [name], ol.Executor(passes=())), values)
        require_alike("fetched alone after the passes", run(program, case.arrays, [name], ol.Executor()), values)


def _check_pruned(case: Case, program: ol.Program, values: Arrays, random: Random) -> None:
    """Above all to what ops with blocks return, of which there is less to do for one value."""
    owned = [var.name for op in program.main.ops if op.blocks for var in op.writes]
    for name in [*_some(list(values), 1, random), *_some([name for name in owned if name in values], 2, random)]:
        pruned = ol.Program.from_bytes(ol.prune(program, {"value": program.main.var(name)}).to_bytes())
        require_same(f'"{name}" of what is pruned to it', run(pruned, case.arrays, ["value"])["value"], values[name])


def _some(names: list[str], count: int, random: Random) -> list[str]:
    return random.sample(names, min(count, len(names)))


def _check_kept_tensors(case: Case, program: ol.Program, values: Arrays, random: Random) -> None:
    """Tensors that a run has returned stay as they are when the program is run again."""
    names = list(values)
    executor = random.choice((ol.Executor(passes=()), ol.Executor(), ol.Executor(interpret=True)))
    scope = scope_of(program, case.arrays)
    step = executor.prepare(program, names, scope=scope, return_numpy=False)
    feed = feed_of(program, case.arrays)
    tensors = [value for value in step(feed) if isinstance(value, torch.Tensor)]
    copies = [tensor.clone() for tensor in tensors]
    with suppress(ol.ShapeError):  # other rows may take a branch now, so that steps that were alike are not
        step({name: array + 0.01 if array.dtype.kind == "f" else array for name, array in feed.items()})
    for name, tensor, copy in zip(names, tensors, copies, strict=True):
        if tensor.numpy().tobytes() != copy.numpy().tobytes():
            raise DisagreementError("written over", f'"{name}" was {copy!r}, and is {tensor!r} after another run')


# Values of inner blocks


def _check_paths(case: Case, program: ol.Program, values: Arrays, random: Random) -> None:
    """Values fetched from inner blocks, by path or as a stack, are those that a run of everything has left in its scopes."""
    feed = feed_of(program, case.arrays)
    _, scopes = ol.Executor().run(program, feed, scope=scope_of(program, case.arrays), keep_scopes=True)
    inner = [(block, path) for block in program.blocks[1:] for path in scopes if _leads_to(path, block)]
    deepest = max((path.count("/") for _, path in inner), default=0)
    for block, path in _chosen(inner, deepest, random):
        held = [var for var in block.vars.values() if var.name in list(scopes[path])]
        if not held:
            continue
        var = random.choice(held)
        value = scopes[path][var.name]
        if not isinstance(value, torch.Tensor):  # an uneven stack
            continue
        name = f"{path}/{var.name}"
        require_same(f'"{name}"', run(program, case.arrays, [name], ol.Executor())[name], value.numpy())
        grid = {_trips(other): scopes[other][var.name] for around, other in inner if around is block and var.name in list(scopes[other])}
        stack = _stacked(grid)
        if stack is not None and _always_runs(block):
            (found,) = ol.Executor().eval(program, [var], feed, scope=scope_of(program, case.arrays))
            require_same(f'the stack of "{name}" over all trips', found, stack)


def _chosen(inner: list[tuple[Block, str]], deepest: int, random: Random) -> Iterator[tuple[Block, str]]:
    """One scope of any block, and one of the deepest."""
    if inner:
        yield random.choice(inner)
        yield random.choice([item for item in inner if item[1].count("/") == deepest])


def _leads_to(path: str, block: Block) -> bool:
    """Whether the scope at `path` is one of a run of `block`: `main/rnn_0/3` of `rnn_0.body`."""
    parts = path.split("/")[1:]
    for around in list(block.enclosing())[-2::-1]:
        loop, is_branch = around.name.partition(".")[0], parts[:1] == [around.name]
        if not is_branch and not (parts[:1] == [loop] and len(parts) > 1 and parts[1].isdigit()):
            return False
        parts = parts[1:] if is_branch else parts[2:]
    return not parts


def _always_runs(block: Block) -> bool:
    """Whether it is the block of a loop of the main block, so that it has run in each of the trips there are."""
    return (
        block.parent is block.program.main
        or all(
            op.type == "recurrent" and "splits" not in op.inputs and isinstance(op.inputs["sequences"][0].shape[0], int)  # type: ignore[index]
            for around in list(block.enclosing())[:-1]
            for op in around.parent.ops  # type: ignore[union-attr]
            if around in op.blocks
        )
    )


def _trips(path: str) -> tuple[int, ...]:
    return tuple(int(part) for part in path.split("/") if part.isdigit())


def _stacked(values: dict[tuple[int, ...], object]) -> numpy.ndarray | None:
    """The stack over all trips; None where some are missing or of other sizes."""
    counts = [len({trips[level] for trips in values}) for level in range(len(next(iter(values))))]
    tensors = [values[trips] for trips in sorted(values)]
    if not all(isinstance(tensor, torch.Tensor) for tensor in tensors):
        return None
    if len({tuple(tensor.shape) for tensor in tensors}) > 1 or numpy.prod(counts, dtype=int) != len(tensors):  # type: ignore[attr-defined]
        return None
    return numpy.stack([tensor.numpy() for tensor in tensors]).reshape((*counts, *tensors[0].shape))  # type: ignore[attr-defined]
