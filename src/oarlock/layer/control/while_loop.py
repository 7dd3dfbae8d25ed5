"""While: run a block as long as a condition holds, a number of times that is known only at run time.

loop = ol.while_loop(y < 100, max_trips=1000)   # y: float[], w: float[]
with loop.block():
    after = y * w                   # y is the value at the start of this trip
    loop.carry(y, after)            # at the start of the next trip, y is `after`
    loop.update_condition(after < 100)
    loop.output(after)              # returned by every trip, stacked
y_at_the_end, every_y = loop()
"""

from collections.abc import Iterator
from contextlib import contextmanager

from oarlock.errors import ArgumentError, ProgramError, ShapeError
from oarlock.ir.block import Block
from oarlock.ir.block_stack import current_block
from oarlock.ir.location import here
from oarlock.ir.substitution import replace_reads
from oarlock.ir.traversal import free_vars, needed_ops
from oarlock.ir.var import Var
from oarlock.layer.control.body import as_scalar, open_block, require_even, require_returned, require_same_block
from oarlock.op.control.while_loop import while_
from oarlock.registry.catalogue import standard
from oarlock.registry.creator import require_type

__all__ = ["WhileLoop", "while_loop"]


class WhileLoop:
    """A loop that runs while a condition holds. `block()` opens its body, calling it closes the loop.

    In the body, a carried outer variable denotes its value at the start of the iteration; other variables are the same in every iteration.
    Outer variables do not change: calling the loop returns the final values.
    """

    def __init__(self, condition: Var, *, max_trips: int | None = None):
        if max_trips is not None and (not isinstance(max_trips, int) or isinstance(max_trips, bool) or max_trips < 1):
            raise ArgumentError(f"while_loop: max_trips must be a positive number of iterations, not {max_trips!r:.60}", location=here())
        self._condition = as_scalar(condition, "while_loop")
        self._max_trips = max_trips or 0
        self._around = current_block()
        self._body: Block | None = None
        self._open = False
        self._called = False
        self._next_condition: Var | None = None
        self._carried: dict[Var, Var] = {}  # outer variable -> its value after an iteration
        self._outputs: list[Var] = []

    @contextmanager
    def block(self) -> Iterator[None]:
        """Open the body. Raises ProgramError when entered a second time; an exception inside discards it."""
        if self._body is not None:
            raise ProgramError("while_loop: it already has a body", location=here())
        require_same_block(current_block(), self._around, "while_loop.block")
        program = self._around.program
        try:
            with open_block(f"{program.unique('while')}.body", self._around) as body:
                self._body, self._open = body, True
                yield
        except BaseException:
            self._body, self._next_condition = None, None
            self._carried.clear()
            self._outputs.clear()
            raise
        finally:
            self._open = False

    def _require_open(self, what: str) -> Block:
        if self._body is None or not self._open:
            raise ProgramError(f"while_loop.{what}: call it inside `with loop.block():`", location=here())
        return self._body

    def carry(self, var: Var, value: Var) -> None:
        """Set the value of `var`, an outer variable, in the next iteration to `value`, of the same type.

        Raises ProgramError the second time and for a variable of the body, ShapeError for another type.
        """
        body = self._require_open("carry")
        var = require_type(var, "while_loop.carry: var", self._around)
        (value,) = require_returned([value], body, "while_loop.carry")
        if var.block not in set(self._around.enclosing()):
            raise ProgramError(
                f'while_loop.carry: "{var.name}" has a value inside the body only, but the loop needs it before its first iteration',
                location=here(),
                given=[var.describe()],
                hint="carry an outer variable, which holds the initial value",
            )
        if var in self._carried:
            raise ProgramError(f'while_loop.carry: "{var.name}" is already carried', location=here(), given=[self._carried[var].describe()])
        if (var.dtype, var.shape) != (value.dtype, value.shape):
            raise ShapeError(
                f'while_loop.carry: "{var.name}" starts as {var.type_text} but continues as {value.type_text}',
                location=here(),
                given=[var.describe(), value.describe()],
            )
        self._carried[var] = value

    def update_condition(self, condition: Var) -> None:
        """Set `condition`, bool[], to decide whether another iteration follows. It must be computed in the body."""
        body = self._require_open("update_condition")
        if self._next_condition is not None:
            raise ProgramError(
                "while_loop.update_condition: the condition is already updated", location=here(), given=[self._next_condition.describe()]
            )
        condition = as_scalar(condition, "while_loop.update_condition")
        if condition.block is not body:
            raise ProgramError(
                f'while_loop.update_condition: "{condition.name}" is not computed in the body, so the loop would never end',
                location=here(),
                given=[condition.describe()],
                hint="compute it from values of the iteration",
            )
        self._next_condition = condition

    def output(self, *values: Var) -> None:
        """Output `values` of every iteration; they are stacked, T[*d] -> T[trips *d]."""
        body = self._require_open("output")
        vars = require_returned(values, body, "while_loop.output")
        require_even(vars, body, "while_loop.output")
        self._outputs += vars

    def __call__(self) -> Var | tuple[Var, ...]:
        """Close the loop; return the final carried values, in the order of `carry`, then the stacked outputs: one variable, or a tuple.

        Raises ProgramError if the condition is never updated, or nothing is carried; the body is then removed.
        """
        if self._body is None or self._open or self._called:
            raise ProgramError("while_loop: close it once, after its body", location=here())
        require_same_block(current_block(), self._around, "while_loop")
        body = self._body
        try:
            self._require_complete()
        except BaseException:
            self._around.program.discard_block(body)
            self._body = None
            raise
        self._called = True
        inside = {var: body.new_var(self._around.program.unique(var.name.partition("@")[0]), var.dtype, var.shape) for var in self._carried}
        body.inputs = list(inside.values())
        body.outputs = [self._next_condition, *self._outputs, *self._carried.values()]  # type: ignore[list-item]
        replace_reads(body, inside)
        stacked, final = while_(
            self._condition, list(self._carried), free_vars(body), body=body, max_trips=self._max_trips, name=body.name.partition(".")[0]
        )
        results = [*final, *stacked]
        return results[0] if len(results) == 1 else tuple(results)

    def _require_complete(self) -> None:
        if self._next_condition is None:
            raise ProgramError(
                "while_loop: its condition is never updated, so it would never end",
                location=here(),
                hint="call loop.update_condition(condition) in the body",
            )
        if not self._carried:
            raise ProgramError(
                "while_loop: nothing is carried, so every iteration would be the same",
                location=here(),
                hint="call loop.carry(var, value) in the body",
            )
        if self._body is not None and not _may_change(self._body, self._next_condition, set(self._carried)):
            raise ProgramError(
                f'while_loop: its condition "{self._next_condition.name}" does not depend on a carried variable, so it would never change',
                location=here(),
                given=[self._next_condition.describe()],
                hint="compute it from a carried variable or its next value",
            )


def _may_change(body: Block, condition: Var, carried: set[Var]) -> bool:
    """Return whether `condition` can change between iterations: it depends on a carried variable or on randomness."""
    ops = needed_ops(body.ops, [condition])
    return any(var in carried for op in ops for var in op.reads) or any(standard.get(op.type).effects for op in ops)


def while_loop(condition: Var, *, max_trips: int | None = None) -> WhileLoop:
    """Create a loop that runs while `condition`, bool[], holds; the run raises an error after more than `max_trips` iterations."""
    return WhileLoop(condition, max_trips=max_trips)
