"""The findings of one trial: its runs beside each other, beside the same program whose sizes are all known, and beside PyTorch."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from tolerances import PLANS_DIFFER

import oarlock as ol
from oarlock.ir.size import evaluate, solve
from oarlock.ir.traversal import walk
from oarlock.registry.declaration import Operator
from wrong_sizes.executing import EXECUTORS, Outcome, run_by
from wrong_sizes.trial import Trial, Written, write
from wrong_sizes.uses import OPERATORS

__all__ = ["KINDS", "Judged", "judge", "program_text"]

KINDS = {
    "signal": "a signal ended the process, or it was silent for too long",
    "filling": "a result depends on what free memory holds",
    "foreign error": "the error is not an OarlockError",
    "executors differ": "interpreter, plan and plan without passes return different results, or one of them an error",
    "kinds of errors differ": "interpreter, plan and plan without passes raise different errors",
    "limits refuse": "a result is returned, which an executor with limits refuses",
    "known sizes refuse": "a result is returned, though the same program with these sizes as numbers is refused when it is written",
    "known sizes differ": "the result is not that of the same program with these sizes as numbers",
    "PyTorch differs": "the result is not that of PyTorch's function",
    "undeclared shape": "a result has another shape than the program declares",
    "parameter changed": "a parameter in the scope has another shape after the run",
    "refused though it fits": "sizes that fit are refused in the run",
    "KernelError": "a kernel refused the sizes",
    "KernelError of known sizes": "a kernel refused sizes that the signature takes when they are numbers",
    "foreign error when written": "writing the program raised an error that is not an OarlockError",
}
"""Each kind of finding, the worst first."""


@dataclass
class Judged:
    """How a trial went: "ran", "refused", "refused when written"; its findings, by kind; the digest of each outcome, by executor."""

    outcome: str
    findings: list[tuple[str, str]] = field(default_factory=list)
    digests: dict[str, str] = field(default_factory=dict)
    text: str = ""


RANK_BY_SIZE = frozenset({"PyTorch's cov of weights"})
"""Functions whose result has fewer dimensions if a size is 1, which a program cannot know before the run."""


def judge(trial: Trial, byte: int, begin: Callable[[str], None]) -> Judged:
    """Run a trial and find what is wrong. `begin` is told what is about to run."""
    begin("writing")
    try:
        written = write(trial)
    except ol.OarlockError:
        return Judged("refused when written")
    except Exception as error:
        return Judged("refused when written", [("foreign error when written", f"{type(error).__name__}: {error}")])
    outcomes: dict[str, Outcome] = {}
    for name in EXECUTORS:
        begin(name)
        outcomes[name] = run_by(name, written, training=trial.training, byte=byte)
    begin("known sizes")
    known = _known(trial, byte, fits=False)
    judged = Judged("ran" if outcomes["interpreter"].ran else "refused")
    judged.digests = {name: outcome.digest() for name, outcome in outcomes.items()}
    begin("sizes that fit")
    findings = [*_findings(trial, written, outcomes, known), *_fitting(trial, written, byte)]
    judged.findings = list(dict(findings).items())
    if judged.findings:
        judged.text = program_text(trial, written)
    return judged


def _known(trial: Trial, byte: int, *, fits: bool) -> Outcome:
    """The outcome of the same program whose sizes are all numbers; `written` before the name of an error if it could not be written."""
    try:
        program = write(trial, known=True, fits=fits)
    except ol.OarlockError as error:
        return Outcome(error=f"written {type(error).__name__}", message=error.message)
    except Exception as error:
        return Outcome(error=f"written {type(error).__name__}", message=str(error), ours=False)
    return run_by("interpreter", program, training=trial.training, byte=byte)


def _findings(trial: Trial, written: Written, outcomes: dict[str, Outcome], known: Outcome) -> Iterator[tuple[str, str]]:
    by_plans = {name: outcome for name, outcome in outcomes.items() if name != "limits"}
    ran = {name: outcome for name, outcome in by_plans.items() if outcome.ran}
    for name, outcome in outcomes.items():
        if not outcome.ours:
            yield "foreign error", f"{name}: {outcome.error}: {outcome.message}"
    raised = {name: outcome for name, outcome in outcomes.items() if outcome.error == "KernelError"}
    for name, outcome in raised.items():
        operator = OPERATORS.get(outcome.op or "")
        if known.error != "KernelError" and not (operator is not None and operator.checks_values and _composes(trial)):
            yield "KernelError", f"{name}: {outcome.message}"
        elif operator is not None and not operator.checks_values and not _refuses_positions(operator, outcome.message):
            yield "KernelError of known sizes", f"{name}: {outcome.message}"
    if ran and len(ran) < len(by_plans):
        yield "executors differ", "; ".join(f"{name}: {outcome.message or 'ran'}" for name, outcome in by_plans.items())
    if not ran and len({outcome.error for outcome in by_plans.values()}) > 1:
        yield "kinds of errors differ", "; ".join(f"{name}: {outcome.error}: {outcome.message}" for name, outcome in by_plans.items())
    if not ran:
        return
    first_name, first = next(iter(ran.items()))
    for name, outcome in ran.items():
        different = _difference([*first.values, *first.state.values()], [*outcome.values, *outcome.state.values()])
        if different:
            yield "executors differ", f"{name} and {first_name}: {different}"
    if not outcomes["limits"].ran and outcomes["limits"].error != "LimitError":
        yield "limits refuse", outcomes["limits"].message
    if trial.axis.operator in RANK_BY_SIZE:
        first, known = first.squeezed(), known.squeezed()
    if not (known.error.startswith("written ") and _composes(trial)):
        yield from _beside_known(written, first, known)
    yield from _beside_torch(trial, written, first)
    yield from _declared(written, ran)
    for name, outcome in ran.items():
        for var in written.program.persistables():
            held = outcome.state.get(var.name)
            if held is not None and tuple(held.shape) != var.shape:
                yield "parameter changed", f'{name}: "{var.name}" is {list(held.shape)}, not {list(var.shape or ())}'


def _refuses_positions(operator: Operator, message: str) -> bool:
    """Return whether a kernel refused the values of positions that it reads: they may be out of bounds."""
    reads = any(slot.dtype in ("int64", "bool") for slot in operator.signature.inputs)
    return reads and re.search(r"out of (bounds|range)|Number of indices|rows? (was|were) merged", message) is not None


def _composes(trial: Trial) -> bool:
    """Whether the use is a function that writes several operators: it compares only sizes that are known, and its operators the others."""
    return trial.axis.operator not in OPERATORS


def _beside_known(written: Written, ran: Outcome, known: Outcome) -> Iterator[tuple[str, str]]:
    if known.error.startswith("written "):
        yield "known sizes refuse", known.message
    elif known.ran and len(known.values) == len(ran.values):
        shapes = [tuple(value.shape) for value in ran.values], [tuple(value.shape) for value in known.values]
        count = len(written.results)  # gradients of what is taken from a longer tensor are longer too
        if shapes[0][:count] != shapes[1][:count]:
            yield "known sizes differ", f"{shapes[0]}, not {shapes[1]}"
        elif not _draws(written.program):
            different = _difference(ran.values[:count], known.values[:count])
            if different:
                yield "known sizes differ", different


def _draws(program: ol.Program) -> bool:
    """Whether a program draws random numbers, which another one draws otherwise."""
    return any(OPERATORS[op.type].effects is not None for op in walk(program.main))


def _beside_torch(trial: Trial, written: Written, ran: Outcome) -> Iterator[tuple[str, str]]:
    if trial.position.use.theirs is None:
        return
    try:
        given = [value for items in _arguments(trial, written) for value in items]
        expected = trial.position.use.theirs(*given)
    except Exception:  # PyTorch refuses to broadcast these sizes; Oarlock may, or not
        return
    expected = [each for each in (expected if isinstance(expected, tuple | list) else [expected]) if isinstance(each, torch.Tensor)]
    if len(expected) == len(written.results):
        different = _difference(ran.values[: len(expected)], expected, types=False)
        if different:
            yield "PyTorch differs", different


def _arguments(trial: Trial, written: Written) -> Iterator[list[torch.Tensor]]:
    known = write(trial, known=True)
    values = {**known.feed, **known.state}
    for slot, items in trial.position.use.arguments().tensors.items():
        yield [values[f"{slot}.{number}"] for number in range(len(items))]


def _declared(written: Written, ran: dict[str, Outcome]) -> Iterator[tuple[str, str]]:
    """Results whose shapes are not those that the program declares, given the sizes of what was fed."""
    fetched = [*written.results, *written.gradients]
    for name, outcome in ran.items():
        sizes = dict(written.sizes)
        for var in written.program.main.inputs:
            for size, number in zip(var.shape or (), written.feed[var.name].shape, strict=True):
                found = solve(size, number) if isinstance(size, str) else None
                if found is not None and found[1] is not None:
                    sizes[found[0]] = found[1]
        for var, value in zip(fetched, outcome.values, strict=True):
            for size, number in zip(var.shape or (), value.shape, strict=False):
                found = solve(size, number) if isinstance(size, str) else None
                if found is not None and found[1] is not None:
                    sizes.setdefault(found[0], found[1])
            declared = None if var.shape is None else [evaluate(size, sizes) for size in var.shape]
            if declared is not None and (
                len(declared) != value.ndim or any(a not in (None, b) for a, b in zip(declared, value.shape, strict=False))
            ):
                yield "undeclared shape", f'{name}: "{var.name}" is {list(value.shape)}, declared {var.type_text}'


def _fitting(trial: Trial, written: Written, byte: int) -> Iterator[tuple[str, str]]:
    """Whether a program that was written runs where its sizes fit."""
    if written.state or not _known(trial, byte, fits=True).ran:
        return
    if _composes(trial) and _operators(written) != _operators(write(trial, known=True, fits=True)):
        return  # it chose other operators, as `solve` does for vectors and for matrices
    for name in ("interpreter", "plan"):
        outcome = run_by(name, written, training=trial.training, byte=byte, fits=True)
        if not outcome.ran:
            yield "refused though it fits", f"{name}: {outcome.error}: {outcome.message}"


def _operators(written: Written) -> Counter[str]:
    """How often a program has each operator, apart from those that take sizes from values."""
    types = Counter(op.type for op in walk(written.program.main))
    return Counter({type: count for type, count in types.items() if type not in ("nonzero", "gather", "transpose", "scatter_add")})


def _difference(found: Sequence[torch.Tensor], expected: Sequence[torch.Tensor], *, types: bool = True) -> str:
    """How two lists of tensors differ, beyond rounding; empty where they do not."""
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        if one.shape != other.shape:
            return f"value {number} is {list(one.shape)}, not {list(other.shape)}"
        if types and one.dtype is not other.dtype:
            return f"value {number} is {one.dtype}, not {other.dtype}"
        if one.is_floating_point() or one.is_complex():
            relative, absolute = PLANS_DIFFER.get(one.dtype, (1e-3, 1e-3))
            same = torch.allclose(one, other.to(one.dtype), rtol=relative, atol=absolute, equal_nan=True)
        else:
            same = torch.equal(one, other.to(one.dtype))
        if not same:
            return f"value {number} is {_short(one)}, not {_short(other)}"
    return ""


def _short(tensor: torch.Tensor) -> str:
    return str(tensor.flatten()[:6].tolist())


def program_text(trial: Trial, written: Written) -> str:
    """The program of a trial, and the shapes of what it is given."""
    given = [f"feed {name}: {list(value.shape)}" for name, value in written.feed.items()]
    given += [f"scope {name}: {list(value.shape)}" for name, value in written.state.items()]
    fetched = ", ".join(var.name for var in (*written.results, *written.gradients))
    return "\n".join([written.program.to_text(source=False).rstrip(), *given, f"fetch {fetched}; training={trial.training}"])
