"""The clusters of an update: variables of one shape that are computed from each other element by element.

A cluster is what one parameter's update is made of: its gradient, its state, and all that is computed of them. Where each element of it
comes from that element of the others, a worker can compute a share of the elements alone.
"""

from collections.abc import Iterator

from oarlock.ir.block import Block
from oarlock.ir.operation import Op, Role
from oarlock.ir.size import Shape, product
from oarlock.ir.traversal import walk
from oarlock.ir.var import Var, is_among
from oarlock.op.control.layout import Layout
from oarlock.registry.catalogue import Catalogue

__all__ = ["Cluster", "find_clusters"]

_ELEMENTWISE = {"adam", "cast", "full_like", "momentum", "sgd"}  # beside those whose signatures say so


class Cluster:
    """Variables of one shape, and the ops that compute them element by element."""

    def __init__(self, shape: Shape):
        self.shape = shape
        self.vars: dict[Var, None] = {}  # in their order, which all workers find alike
        self.ops: set[Op] = set()
        self.states: set[Var] = set()
        """The variables that the optimizer keeps of them from step to step."""
        self.parameters: list[Var] = []
        self.gradients: list[Var] = []
        """Sums over the workers, or what is computed of such sums alone."""

    @property
    def elements(self) -> int:
        count = product(self.shape)
        assert isinstance(count, int)
        return count


def _is_elementwise(op: Op, catalogue: Catalogue) -> bool:
    """Whether every element of each result comes from that element of the inputs, and from numbers that all elements share."""
    operator = catalogue.get(op.type)
    slots = (*operator.signature.inputs, *operator.signature.outputs)
    told = all(slot.axes and len(slot.axes) == 1 and slot.axes[0].kind in ("broadcast", "group") for slot in slots)
    if operator.effects or op.blocks or not (op.type in _ELEMENTWISE or (told and operator.infer_function is None)):
        return False
    shapes = {var.shape for var in (*op.reads, *op.writes) if var.shape != ()}
    return len(shapes) == 1 and all(isinstance(size, int) for size in shapes.pop() or ("?",))


def find_clusters(main: Block, catalogue: Catalogue) -> dict[Var, Cluster]:
    """The clusters that can be parted between workers, by variable: those with a state, and with gradients that all workers sum.

    A state is a variable of the optimizer's that begins with one number everywhere and is read element by element alone.
    """
    return _Search(main, catalogue).run()


class _Search:
    def __init__(self, main: Block, catalogue: Catalogue):
        self.main = main
        self.catalogue = catalogue
        self.ops = dict.fromkeys(_update_ops(main))
        self.readers: dict[Var, list[Op]] = {}
        for op in walk(main):
            for var in dict.fromkeys(op.reads):
                self.readers.setdefault(var, []).append(op)
        self.elementwise = {op for op in self.ops if _is_elementwise(op, catalogue)}
        self.joined: dict[Var, Var] = {}
        self.refused: set[Var] = set()  # of what cannot be parted

    def run(self) -> dict[Var, Cluster]:
        candidates = {var for var in self.main.vars.values() if self._is_candidate(var)}
        whole = self._committed_whole(candidates)
        for op in self.ops:
            if op in self.elementwise:
                self._join(var for var in (*op.reads, *op.writes) if var.shape != ())
            elif op.type == "select_branch" and not whole.issuperset(op.writes):
                self._join((*op.reads, *op.writes))
            elif op.type == "conditional_block":
                layout = Layout.of(op)
                self.refused.update(var for pair in layout.steps for var in pair)
                for inner, outer in layout.stacked:
                    if outer not in whole:
                        self._join((inner, outer))
        for op in self.main.tail:
            (var,), (value,) = op.writes, op.reads
            if var in candidates:
                self._join((var, value))
        return self._divisible(candidates)

    def _is_candidate(self, var: Var) -> bool:
        shape, start = var.shape, var.initializer
        if not var.persistable or var.parameter or not shape or not all(isinstance(size, int) and size > 0 for size in shape):
            return False
        writers = [op for op in self.main.tail if is_among(var, op.writes)]
        readers = self.readers.get(var, [])
        return (
            start is not None
            and start.type == "constant"
            and len(writers) == 1
            and all(op in self.elementwise or (op in self.ops and op.blocks) for op in readers)
            and not any(is_among(var, vars) for op in readers if op.blocks for slot, vars in op.inputs.items() if slot != "free")
        )

    def _committed_whole(self, candidates: set[Var]) -> set[Var]:
        """The outputs of branches that only become parameters, which every worker needs whole: they are made whole in the branch."""
        found: set[Var] = set()
        commits = {op.reads[0]: op.writes[0] for op in self.main.tail}
        for op in self.ops:
            if op.type == "select_branch":
                (value,) = op.writes
                if self.readers.get(value, []) and all(each.is_commit for each in self.readers[value]) and commits[value] not in candidates:
                    found.update((*op.reads, value))
        return found

    def _divisible(self, candidates: set[Var]) -> dict[Var, Cluster]:
        clusters: dict[Var, Cluster] = {}
        for var in self.joined:
            first = self._first(var)
            if first not in clusters:
                clusters[first] = Cluster(var.shape or ())
            clusters[first].vars[var] = None
        for op in self.elementwise:
            clusters[self._first(next(var for var in op.writes if var.shape != ()))].ops.add(op)
        found: dict[Var, Cluster] = {}
        for cluster in clusters.values():
            cluster.states = cluster.vars.keys() & candidates
            if cluster.states:
                cluster.shape = next(iter(cluster.states)).shape or ()
                if self._is_divisible(cluster):
                    found |= dict.fromkeys(cluster.vars, cluster)
        return found

    def _is_divisible(self, cluster: Cluster) -> bool:
        """Whether what comes from outside is a parameter, or made of sums over the workers, and so the same on each of them."""
        given = [var for var in cluster.vars if var.op not in self.ops and var not in cluster.states]
        cluster.parameters = [var for var in given if var.parameter]
        cluster.gradients = [var for var in given if not var.parameter]
        return bool(cluster.gradients) and all(self._is_sum(var) for var in cluster.gradients) and self.refused.isdisjoint(cluster.vars)

    def _is_sum(self, var: Var) -> bool:
        """Whether a value is a sum over the workers, or computed of such sums alone."""
        op = var.op
        if op is None or op.type == "all_reduce" or op.blocks:
            return op is not None and not op.blocks
        operator = self.catalogue.get(op.type)
        told = {slot.name for slot in operator.signature.inputs if slot.shape_only}
        data = [each for slot, vars in op.inputs.items() if slot not in told for each in vars]
        return not operator.effects and bool(data) and all(self._is_sum(each) for each in data)

    def _join(self, vars: "Iterator[Var] | tuple[Var, ...]") -> None:
        firsts = [self._first(var) for var in vars]
        for other in firsts[1:]:
            self.joined[other] = firsts[0]

    def _first(self, var: Var) -> Var:
        around = self.joined.setdefault(var, var)
        while around is not self.joined[around]:
            around = self.joined[around]
        self.joined[var] = around
        return around


def _update_ops(block: Block) -> Iterator[Op]:
    """The ops of an update, those in branches of it too."""
    for op in block.ops:
        if op.role is Role.UPDATE and not op.is_commit:
            yield op
            if op.type == "conditional_block":
                yield from _update_ops(op.blocks[0])
