"""Steps of optimizers on some rows of a table, in place. Nothing here goes over the whole table."""

from collections.abc import Callable

import torch

from oarlock.tensor.optimizer_steps import scaled, update_by_adam, update_by_momentum

__all__ = ["distinct_rows", "subtract_rows", "update_rows_by_adam", "update_rows_by_momentum"]


def distinct_rows(rows: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The numbers of ``rows``, rising, each once, and the sum of the ``values`` of each. What rises already is returned as it is."""
    if len(rows) < 2 or bool((rows[1:] > rows[:-1]).all()):
        return rows, values
    distinct, inverse = torch.unique(rows, sorted=True, return_inverse=True)
    return distinct, values.new_zeros((len(distinct), *values.shape[1:])).index_add_(0, inverse, values)


def subtract_rows(table: torch.Tensor, rows: torch.Tensor, values: torch.Tensor, learning_rate: torch.Tensor) -> torch.Tensor:
    """Subtract ``learning_rate * values[i]`` from row ``rows[i]`` of ``table``, in place; several from one row, one after another.

    PyTorch adds rows at once only without a factor (`alpha`), so what is added is made first: twice as fast.
    """
    change = values * -learning_rate.item() if learning_rate.is_cpu else scaled(values, -learning_rate)
    return table.index_add_(0, rows, change)


def update_rows_by_momentum(
    table: torch.Tensor, rows: torch.Tensor, values: torch.Tensor, velocity: torch.Tensor, learning_rate, mu: float, nesterov: bool
) -> None:
    def step(sums, params, velocities):
        update_by_momentum([params], [sums], [velocities], learning_rate, mu, nesterov, alone=True)

    _update_rows(step, rows, values, table, velocity)


def update_rows_by_adam(
    table: torch.Tensor, rows: torch.Tensor, values: torch.Tensor, moment1: torch.Tensor, moment2: torch.Tensor,
    count: torch.Tensor, learning_rate: torch.Tensor, beta1: float, beta2: float, epsilon: float,
) -> None:  # fmt: skip
    def step(sums, params, moments1, moments2):
        update_by_adam([params], [sums], [moments1], [moments2], count, learning_rate, beta1, beta2, epsilon, alone=True)

    _update_rows(step, rows, values, table, moment1, moment2)


def _update_rows(step: Callable[..., object], rows: torch.Tensor, values: torch.Tensor, *tables: torch.Tensor) -> None:
    """Call ``step(sums, *parts)``, which changes the parts: the rows of ``tables`` that are numbered. Then put them back.

    `sums` are the ``values`` of each row, added up.
    """
    if not len(rows):
        return
    rows, sums = distinct_rows(rows, values)
    parts = [table.index_select(0, rows) for table in tables]
    step(sums, *parts)
    for table, part in zip(tables, parts, strict=True):
        table.index_copy_(0, rows, part)
