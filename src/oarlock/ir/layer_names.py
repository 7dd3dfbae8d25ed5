"""The layers that ops belong to, derived from names of parameters and results: `fc_0` from `fc_0.w`, `encoder.0` from `encoder.0.w`."""

import re
from collections.abc import Iterator, Sequence

from oarlock.ir.names import forward_name, gradient_name
from oarlock.ir.operation import Op, Role

__all__ = ["Path", "layer_of", "layer_paths", "runs"]

Path = tuple[str, ...]
"""The parts of a layer name: `("encoder", "0", "attention")`."""

_RESULT = re.compile(r"(.+)\.out(?:_\d+)?")
"""Matches the name of a layer's result; group 1 is the layer name."""
_DEEPEST = 32  # maximum parts of a name; an untrusted name may have a hundred


def layer_paths(ops: Sequence[Op]) -> list[Path]:
    """Return the layer of each op in a sequence; empty if unknown. An op between two layers gets their common prefix."""
    owners = [layer_of(op) for op in ops]
    behind: list[Path] = [()] * len(ops)
    following: Path = ()
    for number in reversed(range(len(ops))):
        following = owners[number] or following
        behind[number] = following
    found: list[Path] = []
    before: Path = ()
    for owner, after in zip(owners, behind, strict=True):
        before = owner or before
        found.append(owner or _shared(before, after))
    return found


def runs(paths: Sequence[Path], first: int, last: int, depth: int) -> Iterator[tuple[Path, int, int]]:
    """Group the ops from index `first` to `last` by the first `depth` + 1 parts of their layers.

    Yields the common layer path of each group, empty for an op with a shorter path, and the range of its op indexes.
    """
    at = first
    while at < last:
        end = at + 1
        if len(paths[at]) > depth:
            part = paths[at][depth]
            while end < last and len(paths[end]) > depth and paths[end][depth] == part:
                end += 1
        if end - at == 1:
            yield (), at, end
        else:
            shared = paths[at]
            for path in paths[at + 1 : end]:
                shared = _shared(shared, path)
            yield shared, at, end
        at = end


def layer_of(op: Op) -> Path:
    """Return the layer of one op, or an empty path: that of the parameters it reads or updates, else that of its results.

    A backward op belongs to the layer whose result's gradient it reads.
    """
    if op.blocks:
        return ()
    for var in op.reads:
        if var.parameter:
            return _parts(var.name.rpartition(".")[0] or var.name)
    if op.is_commit:
        return _parts(forward_name(op.writes[0].name).rpartition(".")[0])
    for var in op.reads if op.role is Role.BACKWARD else op.writes:
        found = _RESULT.fullmatch(forward_name(var.name))
        if found and (op.role is not Role.BACKWARD or var.name.endswith(gradient_name(""))):
            return _parts(found[1])
    return ()


def _parts(name: str) -> Path:
    return tuple(name.split(".")[:_DEEPEST]) if name else ()


def _shared(left: Path, right: Path) -> Path:
    count = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        count += 1
    return left[:count]
