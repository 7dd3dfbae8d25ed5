"""`ol.configure_process`: what it sets holds in the kernels of this thread and of the pool. Each test has a process of its own."""

import sys
from pathlib import Path

import pytest
from processes import run_forked, run_oarlock, run_python

import oarlock as ol
from oarlock.runtime import process

ROWS = 2**20  # so many that a kernel is divided among threads

HALVED = f"""
import torch, oarlock as ol
with ol.Program() as program:
    y = ol.layer.data("x", shape=[]) * 0.5
def denormals():
    x = torch.full(({ROWS},), torch.finfo(torch.float32).tiny)
    (value,) = ol.Executor().run(program, {{"x": x}}, [y], scope=ol.Scope(), return_numpy=False)
    return (value.view(torch.int32) != 0).sum().item()
torch.set_num_threads(2)
"""


def test_denormals_are_flushed_in_this_thread_and_in_the_pool(tmp_path):
    code = "settings = ol.configure_process(threads=2); print(denormals(), settings)"
    expected = f"flushes_denormals=True, pool_flushes_denormals=True, threads=2, keeps_memory={sys.platform == 'linux'}"
    assert run_forked(HALVED + code, tmp_path) == f"0 ProcessSettings({expected})\n"


def test_a_thread_that_is_started_later_flushes_too(tmp_path):
    code = "ol.configure_process()\nfrom threading import Thread\n"
    code += "thread = Thread(target=lambda: print(denormals())); thread.start(); thread.join()"
    assert run_forked(HALVED + code, tmp_path) == "0\n"


def test_a_pool_that_runs_already_keeps_its_denormals_and_the_result_says_so(tmp_path):
    code = "before = denormals(); settings = ol.configure_process(); print(before, denormals(), settings)"
    before, after, settings = run_forked(HALVED + code, tmp_path).split(maxsplit=2)
    assert int(before) == ROWS
    assert 0 < int(after) < ROWS
    assert "(flushes_denormals=True, pool_flushes_denormals=False, threads=2," in settings


def test_importing_changes_nothing(tmp_path):
    code = "import oarlock.layer, oarlock.training.trainer, oarlock.cli.train, torch; ol.configure_process; print(denormals())"
    assert run_python(HALVED + code, tmp_path) == f"{ROWS}\n"


TRAINED = """
cost = ol.layer.mean(ol.op.square(ol.layer.fc(ol.layer.data("z", shape=[2]), 1)))
ol.train(cost, {"z": torch.ones(1, 2).numpy()}, progress=False, tune=%s)
print(denormals())
"""


@pytest.mark.parametrize(("tune", "left"), [(True, 0), (False, ROWS)])
def test_training_tunes_its_process_unless_told_not_to(tmp_path, tune, left):
    assert run_forked(HALVED + TRAINED % tune, tmp_path) == f"{left}\n"


def test_a_script_that_the_command_line_runs_is_tuned(tmp_path):
    (tmp_path / "script.py").write_text(HALVED + "print(denormals())", encoding="utf-8")
    done = run_oarlock(tmp_path, "train", "script.py")
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr


# Memory

FREED = """
import re, torch, oarlock as ol
def resident():
    return int(re.search(r"VmRSS:\\s+(\\d+)", open("/proc/self/status").read())[1]) // 1024
settings = ol.configure_process(keep_memory=%s)
before = resident()
block = torch.ones(2**26)
del block
print(settings.keeps_memory, resident() - before > 200)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's allocator")
@pytest.mark.parametrize("keep", [True, False])
def test_freed_memory_stays_in_the_process_where_it_is_asked_for(tmp_path, keep):
    assert run_forked(FREED % keep, tmp_path) == f"{keep} {keep}\n"


ADVISED = """
import re, torch, oarlock as ol
def resident():
    return int(re.search(r"VmRSS:\\s+(\\d+)", open("/proc/self/status").read())[1]) // 1024
def large_pages(tensor):
    middle = tensor.data_ptr() + tensor.nbytes // 2
    for mapping in re.split(r"\\n(?=[0-9a-f]+-)", open("/proc/self/smaps").read()):
        first, last = (int(end, 16) for end in mapping.split(maxsplit=1)[0].split("-"))
        if first <= middle < last:
            return " hg " in mapping
before = resident()
for _ in range(2):
    ol.configure_process(keep_memory=%s)
taken = resident() - before
print(large_pages(torch.empty(2**24)), taken < 64)
"""


@pytest.mark.skipif(not Path("/sys/kernel/mm/transparent_hugepage").exists(), reason="a system with large pages, and glibc's allocator")
@pytest.mark.parametrize("keep", [True, False])
def test_memory_that_is_kept_comes_in_large_pages_and_none_is_taken_before_it_is_used(tmp_path, keep):
    assert run_forked(ADVISED % keep, tmp_path) == f"{keep} True\n"


def test_a_system_without_glibc_keeps_nothing(monkeypatch):
    monkeypatch.setattr(process.sys, "platform", "darwin")
    assert not process._keep_memory()


# Threads


def test_a_number_of_threads_is_taken_and_kept(tmp_path):
    code = "import oarlock as ol; configure = ol.configure_process; "
    code += "print(configure(threads=3).threads, configure().threads, configure(threads=1).threads)"
    assert run_forked(code, tmp_path) == "3 3 1\n"


def test_threads_are_no_more_than_cores_and_than_a_containers_share_of_them(tmp_path, monkeypatch):
    monkeypatch.setattr(process, "_CPUS", tmp_path)
    monkeypatch.setattr(process, "_QUOTA", tmp_path / "cpu.max")
    monkeypatch.setattr(process.os, "sched_getaffinity", lambda _: {0, 1, 2, 4, 5, 6}, raising=False)
    assert process._cores() == 6  # nothing says which are one core
    for number in range(8):
        (tmp_path / f"cpu{number}/topology").mkdir(parents=True)
        (tmp_path / f"cpu{number}/topology/thread_siblings_list").write_text(f"{number % 4},{number % 4 + 4}\n", encoding="ascii")
    assert process._cores() == 3  # 0 and 4, 1 and 5, 2 and 6
    for share, cores in (("max 100000", 3), ("150000 100000", 2), ("1000000 100000", 3), ("10000 100000", 1)):
        (tmp_path / "cpu.max").write_text(share, encoding="ascii")
        assert process._cores() == cores, share


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"])
def test_a_number_of_threads_is_a_whole_number_from_1(threads):
    with pytest.raises(ol.errors.ArgumentError, match="configure_process: threads must be an integer >= 1"):
        ol.configure_process(threads=threads)
