"""Export an imported model to a file, check the file, and compare ONNX Runtime with our own run."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy
import onnx
import onnxruntime

import oarlock as ol
from oarlock.interop.torch.imported import ImportedModule

__all__ = ["OnnxOutcome", "compare_under_onnxruntime"]

_ALLOWED = 1e-5  # of the value, or of 1 if that is larger

Feed = Mapping[str, numpy.ndarray]


@dataclass
class OnnxOutcome:
    """The outcome of an export: "agrees", "refused" or "differs", the reason, the nodes, and the deviation as a share of the tolerance."""

    status: str = "agrees"
    faults: list[str] = field(default_factory=list)
    nodes: int = 0
    worst: float = 0.0


def compare_under_onnxruntime(model: ImportedModule, feeds: Sequence[Feed]) -> OnnxOutcome:
    """Export `model` once, and compare dtypes, shapes and values with `ol.infer` for each of `feeds`."""
    outcome = OnnxOutcome()
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.onnx"
        try:
            ol.to_onnx(model, path)
        except ol.errors.OarlockError as error:
            return OnnxOutcome("refused", [str(error)])
        try:
            held = onnx.load(path, load_external_data=False)
            outcome.nodes = len(held.graph.node)
            del held
            onnx.checker.check_model(path, full_check=True)  # by its path, because large values are in files next to it
            options = onnxruntime.SessionOptions()
            options.log_severity_level, options.intra_op_num_threads = 4, 1
            session = onnxruntime.InferenceSession(path, options)
            for feed in feeds:
                _compare(model, session, feed, outcome)
        except Exception as error:  # classes of compiled modules, which share no other
            outcome.faults.append(f"{type(error).__name__}: {' '.join(str(error).split())[:600]}")
    outcome.status = "differs" if outcome.faults else "agrees"
    return outcome


def _compare(model: ImportedModule, session: onnxruntime.InferenceSession, feed: Feed, outcome: OnnxOutcome) -> None:
    here = ol.infer(model, feed)
    here = here if isinstance(here, dict) else {next(iter(model.program.targets)): here}
    names = [item.name for item in session.get_outputs()]
    made: Any = session.run(None, {item.name: feed[item.name] for item in session.get_inputs()})
    there = dict(zip(names, made, strict=True))
    rows = next(iter(feed.values())).shape[0]
    for label, ours in here.items():
        theirs = there.get(label)
        if theirs is None or theirs.shape != ours.shape or theirs.dtype != ours.dtype:
            given = "missing" if theirs is None else f"{theirs.dtype}{list(theirs.shape)}"
            outcome.faults.append(f"{rows} rows: {label} is {given}, not {ours.dtype}{list(ours.shape)}")
            continue
        if not ours.size:
            continue
        one, other = ours.astype(numpy.float64), theirs.astype(numpy.float64)
        same = (one == other) | (numpy.isnan(one) & numpy.isnan(other))
        with numpy.errstate(invalid="ignore"):
            off = float(numpy.where(same, 0.0, numpy.abs(one - other) / numpy.maximum(1.0, numpy.abs(one))).max())
        outcome.worst = max(outcome.worst, off / _ALLOWED)
        if not off <= _ALLOWED:
            outcome.faults.append(f"{rows} rows: {label} is off by {off:.2e}, of {_ALLOWED:.0e} that are allowed")
