"""Files that are truncated, changed, foreign or forged: each gives one of our errors, and none runs anything."""

import hashlib
import json
import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
import safetensors.torch
import torch
from classifiers import small_classifier, small_rows
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

import oarlock as ol
from oarlock import inference
from oarlock.io import container
from oarlock.io.container import PROGRAM, write_container
from oarlock.proto import program_pb2 as wire

SEED = 0
FLIPS = 300
LENGTHS = 200

# Errors without a name of their own: what a flipped bit of a program may be.
OURS = (ol.FormatError, ol.VerifyError, ol.LimitError, ol.UnknownOperatorError, ol.ProgramError)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training program with dropout and Adam, saved; nobody writes to it."""
    small = small_classifier(dropout=0.5)
    result = ol.train(small.cost, small_rows(), optimizer=ol.optimizer.Adam(), progress=False)
    path = tmp_path_factory.mktemp("whole") / "model.safetensors"
    ol.save_model(result, path)
    return path


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that are read at once need not reach the disk first."""
    monkeypatch.setattr(container.os, "fsync", lambda _: None)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.safetensors"


def parts(whole: Path) -> tuple[bytes, dict[str, torch.Tensor]]:
    """The program's bytes and the tensors of a file."""
    tensors = safetensors.torch.load_file(whole)
    return tensors.pop(PROGRAM).numpy().tobytes(), tensors


def require_format_error(path: Path, message: str) -> None:
    """Both readers give this error, whole."""
    for load in (ol.load_model, inference.load_model):
        with pytest.raises(ol.FormatError) as raised:
            load(path)
        assert str(raised.value) == message


# Truncated, and changed


def test_a_file_cut_short_at_any_length_is_refused(whole, path):
    data = whole.read_bytes()
    lengths = {*range(300), *random.Random(SEED).sample(range(300, len(data)), LENGTHS), len(data) - 1}
    for length in sorted(lengths):
        path.write_bytes(data[:length])
        with pytest.raises(ol.FormatError) as raised:
            ol.load_model(path)
        assert raised.value.message in (
            '"model.safetensors" is not a valid safetensors file, or is truncated',
            '"model.safetensors" is a safetensors file, but not a model of Oarlock',
        ), length


def test_a_file_that_goes_on_after_its_end_is_refused(whole, path):
    for tail in (b"\0", b"\n", whole.read_bytes()):
        path.write_bytes(whole.read_bytes() + tail)
        with pytest.raises(ol.FormatError):
            ol.load_model(path)


def test_a_file_of_which_one_bit_was_flipped_is_refused(whole, path):
    data = bytearray(whole.read_bytes())
    generator = random.Random(SEED)
    for position in generator.sample(range(len(data) * 8), FLIPS):
        data[position // 8] ^= 1 << position % 8
        path.write_bytes(data)
        with pytest.raises((ol.FormatError, ol.LimitError)):
            ol.load_model(path)
        data[position // 8] ^= 1 << position % 8
    path.write_bytes(data)
    ol.load_model(path)


def test_every_bit_of_the_header_counts(whole, path):
    data = bytearray(whole.read_bytes())
    header = 8 + int.from_bytes(data[:8], "little")
    text = data[:header].rstrip(b" ")
    survivors = []
    for position in range(0, len(text) * 8, 11):
        data[position // 8] ^= 1 << position % 8
        path.write_bytes(data)
        try:
            ol.load_model(path)
        except (ol.FormatError, ol.LimitError):
            pass
        else:
            survivors.append(position)
        data[position // 8] ^= 1 << position % 8
    assert survivors == []


def test_a_changed_number_is_told_by_the_digest(whole, path):
    _, tensors = parts(whole)
    data = bytearray(whole.read_bytes())
    number = tensors["fc_0.w"].numpy().tobytes()
    data[data.index(number)] ^= 1
    path.write_bytes(data)
    require_format_error(
        path,
        '"model.safetensors" is damaged: its SHA-256 differs\n  Try: download or save the file again    (oarlock explain FormatError)',
    )


def test_every_change_of_a_program_with_a_forged_digest_is_refused_or_legal(whole, path):
    program, tensors = parts(whole)
    generator = random.Random(SEED)
    refused = 0
    for number in range(FLIPS):
        changed = bytearray(program)
        for _ in range(1 + number % 3):
            changed[generator.randrange(len(changed))] = generator.randrange(256)
        write_container(path, bytes(changed), tensors)
        try:
            model = ol.load_model(path)
        except OURS:
            refused += 1
        else:
            assert ol.Program.from_bytes(model.program.to_bytes()).to_bytes() == model.program.to_bytes()
    assert refused > FLIPS / 2


def test_every_truncation_of_a_program_with_a_forged_digest_is_refused_or_legal(whole, path):
    program, tensors = parts(whole)
    for length in range(1, len(program), 11):
        write_container(path, program[:length], tensors)
        try:
            ol.load_model(path)
        except OURS:
            pass
        else:
            assert length > len(program) - len(source_of(program)), "only the author's lines may be missing"


def test_every_change_of_a_field_with_a_forged_digest_is_refused_or_legal(whole, path):
    program, tensors = parts(whole)
    generator = random.Random(SEED)
    refused = 0
    for _ in range(FLIPS):
        file = wire.ProgramFile.FromString(program)
        change_one_field(file.program, generator)
        write_container(path, file.SerializeToString(), tensors)
        try:
            ol.load_model(path)
        except OURS:
            refused += 1
    assert refused > FLIPS / 2


def change_one_field(message: Message, generator: random.Random) -> None:
    """Change, drop, double or swap one field somewhere in a message, so that it can still be parsed."""
    owner, field = generator.choice([*fields_of(message)])
    value = getattr(owner, field.name)
    if field.is_repeated:
        how = generator.randrange(3)
        if not len(value):
            value.append(another_value(field, generator)) if field.message_type is None else value.add()
        elif how == 0:
            del value[generator.randrange(len(value))]
        elif how == 1:
            value.append(generator.choice(value))
        else:
            items = list(value)
            generator.shuffle(items)
            copies = [type(item).FromString(item.SerializeToString()) if field.message_type else item for item in items]
            del value[:]
            value.extend(copies)
    elif field.message_type is not None:
        owner.ClearField(field.name)
    else:
        setattr(owner, field.name, another_value(field, generator))


def fields_of(message: Message) -> Iterator[tuple[Message, FieldDescriptor]]:
    """Every field of a message and of the messages in it, with the message that it belongs to."""
    for field in message.DESCRIPTOR.fields:
        if field.is_repeated or field.message_type is None or message.HasField(field.name):
            yield message, field
        if field.message_type is not None:
            value = getattr(message, field.name)
            for inner in value if field.is_repeated else [value] if message.HasField(field.name) else []:
                yield from fields_of(inner)


def another_value(field: FieldDescriptor, generator: random.Random) -> object:
    texts = ["", "x", "main", "fc_0.w", "label", "n", "n+1", "../x", "a" * 300, "assign", "relu", "@STEP"]
    choices = {
        field.CPPTYPE_STRING: [b"", b"1234"] if field.type == field.TYPE_BYTES else texts,
        field.CPPTYPE_DOUBLE: [0.0, -1.0, float("nan"), float("inf"), 1e300],
        field.CPPTYPE_BOOL: [False, True],
        field.CPPTYPE_ENUM: list(range(12)),
        field.CPPTYPE_UINT32: [0, 1, 2, 7, 2**31, 2**32 - 1],
        field.CPPTYPE_UINT64: [0, 1, 2**64 - 1],
    }
    return generator.choice(choices.get(field.cpp_type, [0, 1, -1, 3, 10, 2**31 - 1, -(2**31)]))


def test_a_loop_that_stacks_values_of_unknown_rank_is_refused(path):
    with ol.Program() as program:
        rows = ol.layer.data("rows", shape=[3])
        rnn = ol.rnn()
        with rnn.step():
            rnn.output(ol.layer.relu(rnn.step_input(rows)))
        program.targets["rows"] = rnn()
    file = wire.ProgramFile.FromString(program.to_bytes())
    (returned,) = (var for var in file.program.blocks[1].vars if var.name == file.program.blocks[1].outputs[0])
    returned.ClearField("shape")
    file.program.blocks[1].ops[0].type = "relu"
    write_container(path, file.SerializeToString(), {})
    with pytest.raises(ol.VerifyError):
        ol.load_model(path)


def source_of(program: bytes) -> bytes:
    file = wire.ProgramFile.FromString(program)
    return wire.ProgramFile(source=file.source).SerializeToString()


# Foreign files


@pytest.mark.parametrize(
    "content",
    [b"", b"GIF89a", b"This is a letter, and no model at all.\n" * 10, bytes(1000)],
    ids=["empty", "short", "text", "zeros"],
)
def test_a_file_that_is_no_safetensors_file_is_refused(content, path):
    path.write_bytes(content)
    with pytest.raises(ol.FormatError) as raised:
        ol.load_model(path)
    (reason,) = raised.value.given  # what the library of that format says
    assert str(raised.value) == f'"model.safetensors" is not a valid safetensors file, or is truncated\n      {reason}'
    assert isinstance(raised.value, ValueError)


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}], ids=["bare", "pt"])
def test_a_plain_safetensors_file_is_refused(metadata, path):
    safetensors.torch.save_file({"w": torch.zeros(3), "b": torch.zeros(1)}, path, metadata)
    require_format_error(
        path,
        '"model.safetensors" is a safetensors file, but not a model of Oarlock\n'
        "      none of its 2 tensors is oarlock.program\n"
        "  Try: use a file written by ol.save_model, which also contains a program    (oarlock explain FormatError)",
    )


def test_a_program_without_our_mark_is_refused(whole, path):
    program, tensors = parts(whole)
    safetensors.torch.save_file(tensors | {PROGRAM: torch.frombuffer(bytearray(program), dtype=torch.uint8)}, path)
    require_format_error(
        path,
        '"model.safetensors" is a safetensors file, but not a model of Oarlock\n'
        "  Try: use a file written by ol.save_model, which also contains a program    (oarlock explain FormatError)",
    )


def test_a_pickle_is_refused_and_not_run(path):
    torch.save({"w": torch.zeros(3)}, path)
    with pytest.raises((ol.FormatError, ol.LimitError)):
        ol.load_model(path)


def test_a_folder_is_refused(tmp_path):
    require_format_error(tmp_path, f'"{tmp_path}" is a folder, not a file')


def test_a_file_that_is_not_there_is_said(tmp_path):
    for absent in (tmp_path / "none.safetensors", tmp_path / "none" / "model.safetensors"):
        with pytest.raises(ol.MissingFileError) as raised:
            ol.load_model(absent)
        assert str(raised.value) == f'there is no file "{absent}"'
        assert isinstance(raised.value, FileNotFoundError)


# Forged files: every digest is right


def digest_of(tensors: Mapping[str, torch.Tensor]) -> str:
    """The digest as the format defines it, computed here a second time."""
    names = {torch.float32: "F32", torch.float64: "F64", torch.int64: "I64", torch.uint8: "U8"}
    digest = hashlib.sha256()
    for name in sorted(tensors):
        data = tensors[name].numpy().tobytes()
        digest.update(json.dumps([name, names[tensors[name].dtype], list(tensors[name].shape), len(data)]).encode() + data)
    return digest.hexdigest()


def write_layout(path: Path, whole: Path, mark: Callable[[str], str]) -> None:
    """The file `whole` again, with the mark that `mark` makes of the digest."""
    tensors = safetensors.torch.load_file(whole)
    path.write_bytes(safetensors.torch.save(tensors, {"oarlock": mark(digest_of(tensors))}))


def test_the_digest_is_what_the_format_says(whole, path):
    write_layout(path, whole, lambda digest: f"1 {digest}")
    assert path.read_bytes() == whole.read_bytes()


def test_another_version_of_the_layout_is_refused(whole, path):
    write_layout(path, whole, lambda digest: f"2 {digest}")
    require_format_error(path, '"model.safetensors" has layout version 2; this Oarlock reads version 1')


@pytest.mark.parametrize("mark", ["", "1", "1 2 3", "1 \n"], ids=repr)
def test_a_mark_that_is_none_is_refused(mark, whole, path):
    write_layout(path, whole, lambda digest: mark)
    with pytest.raises(ol.FormatError):
        ol.load_model(path)


def test_another_version_of_the_program_is_refused(whole, path):
    program, tensors = parts(whole)
    file = wire.ProgramFile.FromString(program)
    file.program.version = 3
    write_container(path, file.SerializeToString(), tensors)
    require_format_error(path, "this is format version 3; this Oarlock reads versions 1 and 2")


def test_a_program_that_is_none_is_refused(whole, path):
    _, tensors = parts(whole)
    write_container(path, wire.ProgramFile().SerializeToString() + b"\x12\0", tensors)
    require_format_error(path, "these bytes are not an Oarlock program: the format version is missing")
    write_container(path, b"\xff" * 100, tensors)
    with pytest.raises(ol.FormatError) as raised:
        ol.load_model(path)
    assert raised.value.message == "these bytes are not an Oarlock program"


@pytest.fixture
def plain(tmp_path: Path) -> tuple[bytes, dict[str, torch.Tensor]]:
    """The parts of a file that only predicts."""
    small = small_classifier()
    ol.save_model(small.predict, ol.init(small.program, ol.Scope()), tmp_path / "plain")
    return parts(tmp_path / "plain")


def where(program: bytes, name: str) -> str:
    """Where the author of a program declared a variable."""
    location = ol.Program.from_bytes(program).main.var(name).location
    return f"{location.file}:{location.line}"


def test_a_tensor_that_is_missing_is_named(plain, path):
    program, tensors = plain
    del tensors["fc_0.b"]
    write_container(path, program, tensors)
    line = f'"fc_0.b"   float32[2]   parameter; created at {where(program, "fc_0.b")}'
    require_format_error(path, f'the file has no value for "fc_0.b"\n      {line}')


def test_a_tensor_too_many_is_named(plain, path):
    program, tensors = plain
    write_container(path, program, tensors | {"stowaway": torch.zeros(3)})
    require_format_error(path, 'the file contains "stowaway", which its program does not declare')


@pytest.mark.parametrize("wrong", [torch.zeros(3), torch.zeros(2, 1), torch.zeros(()), torch.zeros(2, dtype=torch.float64)], ids=str)
def test_a_tensor_of_another_type_is_named(wrong, plain, path):
    program, tensors = plain
    write_container(path, program, tensors | {"fc_0.b": wrong})
    held = f"{str(wrong.dtype).removeprefix('torch.')}{list(wrong.shape)}"
    line = f'"fc_0.b"   float32[2]   parameter; created at {where(program, "fc_0.b")}'
    require_format_error(path, f'the file has "fc_0.b" as {held}\n      {line}')


def test_a_dtype_that_no_program_holds_is_refused(plain, path):
    program, _ = plain
    held = {PROGRAM: torch.frombuffer(bytearray(program), dtype=torch.uint8), "fc_0.b": torch.zeros(2, dtype=torch.complex64)}
    data = safetensors.torch.save(held)
    items = dict(safetensors.deserialize(data))
    digest = hashlib.sha256()
    for name in sorted(items):
        item = items[name]
        digest.update(json.dumps([name, item["dtype"], list(item["shape"]), len(item["data"])]).encode() + item["data"])
    path.write_bytes(safetensors.torch.save(held, {"oarlock": f"1 {digest.hexdigest()}"}))
    require_format_error(path, '"model.safetensors": tensor "fc_0.b" has the dtype C64, which programs do not support')


def test_a_program_of_an_operator_that_nobody_registered_is_refused(plain, path):
    program, tensors = plain
    file = wire.ProgramFile.FromString(program)
    file.program.blocks[0].ops[0].type = "linaer"
    write_container(path, file.SerializeToString(), tensors)
    with pytest.raises(ol.UnknownOperatorError) as raised:
        ol.load_model(path)
    assert raised.value.message == 'main, op 0 (linaer): no operator "linaer"; did you mean "linear"?'


def test_a_program_that_reads_what_it_has_not_computed_is_refused(plain, path):
    program, tensors = plain
    file = wire.ProgramFile.FromString(program)
    first, second = file.program.blocks[0].ops
    first_copy = wire.OpDesc.FromString(first.SerializeToString())
    first.CopyFrom(second)
    second.CopyFrom(first_copy)
    write_container(path, file.SerializeToString(), tensors)
    with pytest.raises(ol.VerifyError) as raised:
        ol.load_model(path)
    assert str(raised.value) == 'main, op 0 (softmax): it reads "fc_0.out" before that has a value'


def test_a_program_whose_types_do_not_follow_is_refused(plain, path):
    program, tensors = plain
    file = wire.ProgramFile.FromString(program)
    (out,) = (var for var in file.program.blocks[0].vars if var.name == "softmax_0")
    out.shape.sizes[1].number = 3
    write_container(path, file.SerializeToString(), tensors)
    with pytest.raises(ol.VerifyError) as raised:
        ol.load_model(path)
    assert (
        raised.value.message
        == 'main, op 1 (softmax): "softmax_0" is declared as float32[n, 3], but float32[n, 2] is inferred from its inputs'
    )


def test_a_value_that_a_file_gives_an_input_must_fit_it(path):
    with ol.Program():
        x = ol.layer.data("x", value=small_rows()["x"])
        ol.save_model(ol.layer.relu(x), {}, path)
    data, tensors = parts(path)
    file = wire.ProgramFile.FromString(data)
    (attribute,) = (item for item in file.program.blocks[0].vars[0].initializer.attributes if item.name == "shape")
    attribute.ints.values[:] = [3, 10]
    write_container(path, file.SerializeToString(), tensors)
    with pytest.raises(ol.VerifyError) as raised:
        ol.load_model(path)
    assert raised.value.message == 'main: variable "x" has an invalid initializer: an array of shape [3, 10] does not fit float32[n, 3]'


# Limits


def test_a_file_larger_than_allowed_is_not_even_read(whole):
    size = whole.stat().st_size
    ol.load_model(whole, limits=ol.Limits(file_bytes=size))
    with pytest.raises(ol.LimitError) as raised:
        ol.load_model(whole, limits=ol.Limits(file_bytes=size - 1))
    assert str(raised.value) == (
        f'"model.safetensors" has {size:,} bytes, but the limit is {size - 1:,}\n'
        "  Try: limits=Limits(file_bytes=...)    (oarlock explain LimitError)"
    )


def test_a_sparse_file_of_a_terabyte_is_refused_at_once(path):
    with path.open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(ol.LimitError) as raised:
        ol.load_model(path)
    assert raised.value.message == '"model.safetensors" has 1,099,511,627,776 bytes, but the limit is 4,294,967,296'


def test_a_header_larger_than_allowed_is_not_parsed(whole):
    length = int.from_bytes(whole.read_bytes()[:8], "little")
    ol.load_model(whole, limits=ol.Limits(header_bytes=length))
    with pytest.raises(ol.LimitError) as raised:
        ol.load_model(whole, limits=ol.Limits(header_bytes=length - 1))
    assert raised.value.message == f'"model.safetensors" has a header of {length:,} bytes, but the limit is {length - 1:,}'


@pytest.mark.parametrize("limit", ["program_bytes", "vars", "ops", "arguments", "attributes_per_op", "rank", "size"])
def test_a_program_larger_than_allowed_is_refused(limit, whole):
    with pytest.raises(ol.LimitError) as raised:
        ol.load_model(whole, limits=ol.Limits(**{limit: 1}))
    assert raised.value.hint == f"limits=Limits({limit}=...)"
    assert raised.value.message.endswith("but the limit is 1")


# Nothing is changed


def test_a_command_that_refuses_a_file_leaves_it_as_it_was(whole, path):
    from oarlock.cli.main import app

    shutil.copy(whole, path)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(ol.FormatError):
        app(["train", str(path), "--data", "digits:train"], standalone_mode=False)
    assert path.read_bytes() == data


def test_a_failed_load_leaves_no_variable_and_no_operator_behind(whole, path):
    from oarlock.registry import standard

    operators, default = set(standard.operators), ol.default_program().to_bytes()
    path.write_bytes(whole.read_bytes()[:-1])
    with pytest.raises(ol.FormatError):
        ol.load_model(path)
    assert set(standard.operators) == operators
    assert ol.default_program().to_bytes() == default
