"""A child of `fork()`: its parent's threads are not in it, and it computes without them."""

import os
from pathlib import Path

import pytest
from processes import run_forked

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

PROGRAM = """
import os, signal, sys, time, warnings
import numpy, torch
import oarlock as ol
warnings.simplefilter("ignore")  # Python 3.12 and later warn of forks beside threads, which this is about
torch.set_num_threads(4)
with ol.Program(seed=0) as program:
    x = ol.layer.data("x", [512])
    y = ol.layer.mean(ol.layer.fc(ol.layer.fc(x, 512, act="tanh"), 512))
feed = {"x": numpy.ones((512, 512), "float32")}
executor, scope = ol.Executor(), ol.Scope()

def step():
    return executor.run(program, feed, [y], scope=scope)[0]

def fork(child):
    number = os.fork()
    if number == 0:
        try:
            child()
        except BaseException as error:
            print(f"{type(error).__name__}: {error}")
        sys.stdout.flush()
        os._exit(0)
    end = time.monotonic() + 60
    while not os.waitpid(number, os.WNOHANG)[0]:
        if time.monotonic() > end:
            os.kill(number, signal.SIGKILL)
            os.waitpid(number, 0)
            print("the child hangs")
            return
        time.sleep(0.02)
"""


def say(code: str, folder: Path) -> str:
    return run_forked(PROGRAM + code, folder)


def test_a_child_that_is_forked_after_a_run_computes_with_one_thread(tmp_path):
    code = """
ol.init(program, scope)
before = step()
fork(lambda: print(abs(step() - before) < 1e-5, torch.get_num_threads()))
fork(lambda: fork(lambda: print(abs(step() - before) < 1e-5, torch.get_num_threads())))
print(torch.get_num_threads(), step() == before)
"""
    assert say(code, tmp_path) == "True 1\nTrue 1\n4 True\n"


@pytest.mark.parametrize("first", ["ol.init(program, scope)", "ol.configure_process(threads=4, keep_memory=False)"])
def test_a_child_that_is_forked_after_anything_was_computed_does_not_hang(first, tmp_path):
    assert say(f"{first}\nfork(lambda: print(ol.init(program, scope) is scope, step().shape))", tmp_path) == "True ()\n"


def test_a_child_that_is_forked_before_anything_was_computed_has_threads_of_its_own(tmp_path):
    code = "fork(lambda: print(ol.init(program, scope) is scope, step().shape, torch.get_num_threads()))"
    assert say(code, tmp_path) == "True () 4\n"


def test_a_child_that_trains_with_a_pool_of_processes_does_not_hang(tmp_path):
    code = """
import multiprocessing
ol.init(program, scope)
step()
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(len(pool.map(abs, [1.0, 2.0])), pool.apply_async(step).get(60).shape)
"""
    assert say(code, tmp_path) == "2 ()\n"


@pytest.mark.parametrize("beside", ["executor.run(program, feed, [y], scope=scope)", "[ol.init(program, ol.Scope()) for _ in range(20)]"])
def test_a_child_that_is_forked_while_another_thread_runs_goes_on_from_a_whole_step(beside, tmp_path):
    code = f"""
from threading import Event, Thread
with program:
    ol.optimizer.SGD(1e-3).minimize(y)
ol.init(program, scope)
step()
done = Event()
def train():
    while not done.is_set():
        {beside}
thread = Thread(target=train)
thread.start()
def child():
    steps = int(scope["@STEP"])
    step()
    inner = scope.new_scope()
    inner.set("a", 1.0)
    print(int(scope["@STEP"]) - steps, ol.init(program, ol.Scope()) is scope)
for _ in range(4):
    time.sleep(0.03)
    fork(child)
done.set()
thread.join()
"""
    assert say(code, tmp_path) == "1 False\n" * 4


def test_a_child_without_its_parents_threads_cannot_ask_for_them(tmp_path):
    code = "ol.init(program, scope)\nfork(lambda: (ol.configure_process(threads=1, keep_memory=False), ol.configure_process(threads=2)))"
    assert say(code, tmp_path) == (
        "ArgumentError: configure_process: cannot use 2 threads in a child of fork(), which lost the thread pool of its parent\n"
        "  <string>:34 in <lambda>\n"
        '  Try: use multiprocessing.get_context("spawn"), or fork before computing anything    (oarlock explain ArgumentError)\n'
    )
