# Written by tools/stubs.py, which reads what the package declares.

"""The members of `Var` and `Block` that files of higher floors attach to them."""

from collections.abc import Mapping
from collections.abc import Sequence
from numpy import ndarray
from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.var import Var
from oarlock.registry.catalogue import Catalogue
from oarlock.registry.signature import TensorType
from oarlock.runtime.context import Context
from oarlock.runtime.place import Place
from oarlock.runtime.scope import Scope
from torch import Tensor

class AttachedToBlock:
    """The members of `Block` that are attached by other modules. Those modules are imported on first use."""

    def eval(self, targets: Var | str | Sequence[Var | str], scope: Scope, context: Context | Place | None = None, feed: Mapping[str, object] | None = None) -> list[ndarray] | list[Tensor] | ndarray | Tensor:
        """Return the value of one variable, or of several, as arrays. Only the ops that they need run; `scope` is not changed.

        Variables are given as such or by name. Inputs that are not fed are read from `scope`. Raises the same as `Executor.eval`, and
        ProgramError for a nested block.
        """

    def infer_shape(self, scope: Scope) -> dict[str, TensorType]:
        """Return the type of every variable of the block for the values in `scope`, by name. The method form of `ol.infer_shape`."""

    def new_op(self, type: str, inputs: Mapping[str, Var | str | Sequence[Var | str]], outputs: Mapping[str, Var | str | Sequence[Var | str]], attributes: Mapping[str, object] | None = None, name: str = "", *, catalogue: Catalogue = ...) -> Op:
        """Append an op on variables that are already declared, given as such or by name, and return it.

        Without a name it gets an unused one. An `assign` to a persistable variable is a commit, as with `commit`. Raises UndefinedVarError for
        an unknown variable, ProgramError for a duplicate `name`, DTypeError or ShapeError if an output is declared with a type other than the
        inferred one, else the same as `oarlock.registry.append_op`, which also declares outputs.
        """

    def run(self, scope: Scope, context: Context | Place | None = None, begin: int | None = None, end: int | None = None, *, keep_scopes: bool = False) -> None:
        """Run the ops [begin, end) of the block in `scope`, at a place or in a context. The method form of `ol.run_block`."""

class AttachedToVar:
    """The members of `Var` that are attached by other modules."""

    def __abs__(self) -> Var:
        """abs(x: number[*b]) -> y: number.real[*b]

        ``|x|``, a real number. Its gradient at 0 is 0.
        """

    def __add__(self, other: Var | complex) -> Var:
        """add(x: number[*#s], y: number[*#s]) -> z: number[*#s]

        ``z = x + y``.
        """

    def __and__(self, other: Var | complex) -> Var:
        """Elementwise AND; for integers, bitwise."""
    __array_ufunc__: None

    def __eq__(self, other: object) -> Var:
        """Return the elementwise comparison, bool. False for None, text and other objects without values."""

    def __floordiv__(self, other: Var | complex) -> Var:
        """floor_divide(x: real[*#s], y: real[*#s]) -> z: real[*#s]

        ``x / y``, rounded down. Division of an integer by 0 raises KernelError. The gradient is zero wherever it is defined.
        """

    def __ge__(self, other: Var | complex) -> Var:
        """greater_equal(x: real[*#s], y: real[*#s]) -> z: bool[*#s]

        ``x >= y``, elementwise.
        """

    def __getitem__(self, key: int | slice | ellipsis | Var | None | tuple[int | slice | ellipsis | Var | None, ...]) -> Var:
        """``x[key]`` as in PyTorch: integers, slices with steps of either sign, ``...``, None, variables of integers or bools, lists.

        Bounds of slices are clipped to the axis, even if its size is a symbol: the size of ``x[:, :512]`` is ``min(t,512)``. An integer must be
        an index of the axis; for a symbolic size this is checked when the program runs. Variables of integers are broadcast; if they are not
        adjacent, their axes come first. A variable of bools selects its true positions, whose number is known when the program runs. Raises
        ShapeError and ArgumentError.
        """

    def __gt__(self, other: Var | complex) -> Var:
        """greater(x: real[*#s], y: real[*#s]) -> z: bool[*#s]

        ``x > y``, elementwise.
        """

    def __invert__(self) -> Var:
        """Elementwise NOT; for integers, bitwise."""
    __iter__: None

    def __le__(self, other: Var | complex) -> Var:
        """less_equal(x: real[*#s], y: real[*#s]) -> z: bool[*#s]

        ``x <= y``, elementwise.
        """

    def __lshift__(self, other: Var | complex) -> Var:
        """bitwise_left_shift(x: integer[*#s], y: integer[*#s]) -> z: integer[*#s]

        ``x`` shifted left by ``y`` bits; 0 if ``y`` is negative or at least the number of bits.
        """

    def __lt__(self, other: Var | complex) -> Var:
        """less(x: real[*#s], y: real[*#s]) -> z: bool[*#s]

        ``x < y``, elementwise.
        """

    def __matmul__(self, other: Var) -> Var:
        """The matrix product by NumPy's rules."""

    def __mod__(self, other: Var | complex) -> Var:
        """remainder(x: real[*#s], y: real[*#s]) -> z: real[*#s]

        ``x - floor_divide(x, y) * y``, which has the sign of ``y``. Division of an integer by 0 raises KernelError.
        """

    def __mul__(self, other: Var | complex) -> Var:
        """multiply(x: number[*#s], y: number[*#s]) -> z: number[*#s]

        ``z = x * y``, elementwise.
        """

    def __ne__(self, other: object) -> Var:
        """Return the elementwise comparison, bool. True for None, text and other objects without values."""

    def __neg__(self) -> Var:
        """neg(x: number[*b]) -> y: number[*b]

        ``y = -x``.
        """

    def __or__(self, other: Var | complex) -> Var:
        """Elementwise OR; for integers, bitwise."""

    def __pow__(self, exponent: Var | complex) -> Var:
        """``x`` to the power of a number or a variable."""

    def __radd__(self, other: Var | complex) -> Var:
        """add(x: number[*#s], y: number[*#s]) -> z: number[*#s]

        ``z = x + y``.
        """

    def __rand__(self, other: Var | complex) -> Var:
        """Elementwise AND; for integers, bitwise."""

    def __rfloordiv__(self, other: Var | complex) -> Var:
        """floor_divide(x: real[*#s], y: real[*#s]) -> z: real[*#s]

        ``x / y``, rounded down. Division of an integer by 0 raises KernelError. The gradient is zero wherever it is defined.
        """

    def __rlshift__(self, other: Var | complex) -> Var:
        """bitwise_left_shift(x: integer[*#s], y: integer[*#s]) -> z: integer[*#s]

        ``x`` shifted left by ``y`` bits; 0 if ``y`` is negative or at least the number of bits.
        """

    def __rmod__(self, other: Var | complex) -> Var:
        """remainder(x: real[*#s], y: real[*#s]) -> z: real[*#s]

        ``x - floor_divide(x, y) * y``, which has the sign of ``y``. Division of an integer by 0 raises KernelError.
        """

    def __rmul__(self, other: Var | complex) -> Var:
        """multiply(x: number[*#s], y: number[*#s]) -> z: number[*#s]

        ``z = x * y``, elementwise.
        """

    def __ror__(self, other: Var | complex) -> Var:
        """Elementwise OR; for integers, bitwise."""

    def __rpow__(self, other: Var | complex) -> Var:
        """power(x: number[*#s], y: number[*#s]) -> z: number[*#s]

        ``x`` to the power ``y``. For integers and a negative power, the result is truncated, and 0 for a base of 0.
        """

    def __rrshift__(self, other: Var | complex) -> Var:
        """bitwise_right_shift(x: integer[*#s], y: integer[*#s]) -> z: integer[*#s]

        ``x`` shifted right by ``y`` bits, rounding down; only the sign remains if ``y`` is negative or exceeds the number of bits.
        """

    def __rshift__(self, other: Var | complex) -> Var:
        """bitwise_right_shift(x: integer[*#s], y: integer[*#s]) -> z: integer[*#s]

        ``x`` shifted right by ``y`` bits, rounding down; only the sign remains if ``y`` is negative or exceeds the number of bits.
        """

    def __rsub__(self, other: Var | complex) -> Var:
        """subtract(x: number[*#s], y: number[*#s]) -> z: number[*#s]

        ``z = x - y``.
        """

    def __rtruediv__(self, other: Var | complex) -> Var:
        """divide(x: inexact[*#s], y: inexact[*#s]) -> z: inexact[*#s]

        ``z = x / y``.
        """

    def __rxor__(self, other: Var | complex) -> Var:
        """Elementwise XOR; for integers, bitwise."""

    def __sub__(self, other: Var | complex) -> Var:
        """subtract(x: number[*#s], y: number[*#s]) -> z: number[*#s]

        ``z = x - y``.
        """

    def __truediv__(self, other: Var | complex) -> Var:
        """divide(x: inexact[*#s], y: inexact[*#s]) -> z: inexact[*#s]

        ``z = x / y``.
        """

    def __xor__(self, other: Var | complex) -> Var:
        """Elementwise XOR; for integers, bitwise."""

    def as_step_input(self) -> Var:
        """Return one step of a sequence, also as `x.as_step_input()`: `step_input` of the recurrence whose step is open.

        Raises ProgramError outside a step.
        """
