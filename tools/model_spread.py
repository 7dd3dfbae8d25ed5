"""Measure how much float32 results of a model vary: the imported program, and the PyTorch module with harmless variations.

    OMP_NUM_THREADS=1 python tools/model_spread.py tv/resnet34,timm/levit_384_s8

Each number is a share of the float32 tolerance of `models.py`, the maximum over two sizes and two batches: of the outputs in
evaluation (`forward`) or of the loss in training (`loss`). Columns:

    ours : theirs     the imported program and the module with one thread, as `models.py` compares them
    ours : 64         the imported program and the module in float64
    theirs : 64       the module and itself in float64
    threads           the module with two threads and with one
    channels last     the module with images and filters channels last and in the usual order
    row by row        the module with a batch of one row at a time and with all rows, in evaluation

If one of the last four columns is above 1, PyTorch's own variants differ by more than the tolerance.
"""

import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch
from model_catalogue import Subject, find_subject, renamed_first
from model_gate import BATCHES, FORWARD, LOSS, cast_inputs, draw_weights, feed_of, forward_distance, losses_beside, tensors_of
from torch import nn

import oarlock as ol
from oarlock.interop.torch.imported import ImportedModule

COLUMNS = ("ours : theirs", "ours : 64", "theirs : 64", "threads", "channels last", "row by row")

Inputs = dict[str, torch.Tensor]
Outputs = list[torch.Tensor]
Run = Callable[[Inputs, bool], Outputs]


def main() -> int:
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    print(f"{'model':24} {'of':8}" + "".join(f"{column:>14}" for column in COLUMNS))
    for name in ",".join(sys.argv[1:]).split(","):
        subject = find_subject(name)
        if subject is None:
            raise SystemExit(f"no model is called {name}")
        for kind, shares in spread(subject).items():
            print(
                f"{name:24} {kind:8}" + "".join(f"{shares[column]:14.1f}" if column in shares else f"{'-':>14}" for column in COLUMNS),
                flush=True,
            )
    return 0


def spread(subject: Subject) -> dict[str, dict[str, float]]:
    """Return the maximum of each column, for the outputs and the loss."""
    largest: dict[str, dict[str, float]] = {"forward": {}, "loss": {}}
    for size in subject.sizes:
        for kind, shares in _spread_at(subject, size):
            for column, share in shares.items():
                largest[kind][column] = max(share, largest[kind].get(column, 0.0))
    return largest


def _spread_at(subject: Subject, size: Any) -> list[tuple[str, dict[str, float]]]:
    """Run each variant for all cases in turn: the module is moved to another dtype or order in place, because some are large."""
    module = subject.module(size)
    batches = [renamed_first(module, subject.inputs(size, batch)) for batch in BATCHES]
    cases = [(given, training) for given in batches for training in (False, True)]
    model = ol.from_torch(module, batches[0], dynamic="n")
    made = {"ours": [_run_ours(model, *case) for case in cases]}
    del model
    made["theirs"] = [_run(module, *case) for case in cases]
    torch.set_num_threads(2)
    made["threads"] = [_run(module, *case) for case in cases]
    torch.set_num_threads(1)
    made["row by row"] = [[] if training else _run_by_row(module, given) for given, training in cases]
    module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    made["channels last"] = [_run(module, _channels_last(given), training) for given, training in cases]
    module.double().to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
    made["64"] = [_run(module, cast_inputs(given, torch.float64), training) for given, training in cases]
    pairs = [
        ("ours", "theirs"),
        ("ours", "64"),
        ("theirs", "64"),
        ("threads", "theirs"),
        ("channels last", "theirs"),
        ("row by row", "theirs"),
    ]
    found = []
    for index, (_, training) in enumerate(cases):
        share = _share_of_loss if training else _share_of_forward
        shares = {
            column: share(made[one][index], made[other][index])
            for column, (one, other) in zip(COLUMNS, pairs, strict=True)
            if made[one][index]
        }
        found.append(("loss" if training else "forward", shares))
    return found


def _run_ours(model: ImportedModule, given: Inputs, training: bool) -> Outputs:
    scope = ol.init(model.program, ol.Scope(), limits=ol.Limits(parameter_bytes=2**34))
    made = model.executor.run(model.program, feed_of(given), list(model.outputs.values()), scope=scope, training=training)
    return _floating([torch.as_tensor(value) for value in made])


def _run(module: nn.Module, given: Inputs, training: bool) -> Outputs:
    """Return the outputs of the module, without changing its buffers."""
    buffers = {name: value.clone() for name, value in module.named_buffers()}
    module.train(training)
    with torch.no_grad():
        outputs = _floating(tensors_of(module(**given)))
        for name, value in module.named_buffers():
            value.copy_(buffers[name])
    return outputs


def _run_by_row(module: nn.Module, given: Inputs) -> Outputs:
    rows = max(len(value) for value in given.values())
    made = [_run(module, {name: value[row : row + 1] for name, value in given.items()}, False) for row in range(rows)]
    return [torch.cat(parts) for parts in zip(*made, strict=True)]


def _channels_last(given: Inputs) -> Inputs:
    return {name: value.contiguous(memory_format=torch.channels_last) if value.ndim == 4 else value for name, value in given.items()}


def _floating(outputs: Outputs) -> Outputs:
    return [value.detach().clone() for value in outputs if value.is_floating_point()]


def _share_of_forward(one: Outputs, other: Outputs) -> float:
    return max(forward_distance(*pair) for pair in zip(one, other, strict=True)) / FORWARD[torch.float32]


def _share_of_loss(one: Outputs, other: Outputs) -> float:
    ours, theirs = losses_beside(one, other, draw_weights(other))
    return abs(ours - theirs) / max(theirs, 1e-300) / LOSS


if __name__ == "__main__":
    sys.exit(main())
