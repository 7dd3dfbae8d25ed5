"""Executor: run a program on values."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy
import torch

from oarlock.errors import ArgumentError, UndefinedVarError
from oarlock.ir.location import here
from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.variable import Var
from oarlock.ir.verify import verify_program
from oarlock.ir.walk import needed_ops
from oarlock.registry.catalogue import Catalogue, standard
from oarlock.registry.checking import typecheck
from oarlock.runtime.budget import Budget, RunLimits
from oarlock.runtime.context import Context
from oarlock.runtime.feeding import check_feed
from oarlock.runtime.interpreter import Interpreter
from oarlock.runtime.place import Place, one_place
from oarlock.runtime.scope import Scope
from oarlock.runtime.value import to_numpy

__all__ = ["Executor"]

_MAX_PREPARED = 64


@dataclass(frozen=True)
class _Prepared:
    """What one way of running a program needs: decided once, reused by every run."""

    ops: list[Op]
    fetched: list[Var]
    read: set[Var]


class Executor:
    """Runs programs at a place.

    A run verifies the program once, computes what the fetches and the updates need, nothing else, in a scope of
    its own that is dropped when the run ends, and writes persistable variables last. So a run that raises
    leaves `scope` as it was. Executors may be shared by threads. With `check`, what every op computes is compared with
    its declared type: ShapeError or DTypeError, where a kernel does not keep its signature. With `limits`, each run is
    counted, and one that goes beyond them raises LimitError: for programs that someone else wrote.
    """

    def __init__(
        self,
        place: Place | Sequence[Place] | None = None,
        *,
        catalogue: Catalogue = standard,
        check: bool = False,
        limits: RunLimits | None = None,
    ):
        self.place = one_place(place)
        self.limits = limits
        self.interpreter = Interpreter(catalogue, check=check)
        self._prepared: dict[tuple[object, ...], _Prepared] = {}
        self._lock = threading.Lock()

    def run(
        self,
        program: Program,
        feed: Mapping[str, object] | None = None,
        fetch: Sequence[Var | str] = (),
        *,
        scope: Scope,
        training: bool = False,
        return_numpy: bool = True,
    ) -> list[numpy.ndarray] | list[torch.Tensor]:
        """Run one step and return the values of `fetch`, in order.

        `feed` maps input names to arrays, tensors or numbers of the declared dtype and shape. `scope` holds the
        parameters, and receives their new values when the program has updates. `training` is what dropout asks.
        A fetch of a persistable variable gives its value from before the step. Arrays are copies.
        Raises FeedError, UndefinedVarError or UnsetVarError for what does not fit, KernelError from a kernel.
        """
        return self._execute(program, feed, fetch, Context(scope, self.place, training), return_numpy, update=True)

    def eval(
        self,
        program: Program,
        targets: Sequence[Var | str],
        feed: Mapping[str, object] | None = None,
        *,
        scope: Scope,
        training: bool = False,
        return_numpy: bool = True,
    ) -> list[numpy.ndarray] | list[torch.Tensor]:
        """Compute `targets` and return their values, in order: what they need is run, no update, nothing else.

        The arguments, and what is raised, are those of `run`. `scope` is not changed.
        """
        return self._execute(program, feed, targets, Context(scope, self.place, training), return_numpy, update=False)

    def _execute(
        self,
        program: Program,
        feed: Mapping[str, object] | None,
        fetch: Sequence[Var | str],
        context: Context,
        return_numpy: bool,
        *,
        update: bool,
    ) -> list[numpy.ndarray] | list[torch.Tensor]:
        if isinstance(fetch, Var | str):
            raise ArgumentError("fetch is a list of variables or of their names", location=here(), hint="fetch=[cost]")
        prepared = self._prepare(program, tuple(fetch), update=update)
        tensors = check_feed(program, feed or {}, prepared.read, self.place)
        if self.limits is not None:
            context = replace(context, budget=Budget(self.limits))
        frame = context.scope.new_scope("main")
        try:
            if context.budget is not None:
                context.budget.hold(tensors.values())
            for name, tensor in tensors.items():
                frame.var(name).value = tensor
            before = {var: frame[var.name] for var in prepared.fetched if var.persistable}
            with torch.no_grad():
                self.interpreter.run_ops(prepared.ops, frame, context)
            values: list[torch.Tensor] = [before[var] if var in before else frame[var.name] for var in prepared.fetched]  # type: ignore[misc]
        finally:
            frame.drop()
        return [to_numpy(value) for value in values] if return_numpy else values

    def _prepare(self, program: Program, fetch: tuple[Var | str, ...], *, update: bool) -> _Prepared:
        fetched = [_find(program, item) for item in fetch]
        key = (program.serial, program.revision, update, *fetched)
        with self._lock:
            found = self._prepared.get(key)
            if found is None:
                verify_program(program)
                typecheck(program, self.interpreter.catalogue)
                tail = program.main.tail if update else []
                wanted = [*fetched, *(var for op in tail for var in op.reads)]
                needed = needed_ops(program.main.ops, wanted)
                read = {var for op in needed for var in op.reads} | set(wanted)
                found = _Prepared([*needed, *tail], fetched, read)
                if len(self._prepared) >= _MAX_PREPARED:
                    self._prepared.pop(next(iter(self._prepared)))
                self._prepared[key] = found
        return found


def _find(program: Program, item: Var | str) -> Var:
    """The variable of the main block that a fetch names."""
    if isinstance(item, str):
        return program.targets[item] if item in program.targets else program.main.var(item)
    if not isinstance(item, Var):
        raise ArgumentError(f"a fetch is a variable or its name, not {type(item).__name__} {item!r:.60}", location=here())
    if item.block is not program.main:
        raise UndefinedVarError(
            f'"{item.path}" is not a variable of the main block of this program',
            location=here(),
            given=[item.describe()],
            hint="fetch by name where the program is a copy or was loaded from a file",
        )
    return item
