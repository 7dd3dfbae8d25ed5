"""Switch, cond and case: run one of several blocks, chosen by scalar conditions.

switch = ol.switch()
with switch.case(step < 100):                       # bool[]
    switch.output(step * slope)
with switch.case(lambda: mean(losses) < 0.1):       # a condition written as a function is a block too,
    switch.output(low)                              # which runs only if no earlier case was chosen
with switch.default():
    switch.output(high)
rate = switch()

Each block becomes a `conditional_block`, which may or may not run, and `select_branch` returns the value of the one that ran.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from oarlock.errors import ArgumentError, ProgramError, ShapeError
from oarlock.ir.block import Block
from oarlock.ir.block_stack import current_block
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.traversal import free_vars
from oarlock.ir.var import Var
from oarlock.layer.control.body import as_scalar, count_values, open_block, require_returned, require_same_block
from oarlock.op.comparison import equal
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.control.conditional import conditional_block
from oarlock.op.indexing import select_branch
from oarlock.op.logical import any_, logical_and, logical_not
from oarlock.registry.creator import describe_value, require_type

__all__ = ["Switch", "case", "cond", "switch", "switch_case"]

Written = Var | Sequence[Var]
"""The result of a function that writes a block: a variable, or a sequence of them."""


@dataclass(eq=False)
class _Case:
    """One block, its outputs, and its condition; a default has none."""

    block: Block
    condition: Var | None
    test: Block | None = None  # the block that computes the condition, if it is a function
    outputs: list[Var] = field(default_factory=list)


class Switch:
    """Blocks with scalar conditions, tested in order. The first whose condition holds runs, or the default; calling it closes it.

    The operators of a condition given as a variable always run; those of a condition given as a function run only if no earlier case was
    chosen.
    """

    def __init__(self, kind: str = "switch"):
        self._around = current_block()
        self._kind = kind
        self._stem = self._around.program.unique(kind)
        self._cases: list[_Case] = []
        self._open: _Case | None = None
        self._called = False

    def case(self, condition: Var | Callable[[], Var]) -> AbstractContextManager[None]:
        """Open a block that runs if `condition`, bool[] or a function that writes one, is the first to hold.

        Raises ProgramError after the default, ShapeError for a condition that is not one bool. An exception inside discards it.
        """
        return self._write_case(condition, f"case_{len(self._cases)}")

    def default(self) -> AbstractContextManager[None]:
        """Open the block that runs if no condition holds. Raises ProgramError if it exists already. An exception inside discards it."""
        self._require_writable("default")
        return self._write(None, None, "default", len(self._cases))

    def _write_case(self, condition: Var | Callable[[], Var], part: str) -> AbstractContextManager[None]:
        self._require_writable(part)
        if isinstance(condition, Var) or not callable(condition):
            return self._write(as_scalar(condition, self._kind), None, part, len(self._cases))
        _require_function(condition, self._kind, "a condition")
        if not self._cases:
            return self._write(as_scalar(condition(), self._kind), None, part, 0)
        with open_block(f"{self._stem}.{part}_condition", self._around) as test:
            test.outputs = [as_scalar(condition(), self._kind)]
        return self._write(None, test, part, len(self._cases))

    def _require_writable(self, part: str) -> None:
        if self._called:
            raise ProgramError(f"{self._kind}: it is closed and accepts no more blocks", location=here())
        if self._open is not None:
            raise ProgramError(
                f"{self._kind}: its block {self._open.block.name} is open",
                location=here(),
                hint="write its blocks one after another, not nested",
            )
        if self._cases and _is_default(self._cases[-1]):
            raise ProgramError(f"{self._kind}: nothing is tested after the default", location=here(), hint="write the default last")
        require_same_block(current_block(), self._around, f"{self._kind}.{part}")

    @contextmanager
    def _write(self, condition: Var | None, test: Block | None, part: str, position: int) -> Iterator[None]:
        entered = False
        try:
            self._require_writable(part)
            if position != len(self._cases):
                raise ProgramError(
                    f"{self._kind}: its block {part} was requested before another block was written",
                    location=here(),
                    hint="enter each block directly: `with switch.case(...):`",
                )
            with open_block(f"{self._stem}.{part}", self._around) as block:
                self._open, entered = _Case(block, condition, test), True
                yield
            self._cases.append(self._open)
        except BaseException:
            if test is not None:
                self._around.program.discard_block(test)
            raise
        finally:
            if entered:
                self._open = None

    def output(self, *values: Var) -> None:
        """Output `values` of a block. All blocks must return the same types."""
        if self._open is None:
            raise ProgramError(f"{self._kind}.output: call it inside one of its blocks", location=here())
        self._open.outputs += require_returned(values, self._open.block, f"{self._kind}.output")

    def __call__(self) -> Var | tuple[Var, ...]:
        """Close it; return the outputs of the chosen block, one variable or a tuple of them.

        Raises ProgramError without a default, or if the blocks return different numbers of values, ShapeError if their types differ; the
        blocks are then removed.
        """
        if self._called or self._open is not None:
            raise ProgramError(f"{self._kind}: close it once, after its blocks", location=here())
        require_same_block(current_block(), self._around, self._kind)
        try:
            self._require_complete()
        except BaseException:
            self._discard()
            raise
        self._called = True
        stacks: list[list[Var]] = []
        undecided: Var | None = None  # bool[]: no earlier case was chosen; None before the first
        for item in self._cases:
            chosen, undecided = self._decide(item, undecided)
            item.block.outputs = item.outputs
            stacks.append(conditional_block([], free_vars(item.block), chosen, body=item.block, name=f"{item.block.name}.out"))
        outputs = [select_branch(list(stack)) for stack in zip(*stacks, strict=True)]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _decide(self, item: _Case, undecided: Var | None) -> tuple[Var, Var | None]:
        """Return whether a case is chosen, and whether a choice remains after it."""
        if _is_default(item):
            assert undecided is not None
            return undecided, None
        condition = item.condition
        if item.test is not None:
            condition = any_(conditional_block([], free_vars(item.test), undecided, body=item.test, name=f"{item.test.name}.out")[0])
        assert condition is not None
        others = logical_not(condition)
        return (condition, others) if undecided is None else (logical_and(undecided, condition), logical_and(undecided, others))

    def _require_complete(self) -> None:
        if self._cases and not _is_default(self._cases[-1]):
            raise ProgramError(
                f"{self._kind}: it has no default case, so its result is undefined if no condition holds",
                location=here(),
                hint=f"write one in `with {self._kind}.default():`",
            )
        if len(self._cases) < 2:
            raise ProgramError(
                f"{self._kind}: it has no case",
                location=here(),
                hint=f"write one in `with {self._kind}.case(condition):`, before the default",
            )
        first = self._cases[0]
        if not first.outputs:
            raise ProgramError(f"{self._kind}: its blocks return nothing", location=here(), hint=f"{self._kind}.output(...) in each block")
        for other in self._cases[1:]:
            if len(other.outputs) != len(first.outputs):
                raise ProgramError(
                    f"{self._kind}: {first.block.name} returns {count_values(len(first.outputs))}, "
                    f"{other.block.name} {len(other.outputs) or 'none'}",
                    location=here(),
                    contract="every block returns the same number of values",
                )
            for number, (var, expected) in enumerate(zip(other.outputs, first.outputs, strict=True)):
                if (var.dtype, var.shape) != (expected.dtype, expected.shape):
                    raise ShapeError(
                        f"{self._kind}: output {number} is {expected.type_text} in {first.block.name} "
                        f"but {var.type_text} in {other.block.name}",
                        location=here(),
                        given=[expected.describe(), var.describe()],
                        contract="every block returns the same types",
                    )

    def _discard(self) -> None:
        for item in self._cases:
            for block in (item.block, item.test):
                if block is not None:
                    self._around.program.discard_block(block)
        self._cases.clear()


def _is_default(item: _Case) -> bool:
    return item.condition is None and item.test is None


def switch() -> Switch:
    """Create a switch: blocks of which the first whose scalar condition holds runs."""
    return Switch()


def cond(condition: Var, true: Callable[[], Written], false: Callable[[], Written]) -> Var | tuple[Var, ...]:
    """Return the result of `true` if `condition`, bool[], holds, else that of `false`; the other block is not run.

    Each function is called once, in its own block, and returns a variable or a sequence of them. Both must return the same types. Raises
    the errors of `Switch`.
    """
    condition = require_type(condition, "cond: the condition")
    for function in (true, false):
        _require_function(function, "cond", "a block")
    choice = Switch("cond")
    _write_function(choice, choice._write_case(condition, "true"), true)
    _write_function(choice, choice._write(None, None, "false", 1), false)
    return choice()


def case(pairs: Sequence[tuple[Var | Callable[[], Var], Callable[[], Written]]], default: Callable[[], Written]) -> Var | tuple[Var, ...]:
    """Return the result of the function paired with the first condition that holds, else that of `default`; see `cond`."""
    hint = "ol.case([(x < 0.0, lambda: -x)], lambda: x)"
    if not isinstance(pairs, list | tuple):
        raise ArgumentError(f"case: the cases must be a list of pairs, not {describe_value(pairs)}", location=here(), hint=hint)
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise ArgumentError(
                f"case: a case must be a pair (condition, function), not {describe_value(pair)}",
                location=here(),
                hint=hint,
            )
    return _choose_first("case", pairs, default)


def _choose_first(kind: str, pairs: Sequence[tuple[Var | Callable[[], Var], Callable[[], Written]]], default: Callable[[], Written]):
    if not pairs:
        raise ArgumentError(f"{kind}: there are no cases", location=here())
    for function in (*(function for _, function in pairs), default):
        _require_function(function, kind, "a block")
    choice = Switch(kind)
    for condition, function in pairs:
        _write_function(choice, choice.case(condition), function)
    _write_function(choice, choice.default(), default)
    return choice()


def switch_case(index: Var, functions: Mapping[int, Callable[[], Written]], default: Callable[[], Written]) -> Var | tuple[Var, ...]:
    """Return the result of `functions[index]`, else that of `default`; `index` is an integer, int64[]. See `cond`.

    Raises ArgumentError for a key that is not an integer, ShapeError for another `index`.
    """
    index = require_type(index, "switch_case: index")
    if index.dtype.is_floating or index.dtype is DType.BOOL or index.shape != ():
        raise ShapeError(
            f"switch_case: index must be one integer, int64[], not {index.type_text}", location=here(), given=[index.describe()]
        )
    if not isinstance(functions, Mapping):
        raise ArgumentError(
            f"switch_case: the functions must be a dict by integer, not {describe_value(functions)}",
            location=here(),
            hint="ol.switch_case(index, {0: lambda: x, 1: lambda: -x}, lambda: x * 0.0)",
        )
    for number in functions:
        if not isinstance(number, int) or isinstance(number, bool):
            raise ArgumentError(f"switch_case: a key must be an integer, not {describe_value(number)}", location=here())
    pairs = [(equal(index, constant_like(number, index)), function) for number, function in functions.items()]
    return _choose_first("switch_case", pairs, default)


def _require_function(function: object, kind: str, what: str) -> None:
    """Raise ArgumentError unless `function` is a function that can be called without arguments."""
    hint = "pass lambda: x, or a function without arguments"
    if not callable(function):
        raise ArgumentError(f"{kind}: {what} must be a function, not {describe_value(function)}", location=here(), hint=hint)
    try:
        signature = inspect.signature(function)
    except ValueError:  # written in C: errors appear in the call
        return
    try:
        signature.bind()
    except TypeError:
        raise ArgumentError(
            f"{kind}: {what} must be a function without arguments, not one with {signature}", location=here(), hint=hint
        ) from None


def _write_function(choice: Switch, block: AbstractContextManager[None], function: Callable[[], Written]) -> None:
    with block:
        written = function()
        if written is None:
            raise ArgumentError(
                f"{choice._kind}: a function returned None, but its result is the output of its block",
                location=here(),
                hint="return a variable, or several in a tuple",
            )
        choice.output(*(written if isinstance(written, list | tuple) else [written]))  # type: ignore[list-item]
