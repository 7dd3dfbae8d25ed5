"""The text of a plan while it is written: lines, the op that each belongs to, and what its names are bound to."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple

import torch

from oarlock.backend.torch.private import without_python
from oarlock.ir.operation import Op
from oarlock.ir.var import Var

__all__ = ["Extent", "Instruction", "Source"]

_ROOTS = {"torch": torch, "aten": torch.ops.aten}


class Instruction(NamedTuple):
    """The origin of a line of a plan: an op, and the loops around it, each given by its name and the name of its iteration counter."""

    op: Op
    trips: tuple[tuple[str, str | None], ...]


class Extent(NamedTuple):
    """The lines `start` to `stop` of a plan, from 0: those of an op, or of several in one call; or of a block, or of one trip of it.

    `is_kept` tells of an op that writes into memory which the plan keeps.
    """

    start: int
    stop: int
    ops: tuple[Op, ...] = ()
    block: str = ""
    trip: str | None = None
    is_kept: bool = False


@dataclass
class Source:
    """Python text that is being written.

    It is made of identifiers and integers of ours alone: names of variables are spelled anew, and whatever a program
    says - attributes, kernels - is bound to a name.
    """

    lines: list[str] = field(default_factory=list)
    ops: dict[int, Instruction] = field(default_factory=dict)  # number of a line, from 1 -> what it does
    bound: dict[str, object] = field(default_factory=dict)
    names: dict[Var, str] = field(default_factory=dict)
    trips: list[tuple[str, str | None]] = field(default_factory=list)
    extents: list[Extent] = field(default_factory=list)
    kept: set[Op] = field(default_factory=set)  # ops that write into a destination
    _depth: int = 1
    _count: int = 0
    _constants: dict[tuple[str, int], str] = field(default_factory=dict)

    def write(self, text: str, op: Op | None = None) -> None:
        """Append a line, of `op` where it is one."""
        self.lines.append("    " * self._depth + text)
        if op is not None:
            self.ops[len(self.lines) + 1] = Instruction(op, tuple(self.trips))  # the first line is the `def`

    @contextmanager
    def indented(self) -> Iterator[None]:
        """Indent the lines that are written in this context, under the line before."""
        self._depth += 1
        start = len(self.lines)
        yield
        if len(self.lines) == start:
            self.write("pass")
        self._depth -= 1

    @contextmanager
    def function(self, name: str, parameters: Sequence[str]) -> Iterator[None]:
        """Put the lines that are written in this context into another function, after the one that `text` names and last of all."""
        self.lines += ["", "", f"def {name}({', '.join(parameters)}):"]
        yield

    @contextmanager
    def inside(self, name: str, trip: str | None) -> Iterator[None]:
        """Record that the lines written in this context are in the loop or branch `name`, whose iteration counter is `trip`."""
        self.trips.append((name, trip))
        start = len(self.lines)
        yield
        self.extents.append(Extent(start, len(self.lines), block=name, trip=trip))
        self.trips.pop()

    def extend(self, start: int, *ops: Op) -> None:
        """Record that the lines from `start` on are those of `ops`."""
        self.extents.append(Extent(start, len(self.lines), ops, is_kept=not self.kept.isdisjoint(ops)))

    def fresh(self, stem: str) -> str:
        """A name that nothing else in the plan has."""
        self._count += 1
        spelled = re.sub(r"[^A-Za-z0-9]+", "_", stem.partition("@")[0]).strip("_")[:40]
        return f"{spelled if spelled[:1].isalpha() else f'v{spelled}'}_{self._count}"

    def name(self, var: Var) -> str:
        """The name of the value of `var` in the source."""
        if var not in self.names:
            self.names[var] = self.fresh(var.name)
        return self.names[var]

    def bind(self, stem: str, value: object) -> str:
        """The name by which the plan calls `value` as a `stem`; one name for one object."""
        key = stem, id(value)
        if key not in self._constants:
            self._constants[key] = self.fresh(stem)
            self.bound[self._constants[key]] = value  # which also keeps it alive, so that its id is its own
        return self._constants[key]

    def bind_torch(self, stem: str, path: str) -> str:
        """The name by which the plan calls the function of PyTorch at `path`: see `Expression`."""
        root, *names = path.split(".")
        function = reduce(getattr, names, _ROOTS[root])
        return self.bind(stem, without_python(function))

    def text(self, function: str, parameters: Sequence[str]) -> str:
        return f"def {function}({', '.join(parameters)}):\n" + "\n".join(self.lines) + "\n"
