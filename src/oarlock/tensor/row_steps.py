"""Steps of optimizers on some rows of a table, in place. Nothing here goes over the whole table."""

import torch

from oarlock.tensor.optimizer_steps import scaled

__all__ = ["distinct_rows", "subtract_rows"]


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
