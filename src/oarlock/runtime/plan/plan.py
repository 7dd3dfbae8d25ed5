"""Plan: a program, or what of it is needed, as one Python function."""

import itertools
import linecache
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property, partial
from types import MappingProxyType, TracebackType
from typing import NamedTuple

import torch

from oarlock.backend.torch.private import below_autograd, below_some_autograd
from oarlock.backend.torch.variants import variants_of
from oarlock.errors import OarlockError
from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.var import Var, is_among
from oarlock.registry.catalogue import Catalogue
from oarlock.registry.size_check import SizeCheck
from oarlock.registry.value_checks import checks_values
from oarlock.runtime import recording
from oarlock.runtime.context import Context, KernelContext, draws_done
from oarlock.runtime.kernel_error import explain
from oarlock.runtime.place import Place, device_of, made_at
from oarlock.runtime.plan import calls
from oarlock.runtime.plan.alias_sets import are_trusted
from oarlock.runtime.plan.backends import write_regions
from oarlock.runtime.plan.by_signature import KernelFailure
from oarlock.runtime.plan.emitter import Emitter
from oarlock.runtime.plan.escape_analysis import find_lent
from oarlock.runtime.plan.numbers import Numbers, one_number
from oarlock.runtime.plan.precomputation import Precomputation, find_precomputation
from oarlock.runtime.plan.preconditions import attributes_fit, write_preconditions
from oarlock.runtime.plan.source import Source
from oarlock.runtime.plan.straight_line import StraightLine
from oarlock.runtime.plan.timed_text import TimedText
from oarlock.runtime.plan.workspace import Workspace
from oarlock.tensor.dtype import to_torch

__all__ = ["Plan", "PlanInput"]

_numbers = itertools.count()


class PlanInput(NamedTuple):
    """An input of a plan; the number of the output that is its next value, if it has one, and whether that is made in its memory."""

    var: Var
    dtype: torch.dtype
    following: int | None = None
    is_over: bool = False


class Plan:
    """Straight-line Python written for some ops, one line an op, which computes what the interpreter would.

    `inputs` are given from outside, by name; the values of `outputs` are returned, of which the last are the next values of the
    persistable variables `updates`. `checks` are functions that each of the first outputs is given to, where it might be an
    uneven stack, before anything is written over. Some inputs are: their next values are computed in their memory, after everything else,
    and by trusted ops that cannot fail once their preconditions hold. `overwrites` says whether there are any; `committed` are the other
    updates, each with the number of its output. `lent` says which inputs others may hold after a run.

    Values that depend on persistable variables alone, none of which the plan writes, may be precomputed: runs are given what
    `precompute` makes of their values.

    With a `backend`, regions of the outermost block are compiled or captured by it when they first run: see `BySignature`.

    A plan runs at the first of `devices`, but for the ops that `places` gives the number of another. It is immutable and may be run by many
    threads. Between runs it keeps small constants, the number of iterations that a `while` made, to allocate as much memory for the next,
    and one workspace for each run that there was at a time. Its text is in `text`, and in the tracebacks of what its lines raise; the names
    of the constants, which have no line there, are in `constants`.
    `origin` gives the op of the user's program for those that were in it, `applied` how often each pass did something.

    Before an op with one of `size_checks`, a line compares the sizes of its inputs. `fed_checks` are the other ops whose sizes are checked,
    when an input of new sizes is fed.
    """

    def __init__(
        self,
        block: Block,
        ops: Sequence[Op],
        inputs: Sequence[Var],
        outputs: Sequence[Var],
        catalogue: Catalogue,
        updates: Sequence[str] = (),
        checks: Sequence[Callable[[object], object]] = (),
        origin: Mapping[Op, Op] | None = None,
        applied: Mapping[str, int] | None = None,
        *,
        devices: Sequence[torch.device],
        places: Mapping[Op, int] = MappingProxyType({}),
        size_checks: Mapping[Op, SizeCheck] = MappingProxyType({}),
        fed_checks: Sequence[str] = (),
        poison: bool | int = False,
        backend: str | None = None,
    ):
        self._file = f"<plan {next(_numbers)}>"  # first: an unfinished plan is deleted too
        self._timed: TimedText | None = None  # for who records what runs
        self._devices = devices
        given = {var.name: var for var in inputs}
        states = {var: given[name] for var, name in zip(outputs[len(outputs) - len(updates) :], updates, strict=True) if name in given}
        last = _ops_of_updates(ops, states, catalogue, [var for var in outputs[: len(checks)] if not _is_sized(var)])
        states = {var: held for var, held in states.items() if var.op in last}
        ops = [*(op for op in ops if op not in last), *(op for op in ops if op in last)]
        self._mode = below_autograd if are_trusted(ops, catalogue) else below_some_autograd
        line = StraightLine(block, ops, outputs, catalogue, states=states)
        overwritten = line.buffers.overwritten()
        source = Source()
        self._numbers = Numbers(ops, outputs, catalogue)
        precomputation = Precomputation(ops, [], [], [], [])
        if [device.type for device in devices] == ["cpu"] and not overwritten:
            precomputation = find_precomputation(ops, inputs, outputs, updates, catalogue, self._numbers)
        if precomputation.kept:
            ops, last = precomputation.left, set()
            line = StraightLine(block, ops, outputs, catalogue)
        emitter = Emitter(source, catalogue, ops, self._numbers, devices, places, size_checks, poison=poison)
        parameters = [source.name(var) for var in inputs]
        precomputed = [source.name(var) for var in precomputation.kept]
        for op, slot in precomputation.packed:
            emitter.packed[op] = source.fresh(f"{slot}_packed")
        precomputed += emitter.packed.values()
        for var in inputs:
            emitter.define(var)
        if backend is None:
            emitter.straight(line, 0, len(ops) - len(last))
        else:
            write_regions(emitter, line, len(ops) - len(last), devices[0], backend)
        if not overwritten:
            emitter.straight(line, len(ops) - len(last))
        results = [source.name(var) for var in outputs]
        for number, check in enumerate(checks):
            if not line.buffers.is_even(outputs[number]):
                checked = source.fresh("fetched")
                source.write(f"{checked} = {source.bind('require', check)}({results[number]})")
                results[number] = checked
        if overwritten:
            write_preconditions(emitter, ops[len(ops) - len(last) :])
            source.write("before_updates()")
            emitter.straight(line, len(ops) - len(last))
        source.write(f"return [{', '.join(results)}]")
        if precomputed:
            with source.function("precompute", ["for_many", *(source.name(var) for var in precomputation.read)]):
                emitter.forget_shapes()
                emitter.straight(StraightLine(block, precomputation.ops, precomputation.kept, catalogue))
                for op, slot in precomputation.packed:
                    calls.pack(emitter, op, slot)
                source.write(f"return [{', '.join(precomputed)}]")
        self.precomputed_inputs = [number for number, var in enumerate(inputs) if is_among(var, precomputation.read)]
        following = list(zip(updates, range(len(outputs) - len(updates), len(outputs)), strict=True))
        numbers = {given[name]: number for name, number in following if name in given}
        over = {number for var, number in numbers.items() if var in overwritten}
        self.inputs = [PlanInput(var, to_torch(var.dtype), numbers.get(var), var in overwritten) for var in inputs]
        self.committed = [(name, number) for name, number in following if number not in over]
        self.overwrites = bool(over)
        over_by = {var: number for var, number in numbers.items() if var in overwritten}
        self.lent = find_lent(inputs, over_by, outputs, len(outputs) - len(updates), line.buffers.alias_sets)
        self.applied = dict(applied or {})
        self.constants = emitter.constants
        self.fed_checks = list(fed_checks)
        self._has_buffers = emitter.has_buffers
        self._poison = poison
        self._idle: list[Workspace] = []  # those that no run has now
        self._origin = dict(origin or {})
        asked = {"workspace": emitter.has_buffers, "before_updates": bool(overwritten)}
        self.text = source.text(
            "plan", ["context_of", "device", *(name for name, needed in asked.items() if needed), *parameters, *precomputed]
        )
        self._source = source
        linecache.cache[self._file] = (len(self.text), None, self.text.splitlines(keepends=True), self._file)
        self._function, self._precompute = _compiled(self.text, self._file, source.bound)

    def __del__(self) -> None:
        linecache.cache.pop(self._file, None)

    @cached_property
    def _timed_function(self) -> Callable[..., list[torch.Tensor]]:
        """The same function, which notes beside each op when it began and ended; written when somebody asks for it."""
        source = self._source
        self._timed = TimedText.of(self.text.partition("\n")[0], source.lines, source.extents, source.names, self._devices)
        return _compiled(self._timed.text, f"{self._file} timed", source.bound | self._timed.bound)[0]

    def bind(self, context: Context) -> Callable[..., list[torch.Tensor]]:
        """The plan in `context`, as a function of the values of `inputs` that returns those of `outputs`.

        What is called before the first value is written over is given beside them, where the plan `overwrites`. It raises what the
        interpreter raises.
        """
        if context.place.is_cpu:
            return self._bound(context)

        def run_there(values: Sequence[torch.Tensor], *before_updates: Callable[[], object]) -> list[torch.Tensor]:
            with made_at(context.place):
                return self._bound(context, cache(partial(draws_done, context.scope)))(values, *before_updates)

        return run_there

    def _bound(self, context: Context, count_draws: Callable[[], int] | None = None) -> Callable[..., list[torch.Tensor]]:
        """The same for what is made where it has to be. What `count_draws` says, where it is given, holds in all of a run."""

        def context_of(op: Op, trips: tuple[str, ...], place: int = 0) -> KernelContext:
            return KernelContext(op, context.scope, context.at(place) if place else context, None, trips, count_draws)

        mode, place = self._mode, context.place

        def computing(function: Callable[..., list[torch.Tensor]]) -> Callable[..., list[torch.Tensor]]:
            compute = partial(function, context_of, device_of(place))
            return partial(self._compute, compute, place) if self._has_buffers else compute

        compute = computing(self._function)

        def run(values: Sequence[torch.Tensor], *before_updates: Callable[[], object]) -> list[torch.Tensor]:
            recorder = recording.recorder
            chosen = compute
            if recorder is not None and recorder.has_clocks:
                with recorder.left_out():
                    chosen = computing(self._timed_function)
            with mode():
                try:
                    return chosen(*before_updates, *values)
                except OarlockError:
                    raise
                except Exception as error:
                    raise self._explained(error) from error

        return run

    def precompute(self, values: Sequence[torch.Tensor], *, for_many: bool) -> list[object]:
        """The precomputed values that runs are given beside `values`, those of `inputs`.

        They are made of the values with the numbers `precomputed_inputs`, of their declared types. For one run alone, nothing is packed.
        """
        if self._precompute is None:
            return []
        with self._mode():
            try:
                return self._precompute(for_many, *(values[number] for number in self.precomputed_inputs))
            except Exception as error:
                raise self._explained(error) from error

    def _compute(self, compute: Callable[..., list[torch.Tensor]], place: Place, *given: object) -> list[torch.Tensor]:
        """Return the result of `compute`, called with a workspace that no other run uses meanwhile."""
        try:
            workspace = self._idle.pop()
        except IndexError:
            workspace = Workspace(device_of(place), self._poison)
        computed = compute(workspace, *given)
        if place.is_cpu:  # elsewhere a run may have ended before its kernels have
            workspace.end_run()
            self._idle.append(workspace)
        return computed

    def _explained(self, error: Exception) -> Exception:
        """The error of ours that says which op failed, and on what."""
        trace: TracebackType | None = error.__traceback__
        while trace is not None and not trace.tb_frame.f_code.co_filename.startswith(self._file):
            trace = trace.tb_next
        line = None if trace is None else self._source.ops.get(self._line_of(trace))
        if isinstance(error, KernelFailure) and isinstance(error.__cause__, Exception):
            return self._explained_op(error.__cause__, error.op, [error.values[var] for var in error.op.reads], "main")
        if trace is None or line is None:
            return error
        held: Mapping[str, object] = {**self._source.bound, **trace.tb_frame.f_locals}
        stands = [part for name, trip in line.trips for part in ([name] if trip is None else [name, str(held.get(trip))])]
        return self._explained_op(error, line.op, [self._value(read, held) for read in line.op.reads], "/".join(["main", *stands]))

    def _line_of(self, trace: TracebackType) -> int:
        """The line of the text at which the plan stands."""
        if self._timed is None or trace.tb_frame.f_code.co_filename == self._file:
            return trace.tb_lineno
        return self._timed.origin.get(trace.tb_lineno, 0)

    def _explained_op(self, error: Exception, failed: Op, values: Sequence[object], path: str) -> Exception:
        op = self._origin.get(failed, failed)
        return explain(error, op, dict(zip(op.reads, values, strict=False)), path)

    def _value(self, var: Var, held: Mapping[str, object]) -> object:
        """The value of `var` among what the plan held, as the interpreter has it."""
        constant = self._numbers.constant(var)
        value = held.get(self._source.names.get(var, "")) if constant is None else constant
        return one_number(var.dtype)(value) if isinstance(value, bool | int | float) else value


def _is_sized(var: Var) -> bool:
    return all(isinstance(size, int) for size in var.shape or ("?",))


def _ops_of_updates(ops: Sequence[Op], states: Mapping[Var, Var], catalogue: Catalogue, first: Iterable[Var]) -> set[Op]:
    """The ops that could compute a next value in the memory of the value before it, and whatever reads what they compute.

    Not one of them can fail, since there is no way back then: what can, what that needs, and what `first` and preconditions need, come
    before.
    """
    needed = set(first)
    early: set[Op] = set()
    for op in reversed(ops):
        operator = catalogue.get(op.type)
        if (
            op.blocks
            or checks_values(operator, op)
            or not operator.is_trusted
            or not attributes_fit(op)
            or not needed.isdisjoint(op.writes)
        ):
            early.add(op)
            needed.update(op.reads)
        for names in operator.preconditions.values():
            needed.update(var for name in names for var in op.inputs.get(name, ()))
    late: set[Op] = set()
    computed: set[Var] = set()
    for op in ops:
        may_write_over = (
            op not in early
            and variants_of(catalogue.get(op.type)).in_place
            and any(var in states and is_among(states[var], op.reads) for var in op.writes)
        )
        if may_write_over or not computed.isdisjoint(op.reads):
            late.add(op)
            computed.update(op.writes)
    return late


def _compiled(
    text: str, file: str, bound: dict[str, object]
) -> tuple[Callable[..., list[torch.Tensor]], Callable[..., list[object]] | None]:
    """The functions that `text` defines, of which the second may be missing.

    The text is made of identifiers and integers of ours; nothing in it comes from a file.
    """
    namespace = dict(bound)
    exec(compile(text, file, "exec"), namespace)  # noqa: S102 - the one place that compiles code
    return namespace["plan"], namespace.get("precompute")  # type: ignore[return-value]
