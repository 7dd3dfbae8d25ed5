"""Operator: the declaration of inputs, outputs, kernel and properties. `decorator.py` creates one from a kernel."""

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

from oarlock.errors import ArgumentError, DeclarationError
from oarlock.ir.block import Block
from oarlock.ir.dtype import DType
from oarlock.ir.operation import Op
from oarlock.ir.var import Var
from oarlock.old_names import OLD_DECLARATIONS, OLD_VARIANTS, old_attribute, takes_old_keywords
from oarlock.registry.attributes import REQUIRED, AttributeSpec, attribute_specs, unknown_attribute
from oarlock.registry.call_signature import OfEach, call_signature, format_call, format_help
from oarlock.registry.calling_convention import CallingConvention
from oarlock.registry.case import Case, GradCheck, Rejects, with_default_checks
from oarlock.registry.catalogue import Catalogue, standard
from oarlock.registry.collective import BlockFlow
from oarlock.registry.gradient import (
    Builder,
    GradientProgram,
    Rule,
    derive_gradients,
    derive_signature,
    require_differentiable,
    require_gradient_name,
    require_linear,
)
from oarlock.registry.inference import infer_types
from oarlock.registry.signature import Signature, TensorType

if typing.TYPE_CHECKING:
    from oarlock.registry.value_checks import UncheckedKernel

__all__ = ["OnWorkers", "Operator", "Rounding"]

Rounding = Literal["layout", "place"]
"""The influences on rounding other than the values: see `operator`."""
OnWorkers = Literal["same", "own"]
"""The relation between the results of different workers: see `operator`."""


EDGES = ("denormal", "equal", "infinite", "nan", "negative", "one", "refused", "zero")
"""Kinds of values at the edge of a domain: `equal` elements of one input, rejected values (`refused`), the numbers 1 and 0, and so on."""


class Operator(CallingConvention):
    """The declaration of one type of op: its inputs, outputs, attributes and kernel.

    Calling an operator on variables appends an op to their program and returns the variables that it defines. `kernel` computes it on
    tensors. Passes and plans rely on the other declared properties, such as `aliases`, the inputs whose memory an output may share; tests
    check them.
    """

    __doc__ = OfEach(format_help, __doc__)  # type: ignore[assignment]
    __signature__ = OfEach(call_signature)

    parts: "tuple[Operator, ...]" = ()
    """The operators that a fused operator combines: see `oarlock.registry.fused_operator`."""

    unchecked_kernel: "UncheckedKernel | None" = None
    """The kernel that skips checks of values computed by the forward operator: see `oarlock.registry.value_checks`."""

    def __init__(
        self,
        type: str,
        kernel: Callable[..., object],
        signature: Signature | None,
        *,
        forward: "Operator | None" = None,
        wrt: str | None = None,
        cases: Sequence[Case | GradCheck | Rejects] = (),
        intermediate: Sequence[str] = (),
        effects: str | None = None,
        on_workers: OnWorkers | None = None,
        checks_values: bool = False,
        variable_attributes: Sequence[str] = (),
        told_attributes: Mapping[str, int] | None = None,
        added_later: Sequence[str] = (),
        aliases: Sequence[str] = (),
        disjoint: bool = False,
        linear_in: Sequence[str] = (),
        contraction: bool = False,
        sensitive_to: Rounding | None = None,
        axis_attribute: str | None = None,
        trusted: bool = False,
        catalogue: Catalogue | None = None,
    ):
        self.variable_attributes = tuple(variable_attributes)
        self.told_attributes = dict(told_attributes or (forward.told_attributes if forward else {}))
        self.added_later = tuple(added_later)
        self.aliases = tuple(aliases)
        self.disjoint = disjoint
        self.linear_in = tuple(linear_in)
        self.contraction = contraction
        self.sensitive_to = sensitive_to
        name, _, left_out = (axis_attribute or "").partition("=")
        self.axis_attribute = name or None
        self.axis_left_out = int(left_out) if left_out else None
        self.trusted = trusted
        self.type = self.__name__ = type
        self.kernel, self.__module__ = kernel, kernel.__module__
        self.forward = forward
        self.wrt = wrt
        self.declared_cases = tuple(cases)
        self.intermediate = tuple(intermediate)
        self.effects = effects
        self.on_workers = on_workers
        self.checks_values = checks_values
        self.preconditions: dict[Callable[..., object], tuple[str, ...]] = {}  # each with the names of its arguments
        self.gradients: dict[str, Rule] = {}
        self.complex_gradients: dict[str, Rule] = {}  # for complex inputs, if they differ from the real ones
        self.edges: dict[str, str] = {}  # kinds of values at which gradients differ from PyTorch's, with the reason
        self.gradient_builder: Builder | None = None
        self.infer_function: Callable[..., object] | None = None
        self.shape_check: Callable[..., None] | None = None
        self.block_sizes: Callable[..., Any] | None = None  # maps an op to its `value_sizes.BlockSizes`
        self.block_flow: Callable[[Op], BlockFlow] | None = None
        self.catalogue = standard if catalogue is None else catalogue
        if signature is not None:
            self.signature = signature
        self._require_inputs((*self.aliases, *self.linear_in))
        require_linear(self)
        if sensitive_to not in (None, *typing.get_args(Rounding)):
            raise DeclarationError(f'{type}: sensitive_to must be "layout", "place" or None, not "{sensitive_to}"')
        self.catalogue.add(self)

    def __getattr__(self, name: str) -> Any:
        if name in OLD_DECLARATIONS or name in OLD_VARIANTS:
            return old_attribute(self, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def __repr__(self) -> str:
        return f"<Operator {format_call(self)}>"

    @cached_property
    def signature(self) -> Signature:
        """The signature. For a gradient operator, it is derived from the forward operator on first use."""
        return derive_signature(self)

    @property
    def cases(self) -> tuple[Case | GradCheck | Rejects, ...]:
        """The declared cases, plus default gradient checks if none are declared: see `case.py`."""
        return with_default_checks(self)

    @property
    def doc(self) -> str:
        """The docstring of the kernel."""
        return inspect.getdoc(self.kernel) or ""

    @cached_property
    def attributes(self) -> dict[str, AttributeSpec]:
        """The attributes by name, as the kernel's signature declares them."""
        return attribute_specs(self)

    @property
    def is_trusted(self) -> bool:
        """Whether plans may rely on the promises of `trusted`. Gradients inherit it from the forward operator."""
        return self.trusted if self.forward is None else self.forward.is_trusted

    @property
    def is_contraction(self) -> bool:
        """Whether it is a `contraction` or a gradient of one, which is one too."""
        return self.contraction if self.forward is None else self.forward.is_contraction

    @property
    def block_attributes(self) -> tuple[str, ...]:
        """The names of the attributes that are blocks."""
        return tuple(spec.name for spec in self.attributes.values() if spec.type is Block)

    @property
    def row_group(self) -> str | None:
        """The group `*b` whose indexes are computed independently; None if nothing is promised."""
        return None if self.infer_function or self.effects else self.signature.row_group

    @property
    def summed_outputs(self) -> tuple[str, ...]:
        """The outputs that are sums over the rows `*b`: declared by `sum`, or derived gradients without these axes."""
        groups = {slot.leading_group for slot in self.signature.inputs} - {None}
        return tuple(
            slot.name
            for slot in self.signature.outputs
            if slot.summed or (self.forward is not None and groups and slot.leading_group is None and slot.like is None)
        )

    def differentiates(self, slot: str) -> bool:
        """Return whether a gradient may flow through input `slot`. A missing rule counts, because it is an error, not a zero."""
        rule = self.gradients.get(slot)
        declared = self.signature.input(slot)
        return declared is not None and not declared.shape_only and not (rule is not None and rule.is_zero)

    def convert_attributes(self, given: Mapping[str, object]) -> dict[str, object]:
        """Convert the attributes and add defaults. Attributes that are None, or the default of one `added_later`, are omitted. Raises
        ArgumentError.
        """
        for name in given:
            if name not in self.attributes:
                raise unknown_attribute(name, self.attributes, [slot.name for slot in self.signature.inputs])
        converted: dict[str, object] = {}
        for name, spec in self.attributes.items():
            value = given.get(name, spec.default)
            if value is REQUIRED:
                raise ArgumentError(f"attribute {name} is required")
            if value is not None:
                converted[name] = spec.convert(value)
                if spec.added_later and not isinstance(converted[name], Var) and converted[name] == spec.default:
                    del converted[name]
            elif spec.default is not None:
                raise ArgumentError(f"attribute {name} must be {spec.type_text}, not None")
        return converted

    def infer(
        self, given: Mapping[str, Sequence[TensorType]], attributes: Mapping[str, object], fresh: Callable[[], str]
    ) -> dict[str, list[TensorType]]:
        """Return the types of the outputs. Raises ShapeError, DTypeError or ArgumentError if the arguments do not fit."""
        return infer_types(self, given, attributes, fresh)

    def _require_inputs(self, slots: Sequence[str]) -> None:
        """Check that all slots are inputs. Raises DeclarationError. Derived signatures are not built for this; tests check those."""
        for slot in slots:
            if self.forward is None and self.signature.input(slot) is None:
                raise DeclarationError(f"{self.type} has no input {slot}")

    def infer_shape(self, function: Callable[..., object]) -> Callable[..., object]:
        """Declare a shape inference function, for shapes that the signature cannot express.

        `function` takes the kernel's arguments as `TensorType`s and returns a shape, or a TensorType, per output. A size that depends on
        values is a str that begins with "?"; equal strings are the same size.
        """
        self.infer_function = function
        return function

    def check_shapes(self, function: Callable[..., None]) -> Callable[..., None]:
        """Declare a function that rejects shapes, if the signature accepts too many but infers the outputs.

        `function` takes the arguments described in `infer_shape` and raises ShapeError. A symbol may be any number and is checked in the
        run.
        """
        self.shape_check = function
        return function

    @takes_old_keywords(OLD_DECLARATIONS)
    def gradient(
        self,
        slot: str,
        *,
        aliases: Sequence[str] = (),
        axis_attribute: str | None = None,
        sensitive_to: Rounding | None = None,
        checks_values: bool = False,
    ) -> "Callable[[Callable[..., object]], Operator]":
        """Declare the kernel of the gradient with respect to input `slot`.

        Its parameters are the values it needs: any input, any output, `d<output>`, or `<input>_shape` if only the shape matters. It becomes
        an
        operator called `<type>_d<slot>`. The other arguments are described in `operator`. If the operator is element-wise, or `linear_in`
        the
        input, the gradient with respect to `d<output>` is derived: see `gradient.py`.
        """

        def declare(kernel: Callable[..., object]) -> Operator:
            name = require_gradient_name(self, slot, kernel)
            derived = Operator(
                name,
                kernel,
                None,
                forward=self,
                wrt=slot,
                aliases=aliases,
                axis_attribute=axis_attribute,
                sensitive_to=sensitive_to,
                checks_values=checks_values,
                catalogue=self.catalogue,
            )
            self.gradients[slot] = Rule(slot, operator=derived)
            derive_gradients(derived)
            return derived

        return declare

    def gradient_program(self, slot: str) -> Callable[[GradientProgram], GradientProgram]:
        """Declare the gradient with respect to `slot` as a function of variables that appends existing operators.

        Its parameters are described in `gradient`; it returns a variable, or a list of them for a variadic slot.
        """

        def declare(program: GradientProgram) -> GradientProgram:
            require_gradient_name(self, slot, program)
            self.gradients[slot] = Rule(slot, program=program)
            return program

        return declare

    def gradient_programs(self, **programs: GradientProgram) -> None:
        """Declare gradients by input slot, each as a function of variables. A short form of `gradient_program` for single expressions.

            matrix_transpose.gradient_programs(x=lambda dy: matrix_transpose(dy))

        Raises DeclarationError for an unknown input slot.
        """
        self._declare_programs(self.gradients, programs)

    def complex_gradient_programs(self, **programs: GradientProgram) -> None:
        """Declare gradients for complex inputs, if they differ from those for real ones. For y = f(x): ``dy * conj(f'(x))``."""
        self._declare_programs(self.complex_gradients, programs)

    def _declare_programs(self, rules: dict[str, Rule], programs: Mapping[str, GradientProgram]) -> None:
        for slot, program in programs.items():
            require_differentiable(self, slot)
            rules[slot] = Rule(slot, program=program)

    def find_gradient(self, slot: str, dtype: DType) -> Rule | None:
        """Return the gradient with respect to an input of this dtype, or None if none is declared."""
        return (self.complex_gradients.get(slot) if dtype.is_complex else None) or self.gradients.get(slot)

    def no_gradient(self, *slots: str) -> None:
        """Declare that the gradient with respect to `slots` is zero."""
        self._require_inputs(slots)
        for slot in slots:
            self.gradients[slot] = Rule(slot)

    def declare_edges(self, **reasons: str) -> None:
        """Declare the kinds of input values (`EDGES`) at which gradients differ from PyTorch's, each with the reason.

        The reason is printed on the operator's page. Raises DeclarationError for an unknown kind.
        """
        unknown = reasons.keys() - set(EDGES)
        if unknown:
            raise DeclarationError(f"{self.type}: {', '.join(sorted(unknown))} is not a kind of edge: {', '.join(EDGES)}")
        self.edges.update(reasons)

    def precondition(self, check: Callable[..., object], *names: str) -> None:
        """Declare a function that rejects the values that the kernel rejects, with the same exception. The kernel calls it too.

        It is called with the inputs `names`, or with the backend's dtype of an input for `<input>_dtype`; for a variadic slot, once per
        tensor. A plan calls it before it overwrites anything, because that cannot be undone. No other values may make the kernel fail.
        """
        self._require_inputs([name.removesuffix("_dtype") for name in names])
        self.preconditions[check] = names

    def gradient_maker(self, builder: Builder) -> Builder:
        """Declare a function that builds the gradients of all inputs together, for operators that own blocks."""
        self.gradient_builder = builder
        return builder

    def __call__(self, *arguments: object, name: str | None = None, **keywords: object) -> typing.Any:
        from oarlock.registry.creator import create

        return create(self, arguments, keywords, name=name)
