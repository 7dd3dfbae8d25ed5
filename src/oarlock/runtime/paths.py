"""Paths to values of a run, and reading them from the scopes of the run.

main/cost a variable of the main block main/rnn_0/3/z z of the loop's block, in iteration 3 main/rnn_0/z z of all iterations, stacked:
iteration i at index i, in any order of execution main/rnn_0/2/rnn_1/z z of all iterations of the inner loop, in iteration 2 of the outer
one main/if_else_0.true/z z in that branch
"""

import difflib
import re
from collections.abc import Sequence
from typing import NamedTuple

import torch

from oarlock.errors import ArgumentError, ProgramError, ShapeError, UndefinedVarError, UnsetVarError
from oarlock.ir.block import Block
from oarlock.ir.location import here
from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.size import Size, evaluate
from oarlock.ir.var import Var
from oarlock.runtime.scope import Scope
from oarlock.suggestions import list_names
from oarlock.tensor.dtype import to_torch

__all__ = ["Path", "find_path"]

_TRIP = re.compile(r"0|[1-9][0-9]{0,8}", re.ASCII)


class Path(NamedTuple):
    """A variable and, for each block from the outermost to its own, the iteration, or None for all iterations."""

    var: Var
    trips: tuple[int | None, ...] = ()

    @property
    def blocks(self) -> list[Block]:
        """The nested blocks from the outermost to the variable's own, without the main block."""
        return list(self.var.block.enclosing())[-2::-1]

    @property
    def owner(self) -> Op | None:
        """The op of the main block that runs the blocks; None for a variable of the main block."""
        return _owner(self.blocks[0]) if self.trips else None

    def __str__(self) -> str:
        return f"{_where(self.blocks, self.trips)}/{self.var.name}"

    def read(self, frame: Scope, device: torch.device) -> torch.Tensor:
        """Return the value after the main block has run in `frame`, before its scopes are dropped.

        Raises UnsetVarError for an iteration or branch that did not run, ShapeError if the iterations have different sizes.
        """
        return self._read(frame, (), device)

    def _read(self, scope: Scope, at: tuple[int | None, ...], device: torch.device) -> torch.Tensor:
        """Return the value below `scope`, which was reached through the iterations `at`."""
        if len(at) == len(self.trips):
            return self._value(scope, at)
        block, trip = self.blocks[len(at)], self.trips[len(at)]
        entered = next((child for child in scope.children if child.name == _scope_name(block)), None)
        if not _is_loop(block):
            if entered is None:
                raise self._unset(f"{_where(self.blocks, at, block)} did not run")
            return self._read(entered, (*at, None), device)
        trips = {int(child.name): child for child in entered.children} if entered is not None else {}
        if trip is not None:
            if trip not in trips:
                raise self._unset(f"{_where(self.blocks, at, block)} ran {_count(len(trips))}, numbered from 0")
            return self._read(trips[trip], (*at, trip), device)
        if not trips:
            return self._empty(scope, at, device)
        return self._stack({number: self._read(trips[number], (*at, number), device) for number in sorted(trips)}, at)

    def _value(self, scope: Scope, at: tuple[int | None, ...]) -> torch.Tensor:
        return self.require_tensor(scope[self.var.name], at)

    def require_tensor(self, value: object, at: tuple[int | None, ...] = ()) -> torch.Tensor:
        """Return `value`, that of the variable in the iterations `at`. Raises ShapeError for an uneven stack."""
        if not isinstance(value, torch.Tensor):
            raise ShapeError(
                f'"{_where(self.blocks, at)}/{self.var.name}" has a different size in each iteration, so it is not a single tensor',
                location=self.var.location,
                given=[self.var.describe()],
                hint="fetch the variable of the inner block in one iteration",
            )
        return value

    def _unset(self, reason: str) -> UnsetVarError:
        return UnsetVarError(f'"{self}" has no value: {reason}', location=self.var.location)

    def _stack(self, values: dict[int, torch.Tensor], at: tuple[int | None, ...]) -> torch.Tensor:
        """Stack the values of the iterations of one loop."""
        first, like = next(iter(values.items()))
        other = next((number for number, value in values.items() if value.shape != like.shape), None)
        if other is None:
            return torch.stack(list(values.values()))
        shapes = like.shape, values[other].shape
        places = [_where(self.blocks, (*at, number)) for number in (first, other)]
        loops = self._stacked_loops(len(at) + 1)
        differing = next((dim for dim in range(len(loops)) if shapes[0][dim] != shapes[1][dim]), None)
        if differing is None:
            one, another = (f"{self.var.dtype}{list(shape)} in {place}" for shape, place in zip(shapes, places, strict=True))
            reason = f"it is {one} and {another}"
        else:
            one, another = (f"{_count(shape[differing])} in {place}" for shape, place in zip(shapes, places, strict=True))
            reason = f"{_scope_name(loops[differing])} ran {one} and {another}"
        hint = f'fetch one iteration, "{Path(self.var, (*at, first, *self.trips[len(at) + 1 :]))}"'
        if "splits" in _owner(self.blocks[len(at)]).inputs:
            hint += ", or use rnn.output, which joins the rows"
        raise ShapeError(f'"{self}" cannot be stacked: {reason}', location=self.var.location, hint=hint)

    def _stacked_loops(self, depth: int) -> list[Block]:
        """Return the loops from depth `depth` on of which all iterations are selected."""
        inside = zip(self.blocks[depth:], self.trips[depth:], strict=True)
        return [block for block, trip in inside if trip is None and _is_loop(block)]

    def _empty(self, scope: Scope, at: tuple[int | None, ...], device: torch.device) -> torch.Tensor:
        """Return the empty stack of a loop without iterations, with the declared type."""
        block = self.blocks[len(at)]
        sizes: list[Size | None] = [0, *(_declared_trips(inner) for inner in self._stacked_loops(len(at) + 1))]
        sizes += [None] if self.var.shape is None else self.var.shape
        known = _known_sizes(block.parent, scope)
        shape = [None if size is None else evaluate(size, known) for size in sizes]
        if None in shape:
            raise ShapeError(
                f'"{self}": {_where(self.blocks, at, block)} ran no iterations, so the sizes of the stack are unknown',
                location=self.var.location,
                given=[self.var.describe()],
            )
        return torch.zeros(shape, dtype=to_torch(self.var.dtype), device=device)  # type: ignore[arg-type]


def _is_loop(block: Block) -> bool:
    """Return whether a block is a loop body, which has one scope per iteration. A branch has one scope."""
    return not any(op.type == "conditional_block" and block in op.blocks for op in block.parent.ops)  # type: ignore[union-attr]


def _scope_name(block: Block) -> str:
    """Return the name of the scope of a branch or loop."""
    return block.name.partition(".")[0] if _is_loop(block) else block.name


def _owner(block: Block) -> Op:
    """Return the op that runs a nested block."""
    return next(op for op in block.parent.ops if block in op.blocks)  # type: ignore[union-attr]


def _where(blocks: list[Block], at: tuple[int | None, ...], inner: Block | None = None) -> str:
    """Return the path of a scope, through `blocks` with the iterations `at`, then `inner`."""
    parts = ["main"]
    for block, trip in zip(blocks, at, strict=False):
        parts += [_scope_name(block)] if trip is None else [_scope_name(block), str(trip)]
    return "/".join(parts if inner is None else [*parts, _scope_name(inner)])


def _count(trips: int) -> str:
    return "1 iteration" if trips == 1 else f"{trips} iterations"


def _declared_trips(loop: Block) -> Size | None:
    """Return the declared number of iterations, that is, steps of the sequences, or None."""
    op = _owner(loop)
    sequences = op.inputs.get("sequences")
    is_plain = "splits" not in op.inputs and not op.attributes.get("segments")
    return sequences[0].shape[0] if sequences and sequences[0].shape and is_plain else None


def _known_sizes(block: Block | None, scope: Scope) -> dict[str, int]:
    """Return the number of each symbol, from the values visible in `scope`, in which `block` ran."""
    sizes: dict[str, int] = {}
    hidden: set[str] = set()
    for around in block.enclosing() if block is not None else ():
        for name, var in around.vars.items():
            value = scope.get(name) if name not in hidden else None
            if isinstance(value, torch.Tensor):
                sizes |= {size: number for size, number in zip(var.shape or (), value.shape, strict=False) if isinstance(size, str)}
        hidden |= around.vars.keys()
    return sizes


# Parsing of fetches


def find_path(program: Program, item: Var | str) -> Path:
    """Return the path that a fetch refers to: a variable, the label of a target, a name of the main block, or a path.

    A variable of a nested block refers to the stack of all iterations. Raises UndefinedVarError with the nearest existing names, or
    ArgumentError for an item that is neither a variable nor a str.
    """
    if isinstance(item, Var):
        return _path_of(program, item)
    if not isinstance(item, str):
        raise ArgumentError(f"a fetch must be a variable or its name, not {type(item).__name__} {item!r:.60}", location=here())
    found = program.find_target(item)
    if found is not None:
        return Path(found)
    if item.startswith("main/"):
        return _parse(program, item)
    if f"{item}.part" in program.main.vars:
        raise _gone(program.main.vars[f"{item}.part"], item)
    if "/" in item or any(item in block.vars for block in program.blocks):
        raise _unknown(program, item)
    return Path(program.get_target(item))  # raises


def _path_of(program: Program, var: Var) -> Path:
    """Return the path of a variable, through all iterations."""
    if var.block.program is not program:
        raise UndefinedVarError(
            f'"{var.path}" is not a variable of this program',
            location=here(),
            given=[var.describe()],
            hint="fetch by name if the program is a copy or was loaded from a file",
        )
    if var.block.vars.get(var.name) is not var:
        raise _gone(var)
    if var.block is program.main:
        return Path(var)
    path = Path(var, (None,) * (len(list(var.block.enclosing())) - 1))
    for block in path.blocks:
        _require_scope_of_its_own(block)
    return path


def _gone(var: Var, name: str = "") -> UndefinedVarError:
    """Return the error for a variable that a rewrite removed, or of which each worker has only a part: see `parallel/parts.py`."""
    name = name or var.name
    part = var.block.vars.get(f"{name}.part")
    if part is None:
        return UndefinedVarError(f'"{name}" was removed from this program', location=here(), given=[var.describe()])
    return UndefinedVarError(
        f'"{name}" is a sum over the rows of all workers, and each worker has only a part of it',
        location=here(),
        given=[part.describe()],
        hint=f'make "{name}" a target before data_parallel, or fetch the part of this worker, "{part.name}"',
    )


def _parse(program: Program, text: str) -> Path:
    """Parse a path from the front: blocks with optional iterations, then a variable."""
    around, trips, rest = program.main, [], text.removeprefix("main/")
    entered: list[Block] = []
    while rest not in around.vars:
        inside = [block for op in around.ops for block in op.blocks]
        found = next((block for block in inside if rest.startswith(f"{_scope_name(block)}/")), None)
        if found is None:
            raise _unknown(program, text, entered, trips)
        _require_scope_of_its_own(found)
        entered.append(found)
        around, rest = found, rest.removeprefix(f"{_scope_name(found)}/")
        trip, _, after = rest.partition("/")
        chosen = bool(_is_loop(found) and after and _TRIP.fullmatch(trip))
        trips.append(int(trip) if chosen else None)
        rest = after if chosen else rest
    return Path(around.vars[rest], tuple(trips))


def _require_scope_of_its_own(block: Block) -> None:
    """Check that a block's scope name is unique, which programs built without layers may violate. Raises ProgramError."""
    beside = [inner for op in block.parent.ops for inner in op.blocks]  # type: ignore[union-attr]
    if [_scope_name(inner) for inner in beside].count(_scope_name(block)) > 1:
        names = ", ".join(inner.name for inner in beside if _scope_name(inner) == _scope_name(block))
        raise ProgramError(f"the path is ambiguous, because several blocks have it: {names}", location=here())


def _unknown(program: Program, text: str, blocks: Sequence[Block] = (), trips: Sequence[int | None] = ()) -> UndefinedVarError:
    """Return the error for a path without a target below `blocks`, entered in `trips`. It lists the nearest existing paths."""
    there, first = [], []
    for block in program.blocks:
        around = list(block.enclosing())[-2::-1]
        chosen = trips if around[: len(blocks)] == list(blocks) else ()
        filled = (*chosen, *[None] * (len(around) - len(chosen)))
        paths = [str(Path(block.vars[name], filled)) for name in block.listed_vars()]
        there += paths
        first += paths if around == list(blocks) else []
    same_name = [path for path in there if path.endswith(f"/{text.rpartition('/')[2]}")]
    near = difflib.get_close_matches(text, same_name, n=3, cutoff=0.0)
    near = near or difflib.get_close_matches(text, there, n=3, cutoff=0.8) or difflib.get_close_matches(text, there, n=1)
    quoted = [f'"{path}"' for path in near]
    return UndefinedVarError(
        f'"{text}" is not a variable of this program',
        location=here(),
        given=[f"there are: {list_names(text, [*near, *first, *there])}"],
        hint=f"did you mean {' or '.join(quoted)}?" if quoted else None,
    )
