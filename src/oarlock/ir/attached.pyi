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
    """The members of `Block` that its own file does not have: each file that attaches some is loaded when one of these is first used."""

    def eval(self, targets: Var | str | Sequence[Var | str], scope: Scope, context: Context | Place | None = None, feed: Mapping[str, object] | None = None) -> list[ndarray] | list[Tensor] | ndarray | Tensor:
        """The value of a variable of the block, given by itself or its name, or of several, as arrays; `scope` is not changed.

        What they need is run, and nothing else.

        Inputs that are not fed are found in `scope`. Raises what `Executor.eval` raises, ProgramError for a block inside another.
        """

    def infer_shape(self, scope: Scope) -> dict[str, TensorType]:
        """`ol.infer_shape`, as a method: the type that every variable of the block has on the values in `scope`, by name."""

    def new_op(self, type: str, inputs: Mapping[str, Var | str | Sequence[Var | str]], outputs: Mapping[str, Var | str | Sequence[Var | str]], attributes: Mapping[str, object] | None = None, name: str = "", *, catalogue: Catalogue = ...) -> Op:
        """Append an op on variables that are declared already, given by themselves or by their names; return it.

        Without a name it gets one that nothing else in the program has. An `assign` to a persistable variable is a commit, as of `commit`.
        Raises UndefinedVarError for a name that is not visible here, ProgramError where `name` is taken, DTypeError or ShapeError where an
        output is declared with another type than follows from the inputs, else what `oarlock.registry.append_op` raises, which also declares
        outputs.
        """

    def run(self, scope: Scope, context: Context | Place | None = None, begin: int | None = None, end: int | None = None, *, keep_scopes: bool = False) -> None:
        """`ol.run_block`, as a method: run the ops [begin, end) of the block, every one of them, in `scope`, at a place or in a context."""

class AttachedToVar:
    """The members of `Var` that its own file does not have."""

    def __abs__(self) -> Var:
        """abs(x: number[*b]) -> y: number.real[*b]

        ``|x|``, a real number. Its gradient at 0 is 0.
        """

    def __add__(self, other: Var | complex) -> Var:
        """add(x: number[*#s], y: number[*#s]) -> z: number[*#s]

        ``z = x + y``.
        """

    def __and__(self, other: Var | complex) -> Var:
        """Where both are true; of integers, the bits that both have."""
    __array_ufunc__: None

    def __eq__(self, other: object) -> Var:
        """Where both have the same value, element by element: bool. False beside None, text and other objects that have no values."""

    def __floordiv__(self, other: Var | complex) -> Var:
        """floor_divide(x: real[*#s], y: real[*#s]) -> z: real[*#s]

        ``x / y``, rounded down. Division of an integer by 0 raises KernelError. The gradient is zero wherever it is defined.
        """

    def __ge__(self, other: Var | complex) -> Var:
        """greater_equal(x: real[*#s], y: real[*#s]) -> z: bool[*#s]

        ``x >= y``, elementwise.
        """

    def __getitem__(self, key: int | slice | ellipsis | Var | None | tuple[int | slice | ellipsis | Var | None, ...]) -> Var:
        """``x[key]`` as in PyTorch: numbers, slices with steps of either sign, ``...``, None, variables of integers or of bools, lists.

        Bounds of slices are clipped to the axis, also where its size is a symbol: the size of ``x[:, :512]`` is ``min(t,512)``. A number has
        to be a place along the axis, which the run checks of a symbol. Variables of integers broadcast; apart, their axes come first.
        One of bools takes the places where it is true, of which the run tells how many there are. Raises ShapeError and ArgumentError.
        """

    def __gt__(self, other: Var | complex) -> Var:
        """greater(x: real[*#s], y: real[*#s]) -> z: bool[*#s]

        ``x > y``, elementwise.
        """

    def __invert__(self) -> Var:
        """Where ``x`` is false; of integers, the bits that it has not."""
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
        """The matrix product by NumPy's rules; rows times a matrix, where that is one."""

    def __mod__(self, other: Var | complex) -> Var:
        """remainder(x: real[*#s], y: real[*#s]) -> z: real[*#s]

        ``x - floor_divide(x, y) * y``, which has the sign of ``y``. Division of an integer by 0 raises KernelError.
        """

    def __mul__(self, other: Var | complex) -> Var:
        """multiply(x: number[*#s], y: number[*#s]) -> z: number[*#s]

        ``z = x * y``, elementwise.
        """

    def __ne__(self, other: object) -> Var:
        """Where the values differ, element by element: bool. True beside None, text and other objects that have no values."""

    def __neg__(self) -> Var:
        """neg(x: number[*b]) -> y: number[*b]

        ``y = -x``.
        """

    def __or__(self, other: Var | complex) -> Var:
        """Where one or both are true; of integers, the bits that one or both have."""

    def __pow__(self, exponent: Var | complex) -> Var:
        """A variable to a power, which is a number or a variable."""

    def __radd__(self, other: Var | complex) -> Var:
        """add(x: number[*#s], y: number[*#s]) -> z: number[*#s]

        ``z = x + y``.
        """

    def __rand__(self, other: Var | complex) -> Var:
        """Where both are true; of integers, the bits that both have."""

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
        """Where one or both are true; of integers, the bits that one or both have."""

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
        """Where just one is true; of integers, the bits that just one has."""

    def __sub__(self, other: Var | complex) -> Var:
        """subtract(x: number[*#s], y: number[*#s]) -> z: number[*#s]

        ``z = x - y``.
        """

    def __truediv__(self, other: Var | complex) -> Var:
        """divide(x: inexact[*#s], y: inexact[*#s]) -> z: inexact[*#s]

        ``z = x / y``.
        """

    def __xor__(self, other: Var | complex) -> Var:
        """Where just one is true; of integers, the bits that just one has."""

    def as_step_input(self) -> Var:
        """One step of a sequence, `x.as_step_input()`: `step_input` of the recurrence whose step is being written.

        Raises ProgramError outside a step.
        """
