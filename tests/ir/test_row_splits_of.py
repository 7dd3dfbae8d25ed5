"""Row splits: which dimension they cut into rows, in memory, in text and in a file."""

import pytest

import oarlock as ol
from oarlock.ir.serialization import program_desc, read_program
from oarlock.proto import program_pb2 as wire

TEXT = """program seed=0

block main(words: int64[words.t], words.splits: int64[n+1] row_splits_of words.t gradient) {
  row_splits_of: float32[words.t] = cast(x=words, dtype=float32)
  cast_1: int64[n+1] row_splits_of size_0 = cast(x=words.splits, dtype=int64)
}
"""


def ragged(*, name="words", levels=1) -> ol.Program:
    with ol.Program() as program:
        main = program.main
        main.inputs.append(main.new_var(name, ol.DType.INT64, (f"{name}.t",), stop_gradient=True))
        rows = f"{name}.s" if levels == 2 else "n"
        main.inputs.append(main.new_var(f"{name}.splits", ol.DType.INT64, (f"{rows}+1",), stop_gradient=True, row_splits_of=f"{name}.t"))
        if levels == 2:
            main.inputs.append(main.new_var(f"{name}.outer", ol.DType.INT64, ("n+1",), stop_gradient=True, row_splits_of=f"{name}.s"))
        ol.op.cast(main.inputs[0], dtype="float32")
    return program


def test_what_is_partitioned_is_printed_parsed_written_and_read():
    program = ol.parse_program(TEXT)
    assert program.to_text() == TEXT
    assert program.main.var("words.splits").row_splits_of == "words.t"
    assert program.main.var("words").row_splits_of is None
    read = ol.Program.from_bytes(program.to_bytes())
    assert read.to_text() == TEXT
    assert read.to_bytes() == program.to_bytes() == program.clone().to_bytes()


def test_a_variable_may_be_called_partitions():
    """The word stands after a shape, where the name of the next line's variable may stand too."""
    text = "program seed=0\n\nblock main() {\n  state a: int64[3]\n  row_splits_of: int64[3] = assign(x=a)\n}\n"
    assert ol.parse_program(text).to_text() == text


def test_programs_that_cut_differently_are_different_programs():
    with_tie, without = ragged(), ragged()
    without.main.var("words.splits").row_splits_of = None
    assert ol.content_hash(with_tie) != ol.content_hash(without)
    assert [str(item) for item in ol.diff_programs(with_tie, without)] == [
        "~ main: input words.splits: int64[n+1]\n      row_splits_of: words.t became nothing"
    ]
    other = ol.parse_program(TEXT)
    other.main.var("cast_1").row_splits_of = None
    assert [str(item) for item in ol.diff_programs(other, ol.parse_program(TEXT))] == [
        "~ main: cast_1: int64[n+1] row_splits_of size_0 = cast(x=words.splits, dtype=int64)\n      row_splits_of: nothing became size_0"
    ]


def test_row_splits_are_found_from_inside_the_blocks_around_which_they_stand():
    program = ragged()
    inner = program.new_block("inner", program.main)
    own = inner.new_var("own.splits", ol.DType.INT64, ("n+1",), row_splits_of="own.t")
    hiding = inner.new_var("other.splits", ol.DType.INT64, ("n+1",), row_splits_of="words.t")
    assert inner.splits_of("own.t") is own
    assert inner.splits_of("words.t") is hiding
    hiding.row_splits_of = None
    assert inner.splits_of("words.t") is program.main.var("words.splits")
    assert program.main.splits_of("own.t") is None
    assert program.main.splits_of("n") is None
    assert program.main.splits_of(3) is None


def test_the_cuts_of_an_input_are_told_from_the_outermost_to_the_innermost():
    def names(program: ol.Program) -> dict[str, list[str]]:
        return {var.name: [splits.name for splits in levels] for var, levels in program.ragged_inputs().items()}

    assert names(ragged()) == {"words": ["words.splits"]}
    assert names(ragged(levels=2)) == {"words": ["words.outer", "words.splits"]}
    program = ragged()
    program.main.inputs.append(program.main.new_var("tags", ol.DType.INT8, ("words.t", 2)))
    assert names(program) == {"words": ["words.splits"], "tags": ["words.splits"]}
    assert names(ol.Program()) == {}


def test_row_splits_that_cut_each_other_in_a_circle_end_somewhere():
    program = ragged()
    program.main.var("words.splits").shape = ("words.t+1",)
    assert [len(levels) for levels in program.ragged_inputs().values()] == [1]


def test_a_file_with_a_thousand_levels_of_rows_costs_no_more_than_sixteen():
    with ol.Program() as program:
        main = program.main
        main.inputs.append(main.new_var("x", ol.DType.INT64, ("s0",)))
        for level in range(1000):
            main.inputs.append(main.new_var(f"splits_{level}", ol.DType.INT64, (f"s{level + 1}+1",), row_splits_of=f"s{level}"))
    (levels,) = ol.Program.from_bytes(program.to_bytes()).ragged_inputs().values()
    assert [splits.name for splits in levels] == [f"splits_{level}" for level in reversed(range(16))]


def test_a_size_that_is_partitioned_is_never_given_to_another_dimension():
    with ol.Program() as program:
        program.main.new_var("splits", ol.DType.INT64, ("n+1",), row_splits_of="size_0")
    assert program.unique("size") == "size_1"
    assert program.clone().unique("size") == "size_1"


# Rules


def refuse(change, message: str, error: type[ol.OarlockError] = ol.VerifyError):
    """Expect that the file is read, and that after `change` it is refused with just this message."""
    file = wire.ProgramFile(program=program_desc(ragged()))
    ol.Program.from_bytes(file.SerializeToString())
    change(file.program.blocks[0].vars[1], file.program.blocks[0])
    with pytest.raises(error) as caught:
        ol.Program.from_bytes(file.SerializeToString())
    assert str(caught.value) == message


@pytest.mark.parametrize("name", ["words.t+1", "3", "2*n", "", " ", "n" * 257, "n\n", "(n)//2"])
def test_what_is_partitioned_is_the_name_of_a_size(name):
    def change(splits, _):
        splits.row_splits_of = name or "?"

    refuse(change, f'main: variable "words.splits" row_splits_of {(name or "?")[:80]!r}: not the name of a size')


def test_row_splits_are_int64_of_one_dimension():
    def change_dtype(splits, _):
        splits.dtype = wire.INT32

    def add_dimension(splits, _):
        splits.shape.sizes.add(number=2)

    def forget_shape(splits, block):
        splits.ClearField("shape")
        block.inputs[:] = ["words"]

    start = 'main: variable "words.splits" row_splits_of words.t, so it must be int64 of one dimension, not '
    refuse(change_dtype, start + "int32[n+1]")
    refuse(add_dimension, start + "int64[n+1, 2]")
    refuse(forget_shape, start + "int64[*]")


def test_a_block_cuts_a_dimension_in_one_way():
    def change(splits, block):
        block.vars.add(name="more", dtype=wire.INT64, row_splits_of="words.t").shape.sizes.add(number=3)

    refuse(change, 'main: "words.splits" and "more" are both row splits of words.t')


def test_names_of_sizes_count_as_symbols():
    data = ragged(name="w" * 100).to_bytes()
    with pytest.raises(ol.LimitError, match="symbol bytes, but the limit is 104"):
        read_program(data, limits=ol.Limits(symbol_bytes=104))
    read_program(data, limits=ol.Limits(symbol_bytes=105))
    main = wire.ProgramFile.FromString(data)
    main.program.blocks[0].vars[1].row_splits_of = "v" * 50
    with pytest.raises(ol.LimitError, match="symbol bytes, but the limit is 154"):
        read_program(main.SerializeToString(), limits=ol.Limits(symbol_bytes=154))
