"""From ops to the lines of a plan: one line an op. What ops with blocks become is in `loops.py`."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import MappingProxyType

import torch

from oarlock.backend.torch.variants import variants_of
from oarlock.ir.attribute import Sizes
from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.size import Size, linear, names_in
from oarlock.ir.var import Var, is_among
from oarlock.registry.attributes import declared_shapes, needs_input_sizes
from oarlock.registry.catalogue import Catalogue
from oarlock.registry.signature import Slot
from oarlock.registry.size_check import SizeCheck
from oarlock.runtime.plan import calls, control_flow, loop_support
from oarlock.runtime.plan.asked_sizes import asked_sizes, symbolic_sizes, symbols_of
from oarlock.runtime.plan.buffer_assignment import Call
from oarlock.runtime.plan.constants import make_constant
from oarlock.runtime.plan.liveness import Liveness
from oarlock.runtime.plan.numbers import Numbers, wrapping
from oarlock.runtime.plan.regions import Region
from oarlock.runtime.plan.source import Source
from oarlock.runtime.plan.straight_line import StraightLine
from oarlock.runtime.plan.workspace import Growth, as_byte
from oarlock.tensor.dtype import to_torch

__all__ = ["Emitter"]


class Emitter:
    """Writes the ops of a block, and of the blocks inside it, into a `Source`.

    What is not in `places` runs at the first of the `devices`. Only there have loops buffers that outlive a run.
    """

    def __init__(
        self,
        source: Source,
        catalogue: Catalogue,
        ops: Sequence[Op],
        numbers: Numbers,
        devices: Sequence[torch.device],
        places: Mapping[Op, int],
        size_checks: Mapping[Op, SizeCheck] = MappingProxyType({}),
        *,
        poison: bool | int = False,
    ):
        self.source = source
        self.catalogue = catalogue
        self.numbers = numbers
        self.place = 0  # the number of that at which the ops run that are written now
        self._devices = devices
        self._places = places
        self.size_checks = size_checks
        self._poison = None if poison is False else partial(loop_support.poison, byte=as_byte(poison))
        self._shapes: dict[Var, str] = {}  # values that are gone, whose shapes were kept
        self._sizes: dict[str, str] = {}  # a symbol -> the name of its number
        self._unsure: set[str] = set()  # symbols read off what may be an uneven stack: the next value of that size tells better
        self._asked = asked_sizes(ops)
        self._names: set[str] = set()  # sizes that are one number wherever they stand
        self.has_buffers = False
        self._holds = not control_flow.wants_memory(ops)
        self.constants: dict[str, Op] = {}  # the name of one that the plan holds -> the op that made it
        self.lines: list[StraightLine] = []  # that are being written, the innermost last
        self.above_autograd: dict[Callable[..., object], Callable[..., object]] = {}  # kernels that may ask PyTorch for gradients
        self.packed: dict[Op, str] = {}  # an op whose input is packed ahead -> the name of what it is packed into

    def line(self, block: Block, kept: Iterable[Var], given: Collection[Var] = (), gapped: Collection[Var] = ()) -> StraightLine:
        """The line of a block inside."""
        return StraightLine(block, block.ops, kept, self.catalogue, self._names, given, gapped=gapped)

    def straight(self, line: StraightLine, start: int = 0, stop: int | None = None) -> None:
        """Write the ops of a line, or those from `start` to `stop`."""
        added = line.sizes - self._names
        self._names |= added
        self.lines.append(line)
        for number in range(start, len(line.ops) if stop is None else stop):
            line.number, op = number, line.ops[number]
            if any(map(self.numbers.vanishes, op.writes)) or (not line.constants.isdisjoint(op.writes) and self._hold(op)):
                continue
            with self._at(self._places.get(op, self.place)):
                start = len(self.source.lines)
                calls.check_sizes(self, op)
                control_flow.WRITERS.get(op.type, Emitter.call)(self, op)
                self.source.extend(start, op)
            for var in op.writes:
                if var not in line.unjoined:  # a list of steps tells what each step tells
                    self.define(var, uneven=bool(op.blocks) or op.type == "move")
            self._drop(line.liveness, number)
        self.lines.pop()
        self._names -= added

    @property
    def device(self) -> torch.device:
        """The device at which the ops run that are written now."""
        return self._devices[self.place]

    @contextmanager
    def _at(self, place: int) -> Iterator[None]:
        """Let what is written in this context run at a place, and what its kernels make of nothing be made there."""
        if place == self.place:
            yield
            return
        before, self.place = self.place, place
        self.source.write(f"with {self._device_text()}:")
        with self.source.indented():
            yield
        self.place = before

    def _device_text(self) -> str:
        return self.source.bind("device", self.device) if self.place else "device"

    def region(self, line: StraightLine, region: Region, function: Callable[..., object]) -> None:
        """Write a call of `function` in destination of the ops of a region of `line`."""
        for number in range(region.start, region.stop):
            if line.ops[number] not in region.ops:  # made once, or a number
                self.straight(line, number, number + 1)
        self.lines.append(line)
        asking = next((op for op in region.ops if self.catalogue.get(op.type).wants_context), None)
        arguments = [
            "None" if asking is None else self.context(asking),
            *map(self.source.name, region.reads),
            *map(self.shape, region.shapes),
        ]
        for var in region.shapes_left:
            self._shapes[var] = self.source.fresh(f"{var.name}_shape")
        results = [*map(self.source.name, region.writes), *(self._shapes[var] for var in region.shapes_left)]
        start = len(self.source.lines)
        self.source.write(f"[{', '.join(results)}] = {self.source.bind('region', function)}({', '.join(arguments)})", region.ops[0])
        self.source.extend(start, *region.ops)
        for var in region.writes:
            self.define(var)
        line.inside.update(var for op in region.ops for var in op.writes if not is_among(var, region.writes))
        for number in range(region.start, region.stop):
            self._drop(line.liveness, number)
        self.lines.pop()

    def _hold(self, op: Op) -> bool:
        """Let the result of `op` be an object of the plan, and say whether that could be done."""
        if self.source.names.get(op.writes[0]) in self.constants:
            return True
        value = make_constant(op, self.catalogue, self._devices[self._places.get(op, self.place)])
        if value is None:
            self.lines[-1].constants.difference_update(op.writes)
            return False
        (var,) = op.writes
        self.source.names[var] = self.source.bind(var.name, value)
        self.constants[self.source.names[var]] = op
        return True

    def know(self, symbol: str, number: str) -> None:
        """Note that the size `symbol` is the value of the name `number`."""
        self._sizes[symbol] = number
        self._unsure.discard(symbol)

    def define(self, var: Var, *, uneven: bool = False) -> None:
        """Note that `var` has its value now, which may be an uneven stack: the sizes that zeros will ask for are read off it."""
        for axis, size in enumerate(var.shape or ()):
            for name in self._asked_of(size):
                known = self._sizes.get(name, "0")
                self._sizes[name] = self.source.fresh(name if names_in(name) == {name} else "size")
                self.source.write(f"{self._sizes[name]} = {self._read_off(var, axis, name, known, uneven=uneven)}")
                (self._unsure.add if uneven and axis else self._unsure.discard)(name)

    def _read_off(self, var: Var, axis: int, name: str, known: str, *, uneven: bool) -> str:
        """The text of what `name` is, which the size of `var` along `axis` tells; what is `known` where that is uneven."""
        size = (var.shape or ())[axis]
        _, factor, rest = (linear(size) if name != size else None) or (name, 1, 0)
        is_name = factor == 1 and not rest
        if not is_name:  # where the value is uneven, the name stays what it was
            known = f"{factor} * {known} + {rest}"
        if self.lines and var in self.lines[-1].unjoined:
            steps = self.lines[-1].packed[var].steps
            number = f"{self.source.bind('size_of_steps', loop_support.size_of_steps)}({steps}, {axis}, {known})"
        elif uneven:
            number = f"{self.source.bind('size_of', loop_support.size_of)}({self.source.name(var)}, {axis}, {known})"
        else:
            number = f"{self.source.name(var)}.shape[{axis}]"
        return number if is_name else f"({number} - {rest}) // {factor}"

    def asks_sizes_of(self, var: Var) -> bool:
        """Whether a size would be read off the value of `var`."""
        return any(self._asked_of(size) for size in var.shape or ())

    def _asked_of(self, size: Size) -> list[str]:
        """The names that `size` tells, of those that are asked for and not sure yet: itself, and the name that it is made of."""
        tells = dict.fromkeys((size, *(linear(size) or ())[:1])) if isinstance(size, str) else ()
        return [name for name in tells if name in self._asked and (name not in self._sizes or name in self._unsure)]

    def _drop(self, liveness: Liveness, number: int) -> None:
        line = self.lines[-1]
        ending = [var for var in liveness.ending(number) if var not in line.inside]
        stepped_through = line.ops[number].inputs.get("sequences", ())  # what a loop gives may lie there
        for var in ending:
            if liveness.needs_shape_after(var, number):
                self._shapes[var] = self.source.fresh(f"{var.name}_shape")
                self.source.write(f"{self._shapes[var]} = {self.source.name(var)}.shape")
            if self.numbers.has(var) or self.numbers.vanishes(var):
                continue
            if self._poison and not is_among(var, (*stepped_through, *line.unjoined)) and line.buffers.alias_sets.has_ended(var, number):
                self.source.write(f"{self.source.bind('poison', self._poison)}({self.source.name(var)})")
        gone: list[str] = []
        for var in ending:
            if var in line.packed:
                gone.append(line.packed.pop(var).steps)
            if var not in line.unjoined and var not in line.constants and not self.numbers.vanishes(var):
                gone.append(self.source.name(var))
        self.forget(gone)
        self._give_back(number)

    def _give_back(self, number: int) -> None:
        """Give back the buffers in which nothing is read after op `number`."""
        line = self.lines[-1]
        ended = [buffer for buffer, vars in line.held.items() if all(line.buffers.alias_sets.end(var) <= number for var in vars)]
        for buffer in ended:
            del line.held[buffer]
            if self._poison:
                self.source.write(f"{self.source.bind('poison', self._poison)}({buffer}.whole)")
        if ended:
            self.source.write(f"workspace.give_back({', '.join(ended)})")

    def holds(self, vars: Iterable[Var]) -> bool:
        """Whether a buffer in which `vars` lie is to be given back: one of an outermost loop, where none of them is returned.

        Not so in a plan that is to need less memory: what is given back is held until the run ends, and longer.
        """
        line = self.lines[-1]
        return len(self.lines) == 1 and self._holds and not any(map(line.buffers.alias_sets.stays, vars))

    def may_copy(self, var: Var, others: Iterable[Var]) -> bool:
        """Whether a buffer in which `var` lies may be given back though `var` is returned, as a copy.

        It is that of an outermost loop; of the `others` that the loop returns, nobody reads what may lie in it; and no kernel may hold
        that.
        """
        alias_sets, readers = self.lines[-1].buffers.alias_sets, self.lines[-1].buffers.readers
        is_alone = not any(readers(other) and alias_sets.may_share([var], [other]) for other in others)
        return len(self.lines) == 1 and is_alone and not alias_sets.is_lent(var)

    def forget(self, names: Iterable[str]) -> None:
        """Let go of values."""
        gone = ", ".join(dict.fromkeys(names))
        if gone:
            self.source.write(f"del {gone}")

    @contextmanager
    def body(self, block: Block, trip: str | None) -> Iterator[None]:
        """Note that the lines written in this context run where `block` does: its names of sizes hold there only."""
        before = dict(self._sizes), set(self._unsure)
        with self.source.inside(block.name if trip is None else block.name.partition(".")[0], trip):
            yield
        self._sizes, self._unsure = before

    # One op

    def call(self, op: Op) -> None:
        """Write the call of an op's kernel, or of its variant on numbers."""
        if op in self.lines[-1].cut:
            return
        if self.numbers.has(op.writes[0]):
            self._call_host(op)
            return
        call = control_flow.with_headroom(self, op) or control_flow.in_steps(self, op) or self.lines[-1].buffers.call_of(op)
        if call.destination is not None:
            self.source.kept.add(op)
        if call.copies is not None:
            for part, destination in call.copies:
                self.source.write(f"{destination}.copy_({self.source.name(part)})", op)
            self.source.write(f"{self.source.name(op.writes[0])} = {call.destination}", op)
            return
        operator = self.catalogue.get(op.type)
        results = operator.results_text({slot: [self.source.name(var) for var in vars] for slot, vars in op.outputs.items()})
        condition = self.lines[-1].conditions.get(op)
        text = calls.text_of(self, op, call) + (f" if {condition} else None" if condition else "")
        self.source.write(f"{results} = {text}", op)

    def out_variant(self, op: Op) -> Callable[..., object] | None:
        """The function that computes the one result of `op` into a tensor; None where it has several, or writes over an input."""
        operator = self.catalogue.get(op.type)
        is_free = len(op.writes) == 1 and self.lines[-1].buffers.call_of(op) == Call(operator.kernel)
        return variants_of(operator).out if is_free else None

    def _call_host(self, op: Op) -> None:
        operator, (result,) = self.catalogue.get(op.type), op.writes
        if self.numbers.is_read_off(result):
            number = variants_of(operator).number
            assert number is not None
            self.source.write(f"{self.source.name(result)} = {calls.text_of(self, op, Call(number))}", op)
            return
        host = self.source.bind(f"{op.type}_host", variants_of(operator).host)
        text = operator.call_text(host, {slot.name: [*map(self.number, op.inputs[slot.name])] for slot in operator.signature.inputs}, {})
        if result.dtype.is_integer:
            text = f"{self.source.bind(str(result.dtype), wrapping(result.dtype))}({text})"
        self.source.write(f"{self.source.name(result)} = {text}", op)

    def number(self, var: Var) -> str:
        """The text of the one number that `var` is."""
        constant = self.numbers.constant(var)
        if constant is None:
            return self.source.name(var) if self.numbers.has(var) else f"{self.source.name(var)}.item()"
        return self._literal("number", constant)

    def truth(self, var: Var) -> str:
        """The text of what is asked whether `var` is true: the number or the tensor."""
        return self.source.name(var) if self.numbers.constant(var) is None else self.number(var)

    def values(self, slot: Slot, op: Op) -> list[str]:
        """The texts of what `op` reads in a slot: of the values, or of their shapes."""
        return [self.shape(var) if slot.shape_only else self.source.name(var) for var in op.inputs.get(slot.name, ())]

    def forget_shapes(self) -> None:
        """Begin a function of its own, where no shape is known that was kept before."""
        self._shapes.clear()

    def shape(self, var: Var) -> str:
        return self._shapes.get(var) or f"{self.source.name(var)}.shape"

    def attribute(self, op: Op, name: str, value: object) -> str:
        operator = self.catalogue.get(op.type)
        if isinstance(value, Var):
            if operator.attributes[name].type is Sizes:
                return f"{self.source.bind('sizes', loop_support.sizes_in)}({self.source.name(value)})"
            return self.number(value)
        if isinstance(value, Sizes) and needs_input_sizes(operator, name, value):
            read = partial(loop_support.numbers_told, value, declared_shapes(op, operator))
            vars = (var for slot in operator.signature.inputs for var in op.inputs.get(slot.name, ()))
            return f"{self.source.bind('sizes', read)}({', '.join(map(self.shape, vars))})"
        return self._literal(name, value)

    def _literal(self, name: str, value: object) -> str:
        if isinstance(value, bool) or (isinstance(value, int) and abs(value) < 2**31):
            return repr(value)
        return self.source.bind(name, value)

    def context(self, op: Op) -> str:
        """The context for a kernel that asks for its run: the op, and the loops and iterations around it, innermost first."""
        stands = [*reversed(self.source.trips), ("main", None)]
        parts = [part for name, trip in stands for part in ([] if trip is None else [f"str({trip})"]) + [self.source.bind("name", name)]]
        return f"context_of({self.source.bind('op', op)}, ({', '.join(parts)},){f', {self.place}' if self.place else ''})"

    def zeros(self, var: Var, leading: tuple[int, ...] = ()) -> str:
        """The text of zeros of the declared type of `var`."""
        symbols = [symbol for symbol in sorted({*symbols_of([var]), *symbolic_sizes([var])}) if symbol in self._sizes]
        made = partial(loop_support.zeros, var=var, symbols=tuple(symbols), leading=leading)
        return f"{self.source.bind('zeros', made)}({', '.join([self._device_text(), *(self._sizes[symbol] for symbol in symbols)])})"

    def buffer(self, var: Var, count: str, skip: int = 0, *, held: bool = False, copied: bool = False) -> str | None:
        """The text of a buffer for `count` values of the declared type of `var`, less its first `skip` sizes; None where one is unknown.

        Where it is `held`, it will be given back; where it may be `copied`, it will be returned.
        """
        sizes = self._size_texts(var, skip)
        if sizes is None or self.place:
            return None
        dtype = self.source.bind(str(var.dtype), to_torch(var.dtype))
        return f"{self._workspace()}.{'take' if held else 'borrow' if copied else 'make'}({', '.join([dtype, count, *sizes])})"

    def growing_buffer(self, var: Var, *, held: bool) -> str | None:
        """The text of a buffer for any number of values of the declared type of `var`."""
        sizes = self._size_texts(var, 0)
        if sizes is None or self.place:
            return None
        growth = self.source.bind("growth", Growth(to_torch(var.dtype)))
        return f"{self._workspace()}.{'take_growing' if held else 'make_growing'}({', '.join([growth, *sizes])})"

    def _workspace(self) -> str:
        self.has_buffers = True
        return "workspace"

    def length(self, var: Var) -> str | None:
        """The text of the first size of `var`; None where its number is unknown."""
        size = (var.shape or (None,))[0]
        if isinstance(size, int):
            return str(size)
        return None if size in self._unsure else self._sizes.get(size or "")

    def _size_texts(self, var: Var, skip: int) -> list[str] | None:
        """The sizes of `var` after the first `skip`; None where the number of one is unknown."""
        if var.shape is None:
            return None
        names = {name for size in var.shape[skip:] for name in names_in(size)}
        if any(name not in self._sizes or name in self._unsure for name in names):
            return None
        return [self._size_text(size) for size in var.shape[skip:]]

    def _size_text(self, size: Size) -> str:
        if isinstance(size, int):
            return self._literal("size", size)
        if size in self._sizes:
            return self._sizes[size]
        names = tuple(sorted(names_in(size)))
        made = partial(loop_support.evaluated, size=size, names=names)
        return f"{self.source.bind('size', made)}({', '.join(self._sizes[name] for name in names)})"
