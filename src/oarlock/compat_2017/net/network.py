"""Net: the ops of a block in order, and their execution in a scope.

    net = ol.Net()
    with net.program:
        x, y = ol.layer.data("x", shape=[13]), ol.layer.data("y", shape=[1])
        cost = ol.layer.mse(ol.layer.fc(x, 1), y)
    net.add_backward_ops(cost)
    net.add_optimizer_ops({"type": "sgd", "learning_rate": 0.01})
    net.init_variables(scope)
    scope["x"], scope["y"] = rows, prices
    net.run(scope)

It is not a second representation of a program: a net has a block, and its ops and description belong to the block.
"""

from collections.abc import Iterable, Iterator, Mapping

import oarlock.optimizer
from oarlock.errors import ArgumentError, ProgramError
from oarlock.ir.block import Argument, Block
from oarlock.ir.location import here
from oarlock.ir.operation import Op, Role
from oarlock.ir.program import Program
from oarlock.ir.serialization import read_description, read_program
from oarlock.ir.var import Var
from oarlock.optimizer import Optimizer
from oarlock.passes.backward import append_backward
from oarlock.passes.pruning import program_of_main, prune
from oarlock.proto import program_pb2 as wire
from oarlock.registry import append_op, standard, typecheck
from oarlock.registry.creator import describe_value
from oarlock.registry.description import append_desc
from oarlock.registry.signature import TensorType
from oarlock.runtime import Context, Scope, init, run_block
from oarlock.runtime import infer_shape as infer_block_shape
from oarlock.runtime.current_scope import current_scope
from oarlock.suggestions import did_you_mean

__all__ = ["Net", "require_vars_of"]


class Net:
    """The ops of the main block of a program, and their execution. It owns no variables: scopes do.

    `source` is a program or its main block; a description, which is verified - a ProgramDesc, a BlockDesc without nested blocks, or the
    bytes of a program; or None for a new program. Raises VerifyError, FormatError, LimitError or UnknownOperatorError. The index of an op
    is its position; it is stable as long as ops are only appended.
    """

    def __init__(self, source: "Program | Block | wire.BlockDesc | wire.ProgramDesc | bytes | None" = None):
        self.program = _program_of(source)
        self._pairs: list[tuple[Var, Var]] = []

    @property
    def block(self) -> Block:
        """The block of this net."""
        return self.program.main

    @property
    def desc(self) -> "wire.BlockDesc":
        """The current description of the block, called NetDesc in the net design."""
        return self.block.compile()

    def __len__(self) -> int:
        return len(self.block.ops)

    def __getitem__(self, index: int) -> Op:
        return self.block.ops[index]

    def __iter__(self) -> Iterator[Op]:
        return iter(self.block.ops)

    def __repr__(self) -> str:
        return f"<Net of {len(self)} ops>"

    # Ops

    def add_op(
        self,
        op: "str | wire.OpDesc",
        inputs: Mapping[str, Argument] | None = None,
        outputs: Mapping[str, Argument] | None = None,
        attributes: Mapping[str, object] | None = None,
        name: str = "",
    ) -> int:
        """Append an op, given by its operator and slots or as an OpDesc; return its index.

        Shapes are inferred immediately, and missing outputs are declared. Raises ProgramError for a variable of another program, and the
        errors of calling the operator.
        """
        for given in (inputs, outputs, attributes):
            require_vars_of(self.program, (given or {}).values())
        if isinstance(op, wire.OpDesc):
            return self._index(append_desc(self.block, op))
        return self._index(append_op(self.block, op, inputs or {}, outputs, attributes, name))

    def _index(self, op: Op) -> int:
        return next(index for index in reversed(range(len(self))) if self[index] is op)

    def add_backward_ops(self, cost: Var | str) -> list[tuple[Var, Var]]:
        """Append the gradient of `cost`, float[], with respect to every parameter; return (parameter, gradient) pairs.

        Raises ProgramError if there are already backward ops or `cost` belongs to another program, and the errors of `ol.append_backward`.
        """
        require_vars_of(self.program, [cost])
        if any(op.role is Role.BACKWARD for op in self):
            raise ProgramError("this net already has backward ops", location=here(), hint="call net.remove_backward_ops() first")
        self._pairs = append_backward(self.block.var(cost) if isinstance(cost, str) else cost)
        return self._pairs

    def add_optimizer_ops(self, optimizer: Optimizer | Mapping[str, object]) -> None:
        """Append one update per parameter with a gradient; a parameter shared by several layers is updated once.

        `optimizer` is an optimizer such as `ol.optimizer.Adam(1e-3)`, or its attributes: {"type": "adam", "learning_rate": 1e-3}. Raises
        ProgramError if there are no backward ops, or already an optimizer.
        """
        chosen = optimizer if isinstance(optimizer, Optimizer) else _optimizer(optimizer)
        if not self._pairs:
            raise ProgramError("there are no gradients to update parameters with", location=here(), hint="call net.add_backward_ops(cost)")
        chosen.apply(self._pairs)

    def remove_backward_ops(self) -> None:
        """Remove the backward and update ops, and the variables used only by them. The forward ops keep their indices."""
        block, program = self.block, self.program
        removed = [op for op in block.ops if op.role is not Role.FORWARD]
        block.ops = [op for op in block.ops if op.role is Role.FORWARD]
        kept = {var for op in block.ops for var in (*op.reads, *op.writes)}
        kept.update(block.inputs, program.targets.values(), program.parameters())
        gone = {var for op in removed for var in (*op.reads, *op.writes)} - kept
        block.vars = {name: var for name, var in block.vars.items() if var not in gone}
        for op in removed:
            for inner in op.blocks:
                program.discard_block(inner)
        self._pairs = []
        program.changed()

    @staticmethod
    def trace_and_build(output: Var, scope: Scope) -> "Net":
        """Return a net that computes `output`, a variable of a main block: a pruned copy of its program.

        Missing parameters in `scope` are initialized, so the net can run there as soon as its inputs are set.
        """
        kept = prune(output.block.program, {output.name: output})
        init(kept, scope)
        return Net(kept)

    # Scopes

    def create_variables(self, scope: Scope) -> None:
        """Create every variable of the block in `scope`, without a value; persistable ones only if neither it nor a parent has them."""
        for var in self.block.ordered_vars():
            if not var.persistable or scope.find_var(var.name) is None:
                scope.var(var.name)

    def init_variables(self, scope: Scope) -> None:
        """Initialize the missing parameters and state in `scope`: `ol.init`."""
        init(self.program, scope)

    def infer_shape(self, scope: Scope | None = None) -> dict[str, TensorType]:
        """Infer the types of all variables from the values in `scope`, without changing it: `ol.infer_shape`."""
        return infer_block_shape(self.block, current_scope() if scope is None else scope)

    def run(
        self,
        scope: Scope | None = None,
        context: Context | None = None,
        begin: int | None = None,
        end: int | None = None,
        *,
        keep_scopes: bool = False,
    ) -> None:
        """Run the ops [begin, end), by default all of them, in `scope`; their values are stored there.

        `scope` defaults to that of `context`, else the current one. The scopes of loops and branches are dropped as in `ol.run_block`,
        unless `keep_scopes` is True. Raises the errors of `ol.run_block`.
        """
        chosen = scope if scope is not None else context.scope if context is not None else current_scope()
        run_block(self.block, chosen, context, begin, end, keep_scopes=keep_scopes)


def require_vars_of(program: Program, values: Iterable[object]) -> None:
    """Raise ProgramError if a variable among `values`, or in a list of them, belongs to another program."""
    for value in values:
        for var in value if isinstance(value, list | tuple) else [value]:
            if isinstance(var, Var) and var.block.program is not program:
                raise ProgramError(
                    f'"{var.name}" belongs to another program than the net',
                    location=here(),
                    given=[var.describe(), f"it belongs to {var.block.program!r}, the net to {program!r}"],
                    hint="build a model inside one `with net.program:`",
                )


def _program_of(source: object) -> Program:
    if source is None:
        return Program()
    if isinstance(source, Program):
        return source
    if isinstance(source, Block):
        return program_of_main(source, "Net")
    if isinstance(source, bytes):
        program = read_program(source)
    elif isinstance(source, wire.ProgramDesc | wire.BlockDesc):
        program = read_description(source)
    else:
        raise ArgumentError(f"a net needs a program or a description of one, not {describe_value(source)}", location=here())
    typecheck(program, standard)
    return program


def _optimizer(attributes: object) -> Optimizer:
    """Return the optimizer that {"type": "adam", "learning_rate": 1e-3} describes. Raises ArgumentError."""
    if not isinstance(attributes, Mapping):
        raise ArgumentError(f"expected an optimizer or its attributes, not {describe_value(attributes)}", location=here())
    known = {name.lower(): getattr(oarlock.optimizer, name) for name in oarlock.optimizer.__all__}
    known = {name: item for name, item in known.items() if isinstance(item, type) and issubclass(item, Optimizer) and item is not Optimizer}
    kind = str(attributes.get("type", "")).lower()
    if kind not in known:
        raise ArgumentError(
            f"there is no optimizer {attributes.get('type')!r}",
            location=here(),
            contract=f'"type" must be one of {", ".join(sorted(known))}',
            hint=did_you_mean(kind, known),
        )
    return known[kind](**{str(name): value for name, value in attributes.items() if name != "type"})
