"""Plan: a program, or what of it is needed, as one Python function."""

import itertools
import linecache
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType

import torch

from oarlock.errors import OarlockError
from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.variable import Var
from oarlock.registry.catalogue import Catalogue
from oarlock.runtime.context import Context, KernelContext
from oarlock.runtime.explaining import explain
from oarlock.runtime.plan.emitter import Emitter
from oarlock.runtime.plan.source import Source

__all__ = ["Plan"]

_numbers = itertools.count()


class Plan:
    """What the interpreter would compute of some ops, as straight-line Python that was written for them: one line an op.

    `inputs` are given from outside, by name; the values of `outputs` are returned, of which the last are the next values of the
    persistable variables `updates`. A plan is immutable and may be run by many threads. It keeps nothing between runs. Its text is
    in `text`, and in the tracebacks of what its lines raise. `origin` gives the op of the user's program for those that were
    in it, `applied` how often each pass did something.
    """

    def __init__(
        self,
        block: Block,
        ops: Sequence[Op],
        inputs: Sequence[Var],
        outputs: Sequence[Var],
        catalogue: Catalogue,
        updates: Sequence[str] = (),
        origin: Mapping[Op, Op] | None = None,
        applied: Mapping[str, int] | None = None,
        *,
        poison: bool = False,
    ):
        source = Source()
        emitter = Emitter(source, catalogue, ops, poison=poison)
        parameters = [source.name(var) for var in inputs]
        for var in inputs:
            emitter.define(var)
        emitter.straight(emitter.line(block, outputs, ops))
        source.write(f"return [{', '.join(source.name(var) for var in outputs)}]")
        self.inputs = list(inputs)
        self.outputs = list(outputs)
        self.updates = list(updates)
        self.applied = dict(applied or {})
        self._origin = dict(origin or {})
        self.text = source.text("plan", ["context_of", "device", *parameters])
        self._source = source
        self._file = f"<plan {next(_numbers)}>"
        linecache.cache[self._file] = (len(self.text), None, self.text.splitlines(keepends=True), self._file)
        self._function = _compiled(self.text, self._file, source.bound)

    def __del__(self) -> None:
        linecache.cache.pop(self._file, None)

    def run(self, values: Sequence[torch.Tensor], context: Context) -> list[torch.Tensor]:
        """The values of `outputs`, given those of `inputs`. Raises what the interpreter raises."""

        def context_of(op: Op, trips: tuple[str, ...]) -> KernelContext:
            return KernelContext(op, context.scope, context, None, trips)

        try:
            return self._function(context_of, context.place.device, *values)
        except OarlockError:
            raise
        except Exception as error:
            raise self._explained(error) from error

    def _explained(self, error: Exception) -> Exception:
        """The error of ours that says which op failed, and on what."""
        trace: TracebackType | None = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename != self._file:
            trace = trace.tb_next
        line = self._source.ops.get(trace.tb_lineno) if trace is not None else None
        if trace is None or line is None:
            return error
        held: Mapping[str, object] = trace.tb_frame.f_locals
        op = self._origin.get(line.op, line.op)
        values = {var: held.get(self._source.names.get(read, "")) for var, read in zip(op.reads, line.op.reads, strict=False)}
        stands = [part for name, trip in line.trips for part in ([name] if trip is None else [name, str(held.get(trip))])]
        return explain(error, op, values, "/".join(["main", *stands]))


def _compiled(text: str, file: str, bound: dict[str, object]) -> Callable[..., list[torch.Tensor]]:
    """The function that `text` defines. The text is made of identifiers and integers of ours; nothing in it comes from a file."""
    namespace = dict(bound)
    exec(compile(text, file, "exec"), namespace)  # noqa: S102 - the one place that compiles code
    return namespace["plan"]  # type: ignore[return-value]
