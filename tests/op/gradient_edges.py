"""Gradients at the edges of an operator's domain beside PyTorch's of the same function.

    PYTHONPATH=src:tests python -m op.gradient_edges --seed 0 --count 40

Every operator with gradients, at each of its cases, and every function beside PyTorch's in the tables of twins: 0, -0, 1, -1, infinities,
NaN, denormals and ties in every float input, alone and mixed, `--count` mixtures of each. PyTorch differentiates the kernel, which is
PyTorch's function. NaN and infinities have to stand at the same places, and other numbers to be close.
"""

import argparse
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from op.arguments import FORWARD, Arguments, arguments_of, cases_of, compute, is_inexact
from op.breadth_twins import BREADTH
from op.loss_twins import LOSSES
from op.matrix_twins import MATRICES
from op.pytorch_twins import FLOATS, Twin
from op.test_gradients import GradientProgram, declared, returned, wanted, weights_of
from op.test_pytorch_twins import Written, tensors_of
from torch.nn import functional

import oarlock as ol
from oarlock.op.composed.edges import COMPOSITION_EDGES
from oarlock.registry import GradCheck, Operator, standard

__all__ = ["DIFFERENTIABLE", "Finding", "compare_operator"]

inf, nan = float("inf"), float("nan")
EDGES = (0.0, -0.0, 1.0, -1.0, inf, -inf, nan, 1e-310, -1e-310, 2.0, 0.5, 30.0, -30.0)
EDGES_OF_SINGLE = (0.0, -0.0, 1.0, -1.0, inf, -inf, nan, 1e-42, -1e-42, 2.0, 0.5, 30.0, -30.0)
DIFFERENTIABLE = [operator for operator in FORWARD if declared(operator)]

TWINS: dict[str, Callable[..., torch.Tensor]] = {"log_loss": lambda p, target: functional.binary_cross_entropy(p, target, reduction="none")}
"""PyTorch's function, where the kernel is another that has the same values."""

BY_FORMULA = ("hinge_loss", "squared_hinge_loss", "sigmoid_focal_loss", "focal_loss", "dice_loss", "iou_loss", "cross_entropy of layers",
              "triplet_margin_with_distance_loss", "det of what has no inverse")  # fmt: skip
"""Twins that are a formula of the tests, where PyTorch has no such function."""

COMPARED_TWINS = [each for each in [*FLOATS, *LOSSES, *BREADTH, *MATRICES] if not each.name.startswith(BY_FORMULA)]

OF_PYTHON = {
    "x ** -0.5": {"zero": "rsqrt, which is infinite at -0 with the sign of 0", "infinite": "rsqrt, which is NaN below 0"},
    "svd": {"refused": "", "equal": ""},
}
"""The edges of what has no page: Python's operators, and products of what is not unique."""

STILL_REFUSED = {"batch_norm", "sync_batch_norm"}
"""Operators of which PyTorch refuses to differentiate what has no gradient."""


@dataclass
class Finding:
    """A gradient that differs: of which input, at which arguments, ours and PyTorch's."""

    operator: str
    case: str
    edge: str
    slot: str
    dtype: torch.dtype
    at: dict[str, list[object]]
    ours: list[object]
    theirs: list[object]
    kinds: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{self.case} {self.edge} {str(self.dtype)[6:]} d{self.slot}: {self.at} gives {self.ours}, PyTorch {self.theirs}"


@dataclass
class Report:
    """Everything that was compared of one operator."""

    compared: int = 0
    skipped: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def wrong(self, edges: Collection[str]) -> list[str]:
        """The findings at none of the edges of which reasons are declared; refusals, where `refused` is none of them."""
        found = [str(finding) for finding in self.findings if not finding.kinds & set(edges)]
        return found if "refused" in edges else [*found, *self.refused]


def _mixtures(arguments: Arguments, dtype: torch.dtype, count: int, seed: int) -> Iterator[tuple[str, Arguments]]:
    """The arguments with edges in the place of floats: of each input, of all, mixed, and with ties."""
    edges = EDGES if dtype is torch.float64 else EDGES_OF_SINGLE
    slots = [slot for slot, items in arguments.tensors.items() if any(item.is_floating_point() and item.numel() for item in items)]

    def filled(chosen: list[str], value: Callable[[torch.Tensor], torch.Tensor]) -> Arguments:
        return arguments.replaced(lambda slot, item: value(item) if slot in chosen and item.is_floating_point() else item)

    for slot in slots:
        for edge in edges:
            yield f"{slot}={edge:g}", filled([slot], lambda item, edge=edge: torch.full_like(item, edge))
    if len(slots) > 1:
        for edge in edges:
            yield f"all={edge:g}", filled(slots, lambda item, edge=edge: torch.full_like(item, edge))
    generator = torch.Generator().manual_seed(seed)
    for number in range(count):
        few = torch.tensor(edges)[torch.randperm(len(edges), generator=generator)[: 2 + number % 5]]
        kept = 0.5 if number % 2 else 0.0

        def mixed(item: torch.Tensor, few: torch.Tensor = few, kept: float = kept) -> torch.Tensor:
            drawn = few[torch.randint(len(few), item.shape, generator=generator)].to(item.dtype)
            return torch.where(torch.rand(item.shape, generator=generator) < kept, item, drawn)

        yield f"mixed {number}", filled(slots, mixed)


class Prepared:
    """An operator at a case: its gradients by a program of ours, and by PyTorch, for any values of that shape."""

    def __init__(self, operator: Operator, arguments: Arguments):
        self.operator = operator
        self.program = GradientProgram(operator, arguments)
        self.executor = ol.Executor()
        self.weights = weights_of(returned(operator, compute(operator, arguments)))
        self.wanted = wanted(operator, arguments)
        without = [
            slot.name
            for slot in operator.signature.inputs
            if slot.name in operator.gradients.keys() - declared(operator) and operator.type not in STILL_REFUSED
        ]
        self.still = [(slot, n) for slot in without for n, item in enumerate(arguments.tensors.get(slot, ())) if item.is_floating_point()]

    def ours(self, arguments: Arguments) -> list[torch.Tensor]:
        program = self.program
        feed = dict(program.built.feed)
        for slot, items in arguments.tensors.items():
            feed.update({f"{slot}.{number}": item for number, item in enumerate(items)})
        found = [gradient for gradient in program.gradients if gradient is not None]
        values: Iterator[Any] = iter(
            self.executor.run(program.built.program, feed, found, scope=ol.Scope(), training=True, return_numpy=False)
        )
        starts = [feed[var.name] for var in program.inputs]
        made = [torch.zeros_like(start) if each is None else next(values) for start, each in zip(starts, program.gradients, strict=True)]
        return [*made, *(torch.zeros_like(arguments.tensors[slot][number]) for slot, number in self.still)]

    def theirs(self, arguments: Arguments) -> list[torch.Tensor]:
        leaves: list[torch.Tensor] = []
        tensors = {slot: list(items) for slot, items in arguments.tensors.items()}
        for slot, number in (*self.wanted, *self.still):
            leaves.append(tensors[slot][number].clone().requires_grad_())
            tensors[slot][number] = leaves[-1]
        if self.operator.type in TWINS:
            outputs = [TWINS[self.operator.type](*(items[0] for items in tensors.values()))]
        else:
            with torch.autograd.graph.saved_tensors_hooks(torch.clone, torch.clone):  # a kernel may write over what it computed on the way
                outputs = returned(self.operator, compute(self.operator, Arguments(tensors, arguments.attributes)))
        pairs = [(output, weight) for output, weight in zip(outputs, self.weights, strict=True) if output.requires_grad]
        if not pairs:
            raise NotImplementedError("the kernel is not differentiable by PyTorch")
        heads, weights = zip(*pairs, strict=True)
        return list(torch.autograd.grad(heads, leaves, weights, allow_unused=True, materialize_grads=True))


def same(ours: torch.Tensor, theirs: torch.Tensor) -> bool:
    """Whether two gradients have NaN and infinities at the same places, and else are close."""
    relative, absolute = (1e-7, 1e-10) if ours.dtype is torch.float64 else (1e-2, 2e-3)
    return torch.allclose(ours, theirs, rtol=relative, atol=absolute, equal_nan=True)


def compare_operator(
    operator: Operator, count: int, seed: int, dtypes: tuple[torch.dtype, ...] = (torch.float64, torch.float32), *, most: int | None = None
) -> Report:
    """Compare all gradients of an operator at all of its cases, or the `most` first."""
    report = Report()
    for name, case in cases_of(operator, GradCheck)[:most]:
        for dtype in dtypes:
            arguments = arguments_of(operator, case, dtype)
            if not any(is_inexact(item) and item.numel() for items in arguments.tensors.values() for item in items):
                continue
            try:
                prepared = Prepared(operator, arguments)
            except Exception as error:
                report.skipped.append(f"{name}: {type(error).__name__} {str(error)[:80]}")
                continue
            for edge, changed in _mixtures(arguments, dtype, count, seed):
                try:
                    theirs = prepared.theirs(changed)
                except Exception as error:
                    report.skipped.append(f"{name} {edge}: {type(error).__name__} {str(error)[:80]}")
                    continue
                try:
                    ours = prepared.ours(changed)
                except Exception as error:
                    report.refused.append(f"{name} {edge}: {type(error).__name__} {str(error)[:80]}")
                    continue
                report.compared += 1
                for (slot, _), mine, other in zip((*prepared.wanted, *prepared.still), ours, theirs, strict=True):
                    if not same(mine, other):
                        report.findings.append(_finding(operator.type, name, edge, slot, changed, mine, other))
    return report


def _finding(name: str, case: str, edge: str, slot: str, arguments: Arguments, ours: torch.Tensor, theirs: torch.Tensor) -> Finding:
    given = {key: item.flatten()[:8].tolist() for key, items in arguments.tensors.items() for item in items[:1]}
    mine, others = (each.flatten()[:8].tolist() for each in (ours, theirs))
    return Finding(name, case, edge, slot, ours.dtype, given, mine, others, kinds_of(arguments))


def kinds_of(arguments: Arguments) -> frozenset[str]:
    """The kinds of edges that stand in the arguments."""
    floats = [item for items in arguments.tensors.values() for item in items if item.is_floating_point()]
    every = torch.cat([item.flatten().double() for item in floats]) if floats else torch.zeros(0)
    found = {"equal"} if every.unique().numel() < every.numel() else set()  # of one input, or of two
    for item in floats:
        tiny = torch.finfo(item.dtype).tiny
        size = item.abs()
        kinds = {
            "infinite": size == inf,
            "nan": item.isnan(),
            "zero": size == 0,
            "denormal": (size > 0) & (size < tiny),
            "negative": item < 0,
            "one": size == 1,
        }
        found |= {kind for kind, where in kinds.items() if where.any()}
    return frozenset(found)


# Functions beside PyTorch's


class PreparedTwin:
    """A function of ours and PyTorch's, and the gradients of both for any values of the shapes of the twin's inputs."""

    def __init__(self, twin: Twin, tensors: list[torch.Tensor]):
        self.twin = twin
        self.written = Written(twin, tensors)
        self.leaves = [number for number, item in enumerate(tensors[: len(tensors) - twin.still]) if item.is_floating_point()]
        outputs = twin.theirs(*tensors)
        self.weight = torch.rand(outputs.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(7)).to(outputs.dtype) + 0.5
        self.gradients = self.written.differentiate([self.written.y], [self.weight])
        self.executor = ol.Executor()

    def ours(self, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        feed = {**self.written.feed, **{f"x{number}": item for number, item in enumerate(tensors)}}
        found = [gradient for gradient in self.gradients if gradient is not None]
        values: Iterator[Any] = iter(self.executor.run(self.written.program, feed, found, scope=ol.Scope(), return_numpy=False))
        return [torch.zeros_like(tensors[number]) if each is None else next(values)
                for number, each in zip(self.leaves, self.gradients, strict=True)]  # fmt: skip

    def theirs(self, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        given = [item.clone().requires_grad_(number in self.leaves) for number, item in enumerate(tensors)]
        output = self.twin.theirs(*given)
        if not output.requires_grad:
            return [torch.zeros_like(tensors[number]) for number in self.leaves]
        leaves = [given[number] for number in self.leaves]
        return list(torch.autograd.grad(output, leaves, self.weight, allow_unused=True, materialize_grads=True))


def compare_twin(twin: Twin, count: int, seed: int) -> Report:
    """Compare the gradients of a function and of PyTorch's, in float64."""
    report = Report()
    tensors = tensors_of(twin)
    prepared = PreparedTwin(twin, tensors)
    if not prepared.leaves:
        return report
    arguments = Arguments({f"x{number}": [item] for number, item in enumerate(tensors)}, {})
    for edge, changed in _mixtures(arguments, torch.float64, count, seed):
        values = [items[0] for items in changed.tensors.values()]
        try:
            theirs = prepared.theirs(values)
        except (RuntimeError, ValueError) as error:
            report.skipped.append(f"{edge}: {type(error).__name__} {str(error)[:80]}")
            continue
        try:
            ours = prepared.ours(values)
        except ol.KernelError as error:
            report.refused.append(f"{edge}: {str(error)[:80]}")
            continue
        report.compared += 1
        for number, mine, other in zip(prepared.leaves, ours, theirs, strict=True):
            if not same(mine, other):
                report.findings.append(_finding(twin.name, twin.name, edge, f"x{number}", changed, mine, other))
    return report


def edges_of_twin(twin: Twin) -> dict[str, str]:
    """The edges that are declared of the operator, or the composition, that a twin is a call of."""
    name = twin.name.partition(" ")[0]
    operator = standard.find(name) or standard.find(f"{name}_columns")
    edges = dict(operator.edges) if operator is not None else {}
    return {**edges, **COMPOSITION_EDGES.get(name, {}), **OF_PYTHON.get(twin.name, {})}


def main() -> int:
    """Compare everything, and print the first differences of each operator."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--show", type=int, default=3)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    total = wrong = 0
    compared: list[tuple[str, dict[str, str], Callable[..., Report], Any]]
    operators = [(each.type, each.edges, compare_operator, each) for each in DIFFERENTIABLE]
    twins = [(each.name, edges_of_twin(each), compare_twin, each) for each in COMPARED_TWINS]
    compared = [*operators, *twins]
    for name, edges, compare, item in compared:
        if arguments.names and name.partition(" ")[0] not in arguments.names:
            continue
        report = compare(item, arguments.count, arguments.seed)
        found = report.wrong(edges)
        total, wrong = total + report.compared, wrong + len(found)
        if found or (not report.compared and report.skipped):
            print(f"{name}: {report.compared} compared, {len(found)} differ; {report.skipped[:1]}")
        for each in found[: arguments.show]:
            print(f"    {each[:600]}")
    print(f"{len(operators)} operators, {len(twins)} functions, {total} gradients: {wrong} differ where no reason is declared")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
