"""Var: what a program says about one value. It holds no data; a scope does."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from oarlock.errors import ArgumentError
from oarlock.ir.attached import AttachedToVar
from oarlock.ir.dtype import DType
from oarlock.ir.location import Location, here
from oarlock.ir.sharding import Sharding
from oarlock.ir.size import Shape, format_shape
from oarlock.ir.update_settings import AS_OTHERS, UpdateSettings
from oarlock.old_names import OLD_VARIABLE_KEYWORDS, renamed
from oarlock.suggestions import no_member

if TYPE_CHECKING:
    from oarlock.ir.block import Block
    from oarlock.ir.operation import Op

__all__ = ["HeldValue", "Initializer", "Var", "are_same", "is_among"]


@dataclass(frozen=True)
class Initializer:
    """How a variable gets its first value: the name of a rule, such as "constant", "normal" or "array", and its attributes."""

    type: str
    attributes: dict[str, object] = field(default_factory=dict)


class HeldValue(Initializer):
    """The first value itself, a tensor that is in memory: what an imported module brings along.

    No file of a program holds it, and no text: a saved model has the values of its parameters beside its program. Copies share it.
    """

    def __init__(self, value: object):
        super().__init__("held", {"value": value})

    __eq__ = object.__eq__  # type: ignore[assignment]
    __hash__ = object.__hash__


class Var(AttachedToVar):
    """A variable of a block: its name, dtype, shape and flags.

    `==` compares values, as `ol.op.equal` does: it gives a variable of bools. Two Vars are the same variable only if they are the same
    object, `x is y`, as sets and dicts take them. `op` is the op that defines it, None for an input or a persistable variable. Row splits
    name in `row_splits_of` the dimension that they cut into rows: `Block.splits_of` finds them by it. `update_settings` is what is
    particular to the updates of a parameter; optimizers read it. `sharding` says how workers divide the value of a persistable variable,
    if they do; `place` is the number of the place, of those that a run is given, at which its value lies.
    """

    __slots__ = (
        "_row_splits_of",
        "block",
        "dtype",
        "initializer",
        "location",
        "name",
        "op",
        "parameter",
        "persistable",
        "place",
        "shape",
        "sharding",
        "stop_gradient",
        "trainable",
        "update_settings",
    )

    def __init__(
        self,
        block: "Block",
        name: str,
        dtype: DType,
        shape: Shape | None,
        *,
        persistable: bool = False,
        parameter: bool = False,
        trainable: bool = False,
        stop_gradient: bool = False,
        initializer: Initializer | None = None,
        row_splits_of: str | None = None,
        update_settings: UpdateSettings = AS_OTHERS,
        sharding: Sharding | None = None,
        place: int = 0,
        location: Location | None = None,
    ):
        self.block = block
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.persistable = persistable
        self.parameter = parameter
        self.trainable = trainable
        self.stop_gradient = stop_gradient
        self.initializer = initializer
        self._row_splits_of: str | None = None
        self.row_splits_of = row_splits_of
        self.update_settings = update_settings
        self.sharding = sharding
        self.place = place
        self.location = location
        self.op: Op | None = None

    @property
    def row_splits_of(self) -> str | None:
        """The size that these row splits cut into rows; None for what are no row splits."""
        return self._row_splits_of

    @row_splits_of.setter
    def row_splits_of(self, size: str | None) -> None:
        self._row_splits_of = size
        if size is not None:
            self.block.splits[size] = self  # one that is asked for long after this is not searched for among all variables

    @property
    def partitions(self) -> str | None:
        """`row_splits_of` by its old name, which warns."""
        return getattr(self, renamed("attribute of a variable", "partitions", OLD_VARIABLE_KEYWORDS))

    @partitions.setter
    def partitions(self, size: str | None) -> None:
        setattr(self, renamed("attribute of a variable", "partitions", OLD_VARIABLE_KEYWORDS), size)

    @property
    def path(self) -> str:
        """The name with the blocks around it: `main/rnn_0.body/z`."""
        return f"{self.block.path}/{self.name}"

    @property
    def ndim(self) -> int | None:
        """The number of dimensions, or None if the shape is unknown."""
        return None if self.shape is None else len(self.shape)

    @property
    def whole_shape(self) -> Shape | None:
        """The shape of the whole value: another than `shape` where the variable has a worker's share of it."""
        return self.shape if self.sharding is None or self.shape is None else self.sharding.whole(self.shape)

    @property
    def type_text(self) -> str:
        """`float32[n, 10]`."""
        return f"{self.dtype}{format_shape(self.shape)}"

    @property
    def readers(self) -> "list[Op]":
        """The ops that read it, of its block and of the blocks inside, in program order. Computed when asked for."""
        from oarlock.ir.traversal import walk

        return [op for op in walk(self.block) if is_among(self, op.reads)]

    @property
    def writers(self) -> "list[Op]":
        """The ops that write it: the one that defines it; of a persistable variable, the one that commits. As `readers`."""
        from oarlock.ir.traversal import walk

        return [op for op in walk(self.block) if is_among(self, op.writes)]

    if not TYPE_CHECKING:  # which would take every name for one that there is

        def __getattr__(self, name: str) -> object:
            raise no_member(type(self).__name__, name, dir(type(self)))

    def describe(self) -> str:
        """`"fc_0.w"   float32[784, 10]   parameter; created at mnist.py:19`, for messages."""
        if self.parameter:
            kind = "parameter; created"
        elif self.persistable:
            kind = "persistable; created"
        elif is_among(self, self.block.inputs):
            kind = "fed; declared" if self.block.parent is None else "handed in; declared"
        else:
            kind = f"from {self.op.type}" if self.op else "declared"
        where = f" at {self.location.file}:{self.location.line}" if self.location else ""
        return f'"{self.name}"   {self.type_text}   {kind}{where}'

    def __repr__(self) -> str:
        return f"<Var {self.path} {self.type_text}>"

    __hash__ = object.__hash__  # type: ignore[assignment]  # `==`, which a file of a higher floor attaches, compares values

    def __bool__(self) -> bool:
        compared = self.op is not None and self.op.type in ("equal", "not_equal")
        raise ArgumentError(
            f'"{self.name}" has no value while the program is being written, so Python cannot branch on it',
            location=here(),
            given=[self.describe()],
            hint="ol.cond chooses by one bool, ol.ifelse for each row, ol.while_loop repeats"
            + ("; `x is y` asks whether two variables are one" if compared else ""),
        )


def is_among(var: Var, vars: Iterable[Var]) -> bool:
    """Whether a variable is one of several. Python's `in` would compare the values of those in a list or a tuple."""
    return any(var is other for other in vars)


def are_same(vars: Sequence[Var], others: Sequence[Var]) -> bool:
    """Whether two sequences have the same variables in the same order. Python's `==` would compare their values."""
    return len(vars) == len(others) and all(var is other for var, other in zip(vars, others, strict=True))
