"""Two ways to try a decision about rows: by the kernel, with one row changed or alone; by workers that run the rewritten program."""

from collections.abc import Mapping, Sequence

import numpy
import torch
from op.arguments import Arguments, Tensors, compute
from thread_workers import ThreadWorkers, run_together
from tolerances import ROWS_ALONE

import oarlock as ol
from oarlock.passes.parallel.analysis import Analysis
from oarlock.passes.parallel.placement import PARTIAL, REPLICATED, Kind, Placement
from oarlock.passes.parallel.writing import Writing
from oarlock.registry import standard
from row_law.giving import at_sizes
from row_law.trials import READ_WHOLE, Trial, in_parts, joined, rows_of_value

__all__ = ["BrokenLawError", "NoTrialError", "hold_to_workers", "keep_row_law"]


class BrokenLawError(AssertionError):
    """A result that is not where the decision says."""


class NoTrialError(Exception):
    """The op takes no such arguments: with all rows it fails."""


Values = dict[ol.Var, torch.Tensor]


# One row changed, and one row alone


def keep_row_law(trial: Trial) -> set[str]:
    """Hold the kernel to the decision, whose inputs are where it needs them; return what was compared. Raises BrokenLawError.

    With other numbers in one row, a sharded result changes in that row alone, and a replicated one not at all, nor with one row less. A
    partial result is the sum of what it is of each row alone.
    """
    decision, op = trial.decision, trial.op
    if decision.written not in ("", "random"):
        return set()
    needs = {var: decision.needs.get(var, REPLICATED) for var in op.reads}
    if not any(placement.by_rows or placement.kind is Kind.SPLITS for placement in needs.values()):
        return set()
    compared: set[str] = set()
    try:
        whole = _results(trial, trial.values)
    except Exception as error:  # of a kernel of PyTorch
        raise NoTrialError(str(error)) from error
    rows = range(trial.count)
    for row in rows:
        changed = _results(trial, {var: _with_other_row(trial, var, needs[var], row) for var in op.reads})
        for var, before in whole.items():
            gives = decision.gives[var]
            if gives.by_rows and trial.counts(var, gives):
                others = [other for other in rows if other != row]
                spans = trial.spans(var.shape[gives.axis])  # type: ignore[index]
                parts = (rows_of_value(value, gives, spans, others) for value in (before, changed[var]))
                _require_same(*parts, f"{var.name} has other values in rows beside {row}, which alone was changed")  # type: ignore[call-arg]
                compared.add("sharded")
            elif gives is REPLICATED:
                _require_same(before, changed[var], f"{var.name} is replicated, and changes with row {row}")
                compared.add("replicated")
    if decision.written == "random":
        return compared
    alone = [_results(trial, {var: _part(trial, var, needs[var], [row]) for var in op.reads}, [row]) for row in rows]
    none = _results(trial, {var: _part(trial, var, needs[var], []) for var in op.reads}, [])
    for var, value in whole.items():
        gives = decision.gives[var]
        if gives is PARTIAL:
            _require_same(sum((each[var] for each in alone), none[var]), value, f"{var.name} is not the sum of what it is of each row")
            _require_same(none[var], torch.zeros_like(value), f"{var.name} is not 0 of no row")
            compared.add("partial")
        elif gives.kind is Kind.SHARDED and alone:
            _require_same(joined([each[var] for each in alone], gives), value, f"{var.name} has other values where rows are alone")
        elif gives is REPLICATED:
            for each in (*alone, none):
                _require_same(each[var], value, f"{var.name} is replicated, and other of fewer rows")
    return compared


def _results(trial: Trial, values: Mapping[ol.Var, torch.Tensor], rows: Sequence[int] | None = None) -> Values:
    """The results of the kernel, of some of the rows."""
    tensors: Tensors = {slot: [values[var].clone() for var in vars] for slot, vars in trial.op.inputs.items()}
    units = trial.given.units
    sizes = {
        symbol: sum(stop - start for start, stop in (spans if rows is None else [spans[row] for row in rows]))
        for symbol, spans in units.items()
    }
    found = compute(trial.operator, Arguments(tensors, at_sizes(trial.attributes, sizes)))
    return {var: value for slot, vars in trial.op.outputs.items() for var, value in zip(vars, found[slot], strict=True)}


def _with_other_row(trial: Trial, var: ol.Var, placement: Placement, row: int) -> torch.Tensor:
    """The value of an argument in which one row has the numbers of another row, where one is as long, with floats changed."""
    value = trial.values[var].clone()
    if not placement.by_rows:
        return value
    spans = trial.spans(var.shape[placement.axis])  # type: ignore[index]
    start, stop = spans[row]
    donors = [at for number, (at, end) in enumerate(spans) if end - at == stop - start and number != row] or [start]
    donor = donors[row % len(donors)]
    if not value.numel():
        return value
    parts = in_parts(value, placement, spans[-1][1])
    other = parts.narrow(placement.axis + 1, donor, stop - start)
    if value.is_floating_point():
        noise = torch.rand(other.shape, generator=torch.Generator().manual_seed(row), dtype=torch.float64)
        other = other * (1 - 0.1 * noise.to(value.dtype))
    parts = parts.clone()
    parts.narrow(placement.axis + 1, start, stop - start).copy_(other)
    return parts.reshape(value.shape)


def _part(trial: Trial, var: ol.Var, placement: Placement, rows: Sequence[int]) -> torch.Tensor:
    """The part of an argument with these rows, which are one after another."""
    value = trial.values[var]
    if placement.kind is Kind.SPLITS:
        begin = value[rows[0]] if rows else value[0]
        return value[[*rows, rows[-1] + 1]] - begin if rows else value[:1] - begin
    if not placement.by_rows:
        return value
    return rows_of_value(value, placement, trial.spans(var.shape[placement.axis]), rows)  # type: ignore[index]


def _require_same(found: torch.Tensor, expected: torch.Tensor, message: str) -> None:
    relative, absolute = ROWS_ALONE
    if found.shape != expected.shape or found.dtype != expected.dtype:
        raise BrokenLawError(f"{message}: {found.dtype}{list(found.shape)} for {expected.dtype}{list(expected.shape)}")
    if expected.is_floating_point() or expected.is_complex():
        absolute *= max(1.0, float(expected.abs().nan_to_num(0, 0, 0).max())) if expected.numel() else 1.0
    if not torch.allclose(found, expected, rtol=relative, atol=absolute, equal_nan=True):
        raise BrokenLawError(f"{message}: {found.flatten()[:8].tolist()} for {expected.flatten()[:8].tolist()}")


# Workers


def hold_to_workers(trial: Trial, *, interpret: bool = True) -> set[str]:
    """Hold the program that workers run to the one that a worker with all rows runs; return what results are. Raises BrokenLawError."""
    names = [*(var.name for var in trial.op.writes), *({READ_WHOLE} & trial.program.main.vars.keys())]
    feed = {var.name: value for var, value in trial.values.items()}
    try:
        expected = dict(zip(names, _run(trial.program, feed, names, ol.Executor(interpret=interpret)), strict=True))
    except ol.OarlockError as error:
        raise NoTrialError(error.message) from error
    parted = trial.program.clone()
    analysis = Analysis(standard)
    analysis.run(parted.main, {parted.main.vars[var.name]: placement for var, placement in trial.placed.items()})
    gives = {name: analysis.placed[parted.main.vars[name]] for name in names}
    Writing(parted, analysis, 2**20).run()
    fetch = [*names, *(f"{name}.part" for name in names if f"{name}.part" in parted.main.vars)]
    workers = len(trial.cuts) - 1
    feeds = _feeds(trial)

    def work(worker: ThreadWorkers) -> dict[str, torch.Tensor]:
        executor = ol.Executor(interpret=interpret, workers=worker)
        return dict(zip(fetch, _run(parted, feeds[worker.index], fetch, executor), strict=True))

    found = run_together(workers, work)
    for name, whole in expected.items():
        values = [each[name] for each in found]
        kind = gives[name].kind
        if kind is Kind.SHARDED:
            _require_same(joined(values, gives[name]), whole, f"{name} is not what the workers have of it, one after another")
        elif kind is Kind.NUMBERS:
            firsts = [trial.count_before(cut, gives[name].rows or 1) for cut in trial.cuts[:-1]]
            counted = [torch.where(value < 0, value, value + first) for value, first in zip(values, firsts, strict=True)]
            _require_same(torch.cat(counted), whole, f"{name} counts other rows")
        elif kind is Kind.SPLITS:
            firsts = numpy.cumsum([0, *(int(value[-1]) for value in values)])
            _require_same(
                torch.cat([value[bool(at) :] + first for at, (value, first) in enumerate(zip(values, firsts, strict=False))]),
                whole,
                f"{name} cuts otherwise",
            )
        else:
            for value in values:
                _require_same(value, whole, f"{name} is {kind.value}, and a worker fetches another value")
        if kind is Kind.PARTIAL:
            _require_same(sum(each[f"{name}.part"] for each in found), whole, f"{name} is not the sum of its parts")  # type: ignore[arg-type]
    return {f"{kind.value} result" for kind in {placement.kind for placement in gives.values()}}


def _run(program: ol.Program, feed: Mapping[str, torch.Tensor], fetch: Sequence[str], executor: ol.Executor) -> list[torch.Tensor]:
    return executor.run(program, dict(feed), list(fetch), scope=ol.Scope(), training=True, return_numpy=False)  # type: ignore[return-value]


def _feeds(trial: Trial) -> list[dict[str, torch.Tensor]]:
    """The feed of each worker."""
    feeds: list[dict[str, torch.Tensor]] = [{} for _ in trial.cuts[1:]]
    generator = torch.Generator().manual_seed(2)
    for var, placement in trial.placed.items():
        value = trial.values[var]
        if placement is PARTIAL:
            others = [torch.rand(value.shape, generator=generator, dtype=torch.float64).to(value.dtype) - 0.5 for _ in feeds[1:]]
            parts = [*others, value - sum(others) if others else value]
        else:
            parts = [_part(trial, var, placement, range(start, stop)) for start, stop in zip(trial.cuts, trial.cuts[1:], strict=False)]
        for feed, part in zip(feeds, parts, strict=True):
            feed[var.name] = part
    return feeds
