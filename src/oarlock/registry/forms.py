"""The forms of a kernel: other functions for the same results, which cost less where a plan knows more."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from oarlock.errors import DeclarationError
from oarlock.registry.expression import Expression

if TYPE_CHECKING:
    from oarlock.registry.attribute_spec import AttributeSpec

__all__ = ["Forms"]


class Forms:
    """The part of an operator that declares the forms of its kernel, and what must hold before one writes over anything."""

    type: str
    kernel: Callable[..., object]
    attributes: "Mapping[str, AttributeSpec]"

    def __init__(self) -> None:
        self.into_kernel: Callable[..., object] | None = None
        self.in_place_kernels: dict[tuple[str, ...], Callable[..., object]] = {}
        self.host_form: Callable[..., object] | None = None
        self.number_form: Callable[..., object] | None = None
        self.expressions: dict[Callable[..., object], list[Expression]] = {}  # of the kernel, and of its forms
        self.packed_forms: dict[str, tuple[Callable[..., object], Callable[..., object]]] = {}
        self.preconditions: dict[Callable[..., object], tuple[str, ...]] = {}  # each with what it is called with

    def _require_inputs(self, slots: Sequence[str]) -> None:
        raise NotImplementedError

    def into(self, kernel: Callable[..., object]) -> Callable[..., object]:
        """Declare the form that writes into `out`, a tensor of the output's shape and dtype that overlaps no input.

        It is bit-identical to the kernel, wherever `out` lies in memory, which may be a slice of columns of a larger tensor; within
        rounding where the operator rounds by place. So are all forms below.
        """
        self.into_kernel = kernel
        return kernel

    def in_place(self, *slots: str) -> Callable[[Callable[..., object]], Callable[..., object]]:
        """Declare the form in which output `i` takes the memory of input `slots[i]`; bit-identical to the kernel.

        Of a variadic slot it is the memory of the first variable; a variadic output takes that of all of them, one for one. The
        form is called only where the input that gives its memory has the shape and the dtype of the output; an uneven stack
        gives none, and the output is fresh memory. A keyword `alone` says that nothing else lies there, so that strides may change.
        """

        def declare(kernel: Callable[..., object]) -> Callable[..., object]:
            self._require_inputs(slots)
            self.in_place_kernels[slots] = kernel
            return kernel

        return declare

    def on_host(self, function: Callable[..., object]) -> Callable[..., object]:
        """Declare the form on Python's numbers, for tensors of one number each. It is called only for what is a bool, which is the
        kernel's, or an integer: the kernel's if integers had no end, for the plan cuts them. It takes no attributes.
        """
        if self.attributes:
            raise DeclarationError(f"{self.type} takes attributes, which a form on numbers is not given")
        self.host_form = function
        return function

    def as_number(self, function: Callable[..., object]) -> Callable[..., object]:
        """Declare the form that gives the one number which the output would hold, of the same inputs and attributes.

        A plan calls it where the host asks for that number and nobody for the tensor.
        """
        self.number_form = function
        return function

    def comes_to(self, text: str, *, form: Callable[..., object] | None = None, **conditions: Any) -> None:
        """Declare an expression that gives the bits of the kernel, or of a `form` of it, on the `conditions` that `Expression` takes.

        A plan writes it in its line, where a call of the kernel would cost calls of Python more. Of several, the first that holds.
        """
        self.expressions.setdefault(form or self.kernel, []).append(Expression(text, **conditions))

    def packed(self, slot: str, pack: Callable[..., object]) -> Callable[[Callable[..., object]], Callable[..., object]]:
        """Declare the form that is also given, as `packed`, what `pack` has made of input `slot`; bit-identical to the kernel.

        `pack` is given the input and the attributes; what it makes is new, takes about as much memory, and depends on nothing else. It
        may be None, where it would not help. A plan packs a parameter once for many runs.
        """

        def declare(kernel: Callable[..., object]) -> Callable[..., object]:
            self._require_inputs((slot,))
            if self.packed_forms or self.into_kernel or self.in_place_kernels:
                raise DeclarationError(f"{self.type} has another form, and only one can be called")
            self.packed_forms[slot] = pack, kernel
            return kernel

        return declare

    def precondition(self, check: Callable[..., object], *names: str) -> None:
        """Declare what refuses the values that the kernel and its forms refuse, by raising what the kernel raises, which calls it too.

        It is called with the inputs `names`, or for `<input>_dtype` with PyTorch's dtype of one; of a variadic slot, once for each. A plan
        calls it before it writes over anything, for there is no way back then. No other values make the operator fail.
        """
        self._require_inputs([name.removesuffix("_dtype") for name in names])
        self.preconditions[check] = names
