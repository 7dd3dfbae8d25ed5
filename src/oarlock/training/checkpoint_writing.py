"""Writing checkpoints: files are synced to disk, then a manifest, then the folder is renamed to its final name.

Imports only the standard library: the process that writes checkpoints runs this file (`checkpoint_process.py`) and starts in a few
hundredths of a second. If no process can be started, a thread calls the same functions.
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
    "answer_request",
    "find_checkpoints",
    "remove_checkpoint",
    "write_checkpoint",
    "write_part",
]

MANIFEST = "manifest.json"
LOCKED_BY_TRAINER, LOCKED_BY_WRITER = 0, 1  # byte positions in the lock file of a folder
MESSAGE = struct.Struct("<QQQ")  # the size of the memory, and the offset and size of the request in it
ANSWER = struct.Struct("<QQ")  # start and end of writing, in nanoseconds; followed by an error as JSON, if there was one
LARGEST = 2**12  # bytes of an answer; a character of a reason takes at most six
_REASON = 500  # characters
READY = b"ready"  # the first message of a process, sent when it has the lock

NAME = re.compile(r"step-(\d{1,18})")
UNFINISHED = ".unfinished-"
PARTS = f"{UNFINISHED}parts-"
_ABOUT = ".manifest"  # suffix of the file with the manifest entry of a part
TO_COME = 20.0  # seconds to wait for the parts of other workers after writing the rest: less than the timeout of an exchange
_LOOKS = 500  # milliseconds between checks that the trainer is alive: a fork of it may hold the channel open


class PartMissingError(Exception):
    """A part of a checkpoint, by name, that another worker did not write in time."""


class Spare:
    """The folder of an obsolete checkpoint whose files are overwritten by the next one, because its disk space is already allocated.

    Creating and removing files costs the disk more than writing their contents, and a run trains at the same time. Files are only
    overwritten if they have no other name and are not open elsewhere on this machine; only Linux reports that, so other systems have no
    spares. A process that keeps the folder itself open, and opens a file in it later, finds another step, as the manifest shows.
    """

    def __init__(self) -> None:
        self._path = ""

    def put(self, path: str) -> None:
        """Keep `path`, renamed so that readers never see it partially, as the spare folder, and remove the previous spare."""
        self.remove()
        with contextlib.suppress(OSError):
            self._path = _take_away(path)

    def take(self, names: Collection[str]) -> tuple[str, dict[str, io.BufferedWriter]]:
        """Return the folder, and its files with these names, opened. The path is empty if there is no spare or a file may be in use."""
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
        """Remove the spare folder."""
        path, self._path = self._path, ""
        if path:
            _remove_folder(path)


def _is_ours_alone(file: int) -> bool:
    """Return whether a file has a single name and no other process has it open. Raises OSError if the system does not report it."""
    about = os.fstat(file)
    if not stat.S_ISREG(about.st_mode) or about.st_nlink != 1 or fcntl is None or not hasattr(fcntl, "F_SETLEASE"):
        return False
    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)  # fcntl(2): "placed on a file only if there are no other open file descriptors"
    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return True


def answer_request(memory: memoryview, request: Mapping[str, Any], spare: Spare | None = None) -> dict[str, Any]:
    """Write the requested checkpoint, and remove old ones or keep one as the `spare`.

    Returns start and end in nanoseconds under `taken`, and an error, if there was one, under `reason` or `missing`. The files are in
    `memory`. A file with a seal gets its digest first: a list of texts, each followed by a range of the file.
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
    except Exception as error:  # such as MemoryError: the process and the run continue
        return {"reason": f"{type(error).__name__}: {error}"[:_REASON]}
    return {}


def _sealed(data: memoryview, seal: tuple[int, list[tuple[str, int, int]]] | None) -> memoryview:
    """Return a file after writing the digest of its contents into it."""
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
    """Write `files` as the checkpoint of `step`, and return its path.

    The files are written to a temporary folder and synced, then the manifest with their sizes, SHA-256 digests and the JSON `state` of the
    run; then the folder is renamed. `parts` are files of other workers (`write_part`), for which it waits `to_come` seconds. If `spare`
    has a folder with the same files, that folder is overwritten.

    On any error, there is no checkpoint of this step, and earlier ones are unchanged. Raises OSError (no space, no permission, a disk
    error, an existing checkpoint of this step) or PartMissingError.
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
            for name in (*files, MANIFEST):  # after all writes, so that the file system usually commits its journal only once
                _sync(opened[name])
        finally:
            for file in opened.values():  # before the folder is renamed or removed: Windows refuses that while a file is open
                file.close()
        if is_new or parts:  # otherwise its entries are unchanged
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
    """Write a worker's file of the checkpoint of `step`; the worker that writes the checkpoint waits for it. Raises OSError."""
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
    """Move the parts of other workers into the folder of the checkpoint; return their manifest entries."""
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
    """Return the manifest as JSON: files first, for readers that skip the state, which grows with the run and is inserted unparsed."""
    files = json.dumps(entries).replace("}, ", "},\n  ").encode()
    return b'{"files": %b,\n "state": %b,\n "sha256": "%b"}\n' % (files, state, hashlib.sha256(state).hexdigest().encode())


def _entry(data: bytes | memoryview) -> dict[str, object]:
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def find_checkpoints(folder: str) -> dict[int, str]:
    """Return the checkpoints in a folder by step, oldest first; some may be damaged."""
    try:
        entries = os.scandir(folder)
    except OSError as error:
        if error.errno != errno.ENOENT and os.path.isdir(folder):  # another worker may be creating it
            raise
        return {}
    with entries:
        found = {int(match[1]): entry.path for entry in entries if (match := NAME.fullmatch(entry.name)) and os.path.isdir(entry)}
    return dict(sorted(found.items()))


def remove_checkpoint(path: str) -> None:
    """Remove a checkpoint. It is renamed first, so readers never see a partial checkpoint. Errors of the system are ignored."""
    with contextlib.suppress(OSError):
        _remove_folder(_take_away(path))


def _take_away(path: str) -> str:
    """Rename the folder of a checkpoint to an unfinished one; return the new path."""
    gone = _unfinished(os.path.dirname(path))
    os.rename(path, gone)
    return gone


def _unfinished(folder: str) -> str:
    return f"{folder}{os.sep}{UNFINISHED}{os.urandom(8).hex()}"


def _remove_folder(path: str) -> None:
    """Remove a folder of files, ignoring errors. Uses few system calls, because a run may be training."""
    try:
        if os.path.islink(path):  # a user may have moved the folder
            os.unlink(path)
            return
        for name in os.listdir(path):
            os.unlink(f"{path}{os.sep}{name}")
        os.rmdir(path)
    except OSError:  # it may contain a folder
        shutil.rmtree(path, ignore_errors=True)


def _write(file: io.BufferedWriter, data: bytes | memoryview) -> None:
    """Write `data` as the contents of a file, and let the system start writing it to disk."""
    file.write(data)
    file.flush()
    if os.fstat(file.fileno()).st_size > len(data):
        file.truncate()
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _sync(file: io.BufferedWriter) -> None:
    """Wait until the contents of a file are on disk. Its timestamps, which need another write, are not synced if possible."""
    (os.fdatasync if hasattr(os, "fdatasync") else os.fsync)(file.fileno())


def _sync_folder(folder: str) -> None:
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def serve(memory: int, lock: str, trainer: int, channel: int = 0) -> None:
    """Write the checkpoints that the process `trainer` requests by a channel, from shared `memory`, until it ends or closes the channel.

    The lock is held until then, and a process that resumes the run waits for it. If the trainer has ended before the lock is taken,
    nothing is written, because the folder may have another owner.
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
    signal.signal(signal.SIGIO, signal.SIG_IGN)  # sent if another process opens a file during a lease check
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
        answer = answer_request(shared, request, spare)
        taken = ANSWER.pack(*answer.pop("taken"))
        os.write(channel, taken + json.dumps(answer).encode() if answer else taken)


def _processors() -> set[int]:
    """Return the CPUs that this process may run on, or an empty set if they are unknown."""
    try:
        return os.sched_getaffinity(0)
    except (OSError, AttributeError):
        return set()


def _leave_processor_of(thread: str, allowed: set[int]) -> None:
    """Move this process to CPUs other than that of the training `thread` (a /proc file), if several are `allowed`.

    The system wakes this process on the trainer's CPU for every synced file, and one of the two would have to wait or move.
    """
    if len(allowed) < 2:
        return
    with contextlib.suppress(OSError, ValueError, IndexError):
        with open(thread, "rb") as file:
            taken = int(file.read().rpartition(b")")[2].split()[36])  # proc_pid_stat(5): "processor", the 39th field
        os.sched_setaffinity(0, allowed - {taken})


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the trainer has ended
        serve(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
