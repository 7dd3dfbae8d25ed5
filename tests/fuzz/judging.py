"""The legal outcomes of a file: an error of ours, or a program that prints, parses, and runs within its limits."""

import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

import numpy
import torch

import oarlock as ol
from oarlock.ir.content_hash import content_hash
from oarlock.ir.size import evaluate, names_in

__all__ = ["LONGEST_SECONDS", "MOST_MEMORY", "Tally", "judge", "probe", "require_readable"]

REFUSALS = (ol.FormatError, ol.VerifyError, ol.LimitError, ol.UnknownOperatorError, ol.TrainingProgramError, ol.MissingFileError)
RUN = ol.RunLimits(trips=64, ops=2_000, live_bytes=32 * 2**20, seconds=1.0)
LONGEST_MESSAGE = 4096
LONGEST_SECONDS = 5.0  # of one file, read and run
MOST_MEMORY = 512 * 2**20  # by which one file makes the process grow


@dataclass
class Tally:
    """The outcomes of the files so far."""

    outcomes: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def percentile(self, share: float) -> float:
        return sorted(self.seconds)[min(int(share * len(self.seconds)), len(self.seconds) - 1)]


def judge(path: Path, tally: Tally, label: str) -> None:
    """Read the file, run what loads, and note what came of it. Whatever is not foreseen is a failure."""
    started = time.perf_counter()
    try:
        outcome = probe(path)
    except Exception as error:
        outcome = "failure"
        tally.failures.append(f"{label}: {type(error).__name__}: {str(error)[:300]}")
    tally.seconds.append(time.perf_counter() - started)
    tally.outcomes[outcome] += 1


def probe(path: Path) -> str:
    """The class of the refusal, or what the run came to. Raises whatever is not one of ours."""
    try:
        model = ol.load_model(path)
    except REFUSALS as error:
        require_readable(error)
        return type(error).__name__
    try:
        ol.inference.load_model(path)
    except (ol.TrainingProgramError, ol.UnknownOperatorError) as error:
        require_readable(error)
    _require_round_trips(model.program)
    _require_drawn(model.program)
    state = {name: model.scope[name].clone() for name in model.scope}
    try:
        feed = {var.name: _value(var) for var in model.program.main.inputs}
        ol.Executor(limits=RUN).run(model.program, feed, list(model.program.targets), scope=model.scope, training=True)
    except ol.OarlockError as error:
        require_readable(error)
        for name, value in state.items():
            assert torch.equal(model.scope[name].nan_to_num(), value.nan_to_num()), f"{name} changed, yet the run was refused"
        assert set(model.scope) == set(state)
        return f"runs into {type(error).__name__}"
    return "runs"


def require_readable(error: ol.OarlockError) -> None:
    """Raise where a message is too long, says nothing, or could do more than be read."""
    assert len(str(error).encode()) <= LONGEST_MESSAGE, f"a message of {len(str(error))} characters"
    assert error.message.strip()
    assert all(line.isprintable() for line in str(error).split("\n")), "what a file says steers a terminal"


def _require_round_trips(program: ol.Program) -> None:
    """The program that is read is the same in bytes and in text."""
    data = program.to_bytes()
    again = ol.Program.from_bytes(data)
    assert again.to_bytes() == data
    printed = program.to_text(source=False)
    assert again.to_text(source=False) == printed
    assert content_hash(ol.registry.parse_program(printed)) == content_hash(program), "the text is of another program"


def _require_drawn(program: ol.Program) -> None:
    """The picture is XML, and the page has no script of a stranger's."""
    drawing = ol.draw(program)
    ElementTree.fromstring(drawing.svg)
    assert "<script" not in drawing.html, "what a file says is markup in its drawing"


def _value(var: ol.Var) -> numpy.ndarray:
    shape = [evaluate(size, dict.fromkeys(names_in(size), 2)) or 0 for size in var.shape or ()]
    if numpy.prod([float(max(size, 1)) for size in shape]) > 2**20:
        shape = [1 for _ in shape]
    if var.row_splits_of:
        return torch.arange(max(shape[0], 0))  # rows of one element each
    return torch.zeros([max(size, 0) for size in shape], dtype=getattr(torch, var.dtype.value))
