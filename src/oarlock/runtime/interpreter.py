"""The interpreter, which defines the meaning of a program: one op at a time, over scopes. Plans must compute the same."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from oarlock.errors import OarlockError, UnsetVarError
from oarlock.ir.attribute import Sizes
from oarlock.ir.block import Block
from oarlock.ir.names import DRAWS
from oarlock.ir.operation import Op, Role
from oarlock.ir.var import Var, is_among
from oarlock.registry.attributes import declared_shapes, needs_input_sizes, substitute_numbers
from oarlock.registry.catalogue import Catalogue
from oarlock.registry.declaration import Operator
from oarlock.registry.size_check import check_sizes
from oarlock.runtime import recording
from oarlock.runtime.context import Context, KernelContext, draws_done
from oarlock.runtime.kernel_error import explain
from oarlock.runtime.place import device_of
from oarlock.runtime.recording import Part, Recorder
from oarlock.runtime.scope import Scope
from oarlock.runtime.value_check import check_op

__all__ = ["Interpreter", "commit", "path_of", "read_var"]


class Interpreter:
    """Runs blocks. Each op reads its inputs from the scope or a parent, and stores its outputs in the scope.

    With `check`, inputs and outputs of each op are compared with their declarations. `call` computes an operator: by default its kernel,
    otherwise another backend.
    """

    def __init__(self, catalogue: Catalogue, *, check: bool = False, call: Callable[..., dict[str, list[Any]]] = Operator.call):
        self.catalogue = catalogue
        self.check = check
        self._call = call

    def run_block(self, block: Block, scope: Scope, context: Context, trips: tuple[str, ...] = ("main",)) -> None:
        """Run every op of `block` in order. `trips` are the enclosing loops and iterations, innermost first."""
        recorder = recording.recorder
        begun = recorder.begun() if recorder is not None and recorder.is_on else None
        self.run_ops(block.ops, scope, context, trips)
        if recorder is not None and begun is not None:
            recorder.note(begun, Part("block", block.name.partition(".")[0] if scope.name.isdigit() else block.name), detail=scope.name)

    def run_ops(self, ops: Sequence[Op], scope: Scope, context: Context, trips: tuple[str, ...] = ("main",)) -> None:
        """Run ops of a block; commits last, and only when training unless they count metrics. Raises KernelError or UnsetVarError."""
        recorder = recording.recorder
        run_op = self._run_op if recorder is None or not recorder.is_on else partial(self._record_op, recorder)
        for op in ops:
            if not op.is_commit:
                run_op(op, scope, context, trips)
        tail = [op for op in ops if op.is_commit and (context.training or op.role is Role.MEASURE)]
        # Read all values before the first write: if one is missing, nothing is written.
        commit(
            [(var.name, context.brought(read_var(op.reads[0], op, scope), var.place)) for op in tail for var in op.writes], context.scope
        )

    def _run_op(self, op: Op, scope: Scope, context: Context, trips: tuple[str, ...]) -> None:
        operator = self.catalogue.get(op.type)
        given = {slot.name: [read_var(var, op, scope) for var in op.inputs.get(slot.name, ())] for slot in operator.signature.inputs}
        try:
            if len(context.places) > 1:
                given = {slot: [*map(context.brought, values)] for slot, values in given.items()}
            attributes = self._attributes(op, operator, given, scope)
            check_sizes(op, self.catalogue, given)
            if context.budget is not None:
                context.budget.before(op, operator, given, attributes)
            kernel_context = KernelContext(op, scope, context, self.run_block, trips) if operator.wants_context else None
            results = self._call(operator, given, attributes, kernel_context)
        except OarlockError:
            raise
        except Exception as error:
            raise explain(error, op, {var: scope[var.name] for var in op.reads}, path_of(scope)) from error
        for slot, values in results.items():
            for var, value in zip(op.outputs[slot], values, strict=True):
                scope.var(var.name).value = value
        if self.check:
            check_op(op, scope)
        if context.budget is not None:
            context.budget.hold([scope[var.name] for var in op.writes], op)  # type: ignore[misc]

    def _record_op(self, recorder: Recorder, op: Op, scope: Scope, context: Context, trips: tuple[str, ...]) -> None:
        begun = recorder.begun()
        self._run_op(op, scope, context, trips)
        device = device_of(context.place)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        end = time.perf_counter_ns()
        vars = (*op.writes, *dict.fromkeys(var for var in op.reads if not is_among(var, op.writes)))
        values = (
            [] if op.blocks else [found.held if (found := scope.find_var(var.name)) is not None and found.is_set else None for var in vars]
        )
        recorder.note(begun, Part("op", op.type, op, op.location, vars, len(op.writes)), values, end=end)

    def _attributes(self, op: Op, operator: Operator, given: Mapping[str, list[Any]], scope: Scope) -> dict[str, object]:
        """Return the attributes with variables replaced by their values (a number or shape), and symbols by numbers from the inputs."""
        held: dict[str, object] = dict(op.attributes)
        for name, value in held.items():
            if isinstance(value, Var):
                numbers = read_var(value, op, scope)
                held[name] = Sizes(numbers.tolist()) if operator.attributes[name].type is Sizes else numbers.item()
            elif needs_input_sizes(operator, name, value):
                shapes = [getattr(each, "shape", ()) for values in given.values() for each in values]
                held[name] = substitute_numbers(value, declared_shapes(op, operator), shapes)  # type: ignore[arg-type]
        return held


def read_var(var: Var, op: Op, scope: Scope) -> torch.Tensor:
    """Return the value of `var` for `op`. Raises UnsetVarError if there is none."""
    found = scope.find_var(var.name)
    if found is None or not found.is_set:
        if var.name == DRAWS:
            scope.var(DRAWS).give(torch.tensor(draws_done(scope)), own=True)  # random state is created on demand
            return scope[DRAWS]  # type: ignore[return-value]
        raise UnsetVarError(
            f'{op.type} reads "{var.name}", which has no value',
            location=op.location,
            given=[var.describe()],
            hint="call ol.init(program, scope) to initialize parameters, and feed inputs by name" if var.persistable else None,
            op=op.type,
        )
    return found.value  # type: ignore[return-value]


def commit(values: Iterable[tuple[str, torch.Tensor]], scope: Scope) -> None:
    """Set persistable variables to their next values: the variable found from `scope`, or a new one in `scope`."""
    for name, value in values:
        found = scope.find_var(name)
        (found if found is not None else scope.var(name)).value = value


def path_of(scope: Scope) -> str:
    """Return the path of `scope` within its run: `main/rnn_0/3`."""
    stack = []
    level: Scope | None = scope
    while level is not None and level.name:
        stack.append(level.name)
        level = level.parent
    return "/".join(reversed(stack))
