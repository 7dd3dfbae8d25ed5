"""`--untrusted`: each limit of the child process acts, whatever ends it is one of our errors, and only the parent writes."""

import codecs
import encodings
import io
import json
import os
import resource
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy
import pytest
from classifiers import small_classifier, small_rows
from processes import run_module, run_python

import oarlock as ol
from oarlock.cli import main, output_file, untrusted_run
from oarlock.cli.untrusted_run import Ended, Interrupted, ProcessLimits, run_untrusted

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="these limits are those of Linux")

REPORT = "\n  Try: nothing was written; report such a file as SECURITY.md describes    (oarlock explain {})"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models: `large` makes 1,024,000,000 bytes out of 16,000 rows, `slow` takes minutes; nobody writes to them."""
    folder = tmp_path_factory.mktemp("untrusted")

    def save(name: str, **targets: ol.Var) -> None:
        ol.save_model(targets, ol.init(next(iter(targets.values())).block.program, ol.Scope()), folder / name)

    with ol.Program(seed=0):
        x = ol.layer.data("x", shape=[1])
        small, large = ol.layer.fc(x, 4), ol.layer.mean(ol.layer.fc(x, 16_000))
    save("model.safetensors", predict=small, square=ol.op.square(small))
    save("large.safetensors", large=large)
    with ol.Program(seed=0):
        square = ol.layer.data("square", shape=[1_500, 1_500], batch=None)
        power = square
        for _ in range(300):
            power = ol.op.linear(power, square)
    save("slow.safetensors", power=power)
    numpy.savez(folder / "rows.npz", x=numpy.linspace(-1, 1, 16_000, dtype="float32")[:, None])
    numpy.savez(folder / "square.npz", square=numpy.ones((1_500, 1_500), "float32"))
    return folder


def refusal(kind: type[ol.OarlockError], call: Callable[[], object]) -> str:
    with pytest.raises(kind) as raised:
        call()
    assert type(raised.value) is kind
    return str(raised.value)


# What the system keeps the child from: one process for all of it


PROBE = """
import json, os, resource, socket, sys
from oarlock.cli.confinement import ProcessLimits, isolate, limit

def attempt(call):
    try:
        call()
    except (OSError, MemoryError, ValueError) as error:
        return f"{type(error).__name__}: {error}"

def write(name, mode):
    with open(name, mode) as file:
        file.write("one letter")

held = []
facts = {"alone": isolate(), "heavy": sorted({"torch", "numpy", "typer"} & set(sys.modules))}
limit(ProcessLimits())
facts["memory"] = attempt(lambda: bytearray(6 * 2**30))
facts["write"] = attempt(lambda: write("new", "w"))
facts["append"] = attempt(lambda: write("old", "a"))
facts["connect"] = attempt(lambda: socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5))
facts["raise"] = attempt(lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2**30, 2**30)))
facts["limits"] = {name: resource.getrlimit(getattr(resource, f"RLIMIT_{name}")) for name in ("AS", "CORE", "FSIZE", "NOFILE")}
status = dict(line.split(":\\t") for line in open("/proc/self/status").read().splitlines())
facts["status"] = {name: status[name] for name in ("NoNewPrivs", "CapPrm", "CapEff")}
facts["files"] = attempt(lambda: held.extend(os.open("/dev/null", os.O_RDONLY) for _ in range(100)))
print(json.dumps(facts))
"""


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> dict:
    folder = tmp_path_factory.mktemp("probe")
    (folder / "old").write_text("as it was")
    with socket.create_server(("127.0.0.1", 0)) as server:
        found = json.loads(run_python(PROBE, folder, server.getsockname()[1]))
    return found | {"old": (folder / "old").read_text(), "new": (folder / "new").read_bytes()}


def test_the_child_writes_no_file(facts):
    assert (facts["write"], facts["append"]) == ("OSError: [Errno 27] File too large",) * 2
    assert (facts["new"], facts["old"]) == (b"", "as it was")


def test_the_child_has_no_network(facts):
    if not facts["alone"]:
        pytest.skip("this system gives no network namespace to a process")
    assert facts["connect"] == "OSError: [Errno 101] Network is unreachable"


def test_the_child_takes_no_more_memory_and_files_than_it_may_and_leaves_no_core(facts):
    assert facts["memory"].startswith("MemoryError")
    assert facts["files"] == "OSError: [Errno 24] Too many open files: '/dev/null'"
    assert facts["limits"] == {"AS": [6 * 2**30] * 2, "CORE": [0, 0], "FSIZE": [0, 0], "NOFILE": [64, 64]}


def test_the_child_has_no_privileges_and_gets_none(facts):
    assert facts["status"] == {"NoNewPrivs": "1", "CapPrm": "0" * 16, "CapEff": "0" * 16}
    assert facts["raise"] == "ValueError: not allowed to raise maximum limit"


def test_the_child_is_alone_before_a_library_can_start_a_thread(facts):
    assert facts["heavy"] == []


def test_a_limit_that_the_caller_has_already_stays_where_it_is_lower(tmp_path):
    code = """
import resource
from oarlock.cli.confinement import ProcessLimits, limit
resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
limit(ProcessLimits())
print(resource.getrlimit(resource.RLIMIT_NOFILE))
"""
    assert run_python(code, tmp_path) == "(32, 32)\n"


# The child itself


def test_a_strangers_model_is_run_and_only_the_parent_writes(folder, tmp_path, facts):
    output = tmp_path / "predicted.npy"
    ended = run_module(folder, "infer", "model.safetensors", "--untrusted", "--data", "rows.npz", "--output", output)
    note = "note: this system cannot isolate the network of a process, so the child process had network access\n"
    assert (ended.returncode, ended.stderr) == (0, "" if facts["alone"] else note)
    assert ended.stdout == f"saved {output}\npredict  float32[16000, 4]\nsquare  float32[16000, 4]\n"
    with numpy.load(folder / "rows.npz") as rows:
        expected = ol.infer(ol.load_model("predict", folder / "model.safetensors"), dict(rows))
    assert numpy.load(output, allow_pickle=False).tobytes() == numpy.asarray(expected).tobytes()
    assert stat.S_IMODE(output.stat().st_mode) == 0o644


def test_what_a_verb_writes_is_returned_by_the_library(folder, tmp_path):
    here, there = tmp_path / "here.safetensors", tmp_path / "there.safetensors"
    model = ol.load_model(folder / "model.safetensors")
    ol.save_model({"predict": model.program.targets["predict"]}, model, here)
    ended = run_untrusted("prune", folder / "model.safetensors", "predict", "-o", there)
    assert ended.output == here.read_bytes()
    assert (ended.status, ended.text) == (0, f"saved {there}\n")
    assert not there.exists()


def test_the_childs_error_is_raised_here(folder, tmp_path):
    (tmp_path / "link.safetensors").symlink_to(folder / "model.safetensors")
    assert refusal(ol.FormatError, lambda: run_untrusted("check", tmp_path / "link.safetensors")) == (
        '"link.safetensors" is a symbolic link, which is not allowed for an untrusted file\n'
        "  Try: copy the file, or load it without untrusted if it is yours    (oarlock explain FormatError)"
    )


def test_a_child_that_takes_too_much_memory_is_refused_it(folder):
    limits = ProcessLimits(memory_bytes=3 * 2**29)
    run = lambda: run_untrusted("infer", folder / "large.safetensors", "--data", folder / "rows.npz", limits=limits)  # noqa: E731
    assert refusal(ol.LimitError, run) == (
        "the child process needs more than its limit of 1,610,612,736 bytes of memory\n"
        "  Try: limits=ProcessLimits(memory_bytes=...)    (oarlock explain LimitError)"
    )


def test_a_child_that_takes_too_much_time_is_ended(folder):
    limits = ProcessLimits(cpu_seconds=1)
    run = lambda: run_untrusted("infer", folder / "slow.safetensors", "--data", folder / "square.npz", limits=limits)  # noqa: E731
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    assert refusal(ol.LimitError, run) == (
        "infer: the child process used more than 1 seconds of CPU time\n"
        "  Try: limits=ProcessLimits(cpu_seconds=...)    (oarlock explain LimitError)"
    )
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 15


def test_wrong_usage_is_an_error_of_ours():
    assert refusal(ol.ArgumentError, lambda: run_untrusted("chekc", "model.safetensors")).startswith("No such command 'chekc'.")


# Children that misbehave: what stands for Python is a script, and answers as a stranger may who has taken the child over


@pytest.fixture
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Callable[[], Ended]]:
    def stand_in(script: str, answer: bytes = b"", **limits: float) -> Callable[[], Ended]:
        (tmp_path / "answer").write_bytes(answer)
        (tmp_path / "python").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "python").chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
        return lambda: run_untrusted("check", "model", limits=ProcessLimits(**limits))  # type: ignore[arg-type]

    return stand_in


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("kill -SEGV $$", "SIGSEGV and without an answer"),
        ("kill -ABRT $$", "SIGABRT and without an answer"),
        ("exit 3", "status 3 and without an answer"),
    ],
)
def test_a_child_that_breaks_is_an_error_of_ours(script, message, child):
    assert refusal(ol.KernelError, child(script)) == f"check: the child process ended with {message}{REPORT.format('KernelError')}"


def test_a_child_that_the_system_kills_is_an_error_of_ours(child):
    assert refusal(ol.LimitError, child("kill -KILL $$")) == (
        f"check: the system killed the child process, which usually means that memory or CPU time ran out{REPORT.format('LimitError')}"
    )


LATE = "check: the child process ran longer than 0.4 seconds\n  Try: limits=ProcessLimits(seconds=...)    (oarlock explain LimitError)"
UNREADABLE = f"check: the answer of the child process cannot be read{REPORT.format('KernelError')}"


@pytest.mark.parametrize("script", ["exec sleep 60", "exec 1>&-; exec sleep 60", "printf '{'; exec sleep 60", "sleep 60 & wait"])
def test_a_child_that_only_waits_is_ended(script, child):
    assert refusal(ol.LimitError, child(script, seconds=0.4)) == LATE


def is_gone(process: int) -> bool:
    """Whether a process has ended, within a while; one that nobody waits for has, too."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize(
    ("script", "kind", "message"),
    [
        ("exit 0", ol.KernelError, UNREADABLE),
        ("exit 3", ol.KernelError, f"check: the child process ended with status 3 and without an answer{REPORT.format('KernelError')}"),
        ("wait", ol.LimitError, LATE.replace("0.4", "4")),
    ],
)
def test_a_process_that_a_child_leaves_behind_ends_with_it_though_it_holds_the_pipe(script, kind, message, child, tmp_path):
    run = child(f'trap "" HUP TERM INT; sleep 60 & echo $! > "${{0%/*}}/left"; {script}', seconds=4)
    started = time.monotonic()
    assert refusal(kind, run) == message
    assert time.monotonic() - started < (20 if script == "wait" else 3.5)
    assert is_gone(int((tmp_path / "left").read_text()))


def test_a_process_that_leaves_the_group_and_holds_the_pipe_is_not_waited_for(child, tmp_path):
    run = child('setsid sleep 60 & echo $! > "${0%/*}/left"; sleep 0.3; exit 0')
    started = time.monotonic()
    try:
        assert refusal(ol.KernelError, run) == UNREADABLE
        assert time.monotonic() - started < 10
    finally:
        os.kill(int((tmp_path / "left").read_text()), signal.SIGKILL)


def interrupted(run: Callable[[], object], left: Path, *, times: int = 1) -> tuple[Interrupted, float]:
    """The error of a run that is interrupted once its child has written `left`, and the seconds until it was raised."""
    sent = []

    def interrupt() -> None:
        while not left.exists() or not left.read_text():
            time.sleep(0.02)
        for _ in range(times):
            time.sleep(0.2)
            sent.append(time.monotonic())
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)  # type: ignore[arg-type]

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(Interrupted) as raised:
        run()
    seconds = time.monotonic() - sent[0]
    thread.join()
    return raised.value, seconds


def test_an_interrupt_ends_the_child_too(child, tmp_path):
    raised, seconds = interrupted(child('sleep 60 & echo $! > "${0%/*}/left"; wait'), tmp_path / "left")
    assert raised.ended is None
    assert str(raised) == "interrupted; the child process returned no result"
    assert seconds < 2.0
    assert is_gone(int((tmp_path / "left").read_text()))


def test_a_child_that_is_interrupted_hands_over_what_it_has(child, tmp_path):
    script = 'trap \'cat "${0%/*}/answer"; exit\' INT; sleep 60 & echo $! > "${0%/*}/left"; wait'
    raised, _ = interrupted(child(script, head(status=130, text=2, output=3) + b"ab\x00\x01\x02"), tmp_path / "left")
    assert raised.ended == Ended(130, "ab", b"\x00\x01\x02", False)
    assert str(raised) == "interrupted; the child process returned a result, `ended`"
    assert is_gone(int((tmp_path / "left").read_text()))


@pytest.mark.parametrize(
    "then",
    [
        "wait; wait",
        'cat "${0%/*}/answer"; while :; do printf x; sleep 0.1; done',
        'cat "${0%/*}/answer"; exec 1>&-; wait; wait',
        "exec cat /dev/zero",
        "printf '{\"error\": {}}\\n'",
    ],
    ids=["says nothing", "never ends what it says", "closes its pipe", "answers what is none", "answers an error"],
)
def test_a_child_that_is_interrupted_and_hands_nothing_over_is_ended_soon(then, child, tmp_path):
    run = child(f'trap : INT; sleep 60 & echo $! > "${{0%/*}}/left"; wait; {then}', head(output=1_000_000))
    raised, seconds = interrupted(run, tmp_path / "left")
    assert raised.ended is None
    assert seconds < 4.0  # two, on a machine with nothing else to do
    assert is_gone(int((tmp_path / "left").read_text()))


def test_a_second_interrupt_ends_the_child_at_once(child, tmp_path, monkeypatch):
    monkeypatch.setattr(untrusted_run, "_PATIENCE", 50.0)
    raised, seconds = interrupted(child('trap "" INT; sleep 60 & echo $! > "${0%/*}/left"; wait'), tmp_path / "left", times=2)
    assert raised.ended is None
    assert seconds < 10.0
    assert is_gone(int((tmp_path / "left").read_text()))


def taken(run: Callable[[], object]) -> int:
    """The most bytes that Python held for a call which is refused."""
    tracemalloc.start()
    try:
        with pytest.raises(ol.OarlockError):
            run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def head(**fields: object) -> bytes:
    """The first line of an answer."""
    return json.dumps({"error": None, "status": 0, "network": False, "text": 0, "output": 0} | fields).encode() + b"\n"


@pytest.mark.parametrize("script", ["exec yes", "exec cat /dev/zero"])
def test_a_child_that_answers_without_end_costs_next_to_nothing(script, child):
    assert refusal(ol.KernelError, child(script)) == UNREADABLE
    assert taken(child(script)) < 2 * 2**20


@pytest.mark.parametrize("made", [b"[" * 2**18, b"[" + b"[]," * 80_000, b"[" + b"{}," * 80_000, b'["' + b"x" * 200_000])
def test_what_is_read_before_it_is_known_costs_little(made, child):
    assert refusal(ol.KernelError, child('cat "${0%/*}/answer"', made + b"\n")) == UNREADABLE
    assert taken(child('cat "${0%/*}/answer"', made + b"\n")) < 16 * 2**20


@pytest.mark.parametrize(("name", "verb"), [("output", "returned"), ("text", "printed")])
def test_a_child_that_hands_back_too_much_is_refused_before_it_is_read(name, verb, child):
    run = child('cat "${0%/*}/answer"; exec cat /dev/zero', head(**{name: 10**15}), **{f"{name}_bytes": 1_000_000})
    assert refusal(ol.LimitError, run) == (
        f"check: the child process {verb} more than 1,000,000 bytes\n"
        f"  Try: limits=ProcessLimits({name}_bytes=...)    (oarlock explain LimitError)"
    )
    assert taken(run) < 2**20


def test_no_more_is_read_of_a_child_than_it_said(child):
    run = child('cat "${0%/*}/answer"; exec cat /dev/zero', head(status=255, text=2, output=3) + b"ab\x00\x01\x02")
    assert run() == Ended(255, "ab", b"\x00\x01\x02", False)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\x80\x04\x95pickle\n",
        b"[" * 100_000 + b"\n",
        b"[]\n",
        b"{}\n",
        b"\xef\xbb\xbf" + head(),
        head().decode().encode("utf-16"),
        head()[:-1],
        *(head(status=status) for status in (-1, 256, 10**400, 2.0, True, "0", None, [])),
        head().replace(b'"status": 0', b'"status": 1e999'),
        head().replace(b'"status": 0', b'"status": ' + b"9" * 5_000),
        head(network=0),
        *(head(**{name: length}) for name in ("text", "output") for length in (-1, True, "1", None, 0.0)),
        head(text=3) + b"ab",
        head(output=3) + b"ab",
        head(text=2) + b"\xff\xfe",
        head(error="FormatError"),
        head(error={}),
        head(error={"kind": "SystemExit", "message": "bye"}),
        head(error={"kind": "__builtins__", "message": "bye"}),
        head(error={"kind": ["FormatError"], "message": "bye"}),
        head(error={"kind": "FormatError"}),
        head(error={"kind": "FormatError", "message": 3}),
        head(error={"kind": "FormatError", "message": "bye", "given": "line"}),
        head(error={"kind": "FormatError", "message": "bye", "given": [3]}),
        head(error={"kind": "FormatError", "message": "bye", "hint": {}}),
    ],
)
def test_an_answer_that_is_none_is_an_error_of_ours(answer, child):
    assert refusal(ol.KernelError, child('cat "${0%/*}/answer"', answer)) == UNREADABLE


def test_an_answer_chooses_no_codec(child):
    """JSON that begins with a mark would have Python look for a codec, which is a module that it imports."""
    asked_for = []

    def search(name: str) -> codecs.CodecInfo | None:
        asked_for.append(name.replace("-", "_"))
        return encodings.search_function(name)

    codecs.unregister(encodings.search_function)  # which forgets the codecs that were found before
    codecs.register(search)
    try:
        for text in (b"\xef\xbb\xbf" + head(), head().decode().encode("utf-16")):
            assert refusal(ol.KernelError, child('cat "${0%/*}/answer"', text)) == UNREADABLE
    finally:
        codecs.unregister(search)
        codecs.register(encodings.search_function)
    assert not {name for name in asked_for if name.startswith(("utf_8_sig", "utf_16", "utf_32"))}


def test_an_answer_steers_no_terminal(child):
    text = "\x1b[2Jred\tor\r blue\u202e\n".encode()
    ended = child('cat "${0%/*}/answer"', head(status=2, network=True, text=len(text), output=2) + text + b"\x00\xff")()
    assert ended == Ended(2, "\\x1b[2Jred\tor\\r blue\\u202e\n", b"\x00\xff", True)
    error = {"kind": "VerifyError", "message": "\x1b]0;title\x07", "given": ["\x1b[0m\n"], "location": "a.py:3\0", "hint": None}
    assert refusal(ol.VerifyError, child('cat "${0%/*}/answer"', head(error=error))) == (
        "\\x1b]0;title\\x07\n  a.py:3\\x00\n      \\x1b[0m\\n"
    )


LEFT_BEHIND = """
import os, sys, time
from oarlock.cli.confinement import isolate
isolate()
print(os.getpid(), flush=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(60)
time.sleep(0.3)
os._exit(0)
"""


def test_no_process_outlives_the_child_where_it_has_numbers_of_its_own():
    """They hold the pipe: reading to its end is waiting for the last of them."""
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-c", LEFT_BEHIND], capture_output=True, text=True, timeout=90, check=True)
    if int(done.stdout) > 2:
        pytest.skip("this system gives none is of its own to a process")
    assert time.monotonic() - started < 30


@pytest.mark.parametrize(("code", "status"), [("os._exit(7)", 7), ("os.kill(os.getpid(), 11)", -11), ("os.kill(os.getpid(), 9)", -9)])
def test_who_waits_for_the_child_ends_as_it_does(code, status):
    script = f"import os; from oarlock.cli.confinement import isolate; isolate(); {code}"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == status


def test_the_child_is_told_no_secrets(child, monkeypatch):
    for name, value in {"API_TOKEN": "a secret", "OMP_NUM_THREADS": "1", "PYTHONPATH": "/packages"}.items():
        monkeypatch.setenv(name, value)
    told = child('cat "${0%/*}/answer"; (env; [ -t 0 ] || cat; yes) | head -c 4096', head(output=4096))().output.decode()
    assert "a secret" not in told
    assert "OMP_NUM_THREADS=1\n" in told
    assert "CUDA_VISIBLE_DEVICES=\n" in told
    assert f"PYTHONPATH={Path(ol.__file__).parent.parent}:/packages\n" in told


def test_elsewhere_than_on_linux_nothing_is_run(monkeypatch):
    monkeypatch.setattr(untrusted_run.sys, "platform", "darwin")
    assert refusal(ol.ArgumentError, lambda: run_untrusted("check", "model")) == (
        "untrusted files can only be run on Linux: other systems do not have these limits"
    )


# Every verb


VERBS = {
    "show": ["{file}", "{output}", "--html"],
    "check": ["{file}"],
    "hash": ["{file}"],
    "diff": ["{file}", "{file}"],
    "infer": ["{file}", "--data", "digits:test"],
    "evaluate": ["{file}", "--data", "digits:test"],
    "plan": ["{file}"],
    "prune": ["{file}", "predict", "-o", "{output}"],
    "export": ["{file}", "--onnx", "{output}"],
    "import torch": ["{file}", "-o", "{output}"],
    "import onnx": ["{file}", "-o", "{output}"],
    "train": ["{file}", "--data", "digits:train"],
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("suffix", [".safetensors", ".bin"])
def test_every_verb_opens_no_link_in_the_child(verb, suffix, folder, tmp_path, monkeypatch):
    link = tmp_path / f"link{suffix}"
    link.symlink_to(folder / "model.safetensors")
    arguments = [argument.format(file=link, output=tmp_path / "output") for argument in VERBS[verb]]
    monkeypatch.setattr(output_file, "_handed", io.BytesIO())  # as in the child
    error = refusal(ol.FormatError, lambda: main.app([*verb.split(), *arguments, "--untrusted"], standalone_mode=False))
    assert error.startswith(f'"{link.name}" is a symbolic link, which is not allowed for an untrusted file')


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_run_in_the_child_and_its_file_goes_where_it_was_asked_for(verb, tmp_path, monkeypatch, capsys):
    file, output = tmp_path / "file", tmp_path / "output"
    file.write_bytes(b"the file")
    ran = []

    def run(*arguments: str) -> Ended:
        ran.append(arguments)
        return Ended(7, "what it printed\n", b"what it wrote", False)

    monkeypatch.setattr(untrusted_run, "run_untrusted", run)
    arguments = [argument.format(file=file, output=output) for argument in VERBS[verb]]
    if verb == "infer":
        arguments += ["--output", str(output)]
    assert main.app([*verb.split(), "--untrusted", *arguments], standalone_mode=False) == 7
    assert ran == [(*verb.split(), "--untrusted", *arguments)]
    assert capsys.readouterr().out == "what it printed\n"
    written = file if verb == "train" else output if verb == "infer" or "{output}" in VERBS[verb] else None
    assert file.read_bytes() == (b"what it wrote" if written == file else b"the file")
    assert output.exists() == (written == output)


@pytest.mark.parametrize("ended", [Ended(130, "what it printed\n", b"what it wrote", False), None])
def test_what_an_interrupted_child_hands_back_is_written(ended, tmp_path, monkeypatch, capsys):
    file = tmp_path / "file"
    file.write_bytes(b"the file")

    def run(*_: str) -> Ended:
        raise Interrupted(ended)

    monkeypatch.setattr(untrusted_run, "run_untrusted", run)
    with pytest.raises(SystemExit) as raised:
        main.app(["train", "--untrusted", str(file), "--data", "digits:train"])
    assert raised.value.code == 130
    nothing = "\ninterrupted; the child process returned no result, so nothing was written\n"
    assert tuple(capsys.readouterr()) == (("", nothing) if ended is None else ("what it printed\n", ""))
    assert file.read_bytes() == (b"the file" if ended is None else b"what it wrote")


def test_the_child_keeps_no_run_and_writes_where_the_command_line_says(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(output_file, "_handed", io.BytesIO())
    (tmp_path / "train.toml").write_text('[train]\nsave = "elsewhere.safetensors"\n')

    def run(*arguments: object):
        words = ["train", str(folder / "large.safetensors"), "--data", "digits:train", "--untrusted", *map(str, arguments)]
        return lambda: main.app(words, standalone_mode=False)

    said = "--{} cannot be used with --untrusted: the child process cannot write files or use the network"
    assert refusal(ol.ArgumentError, run("--run", tmp_path / "run")) == said.format("run")
    assert refusal(ol.ArgumentError, run("--log", "tensorboard:logs")) == said.format("log")
    assert refusal(ol.ArgumentError, run("--config", tmp_path / "train.toml")) == (
        "with --untrusted, the output path must be given by --save, not in the config file"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["train.toml"]


def test_training_in_the_child_is_counted_and_hands_its_file_over(tmp_path, monkeypatch):
    small, rows, path = small_classifier(), small_rows(), tmp_path / "run.safetensors"
    ol.save_model(ol.train(small.cost, rows, steps=1, batch_size=5, epochs=2, progress=False), path)
    numpy.savez(tmp_path / "rows.npz", **rows)  # type: ignore[arg-type]
    before, handed = path.read_bytes(), io.BytesIO()
    monkeypatch.setattr(output_file, "_handed", handed)
    main.app(["train", str(path), "--data", str(tmp_path / "rows.npz"), "--untrusted"], standalone_mode=False)
    monkeypatch.undo()
    assert path.read_bytes() == before
    model = ol.load_model(path, untrusted=True)
    ol.save_model(ol.train(model, rows, progress=False), tmp_path / "here.safetensors")
    assert handed.getvalue() == (tmp_path / "here.safetensors").read_bytes()
    model = replace(ol.load_model(path), limits=ol.RunLimits(ops=1))
    assert "more than 1 ops in one run" in refusal(ol.LimitError, lambda: ol.train(model, rows, progress=False))


def test_a_script_is_no_untrusted_program(tmp_path, monkeypatch):
    (tmp_path / "script.py").write_text("raise AssertionError('this ran')")
    monkeypatch.setattr(output_file, "_handed", io.BytesIO())
    run = lambda: main.app(["train", str(tmp_path / "script.py"), "--untrusted"], standalone_mode=False)  # noqa: E731
    assert refusal(ol.ArgumentError, run) == "--untrusted needs a saved program: a script is arbitrary Python code"


def test_what_the_child_could_reach_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(untrusted_run, "run_untrusted", lambda *_: Ended(0, "", b"", True))
    main.app(["check", str(tmp_path), "--untrusted"], standalone_mode=False)
    assert capsys.readouterr().err == "note: this system cannot isolate the network of a process, so the child process had network access\n"
