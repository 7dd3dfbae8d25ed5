"""Var: the declaration of one value. The value itself is stored in a scope."""

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
    """The rule for the first value of a variable: its name, such as "constant", "normal" or "array", and attributes."""

    type: str
    attributes: dict[str, object] = field(default_factory=dict)


class HeldValue(Initializer):
    """The first value itself, a tensor in memory, as imported modules provide it.

    It is not written to files or text: a saved model stores the values of its parameters next to the program. Copies of the program share
    it.
    """

    def __init__(self, value: object):
        super().__init__("held", {"value": value})

    __eq__ = object.__eq__  # type: ignore[assignment]
    __hash__ = object.__hash__


class Var(AttachedToVar):
    """A variable of a block: its name, dtype, shape and flags.

    `==` compares values, as `ol.op.equal` does, and returns a variable of bools. To test whether two Vars are the same variable use
    `x is y`; sets and dicts compare by identity. `op` is the op that defines the variable, None for an input or a persistable variable.
    `row_splits_of`, for row splits, is the size of the dimension that they divide into rows; `Block.splits_of` finds them by it.
    `update_settings` holds the per-parameter options that optimizers read. `sharding` describes how workers divide a persistable variable
    (None: not divided). `place` is the index, among the places of a run, of the place that stores the value.
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
        """The size that these row splits divide into rows; None for a variable that is not row splits."""
        return self._row_splits_of

    @row_splits_of.setter
    def row_splits_of(self, size: str | None) -> None:
        self._row_splits_of = size
        if size is not None:
            self.block.splits[size] = self  # lets splits_of find it without searching all variables

    @property
    def partitions(self) -> str | None:
        """Deprecated name of `row_splits_of`; warns."""
        return getattr(self, renamed("attribute of a variable", "partitions", OLD_VARIABLE_KEYWORDS))

    @partitions.setter
    def partitions(self, size: str | None) -> None:
        setattr(self, renamed("attribute of a variable", "partitions", OLD_VARIABLE_KEYWORDS), size)

    @property
    def path(self) -> str:
        """The name with its enclosing blocks: `main/rnn_0.body/z`."""
        return f"{self.block.path}/{self.name}"

    @property
    def ndim(self) -> int | None:
        """The number of dimensions, or None if the shape is unknown."""
        return None if self.shape is None else len(self.shape)

    @property
    def whole_shape(self) -> Shape | None:
        """The shape of the complete value. Differs from `shape` if the variable is one worker's shard."""
        return self.shape if self.sharding is None or self.shape is None else self.sharding.whole(self.shape)

    @property
    def type_text(self) -> str:
        """The type as text: `float32[n, 10]`."""
        return f"{self.dtype}{format_shape(self.shape)}"

    @property
    def readers(self) -> "list[Op]":
        """The ops that read the variable, in its block and nested blocks, in program order. Computed on each access."""
        from oarlock.ir.traversal import walk

        return [op for op in walk(self.block) if is_among(self, op.reads)]

    @property
    def writers(self) -> "list[Op]":
        """The ops that write the variable: the defining op, or the commit of a persistable variable. Computed on each access."""
        from oarlock.ir.traversal import walk

        return [op for op in walk(self.block) if is_among(self, op.writes)]

    if not TYPE_CHECKING:  # type checkers would otherwise accept any attribute

        def __getattr__(self, name: str) -> object:
            raise no_member(type(self).__name__, name, dir(type(self)))

    def describe(self) -> str:
        """Return a description for messages: `"fc_0.w"   float32[784, 10]   parameter; created at mnist.py:19`."""
        if self.parameter:
            kind = "parameter; created"
        elif self.persistable:
            kind = "persistable; created"
        elif is_among(self, self.block.inputs):
            kind = "fed; declared" if self.block.parent is None else "passed in; declared"
        else:
            kind = f"from {self.op.type}" if self.op else "declared"
        where = f" at {self.location.file}:{self.location.line}" if self.location else ""
        return f'"{self.name}"   {self.type_text}   {kind}{where}'

    def __repr__(self) -> str:
        return f"<Var {self.path} {self.type_text}>"

    __hash__ = object.__hash__  # type: ignore[assignment]  # `==`, attached by a higher layer, compares values

    def __bool__(self) -> bool:
        compared = self.op is not None and self.op.type in ("equal", "not_equal")
        raise ArgumentError(
            f'"{self.name}" has no value while the program is being built, so Python cannot branch on it',
            location=here(),
            given=[self.describe()],
            hint="use ol.cond to branch on one bool, ol.ifelse to branch per row, ol.while_loop to repeat"
            + ("; use `x is y` to test identity" if compared else ""),
        )


def is_among(var: Var, vars: Iterable[Var]) -> bool:
    """Return whether `vars` contains `var` by identity. (`in` would compare values in a list or tuple.)"""
    return any(var is other for other in vars)


def are_same(vars: Sequence[Var], others: Sequence[Var]) -> bool:
    """Return whether two sequences contain the same variables in the same order, by identity. (`==` would compare values.)"""
    return len(vars) == len(others) and all(var is other for var, other in zip(vars, others, strict=True))
