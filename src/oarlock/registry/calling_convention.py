"""The calling convention of kernels: conversion between slots and attributes, and arguments and results."""

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
    """The calling convention of a kernel and its variants. The interpreter and the plan compiler use it only through this class.

    Inputs are positional, in signature order: a variadic slot as a list, an omitted one as None, a shape-only slot as its shape. Attributes
    are keyword arguments. A kernel whose first parameter is `context` gets the run's context first. It returns one result or, for several
    outputs, a tuple; a variadic output is a sequence.
    """

    kernel: Callable[..., object]
    signature: Signature

    @cached_property
    def wants_context(self) -> bool:
        """Whether the kernel has a first parameter `context`."""
        if isinstance(self.kernel, FunctionType) and not hasattr(self.kernel, "__wrapped__"):  # faster than inspecting its signature
            return self.kernel.__code__.co_varnames[: self.kernel.__code__.co_argcount][:1] == ("context",)
        return next(iter(inspect.signature(self.kernel).parameters), None) == "context"

    def in_order(self, given: Mapping[str, Sequence[Any]]) -> list[Any]:
        """Return the input arguments in order, from those of each slot: values, types or source texts."""
        found = [list(given.get(slot.name, ())) for slot in self.signature.inputs]
        return [
            values if slot.variadic else values[0] if values else None for slot, values in zip(self.signature.inputs, found, strict=True)
        ]

    def arguments(self, given: Mapping[str, Sequence[Any]]) -> list[Any]:
        """Return the kernel arguments from the values in each slot. For a shape-only slot, a value may be given as its shape."""
        shapes = {slot.name for slot in self.signature.inputs if slot.shape_only}
        read = {slot: [getattr(value, "shape", value) for value in values] if slot in shapes else values for slot, values in given.items()}
        return self.in_order(read)

    def results(self, computed: Any) -> dict[str, list[Any]]:
        """Return the results of the kernel by output slot."""
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
        """Call the kernel on the values in each slot and return its results by output slot. `context` is passed if the kernel wants it.

        `kernel` may be a variant to call instead, whose additional keywords are among the attributes.
        """
        arguments = self.arguments(given)
        return self.results((kernel or self.kernel)(*([context] if self.wants_context else []), *arguments, **attributes))

    def run(self, op: Op, value: Callable[[Var], Any], shape: Callable[[Var], Any], context: object = None) -> list[Any]:
        """Run the kernel for `op`, which has no variables as attributes, and return the results in the order of its outputs.

        `value` returns the value of an input variable, `shape` the shape of a shape-only input.
        """
        read = {slot.name: shape if slot.shape_only else value for slot in self.signature.inputs}
        given = {slot: [read[slot](var) for var in vars] for slot, vars in op.inputs.items()}
        return [each for results in self.call(given, op.attributes, context).values() for each in results]

    def call_text(
        self, function: str, given: Mapping[str, Sequence[str]], attributes: Mapping[str, str], context: str | None = None
    ) -> str:
        """Return the source code of `call`, from source texts of the values and attributes. `function` is the name of the kernel."""
        arguments = [_text(value) for value in self.in_order(given)]
        while arguments and arguments[-1] == "None":  # None is the default of an omitted input
            arguments.pop()
        first = [context] if context is not None else []
        return f"{function}({', '.join([*first, *arguments, *(f'{name}={text}' for name, text in attributes.items())])})"

    def results_text(self, names: Mapping[str, Sequence[str]]) -> str:
        """Return the source code of the assignment target for a call's results."""
        return ", ".join(_text(names[slot.name] if slot.variadic else names[slot.name][0]) for slot in self.signature.outputs)


def _text(value: Sequence[str] | str | None) -> str:
    return str(value) if value is None or isinstance(value, str) else f"[{', '.join(value)}]"


def require_parameters(type: str, kernel: Callable[..., object], signature: Signature) -> None:
    """Check that the parameters of a kernel match the declared signature. Raises DeclarationError."""
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
        raise DeclarationError(f"{type}: duplicate slot name in {names}")
    clash = [name for name in names if name.startswith("d") and name[1:] in (outputs if name in outputs else names)]
    if clash:
        raise DeclarationError(f"{type}: slot {clash[0]} would be mistaken for a gradient")
