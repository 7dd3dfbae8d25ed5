"""Record the programs that a script runs: each once for its fetches, with its feed and the previous contents of its scope."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

import oarlock as ol
from oarlock.ir.content_hash import content_hash
from oarlock.ir.operation import Op
from oarlock.runtime import block_run
from oarlock.runtime.context import Context
from oarlock.runtime.executor import Executor
from oarlock.runtime.paths import find_path
from oarlock.runtime.scope import frozen_in

__all__ = ["Recorded", "Recorder", "copied", "left_by", "recording"]


@dataclass
class Recorded:
    """A program with its targets, its feed, a copy of its scope, and whether the run took a training step."""

    program: ol.Program
    feed: dict[str, object]
    scope: ol.Scope
    trains: bool
    without: str = ""
    """The part of the run that is not recorded; empty if all is."""


@dataclass
class Recorder:
    """The programs that were run, in order. Runs of one program, or of equal programs, for the same targets count once."""

    found: list[Recorded] = field(default_factory=list)
    runs: int = 0
    _seen: set[object] = field(default_factory=set)

    def before(self, program: ol.Program, fetch: Sequence[Any], feed: object, scope: ol.Scope, *, update: bool) -> Recorded | None:
        """Return a copy of the next run, or None if it has been run before or is not valid."""
        try:
            paths = [find_path(program, item) for item in fetch]
            key = (program.serial, program.revision, update, tuple((path.var.name, path.trips) for path in paths))
            if key in self._seen:
                return None
            self._seen.add(key)
            inner = [path for path in paths if path.trips or path.var.block is not program.main]
            copy = program.clone()
            copy.targets = {path.var.name: copy.main.vars[path.var.name] for path in paths if path not in inner}
            without = "the value of a variable inside a loop or a branch is fetched" if inner else ""
            given = {str(name): _kept(value) for name, value in dict(feed or {}).items()}  # type: ignore[call-overload]
            return Recorded(copy, given, copied(program, scope), update and program.is_training, without)
        except ol.OarlockError:  # which the run is about to say itself
            return None

    def after(self, recorded: Recorded | None) -> None:
        """Record a run that completed."""
        self.runs += 1
        if recorded is None or not (recorded.program.targets or recorded.trains or recorded.without):
            return
        key = (content_hash(recorded.program), tuple(recorded.program.targets), recorded.trains)
        if key not in self._seen:
            self._seen.add(key)
            self.found.append(recorded)


def _kept(value: object) -> object:
    return value.clone() if isinstance(value, torch.Tensor) else value


def copied(program: ol.Program, scope: ol.Scope) -> ol.Scope:
    """Return a new scope with copies of the inputs and persistable values, frozen ones marked as such."""
    copy, frozen = ol.Scope(), frozen_in(scope)
    for var in (*program.main.inputs, *program.persistables()):
        found = scope.find_var(var.name)
        if found is not None and found.is_set:
            copy.set(var.name, _kept(found.value))
            if var.name in frozen:
                copy.var(var.name).estimated = False
    return copy


@contextlib.contextmanager
def recording() -> Iterator[Recorder]:
    """Record every run, by an executor or of a block, until the end of the `with`."""
    recorder = Recorder()
    execute, prepare, interpreter = Executor._execute, Executor.prepare, block_run.Interpreter

    def executed(self: Executor, program: ol.Program, feed: Any, fetch: Any, context: Context, *rest: Any, **how: Any) -> Any:
        listed = isinstance(fetch, list | tuple) and isinstance(program, ol.Program)
        made = recorder.before(program, fetch, feed, context.scope, update=how["update"]) if listed else None
        results = execute(self, program, feed, fetch, context, *rest, **how)
        recorder.after(made)
        return results

    def prepared(self: Executor, program: ol.Program, fetch: Any = (), *, scope: ol.Scope, training: bool | None = None, **how: Any) -> Any:
        step = prepare(self, program, fetch, scope=scope, training=training, **how)
        update = program.is_training if training is None else training

        def run(feed: Any) -> Any:
            made = recorder.before(program, fetch, feed, scope, update=update)
            results = step(feed)
            recorder.after(made)
            return results

        return run

    class Interpreted(interpreter):
        """The interpreter of `run_block`."""

        def run_ops(self, ops: Sequence[Op], scope: ol.Scope, context: Context, *rest: Any) -> None:
            program, made = ops[0].block.program if ops else None, None
            if program is not None and ops[0].block is program.main:
                values = [var for op in ops if not op.is_commit for var in op.writes]
                made = recorder.before(program, values, {}, scope, update=bool(context.training))
            super().run_ops(ops, scope, context, *rest)
            recorder.after(made)

    Executor._execute, Executor.prepare, block_run.Interpreter = executed, prepared, Interpreted  # type: ignore[method-assign,misc]
    try:
        yield recorder
    finally:
        Executor._execute, Executor.prepare, block_run.Interpreter = execute, prepare, interpreter  # type: ignore[method-assign,misc]


def left_by(names: dict[str, Any], feed_of: Callable[[ol.Program], dict[str, object]]) -> list[Recorded]:
    """Return the programs among the globals of a script that runs none: each for the unread results of its main block."""
    found: list[Recorded] = []
    for value in names.values():
        program = value if isinstance(value, ol.Program) else getattr(value, "program", None)
        if not isinstance(program, ol.Program) or any(program is other.program for other in found):
            continue
        read = {var for op in program.main.ops for var in op.reads}
        ends = [var for op in program.main.ops if not op.is_commit for var in op.writes if var not in read]
        if ends:
            program.targets = {var.name: var for var in ends}
            found.append(Recorded(program, feed_of(program), ol.init(program, ol.Scope()), trains=False))
    return found
