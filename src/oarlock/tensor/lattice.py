"""Sums over state paths, one state per step, by the forward-backward algorithm (Rabiner, 1989), in log space.

The score of a path is the sum of its emissions and transitions. The total is ``log(sum(exp(score)))`` over all paths of a sequence; its
gradients are the expected counts of states and transitions. Half precision is computed in float32.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch.nn.functional import pad

from oarlock.tensor.sequences import cells_of, longest_of

IMPOSSIBLE = -1e30
"""The score of an impossible state: finite, so that gradients are not NaN, and low enough to vanish next to possible ones."""

__all__ = ["IMPOSSIBLE", "BandTransitions", "FullTransitions", "Lattice", "Sums", "best_path", "pad_rows", "sums_of", "tangents_of"]


def pad_rows(x: torch.Tensor, splits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
    """Pad sequences to rows of equal length with zeros; return the rows, the lengths, and the positions of elements. Raises ValueError."""
    cells = cells_of(splits, len(x))
    padded = x.new_zeros((len(splits) - 1, longest_of(splits), *x.shape[1:]))
    return padded.index_put(cells, x), splits.diff(), cells


class Transitions(Protocol):
    """The possible transitions between states: ``entering[s, p]`` is the score of the transition from state ``into(values)[s, p]`` to s."""

    entering: torch.Tensor
    leaving: torch.Tensor

    def into(self, values: torch.Tensor, outside: float) -> torch.Tensor:
        """Return the values of the predecessors of each state, [n s] -> [n s p]; ``outside`` fills missing ones."""
        ...

    def out_of(self, values: torch.Tensor, outside: float) -> torch.Tensor:
        """Return the values of the successors of each state."""
        ...


class FullTransitions:
    """Transitions between all states, with scores ``[k k]`` from each state to each, or ``[n k k]`` per sequence."""

    def __init__(self, scores: torch.Tensor):
        self.leaving = scores
        self.entering = scores.mT

    def into(self, values: torch.Tensor, outside: float) -> torch.Tensor:
        return values.unsqueeze(-2)

    out_of = into


class BandTransitions:
    """Transitions to the same state, to the next one, and to the one after that if ``skips`` [n s] allows it."""

    def __init__(self, skips: torch.Tensor, dtype: torch.dtype):
        skip = torch.where(skips, 0.0, IMPOSSIBLE).to(dtype)
        none = torch.zeros_like(skip)
        self.entering = torch.stack([skip, none, none], -1)
        self.leaving = torch.stack([none, none, pad(skip[:, 2:], (0, min(2, skip.shape[1])), value=IMPOSSIBLE)], -1)

    def into(self, values: torch.Tensor, outside: float) -> torch.Tensor:
        return pad(values, (2, 0), value=outside).unfold(-1, 3, 1)

    def out_of(self, values: torch.Tensor, outside: float) -> torch.Tensor:
        return pad(values, (0, 2), value=outside).unfold(-1, 3, 1)


@dataclass(frozen=True)
class Lattice:
    """Sequences of ``lengths`` [n] with emissions [n t s], start and end scores [s] or [n s], and transitions."""

    emissions: torch.Tensor
    lengths: torch.Tensor
    start: torch.Tensor
    end: torch.Tensor
    transitions: Transitions

    @property
    def steps(self) -> int:
        return self.emissions.shape[1]

    def lasts(self, step: int) -> torch.Tensor:
        """Return which sequences have this step, [n 1]."""
        return (self.lengths > step).unsqueeze(-1)


class Sums(NamedTuple):
    """The total of each sequence [n], 0 if it is empty; expected counts of states [n t s] and of transitions [n s p]."""

    total: torch.Tensor
    occupancy: torch.Tensor
    pairs: torch.Tensor


def _forward(lattice: Lattice) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Return the forward scores of each step, [n s], and the totals [n], for nonempty sequences."""
    alphas = [lattice.start + lattice.emissions[:, 0]]
    transitions = lattice.transitions
    for step in range(1, lattice.steps):
        arriving = torch.logsumexp(transitions.into(alphas[-1], IMPOSSIBLE) + transitions.entering, -1)
        alphas.append(torch.where(lattice.lasts(step), arriving + lattice.emissions[:, step], alphas[-1]))
    return alphas, torch.logsumexp(alphas[-1] + lattice.end, -1)


def _norm(total: torch.Tensor) -> torch.Tensor:
    """Return the totals, infinite if no path is possible, so that all shares become 0: [n 1]."""
    return torch.where(total <= IMPOSSIBLE / 2, torch.inf, total).unsqueeze(-1)


def sums_of(lattice: Lattice) -> Sums:
    """Return the totals, and the expected counts of states and transitions."""
    count, _, states = lattice.emissions.shape
    if lattice.steps == 0:
        width = lattice.transitions.leaving.shape[-1]
        zeros = lattice.emissions.new_zeros
        return Sums(zeros(count), zeros((count, 0, states)), zeros((count, states, width)))
    transitions = lattice.transitions
    alphas, total = _forward(lattice)
    norm = _norm(total)
    beta = lattice.end.expand(count, states)
    occupancy, pairs = [(alphas[-1] + beta - norm).exp()], None
    for step in range(lattice.steps - 1, 0, -1):
        ahead = transitions.out_of(beta + lattice.emissions[:, step], IMPOSSIBLE) + transitions.leaving
        here = lattice.lasts(step)
        crossing = (alphas[step - 1].unsqueeze(-1) + ahead - norm.unsqueeze(-1)).exp().masked_fill(~here.unsqueeze(-1), 0.0)
        pairs = crossing if pairs is None else pairs + crossing
        beta = torch.where(here, torch.logsumexp(ahead, -1), lattice.end)
        occupancy.append((alphas[step - 1] + beta - norm).exp())
    if pairs is None:
        pairs = alphas[0].new_zeros((count, states, transitions.leaving.shape[-1]))
    total = torch.where(total <= IMPOSSIBLE / 2, -torch.inf, total)
    return Sums(total.masked_fill(lattice.lengths == 0, 0.0), torch.stack(occupancy[::-1], 1), pairs)


def tangents_of(lattice: Lattice, emissions: torch.Tensor, scores: Transitions | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the changes of occupancy and pairs when emissions change along ``emissions`` [n t s] and transitions along ``scores``.

    This is the Hessian of the total, which is symmetric, times the direction.
    """
    count, _, states = lattice.emissions.shape
    width = lattice.transitions.leaving.shape[-1]
    if lattice.steps == 0:
        return torch.zeros_like(lattice.emissions), lattice.emissions.new_zeros((count, states, width))
    transitions = lattice.transitions
    entering, leaving = (0.0, 0.0) if scores is None else (scores.entering, scores.leaving)
    alphas, total = _forward(lattice)
    moved = [emissions[:, 0]]
    for step in range(1, lattice.steps):
        weights = _weights(transitions.into(alphas[step - 1], IMPOSSIBLE) + transitions.entering)
        arriving = (weights * (transitions.into(moved[-1], 0.0) + entering)).sum(-1) + emissions[:, step]
        moved.append(torch.where(lattice.lasts(step), arriving, moved[-1]))
    of_total = (_weights(alphas[-1] + lattice.end) * moved[-1]).sum(-1, keepdim=True)
    norm = _norm(total)
    beta, moving = lattice.end.expand(count, states), torch.zeros_like(moved[0])
    occupancy = [(alphas[-1] + beta - norm).exp() * (moved[-1] - of_total)]
    pairs = emissions.new_zeros((count, states, width))
    for step in range(lattice.steps - 1, 0, -1):
        ahead = transitions.out_of(beta + lattice.emissions[:, step], IMPOSSIBLE) + transitions.leaving
        change = transitions.out_of(moving + emissions[:, step], 0.0) + leaving
        here = lattice.lasts(step)
        crossing = (alphas[step - 1].unsqueeze(-1) + ahead - norm.unsqueeze(-1)).exp().masked_fill(~here.unsqueeze(-1), 0.0)
        pairs = pairs + crossing * (moved[step - 1].unsqueeze(-1) + change - of_total.unsqueeze(-1))
        moving = (_weights(ahead) * change).sum(-1).masked_fill(~here, 0.0)
        beta = torch.where(here, torch.logsumexp(ahead, -1), lattice.end)
        occupancy.append((alphas[step - 1] + beta - norm).exp() * (moved[step - 1] + moving - of_total))
    return torch.stack(occupancy[::-1], 1), pairs


def _weights(scores: torch.Tensor) -> torch.Tensor:
    """Return the softmax along the last axis; zeros if nothing is possible."""
    return torch.softmax(scores, -1).nan_to_num(0.0)


def best_path(lattice: Lattice) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the states of the best path of each sequence, int64[n t], the first one on ties, and its score [n] (Viterbi, 1967)."""
    count = len(lattice.lengths)
    if lattice.steps == 0:
        return lattice.lengths.new_zeros((count, 0)), lattice.emissions.new_zeros(count)
    best, origins = lattice.start + lattice.emissions[:, 0], []
    for step in range(1, lattice.steps):
        arriving, origin = (lattice.transitions.into(best, IMPOSSIBLE) + lattice.transitions.entering).max(-1)
        here = lattice.lasts(step)
        best = torch.where(here, arriving + lattice.emissions[:, step], best)
        origins.append(torch.where(here, origin, torch.arange(best.shape[-1], device=origin.device)))
    score, state = (best + lattice.end).max(-1)
    path = [state]
    for origin in reversed(origins):
        path.append(origin.gather(-1, path[-1].unsqueeze(-1)).squeeze(-1))
    return torch.stack(path[::-1], 1), score.masked_fill(lattice.lengths == 0, 0.0)
