"""The text of a plan with a clock beside each op, for who records what runs: the same lines, and others between them."""

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from oarlock.ir.var import Var, is_among
from oarlock.runtime import recording
from oarlock.runtime.plan.source import Extent
from oarlock.runtime.recording import Begun, Part

__all__ = ["TimedText"]

_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass
class TimedText:
    """The text of a plan with lines that note when each op, block and trip begins and ends.

    `bound` are the names that these lines use; `origin` gives the line of the plan, from 1, of each line that is in both. Where kernels run
    beside the host, it waits for them after each op: then the times are theirs, and a step takes longer than it would.
    """

    text: str
    bound: dict[str, object] = field(default_factory=dict)
    origin: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls, header: str, lines: list[str], extents: Iterable[Extent], names: dict[Var, str], devices: Sequence[torch.device]
    ) -> "TimedText":
        """The text of `lines`, which belong to `extents`, after the line `header`; `names` are those of values in it."""
        made = cls("", {"begun_now": _begun, "clock_now": partial(_clock, devices)})
        before: dict[int, list[str]] = {}
        after: dict[int, list[str]] = {}
        outer_first = sorted((each for each in extents if each.start < each.stop), key=lambda each: (each.start, -each.stop))
        for number, extent in enumerate(outer_first):
            written = lines[extent.start : extent.stop]
            indentation = written[0][: len(written[0]) - len(written[0].lstrip())]
            values, part = _part(extent, written, names)
            made.bound[f"note_{number}"] = partial(_note, part)
            begins = [f"{indentation}trip_of_{number} = {extent.trip}"] if extent.trip is not None else []
            before.setdefault(extent.start, []).extend([*begins, f"{indentation}begun_{number} = begun_now()"])
            arguments = [f"begun_{number}", "clock_now()", f"trip_of_{number}" if begins else "None", *values]
            after.setdefault(extent.stop, []).insert(0, f"{indentation}note_{number}({', '.join(arguments)})")
        written = [header]
        for number in range(len(lines) + 1):
            written += [*after.get(number, ()), *before.get(number, ())]
            if number < len(lines):
                written.append(lines[number])
                made.origin[len(written)] = number + 2  # the first line is the header
        made.text = "\n".join(written) + "\n"
        return made


def _part(extent: Extent, written: list[str], names: dict[Var, str]) -> tuple[list[str], Part]:
    """The names of the values to look at once an extent is over, and what it is. All that its lines name has a value then."""
    if not extent.ops:
        return [], Part("block", extent.block)
    op = extent.ops[0]
    if op.blocks:
        return [], Part("op", op.type, op, op.location)
    used = {name for line in written for name in _NAME.findall(line)}
    results = [var for each in extent.ops for var in each.writes if names.get(var) in used]
    others = [var for each in extent.ops for var in each.reads if names.get(var) in used and not is_among(var, results)]
    vars = [*results, *dict.fromkeys(others)]
    name = op.type if len(extent.ops) == 1 else "region of " + ", ".join(dict.fromkeys(each.type for each in extent.ops))
    part = Part("op", name, op if len(extent.ops) == 1 else None, op.location, tuple(vars), len(results), extent.is_kept)
    return [names[var] for var in vars], part


def _begun() -> Begun:
    found = recording.recorder
    return (time.perf_counter_ns(), 0) if found is None else found.begun()


def _clock(devices: Sequence[torch.device]) -> int:
    for device in devices:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
    return time.perf_counter_ns()


def _note(part: Part, begun: Begun, end: int, trip: int | None, *values: Any) -> None:
    found = recording.recorder
    if found is not None:
        found.note(begun, part, values, "" if trip is None else str(trip), end)
