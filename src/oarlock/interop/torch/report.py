"""The report of an import: the operators that replace each operator of the module, and the unsupported ones."""

import re
import sys
import traceback
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from oarlock.errors import UnsupportedError
from oarlock.ir.location import Location, here

__all__ = ["Refusal", "Refusals", "Report", "line_in", "line_of", "module_of"]


@dataclass(frozen=True)
class Report:
    """The number of occurrences of each PyTorch overload, and the operators that replace it."""

    counts: Mapping[tuple[str, tuple[str, ...]], int]

    @property
    def native(self) -> int:
        """Return the number of nodes that became one operator or none."""
        return sum(count for (_, operators), count in self.counts.items() if len(operators) <= 1)

    @property
    def composed(self) -> int:
        """Return the number of nodes that became several operators."""
        return sum(count for (_, operators), count in self.counts.items() if len(operators) > 1)

    def __str__(self) -> str:
        lines = [f"{self.native + self.composed} nodes: {self.native} native, {self.composed} composed"]
        width = max((len(overload) for overload, _ in self.counts), default=0)
        for (overload, operators), count in sorted(self.counts.items(), key=lambda item: (-item[1], item[0])):
            kind = "native  " if len(operators) <= 1 else "composed"
            made = Counter(operators)
            text = ", ".join(f"{number} {operator}" if number > 1 else operator for operator, number in made.items()) or "nothing to do"
            lines.append(f"{count:6}  {overload:{width}}  {kind}  {text}")
        return "\n".join(lines)


# Unsupported nodes


_FRAME = re.compile(r'File "(?P<file>[^"\n]*)", line (?P<line>\d+), in (?P<function>[^\n]*)(?:\n(?!\s*File ")(?P<text>[^\n]*))?')
_TORCH = str(Path(torch.__file__).parent)
_OURS = str(Path(__file__).resolve().parents[2])
_LONGEST = 200


@dataclass(frozen=True)
class Refusal:
    """An unsupported node: the operator, the reason, the module path, the line in the module's code, and a hint."""

    operator: str
    why: str
    module: str = ""
    location: Location | None = None
    hint: str | None = None

    def __str__(self) -> str:
        place = ", ".join(
            part for part in (f"in {self.module}" if self.module else "", f"at {self.location}" if self.location else "") if part
        )
        hint = f"; {self.hint}" if self.hint else ""
        return f"{self.operator}: {self.why}{hint}{'; ' if place else ''}{place}"


class Refusals:
    """All unsupported nodes of one module."""

    def __init__(self, name: str):
        self.name = name
        self.found: list[Refusal] = []
        self._fault: Exception | None = None

    def add(
        self, node: torch.fx.Node, why: str, *, hint: str | None = None, operator: str | None = None, fault: Exception | None = None
    ) -> None:
        """Add an unsupported node. `fault` is an unexpected exception of a rule."""
        self._fault = self._fault or fault
        self.found.append(Refusal(operator or str(node.target), why, module_of(node), line_of(node), hint))

    def raise_if_any(self, what: str) -> None:
        """Raise UnsupportedError with all unsupported nodes, if any. Nodes with the same reason are grouped, with a count."""
        if not self.found:
            return
        counts = Counter((item.operator, item.why) for item in self.found)
        first: dict[tuple[str, str], Refusal] = {}
        for item in self.found:
            first.setdefault((item.operator, item.why), item)
        lines = [f"{item!s}{f' (and {counts[key] - 1} more)' if counts[key] > 1 else ''}" for key, item in first.items()]
        places = f"{len(self.found)} place{'' if len(self.found) == 1 else 's'}"
        error = UnsupportedError(
            f"{what}: {self.name} has unsupported operators in {places}; nothing was created",
            location=here(),
            given=lines,
            hint="rewrite these places, or import the surrounding modules separately",
        )
        error.refusals = tuple(self.found)  # type: ignore[attr-defined]
        raise error from self._fault


def module_of(node: torch.fx.Node) -> str:
    """Return the path of the module that contains `node`, such as `encoder.layer.0`; empty for the outermost module."""
    stack = node.meta.get("nn_module_stack")
    if not stack:
        return ""
    path = list(stack.values())[-1][0]
    return re.sub(r"^(L\['self'\]|self)\.?", "", path)


def line_of(node: torch.fx.Node) -> Location | None:
    """Return the source line of `node`: the innermost one outside PyTorch and Oarlock. None if the graph does not record it."""
    frames = [frame for frame in _FRAME.finditer(node.meta.get("stack_trace") or "") if _is_of_author(frame["file"])]
    if not frames:
        return None
    frame = frames[-1]
    return _location(frame["file"], int(frame["line"]), frame["function"], frame["text"])


def line_in(error: BaseException) -> Location | None:
    """Return the line of the module's code at which PyTorch raised `error` while tracing, or None."""
    found: BaseException | None = error
    last = None
    while found is not None and last is None:
        frames = [frame for frame in traceback.extract_tb(found.__traceback__) if _is_of_author(frame.filename)]
        last = frames[-1] if frames else None
        found = found.__cause__ or found.__context__
    return None if last is None else _location(last.filename, last.lineno or 1, last.name, last.line)


def _is_of_author(file: str) -> bool:
    return not file.startswith((_TORCH, _OURS, "<", "torch/"))


def _location(file: str, line: int, function: str, text: str | None) -> Location:
    return Location(_relative(file), line, function[:_LONGEST], (text or "").strip()[:_LONGEST])


def _relative(file: str) -> str:
    """Return `file` relative to the folder it was imported from, never an absolute path."""
    folders = sorted((folder for folder in sys.path if folder and file.startswith(folder.rstrip("/") + "/")), key=len)
    return (file[len(folders[-1].rstrip("/")) + 1 :] if folders else Path(file).name)[-_LONGEST:]
