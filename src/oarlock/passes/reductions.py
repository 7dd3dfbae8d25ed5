"""Fuse reductions with the products that they add up."""

from collections.abc import Mapping

from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.variable import Var
from oarlock.passes.rewriting import new_op, reader_counts, rewrite
from oarlock.registry.catalogue import Catalogue

__all__ = ["fuse_reductions"]


def fuse_reductions(program: Program, catalogue: Catalogue) -> int:
    """Fuse sums and means of everything in `program` with products that nobody else reads; return how many.

    Before                          After
        s = square(x)                   y = inner_product(x, x, mean=true)
        y = mean(s)

    Legal for `square`, and for `multiply` of two tensors of one shape. Products are not rounded before they are added, and are added in
    another order: values change in their last bits. Costs nothing, and saves a tensor of products. Does not apply to sums along one axis.
    """
    fusion = _Fusion(program, catalogue)
    rewrite(program, fusion)
    return fusion.count


class _Fusion:
    def __init__(self, program: Program, catalogue: Catalogue):
        self.catalogue = catalogue
        self.readers = reader_counts(program)
        self.count = 0

    def __call__(self, op: Op, before: list[Op]) -> Mapping[Var, Var]:
        if op.type not in ("mean", "reduce_sum") or op.attributes.get("axis") is not None or op.writes[0].shape != ():
            return {}
        (products,) = op.inputs["x"]
        made = products.op
        if made is None or made.type not in ("multiply", "square") or made.block is not op.block or self.readers.get(products) != 1:
            return {}
        x, y = made.inputs["x"][0], made.inputs.get("y", made.inputs["x"])[0]
        if not products.shape or not x.shape == y.shape == products.shape:
            return {}
        before.append(new_op(op, "inner_product", {"x": x, "y": y}, {"z": op.writes[0]}, self.catalogue, {"mean": op.type == "mean"}))
        self.count += 1
        return {}
