"""The tensors of a module as variables of a program, under the module's names."""

import json
import re

import torch

from oarlock.errors import ProgramError
from oarlock.interop.torch.export import Exported
from oarlock.ir.attribute import Sizes
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.names import ALIASES, CONSTANT
from oarlock.ir.program import Program
from oarlock.ir.var import HeldValue, Initializer, Var
from oarlock.layer.parameter_options import current_place
from oarlock.op.creation import full
from oarlock.tensor.dtype import from_torch

__all__ = ["Constant", "State", "legal_name", "read_aliases"]

_ILLEGAL = re.compile(r"[^A-Za-z0-9_.-]|\.(?=\.)")


class Constant:
    """A tensor that depends on no input, parameter or changing buffer. It becomes a variable if an op reads it."""

    __slots__ = ("name", "value")

    def __init__(self, value: torch.Tensor, name: str | None = None):
        self.value = value
        self.name = name


class State:
    """The variables for the tensors of a module, declared in a program on first use.

    `prefix` is prepended to the module's names. The variables start from copies of the module's tensors.
    """

    def __init__(self, program: Program, exported: Exported, prefix: str = ""):
        self.program = program
        self.exported = exported
        self.prefix = prefix
        self._constants: dict[tuple[object, ...], Var] = {}

    def name_of(self, name: str) -> str:
        """Return the name in the program of the tensor `name`."""
        return legal_name(self.prefix + self.exported.aliases.get(name, name))

    def declare_all(self) -> None:
        """Declare all tensors of the state dict, in its order, and the other names of tied tensors."""
        for name in self.exported.state:
            if name not in self.exported.aliases and from_torch(self.exported.state[name].dtype) is not None:
                self.variable(name)
        self._declare_aliases()

    def _declare_aliases(self) -> None:
        aliases = {legal_name(self.prefix + other): self.name_of(other) for other in self.exported.aliases}
        main = self.program.main
        found = main.find_var(ALIASES)
        known = {} if found is None else read_aliases(found)
        if aliases.keys() <= known.keys():
            return
        text = json.dumps({**known, **aliases}, sort_keys=True).encode()
        main.vars.pop(ALIASES, None)
        start = Initializer("array", {"data": text, "shape": (len(text),)})
        main.new_var(ALIASES, DType.UINT8, (len(text),), persistable=True, stop_gradient=True, initializer=start)

    def variable(self, name: str) -> Var:
        """Return the parameter or buffer `name`. Raises ProgramError if another variable of the program has its name."""
        value = self.value(name)
        own = self.name_of(name)
        found = self.program.main.find_var(own)
        if found is not None:
            if isinstance(found.initializer, HeldValue) and found.initializer.attributes["value"] is self._initial_value(name):
                return found
            raise ProgramError(
                f'from_torch: "{own}" is already declared for another tensor',
                location=here(),
                given=[found.describe()],
                hint='pass name="trunk" in the call to prefix the names of its parameters',
            )
        kept = self.exported.aliases.get(name, name)
        parameter = kept in self.exported.parameters and value.is_floating_point()
        trained = parameter and any(
            flag for other, flag in self.exported.parameters.items() if self.exported.aliases.get(other, other) == kept
        )
        dtype = from_torch(value.dtype)
        assert dtype is not None
        return self.program.main.new_var(
            own,
            dtype,
            tuple(value.shape),
            persistable=True,
            parameter=parameter,
            trainable=trained,
            stop_gradient=not parameter,
            initializer=HeldValue(self._initial_value(name)),
            place=current_place(),
        )

    def value(self, name: str) -> torch.Tensor:
        """Return the module's tensor `name`."""
        found = self.exported.state.get(name)
        return found if found is not None else self.exported.constants[name]  # type: ignore[return-value]

    def _initial_value(self, name: str) -> torch.Tensor:
        """Return a copy of the tensor's value at import, shared by all programs."""
        kept = self.exported.aliases.get(name, name)
        held = self.exported.copies.get(kept)
        if held is None:
            held = self.exported.copies[kept] = self.value(kept).detach().cpu().clone(memory_format=torch.contiguous_format)
        return held

    def constant(self, constant: Constant) -> Var:
        """Return `constant` as a variable: a `full` op if all elements are equal, otherwise fixed state."""
        value = constant.value.detach().cpu()
        dtype = from_torch(value.dtype)
        assert dtype is not None
        number = _only_number(value)
        if number is not None:
            return full(shape=Sizes(value.shape), value=number, dtype=dtype)
        if constant.name in self.exported.state and constant.value is self.exported.state[constant.name]:
            return self.variable(constant.name)
        return self.held(constant)

    def held(self, constant: Constant) -> Var:
        """Return `constant` as fixed state; equal constants share one variable."""
        value = constant.value.detach().cpu()
        dtype = from_torch(value.dtype)
        assert dtype is not None
        value = value.clone(memory_format=torch.contiguous_format)
        key = (value.dtype, tuple(value.shape), value.reshape(-1).view(torch.uint8).numpy().tobytes())
        found = self._constants.get(key)
        if found is None:
            main = self.program.main
            name = f"{legal_name(self.prefix + constant.name)}{CONSTANT}" if constant.name else self.program.unique(CONSTANT)
            name = name if main.find_var(name) is None else self.program.unique(name)
            found = self._constants[key] = main.new_var(
                name,
                dtype,
                tuple(value.shape),
                persistable=True,
                stop_gradient=True,
                initializer=HeldValue(value),
                place=current_place(),
            )
        return found

    def drop_unread(self, read: set[Var]) -> None:
        """Drop the constants that are not in `read`."""
        for key, var in list(self._constants.items()):
            if var not in read:
                del self.program.main.vars[var.name], self._constants[key]


def read_aliases(var: Var) -> dict[str, str]:
    """Return the table `@ALIASES` of a program: other names mapped to the names of variables."""
    assert var.initializer is not None
    return json.loads(var.initializer.attributes["data"])  # type: ignore[arg-type]


def legal_name(name: str) -> str:
    """Return `name` with the characters that variable names do not allow replaced."""
    return _ILLEGAL.sub("_", name)[:256] or "_"


def _only_number(value: torch.Tensor) -> float | None:
    """Return the value of all elements if they are equal and a float represents it exactly, else None."""
    if not value.numel() or (value.numel() > 1 and not bool((value == value.reshape(-1)[0]).all())):
        return None
    number = value.reshape(-1)[0].item()
    return float(number) if abs(number) <= 2**53 or value.is_floating_point() else None
