"""Executor: run a program on values."""

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, get_args, overload

from oarlock.errors import ArgumentError, ProgramError
from oarlock.garbage_collection import collection_paused
from oarlock.ir.location import here
from oarlock.ir.program import Program
from oarlock.ir.var import Var
from oarlock.passes.pipeline import PASSES, require_passes
from oarlock.registry.catalogue import Catalogue, standard
from oarlock.registry.creator import describe_value
from oarlock.registry.type_check import require_legal
from oarlock.runtime.budget import Budget, RunLimits
from oarlock.runtime.context import Context
from oarlock.runtime.fork import note_threads, released_by_forks
from oarlock.runtime.interpreter import Interpreter
from oarlock.runtime.numpy_backend import interpret_by_numpy, require_numpy_kernels
from oarlock.runtime.paths import find_path
from oarlock.runtime.place import Place, places_in
from oarlock.runtime.plan import Plan
from oarlock.runtime.preparation import Prepared, Values
from oarlock.runtime.scope import Scope, frozen_in
from oarlock.runtime.scopes import Scopes
from oarlock.runtime.step import Step, interpreted_step, planned_step
from oarlock.runtime.workers import Workers, current_workers

__all__ = ["Backend", "Executor", "require_backend"]

Backend = Literal["inductor", "cuda_graphs", "numpy"]

_MAX_PREPARED = 64


class Executor:
    """Runs programs at a place, or at several.

    A run verifies the program once, computes what the fetches and the updates need, nothing else, in a scope of
    its own that is dropped when the run ends, and writes persistable variables last. So a run that raises
    leaves `scope` as it was. Executors may be shared by threads. With `check`, what every op computes is compared with
    its declared type: ShapeError or DTypeError, where a kernel does not keep its signature. With `limits`, each run is
    counted, and one that goes beyond them raises LimitError: for programs that someone else wrote.

    What is run is a plan: the program after `passes`, as Python that is written once. Without passes it computes what the
    interpreter would, bit for bit but for operators that round by place; passes may round in another order, as each says. With
    `interpret`, `check` or `limits`, for values of inner blocks and where scopes are kept, it is the interpreter itself. With `poison`,
    for those who work on plans, memory is filled with NaN when it is not read any more, and that of loops before it is written too. A
    number from 0 to 255 fills it with that byte.

    With `backend="inductor"`, what of a plan's outermost block does nothing but launch kernels, up to the updates, is compiled by PyTorch's
    compiler when it first runs, anew for each size of what is fed: that takes seconds each time, and a C++ compiler. It rounds
    otherwise. docs/decisions/0008 tells where it wins.

    With `backend="cuda_graphs"`, at a GPUPlace, the same is captured as CUDA graphs, one for each size of what is fed, and replayed: the
    same kernels, launched at once. docs/decisions/0010 says when it is faster.

    With `backend="numpy"`, the interpreter runs, and NumPy computes what each op does, at the processor: slowly, and by code that shares
    nothing with the kernels. ProgramError names operators that it does not compute.

    `workers` are those that it exchanges tensors with, where a program asks for that: those that `oarlock.runtime.workers.connect` has
    connected, unless others are given.

    Of several places, the first is that of what is fed, and of parameters that say nothing; the others are those that parameters name by
    their numbers. An op runs where its parameters are, and what it reads is moved there. Where there is one place, all is there, whatever a
    program says. docs/guides/places.md shows it.

    The backend of an executor stays: who wants another one from some step on goes on with another executor, in the same scope.
    """

    def __init__(
        self,
        place: Place | Sequence[Place] | None = None,
        *,
        catalogue: Catalogue = standard,
        check: bool = False,
        limits: RunLimits | None = None,
        interpret: bool = False,
        passes: Collection[str] = tuple(PASSES),
        poison: bool | int = False,
        backend: Backend | None = None,
        workers: Workers | None = None,
    ):
        self.poison = require_poison(poison)
        self.workers = current_workers() if workers is None else workers
        self.backend = require_backend(backend)
        self.places = places_in(place)
        self.place = self.places[0]
        self.limits = limits
        if backend == "numpy":
            self.interpreter = interpret_by_numpy(catalogue, self.places, check=check)
        else:
            self.interpreter = Interpreter(catalogue, check=check)
        if backend in ("inductor", "cuda_graphs"):
            _require_plans(self.places, backend, {"interpret": interpret, "check": check, "limits": limits is not None})
        self.planned = not (interpret or check or limits or backend == "numpy")
        self.passes = require_passes(passes)
        self._prepared: dict[tuple[object, ...], Prepared] = {}
        self._lock = released_by_forks(threading.RLock())

    @overload
    def run(
        self,
        program: Program,
        feed: Mapping[str, object] | None = None,
        fetch: Sequence[Var | str] = (),
        *,
        scope: Scope,
        training: bool | None = None,
        measure: bool = True,
        return_numpy: bool = True,
        keep_scopes: Literal[False] = False,
    ) -> Values: ...

    @overload
    def run(
        self,
        program: Program,
        feed: Mapping[str, object] | None = None,
        fetch: Sequence[Var | str] = (),
        *,
        scope: Scope,
        training: bool | None = None,
        measure: bool = True,
        return_numpy: bool = True,
        keep_scopes: Literal[True],
    ) -> tuple[Values, Scopes]: ...

    def run(
        self,
        program: Program,
        feed: Mapping[str, object] | None = None,
        fetch: Sequence[Var | str] = (),
        *,
        scope: Scope,
        training: bool | None = None,
        measure: bool = True,
        return_numpy: bool = True,
        keep_scopes: bool = False,
    ) -> Values | tuple[Values, Scopes]:
        """Run one step and return the values of `fetch`, in order.

        `feed` maps input names to arrays, tensors or numbers of the declared dtype and shape; an input that is
        not fed, and has no value of its own, is what `scope` holds under its name. `scope` holds the parameters. A run
        that is `training` gives them their new values, where the program has updates, and moves what layers keep: running statistics,
        the draws of dropout. One that is not changes none of these. Unless said otherwise, a program with updates is training.
        Metrics count every run, training or not, unless `measure` is False.
        A fetch is a variable, its name, the label of a target, or the path of a variable of an inner block: `main/rnn_0/3/z`
        in one trip of a loop, `main/rnn_0/z` stacked over its trips, which is also what the variable itself stands for.
        A fetch of a persistable variable gives its value from before the step. Arrays are copies.

        With `keep_scopes`, every op of the program is run, needed or not, and the scopes of the run are returned too,
        `(values, scopes)`; they stay until the caller drops them.

        Raises FeedError, UndefinedVarError or UnsetVarError for what does not fit, KernelError from a kernel, ShapeError
        for a stack over trips whose sizes differ.
        """
        training = program.is_training if training is None else training
        context = Context(scope, self.place, training, workers=self.workers, places=self.places)
        values, scopes = self._execute(program, feed, fetch, context, return_numpy, update=training, measure=measure, keep=keep_scopes)
        return values if scopes is None else (values, scopes)

    def eval(
        self,
        program: Program,
        targets: Sequence[Var | str],
        feed: Mapping[str, object] | None = None,
        *,
        scope: Scope,
        training: bool = False,
        return_numpy: bool = True,
    ) -> Values:
        """Compute `targets` and return their values, in order: what they need is run, no update, nothing else. No metric counts it.

        The arguments, and what is raised, are those of `run`. `scope` is not changed.
        """
        context = Context(scope, self.place, training, workers=self.workers, places=self.places)
        return self._execute(program, feed, targets, context, return_numpy, update=False, measure=False, keep=False)[0]

    def prepare(
        self,
        program: Program,
        fetch: Sequence[Var | str] = (),
        *,
        scope: Scope,
        training: bool | None = None,
        measure: bool = True,
        return_numpy: bool = True,
    ) -> Step:
        """A function that runs one step, for a loop of many: it looks variables up and checks them once, so a call costs microseconds.

        It runs the program as it is now, whatever is appended to it later. The arguments, and the errors raised, are those of `run`.
        """
        _require_list(fetch)
        training = program.is_training if training is None else training
        context = Context(scope, self.place, training, workers=self.workers, places=self.places)
        prepared = self._prepare(program, tuple(fetch), update=training, measure=measure, whole=False, scope=scope)
        if prepared.plan is not None:
            return planned_step(prepared.plan, prepared, context, return_numpy=return_numpy)
        return interpreted_step(prepared, context, self.limits, return_numpy=return_numpy)

    def plan(self, program: Program, fetch: Sequence[Var | str] = ()) -> Plan:
        """The plan by which `run` would compute `fetch` and the updates: its `text`, and what each pass `applied`.

        Raises ProgramError where the interpreter would run instead.
        """
        _require_list(fetch)
        found = self._prepare(program, tuple(fetch), update=True, measure=True, whole=False).plan
        if found is None:
            raise ProgramError(
                "this is not run by a plan, but by the interpreter, op by op",
                location=here(),
                contract="an executor without limits and checks plans what is fetched from the main block, blocks nested up to nine deep",
            )
        return found

    def _execute(
        self,
        program: Program,
        feed: Mapping[str, object] | None,
        fetch: Sequence[Var | str],
        context: Context,
        return_numpy: bool,
        *,
        update: bool,
        measure: bool,
        keep: bool,
    ) -> tuple[Values, Scopes | None]:
        _require_list(fetch)
        prepared = self._prepare(program, tuple(fetch), update=update, measure=measure, whole=keep, scope=context.scope)
        if prepared.plan is not None:
            return planned_step(prepared.plan, prepared, context, return_numpy=return_numpy, once=True)(feed or {}), None
        if self.limits is not None:
            context = replace(context, budget=Budget(self.limits))
        return prepared.interpret(feed or {}, context, return_numpy=return_numpy, keep=keep)

    def _prepare(
        self, program: Program, fetch: tuple[Var | str, ...], *, update: bool, measure: bool, whole: bool, scope: Scope | None = None
    ) -> Prepared:
        frozen = frozen_in(scope) if update and scope is not None else frozenset[str]()
        paths = (item if isinstance(item, Var) else find_path(program, item) for item in fetch)
        key = (program.serial, program.revision, update, measure, whole, frozen, *paths)
        found = self._prepared.get(key)
        if found is not None:
            return found
        fetched = [find_path(program, item) for item in fetch]
        with self._lock, collection_paused():
            found = self._prepared.get(key)
            if found is None:
                note_threads()
                require_legal(program, self.interpreter.catalogue)
                passes = self.passes if self.planned and not whole else None
                found = Prepared(
                    program,
                    fetched,
                    self.interpreter,
                    update=update,
                    measure=measure,
                    frozen=frozen,
                    whole=whole,
                    passes=passes,
                    places=self.places,
                    poison=self.poison,
                    backend=self.backend,
                )
                if self.backend == "numpy":
                    require_numpy_kernels([*found.ops, *found.tail], self.interpreter.catalogue)
                if len(self._prepared) >= _MAX_PREPARED:
                    self._prepared.pop(next(iter(self._prepared)))
                self._prepared[key] = found
        return found


def require_backend(backend: object) -> Backend | None:
    """`backend` as an executor takes it. Raises ArgumentError."""
    if backend not in (None, *get_args(Backend)):
        raise ArgumentError(f'backend is "inductor", "cuda_graphs", "numpy" or None, not {backend!r:.60}', location=here())
    return backend  # type: ignore[return-value]


def require_poison(poison: object) -> bool | int:
    """`poison` as an executor takes it. Raises ArgumentError."""
    if not isinstance(poison, int) or not 0 <= poison <= 255:
        raise ArgumentError(f"poison is True, False or a byte from 0 to 255, not {poison!r:.60}", location=here())
    return poison


def _require_plans(places: Sequence[Place], backend: Backend, interpreted: Mapping[str, bool]) -> None:
    """Raise ArgumentError where a backend would have nothing to compile, or to capture."""
    place = places[0]
    if len(places) > 1:
        raise ArgumentError(
            f'backend="{backend}" is for one place, not for {len(places)}',
            location=here(),
            given=[repr(each) for each in places],
            hint="leave out backend, or give one place",
        )
    if backend == "inductor" and not place.is_cpu:
        raise ArgumentError(
            f'backend="inductor" compiles what runs at ol.CPUPlace(), not at {place}',
            location=here(),
            hint='backend="cuda_graphs", or leave out backend',
        )
    if backend == "cuda_graphs" and place.is_cpu:
        raise ArgumentError(
            f'backend="cuda_graphs" captures what runs at a GPU, not at {place}',
            location=here(),
            hint="give it the place ol.GPUPlace(0), or leave out backend",
        )
    for option in (option for option, given in interpreted.items() if given):
        raise ArgumentError(
            f"with {option} the interpreter runs, which no backend compiles", location=here(), hint=f"leave out {option} or backend"
        )


def _require_list(fetch: object) -> None:
    if isinstance(fetch, Var | str) or not isinstance(fetch, Iterable):
        given = "" if isinstance(fetch, Var | str) else f", not {describe_value(fetch)}"
        raise ArgumentError(f"fetch is a list of variables or of their names{given}", location=here(), hint="fetch=[cost]")
