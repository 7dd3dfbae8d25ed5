"""The inputs and outputs of an op with a block as pairs, inside and outside, for code that rewrites such ops."""

from dataclasses import dataclass, field

from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.traversal import free_vars
from oarlock.ir.var import Var
from oarlock.registry.collective import BlockFlow

__all__ = ["Carried", "Layout", "flow_of"]


@dataclass(eq=False)
class Carried:
    """A loop-carried value: its variable and its next value in the block, and its initial and final value outside."""

    inside: Var
    following: Var
    initial: Var
    final: Var


@dataclass(eq=False)
class Layout:
    """The pairs of one op: `recurrent`, `while` or `conditional_block`.

    `steps` and `stacked` are pairs (inside, outside): inputs of an iteration with the outer values, and outputs with the outer results; for
    a branch, its values and outputs. `summed` are such pairs, too. `condition` is the first output of a `while` body. To rewrite an op,
    change the lists, then call `write`.
    """

    op: Op
    body: Block
    steps: list[tuple[Var, Var]] = field(default_factory=list)
    carried: list[Carried] = field(default_factory=list)
    stacked: list[tuple[Var, Var]] = field(default_factory=list)
    summed: list[tuple[Var, Var]] = field(default_factory=list)
    condition: Var | None = None

    @classmethod
    def of(cls, op: Op) -> "Layout":
        """Return the layout of an op that owns one block."""
        body = op.attributes["body"]
        assert isinstance(body, Block)
        layout = cls(op, body)
        outputs = list(body.outputs)
        if op.type == "while":
            layout.condition = outputs.pop(0)
        given = op.inputs.get("sequences", op.inputs.get("values", ()))
        returned = op.outputs.get("stacked", op.outputs.get("outputs", ()))
        initial, final = op.inputs.get("initial", ()), op.outputs.get("final", ())
        layout.steps = list(zip(body.inputs, given, strict=False))
        layout.stacked = list(zip(outputs, returned, strict=False))
        following = outputs[len(returned) : len(returned) + len(initial)]
        layout.carried = [Carried(*each) for each in zip(body.inputs[len(given) :], following, initial, final, strict=True)]
        layout.summed = list(zip(outputs[len(returned) + len(initial) :], op.outputs.get("sums", ()), strict=True))
        return layout

    def write(self) -> None:
        """Update the op and its block from the lists."""
        op, body = self.op, self.body
        given = tuple(outer for _, outer in self.steps)
        returned = tuple(outer for _, outer in self.stacked)
        body.inputs = [*(inner for inner, _ in self.steps), *(each.inside for each in self.carried)]
        condition = [] if self.condition is None else [self.condition]
        following = [each.following for each in self.carried]
        body.outputs = [*condition, *(inner for inner, _ in self.stacked), *following, *(inner for inner, _ in self.summed)]
        changed = {
            "sequences": given,
            "values": given,
            "initial": tuple(each.initial for each in self.carried),
            "free": tuple(free_vars(body)),
        }
        op.inputs = {slot: changed.get(slot, vars) for slot, vars in op.inputs.items()}
        results = {
            "stacked": returned,
            "outputs": returned,
            "final": tuple(each.final for each in self.carried),
            "sums": tuple(outer for _, outer in self.summed),
        }
        op.outputs = {slot: results[slot] for slot in op.outputs}
        if "summed" in op.attributes:
            op.attributes = {**op.attributes, "summed": len(self.summed)}
        body.program.changed()


def flow_of(op: Op) -> BlockFlow:
    """Return how values flow into the block of such an op and out of it."""
    layout = Layout.of(op)
    decided_by = [*op.inputs.get("when", ()), *op.inputs.get("condition", ()), *op.inputs.get("splits", ())]
    if layout.condition is not None:
        decided_by.append(layout.condition)
    lengths = [(var.shape or ("?",))[0] for var in op.inputs.get("sequences", ())]
    carried = [(each.inside, each.following, each.initial, each.final) for each in layout.carried]
    return BlockFlow(layout.steps, carried, [*layout.stacked, *layout.summed], decided_by, lengths)
