"""Write the program of an ONNX model: known values become parameters, constants or run-time sizes."""

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
    """A program, the values of its persistent variables, and the variables whose shapes determine sizes."""

    program: Program
    trainable: frozenset[str] = frozenset()
    values: dict[str, Known] = field(default_factory=dict)
    _made: dict[Known, Var] = field(default_factory=dict)
    _origins: dict[Size, list[tuple[Var, int]]] = field(default_factory=dict)

    def variable(self, value: "Var | Known") -> Var:
        """Return a value as a variable of the program. Raises Unsupported for a size that is unknown at run time."""
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
        """Declare a value as a parameter, or as state that is not trained."""
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
        """Return `name`, changed to be valid and unused in the program."""
        name = legal_name(name)
        return name if name not in self.program.main.vars and self.program.is_free(name) else self.program.unique(name)

    def note_sizes(self, var: Var) -> None:
        """Record that the shape of `var` determines its sizes."""
        for axis, size in enumerate(var.shape or ()):
            if isinstance(size, str):
                self._origins.setdefault(size, []).append((var, axis))

    def variables_with_sizes(self, sizes: Iterable[Size]) -> list[Var]:
        """Return visible variables whose shapes determine the symbols in `sizes`, as far as possible."""
        around = set(innermost_block(self.program).enclosing())
        names = {name for size in sizes for name in ({size} | names_in(size) if isinstance(size, str) else ())}
        found = [var for name in sorted(names) for var, _ in self._origins.get(name, ()) if var.block in around]
        return list(dict.fromkeys(found))

    def _sizes(self, value: Known) -> Var:
        """Return an array of sizes, some of them symbolic, as a variable."""
        parts = [op.reshape(self._size(item, value.dtype), shape=(1,)) for item in value.items()]
        joined = parts[0] if len(parts) == 1 else op.concat(parts, axis=0)
        return op.reshape(joined, shape=tuple(value.shape))

    def _size(self, size: Size, dtype: DType) -> Var:
        """Return one size as a scalar variable."""
        if isinstance(size, int):
            return op.full(shape=(), value=float(size), dtype=dtype)
        found = self._read_size(size)
        if found is None:
            found = self._compute_size(size)
        return found if found.dtype is dtype else op.cast(found, dtype=dtype)

    def _read_size(self, size: Size) -> Var | None:
        """Return a size read from the shape of a visible variable, or None."""
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

    def _compute_size(self, size: Size) -> Var:
        """Compute a size by arithmetic on variables. Raises Unsupported if the value of a name is unknown."""
        if isinstance(size, int):
            return op.full(shape=(), value=float(size), dtype=DType.INT64)
        if names_in(size) == {size}:
            value = self._read_size(size)
            if value is None:
                raise Unsupported(f"the size {size} is used as a value, but no visible variable has it")
            return value
        parts = []
        for factors, coefficient in terms(size).items():
            found = [self._compute_factor(factor) for factor in factors]
            parts.append(reduce(op.multiply, found if coefficient == 1 and found else [*found, self._compute_size(coefficient)]))
        return reduce(op.add, parts)

    def _compute_factor(self, factor: str) -> Var:
        division, choices = find_division(factor), find_least(factor)
        if division is not None:
            return op.floor_divide(*map(self._compute_size, division))
        return self._compute_size(factor) if choices is None else reduce(op.minimum, map(self._compute_size, choices))


def legal_name(name: str) -> str:
    """Return `name` as a valid variable name: slashes and colons between words become dots, other characters `_`."""
    changed = re.sub(r"[/:]+", ".", name.strip("/:"))
    changed = re.sub(r"\.\.+", ".", re.sub(r"[^A-Za-z0-9_.-]", "_", changed))[:200]
    return changed if changed and is_name(changed) else "value"


def _only_number(tensor: torch.Tensor) -> float | None:
    """Return the value of all elements if they are equal and a float represents it exactly, else None. An empty tensor gives 0."""
    if not tensor.numel():
        return 0.0
    first = tensor.reshape(-1)[0]
    if tensor.numel() > 1 and not bool((tensor == first).all()):
        return None
    number = first.item()
    if isinstance(number, float) and not (tensor.dtype.is_floating_point and number == number and (number or not torch.signbit(first))):
        return None
    return float(number) if abs(number) <= _EXACT or isinstance(number, float) else None
