"""Inputs whose rows have different lengths: declared, fed in every way, carried, pruned, saved."""

import re

import numpy
import pytest
import torch

import oarlock as ol
from oarlock.registry import parse_program

ROWS = [[1, 2], [], [3]]


def words_program(*, levels: int = 1, dtype: str = "int64") -> tuple[ol.Program, list[str]]:
    """A program that returns what it was fed."""
    with ol.Program() as program:
        words = ol.layer.data("words", [], dtype=dtype, ragged=levels)
        ol.op.assign(words, name="y")
    return program, ["y", *(var.name for var in program.main.inputs[1:])]


def run(program: ol.Program, feed: dict, fetch: list[str]) -> list[list]:
    return [value.tolist() for value in ol.Executor().run(program, feed, fetch, scope=ol.Scope())]


def message_of(raised: pytest.ExceptionInfo) -> str:
    """The message without the line of this file."""
    return re.sub(r"\n  \S+\.py:\d+[^\n]*", "", str(raised.value))


def test_a_ragged_input_is_declared_as_its_elements_and_its_row_splits():
    program, _ = words_program()
    words, splits = program.main.inputs
    assert (words.type_text, splits.type_text) == ("int64[words.t]", "int64[n+1]")
    assert (splits.name, splits.row_splits_of, splits.stop_gradient) == ("words.splits", "words.t", True)
    with ol.Program():
        assert ol.layer.data("x", [3, "k"], batch="b", ragged=1).type_text == "float32[x.t, 3, k]"


def test_two_levels_are_declared_from_the_outermost_to_the_innermost():
    program, _ = words_program(levels=2)
    assert program.to_text(source=False).splitlines()[2] == (
        "block main(words: int64[words.t], words.splits.0: int64[n+1] row_splits_of words.s1, "
        "words.splits.1: int64[words.s1+1] row_splits_of words.t) {"
    )


@pytest.mark.parametrize(
    "value",
    [
        ROWS,
        ol.Ragged.from_lists(ROWS),
        [numpy.array([1, 2]), numpy.array([], "int64"), numpy.array([3])],
        [torch.tensor([1, 2]), torch.tensor([], dtype=torch.int64), torch.tensor([3])],
        numpy.array([numpy.array([1, 2]), numpy.array([], "int64"), numpy.array([3])], dtype=object),
        (numpy.array([1, 2, 3]), numpy.array([2, 0, 1])),
        (torch.tensor([1, 2, 3]), torch.tensor([2, 0, 1], dtype=torch.int32)),
        (numpy.array([[1, 2], [7, 7], [3, 7]]), numpy.array([2, 0, 1])),
        (numpy.array([1, 2, 3]), [2, 0, 1]),
        (numpy.array([[1, 2], [7, 7], [3, 7]]), [2, 0, 1]),
    ],
    ids=["lists", "Ragged", "arrays", "tensors", "objects", "lengths", "tensors and lengths", "padded", "listed lengths", "padded, listed"],
)
def test_every_form_of_the_same_rows_feeds_the_same(value):
    program, fetch = words_program()
    assert run(program, {"words": value}, fetch) == [[1, 2, 3], [0, 2, 2, 3]]


def test_elements_and_row_splits_may_be_fed_apart():
    program, fetch = words_program()
    for splits in ([0, 2, 2, 3], numpy.array([0, 2, 2, 3]), torch.tensor([0, 2, 2, 3])):
        assert run(program, {"words": [1, 2, 3], "words.splits": splits}, fetch) == [[1, 2, 3], [0, 2, 2, 3]]
    assert run(program, {"words": ol.Ragged.from_lists(ROWS), "words.splits": [0, 2, 2, 3]}, fetch)[1] == [0, 2, 2, 3]


def test_rows_of_rows_are_fed_as_lists_or_as_a_ragged_value():
    program, fetch = words_program(levels=2)
    documents = [[[1, 2], [3]], [], [[]]]
    expected = [[1, 2, 3], [0, 2, 2, 3], [0, 2, 3, 3]]
    assert run(program, {"words": documents}, fetch) == expected
    assert run(program, {"words": ol.Ragged.from_lists(documents, levels=2)}, fetch) == expected


@pytest.mark.parametrize(("rows", "splits"), [([], [0]), ([[], []], [0, 0, 0])])
def test_rows_without_elements_have_the_declared_type(rows, splits):
    with ol.Program() as program:
        ol.op.assign(ol.layer.data("x", [4], dtype="float64", ragged=1), name="y")
    y, cut = ol.Executor().run(program, {"x": rows}, ["y", "x.splits"], scope=ol.Scope())
    assert (y.shape, y.dtype, cut.tolist()) == ((0, 4), numpy.float64, splits)


def test_numbers_of_python_take_the_declared_dtype_unless_they_would_lose_a_fraction():
    program, fetch = words_program(dtype="float64")
    assert run(program, {"words": [[1], [0.1]]}, fetch)[0] == [1.0, 0.1]
    program, fetch = words_program()
    with pytest.raises(ol.FeedError, match='"words" must be int64, not float32'):
        run(program, {"words": [[1.5]]}, fetch)
    with ol.Program() as program:
        small = ol.layer.data("small", [], dtype="int8", ragged=1)
    with pytest.raises(ol.FeedError, match='"small" must be int8, not int64'):
        ol.Executor().run(program, {"small": [[1], [300]]}, [small], scope=ol.Scope())


def test_inputs_of_one_cut_may_be_fed_in_different_forms():
    with ol.Program() as program:
        ol.op.assign(ol.layer.data("words", [], dtype="int64", ragged=1))
        ol.op.assign(ol.layer.data("tags", [], dtype="int8", batch="words.t"))
    fetch = ["words", "tags", "words.splits"]
    values = [[1, 2, 3], [4, 5, 6], [0, 2, 2, 3]]
    tags = numpy.array([4, 5, 6], "int8")
    assert run(program, {"words": ROWS, "tags": [[4, 5], [], [6]]}, fetch) == values
    assert run(program, {"words": numpy.array([1, 2, 3]), "tags": ol.Ragged.from_lengths(tags, [2, 0, 1])}, fetch) == values
    assert run(program, {"words": ROWS, "tags": tags}, fetch) == values


def test_sizes_that_follow_from_each_other_are_checked():
    """A size fed for `n+1` determines `n`, in whatever order; a product is checked once its factors are known."""
    with ol.Program() as program:
        ends = ol.layer.data("ends", ["n+1"], dtype="int64", batch=None)
        x = ol.layer.data("x", [])
        pairs = ol.layer.data("pairs", ["2*n"], batch=None)
        grid = ol.layer.data("grid", ["k*n"], batch=None)
        width = ol.layer.data("width", ["k"], batch=None)
    fetch = [ends, x, pairs, grid, width]

    def feed(*sizes: int) -> list:
        arrays = [numpy.zeros(size, var.dtype.value) for var, size in zip(fetch, sizes, strict=True)]
        return ol.Executor().run(program, {var.name: array for var, array in zip(fetch, arrays, strict=True)}, fetch, scope=ol.Scope())

    assert [len(value) for value in feed(4, 3, 6, 15, 5)] == [4, 3, 6, 15, 5]
    for sizes, message in [
        ((4, 4, 6, 15, 5), '"x" has n = 4, but "ends" has n = 3'),
        ((4, 3, 8, 15, 5), '"pairs" has n = 4, but "ends" has n = 3'),
        ((4, 3, 5, 15, 5), '"pairs" must have shape [2*n], not [5]'),
        ((0, 3, 6, 15, 5), '"ends" must have shape [n+1], not [0]'),
        ((4, 3, 6, 14, 5), '"grid" has k*n = 14, but the other inputs imply k*n = 15'),
    ]:
        with pytest.raises(ol.FeedError) as raised:
            feed(*sizes)
        assert message_of(raised).splitlines()[0] == message


def test_declared_sizes_of_ragged_values_are_checked_op_by_op_too():
    program, fetch = words_program()
    values = ol.Executor(check=True).run(program, {"words": ROWS}, fetch, scope=ol.Scope())
    assert values[0].tolist() == [1, 2, 3]
    scope = ol.Scope()
    scope.set("words", numpy.array([1, 2, 3]))
    scope.set("words.splits", numpy.array([0, 2, 2, 3]))
    assert {name: str(found) for name, found in ol.infer_shape(program.main, scope).items()} == {
        "words": "int64[3]",
        "words.splits": "int64[4]",
        "y": "int64[3]",
    }


def test_an_input_carries_a_ragged_value():
    with ol.Program() as program:
        x = ol.layer.data("x", value=ol.Ragged.from_lists([[1.5], [], [2.0, 3.0]]))
        y = ol.op.assign(x)
    assert (x.type_text, program.main.var("x.splits").row_splits_of) == ("float32[x.t]", "x.t")
    assert run(program, {}, [y, "x.splits"]) == [[1.5, 2.0, 3.0], [0, 1, 1, 3]]
    assert run(program, {"x": [[4.0]]}, [y, "x.splits"]) == [[4.0], [0, 1]]
    assert ol.parse_program(program.to_text()).to_text(source=False) == program.to_text(source=False)


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: ol.layer.data("x", [], ragged=3), '"x": ragged must be the number of levels, 0, 1 or 2, not 3'),
        (lambda: ol.layer.data("x", [], ragged="yes"), "\"x\": ragged must be the number of levels, 0, 1 or 2, not 'yes'"),
        (lambda: ol.layer.data("x", [], batch=None, ragged=1), '"x": a ragged input needs a batch dimension'),
        (lambda: ol.layer.data("x", value=[1.0], ragged=1), '"x": the row splits of an array are unknown'),
        *(
            (
                lambda name=name: ol.layer.data(name, [], ragged=1),
                f'"{name}": the name of a ragged input must consist of letters, digits, _ and ., and start with a letter',
            )
            for name in ("my-words", "1st", "w" * 255)
        ),
        (lambda: ol.layer.data("y", [], ragged=1), '"y": its row splits need the name "y.splits", which is already declared'),
    ],
)
def test_declarations_that_do_not_fit_leave_the_program_as_it_was(declare, message):
    with ol.Program() as program:
        ol.layer.data("y.splits", [])
        before = program.to_bytes()
        with pytest.raises(ol.OarlockError) as raised:
            declare()
    assert message_of(raised).splitlines()[0] == message
    assert program.to_bytes() == before


def test_a_pruned_program_and_its_file_keep_the_rows_of_what_they_are_fed(tmp_path):
    """Nothing reads the row splits here; without them, `words` could not be fed as rows."""
    with ol.Program() as program:
        words = ol.layer.data("words", [2], ragged=1)
        unused = ol.layer.data("unused", [], ragged=1)
        y = ol.layer.fc(words, 1)
        ol.op.assign(unused)
    pruned = ol.prune(program, {"y": y})
    assert [var.name for var in pruned.main.inputs] == ["words", "words.splits"]
    scope = ol.init(program, ol.Scope())
    ol.save_model(y, scope, tmp_path / "model.safetensors")
    model = ol.load_model(tmp_path / "model.safetensors")
    assert model.program.main.var("words.splits").row_splits_of == "words.t"
    rows = [[[1.0, 2.0]], [], [[3.0, 4.0]]]
    elements = numpy.array([[1.0, 2.0], [3.0, 4.0]], "float32")
    assert numpy.array_equal(ol.infer(model, {"words": rows}), ol.infer(model, {"words": elements}))
    ol.save_model(y, {"words": rows}, scope, tmp_path / "model.safetensors")
    with pytest.raises(ol.FeedError, match="row 0 is float 1.0"):
        ol.save_model(y, {"words": [1.0]}, scope, tmp_path / "model.safetensors")


@pytest.mark.parametrize("splits_first", [False, True])
@pytest.mark.parametrize("end", [1, 2, 4])
def test_row_splits_end_where_the_elements_do(end: int, splits_first: bool):
    """Whichever is declared first, and also where what was fed before had the same types and was right."""
    inputs = ["words: int64[t]", "cuts: int64[n+1] row_splits_of t"]
    program = parse_program(f"""program seed=0
        block main({", ".join(reversed(inputs) if splits_first else inputs)}) {{
          y: int64[n] = sequence_sum(x=words, splits=cuts)
        }}
        target y = y""")
    words, right = torch.tensor([1, 2, 3]), torch.tensor([0, 1, 3])  # tensors of known types are not always looked at again
    for executor in (ol.Executor(), ol.Executor(passes=()), ol.Executor(interpret=True)):
        for _ in range(2):
            assert executor.run(program, {"words": words, "cuts": right}, ["y"], scope=ol.Scope())[0].tolist() == [1, 5]
        with pytest.raises(ol.FeedError) as raised:
            executor.run(program, {"words": words, "cuts": torch.tensor([0, 1, end])}, ["y"], scope=ol.Scope())
        ends, has = f'"cuts" has t = {end}', '"words" has t = 3'
        assert raised.value.message == (f"{has}, but {ends}" if splits_first else f"{ends}, but {has}")


@pytest.mark.parametrize("end", [1, 3])
def test_row_splits_of_rows_of_rows_end_where_the_rows_do(end: int):
    program, fetch = words_program(levels=2)
    good = {"words": numpy.arange(3), "words.splits.0": numpy.array([0, 2]), "words.splits.1": numpy.array([0, 1, 3])}
    assert run(program, good, fetch)[1] == [0, 2]
    with pytest.raises(ol.FeedError) as raised:
        run(program, {**good, "words.splits.0": numpy.array([0, end])}, fetch)
    assert f"words.s1 = {end}" in raised.value.message
    assert "words.s1 = 2" in raised.value.message
