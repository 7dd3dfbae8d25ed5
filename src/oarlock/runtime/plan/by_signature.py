"""A region of a plan as functions, one for each way in which what it is given may differ for who records what its kernels do."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import torch

from oarlock.errors import OarlockError
from oarlock.ir.operation import Op
from oarlock.ir.var import Var
from oarlock.registry.catalogue import Catalogue
from oarlock.runtime.plan.regions import Region, Training, is_known
from oarlock.runtime.tensor_guard import TensorGuard

__all__ = ["BySignature", "Function", "KernelFailure"]

_MOST = 8  # signatures that a function is made for; what comes after them is run by kernels
_making = threading.Lock()  # one at a time in a process, since PyTorch's compiler is one

Function = Callable[..., Sequence[Any]]


class KernelFailure(Exception):  # noqa: N818  it carries an error, and is none that anybody sees
    """The failure of the kernel of `op`, one of a region, on `values`; the exception that it raised is the cause of this."""

    def __init__(self, op: Op, values: dict[Var, object]):
        super().__init__(op.type)
        self.op = op
        self.values = values


class BySignature(ABC):
    """Called with the values of `reads` and the shapes of `shapes`, it returns the values of `writes` and the shapes of `shapes_left`.

    The first argument is the run, for kernels that ask whether it is training. What kernels do may depend on that, on sizes, dtypes,
    strides, devices, the number of threads and the values of single bools that the host has: this is the signature. For each there is
    one function, up to eight; signatures beyond the eighth are run by the kernels of the ops, one after another, each with its own
    error.
    """

    def __init__(self, region: Region, catalogue: Catalogue, device: torch.device):
        self._region = region
        self._catalogue = catalogue
        self._count = len(region.reads)
        self._known = [number for number, var in enumerate(region.reads) if is_known(var, device)]
        self._functions: dict[object, Function] = {}
        self._last: tuple[object, TensorGuard, Function] | None = None  # what ran last, and on what

    def __call__(self, context: Training | None, *given: Any) -> Sequence[Any]:
        tensors = given[: self._count]
        rest = (
            torch.get_num_threads(),
            context is not None and context.training,
            [bool(given[number]) for number in self._known],
            given[self._count :],
        )
        last = self._last
        if last is not None and last[0] == rest and last[1](*tensors):
            return last[2](*given)
        key = str(rest), tuple((tensor.shape, tensor.stride(), tensor.dtype, tensor.device) for tensor in tensors)
        function = self._functions.get(key)
        if function is None:
            with _making:
                function = self._functions.get(key)
                if function is None:
                    function = self._functions[key] = self._chosen(Training(rest[1]), given)
        self._last = rest, TensorGuard(tensors, strides=True), function
        return function(*given)

    def _chosen(self, context: Training, given: Sequence[Any]) -> Function:
        return self._make(context, given) if len(self._functions) < _MOST else self._by_kernels(context)

    @abstractmethod
    def _make(self, context: Training, given: Sequence[Any]) -> Function:
        """The function for what is like `given`."""

    def _by_kernels(self, context: Training) -> Function:
        """The function that calls the kernels of the ops."""
        return lambda *given: self._run(context, given)

    def _run(self, context: Training, given: Sequence[Any]) -> list[Any]:
        """Run the kernels one after another, and return their results."""
        region = self._region
        values: dict[Var, Any] = dict(zip((*region.reads, *region.shapes), given, strict=True))

        def shape_of(var: Var) -> torch.Size:
            return getattr(values[var], "shape", values[var])

        for op in region.ops:
            try:
                results = self._catalogue.get(op.type).run(op, values.__getitem__, shape_of, context)
            except OarlockError:
                raise
            except Exception as error:
                raise KernelFailure(op, {var: values[var] for var in op.reads}) from error
            values.update(zip(op.writes, results, strict=True))
        return [*(values[var] for var in region.writes), *(values[var].shape for var in region.shapes_left)]
