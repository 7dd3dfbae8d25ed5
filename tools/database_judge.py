"""Run one sample of PyTorch's operator database as a program with the same call, by interpreter and plan, and compare it with PyTorch.

First the result is compared, then the gradients for random output gradients, then the second gradients.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from database_samples import Entry, Sample, tensors_in

import oarlock as ol

__all__ = ["Outcome", "Unmapped", "judge", "judge_error"]

TOLERANCES = {torch.float64: (1e-7, 1e-7), torch.float32: (1.3e-6, 1e-5), torch.float16: (1e-3, 1e-3), torch.bfloat16: (1.6e-2, 1e-2)}
"""Relative and absolute; 10 times as much for gradients, 100 times for those of the second order. As `torch.testing` has them."""


class Unmapped(Exception):  # noqa: N818  # a sample that is left out, not a fault
    """The call has no counterpart in programs; the text is the reason."""


@dataclass
class Outcome:
    """The outcome of a sample: "" if it passed, else the reason; None if there is nothing to compare."""

    left: str | None = None
    forward: str | None = None
    first: str | None = None
    second: str | None = None


@dataclass
class _Program:
    """A program of one call, and its feed."""

    program: ol.Program
    inputs: dict[int, ol.Var]
    feed: dict[str, torch.Tensor]

    def declare(self, tensor: torch.Tensor) -> ol.Var:
        """Return the input for a tensor."""
        if id(tensor) not in self.inputs:
            if tensor.layout is not torch.strided or tensor.is_quantized or tensor.device.type != "cpu" or tensor.dtype is torch.complex32:
                raise Unmapped(str(tensor.layout if tensor.layout is not torch.strided else tensor.dtype).removeprefix("torch."))
            name = f"x{len(self.inputs)}"
            self.inputs[id(tensor)] = ol.layer.data(name, list(tensor.shape), tensor.dtype, batch=None)
            self.feed[name] = tensor.detach().resolve_conj().resolve_neg()
        return self.inputs[id(tensor)]

    def bind(self, value: Any) -> Any:
        """Return the value with inputs in place of tensors."""
        if isinstance(value, torch.Tensor):
            return self.declare(value)
        if isinstance(value, torch.Size):
            return tuple(value)
        if isinstance(value, list | tuple):
            return type(value)(self.bind(item) for item in value)
        if isinstance(value, Mapping):
            return {key: self.bind(item) for key, item in value.items()}
        return value


def _written(sample: Sample, ours: Callable[..., Any]) -> tuple[_Program, Any]:
    """Return the program of a sample and the result of the call. Raises Unmapped, and the errors of the call."""
    made = _Program(ol.Program(), {}, {})
    if sample.keywords.get("out") is not None:
        raise Unmapped("out=, a tensor to write into")
    with made.program:
        arguments, keywords = made.bind(sample.arguments), made.bind(sample.keywords)
        return made, ours(*arguments, **keywords)


def judge_error(sample: Sample, ours: Callable[..., Any]) -> Outcome:
    """Check that an error of PyTorch is an error of ours when the program is written."""
    outcome = Outcome()
    if not tensors_in((sample.arguments, sample.keywords)):
        return Outcome(left="no tensor is given")
    try:
        made, given = _written(sample, ours)
        if len(sample.arguments) == 2 and any(isinstance(each, int | float) for each in sample.arguments):
            outcome.left = "a number may stand for a variable here"
        else:
            outcome.forward = _refused_by_values(made, _flat(given))
    except Unmapped as reason:
        outcome.left = str(reason)
    except ol.OarlockError:
        outcome.forward = ""
    except Exception as error:
        outcome.forward = _crash(error)
    return outcome


def _refused_by_values(made: _Program, targets: list[Any]) -> str:
    """Return the reason if the program was written without an error: the fed values may be at fault."""
    try:
        ol.Executor().eval(made.program, [each for each in targets if isinstance(each, ol.Var)], made.feed, scope=ol.Scope())
    except ol.OarlockError:
        return "refused when it runs, for the numbers that are fed"
    return "no error"


def judge(entry: Entry, sample: Sample, ours: Callable[..., Any], *, order: int = 2) -> Outcome:
    """Compare one sample, with gradients up to this order."""
    outcome = Outcome()
    try:
        made, given = _written(sample, ours)
    except Unmapped as reason:
        outcome.left = str(reason)
        return outcome
    except ol.OarlockError as error:
        outcome.forward = f"refused: {type(error).__name__}: {error.message}"
        return outcome
    except Exception as error:
        outcome.forward = _crash(error)
        return outcome
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = sample.reference(*sample.arguments, **sample.keywords)
        targets = _flat(given)
        outcome.forward = _compare(made, targets, _flat(wanted), 1.0)
        if outcome.forward or order < 1 or not entry.differentiable(1):
            return outcome
        picked = _flat(sample.process(wanted))
        try:
            targets = _flat(sample.process(given))
        except Exception:
            targets = []
        if len(targets) != len(picked):
            targets, picked = _flat(given), _flat(wanted)
        _differentiate(made, entry, sample, targets, picked, outcome, order)
    return outcome


def _differentiate(
    made: _Program, entry: Entry, sample: Sample, targets: list[Any], wanted: list[Any], outcome: Outcome, order: int
) -> None:
    """Compare the gradients, and their gradients."""
    inputs = [each for each in tensors_in((sample.arguments, sample.keywords)) if each.requires_grad]
    pairs = [
        (ours, theirs) for ours, theirs in zip(targets, wanted, strict=True) if isinstance(theirs, torch.Tensor) and theirs.requires_grad
    ]
    if not inputs or not pairs:
        return
    theirs = [pair[1] for pair in pairs]
    told = [all(isinstance(size, int) for size in ours.shape) for ours, _ in pairs]  # of others, sizes are known at run time: ones
    starts = [torch.randn_like(each) if known else torch.ones_like(each) for each, known in zip(theirs, told, strict=True)]
    starts = [each.requires_grad_(True) for each in starts]
    twice = order > 1 and entry.differentiable(2)
    found = torch.autograd.grad(theirs, inputs, starts, create_graph=twice, allow_unused=True)
    with made.program:
        bound = [made.declare(each) for each in inputs]
        try:
            given = [made.declare(each) if known else None for each, known in zip(starts, told, strict=True)]
            mine = ol.gradients([pair[0] for pair in pairs], bound, given)
        except ol.OarlockError as error:
            outcome.first = f"gradient: {type(error).__name__}: {error.message}"
            return
    outcome.first = _compare(made, mine, _zeros(found, inputs), 10.0)
    if outcome.first or not twice:
        return
    again = [(ours, each) for ours, each in zip(mine, found, strict=True) if each is not None and each.requires_grad]
    if not again:
        return
    sources = [*inputs, *(each for each, known in zip(starts, told, strict=True) if known)]
    directions = [torch.randn_like(each) for _, each in again]
    try:
        wanted = list(torch.autograd.grad([each for _, each in again], sources, directions, allow_unused=True))
    except RuntimeError:  # which PyTorch has not implemented, although it declares it
        return
    kept = [(ours, direction) for (ours, _), direction in zip(again, directions, strict=True) if ours is not None]
    with made.program:
        bound = [made.declare(each) for each in sources]
        try:
            mine = (
                ol.gradients([ours for ours, _ in kept], bound, [made.declare(each) for _, each in kept]) if kept else [None] * len(bound)
            )
        except ol.OarlockError as error:
            outcome.second = f"second order: {type(error).__name__}: {error.message}"
            return
    outcome.second = _compare(made, mine, _zeros(wanted, sources), 100.0)


def _zeros(found: Any, sources: list[torch.Tensor]) -> list[torch.Tensor]:
    return [torch.zeros_like(source) if each is None else each for each, source in zip(found, sources, strict=True)]


def _compare(made: _Program, targets: list[Any], wanted: list[Any], factor: float) -> str:
    """Return why the results of interpreter and plan differ from the expected ones, or "". None is a tensor of zeros."""
    if len(targets) != len(wanted):
        return f"{len(targets)} results where PyTorch has {len(wanted)}"
    fetched = [each for each in targets if isinstance(each, ol.Var)]
    for executor in (ol.Executor(interpret=True, check=True), ol.Executor()):
        try:
            values = iter(executor.eval(made.program, fetched, made.feed, scope=ol.Scope(), return_numpy=False) if fetched else ())
        except ol.OarlockError as error:
            return f"{type(error).__name__} when run: {error.message}"
        except Exception as error:
            return _crash(error)
        how = "plan" if executor.planned else "interpreter"
        for ours, theirs in zip(targets, wanted, strict=True):
            value = next(values) if isinstance(ours, ol.Var) else ours
            difference = _difference(torch.zeros_like(theirs) if value is None else value, theirs, factor)
            if difference:
                return f"{how}: {difference}"
    return ""


def _difference(value: Any, wanted: Any, factor: float) -> str:
    if not isinstance(wanted, torch.Tensor) or not isinstance(value, torch.Tensor):
        value, wanted = torch.as_tensor(value), torch.as_tensor(wanted)
    if value.shape != wanted.shape:
        return f"the shape {list(value.shape)}, where PyTorch has {list(wanted.shape)}"
    if value.dtype is not wanted.dtype:
        return f"{value.dtype}, where PyTorch has {wanted.dtype}".replace("torch.", "")
    relative, absolute = TOLERANCES.get(wanted.dtype.to_real() if wanted.is_complex() else wanted.dtype, (0.0, 0.0))
    wide = torch.complex128 if wanted.is_complex() else torch.float64
    value, wanted = value.detach().to(wide), wanted.detach().to(wide)
    close = torch.isclose(value, wanted, rtol=relative * factor, atol=absolute * factor, equal_nan=True)
    return "" if bool(close.all()) else f"values differ, {int((~close).sum())} of {close.numel()}"


def _flat(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return [each for item in value for each in _flat(item)]
    return [value]


def _crash(error: Exception) -> str:
    return f"CRASH {type(error).__name__}: {error}"[:300]
