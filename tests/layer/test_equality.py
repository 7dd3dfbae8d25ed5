"""`x == y` and `x != y` of variables compare values, as NumPy and PyTorch do; sets, dicts and lists of variables go by identity."""

import ast
import inspect
import operator
from pathlib import Path

import numpy
import pytest
import torch

import oarlock as ol
from oarlock.ir import Var
from oarlock.op.composed import equality

X = {
    "float32": numpy.array([[0.0, 1.0], [numpy.nan, -0.0]], "float32"),
    "float64": numpy.array([[0.0, 1e300], [numpy.inf, 2.0]]),
    "int64": numpy.array([[0, 1], [-100, 2]]),
    "int32": numpy.array([[0, 1], [-100, 2]], "int32"),
    "bool": numpy.array([[True, False], [False, True]]),
    "complex64": numpy.array([[1j, 1.0], [0.0, 2 - 1j]], "complex64"),
}
NUMBERS = {
    "float": [0.0, 1, numpy.float32(2), float("nan"), True],
    "int": [0, -100, numpy.int64(2), True],
    "bool": [True, False, 0, 1],
    "complex": [1j, 1.0, 0],
}


def computed(build, feed):
    with ol.Program() as program:
        vars = [ol.layer.data(name, value.shape[1:], dtype=str(value.dtype)) for name, value in feed.items()]
        built = build(*vars)
    return ol.Executor().run(program, feed, built, scope=ol.Scope())


@pytest.mark.parametrize("dtype", list(X))
@pytest.mark.parametrize("compare", [operator.eq, operator.ne])
def test_values_are_compared_with_numbers_as_in_pytorch(compare, dtype):
    x = X[dtype]
    numbers = next(numbers for kind, numbers in NUMBERS.items() if dtype.startswith(kind))
    found = computed(lambda v: [each for n in numbers for each in (compare(v, n), compare(n, v))], {"x": x})
    for number, one, other in zip(numbers, found[::2], found[1::2], strict=True):
        wanted = compare(torch.from_numpy(x), number.item() if isinstance(number, numpy.generic) else number).numpy()
        assert one.dtype == bool
        assert one.tolist() == other.tolist() == wanted.tolist(), number


@pytest.mark.parametrize("dtype", list(X))
@pytest.mark.parametrize("compare", [operator.eq, operator.ne])
def test_values_of_two_variables_are_compared_and_broadcast(compare, dtype):
    x, y = X[dtype], X[dtype][:, ::-1].copy()
    found = computed(lambda v, w: [compare(v, w), compare(v, v), compare(v[:, :1], w)], {"x": x, "y": y})
    for one, wanted in zip(found, [compare(x, y), compare(x, x), compare(x[:, :1], y)], strict=True):
        assert one.tolist() == wanted.tolist()


def test_a_mask_of_labels_multiplies_losses_and_has_no_gradient():
    feed = {"loss": numpy.array([1.0, 5.0], "float32"), "label": numpy.array([3, -100])}
    with ol.Program() as program:
        loss, label = ol.layer.data("loss", []), ol.layer.data("label", [], dtype="int64")
        masked = [loss * (label != -100), (label != -100) * loss, loss + (label == 3), loss - (label == 3), loss / (label != 0), 2.0 - loss]
        (_, gradient), *_ = ol.append_backward(ol.op.reduce_sum(masked[0]), parameters=[loss])
    found = ol.Executor().run(program, feed, [*masked, gradient], scope=ol.Scope())
    assert [each.tolist() for each in found] == [[1.0, 0.0], [1.0, 0.0], [2.0, 5.0], [0.0, 5.0], [1.0, 5.0], [1.0, -3.0], [1.0, 0.0]]


@pytest.mark.parametrize("other", [None, "x", "", [1], (1.0,), {}, object(), int, Ellipsis], ids=lambda value: type(value).__name__)
def test_another_kind_of_object_is_not_equal(other):
    with ol.Program() as program:
        x = ol.layer.data("x", [2])
        assert (x == other) is False
        assert (other == x) is False
        assert (x != other) is True
        assert (other != x) is True
    assert program.main.ops == []


@pytest.mark.parametrize("array", [numpy.ones(2, "float32"), torch.ones(2)], ids=["numpy", "torch"])
@pytest.mark.parametrize("compare", [operator.eq, operator.ne])
def test_an_array_is_refused_as_by_other_comparisons(compare, array):
    with ol.Program() as program:
        x = ol.layer.data("x", [2])
        for left, right in ((x, array), (array, x)):
            with pytest.raises(ol.ArgumentError, match=r'^"x" and .* do not combine; numbers and variables do'):
                compare(left, right)
    assert program.main.ops == []


def test_what_does_not_fit_is_refused_as_by_other_comparisons():
    with ol.Program():
        x, n = ol.layer.data("x", [2]), ol.layer.data("n", [2], dtype="int64")
        for build, error in (
            (lambda: n == 1.5, ol.DTypeError),
            (lambda: x == n, ol.DTypeError),
            (lambda: x == 1j, ol.DTypeError),
            (lambda: x == ol.layer.data("y", [3]), ol.ShapeError),
        ):
            with pytest.raises(error):
                build()


# Sets, dicts and lists


def test_a_hash_is_the_identity():
    with ol.Program():
        x, y = ol.layer.data("x", [2]), ol.layer.data("y", [2])
    assert Var.__hash__ is object.__hash__
    assert {x: 1, y: 2}[y] == 2
    assert len({x, y, x}) == 2
    assert [x, y][1] is y


@pytest.fixture(params=[0, -7, 2**61 - 2])
def one_hash(request, monkeypatch):
    """All variables have one hash, which a number has too."""
    monkeypatch.setattr(Var, "__hash__", lambda self: request.param)
    return request.param


def test_sets_and_dicts_work_where_hashes_collide(one_hash):
    with ol.Program() as program:
        vars = [ol.layer.data(f"x{n}", [2]) for n in range(5)]
        others = [ol.layer.data(f"y{n}", [2], dtype="int64") for n in range(3)]
        assert all(hash(var) == one_hash for var in vars)
        numbers = dict(zip(vars, range(5), strict=True))
        assert [numbers[var] for var in vars] == [0, 1, 2, 3, 4]
        assert [numbers.get(var) for var in others] == [None] * 3
        assert not any(var in numbers for var in others)
        found = {*vars, *vars, one_hash}
        assert len(found) == 6
        assert all(var in found for var in vars)
        found.add(vars[0])
        found.discard(others[0])
        found.remove(vars[1])
        assert len(found) == 5
        assert one_hash in found
        assert {one_hash: "a"}.get(vars[0]) is None
        assert {(var, 1): var for var in vars}[vars[3], 1] is vars[3]
        assert dict.fromkeys(vars) | {vars[2]: 1} != {}
        del numbers[vars[4]]
        numbers.setdefault(others[0], 9)
        assert numbers.pop(others[0]) == 9
        assert frozenset(vars) & {*vars[:2], *others} == frozenset(vars[:2])
        one, same, other = set(vars), {*reversed(vars)}, {*vars[1:], others[0]}
        assert (one == same, one == other, one != other, one <= same) == (True, False, True, True)
        assert dict.fromkeys(one, 1) == dict.fromkeys(same, 1)
    assert program.main.ops == []
    with program:
        x, y = vars[:2]
        assert (x == y).op.type == "equal"
        assert (x == one_hash).op.type == "equal"


def test_a_program_is_differentiated_and_run_where_all_hashes_collide(monkeypatch):
    def steps() -> list[float]:
        with ol.Program(seed=0) as program:
            x, label = ol.layer.data("x", [3]), ol.layer.data("label", [], dtype="int64")
            cost = ol.layer.cross_entropy(ol.layer.fc(ol.layer.fc(x, 4, act="tanh"), 2), label)
            ol.optimizer.SGD(0.1).minimize(cost)
        scope = ol.init(program, ol.Scope())
        feed = {"x": numpy.arange(12.0, dtype="float32").reshape(4, 3) / 12, "label": numpy.array([0, 1, 1, -100])}
        return [float(ol.Executor().run(program, feed, [cost], scope=scope)[0]) for _ in range(3)]

    expected = steps()
    monkeypatch.setattr(Var, "__hash__", lambda self: 1)
    assert steps() == expected


class Subclass(int):
    """A number of a user's own."""


def test_a_number_with_the_hash_of_a_variable_is_another_key():
    with ol.Program() as program:
        x = ol.layer.data("x", [2], dtype="int64")
        number = hash(x)
        for key in (number, Subclass(number), numpy.int64(number)):
            assert {x: 1}.get(key) is None
            assert {key: 1}.get(x) is None
            assert x not in {key}
            assert key not in {x}
            assert len({x, key}) == 2
    assert program.main.ops == []
    with program:
        assert (x == number).op.type == "equal"


def test_a_list_that_holds_the_variable_has_it_and_any_other_search_is_refused():
    with ol.Program() as program:
        x, y = ol.layer.data("x", [2]), ol.layer.data("y", [2])
        assert x in [x, y]
        assert [x, y] == [x, y]
        for search in (lambda: x in [y], lambda: y in (x, x), lambda: 1 in [x], lambda: x not in [0.0], lambda: x in {"a": y}.values()):
            with pytest.raises(ol.ArgumentError, match="cannot search for it with `in`"):
                search()
        assert program.main.ops == []
        for search in (lambda: [x, y].index(y), lambda: [x, y].remove(y), lambda: [x].count(y), lambda: [x] == [y], lambda: bool(x == y)):
            with pytest.raises(ol.ArgumentError, match="so Python cannot branch on it"):
                search()


# Inside the package

SOURCE = Path(inspect.getfile(ol)).parent


def test_code_of_the_package_that_compares_variables_is_found(tmp_path):
    code = compile(
        "def compare(x, y):\n    return [x == y, x != y]\n\ndef search(x, y):\n    return x in [y]\n",
        str(SOURCE / "op" / "made_up.py"),
        "exec",
    )
    made: dict = {}
    exec(code, made)
    with ol.Program() as program:
        x, y = ol.layer.data("x", [2]), ol.layer.data("y", [2])
        for fault in (made["compare"], made["search"]):
            with pytest.raises(AssertionError, match="code of the package compares"):
                fault(x, y)
    assert program.main.ops == []


def test_a_comparison_inside_the_package_would_be_one_of_identities(monkeypatch):
    monkeypatch.undo()
    assert equality.compare_identities.__name__ == "refuse"  # in all tests
    code = compile("x == y, y == x, x == x, x != y, x in [y], x in [y, x], x == 0.0", str(SOURCE / "op" / "made_up.py"), "eval")
    monkeypatch.setattr(equality, "compare_identities", lambda x, y: x is y)
    with ol.Program() as program:
        x, y = ol.layer.data("x", [2]), ol.layer.data("y", [2])
        assert eval(code, {"x": x, "y": y}) == (False, False, True, True, False, True, False)
    assert program.main.ops == []


def test_no_slot_of_an_op_is_compared_or_searched_by_values_in_the_package():
    """The attributes that hold variables in lists and tuples: the types of others are known in runs alone, where every test looks."""
    names = {"reads", "writes"}
    found = []
    for path in SOURCE.rglob("*.py"):
        text = path.read_text("utf-8")
        if not any(word in text for word in (".reads", ".writes", ".inputs[", ".outputs[")):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Compare):
                sides = [node.left, *node.comparators]
                searched = [side for side, kind in zip(node.comparators, node.ops, strict=True) if isinstance(kind, ast.In | ast.NotIn)]
                compared = sides if any(isinstance(kind, ast.Eq | ast.NotEq) for kind in node.ops) else []
                found += [f"{path.name}:{node.lineno}" for side in (*searched, *compared) if _holds_variables(side, names)]
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("index", "count", "remove"):
                found += [f"{path.name}:{node.lineno}"] if _holds_variables(node.func.value, names) else []
    assert found == []


def _holds_variables(node: ast.AST, names: set[str]) -> bool:
    """Whether an expression is the variables of an op: `op.reads`, `op.inputs["x"]`."""
    if isinstance(node, ast.Attribute):
        return node.attr in names
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Attribute)
        and node.value.attr in ("inputs", "outputs")
        and not (isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int))
    )
