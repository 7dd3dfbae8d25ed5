"""The arguments of an operator with any number of rows, made from a case that it declares."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice, product
from random import Random

import torch
from op.arguments import AnyCase, Arguments, Tensors, cases_of, compute, derive, is_inexact, root, root_arguments

from oarlock.errors import OarlockError
from oarlock.ir.attribute import Sizes
from oarlock.ir.size import Shape, Size, add, divide, evaluate, multiply
from oarlock.registry import Case, GradCheck, Operator
from oarlock.registry.signature import TensorType
from oarlock.tensor.dtype import from_torch

__all__ = ["Given", "Layout", "Place", "at_sizes", "axes_of", "counts_rows", "find_layouts", "give", "is_splits"]

Place = tuple[str, int]
"""An argument: its slot, and its number in the slot."""
Units = dict[str, list[tuple[int, int]]]
"""Of each symbol that counts rows, or elements of sequences, where each row begins and ends."""

PARTS = [(1, 1), (3, 1), (1, 2), (2, 2)]
ROWS = (3, 5)  # two numbers of rows, which tell a size that counts them from one that does not
MOST = 60  # layouts of one operator
JOINED = ("q", 0)
SEQUENCES, ELEMENTS = {"n", "m"}, {"t", "u", "l", "q", "k_i"}  # what signatures call the sizes of ragged arguments


@dataclass(frozen=True)
class Structure:
    """The axes of a case along which there are rows, all of one size: `outer` parts of rows of `inner` elements."""

    case: AnyCase
    attributes: Mapping[str, object]  # the sizes among them by the symbol n
    axes: Mapping[Place, int]
    outer: int = 1
    inner: int = 1
    is_ragged: bool = False


@dataclass(frozen=True)
class Layout:
    """The shapes of the arguments of an operator, with the symbols that count rows, and its attributes."""

    structure: Structure
    shapes: Mapping[Place, Shape]
    attributes: Mapping[str, object]


@dataclass(frozen=True)
class Given:
    """Arguments of an operator that have rows."""

    tensors: Tensors
    units: Units


def is_splits(slot: str) -> bool:
    return slot.removesuffix("_shape").endswith("splits")


def give(
    operator: Operator, structure: Structure, count: int, random: Random, noise: float = 0.0, dtype: torch.dtype = torch.float64
) -> Given:
    """Arguments with `count` rows, each one of those of the case, with its floats changed a little. Raises what a kernel raises."""
    base = _arguments(root(operator), structure.case, dtype)
    tensors, units = (_ragged if structure.is_ragged else _dense)(operator, structure, base.tensors, count, random)
    generator = torch.Generator().manual_seed(random.randrange(2**31))
    for items in tensors.values() if noise else ():
        for number, item in enumerate(items):
            if is_inexact(item) and item.ndim:
                items[number] = item * (1 - noise * torch.rand(item.shape, generator=generator, dtype=torch.float64).to(item.dtype))
    sizes = {symbol: spans[-1][1] if spans else 0 for symbol, spans in units.items()}
    attributes = at_sizes(structure.attributes, sizes)
    return Given(derive(operator, Arguments(tensors, attributes)).tensors, units)


@cache
def _arguments(operator: Operator, case: AnyCase, dtype: torch.dtype = torch.float64) -> Arguments:
    return root_arguments(operator, case, dtype)


def at_sizes(attributes: Mapping[str, object], sizes: Mapping[str, int]) -> dict[str, object]:
    """The attributes with numbers for symbols."""
    return {
        name: Sizes(tuple(evaluate(item, sizes) for item in value)) if isinstance(value, Sizes) else value  # type: ignore[misc]
        for name, value in attributes.items()
    }


def _dense(operator: Operator, structure: Structure, base: Tensors, count: int, random: Random) -> tuple[Tensors, Units]:
    sizes = {base[slot][number].shape[axis] for (slot, number), axis in structure.axes.items()}
    (size,) = sizes or {1}
    picks = torch.tensor([random.randrange(size) for _ in range(structure.outer * count * structure.inner)], dtype=torch.int64)
    tensors = {slot: list(items) for slot, items in base.items()}
    for (slot, number), axis in structure.axes.items():
        tensors[slot][number] = tensors[slot][number].index_select(axis, picks)
    return tensors, {"n": [(row, row + 1) for row in range(count)]}


def _ragged(operator: Operator, structure: Structure, base: Tensors, count: int, random: Random) -> tuple[Tensors, Units]:
    """Sequences of the case, each with the elements that it has there."""
    cuts = {(slot, number): item.tolist() for slot, items in base.items() if is_splits(slot) for number, item in enumerate(items)}
    (sequences,) = {len(splits) - 1 for splits in cuts.values()}
    picks = [random.randrange(sequences) for _ in range(count)]
    units: Units = {"m": [(row, row + 1) for row in range(count)]}
    elements: dict[Place, list[int]] = {}
    tensors: Tensors = {}
    for (slot, number), splits in cuts.items():
        spans, at = [], 0
        for pick in picks:
            spans.append((at, at + splits[pick + 1] - splits[pick]))
            at = spans[-1][1]
        units[f"{slot}{number}.t"] = spans
        elements[slot, number] = [each for pick in picks for each in range(splits[pick], splits[pick + 1])]
    if len(cuts) > 1:  # of sequences joined one by one
        units["q"] = [
            (sum(begin for begin, _ in spans), sum(end for _, end in spans)) for spans in zip(*list(units.values())[1:], strict=True)
        ]
        joined = [sum(each) for each in zip(*cuts.values(), strict=True)]
        elements[JOINED] = [each for pick in picks for each in range(joined[pick], joined[pick + 1])]
    for slot, items in base.items():
        tensors[slot] = []
        for number, item in enumerate(items):
            if (slot, number) in cuts:
                tensors[slot].append(torch.tensor([0, *(stop for _, stop in units[f"{slot}{number}.t"])]))
                continue
            which = _which(operator, slot, number, item, cuts, sequences)
            index = picks if which == "m" else elements[which] if which is not None else None  # type: ignore[index]
            tensors[slot].append(item if index is None else item.index_select(0, torch.tensor(index, dtype=torch.int64)))
    return tensors, units


def _which(
    operator: Operator, slot: str, number: int, item: torch.Tensor, cuts: Mapping[Place, list[int]], sequences: int
) -> "str | Place | None":
    """Whether an argument of a ragged case has sequences, `m`, or elements, and by which row splits; None where it has neither."""
    declared = root(operator).signature.input(slot)
    named = declared.axes[0].name if declared and declared.axes else ""
    if named in SEQUENCES and item.shape[0] == sequences:
        return "m"
    if named not in ELEMENTS | SEQUENCES:
        return None
    if named == "q":
        return JOINED
    near = [place for place in cuts if place[0].startswith(slot) or place[1] == number > 0] + list(cuts)
    return next((place for place in near if cuts[place][-1] == item.shape[0]), None)


# The ways to see rows in the cases


@cache
def axes_of(operator: Operator) -> list[tuple[str, int]]:
    """The slots of an operator that its cases give, each with the numbers of the axes of its arguments there."""
    found: set[tuple[str, int]] = set()
    for _, case in cases_of(operator, Case, GradCheck):
        tensors = derive(operator, _arguments(root(operator), case)).tensors
        found |= {(slot, axis) for slot, items in tensors.items() for item in items for axis in range(item.ndim)}
    return sorted(found)


def counts_rows(shape: Shape, axis: int, is_ragged: bool) -> bool:
    """Whether an axis of a shape, and no other one, is as long as a number times that of what is counted."""
    sizes = [number for number, size in enumerate(shape) if isinstance(size, str)]
    return sizes == [axis] and (is_ragged or divide(shape[axis], "n") is not None)


@cache
def find_layouts(operator: Operator, seed: int = 0) -> list[Layout]:
    """Ways to see rows in the cases of an operator; and its attributes in other values that its kernel takes. At most `MOST`.

    Each argument has rows along each of its axes in some of them, if its operator takes any number of rows there.
    """
    random = Random(f"{operator.type} {seed}")
    found: list[Layout] = []
    for _, case in cases_of(operator, Case, GradCheck):
        for structure in _structures(root(operator), case, random):
            layout = _layout(operator, structure, random)
            if layout is not None:
                found.append(layout)
    if len(found) > MOST:
        reached: set[object] = set()
        first, rest = [], []
        for layout in random.sample(found, len(found)):
            new = {(place, axis) for place, shape in layout.shapes.items() for axis, size in enumerate(shape) if isinstance(size, str)}
            (rest if new <= reached else first).append(layout)
            reached |= new
        found = (first + rest)[: max(MOST, len(first))]
    return found


def _layout(operator: Operator, structure: Structure, random: Random) -> Layout | None:
    """The shapes of arguments of a structure, told by two numbers of rows; None where the kernels take only those of the case."""
    try:
        one, two = (give(operator, structure, count, random) for count in ROWS)
        for count in range(4, 12):
            if _tell_apart(one.units, two.units):
                break
            two = give(operator, structure, count, random)
    except Exception:  # of a kernel of PyTorch too: of any kind
        return None
    shapes: dict[Place, Shape] = {}
    for slot, items in one.tensors.items():
        for number, item in enumerate(items):
            other = two.tensors[slot][number]
            if item.ndim != other.ndim:
                return None
            shape = [_size(a, b, one.units, two.units) for a, b in zip(item.shape, other.shape, strict=True)]
            if None in shape:
                return None
            shapes[slot, number] = tuple(shape)  # type: ignore[arg-type]
    if not any(isinstance(size, str) for shape in shapes.values() for size in shape):
        return None
    names = operator.attributes if operator.forward is None else operator.forward.gradients[operator.wrt or ""].attributes
    return Layout(structure, shapes, {name: value for name, value in structure.attributes.items() if name in names})


def _tell_apart(one: Units, two: Units) -> bool:
    """Return whether each symbol has another number in the second, and no two sizes have the same numbers in both, `m+1` included."""
    numbers = {symbol: (spans[-1][1], two[symbol][-1][1]) for symbol, spans in one.items()}
    sizes = [*numbers.values(), *((first + 1, second + 1) for symbol, (first, second) in numbers.items() if symbol == "m")]
    return len(set(sizes)) == len(sizes) and all(first != second for first, second in numbers.values())


def _size(one: int, two: int, before: Units, after: Units) -> Size | None:
    if one == two:
        return one
    for symbol, spans in before.items():
        first, second = spans[-1][1], after[symbol][-1][1]
        if first != second and (two - one) % (second - first) == 0:
            factor = (two - one) // (second - first)
            rest = one - factor * first
            if factor > 0 and (len(before) == 1 or (factor == 1 and rest in ((0, 1) if symbol == "m" else (0,)))):
                return add(multiply(factor, symbol), rest)
    return None


def _structures(operator: Operator, case: AnyCase, random: Random) -> Iterator[Structure]:
    base = _arguments(operator, case)
    for attributes in _variants(operator, base, random):
        if any(map(is_splits, base.tensors)):
            yield Structure(case, attributes, {}, is_ragged=True)
        seen: set[object] = set()
        for place, axis in [(place, axis) for place, item in _items(base.tensors) for axis in range(item.ndim)]:
            for axes in islice(_together(operator, base.tensors, place, axis), 80):
                key = tuple(sorted(axes.items()))
                if key in seen:
                    continue
                seen.add(key)
                for outer, inner in PARTS if random.random() < 0.5 else PARTS[:1]:
                    size = base.tensors[place[0]][place[1]].shape[axis]
                    for sized in _sized(attributes, size, outer * inner):
                        structure = Structure(case, sized, axes, outer, inner)
                        if _takes(operator, base.tensors, structure):
                            yield structure


def _items(tensors: Tensors) -> list[tuple[Place, torch.Tensor]]:
    return [((slot, number), item) for slot, items in tensors.items() for number, item in enumerate(items)]


def _together(operator: Operator, tensors: Tensors, place: Place, axis: int) -> Iterator[dict[Place, int]]:
    """The axes that may have rows together with an axis of one argument: by the signature, by their ends, by their fronts, or any."""
    size = dict(_items(tensors))[place].shape[axis]
    rank = dict(_items(tensors))[place].ndim
    options: dict[Place, list[int]] = {}
    for other, item in _items(tensors):
        options[other] = [number for number, each in enumerate(item.shape) if each == size] if other != place else [axis]
    declared = {slot.name: slot for slot in operator.signature.inputs}

    def dimension(of: Place, at: int) -> object:
        found = declared[of[0]].dimensions(dict(_items(tensors))[of].ndim)
        return found[at] if at < len(found) else None

    wanted = dimension(place, axis)
    if wanted is not None:
        yield {other: at for other, ats in options.items() for at in ats if other == place or dimension(other, at) == wanted}
    items = dict(_items(tensors))
    yield {other: at for other, ats in options.items() for at in ats if other == place or at - items[other].ndim == axis - rank}
    yield {other: at for other, ats in options.items() for at in ats if other == place or at == axis}
    yield {place: axis}
    for chosen in product(*([None, *ats] if other != place else ats for other, ats in options.items())):
        yield {other: at for other, at in zip(options, chosen, strict=True) if at is not None}


def _sized(attributes: Mapping[str, object], size: int, factor: int) -> Iterator[dict[str, object]]:
    """The attributes with numbers of rows in place of sizes that may be such numbers, in every way."""
    names = [name for name, value in attributes.items() if isinstance(value, Sizes)]
    options = [[_counts_of(item, size, factor) for item in attributes[name]] for name in names]  # type: ignore[attr-defined]
    for chosen in product(*(product(*each) for each in options)):
        yield {**attributes, **{name: Sizes(value) for name, value in zip(names, chosen, strict=True)}}


def _counts_of(item: Size, size: int, factor: int) -> list[Size]:
    """A size that may be a number of rows: as it is, as the rows, and as many times these as it is the size of the case."""
    found: list[Size] = [item, multiply(factor, "n")]
    if isinstance(item, int) and size and item and item % size == 0:
        found.append(multiply(item // size * factor, "n"))
    return list(dict.fromkeys(found))


def _takes(operator: Operator, tensors: Tensors, structure: Structure) -> bool:
    """Whether the operator takes such arguments with two numbers of rows; symbols may be equal to anything, so that tells nothing."""
    for count in ROWS:
        types: dict[str, list[TensorType]] = {slot: [] for slot in tensors}
        for place, item in _items(tensors):
            shape = list(item.shape)
            if place in structure.axes:
                shape[structure.axes[place]] = structure.outer * count * structure.inner
            types[place[0]].append(TensorType(from_torch(item.dtype), tuple(shape)))  # type: ignore[arg-type]
        try:
            operator.infer(types, operator.convert_attributes(at_sizes(structure.attributes, {"n": count})), lambda: "?")
        except OarlockError:
            return False
    return True


def _variants(operator: Operator, base: Arguments, random: Random) -> Iterator[dict[str, object]]:
    """The attributes of a case; and some with another value: the other bool, another axis, or the value of another case."""
    given = {name: value for name, value in operator.convert_attributes(base.attributes).items() if value is not None}
    given |= {name: value for name, value in base.attributes.items() if name not in given and name == "random_id"}
    yield given
    others: dict[str, list[object]] = {}
    for case in operator.cases:
        for name, value in case.values.items():
            if isinstance(case, Case | GradCheck) and name in operator.attributes and not isinstance(given.get(name), Sizes):
                others.setdefault(name, []).append(operator.attributes[name].convert(value))
    rank = max((item.ndim for _, item in _items(base.tensors)), default=0)
    for name, spec in operator.attributes.items():
        if spec.type is bool:
            others.setdefault(name, []).extend([True, False])
        if name in ("axis", "axes"):
            taken = others.setdefault(name, [])
            taken += [spec.convert(axis) for axis in range(-1, rank) if spec.type is int or "int |" in str(spec.type)]
            if "tuple[int, ...]" in str(spec.type):
                taken += [tuple(sorted(random.sample(range(rank), min(rank, 1 + random.randrange(2)))))]
            if spec.default is None:
                taken.append(None)
    tried: list[object] = [given]
    for name, values in others.items():
        for value in random.sample(values, min(2, len(values))):
            changed = {key: each for key, each in {**given, name: value}.items() if each is not None}
            if changed in tried:
                continue
            tried.append(changed)
            try:
                compute(operator, Arguments(base.tensors, changed))
            except Exception:
                continue
            yield changed
