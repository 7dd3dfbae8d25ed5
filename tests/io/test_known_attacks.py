"""Files shaped like those that broke others, one each, kept for ever; with the whole of what is said to each.

The texts stand in tests/golden/known_attacks.txt; the names lead with the rows of reliability.md, section 2.
"""

import json
import textwrap
from collections.abc import Callable
from dataclasses import dataclass

import numpy
import pytest
from fuzz.draft import Draft
from fuzz.files import field, varint
from fuzz.judging import REFUSALS
from fuzz.seeds import draft_of

import oarlock as ol
from oarlock.proto import program_pb2 as wire

ATTACKS: dict[str, tuple[str, Callable[[Draft], None]]] = {}


def attack(name: str, seed: str = "recurrent"):
    def register(function):
        ATTACKS[name] = (seed, function)
        return function

    return register


def of_program(name: str, seed: str = "recurrent"):
    """An attack by the message alone."""

    def register(change):
        ATTACKS[name] = (seed, lambda draft: change(draft.program.program))
        return change

    return register


def loop(program: wire.ProgramDesc) -> wire.OpDesc:
    return next(op for op in program.blocks[0].ops if op.type == "recurrent")


def op(program: wire.ProgramDesc, type: str) -> wire.OpDesc:
    return next(op for block in program.blocks for op in block.ops if op.type == type)


def attribute(owner, name: str) -> wire.AttributeDesc:
    return next(item for item in owner.attributes if item.name == name)


def var(program: wire.ProgramDesc, name: str) -> wire.VarDesc:
    return next(var for block in program.blocks for var in block.vars if var.name == name)


# B10: the verifier trusts the file


@of_program("B10 CVE-2022-23565 an attribute twice")
def _(program):
    loop(program).attributes.add().CopyFrom(loop(program).attributes[0])


@of_program("B10 CVE-2020-15210 one tensor in and out")
def _(program):
    op(program, "reduce_sum").outputs[0].vars[0] = op(program, "reduce_sum").inputs[0].vars[0]


@of_program("B10 CVE-2020-15211 a bad index of a block")
def _(program):
    attribute(loop(program), "body").block = 2**32 - 1


@of_program("B10 CVE-2022-23589 a missing node")
def _(program):
    del program.blocks[1].ops[0]


@of_program("B10 CVE-2022-23579 an argument too few")
def _(program):
    del op(program, "linear").inputs[1]


@of_program("B10 CVE-2022-23581 an argument too many")
def _(program):
    op(program, "tanh").inputs[0].vars.append("cell.out")


@of_program("B10 CVE-2022-23588 an attribute of the wrong type")
def _(program):
    attribute(op(program, "concat"), "axis").string = "0"


@of_program("B10 an attribute missing")
def _(program):
    del op(program, "concat").attributes[:]


@of_program("B10 an attribute that no operator has")
def _(program):
    op(program, "tanh").attributes.add(name="inplace", bool=True)


@of_program("B10 an operator that is not there")
def _(program):
    op(program, "tanh").type = "py_func"


@of_program("B10 a value read before it is there")
def _(program):
    body = program.blocks[1]
    copies = [wire.OpDesc.FromString(item.SerializeToString()) for item in reversed(body.ops)]
    del body.ops[:]
    body.ops.extend(copies)


@of_program("B10 a value of a block inside")
def _(program):
    op(program, "reduce_sum").inputs[0].vars[0] = "cell.out"


@of_program("B10 a parameter written in the middle")
def _(program):
    op(program, "sgd").outputs[0].vars[0] = "cell.w"


@of_program("B10 outputs in another order", "digits")
def _(program):
    slots = op(program, "max_pool2d").outputs
    copies = [wire.SlotDesc.FromString(item.SerializeToString()) for item in reversed(slots)]
    del slots[:]
    slots.extend(copies)


@of_program("B10 a dtype swapped")
def _(program):
    var(program, "cost").dtype = wire.INT64


@of_program("B10 an initializer that is none")
def _(program):
    var(program, "cell.w").initializer.type = "exec"


@of_program("B10 an array that is too short")
def _(program):
    attribute(var(program, "start").initializer, "data").bytes = b"\0"


@of_program("B10 a step of no rows", "digits")
def _(program):
    program.training.batch_size = 0


# B11: recursion


@of_program("B11 CVE-2022-23591 a block that holds itself")
def _(program):
    body = program.blocks[1].ops.add()
    body.CopyFrom(loop(program))


@of_program("B11 CVE-2021-29591 one block in two roles")
def _(program):
    loop(program).attributes.add(name="test", block=1)


@of_program("B11 CVE-2021-41213 two blocks that hold each other", "nested")
def _(program):
    program.blocks[1].parent = 2


@of_program("B11 O#7815 a block that is its own parent")
def _(program):
    program.blocks[1].parent = 1


@of_program("B11 ORT#32344 blocks 33 deep")
def _(program):
    for _ in range(33):
        program.blocks.add(name=f"b{len(program.blocks)}", parent=len(program.blocks) - 1)


@attack("B11 CVE-2025-4565 messages 101 deep")
def _(draft):
    payload = b""
    for _ in range(101):
        payload = field(3, payload)
    draft.program_bytes = draft.serialized() + field(9, payload)


@attack("B11 a group without an end")
def _(draft):
    draft.program_bytes = draft.serialized() + b"\x1b" * 5000


@attack("B11 a header of brackets")
def _(draft):
    draft.header_text = b"[" * 200_000


# B12: sizes


@of_program("B12 CVE-2022-23587 a size of 2**31")
def _(program):
    var(program, "cell.w").shape.sizes[0].number = 2**31


@of_program("B12 CVE-2022-21727 a size of 2**63 - 1")
def _(program):
    var(program, "cell.w").shape.sizes[0].number = 2**63 - 1


@of_program("B12 a size of -1")
def _(program):
    var(program, "cell.w").shape.sizes[0].number = -1


@of_program("B12 sizes whose product wraps to nothing")
def _(program):
    for size in var(program, "cell.w").shape.sizes:
        size.number = 2**31 - 1


@of_program("B12 no elements, and strides that wrap")
def _(program):
    sizes = var(program, "cell.w").shape.sizes
    sizes[0].number, sizes[1].number = 0, 2**31 - 1
    sizes.add(number=2**31 - 1)


@attack("B12 openvino#34070 offsets that wrap")
def _(draft):
    draft.header["cell.b"] = {"dtype": "F32", "shape": [2], "data_offsets": [2**64 - 8, 2**64]}


@attack("B12 a shape that wraps to no bytes")
def _(draft):
    draft.tensors["cell.b"] = ("F32", [2**63, 2], b"")


@attack("B12 a header of 2**63 bytes")
def _(draft):
    draft.header_length = 2**63


@attack("B12 an empty tensor of 2**62 columns")
def _(draft):
    draft.tensors["cell.b"] = ("F32", [0, 2**62], b"")


# B13: allocation bombs


@of_program("B13 CVE-2022-23580 a parameter of a tebibyte")
def _(program):
    for size in var(program, "cell.w").shape.sizes:
        size.number = 2**19


@of_program("B13 parameters that are too many together")
def _(program):
    for number in range(6):
        bomb = program.blocks[0].vars.add(name=f"bomb_{number}", dtype=wire.FLOAT32, persistable=True, stop_gradient=True)
        bomb.shape.sizes.add(number=2**28 - 1)
        bomb.initializer.type = "normal"


@attack("B13 a million empty messages")
def _(draft):
    inner = draft.program.program.SerializeToString(deterministic=True)
    draft.program_bytes = field(1, inner + b"\x1a\x00" * 1_000_001)


@attack("B13 a million empty names")
def _(draft):
    inner = draft.program.program.SerializeToString(deterministic=True)
    draft.program_bytes = field(1, inner + field(3, b"\x1a\x00" * 1_000_001))


@of_program("B13 a list of 70,000")
def _(program):
    op(program, "concat").attributes.add(name="list").ints.values.extend([0] * 70_000)


@of_program("B13 a rank of 17")
def _(program):
    for _ in range(17):
        var(program, "cost").shape.sizes.add(number=1)


@of_program("B13 a symbol that would not end")
def _(program):
    sizes = var(program, "xs").shape.sizes
    sizes[0].symbol = "*".join(f"(2*{letter}+2*{letter.upper()})//2" for letter in "abcdefghijklmnopq")


# B14: code


@attack("B14 P#62345 a pickle")
def _(draft):
    draft.program_bytes = b"\x80\x04cos\nsystem\n\x8c\x04id\n\x85R."


@of_program("B14 CVE-2022-45907 code for a size")
def _(program):
    var(program, "xs").shape.sizes[0].symbol = "__import__('os').system('id')"


@of_program("B14 CVE-2025-32434 an operator that is a path")
def _(program):
    op(program, "tanh").type = "os.system"


# B15: paths


@of_program("B15 CVE-2022-25882 a name that climbs")
def _(program):
    var(program, "cell.b").name = "../../../../etc/passwd"


@attack("B15 CVE-2024-27318 a tensor that climbs")
def _(draft):
    draft.tensors["../../x"] = ("U8", [1], b"x")


@of_program("B15 a name with a NUL")
def _(program):
    var(program, "cell.b").name = "cell.b\0.txt"


@of_program("B15 a name of a mebibyte")
def _(program):
    op(program, "tanh").inputs[0].vars[0] = "x" * 2**20


@of_program("B15 a label that climbs")
def _(program):
    program.targets[0].label = "a/../b"


# B16: attributes of Python's objects


@of_program("B16 CVE-2026-34445 an attribute called __class__")
def _(program):
    op(program, "tanh").attributes.add(name="__class__", string="str")


@of_program("B16 an attribute called self")
def _(program):
    op(program, "tanh").attributes.add(name="self", int=1)


@attack("B16 a tensor called __class__")
def _(draft):
    draft.tensors["__class__"] = ("U8", [1], b"x")


@attack("B16 a negative offset")
def _(draft):
    draft.header["cell.b"] = {"dtype": "F32", "shape": [2], "data_offsets": [-8, 0]}


@attack("B16 a field that the format does not have")
def _(draft):
    draft.program_bytes = draft.serialized() + field(100, b"x")


# Parsers that disagree


@attack("B10 a field twice")
def _(draft):
    draft.program_bytes = draft.serialized() + draft.serialized()


@attack("B10 two values of one oneof")
def _(draft):
    bad = wire.AttributeDesc(name="axis", int=0).SerializeToString() + b"\x20" + varint(1)
    inner = draft.program.program.SerializeToString(deterministic=True)
    draft.program_bytes = field(1, inner + field(3, field(6, field(4, bad))))


@attack("B10 a name twice in the header")
def _(draft):
    entry = json.dumps({"dtype": "U8", "shape": [4], "data_offsets": [0, 4]})
    draft.header_text = f'{{"oarlock.program": {entry}, "oarlock.program": {entry}}}'.encode()


@attack("B10 a hole in the file")
def _(draft):
    draft.tail = b"PK\x05\x06" + b"\0" * 18


@attack("B10 a digest of another file")
def _(draft):
    draft.digest = "0" * 64


# Programs that are legal, and values that would lead a kernel out of its memory: refused when they run


@dataclass(frozen=True)
class Run:
    """A program, what its file has for its state, and what it is fed."""

    program: str
    state: dict[str, list]
    feed: dict[str, list]


RUNS = {
    "an index of a pooling, in the file": Run(
        """
        block main(like: float32[1, 1, 2, 2], d: float32[1, 1, 1, 1]) {
          state at: int64[1, 1, 1, 1]
          dx: float32[1, 1, 2, 2] = max_pool2d_dx(index=at, dy=d, x_shape=like, padding=[0, 0], size=[2, 2], stride=[2, 2])
        }
        target y=dx
        """,
        {"at": [[[[48]]]]},
        {"like": [[[[0.0, 0.0], [0.0, 0.0]]]], "d": [[[[1.0]]]]},
    ),
    "row splits whose differences wrap around": Run(
        """
        block main(x: float32[2]) {
          state splits: int64[5]
          y: float32[4] = sequence_sum(x=x, splits=splits)
        }
        target y=y
        """,
        {"splits": [0, 2**63 - 1, -(2**63), -1, 2]},
        {"x": [1.0, 2.0]},
    ),
    "lengths whose sum wraps around": Run(
        """
        block main(like: float32[1]) {
          state splits: int64[2]
          state rows: int64[4]
          elements: int64[k], own: int64[5] = sequence_elements(splits=splits, rows=rows, like=like)
        }
        target y=elements
        """,
        {"splits": [0, 2**62], "rows": [0, 0, 0, 0]},
        {"like": [1.0]},
    ),
    "a sequence that is said to be long": Run(
        """
        block main(like: float32[1]) {
          state splits: int64[2]
          state rows: int64[1]
          elements: int64[k], own: int64[2] = sequence_elements(splits=splits, rows=rows, like=like)
        }
        target y=elements
        """,
        {"splits": [0, 10**10], "rows": [0]},
        {"like": [1.0]},
    ),
}


def said_when_it_runs(path, name: str) -> str:
    attack = RUNS[name]
    program = ol.registry.parse_program("program seed=0\n" + textwrap.dedent(attack.program))
    ol.save_model(program, {name: numpy.array(value) for name, value in attack.state.items()}, path)
    model = ol.load_model(path, untrusted=True)
    feed = {name: numpy.array(value, "float32") for name, value in attack.feed.items()}
    with pytest.raises((ol.KernelError, ol.LimitError)) as caught:
        ol.infer(model, feed)
    return f"{name}\n{type(caught.value).__name__}: {caught.value}\n"


def said(path, name: str) -> str:
    seed, change = ATTACKS[name]
    draft = draft_of(seed)
    draft.program.ClearField("source")  # the words would tell where the seeds' lines stand
    change(draft)
    path.write_bytes(draft.to_bytes())
    with pytest.raises(REFUSALS) as caught:
        ol.load_model(path)
    assert len(str(caught.value).encode()) <= 4096
    return f"{name}\n{type(caught.value).__name__}: {caught.value}\n"


def test_files_that_broke_others_are_refused_in_these_words(golden, tmp_path):
    path = tmp_path / "model.safetensors"
    golden("known_attacks.txt", "\n".join([*(said(path, name) for name in ATTACKS), *(said_when_it_runs(path, name) for name in RUNS)]))


def test_there_is_one_for_each_row_of_the_list():
    assert len(ATTACKS) >= 40
    assert {name.split()[0] for name in ATTACKS} == {"B10", "B11", "B12", "B13", "B14", "B15", "B16"}


@pytest.mark.parametrize("seed", sorted({seed for seed, _ in ATTACKS.values()}))
def test_the_files_are_read_before_they_are_spoiled(seed, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(draft_of(seed).to_bytes())
    ol.load_model(path)
