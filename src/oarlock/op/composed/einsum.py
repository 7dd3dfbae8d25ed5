"""Einstein summation of any number of variables, as matrix products of two at a time."""

from collections.abc import Collection, Sequence

from oarlock.errors import ArgumentError, ShapeError
from oarlock.ir.location import here
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.size import product
from oarlock.ir.var import Var
from oarlock.op.composed.shape import known_shape
from oarlock.op.manipulation import reshape, transpose
from oarlock.op.matrix import linear, matmul
from oarlock.op.rearrangement import diagonal
from oarlock.op.reduction import reduce_sum
from oarlock.op.told_shape import broadcast_to, view
from oarlock.registry.creator import require_type

__all__ = ["einsum"]

Label = str  # of an axis: a letter, or "." and a position in "...", counted from its end
Labels = list[Label]


def einsum(equation: str, *xs: Var) -> Var:
    """Einstein summation by an equation such as ``"bij,bjk->bik"``, as in NumPy and PyTorch: float[...], ... -> float[...].

    Axes with the same letter have the same size; letters that are not in the result are summed over. ``...`` means broadcast axes. Without
    ``->``, the result has ``...`` and the letters that occur once, in alphabetical order. Products are computed two at a time, from left to
    right. Raises ArgumentError for an equation that does not fit the variables, ShapeError for sizes that do not fit.
    """
    xs = tuple(require_type(x, "einsum: an operand") for x in xs)
    given, result = _parse(equation, xs)
    with undone_on_error(xs[0].block.program):
        operands = [_without_twins(x, labels) for x, labels in zip(xs, given, strict=True)]
        y, labels = operands[0]
        for number, (x, others) in enumerate(operands[1:], 2):
            wanted = {*result, *(label for _, later in operands[number:] for label in later)}
            y, labels = _product(y, labels, x, others, wanted)
        y, labels = _summed(y, labels, result)
        order = tuple(labels.index(label) for label in result)
        return y if order == tuple(range(len(order))) else transpose(y, axes=order)


def _parse(equation: str, xs: Sequence[Var]) -> tuple[list[Labels], Labels]:
    """Return the labels of the axes of each operand, and of the result."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    letters = [term.replace("...", "", 1) for term in (*terms, right)]
    if len(terms) != len(xs) or not xs or not all(term == "" or (term.isalpha() and term.isascii()) for term in letters):
        raise ArgumentError(
            f"einsum: {equation!r:.80} is not an equation of {len(xs)} variable{'' if len(xs) == 1 else 's'}",
            location=here(),
            contract='such as "bij,bjk->bik": letters for the axes of each, and for those of the result',
        )
    given: list[Labels] = []
    for term, plain, x in zip(terms, letters, xs, strict=False):
        many = len(known_shape(x, "einsum")) - len(plain)
        if many < 0 or (many > 0 and "..." not in term):
            raise ShapeError(f'einsum: "{term}" does not name the axes of "{x.name}"', location=here(), given=[x.describe()])
        front = term.index("...") if "..." in term else len(plain)
        given.append([*plain[:front], *(f".{number}" for number in range(many, 0, -1)), *plain[front:]])
    found = [label for labels in given for label in labels]
    dots = sorted({label for label in found if label[0] == "."}, key=lambda label: -int(label[1:]))
    if not arrow:
        return given, [*dots, *sorted(label for label in set(found) if label[0] != "." and found.count(label) == 1)]
    at = right.index("...") if "..." in right else None
    result = [*letters[-1]] if at is None else [*letters[-1][:at], *dots, *letters[-1][at:]]
    if len(set(result)) < len(result) or not set(result) <= set(found):
        raise ArgumentError(f"einsum: the result of {equation!r:.80} has an axis twice, or one that no operand has", location=here())
    return given, result


def _without_twins(x: Var, labels: Labels) -> tuple[Var, Labels]:
    """Return a variable in which no two axes have the same label: the diagonal of two such axes becomes the last axis."""
    for label in labels:
        if labels.count(label) > 1:
            first, second = [at for at, other in enumerate(labels) if other == label][:2]
            rest = [other for at, other in enumerate(labels) if at not in (first, second)]
            return _without_twins(diagonal(x, axes=(first, second)), [*rest, label])
    return x, labels


def _summed(x: Var, labels: Labels, wanted: Collection[Label]) -> tuple[Var, Labels]:
    """Return the sum over the axes that are not wanted, and the remaining labels."""
    for at in reversed(range(len(labels))):
        if labels[at] not in wanted:
            x = reduce_sum(x, axis=at)
    return x, [label for label in labels if label in wanted]


def _product(x: Var, of_x: Labels, y: Var, of_y: Labels, wanted: Collection[Label]) -> tuple[Var, Labels]:
    """Return the product of two variables, summed over common axes that are not wanted."""
    x, of_x = _summed(x, of_x, {*wanted, *of_y})
    y, of_y = _summed(y, of_y, {*wanted, *of_x})
    x, y = _repeated(x, of_x, y, of_y), _repeated(y, of_y, x, of_x)
    shared = [label for label in of_x if label in of_y]
    batch, inner = [label for label in shared if label in wanted], [label for label in shared if label not in wanted]
    left, right = [label for label in of_x if label not in shared], [label for label in of_y if label not in shared]
    rows, columns = _matrix(x, of_x, batch, left, inner), _matrix(y, of_y, batch, inner, right)
    z = matmul(rows, columns) if batch else linear(rows, columns)
    sizes = dict(zip((*of_x, *of_y), (*known_shape(x, "einsum"), *known_shape(y, "einsum")), strict=True))
    labels = [*batch, *left, *right]
    return view(z, [x, y], shape=tuple(sizes[label] for label in labels)), labels


def _repeated(x: Var, of_x: Labels, y: Var, of_y: Labels) -> Var:
    """Return ``x`` with sizes of 1 broadcast to those of ``y`` along the same axis."""
    shape = known_shape(x, "einsum")
    others = dict(zip(of_y, known_shape(y, "einsum"), strict=True))
    wanted = tuple(others.get(label, size) if size == 1 else size for label, size in zip(of_x, shape, strict=True))
    return x if wanted == shape else broadcast_to(x, [y], shape=wanted)


def _matrix(x: Var, labels: Labels, batch: Labels, rows: Labels, columns: Labels) -> Var:
    """Return a matrix for each index of the batch."""
    order = [labels.index(label) for label in (*batch, *rows, *columns)]
    shape = known_shape(x, "einsum")
    x = x if order == list(range(len(order))) else transpose(x, axes=tuple(order))
    sizes = [[shape[labels.index(label)] for label in group] for group in (batch, rows, columns)]
    return reshape(x, shape=(*sizes[0], product(sizes[1]), product(sizes[2])))
