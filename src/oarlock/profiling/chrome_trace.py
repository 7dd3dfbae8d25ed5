"""The trace of a profile as JSON in the Trace Event Format, for Perfetto (ui.perfetto.dev) and Chrome."""

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from oarlock.profiling.totals import Timed, multiply_adds_of, result_bytes

__all__ = ["trace_of"]


def trace_of(timed: Sequence[Timed], begin: int, main: int, about: Mapping[str, object]) -> bytes:
    """Return the trace of slices, in microseconds after `begin`, the thread `main` first. Details of each slice are in its `args`."""
    process = os.getpid()
    threads = [main, *dict.fromkeys(each.slice.thread for each in timed if each.slice.thread != main)]
    events: list[dict[str, Any]] = [{"ph": "M", "name": "process_name", "pid": process, "args": {"name": "oarlock"}}]
    for number, thread in enumerate(threads):
        name = "steps" if thread == main else _name_of_thread(timed, thread)
        events.append({"ph": "M", "name": "thread_name", "pid": process, "tid": number, "args": {"name": name}})
        events.append({"ph": "M", "name": "thread_sort_index", "pid": process, "tid": number, "args": {"sort_index": number}})
    for each in timed:
        found = each.slice
        events.append(
            {
                "ph": "X",
                "name": f"{found.part.name} {found.detail}".rstrip(),
                "cat": found.part.kind,
                "ts": (found.begin - begin) / 1e3,
                "dur": (found.end - found.begin) / 1e3,
                "pid": process,
                "tid": threads.index(found.thread),
                "args": _arguments(each),
            }
        )
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms", "otherData": dict(about)}, separators=(",", ":")).encode()


def _name_of_thread(timed: Sequence[Timed], thread: int) -> str:
    """Return the name of the first slice of a thread."""
    return next(each.slice.part.name for each in timed if each.slice.thread == thread)


def _arguments(timed: Timed) -> dict[str, Any]:
    found, part = timed.slice, timed.slice.part
    details: dict[str, Any] = {}
    if part.kind != "op":
        return details
    if part.location is not None:
        details["line"] = f"{part.location.file}:{part.location.line} in {part.location.function}"
        details["source"] = part.location.text
    if part.op is not None:
        details["role"] = part.op.role.name.lower()
    blocks = [" ".join(filter(None, (each.part.name, each.detail))) for each in timed.around if each.part.kind == "block"]
    details["block"] = "/".join(["main", *blocks])
    values = list(zip(part.vars, found.shapes, strict=False))
    for key, some in (("results", values[: part.results]), ("inputs", values[part.results :])):
        if some:
            details[key] = {var.name: f"{var.dtype}{'' if shape is None else list(shape)}" for var, shape in some}
    if part.results:
        details["bytes"] = result_bytes(found)
        details["bytes made"] = found.made
    count = multiply_adds_of(found)
    if count:
        details["multiply-adds"] = count
        details["GFLOP/s"] = round(2 * count / max(1, timed.own), 2)
    return details
