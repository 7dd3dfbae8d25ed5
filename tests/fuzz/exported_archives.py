"""`.pt2` archives, spoilt in their zip, their document or their weights; what may come of one is a program, or an error of ours.

Names, sizes and paths are tried as Python too, which sets a variable of the environment where anything runs it.
"""

import io
import os
import zipfile
from pathlib import Path
from random import Random

import numpy

import oarlock as ol
from fuzz.archive_changes import CHANGES
from fuzz.archive_seeds import ArchiveDraft, draft_of_archive
from fuzz.judging import RUN, require_readable
from fuzz.payloads import SPRUNG
from oarlock.interop.torch.archive import read_archive
from oarlock.interop.torch.imported import from_exported
from oarlock.ir.size import evaluate, names_in

__all__ = ["REFUSALS", "judge_archive", "make_archive"]

REFUSALS = (ol.FormatError, ol.LimitError, ol.MissingFileError, ol.ReadError, ol.UnsupportedError)


def make_archive(random: Random) -> tuple[str, bytes]:
    """An archive with something changed, and what that is."""
    draft = draft_of_archive(random)
    if random.random() < 0.85:
        done = []
        for _ in range(random.choice([1, 1, 1, 2, 3])):
            name = random.choice(sorted(CHANGES))
            done.append(name)
            try:
                CHANGES[name](random, draft)
            except (KeyError, IndexError, TypeError, AttributeError, ValueError, StopIteration):  # what an earlier change took away
                continue
        return f"{draft.name}: {', '.join(done)}", draft.to_bytes()
    kind = random.choice(sorted(_BYTES))
    return f"{draft.name}: {kind}", _BYTES[kind](random, draft)


def _bits(random: Random, draft: ArchiveDraft) -> bytes:
    data = bytearray(draft.to_bytes())
    for _ in range(random.choice([1, 1, 2, 8])):
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    return bytes(data)


def _directory(random: Random, draft: ArchiveDraft) -> bytes:
    """Numbers of the directory at the end of the zip, which says where entries lie and how large they are."""
    data = bytearray(draft.to_bytes())
    start = data.find(b"PK\x01\x02")
    for _ in range(random.choice([1, 2, 8])):
        at = random.randrange(start, len(data) - 4)
        data[at : at + 4] = random.choice([b"\xff" * 4, b"\0" * 4, b"\x7f\xff\xff\xff", b"PK\x01\x02", b"\x01\0\0\0"])
    return bytes(data)


def _cut(random: Random, draft: ArchiveDraft) -> bytes:
    data = draft.to_bytes()
    return data[: random.randrange(len(data))]


def _moved(random: Random, draft: ArchiveDraft) -> bytes:
    data = bytearray(draft.to_bytes())
    start = random.randrange(len(data))
    at = random.randrange(len(data))
    data[at:at] = data[start : start + random.choice([1, 50, 5000])]
    return bytes(data)


def _twice(random: Random, draft: ArchiveDraft) -> bytes:
    return draft.to_bytes() * 2


def _compressed(random: Random, draft: ArchiveDraft) -> bytes:
    return draft.to_bytes(random.choice([zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]))


def _bomb(random: Random, draft: ArchiveDraft) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as bomb:
        for name in draft.entries:
            bomb.writestr(name, b" " * random.choice([10**5, 10**7]))
    return data.getvalue()


def _many_entries(random: Random, draft: ArchiveDraft) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for number in range(random.choice([1000, 2**16 + 1])):
            archive.writestr(f"m/data/weights/{number}", b"")
    return data.getvalue()


def _another_kind(random: Random, draft: ArchiveDraft) -> bytes:
    return random.choice([b"", b"PK\x05\x06" + b"\0" * 18, b"PK", b"\x80\x02}q\x00.", b"\x93NUMPY", b"\x08\x0a" * 500])


_BYTES = {
    function.__name__.lstrip("_"): function
    for function in (_bits, _directory, _cut, _moved, _twice, _compressed, _bomb, _many_entries, _another_kind)
}


def judge_archive(folder: Path, data: bytes) -> str:
    """The outcome of an archive: the class of the refusal, or what its runs came to. Raises whatever is not one of ours."""
    path = folder / "a\x1b[2J.pt2"
    path.write_bytes(data)
    os.environ.pop(SPRUNG, None)
    try:
        return _judge(path)
    finally:
        assert SPRUNG not in os.environ, "Python out of the file was run"
        assert [item.name for item in folder.iterdir()] == [path.name], "a file was written"


def _judge(path: Path) -> str:
    try:
        model = from_exported(read_archive(path, untrusted=True), trusted=False)
    except REFUSALS as error:
        require_readable(error)
        _require_no_fault(error)
        return type(error).__name__
    feed = {}
    for var in model.program.main.inputs:
        shape = [max(evaluate(size, dict.fromkeys(names_in(size), 2)) or 0, 0) for size in var.shape or ()]
        shape = shape if numpy.prod([float(max(size, 1)) for size in shape]) <= 2**20 else [1 for _ in shape]
        feed[var.name] = numpy.zeros(shape, str(var.dtype)) if str(var.dtype) != "bfloat16" else numpy.zeros(shape, "float32")
    for training in (False, True):
        try:
            ol.Executor(limits=RUN).run(model.program, feed, list(model.program.targets), scope=model.scope, training=training)
        except ol.OarlockError as error:
            require_readable(error)
            return f"runs into {type(error).__name__}"
    return "runs"


def _require_no_fault(error: ol.OarlockError) -> None:
    """Raise where an error says that a rule of ours went wrong: what a stranger wrote is refused for what it is."""
    assert "internal error:" not in str(error), next(line for line in str(error).splitlines() if "internal error:" in line)[:400]
