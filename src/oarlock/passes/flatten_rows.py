"""Rows in two dimensions: what products read and give is one matrix from one op to the next, whatever dimensions the rows stand in."""

from collections import defaultdict

from oarlock.ir.attribute import Sizes
from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.size import Shape, product
from oarlock.ir.traversal import inner_blocks
from oarlock.ir.var import Var, is_among
from oarlock.passes.fusion.terms import Readers
from oarlock.passes.rewriter import declare, is_elementwise, is_pure, new_op
from oarlock.registry.catalogue import Catalogue, standard
from oarlock.registry.declaration import Operator
from oarlock.registry.signature import Slot

__all__ = ["flatten_rows"]

_PRODUCTS = {
    "linear": ("x", "bias"),
    "linear_dx": ("dout",),
    "linear_dw": ("x", "dout"),
    "addmm": ("base", "x"),
    "addmm_nt": ("base", "x"),
    "addmm_tn": ("x", "dout"),
    "sgd_addmm": ("x", "dout"),
}
"""Operators that a matrix of rows spares a call for each of these inputs: their kernels make one."""

_SUMS = ("addmm_tn", "sgd_addmm")  # over all rows, which their signatures do not say
_NAMING_AXES = {"axis", "axes", "dim", "dims"}  # attributes that may count from the first axis


def flatten_rows(program: Program, catalogue: Catalogue) -> int:
    """Let products, and what lies between them, compute on rows in two dimensions; return how many ops do so now.

    Before                                           After
        h = linear(x, w)         x: [b t k]              x2 = reshape(x, [b*t k])
        y = linear(gelu(h), v)                           h2 = linear(x2, w)
                                                         y2 = linear(gelu(h2), v)
                                                         y = reshape(y2, [b t n])

    A product of rows in three dimensions is one of a matrix, which its kernel makes and unmakes; each is a call, and of small values
    calls are what takes the time. Legal where operators promise that each row is computed alone, or that all are added up. A kernel of
    products may round otherwise where rows do not lie one after another. Ops that share such values go together, where that spares more
    calls than reshaping what goes in and comes out costs; a block inside reads what it did. Does not apply to what may be an uneven
    stack, nor to shapes with several unknown sizes or of no elements.
    """
    if any(catalogue.find(type) not in (None, standard.find(type)) for type in (*_PRODUCTS, "reshape", "reshape_like")):
        return 0  # its operators are someone else's; one for inference alone has no gradients
    readers = Readers(program)
    count = sum(_Rows(block, catalogue, readers).flatten() for block in inner_blocks(program.main))
    if count:
        program.changed()
    return count


class _Rows:
    """The ops of a block that compute rows, and who else reads what they give."""

    def __init__(self, block: Block, catalogue: Catalogue, readers: Readers):
        self.block = block
        self.catalogue = catalogue
        self.readers = readers
        self.rows = {op: rows for op in block.ops if (rows := self._rows_of(op))}
        self.reading: dict[Var, list[Op]] = defaultdict(list)
        for op in block.ops:
            for var in op.reads:
                self.reading[var].append(op)

    def flatten(self) -> int:
        """Rewrite the clusters of ops that are worth it; return how many ops that were."""
        chosen = [cluster for cluster in self._clusters() if self._spared(cluster) > 0]
        if not chosen:
            return 0
        flat: dict[Op, dict[Var, Var]] = {}
        for cluster in chosen:
            made: dict[Var, Var] = {}
            for op in cluster:
                flat[op] = made
        ops: list[Op] = []
        for op in self.block.ops:
            ops += self._rewritten(op, flat[op]) if op in flat else [op]
        self.block.ops = ops
        return len(flat)

    # What there is

    def _rows_of(self, op: Op) -> dict[Var, None]:
        """The variables in which an op has rows in three dimensions or more, in order; none where it has others too."""
        operator = self.catalogue.get(op.type)
        if op.is_commit or not is_pure(operator, op):
            return {}
        if op.type == "reshape_like":
            found = [op.inputs["like"][0], op.writes[0]]
        elif is_elementwise(operator, op) or op.type == "sum":
            found = [var for var in (*op.reads, *op.writes) if len(var.shape or ()) > 1 or var.shape is None]
            if any(len(var.shape or ()) != len(op.writes[0].shape or ()) for var in found):
                return {}
        else:
            slots = _slots_of_rows(operator)
            if any(len(slot.axes or ()) != 2 for slot in slots):
                return {}
            given = {**op.inputs, **op.outputs}
            found = [var for slot in slots for var in given.get(slot.name, ())]
        leading = {(var.shape or ())[:-1] for var in found}
        if len(leading) != 1 or len(leading.pop()) < 2 or not all(map(self._may_be_flat, found)):
            return {}
        return dict.fromkeys(found)

    def _may_be_flat(self, var: Var) -> bool:
        """Whether a reshape of it can tell its sizes: of no elements, none."""
        shape = var.shape or ()
        return sum(isinstance(size, str) for size in shape) < 2 and 0 not in shape and self.readers.is_tensor(var)

    def _clusters(self) -> list[list[Op]]:
        """The ops by which rows go from one to the next, each cluster in order."""
        cluster_of: dict[Op, list[Op]] = {}
        for op, rows in self.rows.items():
            own = cluster_of[op] = [op]
            for var in rows:
                other = cluster_of.get(var.op) if var.op is not None and var.op is not op else None  # type: ignore[arg-type]
                if other is None or other is own:
                    continue
                small, own = sorted((own, other), key=len)
                own += small
                cluster_of |= dict.fromkeys(small, own)
        found = {id(cluster): cluster for cluster in cluster_of.values()}
        place = {op: number for number, op in enumerate(self.block.ops)}
        return [sorted(cluster, key=place.__getitem__) for cluster in found.values()]

    def _spared(self, cluster: list[Op]) -> int:
        """How many calls are spared where a cluster computes in two dimensions: by products, by shapes that are there, less new ones."""
        members, spared = set(cluster), 0
        vars = dict.fromkeys(var for op in cluster for var in self.rows[op])
        for op in cluster:
            spared += sum(len(op.inputs.get(slot, ())) for slot in _PRODUCTS.get(op.type, ()))
        for var in vars:
            flat, source = _flat(var.shape or ()), var.op
            others = [op for op in self.reading[var] if op not in members or var not in self.rows[op]]
            is_read_elsewhere = self.readers.uses[var] > len(self.reading[var])
            if source not in members:
                is_left_out = source is not None and source.type == "reshape" and not others and not is_read_elsewhere
                spared += (source.inputs["x"][0].shape == flat) if is_left_out else -1  # type: ignore[union-attr]
                continue
            reshapes = [op for op in others if op.type == "reshape"]
            spared += sum(op.writes[0].shape == flat for op in reshapes)
            spared -= is_read_elsewhere or len(others) > len(reshapes)
        return spared

    # What becomes of it

    def _rewritten(self, op: Op, made: dict[Var, Var]) -> list[Op]:
        """The op on rows in two dimensions, after what makes them so, and before what makes what others read of it; `made` are those that
        its cluster has.
        """
        before, after = [], []
        rows = self.rows[op]
        for var in rows:
            if var in made:
                continue
            made[var] = declare(var, _flat(var.shape or ()), "ROWS", self.block)
            if is_among(var, op.writes):
                after.append(new_op(op, "reshape", {"x": made[var]}, {"y": var}, self.catalogue, {"shape": Sizes(var.shape or ())}))
            else:
                shape = Sizes(made[var].shape or ())
                before.append(new_op(op, "reshape", {"x": var}, {"y": made[var]}, self.catalogue, {"shape": shape}))
        flat = {var: made[var] for var in rows}  # of this op: the first input of `reshape_like` stays, say
        op.inputs = {slot: tuple(flat.get(var, var) for var in vars) for slot, vars in op.inputs.items()}
        op.outputs = {slot: tuple(flat.get(var, var) for var in vars) for slot, vars in op.outputs.items()}
        for var in op.writes:
            var.op = op
        return [*before, op, *after]


def _slots_of_rows(operator: Operator) -> list[Slot]:
    """The inputs and outputs that have rows, where each row is computed alone and what else comes out is a sum over them."""
    inputs, outputs = operator.signature.inputs, operator.signature.outputs
    if operator.type in _SUMS:
        return [slot for slot in inputs if slot.axes and slot.axes[0].kind == "rank"]
    groups = {slot.leading_group for slot in inputs} - {None}
    if len(groups) != 1 or operator.infer_function or any(slot.shape_only for slot in inputs) or _NAMING_AXES & operator.attributes.keys():
        return []
    if any(slot.leading_group not in groups and slot.name not in operator.summed_outputs for slot in outputs):
        return []
    return [slot for slot in (*inputs, *outputs) if slot.leading_group in groups]


def _flat(shape: Shape) -> Shape:
    return product(shape[:-1]), shape[-1]
