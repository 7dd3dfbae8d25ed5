"""The process that writes the checkpoints of a run: what it outlives, what outlives it, and who waits for it."""

import contextlib
import errno
import json
import mmap
import os
import signal
import sys
import threading
import time
import warnings
from pathlib import Path

import failing_disk
import numpy
import pytest
import slow_disk
from classifiers import small_classifier, small_rows

import oarlock as ol
from oarlock.training import checkpoint_process, checkpoint_writing, folder_lock
from oarlock.training.checkpoint import find_checkpoints, find_latest, read_checkpoint
from oarlock.training.checkpoint_process import CheckpointWriter
from oarlock.training.folder_lock import is_running

pytestmark = pytest.mark.skipif(not checkpoint_process.CAN_START, reason="a thread writes here")
ROWS = small_rows(23)


def train(folder: Path, **options) -> ol.TrainingResult:
    """A run of 24 steps, six in an epoch, which saves every second one."""
    run = ol.training.Run(folder, save_every=2, keep=99)
    given = {"optimizer": ol.optimizer.Momentum(0.1), "epochs": 4, "batch_size": 4, "progress": False, "run": run}
    return ol.train(small_classifier().cost, ROWS, **given | options)


def values(result: ol.TrainingResult) -> list:
    return [numpy.asarray(result.parameters[var.name]).tolist() for var in result.program.persistables()]


@pytest.fixture
def started(monkeypatch) -> list:
    """The processes that were started."""
    found, start = [], CheckpointWriter._start

    def noted(self):
        start(self)
        found.append(self._process)

    monkeypatch.setattr(CheckpointWriter, "_start", noted)
    return found


def is_alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2][:3]
    except OSError:
        return False


def wait_until(holds, seconds: float = 20.0) -> bool:
    until = time.monotonic() + seconds
    while not holds() and time.monotonic() < until:
        time.sleep(0.005)
    return holds()


def test_a_run_starts_one_process_in_a_session_of_its_own_and_leaves_neither_it_nor_a_descriptor(started, tmp_path):
    train(tmp_path / "first")
    open_before, sessions = set(os.listdir("/proc/self/fd")), []
    train(tmp_path / "run", on_step=lambda step, _: sessions.append(os.getsid(started[1].pid)) if step == 7 else None)
    assert len(started) == 2
    assert sessions == [started[1].pid]  # so Ctrl-C, which a terminal sends to all of a session, is not for it
    assert [process.returncode for process in started] == [0, 0]
    assert set(os.listdir("/proc/self/fd")) == open_before
    assert list(find_checkpoints(tmp_path / "run/checkpoints")) == list(range(2, 25, 2))


def test_a_disk_that_is_full_for_the_process_is_warned_of_and_the_checkpoints_before_stay(started, tmp_path):
    resource = pytest.importorskip("resource")

    def on_step(step, _):
        if step == 8:
            resource.prlimit(started[0].pid, resource.RLIMIT_FSIZE, (500, resource.RLIM_INFINITY))
        if step == 15:
            resource.prlimit(started[0].pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        train(tmp_path / "run", on_step=on_step)
    expected = f'the checkpoint "{tmp_path / "run/checkpoints/step-000000010"}" cannot be written: {os.strerror(errno.EFBIG)}. '
    assert f"{expected}Training continues, and earlier checkpoints are kept" in [str(warning.message) for warning in caught]
    found = set(find_checkpoints(tmp_path / "run/checkpoints"))
    assert {2, 4, 18, 20, 22, 24} <= found
    assert not {10, 12} & found
    assert not list((tmp_path / "run/checkpoints").glob(".*"))
    assert len(started) == 1


def refuse(*_: object, **__: object) -> None:
    raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))


def test_where_there_is_no_memory_for_a_checkpoint_the_run_goes_on_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(CheckpointWriter, "reserve", refuse)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert train(tmp_path / "run", steps=2).steps == 2
    assert str(caught[0].message) == (
        f'the checkpoint of step 2 in "{tmp_path / "run/checkpoints"}" cannot be copied: {os.strerror(errno.ENOMEM)}. '
        "Training continues, and earlier checkpoints are kept"
    )


def test_an_interrupt_while_a_checkpoint_is_waited_for_ends_the_process_and_not_what_it_writes(started, tmp_path, monkeypatch):
    slow(monkeypatch, "rename", tmp_path / "gate")

    def on_step(step, _):
        if step == 6:  # which is saved, after the checkpoint of step 4
            threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
            threading.Timer(1.0, (tmp_path / "gate").touch).start()

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "run", on_step=on_step)
    assert started[0].returncode == 0
    assert max(find_checkpoints(tmp_path / "run/checkpoints")) in (4, 6, 7)
    assert not list((tmp_path / "run/checkpoints").glob(".*"))
    (tmp_path / "gate").touch()
    assert values(train(tmp_path / "run")) == values(train(tmp_path / "other"))


@pytest.mark.parametrize("how", ["executable", "program", "platform", "memory"])
def test_where_no_process_can_be_started_a_thread_writes(how, started, tmp_path, monkeypatch):
    if how == "executable":
        monkeypatch.setattr(sys, "executable", str(tmp_path / "nothing"))
    elif how == "program":
        monkeypatch.setattr(checkpoint_process, "PROGRAM", str(tmp_path / "nothing.py"))
    elif how == "memory":
        monkeypatch.setattr(os, "memfd_create", refuse)
    else:
        monkeypatch.setattr(checkpoint_process, "CAN_START", False)
    train(tmp_path / "run")
    assert list(find_checkpoints(tmp_path / "run/checkpoints")) == list(range(2, 25, 2))
    assert bool(started) == (how == "program")
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("oarlock checkpoint")]


def in_child(work) -> int:
    """The number of a child of `fork()` that does some work."""
    child = os.fork()
    if not child:
        try:
            work()
        finally:
            os._exit(0)
    return child


def test_a_killed_trainer_leaves_no_process_behind(tmp_path):
    def work():
        def on_step(step, _):
            if step == 8:
                Path(tmp_path / "pid").write_text(Path(f"/proc/self/task/{os.getpid()}/children").read_text())
                os.kill(os.getpid(), signal.SIGKILL)

        train(tmp_path / "run", on_step=on_step)

    os.waitpid(in_child(work), 0)
    pids = [int(pid) for pid in (tmp_path / "pid").read_text().split()]
    assert len(pids) == 1
    assert wait_until(lambda: not is_alive(pids[0]), 1.0)
    assert max(find_checkpoints(tmp_path / "run/checkpoints")) == 6
    assert values(train(tmp_path / "run")) == values(train(tmp_path / "other"))


def test_a_child_of_the_trainer_that_outlives_it_keeps_no_process_alive(tmp_path):
    def work():
        def on_step(step, _):
            if step == 8:
                Path(tmp_path / "pid").write_text(Path(f"/proc/self/task/{os.getpid()}/children").read_text())
                Path(tmp_path / "child").write_text(str(in_child(lambda: time.sleep(30))))
                os.kill(os.getpid(), signal.SIGKILL)

        train(tmp_path / "run", on_step=on_step)

    os.waitpid(in_child(work), 0)
    try:
        assert wait_until(lambda: not is_alive(int((tmp_path / "pid").read_text())), 2.0)
        assert is_alive(int((tmp_path / "child").read_text()))
    finally:
        os.kill(int((tmp_path / "child").read_text()), signal.SIGKILL)


def slow(monkeypatch, where: str, gate: Path) -> None:
    monkeypatch.setattr(checkpoint_process, "PROGRAM", slow_disk.__file__)
    monkeypatch.setenv(slow_disk.VARIABLE, json.dumps([checkpoint_writing.__file__, where, str(gate)]))


def killed_at(reached: Path, folder: Path) -> None:
    """A run that is killed when its process waits at a gate."""

    def work():
        train(folder, on_step=lambda step, _: wait_until(reached.exists) if step == 5 else None)

    child = in_child(work)
    assert wait_until(reached.exists)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_where_the_process_is_killed_the_run_goes_on_says_so_and_starts_another(started, tmp_path, monkeypatch):
    slow(monkeypatch, "rename", tmp_path / "gate")

    def on_step(step, _):
        if step == 5:  # in the middle of what it was asked for after the step before
            assert wait_until((tmp_path / "gate.reached").exists)
            started[0].kill()
        if step == 12:  # when it has perhaps nothing to do, and may be asked once more before it is gone
            started[1].kill()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = train(tmp_path / "run", on_step=on_step)
    (tmp_path / "gate").touch()
    folder = tmp_path / "run/checkpoints"
    message = (
        f'the checkpoint "{folder / "step-000000004"}" cannot be written: the process that writes it ended. '
        "Training continues, and earlier checkpoints are kept"
    )
    assert str(caught[0].message) == message
    assert result.steps == 24
    assert len(started) == 3
    assert set(range(2, 25, 2)) - set(find_checkpoints(folder)) <= {4, 10, 12}
    assert 4 not in find_checkpoints(folder)
    assert not list(folder.glob(".*"))
    assert values(train(tmp_path / "run")) == values(train(tmp_path / "other"))


def test_who_goes_on_with_a_run_waits_for_the_checkpoint_that_is_being_written(tmp_path, monkeypatch):
    gate, folder = tmp_path / "gate", tmp_path / "run"
    with monkeypatch.context() as patch:
        slow(patch, "rename", gate)
        killed_at(tmp_path / "gate.reached", folder)
    assert is_running(folder)
    assert find_latest(folder / "checkpoints")[0] == 2  # type: ignore[index]  whoever reads finds the one before
    begun = []
    threading.Timer(0.3, gate.touch).start()
    result = train(folder, on_step=lambda step, _: begun.append(step))
    assert begun[0] == 5  # after the checkpoint of step 4, which was not there when this began
    assert values(result) == values(train(tmp_path / "other"))
    assert not list((folder / "checkpoints").glob(".*"))


def test_who_waits_too_long_for_a_process_is_told_that_the_folder_is_taken(tmp_path, monkeypatch):
    gate, folder = tmp_path / "gate", tmp_path / "run"
    with monkeypatch.context() as patch:
        slow(patch, "rename", gate)
        killed_at(tmp_path / "gate.reached", folder)
    monkeypatch.setattr(folder_lock, "_PATIENCE", 0.1)
    with pytest.raises(ol.WriteError) as raised:
        train(folder)
    assert raised.value.message == f'"{folder}" is in use by a run of another process'
    gate.touch()
    assert wait_until(lambda: not is_running(folder))


def test_a_process_that_comes_to_its_lock_after_its_trainer_has_gone_writes_nothing(tmp_path, monkeypatch):
    gate, folder = tmp_path / "gate", tmp_path / "run"
    with monkeypatch.context() as patch:
        slow(patch, "lock", gate)

        def work():
            train(folder, on_step=lambda step, _: time.sleep(30) if step == 3 else None)

        child = in_child(work)
        assert wait_until((tmp_path / "gate.reached").exists)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    result = train(folder, steps=1)  # with the checkpoint of step 1 alone
    before = sorted(path.name for path in (folder / "checkpoints").iterdir())
    gate.touch()
    time.sleep(0.3)
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == before == ["step-000000001"]
    assert result.steps == 1


def test_a_child_of_fork_neither_writes_to_the_memory_of_its_parent_nor_speaks_to_its_process(started, tmp_path):
    def on_step(step, _):
        if step == 7:
            child = in_child(lambda: train_in_child(step))
            assert os.waitpid(child, 0)[1] == 0

    def train_in_child(step):
        writer, memory = held[0], held[0]._memory
        before = bytes(memory)
        assert writer.wait() is None
        assert writer.reserve(10, spare=0) is not memory
        writer.close()
        assert bytes(memory) == before
        train(tmp_path / "child")

    held, begin = [], CheckpointWriter.begin

    def noted(self, *arguments):
        held.append(self)
        begin(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CheckpointWriter, "begin", noted)
        train(tmp_path / "run", on_step=on_step)
    assert len(started) == 1  # here
    for name in ("run", "child"):
        assert list(find_checkpoints(tmp_path / name / "checkpoints")) == list(range(2, 25, 2))


def test_a_history_that_grows_is_written_whole(tmp_path):
    made, rows = small_classifier(), small_rows(4)
    ol.train(made.cost, rows, batch_size=4, epochs=400, run=ol.training.Run(tmp_path / "run", keep=1), progress=False, steps=400)
    step, state = find_latest(tmp_path / "run/checkpoints")  # type: ignore[misc]
    assert step == 400
    assert len(state["history"]) == 400


@pytest.mark.skipif(checkpoint_process.CAN_START and len(os.sched_getaffinity(0)) < 2, reason="there is one processor")
def test_who_writes_stays_off_the_processor_of_who_trains(tmp_path, started):
    """The thread that trains is made to stay on one after some checkpoints, and on another after some more; the main one, elsewhere."""
    before, found = os.sched_getaffinity(0), []
    one, other, *_ = sorted(before)

    def on_step(step, _):
        if step in (5, 11):
            here, elsewhere = (one, other) if step == 5 else (other, one)
            os.sched_setaffinity(0, {here})
            os.sched_setaffinity(os.getpid(), {elsewhere})
        if step in (10, 16):
            found.append(os.sched_getaffinity(started[0].pid))

    trains = threading.Thread(target=lambda: train(tmp_path, on_step=on_step))
    try:
        trains.start()
        trains.join()
    finally:
        os.sched_setaffinity(0, before)
    assert found == [before - {one}, before - {other}]


@pytest.fixture
def checkpoints(tmp_path) -> "Checkpoints":
    file = os.open(tmp_path / "lease", os.O_WRONLY | os.O_CREAT)
    try:
        checkpoint_writing._is_ours_alone(file)
    except OSError:
        pytest.skip("the system does not tell whether a file is open elsewhere")
    finally:
        os.close(file)
        (tmp_path / "lease").unlink()
    return Checkpoints(tmp_path)


class Checkpoints:
    """Checkpoints of one file, of which two are kept, written as the process does."""

    def __init__(self, folder: Path):
        self.folder, self.spare = folder, checkpoint_writing.Spare()

    def ask(self, step: int, content: bytes) -> tuple[dict, int]:
        request = {"folder": str(self.folder), "step": step, "keep": 2, "best": None, "parts": [], "to_come": 1.0}
        state = json.dumps({"steps": step}).encode()
        request |= {"files": [["model", 0, len(content), None]], "state": [len(content), len(state)]}
        return checkpoint_writing.answer_request(memoryview(bytearray(content + state)), request, self.spare), step

    def write(self, step: int, content: bytes) -> Path:
        answer, _ = self.ask(step, content)
        assert list(answer) == ["taken"]
        found = find_checkpoints(self.folder)
        assert len(found) == min(step, 2)
        assert max(found) == step
        assert read_checkpoint(found[step]) == {"steps": step}
        assert sorted(os.listdir(found[step])) == ["manifest.json", "model"]
        assert (found[step] / "model").read_bytes() == content
        return found[step]

    def unfinished(self) -> list[Path]:
        return list(self.folder.glob(".*"))


def test_a_checkpoint_is_written_over_the_files_of_one_that_is_wanted_no_more(checkpoints):
    contents = [b"first", b"the second, which is longer", b"third", b"the fourth, which is longer than all", b""]
    files = []
    for step, content in enumerate(contents, 1):
        files.append(os.open(checkpoints.write(step, content) / "model", os.O_PATH))  # not open for reading
        assert len(checkpoints.unfinished()) == (step > 2)
    assert all(os.path.samestat(os.fstat(files[step]), os.fstat(files[step - 3])) for step in (3, 4))
    assert [os.fstat(file).st_nlink for file in files] == [1] * 5
    checkpoints.spare.remove()
    assert checkpoints.unfinished() == []
    assert [os.fstat(file).st_nlink for file in files] == [1, 1, 0, 1, 1]
    for file in files:
        os.close(file)


@pytest.mark.parametrize(
    "kept",
    ["open", "mapped", "linked", "a link to it", "a pipe", "another file beside it", "no file", "the folder elsewhere"],
)
def test_what_somebody_else_has_of_a_checkpoint_is_not_written_over(kept, checkpoints, tmp_path):
    file, other = checkpoints.write(1, b"first") / "model", tmp_path / "other"
    with contextlib.ExitStack() as stack:
        if kept in ("open", "mapped"):
            opened = stack.enter_context(open(file, "rb"))
            mapped = mmap.mmap(opened.fileno(), 0, prot=mmap.PROT_READ)
            stack.callback(mapped.close)
            if kept == "mapped":
                opened.close()
        elif kept == "linked":
            os.link(file, other)
        elif kept == "another file beside it":
            (file.parent / "notes").write_text("mine")
        elif kept == "the folder elsewhere":
            file.parent.rename(other)
            file.parent.symlink_to(other)
        else:
            other.write_bytes(b"first")
            file.unlink()
            if kept == "a link to it":
                file.symlink_to(other)
            elif kept == "a pipe":
                os.mkfifo(file)
        for step in (2, 3, 4):
            checkpoints.write(step, b"later")
        if kept in ("open", "mapped"):
            assert mapped[:] == b"first"
        elif kept == "the folder elsewhere":
            assert (other / "model").read_bytes() == b"first"
            assert not any(path.is_symlink() for path in tmp_path.iterdir())
        elif kept != "another file beside it":
            assert other.read_bytes() == b"first"


@pytest.mark.parametrize(
    ("operation", "count"), [("open", 4), ("write", 2), ("ftruncate", 1), ("fstat", 4), ("fdatasync", 2), ("fsync", 1), ("rename", 2)]
)
def test_a_disk_that_fails_while_one_is_written_over_leaves_the_others(operation, count, checkpoints, monkeypatch):
    steps = iter(range(1, 99))
    for number in range(1, count + 1):
        last = [checkpoints.write(next(steps), b"as before") for _ in range(3)][-1]
        with monkeypatch.context() as patch:
            failing_disk.fail_in(checkpoint_writing, operation, number, errno.ENOSPC, patch.setattr)
            answer, step = checkpoints.ask(next(steps), b"new")
        found = find_checkpoints(checkpoints.folder)
        assert len(found) >= 2
        assert last in found.values()
        assert step in found or answer["reason"] == os.strerror(errno.ENOSPC)
        for path in found.values():
            read_checkpoint(path)
            assert (path / "model").read_bytes() == (b"new" if path.name == f"step-{step:09d}" else b"as before")
        checkpoints.spare.remove()
        assert checkpoints.unfinished() == []


def test_a_checkpoint_under_the_name_of_another_step_is_not_whole(checkpoints):
    path = checkpoints.write(1, b"first")
    path.rename(path.with_name("step-000000007"))
    with pytest.raises(ol.FormatError, match='step-000000007" is damaged: its manifest belongs to step 1'):
        read_checkpoint(path.with_name("step-000000007"))


def test_a_run_whose_folder_has_a_long_name_in_letters_of_many_bytes_is_saved(tmp_path):
    folder = tmp_path.joinpath(*["ö" * 100] * 10)  # each letter is six in a request
    train(folder)
    assert find_latest(folder / "checkpoints") is not None
