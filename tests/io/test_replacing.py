"""How a file is put in place of another: its mode, links, what killed saves leave, refusals of the system, interrupts."""

import errno
import os
import random
import resource
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest
import torch
from classifiers import small_classifier

import oarlock as ol
from oarlock.io import atomic_write
from oarlock.io.atomic_write import write_file
from oarlock.io.container import read_container, write_container

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="modes, links and locks as POSIX has them")

HINT = "\n  Try: free disk space, check the permissions, or use another path    (oarlock explain WriteError)"


def refusal(kind: type[ol.OarlockError], path: str | os.PathLike[str], data: bytes = b"new") -> str:
    with pytest.raises(kind) as raised:
        write_file(path, data)
    assert type(raised.value) is kind
    return str(raised.value)


@pytest.fixture
def umask():
    """Sets the umask for a test."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


# Modes, links, and what is no file


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664), (0o000, 0o666)])
def test_a_new_file_has_the_mode_that_the_umask_leaves(mask, mode, umask, tmp_path):
    umask(mask)
    write_file(tmp_path / "new", b"new")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == mode


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o755])
@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_a_file_that_replaces_another_has_its_mode_and_nobody_else_may_read_it_meanwhile(mode, mask, umask, tmp_path, monkeypatch):
    path, modes = tmp_path / "file", []
    path.write_bytes(b"old")
    path.chmod(mode)
    umask(mask)

    def hold(file) -> bool:
        modes.append(stat.S_IMODE(os.fstat(file.fileno()).st_mode))
        return True

    monkeypatch.setattr(atomic_write, "_hold", hold)
    write_file(path, b"new")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", mode)
    assert len(modes) == 1
    assert modes[0] & ~mode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone gives files away")
def test_a_file_stays_its_owners(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    os.chown(path, 1234, 2345)
    write_file(path, b"new")
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 2345)


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to(Path("folder") / "file")
    (tmp_path / "second").symlink_to("link")
    write_file(tmp_path / "second", b"new")
    assert (tmp_path / "second").is_symlink()
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "folder" / "file").read_bytes() == b"new"
    (tmp_path / "dangling").symlink_to(tmp_path / "folder" / "other")
    write_file(tmp_path / "dangling", b"other")
    assert (tmp_path / "folder" / "other").read_bytes() == b"other"
    (tmp_path / "round").symlink_to("round")
    assert refusal(ol.WriteError, tmp_path / "round").startswith(f'"{tmp_path}/round" cannot be written: Too many levels of symbolic links')


def test_another_name_of_the_same_file_keeps_the_old_content(tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "name").hardlink_to(tmp_path / "file")
    write_file(tmp_path / "file", b"new")
    assert ((tmp_path / "file").read_bytes(), (tmp_path / "name").read_bytes()) == (b"new", b"old")


def test_a_pipe_a_device_and_a_folder_are_no_files_to_write(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    says = '"{}" is a pipe or a device; open it yourself, and pass the open file'
    assert refusal(ol.ArgumentError, tmp_path / "pipe") == says.format(tmp_path / "pipe")
    assert refusal(ol.ArgumentError, tmp_path / "link") == says.format(tmp_path / "link")
    assert refusal(ol.ArgumentError, "/dev/null") == says.format("/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert refusal(ol.ArgumentError, tmp_path) == f'"{tmp_path}" is a folder, not a file'
    assert refusal(ol.MissingFileError, tmp_path / "none" / "file") == f'there is no folder "{tmp_path}/none"'
    assert refusal(ol.MissingFileError, tmp_path / "pipe" / "file").startswith("there is no folder")
    assert sorted(os.listdir(tmp_path)) == ["link", "pipe"]


# What the system refuses


def failing(call: str, number: int) -> Callable[..., object]:
    def fail(*_: object, **__: object) -> object:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EIO])
@pytest.mark.parametrize("call", ["fsync", "replace", "scandir"])
def test_what_the_system_refuses_is_ours_and_names_the_path(call, number, tmp_path, monkeypatch):
    path = tmp_path / "model"
    path.write_bytes(b"old")
    with monkeypatch.context() as patched:
        patched.setattr(os, call, failing(call, number))
        assert refusal(ol.WriteError, path) == f'"{path}" cannot be written: {os.strerror(number)}{HINT}'
    assert (path.read_bytes(), os.listdir(tmp_path)) == (b"old", ["model"])


def test_a_name_that_no_file_can_have_is_ours(tmp_path):
    path = tmp_path / ("x" * 300)
    assert refusal(ol.WriteError, path) == f'"{path}" cannot be written: File name too long{HINT}'
    assert refusal(ol.WriteError, f"{tmp_path}/a\0b") == f'"{tmp_path}/a\\x00b" cannot be written: embedded null byte{HINT}'
    write_file(tmp_path / ("x" * 255), b"as long as a name may be")
    assert os.listdir(tmp_path) == ["x" * 255]


def test_a_read_only_file_stays(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o400)
    if os.geteuid() == 0:  # who may write everything
        monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    assert refusal(ol.WriteError, path) == f'"{path}" cannot be written: it is read-only{HINT}'
    assert path.read_bytes() == b"old"


@pytest.fixture
def full(tmp_path: Path):
    """A file system of 64 KiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True, check=False).returncode:
        pytest.skip("this process may not mount a file system")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_is_an_error_of_ours(full):
    (full / "model").write_bytes(b"old")
    assert refusal(ol.WriteError, full / "model", bytes(2**20)) == f'"{full}/model" cannot be written: No space left on device{HINT}'
    assert os.listdir(full) == ["model"]
    assert (full / "model").read_bytes() == b"old"


def test_a_file_larger_than_files_may_be_is_an_error_of_ours(tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, before[1]))
    try:
        said = refusal(ol.WriteError, tmp_path / "model", bytes(2_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert said == f'"{tmp_path}/model" cannot be written: File too large{HINT}'
    assert os.listdir(tmp_path) == []


def test_the_errors_number_is_its_cause(tmp_path):
    with pytest.raises(OSError) as raised:  # noqa: PT011
        write_file(tmp_path / ("x" * 300), b"")
    assert isinstance(raised.value.__cause__, OSError)
    assert raised.value.__cause__.errno == errno.ENAMETOOLONG


# What killed saves leave

KILLED = """
import os, sys
from oarlock.io import atomic_write
os.fsync = lambda _: (print("writing", flush=True), sys.stdin.read())
atomic_write.write_file(sys.argv[1], b"new")
"""


def saving(path: Path) -> subprocess.Popen:
    """A process that stands still in the middle of a save."""
    child = subprocess.Popen([sys.executable, "-c", KILLED, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"writing\n"
    return child


def test_what_a_killed_save_left_is_removed_by_the_next_and_what_is_being_written_is_not(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(b"old")
    foreign = {".oarlock-notes", "other.tmp", ".model.tmp", ".oarlock-link.tmp", ".oarlock-folder.tmp"}
    for name in sorted(foreign)[2:]:
        (tmp_path / name).write_bytes(b"foreign")
    (tmp_path / ".oarlock-link.tmp").unlink()
    (tmp_path / ".oarlock-link.tmp").symlink_to("model")
    (tmp_path / ".oarlock-folder.tmp").mkdir()
    killed, living = saving(path), saving(path)
    left = set(os.listdir(tmp_path)) - foreign - {"model"}
    assert len(left) == 2
    killed.kill()
    killed.communicate()
    assert path.read_bytes() == b"old"
    write_file(tmp_path / "another", b"new")
    left = set(os.listdir(tmp_path)) - foreign - {"model", "another"}
    assert len(left) == 1, "the save that goes on has its file"
    living.communicate(b"")
    assert living.returncode == 0
    assert path.read_bytes() == b"new"
    assert set(os.listdir(tmp_path)) >= {"another", "model", ".oarlock-link.tmp", ".oarlock-folder.tmp"}
    assert not set(os.listdir(tmp_path)) & left


def test_a_new_file_that_was_taken_for_one_left_behind_is_written_again(tmp_path, monkeypatch):
    hold, held = atomic_write._hold, []

    def removed_before(file) -> bool:
        if not held:
            atomic_write._remove_left_behind(tmp_path)
        held.append(hold(file))
        return held[-1]

    monkeypatch.setattr(atomic_write, "_hold", removed_before)
    write_file(tmp_path / "file", b"new")
    assert held == [False, True]
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"new")]


def test_where_nothing_can_be_locked_files_are_written_and_none_is_removed(tmp_path, monkeypatch):
    (tmp_path / ".oarlock-0.tmp").write_bytes(b"perhaps of another machine")
    monkeypatch.setattr(atomic_write.fcntl, "flock", failing("flock", errno.ENOLCK))
    write_file(tmp_path / "file", b"new")
    assert sorted(os.listdir(tmp_path)) == [".oarlock-0.tmp", "file"]


def test_many_who_save_at_once_all_do(tmp_path):
    def save(number: int) -> None:
        for turn in range(40):
            write_file(tmp_path / f"file{(number + turn) % 3}", bytes([number]) * 1_000)

    failed: list[object] = []
    threads = [threading.Thread(target=lambda number=number: failed.extend(_raised(save, number))) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert sorted(os.listdir(tmp_path)) == ["file0", "file1", "file2"]
    assert all(len(set(path.read_bytes())) == 1 for path in tmp_path.iterdir())


def _raised(call: Callable[[int], None], number: int) -> list[Exception]:
    try:
        call(number)
    except Exception as error:
        return [error]
    return []


# Interrupts


@pytest.mark.parametrize("call", ["fsync", "replace", "scandir", "stat"])
def test_an_interrupt_inside_a_save_stays_an_interrupt_and_leaves_nothing(call, tmp_path, monkeypatch):
    small = small_classifier()
    path, scope = tmp_path / "model", ol.init(small.program, ol.Scope())
    ol.save_model(small.predict, scope, path)
    before = path.read_bytes()
    scope["fc_0.w" if "fc_0.w" in scope else next(iter(scope))] += 1

    def interrupt(*_: object, **__: object) -> object:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, call, interrupt)
        with pytest.raises(KeyboardInterrupt):
            ol.save_model(small.predict, scope, path)
    assert os.listdir(tmp_path) == ["model"]
    assert path.read_bytes() == before


def test_interrupts_anywhere_in_a_save_leave_the_old_file_or_the_new_one_and_nothing_else(tmp_path):
    """At each line of the module in turn, by a trace function: a signal comes between two lines, too."""
    path, descriptors = tmp_path / "model", sorted(os.listdir("/proc/self/fd"))
    met: set[int] = set()
    while True:
        path.write_bytes(b"old")
        fresh: list[int] = []

        def trace(frame, event, argument, fresh=fresh):
            if frame.f_code.co_filename != atomic_write.__file__:
                return None
            if event == "line" and frame.f_lineno not in met and not fresh and frame.f_code.co_name != "write_file":
                fresh.append(frame.f_lineno)
                met.add(frame.f_lineno)
                raise KeyboardInterrupt
            return trace

        sys.settrace(trace)
        try:
            write_file(path, b"new")
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        left = os.listdir(tmp_path)
        assert left == ["model"], f"interrupted at line {fresh}: {left}"
        assert path.read_bytes() in (b"old", b"new")
        if not fresh:
            break
    assert len(met) > 15
    assert sorted(os.listdir("/proc/self/fd")) == descriptors


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a file that an interrupt leaves is closed by its object
def test_signals_at_random_moments_of_saves_leave_one_whole_file(tmp_path):
    draws, path, data = random.Random(0), tmp_path / "model", [bytes([number]) * 300_000 for number in (1, 2)]
    write_file(path, data[0])
    interrupted = 0
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for turn in range(60):
            try:
                signal.setitimer(signal.ITIMER_REAL, draws.uniform(1e-5, 2e-3))
                write_file(path, data[turn % 2])
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                interrupted += 1
            assert path.read_bytes() in data
    finally:
        signal.signal(signal.SIGALRM, before)
    write_file(path, data[0])
    assert os.listdir(tmp_path) == ["model"]
    assert interrupted > 10


# What is saved


def test_two_names_of_one_memory_are_saved_as_two_values(tmp_path):
    shared = torch.arange(6.0)
    tensors = {"a": shared, "b": shared, "part": shared[2:4], "turned": shared.view(2, 3).T}
    write_container(tmp_path / "file", b"program", tensors)
    _, found = read_container(tmp_path / "file")
    assert {name: value.tolist() for name, value in found.items()} == {name: value.tolist() for name, value in tensors.items()}
    assert len({value.untyped_storage().data_ptr() for value in found.values()}) == 4


def test_a_scope_whose_parameters_are_one_array_is_saved(tmp_path):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2])
        predict = ol.layer.fc(ol.layer.fc(x, 2, bias=False, name="one"), 2, bias=False, name="two")
    weight = torch.eye(2) * 3
    ol.save_model(predict, {"one.w": weight, "two.w": weight}, tmp_path / "model")
    assert (ol.infer(ol.load_model(tmp_path / "model"), {"x": numpy.ones((1, 2), "float32")}) == 9).all()
    assert program is predict.block.program
