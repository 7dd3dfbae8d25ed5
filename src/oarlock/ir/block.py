"""Block: local variables and the ops over them, in order."""

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
"""An argument for one slot of an op: a variable or its name, or any number of them."""


class Block(AttachedToBlock):
    """A pair of braces: the variables declared here, the ops that run here, and the block around it.

    `inputs` are the variables whose values come from outside: fed, in the main block; handed in by the
    op that owns the block, elsewhere. `outputs` are what a nested block hands back, in the order that
    its owner's signature gives. A block is its own symbol table: what is declared in it, by name, and from
    which names of the blocks around it are seen. Every variable is defined once, by an op or as an input; the ops at the
    end of the main block that write persistable variables, its `tail`, are the only exception.

    `Block(desc)` is the main block of a new program, which `desc` describes: a ProgramDesc, or a BlockDesc without blocks inside it.
    Raises VerifyError and LimitError. `program.new_block` makes a block inside another.
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
        self.splits: dict[Size, Var] = {}  # a size -> who was last said to cut it, be it a variable of this block still or not
        self.ops: list[Op] = []
        self.stand_in: Callable[[Var], Var] | None = None
        """While the step of a loop is written here: what a variable of outside stands for in it."""

    @property
    def path(self) -> str:
        """The names of the blocks from the main one to this: `main/rnn_0.body`."""
        return "/".join(reversed([block.name for block in self.enclosing()]))

    def __repr__(self) -> str:
        return f"<Block {self.path}: {len(self.vars)} variables, {len(self.ops)} ops>"

    def _repr_html_(self) -> str | None:
        """The drawing that a notebook shows."""
        from oarlock.drawing.program import draw

        return draw(self)._repr_html_()

    def __enter__(self) -> "Block":
        block_stack.push(self)
        return self

    def __exit__(self, *exception: object) -> None:
        block_stack.pop(self)

    # Variables

    def find_var(self, name: str, *, recursive: bool = True) -> Var | None:
        """The variable called `name`, here or (if `recursive`) in the nearest block around; None if there is none."""
        block: Block | None = self
        while block is not None:
            if name in block.vars:
                return block.vars[name]
            block = block.parent if recursive else None
        return None

    def var(self, name: str) -> Var:
        """The variable called `name` that is visible here. Raises UndefinedVarError."""
        var = self.find_var(name)
        if var is not None:
            return var
        raise self.absent(name)

    def absent(self, name: str, labels: Sequence[str] = ()) -> UndefinedVarError:
        """The error for a name that is not visible here, nor one of the `labels` by which it might be asked for: it lists what is."""
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
        """The names of the variables here, as people ask for them: what forward ops compute, the last first; what is given; the rest."""
        computed = [name for name, var in self.vars.items() if var.op is not None and var.op.role is Role.FORWARD and "@" not in name]
        given = [name for name, var in self.vars.items() if var.parameter or is_among(var, self.inputs)]
        return list(dict.fromkeys([*reversed(computed), *given, *self.vars]))

    def seen(self, var: Var) -> Var:
        """The variable that an op of this block reads when given `var`: its step where a loop around steps through it, else itself."""
        if self.parent is None or var.block is self:
            return var
        around = list(self.enclosing())
        if var.block in around:
            for block in reversed(around[: around.index(var.block)]):
                if block.stand_in is not None:
                    var = block.stand_in(var)
        return var

    def splits_of(self, size: Size) -> Var | None:
        """The row splits by which a dimension of this size is cut, here or in the nearest block around; None where it is not."""
        if isinstance(size, str):
            for block in self.enclosing():
                found = block.splits.get(size)
                if found is not None and found.row_splits_of == size and block.vars.get(found.name) is found:
                    return found
        return None

    def rename(self, var: Var, name: str) -> None:
        """Call a variable of this block `name` instead. Ops hold variables, so nothing else changes."""
        if name in self.vars:
            raise ProgramError(f'"{name}" is declared in {self.path} already')
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
        """Declare a variable here; without a name it gets one that nothing in the program has.

        A float32 variable without a shape takes the type of the op that writes it. Raises ProgramError for a name that the block has
        already and for an illegal one, DTypeError for an unknown dtype.
        """
        if name == "":
            name = self.program.unique("var")
        if not isinstance(name, str) or not is_name(name):
            raise ProgramError(
                f"{name!r:.80} cannot be a variable's name",
                location=location or here(),
                contract="a name has 1 to 256 of the characters A-Z a-z 0-9 _ . / @ - and no '..'",
                hint="program.unique(stem) makes one that is free",
            )
        if name in self.vars:
            raise ProgramError(
                f'"{name}" is declared twice in {self.path}',
                location=location or here(),
                given=[self.vars[name].describe()],
                hint="give one of them another name, or read the first one where you meant it",
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
        """The variables in the order in which a file lists them: inputs, persistable ones, what ops define, the rest."""
        order = [*self.inputs, *(var for var in self.vars.values() if var.persistable)]
        order += [var for op in self.ops for var in op.writes]
        return list(dict.fromkeys([*order, *self.vars.values()]))

    # Ops

    @property
    def tail(self) -> list[Op]:
        """The ops at the end that write persistable variables."""
        return self.ops[self.tail_start :]

    @property
    def tail_start(self) -> int:
        """Where the tail begins: how many ops stand before it."""
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
        """Add an op after the others, yet before the tail. Its outputs must be variables of this block, its blocks inside it.

        The op is not checked against its operator: `new_op` and `oarlock.registry.append_op` do that.
        """
        role, location = self.program.writing
        blocks = tuple(value for value in attributes.values() if isinstance(value, Block))
        if any(inner.parent is not self for inner in blocks):
            raise ProgramError(
                f"{type}: it cannot own a block that is not inside {self.path}",
                location=here(),
                contract="an op owns blocks whose parent is its own block, so no block can contain itself",
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
        """The variables of one slot, each of them given by itself or by its name. Raises UndefinedVarError and ProgramError."""
        items = [argument] if isinstance(argument, Var | str) else argument
        found = tuple(self.var(item) if isinstance(item, str) else item for item in items)
        for var in found:
            if var.block.program is not self.program:
                raise ProgramError(f'"{var.name}" is a variable of another program', location=here(), given=[var.describe()])
        return found

    def find_op(self, name: str) -> Op | None:
        """The op of this block that is called `name`; None where there is none."""
        return next((op for op in self.ops if op.name == name), None) if name else None

    def compile(self) -> "wire.BlockDesc":
        """Return the block as a file would hold it: a message of its own, which later edits of the block do not reach."""
        from oarlock.ir.serialization import block_desc

        return block_desc(self)

    def commit(self, var: Var, value: Var, *, role: Role = Role.UPDATE) -> Op:
        """Make `value` what the persistable `var` holds after the step. Raises ProgramError when it is not legal.

        All commits stand at the end of the main block, so that every op before them reads the old value. One whose `role` is FORWARD
        belongs to the ops that predict, as the running statistics of batch norm do: it stays with them where a program is pruned. One whose
        `role` is MEASURE does so too, and is made in every run, training or not: a metric counts what it saw. Raises DTypeError
        or ShapeError for a value of another type.
        """
        if self.parent is not None or not var.persistable or var.block is not self:
            raise ProgramError(
                f'"{var.name}" cannot be written in {self.path}',
                location=here(),
                contract="a step writes persistable variables of the main block only, after every other op",
            )
        if any(is_among(var, op.writes) for op in self.tail):
            raise ProgramError(f'"{var.name}" is updated twice in one step', location=here())
        if value.dtype is not var.dtype or value.shape != var.shape:
            error = DTypeError if value.dtype is not var.dtype else ShapeError
            raise error(
                f'"{var.name}" is declared {var.type_text}, so it cannot hold "{value.name}", {value.type_text}',
                location=here(),
                given=[var.describe(), value.describe()],
            )
        with self.program.write_as(role):
            return self.append("assign", {"x": [value]}, {"y": [var]}, {})

    def keep(self, ops: Sequence[Op]) -> None:
        """Replace the ops by `ops`, which are some of them, and forget local variables that none of them uses; the other names of those
        that stay are kept.
        """
        self.ops = list(ops)
        used = {var for op in ops for var in (*op.reads, *op.writes)} | set(self.inputs) | set(self.outputs)
        used |= set(self.program.targets.values())
        self.vars = {name: var for name, var in self.vars.items() if var in used or name == ALIASES}
        self.program.changed()
