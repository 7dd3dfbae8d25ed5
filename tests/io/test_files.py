"""Which files are opened, and how: a stranger's file is a regular file with one name, and no link."""

import errno
import os
import resource
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from classifiers import small_classifier

import oarlock as ol
from oarlock import inference
from oarlock.io import container, files
from oarlock.io.files import read_file

LOADS = {"load_model": ol.load_model, "inference": inference.load_model}
COPY = "copy the file, or load it without untrusted if it is yours    (oarlock explain FormatError)"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    small = small_classifier()
    ol.save_model(small.predict, ol.init(small.program, ol.Scope()), tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


@pytest.fixture
def descriptors():
    """Every descriptor that a test opens is closed again."""
    before = os.listdir("/proc/self/fd")
    yield
    assert os.listdir("/proc/self/fd") == before


def refusal(path: Path | str, load: Callable[..., object], *, untrusted: bool) -> str:
    with pytest.raises((ol.FormatError, ol.MissingFileError, ol.ReadError)) as raised:
        load(path, untrusted=untrusted)
    return f"{type(raised.value).__name__}: {raised.value}"


@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
def test_a_strangers_file_is_no_link(load, model, tmp_path, descriptors):
    symbolic, hard, dangling = (tmp_path / name for name in ("symbolic", "hard", "dangling"))
    symbolic.symlink_to(model)
    dangling.symlink_to(tmp_path / "none")
    says = 'FormatError: "{}" is {}, which is not allowed for an untrusted file\n  Try: ' + COPY
    load(model, untrusted=True)
    assert refusal(symbolic, load, untrusted=True) == says.format("symbolic", "a symbolic link")
    assert refusal(dangling, load, untrusted=True) == says.format("dangling", "a symbolic link")
    hard.hardlink_to(model)
    assert refusal(hard, load, untrusted=True) == says.format("hard", "one of 2 names of the same file")
    assert refusal(model, load, untrusted=True) == says.format("model.safetensors", "one of 2 names of the same file")


@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
def test_a_file_of_ones_own_may_be_a_link(load, model, tmp_path, descriptors):
    (tmp_path / "symbolic").symlink_to(model)
    (tmp_path / "hard").hardlink_to(model)
    for name in ("symbolic", "hard"):
        assert load(tmp_path / name).program.to_bytes() == load(model).program.to_bytes()


def test_the_folder_of_a_strangers_file_may_be_reached_by_a_link(model, tmp_path, monkeypatch):
    (tmp_path / "folder").symlink_to(tmp_path)
    ol.load_model(tmp_path / "folder" / "model.safetensors", untrusted=True)
    monkeypatch.chdir(tmp_path)
    ol.load_model("model.safetensors", untrusted=True)


@pytest.mark.parametrize("untrusted", [True, False])
def test_what_is_no_regular_file_is_refused_at_once(untrusted, tmp_path, descriptors):
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
    for path, message in {
        tmp_path / "pipe": f'FormatError: "{tmp_path}/pipe" is a pipe or a device, not a file',
        "/dev/null": 'FormatError: "/dev/null" is a pipe or a device, not a file',
        "/dev/zero": 'FormatError: "/dev/zero" is a pipe or a device, not a file',
        tmp_path: f'FormatError: "{tmp_path}" is a folder, not a file',
        "/": 'FormatError: "/" is a folder, not a file',
        ".": 'FormatError: "." is a folder, not a file',
        "./..": 'FormatError: "./.." is a folder, not a file',
        tmp_path / "none": f'MissingFileError: there is no file "{tmp_path}/none"',
        tmp_path / "none" / "model": f'MissingFileError: there is no file "{tmp_path}/none/model"',
        tmp_path / "pipe" / "model": f'MissingFileError: there is no file "{tmp_path}/pipe/model"',
        tmp_path / "socket": f'ReadError: "{tmp_path}/socket" cannot be opened: No such device or address',
        "a\0b": 'ReadError: "a\\x00b" cannot be opened: embedded null byte',
        "a" * 300: f'ReadError: "{"a" * 300}" cannot be opened: File name too long',
    }.items():
        assert refusal(path, ol.load_model, untrusted=untrusted) == message


@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
@pytest.mark.parametrize("untrusted", [True, False])
def test_a_file_that_the_system_does_not_let_be_read_is_not_called_missing(untrusted, load, model, monkeypatch):
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    load(model, untrusted=untrusted)  # which imports what it needs
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
    try:
        with pytest.raises(ol.ReadError) as raised:
            load(model, untrusted=untrusted)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert str(raised.value) == (
        f'"{model}" cannot be opened: Too many open files\n'
        "  Try: close open files, or allow more with ulimit -n    (oarlock explain ReadError)"
    )
    assert isinstance(raised.value, OSError)
    assert not isinstance(raised.value, FileNotFoundError)
    assert raised.value.__cause__.errno == errno.EMFILE  # type: ignore[union-attr]

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    for reader in (files, container):
        monkeypatch.setattr(reader, "open", refuse, raising=False)
    with pytest.raises(ol.ReadError) as raised:
        load(model, untrusted=untrusted)
    assert str(raised.value) == f'"{model}" cannot be read: Input/output error'


@pytest.mark.parametrize("untrusted", [True, False])
def test_a_file_is_read_through_the_descriptor_that_was_looked_at(untrusted, tmp_path, monkeypatch):
    """Another file that is put in its place meanwhile is not read, nor what is written behind the end that was seen."""
    path, look = tmp_path / "file", os.fstat
    path.write_bytes(b"first")

    def swap(descriptor: int) -> os.stat_result:
        status = look(descriptor)
        with path.open("ab") as file:
            file.write(b" and more")
        (tmp_path / "other").write_bytes(b"other")
        os.replace(tmp_path / "other", path)
        return status

    monkeypatch.setattr(os, "fstat", swap)
    data = read_file(path, largest=5, limit="file_bytes", untrusted=untrusted)
    monkeypatch.undo()
    assert (data, path.read_bytes()) == (b"first", b"other")


def test_a_file_is_not_handed_to_other_processes(model, monkeypatch):
    flags = []
    opened = os.open

    def open_(path, how, *arguments, **keywords):
        flags.append(how)
        return opened(path, how, *arguments, **keywords)

    monkeypatch.setattr(os, "open", open_)
    monkeypatch.setattr(os, "supports_dir_fd", {*os.supports_dir_fd, open_})
    ol.load_model(model, untrusted=True)
    assert len(flags) == 2
    assert all(how & os.O_CLOEXEC for how in flags)
    assert flags[0] & os.O_DIRECTORY
    assert flags[1] & os.O_NOFOLLOW
    assert flags[1] & os.O_NONBLOCK


def test_a_file_larger_than_the_limit_is_not_read(model):
    with pytest.raises(ol.LimitError) as raised:
        ol.load_model(model, limits=ol.Limits(file_bytes=100), untrusted=True)
    size = model.stat().st_size
    assert str(raised.value) == (
        f'"model.safetensors" has {size:,} bytes, but the limit is 100\n'
        "  Try: limits=Limits(file_bytes=...)    (oarlock explain LimitError)"
    )


def test_a_system_that_cannot_tell_links_opens_no_strangers_file(model, monkeypatch):
    monkeypatch.setattr(os, "supports_dir_fd", set())
    with pytest.raises(ol.ArgumentError) as raised:
        ol.load_model(model, untrusted=True)
    assert str(raised.value) == (
        "this system cannot open an untrusted file: it has no O_NOFOLLOW\n"
        "  Try: if you trust the file, open it without untrusted    (oarlock explain ArgumentError)"
    )
    ol.load_model(model)


def test_what_a_strangers_model_runs_is_counted(model, tmp_path):
    assert ol.load_model(model).limits is None
    for loaded in (ol.load_model(model, untrusted=True), ol.load_model("predict", model, untrusted=True)):
        assert loaded.executor.limits == loaded.limits == ol.RunLimits()
