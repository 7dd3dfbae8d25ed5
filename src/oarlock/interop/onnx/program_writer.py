"""The program that an ONNX model becomes, while it is written: known values as parameters, constants and sizes that a run tells."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce

import torch

from oarlock import op
from oarlock.interop.onnx.known_value import Known
from oarlock.interop.onnx.rule import Unsupported
from oarlock.ir.block_stack import innermost_block
from oarlock.ir.dtype import DType
from oarlock.ir.names import is_name
from oarlock.ir.polynomial import find_division, find_least
from oarlock.ir.program import Program
from oarlock.ir.size import Size, names_in, terms
from oarlock.ir.var import Var

__all__ = ["ProgramWriter", "legal_name"]

_EXACT = 2**53


@dataclass
class ProgramWriter:
    """A program, the values of what outlives a run of it, and the variables whose shapes tell sizes."""

    program: Program
    trainable: frozenset[str] = frozenset()
    values: dict[str, Known] = field(default_factory=dict)
    _made: dict[Known, Var] = field(default_factory=dict)
    _origins: dict[Size, list[tuple[Var, int]]] = field(default_factory=dict)

    def variable(self, value: "Var | Known") -> Var:
        """A value as a variable of the program. Raises Unsupported for a size that no run tells."""
        if isinstance(value, Var):
            return value
        if value in self._made:
            return self._made[value]
        if value.sizes is not None:
            return self._sizes(value)
        if value.parameter is None or not value.dtype.is_floating:
            number = _only_number(value.tensor)
            if number is not None:
                return op.full(shape=tuple(value.shape), value=number, dtype=value.dtype)
        self._made[value] = self._keep(value)
        return self._made[value]

    def _keep(self, value: Known) -> Var:
        """A value as a parameter, or as state that nobody trains."""
        main, given = self.program.main, value.parameter
        name = self.free_name(given or "constant")
        parameter = given is not None and value.dtype.is_floating
        self.values[name] = value
        return main.new_var(
            name,
            value.dtype,
            tuple(value.shape),
            persistable=True,
            parameter=parameter,
            trainable=parameter and given in self.trainable,
            stop_gradient=not parameter,
        )

    def free_name(self, name: str) -> str:
        """`name`, or what is nearest to it and legal and free in the program."""
        name = legal_name(name)
        return name if name not in self.program.main.vars and self.program.is_free(name) else self.program.unique(name)

    def note_sizes(self, var: Var) -> None:
        """Remember that a run tells the sizes of `var`."""
        for axis, size in enumerate(var.shape or ()):
            if isinstance(size, str):
                self._origins.setdefault(size, []).append((var, axis))

    def tellers(self, sizes: Iterable[Size]) -> list[Var]:
        """Variables that are seen from here and whose shapes tell the symbols among `sizes`, as far as there are any."""
        around = set(innermost_block(self.program).enclosing())
        names = {name for size in sizes for name in ({size} | names_in(size) if isinstance(size, str) else ())}
        found = [var for name in sorted(names) for var, _ in self._origins.get(name, ()) if var.block in around]
        return list(dict.fromkeys(found))

    def _sizes(self, value: Known) -> Var:
        """Sizes, some of them symbols, as a variable."""
        parts = [op.reshape(self._size(item, value.dtype), shape=(1,)) for item in value.items()]
        joined = parts[0] if len(parts) == 1 else op.concat(parts, axis=0)
        return op.reshape(joined, shape=tuple(value.shape))

    def _size(self, size: Size, dtype: DType) -> Var:
        """One size as a variable, of no axes."""
        if isinstance(size, int):
            return op.full(shape=(), value=float(size), dtype=dtype)
        told = self._told(size)
        if told is None:
            told = self._computed(size)
        return told if told.dtype is dtype else op.cast(told, dtype=dtype)

    def _told(self, size: Size) -> Var | None:
        """The size as the shape of some variable tells it; None where none does that is seen from here."""
        around = set(innermost_block(self.program).enclosing())
        for var, axis in self._origins.get(size, ()):
            if var.block in around:
                return op.size(var, axis=axis)
        for block in around:
            for var in (*block.inputs, *reversed(block.vars.values())):
                for axis, other in enumerate(var.shape or ()):
                    if other == size:
                        return op.size(var, axis=axis)
        return None

    def _computed(self, size: Size) -> Var:
        """A size that is arithmetic of names, as arithmetic of variables. Raises Unsupported where no variable tells a name."""
        if isinstance(size, int):
            return op.full(shape=(), value=float(size), dtype=DType.INT64)
        if names_in(size) == {size}:
            told = self._told(size)
            if told is None:
                raise Unsupported(f"the size {size} is read as a value, and no variable here tells it")
            return told
        parts = []
        for factors, coefficient in terms(size).items():
            found = [self._computed_factor(factor) for factor in factors]
            parts.append(reduce(op.multiply, found if coefficient == 1 and found else [*found, self._computed(coefficient)]))
        return reduce(op.add, parts)

    def _computed_factor(self, factor: str) -> Var:
        division, choices = find_division(factor), find_least(factor)
        if division is not None:
            return op.floor_divide(*map(self._computed, division))
        return self._computed(factor) if choices is None else reduce(op.minimum, map(self._computed, choices))


def legal_name(name: str) -> str:
    """`name` as a variable may be called that a user names: other signs become `_`, slashes and colons between words a dot."""
    changed = re.sub(r"[/:]+", ".", name.strip("/:"))
    changed = re.sub(r"\.\.+", ".", re.sub(r"[^A-Za-z0-9_.-]", "_", changed))[:200]
    return changed if changed and is_name(changed) else "value"


def _only_number(tensor: torch.Tensor) -> float | None:
    """The number that all elements are; None where they differ, or where a float does not hold it. A tensor of nothing is of zeros."""
    if not tensor.numel():
        return 0.0
    first = tensor.reshape(-1)[0]
    if tensor.numel() > 1 and not bool((tensor == first).all()):
        return None
    number = first.item()
    if isinstance(number, float) and not (tensor.dtype.is_floating_point and number == number and (number or not torch.signbit(first))):
        return None
    return float(number) if abs(number) <= _EXACT or isinstance(number, float) else None
