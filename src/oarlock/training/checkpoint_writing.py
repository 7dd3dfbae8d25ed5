"""The writing of checkpoints: their files, each to the disk, then a manifest, then a folder that gets its name.

It imports the standard library alone: a process that only writes checkpoints runs this file (`checkpoint_process.py`), and is there in a
few hundredths of a second. A thread beside the training calls the same functions where no process can be started.
"""

import contextlib
import hashlib
import io
import json
import mmap
import os
import re
import select
import shutil
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
    "LARGEST",
    "LOCKED_BY_TRAINER",
    "LOCKED_BY_WRITER",
    "MANIFEST",
    "MESSAGE",
    "READY",
    "TO_COME",
    "PartMissingError",
    "find_checkpoints",
    "fulfil",
    "remove_checkpoint",
    "remove_unfinished",
    "write_checkpoint",
    "write_part",
]

MANIFEST = "manifest.json"
LOCKED_BY_TRAINER, LOCKED_BY_WRITER = 0, 1  # bytes of the lock of a folder
MESSAGE = struct.Struct("<QQQ")  # the bytes of the memory, where the request begins in it, and its bytes
LARGEST = 2**12  # bytes of an answer, in which a letter of a reason takes six or less
_REASON = 500  # letters
READY = b"ready"  # the first thing that a process says, once it has the lock

_NAME = re.compile(r"step-(\d{1,18})")
_UNFINISHED = ".unfinished-"
_PARTS = f"{_UNFINISHED}parts-"
_ABOUT = ".manifest"  # after the name of a part, whose entry it holds
TO_COME = 20.0  # seconds for the parts of other workers, once all else is written: less than an exchange waits for a worker
_LOOKS = 500  # milliseconds between two looks whether the trainer lives: a child of it may hold the channel open


class PartMissingError(Exception):
    """The part of a checkpoint, by its name, that another worker was to write, and did not."""


def fulfil(memory: memoryview, request: Mapping[str, Any]) -> dict[str, object]:
    """Write the checkpoint that a request describes, and keep the newest: when that was, in nanoseconds, under `taken`, and the fault, if
    there is one, under `reason` or `missing`.

    The files lie in `memory`. One that says a digest of what it holds is given that first: a row of texts, each with a place in the file.
    """
    started, fault = time.perf_counter_ns(), _fault(memory, request)
    return {**fault, "taken": [started, time.perf_counter_ns()]}


def _fault(memory: memoryview, request: Mapping[str, Any]) -> dict[str, str]:
    try:
        folder, step = request["folder"], request["step"]
        files = {name: _sealed(memory[begin : begin + size], seal) for name, begin, size, seal in request["files"]}
        begin, size = request["state"]
        found = find_checkpoints(folder)
        if step not in found:
            state = memory[begin : begin + size]
            found[step] = write_checkpoint(folder, step, files, state, parts=request["parts"], to_come=request["to_come"])
        for old in sorted(found)[: -request["keep"]]:
            if old != request["best"]:
                remove_checkpoint(found[old])
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
) -> str:
    """Write `files` as the checkpoint of a step: into a folder of another name, each to the disk, and last a manifest with their sizes and
    SHA-256, and the `state` of the run, which is JSON; only then does the folder get its name, which is returned. `parts` are files that
    other workers write of it (`write_part`), which are waited for.

    Whatever ends this early leaves no checkpoint of this step, and those before it as they are. Raises OSError where the system refuses: no
    room, no rights, a disk that does not take what it is given, a checkpoint of this step that is there already; PartMissingError for a
    part that does not come.
    """
    final = f"{folder}{os.sep}step-{step:09d}"
    temporary = f"{folder}{os.sep}{_UNFINISHED}{os.urandom(8).hex()}"
    entries = {name: _entry(data) for name, data in files.items()}
    try:
        os.mkdir(temporary)
        written = []
        try:
            for name, data in files.items():
                written.append(_write(f"{temporary}{os.sep}{name}", data))
            entries |= _take_parts(folder, step, temporary, parts, to_come)
            written.append(_write(f"{temporary}{os.sep}{MANIFEST}", _manifest(entries, state)))
            for file in written:  # once all are on their way: the journal of the file system is mostly written once for them
                os.fsync(file.fileno())
        finally:
            for file in written:  # before the folder is renamed or removed, which Windows refuses while a file in it is open
                file.close()
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
    with _write(f"{parts}{os.sep}{name}", data) as file:
        os.fsync(file.fileno())
    about = f"{parts}{os.sep}{name}"
    with _write(f"{about}.new", json.dumps(_entry(data)).encode()) as file:
        os.fsync(file.fileno())
    os.rename(f"{about}.new", f"{about}{_ABOUT}")


def _folder_of_parts(folder: str, step: int) -> str:
    return f"{folder}{os.sep}{_PARTS}{step:09d}"


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
        with os.scandir(folder) as entries:
            found = {int(match[1]): entry.path for entry in entries if (match := _NAME.fullmatch(entry.name)) and entry.is_dir()}
    except OSError:
        if os.path.isdir(folder):
            raise
        return {}
    return dict(sorted(found.items()))


def remove_checkpoint(path: str) -> None:
    """Remove a checkpoint: first its name, so that nobody finds half of it. What the system refuses to remove stays."""
    with contextlib.suppress(OSError):
        gone = f"{os.path.dirname(path)}{os.sep}{_UNFINISHED}{os.urandom(8).hex()}"
        os.rename(path, gone)
        _remove_folder(gone)


def _remove_folder(path: str) -> None:
    """Remove a folder of files, as far as the system lets us: by few calls, since a run may train beside them."""
    try:
        for name in os.listdir(path):
            os.unlink(f"{path}{os.sep}{name}")
        os.rmdir(path)
    except OSError:  # somebody's folder stands in it
        shutil.rmtree(path, ignore_errors=True)


def remove_unfinished(folder: str, *, parts: bool = True) -> None:
    """Remove what processes left there that were killed while they wrote or removed a checkpoint, `parts` of other workers too.

    Nobody else may be writing.
    """
    if os.path.isdir(folder):
        for name in os.listdir(folder):
            if name.startswith(_UNFINISHED) and (parts or not name.startswith(_PARTS)):
                shutil.rmtree(f"{folder}{os.sep}{name}", ignore_errors=True)


def _write(path: str, data: bytes | memoryview) -> io.BufferedWriter:
    """A new file with `data`, which the system begins to bring to the disk; open, until somebody has waited for that."""
    file = open(path, "xb")  # noqa: SIM115
    try:
        file.write(data)
        file.flush()
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    except BaseException:
        file.close()
        raise
    return file


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
        answer = fulfil(shared, request)
        os.write(channel, json.dumps(answer).encode())


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
