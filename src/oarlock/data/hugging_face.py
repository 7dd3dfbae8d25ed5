"""Hugging Face data sets as tables."""

from collections.abc import Collection
from typing import Any

import numpy

from oarlock.data.arrow import ArrowTable
from oarlock.data.table import Table

__all__ = ["HuggingFaceTable"]


class HuggingFaceTable(Table):
    """A `datasets.Dataset`. Requested rows are read from its files as Arrow, ignoring its format and transform."""

    def __init__(self, dataset: Any):
        self.dataset = dataset.with_format("arrow")
        self.names = tuple(dataset.column_names)

    def __len__(self) -> int:
        return len(self.dataset)

    def take(self, rows: numpy.ndarray, names: Collection[str] | None = None) -> dict[str, object]:
        """See `Table.take`."""
        return ArrowTable(self.dataset[rows.tolist()]).whole(names)
