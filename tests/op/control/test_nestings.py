"""Every construct in every other, two and three deep: values and derivatives are those of eager PyTorch."""

import itertools
from functools import cache

import numpy
import pytest
from twins import Ours, Twins, run

import oarlock as ol

RANDOM = numpy.random.default_rng(23)
ARRAYS = {
    "x": RANDOM.uniform(-1, 1, size=(4, 3)),
    "steps": RANDOM.uniform(-1, 1, size=(3, 3)),
    "w": RANDOM.uniform(0.5, 1, size=3),
    "b": RANDOM.uniform(-1, 1, size=3),
    "limit": numpy.array(0.2),
    "zero": numpy.array(0),
    "three": numpy.array(3),
}


def leaf(f, v, x):
    return f.tanh(x * v.w) + x * 0.1


def rnn(f, v, x, inner):
    """The state goes through what is inside; what is returned of each step is added up with weights."""

    def step(s, memories):
        h = f.tanh(inner(memories[0]) * s + v.b)
        return [f.total(h) * s], [h]

    stacked, (final,) = f.scan(v.steps, [x], step)
    return final * f.total(f.tanh(stacked[0]))


def repeat(f, v, x, inner):
    """At most three trips, fewer where the carried value is small; a value that it swaps places with comes along."""

    def holds(carried):
        return f.both(f.less(v.limit, f.total(f.square(carried[0]))), f.less(carried[2], v.three))

    def trip(carried):
        return [carried[1] * v.w, inner(carried[0]) * v.w, carried[2] + 1], [f.total(carried[0] * v.b)]

    (final, other, _), stacked = f.repeat(holds, [x, x * 0.7, v.zero + 0], trip)
    return (final + other) * f.total(f.square(stacked[0])) if f is Ours or stacked else (final + other) * 0.0


def rows(f, v, x, inner):
    """The inner construct is in both blocks; one of them is defined for its own rows only."""
    condition = f.less(f.of_rows(x * 0.0) - 0.05, f.of_rows(x))
    return f.rows(condition, x, lambda r: inner(r) * v.b, lambda r: inner(r * v.w) - r)


def switch(f, v, x, inner):
    """The second of three cases; what is inside is in all of them."""
    total = f.total(x)
    cases = [
        (f.less(total * 0.0 + 100.0, total), lambda: inner(x)),
        (lambda: f.less(total * 0.0 - 90.0, total), lambda: inner(x * v.b) * total),
    ]
    return f.switch(cases, lambda: inner(x) * v.w)


CONSTRUCTS = [rnn, repeat, rows, switch]


@cache
def nest(*constructs):
    """The constructs in each other, which no test changes."""

    def write(f, v):
        def at(depth):
            if depth == len(constructs):
                return lambda x: leaf(f, v, x)
            return lambda x: constructs[depth](f, v, x, at(depth + 1))

        return [at(0)(v.x)]

    return Twins(write, ARRAYS, {"x": "n"})


def name(constructs):
    return "-".join(construct.__name__ for construct in constructs)


@pytest.mark.parametrize("constructs", list(itertools.product(CONSTRUCTS, repeat=2)), ids=name)
def test_one_construct_in_another_agrees_with_autograd_and_with_differences(constructs):
    twins = nest(*constructs)
    twins.agree()
    twins.differ()
    twins.agree(x=-ARRAYS["x"], limit=0.3)
    for some in (ARRAYS["x"][:1], ARRAYS["x"][1:2], numpy.abs(ARRAYS["x"]), -numpy.abs(ARRAYS["x"])):
        twins.agree(x=some)


THREE_DEEP = [
    (rnn, repeat, rows),
    (repeat, rows, switch),
    (rows, switch, rnn),
    (switch, rnn, repeat),
    (rows, rows, rows),
    (repeat, repeat, repeat),
    (switch, switch, rnn),
]


@pytest.mark.parametrize("constructs", THREE_DEEP, ids=name)
def test_three_constructs_in_each_other_agree_with_autograd_and_with_differences(constructs):
    twins = nest(*constructs)
    twins.agree()
    twins.differ()
    twins.agree(x=-ARRAYS["x"][:1])


PAIRS = [pytest.param(pair, marks=pytest.mark.slow) for pair in itertools.permutations(CONSTRUCTS, 2)]  # each is in one of three


@pytest.mark.parametrize("constructs", [*PAIRS, *THREE_DEEP], ids=name)
def test_a_nest_is_the_same_program_as_a_file_and_as_text(constructs):
    """Derivatives included: bit for bit the same values, and the same bytes."""
    twins = nest(*constructs)
    program = twins.program
    read = ol.Program.from_bytes(program.to_bytes())
    parsed = ol.parse_program(program.to_text())
    assert read.to_bytes() == program.to_bytes()
    assert parsed.to_bytes(source=False) == program.to_bytes(source=False)
    assert ol.content_hash(parsed) == ol.content_hash(program)
    assert not ol.diff_programs(parsed, program)
    fetch = [var for var in (*twins.outputs, *twins.first, *twins.second) if var is not None]
    values = run(program, ARRAYS, fetch), run(parsed, ARRAYS, [var.name for var in fetch])
    assert [value.tobytes() for value in values[0]] == [value.tobytes() for value in values[1]]


@pytest.mark.parametrize("constructs", [(rnn, switch), (switch, repeat), (repeat, rows), (rows, rnn), (rows, rows, rows)], ids=name)
def test_a_nest_that_is_pruned_to_a_target_gives_the_same_value(constructs):
    twins = nest(*constructs)
    program = twins.program
    targets = [var for var in (*twins.outputs, *twins.first, *twins.second) if var is not None]
    for target, value in zip(targets, run(program, ARRAYS, targets), strict=True):
        pruned = ol.prune(program, {"target": target})
        feed = {var.name: ARRAYS[var.name] for var in pruned.main.inputs}
        assert run(pruned, feed, ["target"])[0].tobytes() == value.tobytes()
        assert len(pruned.main.ops) < len(program.main.ops)


def test_a_nest_is_built_the_same_each_time():
    first, second = (nest.__wrapped__(rows, repeat, switch).program.to_bytes() for _ in range(2))
    assert first == second


@pytest.mark.mission("B4", "B7", "B8")
@pytest.mark.parametrize("constructs", [*itertools.permutations(CONSTRUCTS, 2), *THREE_DEEP], ids=name)
def test_the_tree_of_scopes_is_as_high_as_blocks_are_nested(constructs):
    """A branch is one scope, a loop one and one more for each trip; nothing is gone when the run ends, nor in its gradient."""
    twins = nest(*constructs)
    _, scopes = ol.Executor().run(twins.program, ARRAYS, [twins.cost], scope=ol.Scope(), keep_scopes=True)
    paths = list(scopes)
    high = sum(2 if construct in (rnn, repeat) else 1 for construct in constructs)
    for part in ([path for path in paths if "@GRAD" not in path], paths):
        assert max(path.count("/") for path in part) == high
    parents = {path.rpartition("/")[0] for path in paths[1:]}
    assert parents <= set(paths)
    assert len(paths) == len(set(paths))
