"""The writing of checkpoints: their files, each to the disk, then a manifest, then a folder that gets its name.

It imports the standard library alone: a process that only writes checkpoints runs this file (`checkpoint_process.py`), and is there in a
few hundredths of a second. A thread beside the training calls the same functions where no process can be started.
"""

import contextlib
import errno
import hashlib
import io
import json
import mmap
import os
import re
import select
import shutil
import signal
import stat
import struct
import sys
import time
from collections.abc import Collection, Mapping
from typing import Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

__all__ = [
    "ANSWER",
    "LARGEST",
    "LOCKED_BY_TRAINER",
    "LOCKED_BY_WRITER",
    "MANIFEST",
    "MESSAGE",
    "NAME",
    "PARTS",
    "READY",
    "TO_COME",
    "UNFINISHED",
    "PartMissingError",
    "Spare",
    "find_checkpoints",
    "fulfil",
    "remove_checkpoint",
    "write_checkpoint",
    "write_part",
]

MANIFEST = "manifest.json"
LOCKED_BY_TRAINER, LOCKED_BY_WRITER = 0, 1  # bytes of the lock of a folder
MESSAGE = struct.Struct("<QQQ")  # the bytes of the memory, where the request begins in it, and its bytes
ANSWER = struct.Struct("<QQ")  # when the writing began and ended, in nanoseconds; a fault, as JSON, follows where there was one
LARGEST = 2**12  # bytes of an answer, in which a letter of a reason takes six or less
_REASON = 500  # letters
READY = b"ready"  # the first thing that a process says, once it has the lock

NAME = re.compile(r"step-(\d{1,18})")
UNFINISHED = ".unfinished-"
PARTS = f"{UNFINISHED}parts-"
_ABOUT = ".manifest"  # after the name of a part, whose entry it holds
TO_COME = 20.0  # seconds for the parts of other workers, once all else is written: less than an exchange waits for a worker
_LOOKS = 500  # milliseconds between two looks whether the trainer lives: a child of it may hold the channel open


class PartMissingError(Exception):
    """The part of a checkpoint, by its name, that another worker was to write, and did not."""


class Spare:
    """The folder of a checkpoint that is wanted no more, over whose files the next one is written: the disk has room for it already.

    To make files and to remove others costs the disk more than what is in them, and a run trains beside that. Only files are written over
    that have no other name and are open nowhere else on this machine. So there are spares where the system tells that, which is Linux. Who
    has the folder itself open, and opens a file in it later, finds another step, which the manifest says.
    """

    def __init__(self) -> None:
        self._path = ""

    def put(self, path: str) -> None:
        """Take a checkpoint, of which nobody finds half then, and remove the one that was here. What the system refuses to move stays."""
        self.remove()
        with contextlib.suppress(OSError):
            self._path = _take_away(path)

    def take(self, names: Collection[str]) -> tuple[str, dict[str, io.BufferedWriter]]:
        """The folder, and its files of these names, open; an empty path where there is none, or a file of it is not ours alone."""
        path, files = self._path, {}
        try:
            if path and not os.path.islink(path) and set(os.listdir(path)) == set(names):
                for name in names:
                    files[name] = open(os.open(f"{path}{os.sep}{name}", os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "wb")  # noqa: SIM115
                if all(_is_ours_alone(file.fileno()) for file in files.values()):
                    self._path = ""
                    return path, files
        except OSError:
            pass
        for file in files.values():
            file.close()
        self.remove()
        return "", {}

    def remove(self) -> None:
        """Remove what is here."""
        path, self._path = self._path, ""
        if path:
            _remove_folder(path)


def _is_ours_alone(file: int) -> bool:
    """Whether a file has one name, and nobody else has it open. Raises OSError where the system does not tell."""
    about = os.fstat(file)
    if not stat.S_ISREG(about.st_mode) or about.st_nlink != 1 or fcntl is None or not hasattr(fcntl, "F_SETLEASE"):
        return False
    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)  # fcntl(2): "placed on a file only if there are no other open file descriptors"
    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return True


def fulfil(memory: memoryview, request: Mapping[str, Any], spare: Spare | None = None) -> dict[str, Any]:
    """Write the checkpoint that a request describes, and keep the newest: when that was, in nanoseconds, under `taken`, and the fault, if
    there is one, under `reason` or `missing`.

    The files lie in `memory`. One that says a digest of what it holds is given that first: a row of texts, each with a place in the file.
    What is not kept becomes the `spare`.
    """
    started, fault = time.perf_counter_ns(), _fault(memory, request, spare)
    return fault | {"taken": (started, time.perf_counter_ns())}


def _fault(memory: memoryview, request: Mapping[str, Any], spare: Spare | None) -> dict[str, str]:
    try:
        folder, step = request["folder"], request["step"]
        files = {name: _sealed(memory[begin : begin + size], seal) for name, begin, size, seal in request["files"]}
        begin, size = request["state"]
        found = find_checkpoints(folder)
        if step not in found:
            state = memory[begin : begin + size]
            parts, to_come = request["parts"], request["to_come"]
            found[step] = write_checkpoint(folder, step, files, state, parts=parts, to_come=to_come, spare=spare)
        for old in sorted(found)[: -request["keep"]]:
            if old != request["best"]:
                remove_checkpoint(found[old]) if spare is None else spare.put(found[old])
    except PartMissingError as error:
        return {"missing": str(error)}
    except OSError as error:
        return {"reason": (error.strerror or str(error))[:_REASON]}
    except Exception as error:  # no memory for a digest, say: the process goes on, and so does the run
        return {"reason": f"{type(error).__name__}: {error}"[:_REASON]}
    return {}


def _sealed(data: memoryview, seal: tuple[int, list[tuple[str, int, int]]] | None) -> memoryview:
    """A file with the digest in it that it says of what it holds."""
    if seal is not None:
        at, pieces = seal
        digest = hashlib.sha256()
        for text, start, length in pieces:
            digest.update(text.encode())
            digest.update(data[start : start + length])
        data[at : at + 64] = digest.hexdigest().encode()
    return data


def write_checkpoint(
    folder: str,
    step: int,
    files: Mapping[str, bytes | memoryview],
    state: memoryview,
    *,
    parts: Collection[str] = (),
    to_come: float = TO_COME,
    spare: Spare | None = None,
) -> str:
    """Write `files` as the checkpoint of a step: into a folder of another name, each to the disk, and last a manifest with their sizes and
    SHA-256, and the `state` of the run, which is JSON; only then does the folder get its name, which is returned. `parts` are files that
    other workers write of it (`write_part`), which are waited for. Where a `spare` has a folder with such files, it becomes the checkpoint.

    Whatever ends this early leaves no checkpoint of this step, and those before it as they are. Raises OSError where the system refuses: no
    room, no rights, a disk that does not take what it is given, a checkpoint of this step that is there already; PartMissingError for a
    part that does not come.
    """
    final = f"{folder}{os.sep}step-{step:09d}"
    entries = {name: _entry(data) for name, data in files.items()}
    temporary, opened = spare.take([*files, *parts, MANIFEST]) if spare is not None else ("", {})
    is_new, temporary = not temporary, temporary or _unfinished(folder)
    try:
        try:
            if is_new:
                os.mkdir(temporary)
                for name in (*files, MANIFEST):
                    opened[name] = open(f"{temporary}{os.sep}{name}", "xb")  # noqa: SIM115
            for name, data in files.items():
                _write(opened[name], data)
            entries |= _take_parts(folder, step, temporary, parts, to_come)
            _write(opened[MANIFEST], _manifest(entries, state))
            for name in (*files, MANIFEST):  # once all are on their way: the journal of the file system is mostly written once for them
                _sync(opened[name])
        finally:
            for file in opened.values():  # before the folder is renamed or removed, which Windows refuses while a file in it is open
                file.close()
        if is_new or parts:  # else it has the names that it had
            _sync_folder(temporary)
        os.rename(temporary, final)
        _sync_folder(folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    finally:
        if parts:
            shutil.rmtree(_folder_of_parts(folder, step), ignore_errors=True)
    return final


def write_part(folder: str, step: int, name: str, data: bytes) -> None:
    """Write a file of the checkpoint of a step, which the worker that writes the rest of it waits for. Raises OSError."""
    parts = _folder_of_parts(folder, step)
    os.makedirs(parts, exist_ok=True)
    about = f"{parts}{os.sep}{name}"
    for path, content in ((about, data), (f"{about}.new", json.dumps(_entry(data)).encode())):
        with open(path, "xb") as file:
            _write(file, content)
            _sync(file)
    os.rename(f"{about}.new", f"{about}{_ABOUT}")


def _folder_of_parts(folder: str, step: int) -> str:
    return f"{folder}{os.sep}{PARTS}{step:09d}"


def _take_parts(folder: str, step: int, into: str, names: Collection[str], to_come: float) -> dict[str, dict[str, object]]:
    """Move the parts of other workers into the folder of the checkpoint; return their entries of the manifest."""
    parts, found = _folder_of_parts(folder, step), {}
    until = time.monotonic() + to_come
    for name in names:
        about = f"{parts}{os.sep}{name}{_ABOUT}"
        while not os.path.exists(about):
            if time.monotonic() > until:
                raise PartMissingError(name)
            time.sleep(0.005)
        with open(about, "rb") as file:
            found[name] = json.loads(file.read())
        os.rename(f"{parts}{os.sep}{name}", f"{into}{os.sep}{name}")
    return found


def _manifest(entries: Mapping[str, object], state: memoryview) -> bytes:
    """A manifest as JSON: first the files, for who reads no more. The state, which grows with the run, is put in as it is."""
    files = json.dumps(entries).replace("}, ", "},\n  ").encode()
    return b'{"files": %b,\n "state": %b,\n "sha256": "%b"}\n' % (files, state, hashlib.sha256(state).hexdigest().encode())


def _entry(data: bytes | memoryview) -> dict[str, object]:
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def find_checkpoints(folder: str) -> dict[int, str]:
    """The checkpoints in a folder by their steps, the oldest first; whole ones, or broken since."""
    try:
        entries = os.scandir(folder)
    except OSError as error:
        if error.errno != errno.ENOENT and os.path.isdir(folder):  # who looks may be a worker, and another makes it meanwhile
            raise
        return {}
    with entries:
        found = {int(match[1]): entry.path for entry in entries if (match := NAME.fullmatch(entry.name)) and os.path.isdir(entry)}
    return dict(sorted(found.items()))


def remove_checkpoint(path: str) -> None:
    """Remove a checkpoint: first its name, so that nobody finds half of it. What the system refuses to remove stays."""
    with contextlib.suppress(OSError):
        _remove_folder(_take_away(path))


def _take_away(path: str) -> str:
    """Give the folder of a checkpoint the name of an unfinished one, which is returned."""
    gone = _unfinished(os.path.dirname(path))
    os.rename(path, gone)
    return gone


def _unfinished(folder: str) -> str:
    return f"{folder}{os.sep}{UNFINISHED}{os.urandom(8).hex()}"


def _remove_folder(path: str) -> None:
    """Remove a folder of files, as far as the system lets us: by few calls, since a run may train beside them."""
    try:
        if os.path.islink(path):  # to what somebody has moved elsewhere
            os.unlink(path)
            return
        for name in os.listdir(path):
            os.unlink(f"{path}{os.sep}{name}")
        os.rmdir(path)
    except OSError:  # somebody's folder stands in it
        shutil.rmtree(path, ignore_errors=True)


def _write(file: io.BufferedWriter, data: bytes | memoryview) -> None:
    """Let a file hold `data`, which the system begins to bring to the disk."""
    file.write(data)
    file.flush()
    if os.fstat(file.fileno()).st_size > len(data):
        file.truncate()
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _sync(file: io.BufferedWriter) -> None:
    """Wait until what a file holds is on the disk; not for the time it was written at, which is another request."""
    (os.fdatasync if hasattr(os, "fdatasync") else os.fsync)(file.fileno())


def _sync_folder(folder: str) -> None:
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def serve(memory: int, lock: str, trainer: int, channel: int = 0) -> None:
    """Write what the process `trainer` asks for by a channel, out of `memory` that both have, until it ends or hangs up.

    Whoever goes on with the run waits for the lock, which is held until then. A process that gets it when its trainer has gone writes
    nothing: somebody else may have the folder by now.
    """
    assert fcntl is not None
    held = os.open(lock, os.O_RDWR)
    while True:
        try:
            fcntl.lockf(held, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, LOCKED_BY_WRITER)
            break
        except (BlockingIOError, PermissionError):
            if os.getppid() != trainer:
                return
            time.sleep(0.005)
    if os.getppid() != trainer:
        return
    signal.signal(signal.SIGIO, signal.SIG_IGN)  # of somebody who opens a file while we look whether somebody has
    spare = Spare()
    try:
        _answer(memory, trainer, channel, spare)
    finally:
        spare.remove()


def _answer(memory: int, trainer: int, channel: int, spare: Spare) -> None:
    asked = select.poll()
    asked.register(channel, select.POLLIN)
    shared = None
    allowed = _processors()
    os.write(channel, READY)
    while True:
        while not asked.poll(_LOOKS):
            if os.getppid() != trainer:
                return
        message = os.read(channel, MESSAGE.size)
        if not message:
            return
        whole, begin, size = MESSAGE.unpack(message)
        if shared is None or len(shared) != whole:
            shared = memoryview(mmap.mmap(memory, whole))
        request = json.loads(bytes(shared[begin : begin + size]))
        _leave_processor_of(f"/proc/{trainer}/task/{request['thread']}/stat", allowed)
        answer = fulfil(shared, request, spare)
        taken = ANSWER.pack(*answer.pop("taken"))
        os.write(channel, taken + json.dumps(answer).encode() if answer else taken)


def _processors() -> set[int]:
    """The processors that this process may run on; none where the system does not say."""
    try:
        return os.sched_getaffinity(0)
    except (OSError, AttributeError):
        return set()


def _leave_processor_of(thread: str, allowed: set[int]) -> None:
    """Run on other processors than the one where the `thread` is that trains, by its file, as far as some are `allowed`.

    The system wakes this process where the trainer runs, for every file that has come to the disk: one of both would wait, or move.
    """
    if len(allowed) < 2:
        return
    with contextlib.suppress(OSError, ValueError, IndexError):
        with open(thread, "rb") as file:
            taken = int(file.read().rpartition(b")")[2].split()[36])  # proc_pid_stat(5): "processor", the 39th of all
        os.sched_setaffinity(0, allowed - {taken})


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # of a trainer that has gone
        serve(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
