"""Executor: runs programs on values."""

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
    """Runs programs at one place, or at several.

    A run verifies the program once, computes only what the fetches and the updates need, in a temporary scope, and writes persistable
    variables last. So a run that raises leaves `scope` unchanged. Executors may be shared by threads.

    By default a run executes a plan: the program after `passes`, compiled once to Python source. Without passes, a plan computes the same
    bits as the interpreter, except for operators whose rounding depends on memory layout; passes may change rounding, as each one
    documents. The interpreter runs instead with `interpret`, `check` or `limits`, and if values of nested blocks are fetched or scopes are
    kept.

    `check=True` compares the results of every op with their declared types and raises ShapeError or DTypeError if a kernel violates its
    signature. `limits` bounds the resources of each run, for untrusted programs; exceeding them raises LimitError. `poison=True` fills
    memory with NaN once the plan considers it dead, and memory of loops before it is written; a number from 0 to 255 fills it with that
    byte. It is for debugging plans.

    `backend="inductor"`: PyTorch's compiler compiles those parts of the main block that only launch kernels, excluding parameter updates.
    It compiles on the first run and again for each new input shape, which takes seconds each time and needs a C++ compiler. Results may be
    rounded differently. docs/decisions/0008 lists where it is faster.

    `backend="cuda_graphs"`, at a GPUPlace: the same parts are captured as CUDA graphs, one per input shape, and replayed. The kernels are
    the same, launched together. docs/decisions/0010 lists where it is faster.

    `backend="numpy"`: the interpreter computes every op with NumPy on the CPU. It is slow, and shares no code with the kernels.
    ProgramError lists the operators that it does not support.

    `workers` are the processes to exchange tensors with, if the program does so. Default: those connected by
    `oarlock.runtime.workers.connect`.

    With several places, the first one holds the feed and all parameters without a place; parameters refer to the others by index. An op
    runs at the place of its parameters, and its inputs are moved there. With one place, everything is there and declared places are
    ignored. See docs/guides/places.md.

    The backend of an executor cannot be changed. To switch, create another executor and pass it the same scope.
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

        `feed` maps input names to arrays, tensors or numbers of the declared dtype and shape. An input that is not fed and has no initial
        value is read from `scope` under its name. `scope` holds the parameters. With `training`, the run updates them and the state of
        layers: running statistics, the random state of dropout. Without it, none of these change. The default is to train if the program
        has updates. Metrics count every run, training or not, unless `measure` is False.

        A fetch is a variable, its name, the label of a target, or the path of a variable in a nested block: `main/rnn_0/3/z` for one
        iteration of a loop, `main/rnn_0/z` (or the variable itself) for the values of all iterations, stacked. Fetching a persistable
        variable returns its value before the step. Arrays are copies.

        With `keep_scopes`, every op of the program runs, needed or not, and the result is `(values, scopes)`. The scopes of the run stay
        alive until the caller drops them.

        Raises FeedError, UndefinedVarError or UnsetVarError for invalid inputs, KernelError if a kernel fails, ShapeError when stacking
        iterations of different sizes.
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
        """Compute `targets` and return their values, in order. Only the ops that they need run; no updates are made and no metric is
        counted.

        Takes and raises the same as `run`. `scope` is not changed.
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
        """Return a function that runs one step. It looks up and checks variables only once, so each call costs microseconds.

        The function runs the program as it is now; ops appended later are ignored. Takes and raises the same as `run`.
        """
        _require_list(fetch)
        training = program.is_training if training is None else training
        context = Context(scope, self.place, training, workers=self.workers, places=self.places)
        prepared = self._prepare(program, tuple(fetch), update=training, measure=measure, whole=False, scope=scope)
        if prepared.plan is not None:
            return planned_step(prepared.plan, prepared, context, return_numpy=return_numpy)
        return interpreted_step(prepared, context, self.limits, return_numpy=return_numpy)

    def plan(self, program: Program, fetch: Sequence[Var | str] = ()) -> Plan:
        """Return the plan that `run` would execute for `fetch` and the updates, with its `text` and the rewrites that each pass `applied`.

        Raises ProgramError if the interpreter would run instead.
        """
        _require_list(fetch)
        found = self._prepare(program, tuple(fetch), update=True, measure=True, whole=False).plan
        if found is None:
            raise ProgramError(
                "there is no plan: the interpreter would run these fetches op by op",
                location=here(),
                contract="plans need an executor without limits and checks, fetches from the main block, and at most nine nested blocks",
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
    """Validate a `backend` argument. Raises ArgumentError."""
    if backend not in (None, *get_args(Backend)):
        raise ArgumentError(f'backend must be "inductor", "cuda_graphs", "numpy" or None, not {backend!r:.60}', location=here())
    return backend  # type: ignore[return-value]


def require_poison(poison: object) -> bool | int:
    """Validate a `poison` argument. Raises ArgumentError."""
    if not isinstance(poison, int) or not 0 <= poison <= 255:
        raise ArgumentError(f"poison must be True, False or a byte from 0 to 255, not {poison!r:.60}", location=here())
    return poison


def _require_plans(places: Sequence[Place], backend: Backend, interpreted: Mapping[str, bool]) -> None:
    """Check that a compiling backend has a plan to compile at a supported place. Raises ArgumentError."""
    place = places[0]
    if len(places) > 1:
        raise ArgumentError(
            f'backend="{backend}" supports one place, not {len(places)}',
            location=here(),
            given=[repr(each) for each in places],
            hint="omit backend, or pass one place",
        )
    if backend == "inductor" and not place.is_cpu:
        raise ArgumentError(
            f'backend="inductor" needs ol.CPUPlace(), not {place}',
            location=here(),
            hint='use backend="cuda_graphs", or omit backend',
        )
    if backend == "cuda_graphs" and place.is_cpu:
        raise ArgumentError(
            f'backend="cuda_graphs" needs a GPU, not {place}',
            location=here(),
            hint="pass the place ol.GPUPlace(0), or omit backend",
        )
    for option in (option for option, given in interpreted.items() if given):
        raise ArgumentError(f"backends need a plan, but {option} uses the interpreter", location=here(), hint=f"omit {option} or backend")


def _require_list(fetch: object) -> None:
    if isinstance(fetch, Var | str) or not isinstance(fetch, Iterable):
        given = "" if isinstance(fetch, Var | str) else f", not {describe_value(fetch)}"
        raise ArgumentError(f"fetch must be a list of variables or names{given}", location=here(), hint="fetch=[cost]")
