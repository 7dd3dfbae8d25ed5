"""`ol.load_weights`: files by name, folders, shards, names, transposes, and what is refused."""

import json
import random
from pathlib import Path

import numpy
import pytest
import safetensors.torch
import torch
from classifiers import small_classifier
from tolerances import VALUES

import oarlock as ol
from oarlock.io import tensor_file
from oarlock.io.tensor_file import TensorFile


def two_layers() -> ol.Program:
    """A program of two linear layers, `first` [3, 4] and `second` [4, 2], and one target."""
    with ol.Program(seed=3) as program:
        x = ol.layer.data("x", shape=[3])
        program.targets["y"] = ol.layer.fc(ol.layer.fc(x, 4, name="first"), 2, name="second")
    return program


OURS = ("first.w", "first.b", "second.w", "second.b")
SHAPES = {"first.w": (3, 4), "first.b": (4,), "second.w": (4, 2), "second.b": (2,)}


def numbered(shape: tuple[int, ...], start: float = 0.0) -> torch.Tensor:
    count = int(numpy.prod(shape))
    return (torch.arange(count, dtype=torch.float32) + start).reshape(shape)


def tensors() -> dict[str, torch.Tensor]:
    return {name: numbered(SHAPES[name], 10.0 * number) for number, name in enumerate(OURS)}


def same(scope: ol.Scope, expected: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(scope[name], value) and scope[name].dtype is value.dtype for name, value in expected.items())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "weights.safetensors"
    safetensors.torch.save_file(tensors(), path)
    return path


def write_shards(folder: Path, held: dict[str, torch.Tensor], count: int = 2) -> Path:
    """A folder as Hugging Face lays it out, its tensors dealt out to `count` files."""
    folder.mkdir(exist_ok=True)
    file_of = {name: f"model-{number % count + 1:05}-of-{count:05}.safetensors" for number, name in enumerate(held)}
    for name in set(file_of.values()):
        safetensors.torch.save_file({key: held[key] for key in held if file_of[key] == name}, folder / name, {"format": "pt"})
    index = {"metadata": {"total_size": 1}, "weight_map": file_of}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


# What is filled


def test_a_program_gets_a_scope_of_its_own(file):
    loaded = ol.load_weights(two_layers(), file)
    assert loaded.loaded == OURS
    assert (loaded.missing, loaded.unexpected) == ((), ())
    assert same(loaded.scope, tensors())


def test_a_model_is_filled_and_computes_with_what_it_was_given(file, tmp_path):
    program = two_layers()
    ol.save_model(program, ol.init(program, ol.Scope()), tmp_path / "model.safetensors")
    model = ol.load_model(tmp_path / "model.safetensors")
    before = ol.infer(model, {"x": numpy.ones((2, 3), "float32")})
    loaded = ol.load_weights(model, file)
    held = tensors()
    expected = (torch.ones(2, 3) @ held["first.w"] + held["first.b"]) @ held["second.w"] + held["second.b"]
    assert loaded.scope is model.scope
    assert numpy.array_equal(ol.infer(model, {"x": numpy.ones((2, 3), "float32")}), expected.numpy())
    assert not numpy.array_equal(before, expected.numpy())


def test_a_scope_says_by_what_it_holds_what_is_wanted(file):
    scope = ol.init(two_layers(), ol.Scope())
    assert ol.load_weights(scope, file).scope is scope
    assert same(scope, tensors())


def test_a_step_that_was_prepared_sees_the_new_values(file):
    program = two_layers()
    scope = ol.init(program, ol.Scope())
    step = ol.Executor().prepare(program, ["y"], scope=scope)
    feed = {"x": numpy.ones((1, 3), "float32")}
    step(feed)
    step(feed)
    ol.load_weights(scope, file)
    assert numpy.array_equal(step(feed)[0], ol.Executor().eval(program, ["y"], feed, scope=scope)[0])


def test_what_an_optimizer_keeps_is_not_wanted(tmp_path):
    small = small_classifier()
    rows = {"x": numpy.ones((4, 3), "float32"), "label": numpy.zeros(4, "int64")}
    result = ol.train(small.cost, rows, optimizer=ol.optimizer.Adam(0.1), progress=False)
    names = [name for name in result.parameters if "@" in name]
    states = {name: result.parameters[name].clone() for name in names}
    held = {"fc_0.w": torch.ones(3, 2), "fc_0.b": torch.zeros(2)}
    safetensors.torch.save_file(held, tmp_path / "weights.safetensors")
    loaded = ol.load_weights(result, tmp_path / "weights.safetensors")
    assert names
    assert loaded.loaded == ("fc_0.w", "fc_0.b")
    assert same(result.parameters, held | states)


def test_running_statistics_are_wanted(tmp_path):
    with ol.Program() as program:
        ol.layer.batch_norm(ol.layer.data("x", shape=[2]), name="norm")
    wanted = {var.name: torch.full(var.shape, 2.0) for var in program.persistables() if "@" not in var.name}
    safetensors.torch.save_file(wanted, tmp_path / "weights.safetensors")
    assert set(ol.load_weights(program, tmp_path / "weights.safetensors").loaded) == set(wanted)
    assert len(wanted) == 4


def test_a_model_file_of_ours_is_a_file_of_weights_too(tmp_path):
    program = two_layers()
    ol.save_model(program, {**tensors()}, tmp_path / "model.safetensors")
    assert same(ol.load_weights(two_layers(), tmp_path / "model.safetensors").scope, tensors())


# Where files are found


def test_a_folder_of_one_file(tmp_path):
    safetensors.torch.save_file(tensors(), tmp_path / "model.safetensors")
    assert same(ol.load_weights(two_layers(), tmp_path).scope, tensors())


@pytest.mark.parametrize("which", ["folder", "index"])
def test_shards_are_found_by_their_index(tmp_path, which):
    folder = write_shards(tmp_path / "sharded", tensors())
    path = folder if which == "folder" else folder / "model.safetensors.index.json"
    assert same(ol.load_weights(two_layers(), path).scope, tensors())


def test_a_folder_with_a_file_of_another_name(file):
    assert same(ol.load_weights(two_layers(), file.parent).scope, tensors())


def test_files_of_which_nothing_is_wanted_are_not_opened(tmp_path):
    folder = write_shards(tmp_path / "sharded", tensors(), count=4)
    (folder / "model-00004-of-00004.safetensors").unlink()
    loaded = ol.load_weights(two_layers(), folder, names={"second.b": None}, strict=False)
    assert loaded.loaded == OURS[:3]
    assert loaded.unexpected == ("second.b",)


def test_only_what_is_wanted_is_read(tmp_path, monkeypatch):
    held = tensors() | {"other": torch.zeros(2**20)}
    safetensors.torch.save_file(held, tmp_path / "weights.safetensors")
    read = []
    fill = tensor_file._fill
    monkeypatch.setattr(tensor_file, "_fill", lambda view, *rest: (read.append(len(view)), fill(view, *rest)))
    ol.load_weights(two_layers(), tmp_path / "weights.safetensors", strict=False)
    assert sum(read) < 4096


# Names


def test_names_by_a_function_and_by_a_dict(tmp_path):
    safetensors.torch.save_file({f"model.{name}": value for name, value in tensors().items()}, tmp_path / "a.safetensors")
    assert same(ol.load_weights(two_layers(), tmp_path / "a.safetensors", names=lambda name: f"model.{name}").scope, tensors())
    renamed = {"other" if name == "first.b" else name: value for name, value in tensors().items()}
    safetensors.torch.save_file(renamed, tmp_path / "b.safetensors")
    assert same(ol.load_weights(two_layers(), tmp_path / "b.safetensors", names={"first.b": "other"}).scope, tensors())


def test_one_tensor_for_two_variables_is_theirs_apart(tmp_path):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3])
        ol.layer.fc(ol.layer.fc(x, 3, name="one", bias=False), 3, name="two", bias=False)
    safetensors.torch.save_file({"w": numbered((3, 3))}, tmp_path / "a.safetensors")
    scope = ol.load_weights(program, tmp_path / "a.safetensors", names=lambda name: "w").scope
    assert same(scope, {"one.w": numbered((3, 3)), "two.w": numbered((3, 3))})
    assert scope["one.w"].data_ptr() != scope["two.w"].data_ptr()


def test_what_is_named_none_stays_as_it_is(file):
    scope = ol.init(two_layers(), ol.Scope())
    before = scope["first.w"].clone()
    loaded = ol.load_weights(scope, file, names={"first.w": None}, strict=False)
    assert loaded.missing == ()
    assert torch.equal(scope["first.w"], before)
    assert torch.equal(scope["first.b"], tensors()["first.b"])


# Transposes


@pytest.mark.parametrize(
    "how",
    [
        {"transpose": ["first.w", "second.w"]},
        {"transpose": lambda name: name.endswith(".w")},
        {"names": {"first.w": ("first.w", (1, 0)), "second.w": ("second.w", [1, 0])}},
    ],
    ids=["list", "function", "names"],
)
def test_a_layer_of_pytorch_is_turned_where_that_is_said(tmp_path, how):
    held = {name: value.mT.contiguous() if value.ndim == 2 else value for name, value in tensors().items()}
    safetensors.torch.save_file(held, tmp_path / "a.safetensors")
    scope = ol.load_weights(two_layers(), tmp_path / "a.safetensors", **how).scope
    assert same(scope, tensors())
    assert all(scope[name].is_contiguous() and scope[name].data_ptr() % 64 == 0 for name in OURS)


def test_more_axes_come_in_the_order_that_names_say(tmp_path):
    with ol.Program() as program:
        ol.layer.conv2d(ol.layer.data("x", shape=[3, 8, 8]), filters=2, size=5, name="conv", bias=False)
    (name,) = (var.name for var in program.parameters())
    of_others = numbered((5, 5, 3, 2))
    safetensors.torch.save_file({"kernel": of_others}, tmp_path / "a.safetensors")
    scope = ol.load_weights(program, tmp_path / "a.safetensors", names={name: ("kernel", (3, 2, 0, 1))}).scope
    assert torch.equal(scope[name], of_others.permute(3, 2, 0, 1))


# Dtypes


def test_floats_are_rounded_where_that_is_said(tmp_path):
    held = {name: value.to(torch.bfloat16) for name, value in tensors().items()}
    safetensors.torch.save_file(held, tmp_path / "a.safetensors")
    assert same(ol.load_weights(two_layers(), tmp_path / "a.safetensors", cast=True).scope, {k: v.float() for k, v in held.items()})


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"])
def test_every_dtype_comes_back_bit_by_bit(tmp_path, dtype):
    value = (torch.arange(12).reshape(3, 4) % 3).to(getattr(torch, dtype))
    safetensors.torch.save_file({"none": torch.zeros(0, 3), "value": value, "one": torch.tensor(5.0)}, tmp_path / "a.safetensors")
    with TensorFile.open(tmp_path / "a.safetensors") as opened:
        assert torch.equal(opened.read("value"), value)
        assert opened.read("value").dtype is value.dtype
        assert opened.read("none").shape == (0, 3)
        assert opened.read("one") == 5.0
        assert opened.entries["value"].type_text == f"{dtype}[3, 4]"


# What is refused, before anything is changed


def refused(error: type[ol.OarlockError], target: object, path: Path, **how: object) -> ol.OarlockError:
    with pytest.raises(error) as raised:
        ol.load_weights(target, path, **how)
    return raised.value


def test_all_that_is_missing_and_unexpected_is_in_one_message(tmp_path):
    held = tensors()
    held = {"first.weight": held["first.w"], "first.bias": held["first.b"], "second.w": held["second.w"], "lm_head": torch.ones(2)}
    safetensors.torch.save_file(held, tmp_path / "weights.safetensors")
    error = refused(ol.UndefinedVarError, two_layers(), tmp_path / "weights.safetensors")
    assert error.message == '"weights.safetensors": 3 of 4 variables have no tensor, and 3 tensors of 4 are not used by any variable'
    assert error.given == (
        'missing    "first.w" for "first.w" float32[3, 4], similar to "first.weight"',
        'missing    "first.b" for "first.b" float32[4], similar to "first.bias"',
        'missing    "second.b" for "second.b" float32[2]',
        'unexpected "first.bias" float32[4], similar to "first.b"',
        'unexpected "first.weight" float32[3, 4], similar to "first.w"',
        'unexpected "lm_head" float32[2]',
    )
    assert error.hint.startswith("map different names with names={")
    loaded = ol.load_weights(two_layers(), tmp_path / "weights.safetensors", strict=False)
    assert loaded.loaded == ("second.w",)
    assert loaded.missing == ("first.w", "first.b", "second.b")
    assert loaded.unexpected == ("first.bias", "first.weight", "lm_head")


def test_many_names_are_counted(tmp_path):
    safetensors.torch.save_file({**tensors(), **{f"more.{number}": torch.ones(1) for number in range(20)}}, tmp_path / "a.safetensors")
    error = refused(ol.UndefinedVarError, two_layers(), tmp_path / "a.safetensors")
    assert error.message == '"a.safetensors": 20 tensors of 24 are not used by any variable'
    assert error.given[-1] == "and 8 more are unexpected"


def test_shapes_are_refused_with_tensor_shape_and_file(tmp_path):
    held = tensors() | {"first.w": torch.ones(4, 3), "second.b": torch.ones(2, 2)}
    safetensors.torch.save_file(held, tmp_path / "a.safetensors")
    scope = ol.init(two_layers(), ol.Scope())
    before = {name: scope[name].clone() for name in OURS}
    error = refused(ol.ShapeError, scope, tmp_path / "a.safetensors")
    assert error.message == "the shape of 2 tensors of 4 differs from the variable's"
    assert error.given == (
        '"first.w" is float32[3, 4], but "first.w" in "a.safetensors" is float32[4, 3]',
        '"second.b" is float32[2], but "second.b" in "a.safetensors" is float32[2, 2]',
    )
    assert error.hint == "use transpose=['first.w']: PyTorch layers store [n, k], and linear reads [k, n]"
    assert same(scope, before)


def test_dtypes_are_refused_with_tensor_dtype_and_file(tmp_path):
    held = tensors() | {"first.w": torch.ones(3, 4, dtype=torch.float16)}
    safetensors.torch.save_file(held, tmp_path / "a.safetensors")
    error = refused(ol.DTypeError, two_layers(), tmp_path / "a.safetensors")
    assert error.given == ('"first.w" is float32[3, 4], but "first.w" in "a.safetensors" is float16[3, 4]',)
    assert error.hint == "use cast=True to round floats to the declared dtype"
    safetensors.torch.save_file(tensors() | {"first.w": torch.ones(3, 4, dtype=torch.int32)}, tmp_path / "a.safetensors")
    assert refused(ol.DTypeError, two_layers(), tmp_path / "a.safetensors", cast=True).hint is None


def test_a_name_that_would_change_nothing_is_refused(file):
    for how in ({"names": {"frist.w": "first.w"}}, {"transpose": ["frist.w"]}, {"transpose": "frist.w"}):
        error = refused(ol.UndefinedVarError, two_layers(), file, **how)
        assert error.message == f"{next(iter(how))} has 'frist.w', but there is no such variable to load"
        assert error.hint == 'did you mean "first.w"?'


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"names": {"first.w": 3}}, 'names gives 3 for "first.w"'),
        ({"names": {"first.w": ("first.w", (0, 2))}}, 'names permutes "first.w" by (0, 2), which is not a permutation of its 2 axes'),
        (
            {"names": {"first.w": ("first.w", (1, 0))}, "transpose": ["first.w"]},
            'both names and transpose permute "first.w": use only one of them',
        ),
    ],
)
def test_names_that_say_nothing_are_refused(file, how, message):
    assert refused(ol.ArgumentError, two_layers(), file, **how).message == message


def test_what_is_no_target_is_refused(file):
    assert refused(ol.ArgumentError, {}, file).message == "load_weights takes a model, a scope or a program, not dict"
    assert refused(ol.ArgumentError, ol.Scope(), file).message == "the scope has no tensors, so the variables to load are unknown"


def test_more_bytes_than_are_allowed_are_refused(file):
    error = refused(ol.LimitError, two_layers(), file, limits=ol.Limits(parameter_bytes=100))
    assert error.message == '"weights.safetensors": 104 bytes of weights exceed the limit of 100'
    error = refused(ol.LimitError, two_layers(), file, limits=ol.Limits(tensor_bytes=40))
    assert error.message == '"weights.safetensors", tensor "first.w": 48 tensor bytes, but the limit is 40'


# Hostile files


def test_no_pickle_is_read(tmp_path):
    torch.save(tensors(), tmp_path / "pytorch_model.bin")
    error = refused(ol.FormatError, two_layers(), tmp_path / "pytorch_model.bin")
    assert error.message == '"pytorch_model.bin" is a pickle by its name, and pickles are not read: reading one can run arbitrary code'
    error = refused(ol.MissingFileError, two_layers(), tmp_path)
    assert error.given == ("pytorch_model.bin is a pickle, which is never read: reading one can run arbitrary code",)
    (tmp_path / "pytorch_model.bin").rename(tmp_path / "model.safetensors")
    assert isinstance(refused(ol.OarlockError, two_layers(), tmp_path), ol.FormatError)


@pytest.mark.parametrize(
    "name",
    ["../secret.safetensors", "/etc/passwd", "a/b.safetensors", "..", "", ".hidden.safetensors", "a\\b.safetensors", "a\0.safetensors",
     "x.bin", "\u202e.safetensors", "a" * 200 + ".safetensors", "model.safetensors\n"],
)  # fmt: skip
def test_an_index_leads_out_of_its_folder_by_no_name(tmp_path, name):
    safetensors.torch.save_file(tensors(), tmp_path / "secret.safetensors")
    folder = write_shards(tmp_path / "sharded", tensors())
    index = {"weight_map": dict.fromkeys(OURS, name)}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    error = refused(ol.FormatError, two_layers(), folder)
    assert error.message.startswith('"model.safetensors.index.json" names the file ')


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"weight_map": []}', '{"weight_map": {"a": 1}}', '{"weight_map": {"a": "x.safetensors", "a": "y.safetensors"}}',
     "[" * 100_000, "{" * 50, "\xff"],
)  # fmt: skip
def test_an_index_that_is_none_is_refused(tmp_path, text):
    (tmp_path / "model.safetensors.index.json").write_bytes(text.encode("latin-1"))
    assert isinstance(refused(ol.OarlockError, two_layers(), tmp_path), ol.FormatError)


def test_an_index_is_held_to_limits(tmp_path):
    folder = write_shards(tmp_path / "sharded", tensors())
    path = folder / "model.safetensors.index.json"
    assert "header_bytes" in refused(ol.LimitError, two_layers(), path, limits=ol.Limits(header_bytes=20)).hint
    path.write_text(json.dumps({"weight_map": {f"t{number}": f"{number}.safetensors" for number in range(1025)}}))
    assert refused(ol.LimitError, two_layers(), path).message.endswith("names 1,025 files, but the limit is 1,024")


def test_an_index_that_says_what_is_not_so_is_refused(tmp_path):
    folder = write_shards(tmp_path / "sharded", tensors())
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    index["weight_map"]["first.w"] = index["weight_map"]["first.b"]
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    error = refused(ol.FormatError, two_layers(), folder)
    assert error.message == "\"model-00002-of-00002.safetensors\" lacks a tensor that the index lists in it: 'first.w'"
    (folder / "model-00002-of-00002.safetensors").unlink()
    refused(ol.MissingFileError, two_layers(), folder)


def test_an_untrusted_folder_has_no_links(tmp_path):
    folder = write_shards(tmp_path / "sharded", tensors())
    shard = folder / "model-00001-of-00002.safetensors"
    shard.rename(tmp_path / "elsewhere.safetensors")
    shard.symlink_to(tmp_path / "elsewhere.safetensors")
    assert same(ol.load_weights(two_layers(), folder).scope, tensors())  # as the cache of Hugging Face has them
    assert "symbolic link" in refused(ol.FormatError, two_layers(), folder, untrusted=True).message


def header(**entries: dict[str, object]) -> bytes:
    text = json.dumps(entries).encode()
    return len(text).to_bytes(8, "little") + text


GOOD = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    "data",
    [
        b"", b"1234567", b"\xff" * 8, b"\xff" * 7 + b"\x7f{}", header(a=GOOD), header(a=GOOD) + b"1234567", header(a=GOOD) + b"123456789",
        header(a=GOOD | {"shape": [3]}) + b"12345678", header(a=GOOD | {"shape": [2**62, 4]}) + b"12345678",
        header(a=GOOD | {"shape": [-2]}) + b"12345678", header(a=GOOD | {"shape": [True, 2]}) + b"12345678",
        header(a=GOOD | {"shape": 2}) + b"12345678", header(a=GOOD | {"data_offsets": [8, 0]}) + b"12345678",
        header(a=GOOD | {"data_offsets": [0]}) + b"12345678", header(a=GOOD | {"data_offsets": [0, 2**70]}) + b"12345678",
        header(a=GOOD, b=GOOD) + b"12345678", header(a=GOOD | {"data_offsets": [4, 12]}) + b"123456789012",
        header(a={"shape": [2], "data_offsets": [0, 8]}) + b"12345678", header(a=3) + b"12345678",  # type: ignore[arg-type]
        (2).to_bytes(8, "little") + b"[]", (2).to_bytes(8, "little") + b"\xff\xff",
        (len(b'{"a":1,"a":1}')).to_bytes(8, "little") + b'{"a":1,"a":1}',
    ],
)  # fmt: skip
def test_a_file_that_is_laid_out_otherwise_is_refused(tmp_path, data):
    (tmp_path / "model.safetensors").write_bytes(data)
    error = refused(ol.FormatError, two_layers(), tmp_path)
    assert error.message == '"model.safetensors" is not a valid safetensors file, or is truncated'
    assert len(str(error)) < 4096


def test_a_file_that_the_library_reads_is_read_alike(tmp_path):
    """Every prefix of a file is refused, as the library refuses it."""
    safetensors.torch.save_file(tensors(), tmp_path / "model.safetensors")
    whole = (tmp_path / "model.safetensors").read_bytes()
    for length in range(0, len(whole), 3):
        (tmp_path / "model.safetensors").write_bytes(whole[:length])
        refused(ol.FormatError, two_layers(), tmp_path)
        with pytest.raises(safetensors.SafetensorError):
            safetensors.torch.load(whole[:length])


def test_headers_and_ranks_are_held_to_limits(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(header(a=GOOD | {"shape": [1] * 17 + [2]}) + b"12345678")
    assert refused(ol.LimitError, two_layers(), path).message.endswith('tensor "a": 18 dimensions, but the limit is 16')
    safetensors.torch.save_file(tensors(), path)
    assert "header_bytes" in refused(ol.LimitError, two_layers(), path, limits=ol.Limits(header_bytes=16)).hint


def test_a_dtype_that_no_program_holds_stops_only_who_asks_for_it(tmp_path):
    held = tensors() | {"eight": torch.ones(2).to(torch.float8_e4m3fn)}
    safetensors.torch.save_file(held, tmp_path / "a.safetensors")
    assert ol.load_weights(two_layers(), tmp_path / "a.safetensors", strict=False).unexpected == ("eight",)
    error = refused(ol.DTypeError, two_layers(), tmp_path / "a.safetensors", names={"second.b": "eight"}, strict=False, cast=True)
    assert error.given == ('"second.b" is float32[2], but "eight" in "a.safetensors" is F8_E4M3[2]',)


def test_truth_values_are_0_and_1(tmp_path):
    (tmp_path / "a.safetensors").write_bytes(header(a={"dtype": "BOOL", "shape": [2], "data_offsets": [0, 2]}) + b"\1\2")
    with TensorFile.open(tmp_path / "a.safetensors") as opened, pytest.raises(ol.FormatError, match="other than 0 and 1"):
        opened.read("a")


def test_a_file_that_is_cut_while_it_is_read_is_an_error_of_ours(tmp_path, file):
    with TensorFile.open(file) as opened:
        file.write_bytes(file.read_bytes()[:-4])
        with pytest.raises(ol.ReadError, match="was truncated while it was read"):
            opened.read(list(opened.entries)[-1])


def test_a_folder_of_several_files_says_which(tmp_path):
    for name in ("a", "b"):
        safetensors.torch.save_file(tensors(), tmp_path / f"{name}.safetensors")
    assert refused(ol.MissingFileError, two_layers(), tmp_path).given == ("a.safetensors", "b.safetensors")
    refused(ol.MissingFileError, two_layers(), tmp_path / "none.safetensors")


@pytest.mark.parametrize("seed", range(4))
def test_spoilt_files_end_in_values_or_in_errors_of_ours(tmp_path, seed):
    """Bytes changed, cut and put in, of a shard and of the index."""
    draw, folder = random.Random(seed), write_shards(tmp_path / "sharded", tensors())
    paths = [folder / "model-00001-of-00002.safetensors", folder / "model.safetensors.index.json"]
    good = [path.read_bytes() for path in paths]
    loaded = 0
    for _ in range(150):
        for path, data in zip(paths, good, strict=True):
            path.write_bytes(data)
        at = draw.randrange(2)
        data = bytearray(good[at])
        for _ in range(draw.randint(1, 4)):
            place = draw.randrange(min(len(data), 300))
            match draw.randrange(4):
                case 0:
                    data[place] = draw.randrange(256)
                case 1:
                    del data[place : place + draw.randint(1, 20)]
                case 2:
                    data[place:place] = draw.choice([b"9", b"-", b"1e9", b'"', b"}", b"null", b"[", draw.randbytes(3)])
                case 3:
                    data[place] = ord(draw.choice("0123456789"))
        paths[at].write_bytes(data)
        scope = ol.init(two_layers(), ol.Scope())
        before = {name: scope[name].clone() for name in OURS}
        failed = None
        try:
            ol.load_weights(scope, folder)
        except ol.OarlockError as error:
            failed = error
        loaded += failed is None
        if failed is not None:
            assert len(str(failed)) <= 4096
            assert same(scope, before), "what is refused changes nothing"
    assert 0 < loaded < 150


def test_a_module_that_came_in_takes_weights_by_its_own_names(tmp_path):
    def net(seed: int) -> torch.nn.Module:
        torch.manual_seed(seed)
        return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))

    trained, x = net(1), torch.randn(5, 3)
    safetensors.torch.save_model(trained, str(tmp_path / "model.safetensors"))
    model = ol.from_torch(net(0), x, dynamic="n")
    assert ol.load_weights(model, tmp_path).loaded == ("0.weight", "0.bias", "2.weight", "2.bias")
    assert numpy.allclose(ol.infer(model, {"input": x.numpy()}), trained(x).detach().numpy(), *VALUES[torch.float32])
