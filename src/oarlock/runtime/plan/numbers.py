"""Which values of a plan are numbers of Python, rather than tensors of one number: the counters and conditions of loops."""

import struct
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import Any

import torch

from oarlock.backend.torch.variants import variants_of
from oarlock.ir.attribute import Sizes
from oarlock.ir.dtype import DType
from oarlock.ir.operation import Op
from oarlock.ir.traversal import walk_ops
from oarlock.ir.var import Var
from oarlock.op.control.layout import Carried, Layout
from oarlock.registry.catalogue import Catalogue
from oarlock.tensor.dtype import to_torch

__all__ = ["Numbers", "one_number", "wrapping"]

Number = bool | int | float


class Numbers:
    """The values of some ops, and of the ops in their blocks, that a plan computes as numbers.

    An operator has a host function for that, for bools and integers of rank 0. It is used where the condition of a `while` or a branch
    depends on what comes out, which the host has to know anyway, where whoever reads that takes numbers too, and where no more than one
    of the inputs is a tensor, which is asked for its number: at a GPU the host waits for that as it would for the condition. What goes from
    trip to trip of a `while` is a number where all that it becomes is; after the loop a tensor is made of it for those who want one.

    Where all who read a tensor ask for its number, an operator may have a number function, which gives that alone.

    A `full` of one number is a number for those who take it, and a tensor for the others; where there are none, it is not computed. Does
    not apply to floats but for such a constant, to what is stacked or fetched, nor to what a loop over steps carries.
    """

    def __init__(self, ops: Sequence[Op], outputs: Iterable[Var], catalogue: Catalogue):
        self._catalogue = catalogue
        self._carried: dict[Var, Carried] = {}  # by what it is in the body of a `while`
        self._finals: dict[Var, Carried] = {}
        self._makers: dict[Var, Op] = {}
        self._readers: dict[Var, list[Op]] = {}  # those that might take a number
        self._goes_on: dict[Var, list[Carried]] = {}  # where a value is carried from or to
        self._tensors = set(outputs)  # what is read as a tensor in any case
        self._constants: dict[Var, Number] = {}
        conditions: list[Var] = []
        for op in walk_ops(ops):
            if op.blocks:
                conditions += self._read_of_blocks(op)
            else:
                self._read(op)
        self._held = self._needed(conditions)
        self._settle()
        asked = {var for number in self._held for var in self._inputs(number) if var in self._makers and not self._is_known(var)}
        self._read_off = {var for var in asked if self._has_number_function(var) and not self._is_read_as_tensor(var)}
        taken = {var for number in self._held for var in self._inputs(number)} | {*conditions}
        self._gone = {var for var in self._constants if var in taken and not self._is_read_as_tensor(var)}

    def has(self, var: Var) -> bool:
        """Whether the value of `var` is a number in the plan, which is never `vanishes`."""
        return var in self._held or var in self._read_off

    def is_read_off(self, var: Var) -> bool:
        """Whether what makes the number `var` is given tensors."""
        return var in self._read_off

    def constant(self, var: Var) -> Number | None:
        """The number that `var` is in every run; None where that is not known."""
        return self._constants.get(var)

    def vanishes(self, var: Var) -> bool:
        """Whether `var` is a constant that is not computed, for all who read it take the number."""
        return var in self._gone

    # Who reads what

    def _read(self, op: Op) -> None:
        self._makers.update(dict.fromkeys(op.writes, op))
        number = _constant(op)
        if number is not None:
            self._constants[op.writes[0]] = number
        specs = self._catalogue.get(op.type).attributes
        self._tensors.update(value for name, value in op.attributes.items() if isinstance(value, Var) and specs[name].type is Sizes)
        for vars in op.inputs.values():
            for var in vars:
                self._readers.setdefault(var, []).append(op)

    def _read_of_blocks(self, op: Op) -> list[Var]:
        """Note what an op with a block reads and returns; return what it asks whether it is true."""
        if op.type not in ("while", "conditional_block"):
            self._tensors.update(var for slot, vars in op.inputs.items() if slot != "free" for var in vars)
            self._tensors.update(var for block in op.blocks for var in block.outputs)
            return []
        layout = Layout.of(op)
        self._tensors.update(outer for _, outer in layout.steps)
        self._tensors.update(inner for inner, _ in layout.stacked)
        for each in layout.carried:
            self._carried[each.inside] = self._finals[each.final] = each
            for var in (each.initial, each.following):
                self._goes_on.setdefault(var, []).append(each)
        return [*op.inputs.get("condition", ()), *op.inputs.get("when", ()), *([] if layout.condition is None else [layout.condition])]

    def _inputs(self, var: Var) -> Sequence[Var]:
        """The variables that the number `var` is computed from."""
        if var in self._carried:
            return self._carried[var].initial, self._carried[var].following
        return (self._finals[var].inside,) if var in self._finals else self._makers[var].reads

    def _may_be_number(self, var: Var) -> bool:
        if var.shape != () or var.dtype.is_inexact or var in self._constants:
            return False
        if var in self._carried or var in self._finals:
            return True
        op = self._makers.get(var)
        return op is not None and variants_of(self._catalogue.get(op.type)).host is not None and all(read.shape == () for read in op.reads)

    def _has_number_function(self, var: Var) -> bool:
        return variants_of(self._catalogue.get(self._makers[var].type)).number is not None

    def _needed(self, conditions: Iterable[Var]) -> set[Var]:
        """The variables that `conditions` depend on, as far as they might be numbers."""
        needed: set[Var] = set()
        pending = list(conditions)
        while pending:
            var = pending.pop()
            if var not in needed and self._may_be_number(var):
                needed.add(var)
                pending += self._inputs(var)
        return needed

    def _settle(self) -> None:
        """Leave those that are numbers if all of them are."""
        while True:
            kept = {var for var in self._held if self._is_made_of_numbers(var) and not self._is_read_as_tensor(var)}
            if kept == self._held:
                return
            self._held = kept

    def _is_known(self, var: Var) -> bool:
        return var in self._held or var in self._constants

    def _is_made_of_numbers(self, var: Var) -> bool:
        if var in self._carried:
            return self._is_known(self._carried[var].following)  # of what it begins as, the number is asked for once
        if var in self._finals:
            return self._finals[var].inside in self._held
        return sum(not self._is_known(read) for read in set(self._inputs(var))) <= 1

    def _is_read_as_tensor(self, var: Var) -> bool:
        if var in self._tensors or any(each.inside not in self._held for each in self._goes_on.get(var, ())):
            return True
        return any(self._held.isdisjoint(op.writes) for op in self._readers.get(var, ()))


def _constant(op: Op) -> Number | None:
    """The number that a `full` of rank 0 holds, which is rounded as its dtype does; None where that may fail, or be flushed to zero."""
    value: Any = op.attributes.get("value")
    if op.type != "full" or isinstance(value, Var) or op.writes[0].shape != () or op.writes[0].dtype.is_complex:
        return None
    dtype = to_torch(op.writes[0].dtype)
    if dtype.is_floating_point:
        limits = torch.finfo(dtype)
        zero = not any(struct.pack("d", abs(value)))  # by its bits: where denormal numbers are flushed, they equal zero
        return one_number(op.writes[0].dtype)(value).item() if zero or limits.smallest_normal <= abs(value) <= limits.max else None
    low, high = (0, 1) if dtype is torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    return (bool if dtype is torch.bool else int)(value) if float(value).is_integer() and low <= value <= high else None


@cache
def one_number(dtype: DType) -> Callable[[Number], torch.Tensor]:
    """How a tensor of `dtype` is made of one number that it holds."""
    return partial(torch.full, (), dtype=to_torch(dtype))


@cache
def wrapping(dtype: DType) -> Callable[[int], int]:
    """How an integer is brought into the range of `dtype`: by its lowest bits, as kernels do."""
    low, high = torch.iinfo(to_torch(dtype)).min, torch.iinfo(to_torch(dtype)).max

    def wrapped(number: int) -> int:
        return number if low <= number <= high else (number - low) % (high - low + 1) + low

    return wrapped
