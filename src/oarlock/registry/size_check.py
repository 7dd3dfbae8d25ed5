"""Checks of an op's sizes during the run, for ops whose sizes are not proved to fit by their symbols.

Programs use symbols. A size `n` is accepted where 4 is needed, because they may be equal, but the run has to check it. It needs no separate
rules: it infers the op's types again with numbers, for which every shape rule is definite.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

from oarlock.errors import OarlockError, ShapeError
from oarlock.ir.attribute import Sizes
from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.size import Shape, Size, evaluate, format_shape, linear, names_in, solve_shapes
from oarlock.ir.traversal import walk_ops
from oarlock.ir.var import Var
from oarlock.registry.attributes import substitute_numbers
from oarlock.registry.call_signature import format_call
from oarlock.registry.catalogue import Catalogue
from oarlock.registry.declaration import Operator
from oarlock.registry.forward_shapes import find_forward_call
from oarlock.registry.signature import TensorType

__all__ = [
    "SizeCheck",
    "check_sizes",
    "fed_sizes",
    "find_size_checks",
    "has_obligations",
    "infer_from_numbers",
    "leaves_sizes_to_values",
]

_MOST_REMEMBERED = 1024  # accepted shapes per check
_PRIMES = (101, 103, 107, 109, 113, 127, 131, 137)
_LARGE = 2**33 + 29  # larger than any limit that a program may contain

_Types = Mapping[str, Sequence[TensorType]]
_checks: "WeakKeyDictionary[Program, tuple[int, Catalogue, dict[Op, SizeCheck]]]" = WeakKeyDictionary()
_fed: "WeakKeyDictionary[Program, tuple[int, frozenset[Size]]]" = WeakKeyDictionary()


class SizeCheck:
    """The size check of one op: called with the shapes of its inputs, in slot order, it raises ShapeError unless they fit."""

    __slots__ = ("_accepted", "declared", "op", "operator")

    def __init__(self, op: Op, operator: Operator):
        self.op = op
        self.operator = operator
        self.declared = tuple(var.shape for slot in operator.signature.inputs for var in op.inputs.get(slot.name, ()))
        self._accepted: set[tuple[Sequence[int], ...]] = set()

    def __call__(self, *shapes: Sequence[int]) -> None:
        """Check the input shapes. Raises ShapeError with the user's line. Shapes that fit are remembered."""
        if shapes in self._accepted:
            return
        fault = _find_fault(
            self.operator, _input_types(self.op, self.operator, shapes), self.op.attributes, self.declared, _outputs(self.op)
        )
        if fault is not None:
            raise self._refused(fault, shapes)
        if len(self._accepted) >= _MOST_REMEMBERED:
            self._accepted = set()
        self._accepted.add(shapes)

    def evaluate(self, sizes: Mapping[str, int]) -> list[tuple[int, ...]]:
        """Return the input shapes for these values of symbols, which must be complete."""
        return [tuple(evaluate(size, sizes) for size in shape or ()) for shape in self.declared]  # type: ignore[misc]

    def follows_from(self, known: frozenset[Size]) -> bool:
        """Return whether all input sizes follow from `known` sizes."""
        return all(shape is not None and all(_follows(size, known) for size in shape) for shape in self.declared)

    def __str__(self) -> str:
        """Describe the op and the declared shapes of its inputs: `add(x[n, 3], y[4, 3])`."""
        given = zip((var for vars in self.op.inputs.values() for var in vars), self.declared, strict=True)
        return f"{self.op.type}({', '.join(f'{var.name}{format_shape(shape)}' for var, shape in given)})"

    def _refused(self, fault: OarlockError, shapes: Sequence[Sequence[int]]) -> ShapeError:
        slots = [(slot, var) for slot, vars in self.op.inputs.items() for var in vars]
        width = max((len(slot) for slot, _ in slots), default=0)
        return ShapeError(
            f"{self.op.type}: {fault.message}",
            location=self.op.location,
            contract=format_call(self.operator),
            given=[
                f"{slot:<{width}} = {var.describe()}; {list(shape)} in this run" for (slot, var), shape in zip(slots, shapes, strict=True)
            ],
            hint=fault.hint,
            op=self.op.type,
        )


def find_size_checks(ops: Iterable[Op], catalogue: Catalogue) -> dict[Op, SizeCheck]:
    """Return the checks that a run needs for some ops and the ops in their blocks. Ops that are proved to fit have none."""
    found: dict[Op, SizeCheck] = {}
    for op in walk_ops(ops):
        operator = catalogue.get(op.type)
        if has_obligations(operator, op):
            found[op] = SizeCheck(op, operator)
    return found


def _checks_of(program: Program, catalogue: Catalogue) -> dict[Op, SizeCheck]:
    """Return the checks of all ops of a program, cached for its current revision."""
    found = _checks.get(program)
    if found is None or found[:2] != (program.revision, catalogue):
        ops = (op for block in program.blocks for op in block.ops if not op.blocks)
        found = _checks[program] = program.revision, catalogue, find_size_checks(ops, catalogue)
    return found[2]


def check_sizes(op: Op, catalogue: Catalogue, given: Mapping[str, Sequence[Any]]) -> None:
    """Check the sizes of the tensors `given`, by slot, if the program does not prove that they fit. Raises ShapeError."""
    check = _checks_of(op.block.program, catalogue).get(op)
    if check is not None:
        check(*(value.shape for values in given.values() for value in values))


def fed_sizes(program: Program, needed: AbstractSet[Var] | None = None) -> frozenset[Size]:
    """Return the symbols known from the shapes of a program's inputs: of all inputs, or of those `needed`."""
    if needed is not None:
        return _symbols_of(var for var in program.main.inputs if var in needed)
    found = _fed.get(program)
    if found is None or found[0] != program.revision:
        found = _fed[program] = program.revision, _symbols_of(program.main.inputs)
    return found[1]


def _symbols_of(inputs: Iterable[Var]) -> frozenset[Size]:
    sizes = {size for var in inputs for size in var.shape or () if isinstance(size, str)}
    return frozenset(sizes | {found[0] for found in map(linear, sizes) if found})


def _follows(size: Size, known: frozenset[Size]) -> bool:
    return isinstance(size, int) or size in known or names_in(size) <= known


def leaves_sizes_to_values(operator: Operator, op: Op) -> bool:
    """Return whether `op` can fail because of sizes that depend on values computed during the run."""
    return has_obligations(operator, op) and not SizeCheck(op, operator).follows_from(fed_sizes(op.block.program))


def has_obligations(operator: Operator, op: Op) -> bool:
    """Return whether `op` may fail for some values of its symbols.

    Sizes of an op with blocks are compared by name only, so they need no check.
    """
    if op.blocks:
        return False
    types = tuple((slot, tuple(TensorType(var.dtype, var.shape) for var in vars)) for slot, vars in op.inputs.items())
    if not any(isinstance(size, str) for _, each in types for type in each for size in type.shape or ()):
        return False
    holds_vars = any(isinstance(value, Var) for value in op.attributes.values())  # the cache would keep the variables alive
    find = _may_not_fit.__wrapped__ if holds_vars else _may_not_fit
    return find(operator, types, tuple(op.attributes.items()), _outputs(op))


@lru_cache(maxsize=8192)
def _may_not_fit(
    operator: Operator,
    types: tuple[tuple[str, tuple[TensorType, ...]], ...],
    attributes: tuple[tuple[str, object], ...],
    outputs: tuple[Shape | None, ...],
) -> bool:
    """Return whether the op fails for some trial values of its symbols, including 0, 1 and large numbers."""
    given = dict(types)
    if _is_proved(operator, given, attributes):
        return False
    declared = tuple(type.shape for slot in operator.signature.inputs for type in given.get(slot.name, ()))
    sizes = [size for shape in declared for size in shape or () if isinstance(size, str)]
    sizes += [size for _, value in attributes if isinstance(value, Sizes) for size in value if isinstance(size, str)]
    for numbers in _trials(sorted({name for size in sizes for name in names_in(size)})):
        tried = {
            slot: [TensorType(dtype, None if shape is None else tuple(evaluate(size, numbers) for size in shape)) for dtype, shape in each]  # type: ignore[misc]
            for slot, each in given.items()
        }
        exists = all(size >= 0 for each in tried.values() for type in each for size in type.shape or ())  # type: ignore[operator]
        if exists and _find_fault(operator, tried, dict(attributes), declared, outputs) is not None:
            return True
    return False


def _is_proved(operator: Operator, given: _Types, attributes: tuple[tuple[str, object], ...]) -> bool:
    """Return whether the signature proves that the sizes fit; for a gradient, also that they match those of a proved forward op."""
    if operator.parts or operator.infer_function is not None or operator.shape_check is not None:
        return False
    binding = operator.signature.bind(given)
    operator.signature.infer(binding, dict(attributes), lambda: "unknown")
    call = find_forward_call(operator, given, dict(attributes)) if binding.is_proved else None
    if call is None or operator.forward is None:
        return binding.is_proved
    inferred = operator.forward.infer(call.given, call.attributes, lambda: "unknown")
    if any(type.shape != wanted.shape for output, _, types in call.outputs for type, wanted in zip(types, inferred[output], strict=False)):
        return False
    types = tuple((slot, tuple(each)) for slot, each in call.given.items())
    outputs = tuple(type.shape for each in inferred.values() for type in each)
    return not _may_not_fit(operator.forward, types, tuple(call.attributes.items()), outputs)


def _trials(names: Sequence[str]) -> list[dict[str, int]]:
    """Return trial values for names: all 0, all 1, distinct values in both orders, and each name large, 0 or 1 among distinct values."""
    primes = [*itertools.islice(itertools.chain(_PRIMES, itertools.count(1009, 2)), len(names))]
    different = dict(zip(names, primes, strict=True))
    trials = [dict.fromkeys(names, 0), dict.fromkeys(names, 1), different]
    trials += [{**different, name: number} for name in names for number in (_LARGE, 0, 1)]
    return [*trials, dict(zip(names, reversed(primes), strict=True))] if len(names) > 1 else trials


def _find_fault(
    operator: Operator, types: _Types, attributes: Mapping[str, object], declared: Sequence[Shape | None], outputs: Sequence[Shape | None]
) -> OarlockError | None:
    """Return the error for inputs of numeric sizes, or for outputs whose inferred sizes differ from the declared ones; None if all fit."""
    shapes = [type.shape or () for slot in operator.signature.inputs for type in types.get(slot.name, ())]
    try:
        inferred = infer_from_numbers(operator, types, attributes, declared, shapes)  # type: ignore[arg-type]
    except OarlockError as error:
        return error
    except (ValueError, ArithmeticError) as error:  # from a custom rule
        return ShapeError(str(error))
    values = solve_shapes((shape or () for shape in declared), shapes)  # type: ignore[arg-type]
    for type, wanted in zip((type for each in inferred.values() for type in each), outputs, strict=False):
        for size, expected in zip(type.shape or (), wanted or (), strict=False):
            number = evaluate(expected, values)
            if isinstance(size, int) and number is not None and size != number:
                return ShapeError(
                    f"an output is declared as {format_shape(wanted)}, with size {number} along an axis whose inferred size is {size}"
                )
    return None


def infer_from_numbers(
    operator: Operator,
    types: _Types,
    attributes: Mapping[str, object],
    declared: Sequence[Shape | None],
    shapes: Sequence[Sequence[int]],
) -> dict[str, list[TensorType]]:
    """Return the types of the outputs for inputs `declared` with symbols that have the numeric `shapes`. Raises the errors of `infer`.

    Symbols in attributes are replaced by numbers; a symbol that the kernel infers by itself is -1.
    """
    held = dict(attributes)
    for name in operator.told_attributes.keys() & held.keys():
        if isinstance(value := held[name], Sizes):
            found = substitute_numbers(value, [shape or () for shape in declared], shapes)
            held[name] = Sizes(-1 if isinstance(size, str) else size for size in found)
    numbers = itertools.count()
    return operator.infer(types, held, lambda: f"unknown@{next(numbers)}")


def _input_types(op: Op, operator: Operator, shapes: Iterable[Sequence[int]]) -> _Types:
    sizes: Callable[[], tuple[int, ...]] = iter([tuple(shape) for shape in shapes]).__next__
    return {
        slot.name: [TensorType(var.dtype, sizes()) for var in op.inputs[slot.name]]
        for slot in operator.signature.inputs
        if slot.name in op.inputs
    }


def _outputs(op: Op) -> tuple[Shape | None, ...]:
    return tuple(var.shape for vars in op.outputs.values() for var in vars)
