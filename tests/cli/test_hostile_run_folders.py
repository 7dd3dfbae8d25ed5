"""The folder of a run in which a file is a pipe, a device, a folder or a hole of 4 GiB: each command ends soon, with an error of ours."""

import os
import resource
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy
import pytest

MODEL = """
import oarlock as ol

with ol.Program(seed=3):
    x, kind = ol.layer.data("x", [2]), ol.layer.data("kind", [], dtype="int64")
    logits = ol.layer.fc(x, 2, name="logits")
    predict = ol.layer.softmax(logits)
    cost = ol.layer.cross_entropy(logits, kind)
"""
DATA = ("--data", "rows.npz")
SECONDS = 60  # a command takes less than one, and a machine may do much else
GROWTH = 2**20  # KiB
VERBS = {
    "runs": ("runs", "run"),
    "plot": ("plot", "run"),
    "report": ("report", "run", "--out", "page.html"),
    "infer": ("infer", "run", *DATA, "--output", "predicted.npy"),
    "evaluate": ("evaluate", "run", *DATA),
    "resume": ("resume", "run", "--epochs", "3", "--quiet"),
}


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _link_to_pipe(path: Path) -> None:
    pipe = path.parent.parent / f"{path.name}.pipe"
    os.mkfifo(pipe)
    path.symlink_to(pipe)


def _folder(path: Path) -> None:
    path.mkdir()


def _hole(path: Path) -> None:
    with open(path, "wb") as file:
        file.truncate(4 * 2**30)


KINDS: dict[str, Callable[[Path], None]] = {
    "a pipe": _pipe,
    "a link to /dev/zero": _device,
    "a link to a pipe": _link_to_pipe,
    "a folder": _folder,
    "a hole of 4 GiB": _hole,
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run, in which every kind of file is, and the rows and the script that it was trained with."""
    place = tmp_path_factory.mktemp("place")
    draw = numpy.random.default_rng(0)
    x = draw.normal(size=(16, 2)).astype("float32")
    numpy.savez(place / "rows.npz", x=x, kind=(x[:, 0] > 0).astype("int64"))
    (place / "model.py").write_text(MODEL)
    return place


@pytest.fixture
def place(trained: Path, oarlock, monkeypatch) -> Path:
    monkeypatch.chdir(trained)
    if not (trained / "kept").is_dir():
        words = ("train", "model.py", *DATA, "--validate", "rows.npz", "--epochs", "2", "--save", "last.safetensors", "--run", "run")
        ended = oarlock(*words, "--quiet")
        assert ended.status == 0, ended.error
        (trained / "run").rename("kept")
    return trained


def files_of(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@contextmanager
def ends_soon() -> Iterator[None]:
    """Fail where the block hangs, or takes memory as of a file of 4 GiB."""

    class HangsError(BaseException):
        pass

    def ring(number: int, frame: object) -> None:
        raise HangsError("it hangs")

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    old = signal.signal(signal.SIGALRM, ring)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < GROWTH


def spoilt(place: Path, file: str, kind: str) -> None:
    """The folder `run`, a copy of the one that was kept, in which a file is something else."""
    shutil.rmtree("run", ignore_errors=True)
    for pipe in Path().glob("*.pipe"):
        pipe.unlink()
    shutil.copytree("kept", "run")
    path = place / "run" / file
    path.unlink()
    KINDS[kind](path)


def require_answer(oarlock, verb: str) -> None:
    with ends_soon():
        ended = oarlock(*VERBS[verb])
    assert ended.status in (0, 1), ended.error
    assert "Traceback" not in ended.error, ended.error
    assert ended.status == 0 or "Error" in ended.error, ended.error


FILES = [
    "config.toml",
    "lock",
    "metrics.jsonl",
    "program.txt",
    "run.json",
    "sample.validation.safetensors",
    "manifest.json",
    "model.safetensors",
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("verb", ["runs", "plot"])
def test_every_file_of_a_run_may_be_something_else_for_who_looks_at_it(place, oarlock, kind, verb):
    found = files_of(place / "kept")
    assert {Path(file).name for file in found} == set(FILES), "the test knows all files of a run"
    for file in found:
        spoilt(place, file, kind)
        require_answer(oarlock, verb)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("verb", ["report", "infer", "evaluate", "resume"])
def test_every_file_of_a_run_may_be_something_else_for_who_uses_it(place, oarlock, kind, verb):
    for file in files_of(place / "kept"):
        spoilt(place, file, kind)
        require_answer(oarlock, verb)


@pytest.mark.parametrize("verb", ["runs", "plot", "report", "evaluate", "resume"])
def test_settings_that_would_take_memory_by_their_square_are_an_error_or_left_out(place, oarlock, verb):
    spoilt(place, "config.toml", "a folder")
    (place / "run" / "config.toml").rmdir()
    for text in (".".join(["a"] * 40_000) + " = 1", "[" + " . ".join(['"a"'] * 40_000) + "]", "a = " + "[" * 100_000, "a = " + "1" * 5000):
        (place / "run" / "config.toml").write_text(text)
        require_answer(oarlock, verb)


@pytest.mark.parametrize("file", ["run.json", "metrics.jsonl"])
def test_a_file_of_a_run_that_leads_elsewhere_is_not_read(place, oarlock, file):
    spoilt(place, file, "a folder")
    (place / "run" / file).rmdir()
    shutil.copy(f"kept/{file}", "elsewhere")
    (place / "run" / file).symlink_to(place / "elsewhere")
    for verb in ("runs", "plot"):
        ended = oarlock(*VERBS[verb])
        assert "is a symbolic link, which is not allowed in a run folder" in (ended.output + ended.error).replace("\n", " ")


def test_the_page_of_a_run_does_not_replace_what_a_link_leads_to(place, oarlock):
    spoilt(place, "program.txt", "a folder")
    (place / "mine.txt").write_text("mine")
    (place / "run" / "report.html").symlink_to(place / "mine.txt")
    for words in ((), ("--untrusted",)):
        ended = oarlock("report", "run", *words)
        assert ended.status == 1
        assert '"run/report.html" is a symbolic link, and its target would be overwritten' in ended.error
    assert (place / "mine.txt").read_text() == "mine"
