"""`shard_optimizer`: the program in which each worker keeps, and updates, an equal share of what the optimizer keeps."""

from collections import defaultdict
from collections.abc import Iterable
from enum import Enum

from oarlock.errors import ArgumentError, ProgramError
from oarlock.ir.attribute import Sizes
from oarlock.ir.block import Block
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.operation import Op, Role
from oarlock.ir.program import Program
from oarlock.ir.shape_rules import require_axes
from oarlock.ir.size import Shape
from oarlock.ir.traversal import walk
from oarlock.ir.var import Var
from oarlock.op.choice import where
from oarlock.op.collective import all_reduce, worker_index
from oarlock.op.comparison import less
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.control.layout import Layout
from oarlock.op.elementwise import add, multiply
from oarlock.op.shares import gather_shares, reduce_to_shares, take_share
from oarlock.op.told_shape import arange
from oarlock.passes.parallel.rows_of_workers import free_name, written_into
from oarlock.passes.parallel.update_clusters import Cluster, find_clusters
from oarlock.registry.catalogue import standard
from oarlock.registry.range_check import require_count
from oarlock.tensor.shares import share_size

__all__ = ["shard_optimizer"]

_BUCKET = 25.0  # MiB, as in data_parallel


def shard_optimizer(program: Program, *, workers: int, bucket_megabytes: float = _BUCKET) -> dict[str, Shape]:
    """Let each of `workers` workers keep a share of the optimizer's state; return the whole shapes of what is kept so, by name.

    Before                                   After
        w@GRAD = all_reduce(w@GRAD.part)         w@GRAD.share = reduce_to_shares(w@GRAD.part)
                                                 w.share = take_share(w)
        w@NEXT, m@NEXT = adam(w, w@GRAD, m)      w@NEXT.share, m@NEXT = adam(w.share, w@GRAD.share, m)
                                                 w@NEXT = gather_shares(w@NEXT.share)

    A share of a tensor of k elements has ceil(k / workers), flat, and zeros where the last ones are not full. So state takes 1 / workers
    of its memory, gradients are summed to shares, and as many bytes are exchanged as before (Rajbhandari et al., 2020, "ZeRO", stages 1
    and 2). It computes, within rounding, what it did before: norms are over the shares of all workers, and what needs a tensor whole, as
    Muon does, is given it whole.

    Legal for what updates a parameter element by element, where the state begins with one number everywhere and the gradient is a sum over
    the workers; other state stays whole. Call it after `data_parallel`; `program` is changed, and is for that number of workers. Tensors
    are exchanged together, in buckets of at most `bucket_megabytes`. Raises ProgramError for a program whose workers exchange nothing yet,
    or keep shares already, ArgumentError for what is no program and for numbers that are none.
    """
    if not isinstance(program, Program):
        raise ArgumentError(f"shard_optimizer takes a program, not {program!r:.60}", location=here())
    require_count("workers", workers)
    if not bucket_megabytes > 0:
        raise ArgumentError(f"bucket_megabytes is a number above 0, not {bucket_megabytes!r:.40}", location=here())
    types = {op.type for op in walk(program.main)}
    if types & {"take_share", "gather_shares"}:
        raise ProgramError("the workers of this program keep shares already", location=here(), hint="call shard_optimizer once")
    if "all_reduce" not in types:
        raise ProgramError(
            "the workers of this program exchange nothing yet, so each would update by a gradient of its own",
            location=here(),
            hint="call ol.passes.data_parallel(program) first",
        )
    clusters = find_clusters(program.main, standard)
    states = {var: cluster for var, cluster in clusters.items() if var in cluster.states}
    _Writing(program, clusters, workers, int(bucket_megabytes * 2**20)).run()
    return {var.name: cluster.shape for var, cluster in states.items()}


class _Kind(Enum):
    SHARE = "share"
    """Each worker has its share of the elements."""
    PARTIAL = "partial"
    """A number that is the sum over what the workers have."""


_LINEAR = {"add", "assign", "cast", "sum"}
"""Operators on numbers whose result is the sum over the workers of their results, where each input is such a sum."""
_KEEP_ZEROS = {"abs", "assign", "cast", "multiply", "neg", "sign", "sqrt", "square"}
"""Operators whose result is 0 where all their inputs with many elements are."""


class _Writing:
    """One application to a program. What is not `placed` is the same on every worker."""

    def __init__(self, program: Program, clusters: dict[Var, Cluster], workers: int, bucket_bytes: int):
        self.program = program
        self.clusters = clusters
        self.elementwise = {op for cluster in set(clusters.values()) for op in cluster.ops}
        self.workers = workers
        self.bucket_bytes = bucket_bytes
        self.placed: dict[Var, _Kind] = {}
        self.zero_filled: set[Var] = set()  # shares with zeros where they are not full
        self.shares: dict[Var, list[Var]] = defaultdict(list)  # of what every worker has whole
        self.wholes: dict[Var, list[Var]] = defaultdict(list)  # of what is placed otherwise
        self.own_elements: dict[tuple[Block, int], Var] = {}
        self.wanted: dict[Var, None] = {}  # whole, and not exchanged yet
        self.read_whole = self._read_whole()
        self.like = {cluster: self._whole_like(cluster) for cluster in set(clusters.values())}

    def run(self) -> None:
        for var, cluster in self.clusters.items():
            if var in cluster.states:
                self._make_share(var)
        main = self.program.main
        tail = main.tail
        main.ops = main.ops[: len(main.ops) - len(tail)]
        self._block(main, [])
        needs = {op: self.placed.get(op.writes[0]) for op in tail}
        targets = dict.fromkeys(self.program.targets.values())
        found = self._all(main, [*((op.reads[0], needs[op]) for op in tail), *((var, None) for var in targets)])
        for op, value in zip(tail, found, strict=False):
            op.inputs = dict.fromkeys(op.inputs, (value,))
        whole = dict(zip(targets, found[len(tail) :], strict=True))
        self.program.targets = {label: whole[var] for label, var in self.program.targets.items()}
        main.ops += tail
        self.program.claim_names()
        self.program.changed()

    # Blocks and ops

    def _block(self, block: Block, outputs: list[tuple[Var, _Kind | None]]) -> list[Var]:
        """Write the ops of a block; return its outputs, placed as they are needed.

        Ops that wait for an exchange are written after it, so that all that wait share one.
        """
        left, block.ops = block.ops, []
        while left:
            waiting: list[Op] = []
            absent: set[Var] = set()
            for op in left:
                if not absent.isdisjoint(op.reads) or not self._op(op):
                    waiting.append(op)
                    absent.update(op.writes)
            left = waiting
            self._exchange(block)
        return self._all(block, outputs)

    def _op(self, op: Op) -> bool:
        """Write an op, unless it waits for an exchange."""
        with self.program.write_as(op.role, op.location), op.block:
            if op.type == "all_reduce" and op.attributes["op"] == "sum":
                self._gradients(op)
                return True
            if op.role is Role.UPDATE:
                if op.type == "conditional_block":
                    return self._branch(op)
                if op.type == "select_branch" and op.writes[0] in self.clusters:
                    self._keep(op)
                    return True
                if op in self.elementwise:
                    return self._elementwise(op)
                if op.type == "reduce_sum" and self._is_sum_of_share(op):
                    self._sum(op)
                    return True
                if op.type in _LINEAR and all(self.placed.get(var) is _Kind.PARTIAL for var in op.reads):
                    self._keep(op, _Kind.PARTIAL)
                    return True
            return self._whole(op)

    def _keep(self, op: Op, kind: _Kind = _Kind.SHARE) -> None:
        """Write an op as it is, whose inputs are placed as its results will be."""
        op.block.ops.append(op)
        for var in op.writes:
            if kind is _Kind.SHARE:
                self._make_share(var)
            else:
                self.placed[var] = kind

    def _whole(self, op: Op) -> bool:
        found = {var: self._whole_of(var, op.block) for var in dict.fromkeys(op.reads) if var in self.placed}
        if None in found.values():
            return False
        self._give(op, {var: value for var, value in found.items() if value is not None})
        op.block.ops.append(op)
        return True

    def _gradients(self, op: Op) -> None:
        """Sum to shares what is read only by shares, and the rest as before."""
        sums = dict(zip(op.outputs["ys"], op.inputs["xs"], strict=True))
        parted = {var: part for var, part in sums.items() if var in self.clusters and var not in self.read_whole}
        left = {var: part for var, part in sums.items() if var not in parted}
        if parted:
            made = reduce_to_shares(list(parted.values()), workers=self.workers)
            for var, share in zip(parted, made, strict=True):
                name = var.name
                del op.block.vars[name]
                op.block.rename(share, free_name(op.block, name, "share"))
                self._placed_share(share, zero_filled=True)
                self.shares[var].append(share)
        if left:
            op.inputs, op.outputs = {"xs": tuple(left.values())}, {"ys": tuple(left)}
            op.block.ops.append(op)

    def _elementwise(self, op: Op) -> bool:
        read = dict.fromkeys(op.reads)
        numbers = {var: self._whole_of(var, op.block) for var in read if var.shape == ()}
        if None in numbers.values():
            return False
        shares = {var: self._share_of(var, op.block) for var in read if var.shape != ()}
        self._give(op, {**{var: value for var, value in numbers.items() if value is not None}, **shares})
        op.block.ops.append(op)
        for var in op.writes:
            self._make_share(var)
        if op.type in _KEEP_ZEROS and shares and self.zero_filled.issuperset(shares.values()):
            self.zero_filled.update(op.writes)
        return True

    def _is_sum_of_share(self, op: Op) -> bool:
        (x,) = op.inputs["x"]
        if x not in self.clusters or op.attributes.get("keepdim"):
            return False
        shape = self.clusters[x].shape
        in_shares = self.placed.get(x) is _Kind.SHARE or x in self.shares
        return in_shares and len(require_axes(shape, op.attributes.get("axis"))) == len(shape)  # type: ignore[arg-type]

    def _sum(self, op: Op) -> None:
        (x,) = op.inputs["x"]
        elements = self.clusters[x].elements
        share = self._share_of(x, op.block)
        size = share_size(elements, self.workers)
        if share not in self.zero_filled and size * self.workers != elements:
            share = where(self._own(op.block, elements), share, constant_like(0.0, share))
        op.inputs = {"x": (share,)}
        op.attributes = {name: value for name, value in op.attributes.items() if name != "axis"}
        self._keep(op, _Kind.PARTIAL)

    def _own(self, block: Block, elements: int) -> Var:
        """Of each element of this worker's share, whether it is one of the tensor's: bool[k]."""
        key = block, elements
        if key not in self.own_elements:
            size = share_size(elements, self.workers)
            index = worker_index()
            places = add(arange([], stop=Sizes((size,))), multiply(index, constant_like(size, index)))
            self.own_elements[key] = less(places, constant_like(elements, places))
        return self.own_elements[key]

    def _branch(self, op: Op) -> bool:
        given = [var for slot, vars in op.inputs.items() if slot != "free" for var in vars if var in self.placed]
        found = {var: self._whole_of(var, op.block) for var in given}
        if None in found.values():
            return False
        self._give(op, {var: value for var, value in found.items() if value is not None})
        layout, waiting = Layout.of(op), self.wanted
        self.wanted = {}
        made = self._block(layout.body, [(inner, _Kind.SHARE if outer in self.clusters else None) for inner, outer in layout.stacked])
        self.wanted = waiting
        layout.stacked = [(inner, outer) for inner, (_, outer) in zip(made, layout.stacked, strict=True)]
        layout.write()
        op.block.ops.append(op)
        for _, outer in layout.stacked:
            if outer in self.clusters:
                self._make_share(outer)
        return True

    def _give(self, op: Op, found: dict[Var, Var]) -> None:
        op.inputs = {slot: tuple(found.get(var, var) for var in vars) for slot, vars in op.inputs.items()}

    # Placements

    def _make_share(self, var: Var) -> None:
        """Let a variable be the share of what it was."""
        cluster = self.clusters[var]
        assert var.shape is not None
        var.shape = (*var.shape[: len(var.shape) - len(cluster.shape)], share_size(cluster.elements, self.workers))
        self.placed[var] = _Kind.SHARE

    def _placed_share(self, var: Var, *, zero_filled: bool) -> None:
        self.placed[var] = _Kind.SHARE
        if zero_filled:
            self.zero_filled.add(var)

    def _share_of(self, var: Var, block: Block) -> Var:
        """A worker's share of a variable, that is written where it is asked for."""
        if self.placed.get(var) is _Kind.SHARE:
            return var
        found = _visible(self.shares[var], block)
        if found is None:
            with written_into(block, self.program.writing[0]):
                found = take_share(var, workers=self.workers)
            block.rename(found, free_name(block, var.name, "share"))
            self._placed_share(found, zero_filled=True)
            self.shares[var].append(found)
        return found

    def _whole_of(self, var: Var, block: Block) -> Var | None:
        """The value that one worker would have; None where it waits for an exchange."""
        if var not in self.placed:
            return var
        found = _visible(self.wholes[var], block)
        if found is None:
            self.wanted[var] = None
        return found

    def _all(self, block: Block, needs: Iterable[tuple[Var, _Kind | None]]) -> list[Var]:
        """Variables in the placements in which they are needed."""
        needs = list(needs)
        for var, need in needs:
            if need is None:
                self._whole_of(var, block)
        self._exchange(block)
        found = [self._share_of(var, block) if need is _Kind.SHARE else self._whole_of(var, block) for var, need in needs]
        assert None not in found
        return found  # type: ignore[return-value]

    def _exchange(self, block: Block) -> None:
        """Let the workers exchange what is wanted whole, so much in one op as a bucket takes."""
        wanted, self.wanted = self.wanted, {}
        with written_into(block, Role.UPDATE):
            for vars in self._buckets(var for var in wanted if self.placed[var] is _Kind.PARTIAL):
                for var, total in zip(vars, all_reduce(vars), strict=True):
                    self._take_name(var, total, "part")
                    self.wholes[var].append(total)
            for vars in self._buckets(var for var in wanted if self.placed[var] is _Kind.SHARE):
                wholes = [self.like[self.clusters[var]] for var in vars]
                for var, whole in zip(vars, gather_shares(vars, wholes, workers=self.workers), strict=True):
                    self._take_name(var, whole, "share")
                    self.wholes[var].append(whole)

    def _take_name(self, var: Var, whole: Var, what: str) -> None:
        """Call what is whole by the name that it had before the workers had parts of it."""
        if var.block is whole.block and not var.persistable:
            name = var.name
            var.block.rename(var, free_name(var.block, name, what))
            var.block.rename(whole, name)

    def _buckets(self, vars: Iterable[Var]) -> list[list[Var]]:
        found: list[list[Var]] = []
        sizes: dict[DType, int] = {}
        open_bucket: dict[DType, list[Var]] = {}
        for var in vars:
            (size,) = var.shape or (1,)
            count = size * var.dtype.itemsize if isinstance(size, int) else 0
            if var.dtype not in open_bucket or sizes[var.dtype] + count > self.bucket_bytes:
                open_bucket[var.dtype], sizes[var.dtype] = [], 0
                found.append(open_bucket[var.dtype])
            open_bucket[var.dtype].append(var)
            sizes[var.dtype] += count
        return found

    def _whole_like(self, cluster: Cluster) -> Var:
        """A variable that keeps the shape of a cluster, by which a tensor that is put together is told its own."""
        if cluster.parameters:
            return cluster.parameters[0]
        gradient = cluster.gradients[0]
        if gradient in self.read_whole or gradient.op is None or gradient.op.type != "all_reduce":
            return gradient
        return next(part for part, total in zip(gradient.op.inputs["xs"], gradient.op.writes, strict=True) if total is gradient)

    def _read_whole(self) -> set[Var]:
        """Variables needed whole by an op outside an update, by an operator that is not elementwise, or by who asks for it."""
        found = set(self.program.targets.values())
        for op in walk(self.program.main):
            if op.is_commit and op.writes[0] not in self.clusters:
                found.update(op.reads)
            elif op.type == "conditional_block":
                found.update(inner for inner, outer in Layout.of(op).stacked if outer not in self.clusters)
            elif op not in self.elementwise and not op.is_commit and op.type not in ("all_reduce", "reduce_sum"):
                found.update(op.reads)
        return found


def _visible(vars: list[Var], block: Block) -> Var | None:
    """The first of some variables that can be read in a block."""
    around = set(block.enclosing())
    return next((var for var in vars if var.block in around), None)
