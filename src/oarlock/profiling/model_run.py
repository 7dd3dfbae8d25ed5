"""Profiling a saved model, on data or on synthetic input."""

from collections.abc import Iterator, Mapping
from itertools import repeat
from typing import Any

import torch

from oarlock.data.recognition import open_data
from oarlock.data.source import Source
from oarlock.errors import ArgumentError
from oarlock.io.model import Model
from oarlock.ir.program import Program
from oarlock.ir.size import evaluate, names_in
from oarlock.profiling.profiler import Profile, profile
from oarlock.runtime.recording import each
from oarlock.tensor.dtype import to_torch
from oarlock.training.batches import open_batches
from oarlock.training.trainer import train

__all__ = ["make_feed", "profile_model"]

_ROWS = 32


def profile_model(
    model: Model,
    data: object = None,
    *,
    steps: int = 10,
    warm_up: int = 5,
    batch_size: int | None = None,
    sizes: Mapping[str, int] | None = None,
) -> Profile:
    """Profile `steps` steps of a model after `warm_up` steps: of `ol.train` for a training program, otherwise of inference.

    Without `data`, `make_feed` creates synthetic input of `batch_size` rows; a training program has its own batch size. A training program
    is trained by these steps, but not saved. Raises ArgumentError, and the errors of `ol.train`.
    """
    program = model.program
    drive = program.training if program.is_training else None
    rows = batch_size or (drive.batch_size if drive is not None else _ROWS)
    with profile(steps=steps, warm_up=warm_up, ends=True, place=model.executor.place) as found:
        if data is not None and drive is not None:
            if rows != drive.batch_size:
                raise ArgumentError(f"this run has a batch size of {drive.batch_size}", hint="omit the batch size")
            while True:
                train(model, data, epochs=2**31, progress=False, tune=False)
        feeds = repeat(make_feed(program, rows, sizes or {})) if data is None else each("data", "read data", _feeds(program, data, rows))
        step = model.executor.prepare(program, list(program.targets), scope=model.scope)
        for feed in feeds:
            step(feed)
    return found


def make_feed(program: Program, rows: int, sizes: Mapping[str, int]) -> dict[str, torch.Tensor]:
    """Return synthetic input: normally distributed floats, and zeros for integers and booleans, which are valid indices of any table.

    A symbolic leading size is `rows`; other symbolic sizes are as in `sizes`, or 32. Raises ArgumentError for ragged inputs.
    """
    if program.ragged_inputs():
        name = next(iter(program.ragged_inputs())).name
        raise ArgumentError(f'there is no synthetic input for "{name}", which is ragged', hint="give data: --data table.csv")
    known = {name: rows for var in program.main.inputs for size in (var.shape or ())[:1] for name in names_in(size)} | dict(sizes)
    generator = torch.Generator().manual_seed(program.seed)
    feed: dict[str, torch.Tensor] = {}
    for var in program.main.inputs:
        if var.initializer is not None:
            continue
        named = {name: known.get(name, _ROWS) for size in var.shape or () for name in names_in(size)}
        shape = [size if isinstance(size, int) else evaluate(size, named) or 0 for size in var.shape or ()]
        dtype = to_torch(var.dtype)
        feed[var.name] = torch.randn(shape, generator=generator).to(dtype) if dtype.is_floating_point else torch.zeros(shape, dtype=dtype)
    return feed


def _feeds(program: Program, data: object, rows: int) -> Iterator[Any]:
    """Yield the feeds of inference, repeating the data."""
    source = data if isinstance(data, Source | Mapping) else open_data(data)
    for batch in open_batches(source, program, rows, shuffle=False).after(0):
        yield batch.feed
