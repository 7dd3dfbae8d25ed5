"""Fusion of reductions with the products and the losses that they add up."""

from collections.abc import Mapping

from oarlock.ir.dtype import DType
from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.traversal import inner_blocks, walk
from oarlock.ir.var import Var
from oarlock.passes.rewriter import declare, new_op, reader_counts, rewrite, sees
from oarlock.registry.catalogue import Catalogue

__all__ = ["fuse_reductions"]


def fuse_reductions(program: Program, catalogue: Catalogue) -> int:
    """Fuse sums and means of everything in `program` with products and losses that nobody else reads; return how many.

    Before                                               After
        s = square(x)                                        y = dot(x, x, mean=true)
        y = mean(s)

        loss, p = softmax_with_cross_entropy(z, label)       y, p, n = cross_entropy_loss(z, label, mean=true)
        y = mean(loss)

        g = mean_dx(dy, label)                               dz = cross_entropy_loss_grad(p, label, dy, n, mean=true)
        dz = softmax_with_cross_entropy_dlogits(p, label, g)

    So it is with `valid_mean` of the labels of the losses, whose mean does not count ignored rows: count_ignored=false.

    Legal for `square`, for `multiply` of two tensors of one shape, and for the cross entropy whatever its rows. Products are not rounded
    before they are added, and both are added in another order: values change in their last bits. Costs nothing, and saves a tensor
    of products, or of one number for each row. Does not apply to sums along one axis, to losses in float16 and bfloat16, whose mean is
    added up in more digits than those have, nor where the softmax has a gradient of its own.
    """
    fusion = _Fusion(program, catalogue)
    rewrite(program, fusion)
    for block in inner_blocks(program.main):
        block.ops = [op for op in block.ops if op not in fusion.taken]
    return fusion.count


_LARGE = (DType.FLOAT32, DType.FLOAT64)


class _Fusion:
    def __init__(self, program: Program, catalogue: Catalogue):
        self.catalogue = catalogue
        self.readers = reader_counts(program)
        self.reductions = {op.inputs["x"][0]: op for op in walk(program.main) if _is_total(op) or op.type == "valid_mean"}
        self.taken: set[Op] = set()  # reductions that an op before them does
        self.count = 0

    def __call__(self, op: Op, before: list[Op]) -> Mapping[Var, Var]:
        made = self._of_gradient(op) or self._of_products(op)
        if made is not None:
            before.append(made)
        self.count += made is not None or self._is_total_of_losses(op)
        return {}

    def _of_products(self, op: Op) -> Op | None:
        if not _is_total(op) or op in self.taken:
            return None
        (products,) = op.inputs["x"]
        made = products.op
        if made is None or made.type not in ("multiply", "square") or made.block is not op.block or self.readers.get(products) != 1:
            return None
        x, y = made.inputs["x"][0], made.inputs.get("y", made.inputs["x"])[0]
        if not products.shape or not x.shape == y.shape == products.shape:
            return None
        return new_op(op, "dot", {"x": x, "y": y}, {"z": op.writes[0]}, self.catalogue, {"mean": op.type == "mean"})

    def _is_total_of_losses(self, op: Op) -> bool:
        """Whether `op` is a cross entropy that may be added up where it is computed.

        It does so itself from now on, so what it refuses is told as before: of the op that the user wrote.
        """
        if op.type != "softmax_with_cross_entropy":
            return False
        (loss,), (softmax,) = op.outputs["loss"], op.outputs["softmax"]
        reduction = self.reductions.get(loss)
        if reduction is None or reduction.block is not op.block or self.readers.get(loss) != 1 or loss.dtype not in _LARGE:
            return False
        if reduction.type == "valid_mean" and not _by_same_labels(reduction, op):
            return False
        self.taken.add(reduction)
        (total,) = reduction.writes
        valid_count = declare(softmax, (), "COUNTED")
        op.type, op.outputs = "cross_entropy_loss", {"loss": (total,), "softmax": (softmax,), "valid_count": (valid_count,)}
        op.attributes |= _mean_of(reduction.type)
        total.op = valid_count.op = op
        del op.block.vars[loss.name]
        return True

    def _of_gradient(self, op: Op) -> Op | None:
        if op.type != "softmax_with_cross_entropy_dlogits" or op.inputs.get("dsoftmax"):
            return None
        (each,) = op.inputs["dloss"]
        made = each.op
        if made is None or made.type not in _GRADIENTS_OF_TOTALS or self.readers.get(each) != 1:
            return None
        if made.type == "valid_mean_dx" and not _by_same_labels(made, op):
            return None
        total = made.inputs["x" if made.type == "broadcast_to_like" else "dy"][0]
        if total.shape != () or not sees(op.block, total):
            return None
        (softmax,), (label,) = op.inputs["softmax"], op.inputs["label"]
        inputs = {"softmax": softmax, "label": label, "dtotal": total}
        if softmax.op is not None and softmax.op.type == "cross_entropy_loss":
            inputs |= {"valid_count": softmax.op.outputs["valid_count"][0]}
        attributes = op.attributes | _mean_of(made.type.removesuffix("_dx"))
        return new_op(op, "cross_entropy_loss_grad", inputs, {"dlogits": op.writes[0]}, self.catalogue, attributes)


_GRADIENTS_OF_TOTALS = ("mean_dx", "valid_mean_dx", "reduce_sum_dx", "broadcast_to_like")


def _mean_of(reduction: str) -> dict[str, object]:
    """The attributes by which a cross entropy is reduced so."""
    return {"mean": True, "count_ignored": False} if reduction == "valid_mean" else {"mean": reduction == "mean"}


def _by_same_labels(reduction: Op, losses: Op) -> bool:
    """Whether a mean, or its gradient, ignores the rows that the cross entropy ignores."""
    return (
        reduction.inputs["label"][0] is losses.inputs["label"][0]
        and reduction.attributes["ignore_index"] == losses.attributes["ignore_index"]
    )


def _is_total(op: Op) -> bool:
    """Whether `op` adds up everything into one number."""
    return op.type in ("mean", "reduce_sum") and op.attributes.get("axis") is None and op.writes[0].shape == ()
