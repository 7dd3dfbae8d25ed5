"""The layers that ops belong to, by the names of parameters and results: `fc_0` of `fc_0.w`, `encoder.0` and `encoder` of `encoder.0.w`."""

import re
from collections.abc import Iterator, Sequence

from oarlock.ir.names import forward_name, gradient_name
from oarlock.ir.operation import Op, Role

__all__ = ["Path", "layer_of", "layer_paths", "runs"]

Path = tuple[str, ...]
"""The parts of a layer's name: `("encoder", "0", "attention")`."""

_RESULT = re.compile(r"(.+)\.out(?:_\d+)?")
"""The name of a layer's result, with the layer's name in it."""
_DEEPEST = 32  # parts of a name that count; a stranger's name may have a hundred


def layer_paths(ops: Sequence[Op]) -> list[Path]:
    """The layer of each of some ops in a row; empty for those of none. An op between two layers is of what both are parts of."""
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
    """Cut the ops from number `first` to `last` where the first parts of their layers, `depth` and one more, change.

    Yields a layer, empty for an op that belongs to none so deep, and the numbers of its ops: the name is as long as all of them share.
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
    """The layer of an op itself, empty where nothing says it: of the parameters that it reads or updates, else of what it defines.

    An op of the backward part is of the layer whose result's gradient it reads.
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
