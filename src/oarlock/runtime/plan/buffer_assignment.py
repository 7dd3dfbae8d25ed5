"""Where each op of a straight line writes: into new memory, over an input that has ended, or into a destination that it is given."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from oarlock.backend.torch.variants import variants_of
from oarlock.ir.operation import Op
from oarlock.ir.size import names_in
from oarlock.ir.var import Var, is_among
from oarlock.op.control.layout import Layout
from oarlock.registry.attributes import is_along_last
from oarlock.registry.catalogue import Catalogue
from oarlock.registry.declaration import Operator
from oarlock.registry.value_checks import may_skip_checks
from oarlock.runtime.plan.alias_sets import AliasSets
from oarlock.runtime.plan.liveness import Liveness

__all__ = ["BufferAssignment", "Call"]


class Call(NamedTuple):
    """How an op is called: by its kernel, or by a variant of it that writes over an input, or into `destination`.

    With `copies` it is not called at all: what it would compute is in `destination` once these values are in these destinations.
    """

    kernel: Callable[..., object]
    destination: str | None = None
    copies: Sequence[tuple[Var, str]] | None = None


class BufferAssignment:
    """The variants of the ops of a line.

    An op writes over an input where its operator has a variant for that, nobody reads the memory of the input afterwards, and input and
    output have one type. Values in `given` come from outside and may be written over too; those that are
    `gapped` lie in parts of wider values. Sizes in `names` are one number
    wherever they stand; what has others may be an uneven stack, for which there are no such variants.
    """

    def __init__(
        self,
        ops: Sequence[Op],
        kept: Collection[Var],
        liveness: Liveness,
        catalogue: Catalogue,
        names: Sequence[Collection[str]],
        given: Collection[Var] = (),
        states: Mapping[Var, Var] | None = None,
        constants: AbstractSet[Var] = frozenset(),
        gapped: Collection[Var] = (),
    ):
        self._states = states or {}
        self.alias_sets = AliasSets(liveness, catalogue, given, constants)
        self._catalogue = catalogue
        self._names = names
        self._given = frozenset(given)
        self._constants = frozenset(constants)
        self._makers: dict[Var, Op] = {}
        self._over: dict[Var, Var] = {}  # a result -> the input that it is written over
        self._parts = set(gapped)  # what may lie in a part of a wider value, with gaps in memory
        self._calls: dict[Op, Call] = {}
        self._placed: set[Var] = set()
        self._readers: dict[Var, list[Op | None]] = {var: [None] for var in kept}
        for op in ops:
            for var in dict.fromkeys(op.reads):
                self._readers.setdefault(var, []).append(op)
        for number, op in enumerate(ops):
            self._makers.update(dict.fromkeys(op.writes, op))
            if op.blocks:
                self._parts.update(_views_returned(op))
            else:
                self._choose(op, number)
            for var in op.writes:
                if var in self._over:
                    self.alias_sets.reuse(var, self._over[var])
            if not any(var in self._over for var in op.writes):
                self.alias_sets.define(op)
            else:
                self.alias_sets.lend(op)

    def call_of(self, op: Op) -> Call:
        """How `op`, which has no block, is called."""
        return self._calls[op]

    def readers(self, var: Var) -> Sequence[Op | None]:
        """The ops that read `var`; None among them where it is kept."""
        return self._readers.get(var, ())

    def is_even(self, var: Var) -> bool:
        """Whether the value of `var` is a tensor, never an uneven stack."""
        return var.shape is not None and all(any(name in names for names in self._names) for size in var.shape for name in names_in(size))

    def is_new(self, var: Var) -> bool:
        """Whether the value of `var` is computed here, in memory that no other value lies in."""
        maker = self._makers.get(var)
        return maker is not None and not maker.blocks and not self._catalogue.get(maker.type).aliases

    def has_gaps(self, var: Var) -> bool:
        """Whether `var` may lie in a part of a wider value."""
        return var in self._parts

    def origin(self, var: Var) -> Var | None:
        """The value that came from outside and that `var` is written over, step by step; None where it lies elsewhere."""
        chain = self._chain(var)
        return chain[-1] if chain[-1] in self._given and len(chain) > 1 else None

    def root(self, var: Var) -> Var:
        """The value whose memory `var` is computed in, step by step."""
        return self._chain(var)[-1]

    def is_alone(self, var: Var) -> bool:
        """Whether the memory of `var` is its alone: that of a state, or what a kernel that holds nothing took by itself."""
        chain = self._chain(var)
        root, maker = chain[-1], self._makers.get(chain[-1])
        is_taken = maker is not None and self.is_new(root) and not self.alias_sets.is_lent(root)
        return (is_among(root, self._states.values()) or is_taken) and self._placed.isdisjoint(chain) and root not in self._parts

    def stay(self, var: Var) -> None:
        """Let `var` be computed where it is: it can be put nowhere else from now on."""
        self._placed.update(self._chain(var))

    def put(self, var: Var, destination: str) -> bool:
        """Let `var` be computed in `destination`, a tensor of its type, and say whether that could be done."""
        chain = self._chain(var)
        if self._placed.intersection(chain):
            return False
        for made in reversed(chain):
            maker = self._makers.get(made)
            if maker is None or maker.blocks or len(maker.writes) != 1:
                continue
            into = variants_of(self._catalogue.get(maker.type)).out
            if into is not None and self.is_even(made):
                self._calls[maker] = Call(into, destination)
                self._over.pop(made, None)
                self._placed.update(chain)
                return True
        return False

    def parts_of(self, var: Var) -> list[Var]:
        """The variables that `var` is the concatenation of, along its last axis. Each has a number for its length and stands there once."""
        maker = self._makers.get(var)
        if maker is None or maker.type != "concat" or maker.attributes["axis"] not in (-1, len(var.shape or ()) - 1):
            return []
        parts = maker.inputs["xs"]
        return list(parts) if self._are_columns(parts) and len(set(parts)) == len(parts) else []

    def columns_of(self, op: Op) -> list[Var]:
        """The variables that `op` splits a value into along its last axis, where it does so, and each has a number for its length."""
        if op.type != "split" or op.attributes["axis"] not in (-1, len(op.reads[0].shape or ()) - 1):
            return []
        return list(op.writes) if self._are_columns((*op.reads, *op.writes)) else []

    def _are_columns(self, vars: Iterable[Var]) -> bool:
        return all(self.is_even(var) and var.shape != () and isinstance(var.shape[-1], int) for var in vars)  # type: ignore[index]

    def gather(self, var: Var, destinations: Sequence[str], destination: str) -> bool:
        """Compute the parts of `var` in `destinations`, which make up `destination`; False, and nothing changed, where none can be."""
        maker = self._makers[var]
        parts = dict(zip(maker.inputs["xs"], destinations, strict=True))
        placed = {part for part, text in parts.items() if self._put_alone(part, text, maker)}
        if placed:
            copies = [(part, text) for part, text in parts.items() if part not in placed]
            self._calls[maker] = Call(self._calls[maker].kernel, destination, copies)
            self._placed.add(var)
            for part in placed:
                self.alias_sets.reuse(part, var)
        return bool(placed)

    def _put_alone(self, part: Var, destination: str, reader: Op) -> bool:
        """`put` for a part of a wider value, whose memory has gaps: it is read by `reader` alone, since kernels may round otherwise there.

        A constant is not put: it is computed once, in memory that the plan holds from run to run, and copied.
        """
        maker = self._makers.get(part)
        if maker is None or maker.blocks or len(maker.writes) != 1 or part in self._placed or self._readers[part] != [reader]:
            return False
        if part in self._constants:
            return False
        into = variants_of(self._catalogue.get(maker.type)).out
        if into is None:
            return False
        self._calls[maker] = Call(into, destination)
        self._over.pop(part, None)
        self._placed.add(part)
        return True

    def _chain(self, var: Var) -> list[Var]:
        """`var`, what it is written over, and so on."""
        chain = [var]
        while chain[-1] in self._over:
            chain.append(self._over[chain[-1]])
        return chain

    def _choose(self, op: Op, number: int) -> None:
        operator = self._catalogue.get(op.type)
        for slots, kernel in variants_of(operator).in_place.items():
            pairs = list(_pairs(operator, slots, op))
            if pairs and len(pairs) == len(op.writes) and all(self._may_take(result, source, op, number) for result, source in pairs):
                self._over.update(pairs)
                self._parts.update(result for result, source in pairs if source in self._parts)
                self._calls[op] = Call(kernel)
                return
        own = operator.unchecked_kernel
        self._calls[op] = Call(own.kernel if own is not None and may_skip_checks(operator, op) else operator.kernel)
        if operator.aliases:
            self._parts.update(op.writes)

    def _may_take(self, result: Var, source: Var, op: Op, number: int) -> bool:
        """Whether op `number` may compute `result` in the memory of `source`."""
        ours = self._states.get(result) is source
        fits = result.dtype is source.dtype and result.shape == source.shape and self.is_even(source)
        if not fits or not self.alias_sets.is_free(source, number, op, ours=ours):
            return False
        return source not in self._parts or not any(
            self._may_round_by_layout(reader) or self._wants(reader, result) for reader in self.readers(result)
        )

    def _wants(self, reader: Op | None, var: Var) -> bool:
        """Whether a reader would write over `var`, and nothing else, if that did not lie in a part of a wider value.

        Then new memory is as cheap, since two ops share it, and without gaps it may be where the reader's result is wanted.
        """
        if reader is None or reader.blocks or sum(var is other for other in reader.reads) > 1:
            return False
        operator = self._catalogue.get(reader.type)
        taken = {source for slots in variants_of(operator).in_place for _, source in _pairs(operator, slots, reader)}
        return taken == {var} and any(self._may_round_by_layout(each) for made in reader.writes for each in self.readers(made))

    def _may_round_by_layout(self, reader: Op | None) -> bool:
        """Whether a reader may round otherwise where there are gaps in its input than where a kernel has made that anew."""
        if reader is None or reader.blocks:
            return True
        operator = self._catalogue.get(reader.type)
        return any(
            not each.is_trusted
            or each.aliases
            or (each.axis_attribute and not is_along_last(each, reader.attributes))
            or each.summed_outputs
            or each.sensitive_to == "layout"
            for each in (operator, *operator.parts)
        )

    def sources(self, op: Op) -> list[Var]:
        """The inputs that `op` writes over."""
        return [self._over[var] for var in op.writes if var in self._over]

    def overwritten(self) -> set[Var]:
        """Those of the states that are written over."""
        return {source for result, source in self._over.items() if self._states.get(result) is source}


def _views_returned(op: Op) -> list[Var]:
    """The outputs of a block that may be views of something, since they are no stacks."""
    layout = Layout.of(op)
    stacks = () if op.type == "conditional_block" and "when" not in op.inputs else (outer for _, outer in layout.stacked)
    return list(set(op.writes).difference(stacks))


def _pairs(operator: Operator, slots: Sequence[str], op: Op) -> Iterator[tuple[Var, Var]]:
    """Each result of an in-destination variant, and the input whose memory it takes; nothing where an input is absent."""
    if all(op.inputs.get(slot) for slot in slots):
        for output, slot in zip(operator.signature.outputs, slots, strict=False):
            results, sources = op.outputs[output.name], op.inputs[slot]
            yield from zip(results, sources, strict=True) if output.variadic else zip(results, sources[:1], strict=True)
