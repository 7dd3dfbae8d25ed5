"""How a kernel is called: how slots and attributes become its arguments, and what it returns becomes results by slot."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import FunctionType
from typing import Any

from oarlock.errors import DeclarationError
from oarlock.ir.operation import Op
from oarlock.ir.var import Var
from oarlock.registry.signature import Signature

__all__ = ["CallingConvention", "require_parameters"]


class CallingConvention:
    """The calling convention of a kernel, and of its variants. Nothing else knows it: not the interpreter, nor what writes a plan.

    Inputs are given by position, in the order of the signature: a variadic slot as a list, one left out as None, a slot of which only the
    shape is read as the shape. Attributes are given by name. A kernel that asks for the run it is part of is given that first. It
    returns one result or, where there are several outputs, a tuple; a variadic output is a sequence.
    """

    kernel: Callable[..., object]
    signature: Signature

    @cached_property
    def wants_context(self) -> bool:
        """Whether the kernel asks for the run it is part of, by a first parameter `context`."""
        if isinstance(self.kernel, FunctionType) and not hasattr(self.kernel, "__wrapped__"):  # which tells sooner than its signature
            return self.kernel.__code__.co_varnames[: self.kernel.__code__.co_argcount][:1] == ("context",)
        return next(iter(inspect.signature(self.kernel).parameters), None) == "context"

    def in_order(self, given: Mapping[str, Sequence[Any]]) -> list[Any]:
        """The arguments of the inputs in order, from those of each slot: values, types or texts."""
        found = [list(given.get(slot.name, ())) for slot in self.signature.inputs]
        return [
            values if slot.variadic else values[0] if values else None for slot, values in zip(self.signature.inputs, found, strict=True)
        ]

    def arguments(self, given: Mapping[str, Sequence[Any]]) -> list[Any]:
        """The arguments of the kernel, from the values in each slot. A shape may stand for a value of which only that is read."""
        shapes = {slot.name for slot in self.signature.inputs if slot.shape_only}
        read = {slot: [getattr(value, "shape", value) for value in values] if slot in shapes else values for slot, values in given.items()}
        return self.in_order(read)

    def results(self, computed: Any) -> dict[str, list[Any]]:
        """The results of the kernel, by output slot."""
        outputs = self.signature.outputs
        each = computed if len(outputs) > 1 else (computed,)
        return {slot.name: list(result) if slot.variadic else [result] for slot, result in zip(outputs, each, strict=True)}

    def call(
        self,
        given: Mapping[str, Sequence[Any]],
        attributes: Mapping[str, object],
        context: object = None,
        *,
        kernel: Callable[..., object] | None = None,
    ) -> dict[str, list[Any]]:
        """Call the kernel on the values in each slot. Return its results by output slot. `context` is the run, for kernels that want it.

        Another `kernel` may be called in its place: a variant of it, whose own keywords stand among the attributes.
        """
        arguments = self.arguments(given)
        return self.results((kernel or self.kernel)(*([context] if self.wants_context else []), *arguments, **attributes))

    def run(self, op: Op, value: Callable[[Var], Any], shape: Callable[[Var], Any], context: object = None) -> list[Any]:
        """The results of the kernel for `op`, which takes no variables for attributes, in the order of what the op writes.

        `value` gives the value of a variable that it reads, `shape` the shape of one of which only that is read.
        """
        read = {slot.name: shape if slot.shape_only else value for slot in self.signature.inputs}
        given = {slot: [read[slot](var) for var in vars] for slot, vars in op.inputs.items()}
        return [each for results in self.call(given, op.attributes, context).values() for each in results]

    def call_text(
        self, function: str, given: Mapping[str, Sequence[str]], attributes: Mapping[str, str], context: str | None = None
    ) -> str:
        """The source text of `call`, from the texts of the values and of the attributes. `function` is the name of the kernel."""
        arguments = [_text(value) for value in self.in_order(given)]
        while arguments and arguments[-1] == "None":  # which is the default of what may be left out
            arguments.pop()
        first = [context] if context is not None else []
        return f"{function}({', '.join([*first, *arguments, *(f'{name}={text}' for name, text in attributes.items())])})"

    def results_text(self, names: Mapping[str, Sequence[str]]) -> str:
        """The source text to which a call is assigned, so that each result gets its name."""
        return ", ".join(_text(names[slot.name] if slot.variadic else names[slot.name][0]) for slot in self.signature.outputs)


def _text(value: Sequence[str] | str | None) -> str:
    return str(value) if value is None or isinstance(value, str) else f"[{', '.join(value)}]"


def require_parameters(type: str, kernel: Callable[..., object], signature: Signature) -> None:
    """Raise DeclarationError where what a kernel takes, and what its operator is declared to take, disagree."""
    parameters = inspect.signature(kernel).parameters.values()
    positional = [parameter.name for parameter in parameters if parameter.kind is not parameter.KEYWORD_ONLY]
    if positional[:1] == ["context"]:
        positional = positional[1:]
    slots = [slot.name for slot in signature.inputs]
    if positional != slots:
        raise DeclarationError(f"{type}: the signature's inputs are {slots}, the kernel's positional parameters {positional}")
    outputs = [slot.name for slot in signature.outputs]
    names = [*slots, *outputs]
    if len(set(names)) != len(names):
        raise DeclarationError(f"{type}: a slot name stands twice in {names}")
    clash = [name for name in names if name.startswith("d") and name[1:] in (outputs if name in outputs else names)]
    if clash:
        raise DeclarationError(f"{type}: slot {clash[0]} would be taken for a gradient")
