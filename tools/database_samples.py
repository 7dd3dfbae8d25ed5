"""PyTorch's operator database, `torch.testing._internal`. Only this file depends on its internals, which no release promises.

It needs the package `expecttest`. Samples are seeded: repeated requests give the same numbers.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

__all__ = ["Entry", "Sample", "entries", "tensors_in"]


@dataclass
class Sample:
    """The arguments of one call. `reference` computes the result, `process` selects the results with well-defined gradients."""

    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]
    reference: Callable[..., Any]
    process: Callable[[Any], Any]


@dataclass
class Entry:
    """An operator of the database: its samples, and whether it has gradients."""

    name: str
    information: Any

    def differentiable(self, order: int) -> bool:
        """Return whether PyTorch has gradients of it, of the first or the second order."""
        return bool(self.information.supports_autograd and (order == 1 or self.information.supports_gradgrad))

    def has(self, dtype: torch.dtype) -> bool:
        return dtype in self.information.dtypes

    def samples(self, dtype: torch.dtype) -> Iterator[Sample]:
        """Yield the samples of a dtype."""
        torch.manual_seed(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = self.information.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
            yield from map(self._read, self.information.sample_inputs("cpu", dtype, requires_grad=wanted))

    def error_samples(self) -> Iterator[Sample]:
        """Yield the samples that PyTorch refuses."""
        torch.manual_seed(0)
        if self.information.error_inputs_func is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield from (self._read(each.sample_input) for each in self.information.error_inputs("cpu"))

    def _read(self, sample: Any) -> Sample:
        return Sample((sample.input, *sample.args), sample.kwargs, self.information.get_op(), sample.output_process_fn_grad)


@cache
def entries() -> dict[str, Entry]:
    """Return the whole database by name. Variants of a name have a dot and the variant's name appended."""
    from torch.testing._internal.common_methods_invocations import op_db

    found = {}
    for each in op_db:
        name = f"{each.name}.{each.variant_test_name}" if each.variant_test_name else each.name
        found[name] = Entry(name, each)
    return found


def tensors_in(value: Any) -> list[torch.Tensor]:
    """Yield the tensors in a nested value of tuples, lists and dicts, in order, each once."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, Sequence) and not isinstance(value, str):
        found: dict[int, torch.Tensor] = {}
        for item in value:
            found.update((id(each), each) for each in tensors_in(item))
        return list(found.values())
    return []
