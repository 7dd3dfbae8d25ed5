"""Block: variables and the ops over them, in order."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from oarlock.errors import DTypeError, ProgramError, ShapeError, UndefinedVarError
from oarlock.ir import block_stack
from oarlock.ir.attached import AttachedToBlock
from oarlock.ir.dtype import DType
from oarlock.ir.location import Location, here
from oarlock.ir.names import ALIASES, is_name
from oarlock.ir.operation import Op, Role
from oarlock.ir.sharding import Sharding
from oarlock.ir.size import Shape, Size
from oarlock.ir.update_settings import AS_OTHERS, UpdateSettings
from oarlock.ir.var import Initializer, Var, is_among
from oarlock.old_names import OLD_VARIABLE_KEYWORDS, takes_old_keywords
from oarlock.proto import program_pb2 as wire
from oarlock.suggestions import did_you_mean, list_names

if TYPE_CHECKING:
    from oarlock.ir.program import Program

__all__ = ["Argument", "Block"]

Argument = Var | str | Sequence[Var | str]
"""The argument of one slot of an op: a variable or its name, or a sequence of them."""


class Block(AttachedToBlock):
    """A list of ops with the variables declared for them, inside an optional parent block.

    `inputs` are the variables whose values come from outside: fed, in the main block; passed by the owning op, in a nested block.
    `outputs` are the results of a nested block, in the order of the owner's signature. A block is a symbol table: its variables are looked
    up by name, then those of its parents. Every variable is defined once, by an op or as an input. The only exceptions are the ops at the
    end of the main block that write persistable variables, its `tail`.

    `Block(desc)` is the main block of a new program read from `desc`, a ProgramDesc, or a BlockDesc without nested blocks.
    Raises VerifyError and LimitError. `program.new_block` creates a nested block.
    """

    def __init__(
        self, program: "Program | wire.ProgramDesc | wire.BlockDesc", index: int = 0, name: str = "main", parent: "Block | None" = None
    ):
        if isinstance(program, wire.ProgramDesc | wire.BlockDesc):
            from oarlock.ir.serialization import read_description

            read_description(program, main=self)
            return
        self.program = program
        self.index = index
        self.name = name
        self.parent = parent
        self.inputs: list[Var] = []
        self.outputs: list[Var] = []
        self.vars: dict[str, Var] = {}
        self.splits: dict[Size, Var] = {}  # size -> the row splits last declared for it, which may have been removed from this block since
        self.ops: list[Op] = []
        self.stand_in: Callable[[Var], Var] | None = None
        """Set while a loop body is being built: maps an outer variable to the variable that replaces it in the body."""

    @property
    def path(self) -> str:
        """The names of the blocks from the main block to this one: `main/rnn_0.body`."""
        return "/".join(reversed([block.name for block in self.enclosing()]))

    def __repr__(self) -> str:
        return f"<Block {self.path}: {len(self.vars)} variables, {len(self.ops)} ops>"

    def _repr_html_(self) -> str | None:
        """Return the drawing for notebooks."""
        from oarlock.drawing.program import draw

        return draw(self)._repr_html_()

    def __enter__(self) -> "Block":
        block_stack.push(self)
        return self

    def __exit__(self, *exception: object) -> None:
        block_stack.pop(self)

    # Variables

    def find_var(self, name: str, *, recursive: bool = True) -> Var | None:
        """Return the variable `name` of this block or, if `recursive`, of the nearest parent that has one; None if there is none."""
        block: Block | None = self
        while block is not None:
            if name in block.vars:
                return block.vars[name]
            block = block.parent if recursive else None
        return None

    def var(self, name: str) -> Var:
        """Return the variable `name` of this block or its parents. Raises UndefinedVarError."""
        var = self.find_var(name)
        if var is not None:
            return var
        raise self.absent(name)

    def absent(self, name: str, labels: Sequence[str] = ()) -> UndefinedVarError:
        """Return the error for an unknown name. It lists the visible variables and the `labels`, the other names that were searched."""
        visible = [*labels, *(name for block in self.enclosing() for name in block.listed_vars())]
        elsewhere = [other for other in self.program.blocks if name in other.vars]
        return UndefinedVarError(
            f'"{name}" is not visible in {self.path}',
            location=here(),
            given=[
                *(f"declared in {other.path}, which {self.path} cannot see" for other in elsewhere),
                f"there are: {list_names(name, visible)}" if visible else "there is nothing",
            ],
            hint=did_you_mean(name, visible),
        )

    def listed_vars(self) -> list[str]:
        """Return the names of the variables for an error message: results of forward ops, latest first, then inputs and parameters, then
        the rest.
        """
        computed = [name for name, var in self.vars.items() if var.op is not None and var.op.role is Role.FORWARD and "@" not in name]
        given = [name for name, var in self.vars.items() if var.parameter or is_among(var, self.inputs)]
        return list(dict.fromkeys([*reversed(computed), *given, *self.vars]))

    def seen(self, var: Var) -> Var:
        """Return the variable that an op of this block reads when given `var`: its current step if an enclosing loop iterates over it, else
        `var`.
        """
        if self.parent is None or var.block is self:
            return var
        around = list(self.enclosing())
        if var.block in around:
            for block in reversed(around[: around.index(var.block)]):
                if block.stand_in is not None:
                    var = block.stand_in(var)
        return var

    def splits_of(self, size: Size) -> Var | None:
        """Return the row splits that divide a dimension of this size, from this block or the nearest parent; None if it is not ragged."""
        if isinstance(size, str):
            for block in self.enclosing():
                found = block.splits.get(size)
                if found is not None and found.row_splits_of == size and block.vars.get(found.name) is found:
                    return found
        return None

    def rename(self, var: Var, name: str) -> None:
        """Rename a variable of this block. Ops refer to variables, not names, so they need no change."""
        if name in self.vars:
            raise ProgramError(f'"{name}" is already declared in {self.path}')
        del self.vars[var.name]
        var.name = name
        self.vars[name] = var
        self.program.changed(taken=name)

    def enclosing(self) -> "Iterator[Block]":
        """Yield this block, then each block around it."""
        block: Block | None = self
        while block is not None:
            yield block
            block = block.parent

    @takes_old_keywords(OLD_VARIABLE_KEYWORDS)
    def new_var(
        self,
        name: str = "",
        dtype: DType | str = DType.FLOAT32,
        shape: Shape | None = None,
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
    ) -> Var:
        """Declare a variable in this block; without a name, it gets an unused one.

        A float32 variable without a shape takes the type of the op that writes it. Raises ProgramError for an illegal name or one that the
        block already has, and DTypeError for an unknown dtype.
        """
        if name == "":
            name = self.program.unique("var")
        if not isinstance(name, str) or not is_name(name):
            raise ProgramError(
                f"{name!r:.80} cannot be a variable's name",
                location=location or here(),
                contract="a name has 1 to 256 of the characters A-Z a-z 0-9 _ . / @ - and no '..'",
                hint="use program.unique(stem) to get an unused name",
            )
        if name in self.vars:
            raise ProgramError(
                f'"{name}" is declared twice in {self.path}',
                location=location or here(),
                given=[self.vars[name].describe()],
                hint="rename one of them, or use the existing variable",
            )
        var = Var(
            self,
            name,
            dtype if isinstance(dtype, DType) else DType.of(dtype),
            shape,
            persistable=persistable,
            parameter=parameter,
            trainable=trainable,
            stop_gradient=stop_gradient,
            initializer=initializer,
            row_splits_of=row_splits_of,
            update_settings=update_settings,
            sharding=sharding,
            place=place,
            location=location or self.program.writing[1] or here(),
        )
        self.vars[name] = var
        self.program.claim_symbols((*(shape or ()), row_splits_of or 1))
        self.program.changed(taken=name)
        return var

    def ordered_vars(self) -> list[Var]:
        """Return the variables in file order: inputs, persistable variables, results of ops, the rest."""
        order = [*self.inputs, *(var for var in self.vars.values() if var.persistable)]
        order += [var for op in self.ops for var in op.writes]
        return list(dict.fromkeys([*order, *self.vars.values()]))

    # Ops

    @property
    def tail(self) -> list[Op]:
        """The ops at the end of the block that write persistable variables."""
        return self.ops[self.tail_start :]

    @property
    def tail_start(self) -> int:
        """The index of the first op of the tail."""
        start = len(self.ops)
        while start and self.ops[start - 1].is_commit:
            start -= 1
        return start

    def append(
        self,
        type: str,
        inputs: Mapping[str, Sequence[Var]],
        outputs: Mapping[str, Sequence[Var]],
        attributes: Mapping[str, object],
        *,
        name: str = "",
    ) -> Op:
        """Append an op before the tail. Its outputs must be variables of this block, and its blocks must be inside this block.

        The op is not checked against its operator; `new_op` and `oarlock.registry.append_op` do that.
        """
        role, location = self.program.writing
        blocks = tuple(value for value in attributes.values() if isinstance(value, Block))
        if any(inner.parent is not self for inner in blocks):
            raise ProgramError(
                f"{type}: an op cannot own a block outside {self.path}",
                location=here(),
                contract="the parent of an op's blocks is the block of the op",
            )
        op = Op(
            self,
            type,
            {slot: tuple(vars) for slot, vars in inputs.items()},
            {slot: tuple(vars) for slot, vars in outputs.items()},
            dict(attributes),
            blocks=blocks,
            role=role,
            location=location or here(),
            name=name,
        )
        self.ops.insert(len(self.ops) if op.is_commit else self.tail_start, op)
        for var in op.writes:
            if not var.persistable:
                var.op = op
        self.program.changed(taken=name or None)
        return op

    def resolve(self, argument: Argument) -> tuple[Var, ...]:
        """Return the variables of one slot, given as variables or by name. Raises UndefinedVarError and ProgramError."""
        items = [argument] if isinstance(argument, Var | str) else argument
        found = tuple(self.var(item) if isinstance(item, str) else item for item in items)
        for var in found:
            if var.block.program is not self.program:
                raise ProgramError(f'"{var.name}" belongs to another program', location=here(), given=[var.describe()])
        return found

    def find_op(self, name: str) -> Op | None:
        """Return the op of this block called `name`, or None."""
        return next((op for op in self.ops if op.name == name), None) if name else None

    def compile(self) -> "wire.BlockDesc":
        """Return the block in the file format. Later edits of the block do not change the message."""
        from oarlock.ir.serialization import block_desc

        return block_desc(self)

    def commit(self, var: Var, value: Var, *, role: Role = Role.UPDATE) -> Op:
        """Assign `value` to the persistable variable `var` at the end of the step.

        All commits are at the end of the main block, so every other op reads the old value. A commit with the role FORWARD, such as the
        running statistics of batch norm, is kept when a program is pruned for inference. One with the role MEASURE is kept too and also
        runs outside training: metrics use it. Raises ProgramError if `var` cannot be written here or is already updated, DTypeError or
        ShapeError if the types differ.
        """
        if self.parent is not None or not var.persistable or var.block is not self:
            raise ProgramError(
                f'"{var.name}" cannot be written in {self.path}',
                location=here(),
                contract="a step writes only persistable variables of the main block, after all other ops",
            )
        if any(is_among(var, op.writes) for op in self.tail):
            raise ProgramError(f'"{var.name}" is updated twice in one step', location=here())
        if value.dtype is not var.dtype or value.shape != var.shape:
            error = DTypeError if value.dtype is not var.dtype else ShapeError
            raise error(
                f'"{var.name}" is declared as {var.type_text} and cannot be assigned "{value.name}", {value.type_text}',
                location=here(),
                given=[var.describe(), value.describe()],
            )
        with self.program.write_as(role):
            return self.append("assign", {"x": [value]}, {"y": [var]}, {})

    def keep(self, ops: Sequence[Op]) -> None:
        """Reduce the ops to `ops`, a subset, and drop the local variables that they do not use. Aliases of parameters are kept."""
        self.ops = list(ops)
        used = {var for op in ops for var in (*op.reads, *op.writes)} | set(self.inputs) | set(self.outputs)
        used |= set(self.program.targets.values())
        self.vars = {name: var for name, var in self.vars.items() if var in used or name == ALIASES}
        self.program.changed()
