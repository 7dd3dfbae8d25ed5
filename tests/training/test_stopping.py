"""Ctrl-C while a run trains: it ends soon, nothing is torn, what was trained is returned and goes on."""

import signal
import sys
import threading
import time
from pathlib import Path
from random import Random
from typing import ClassVar

import pytest
from classifiers import small_classifier, small_rows
from interrupts.trying import prepare, try_once
from processes import run_python

import oarlock as ol
from oarlock.training import Interrupted, Stopping

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals as POSIX has them")


class Watching:
    """A display that does something at each step."""

    def __init__(self, at: int, act):
        self.at, self.act, self.steps, self.stopped = at, act, 0, 0

    def start(self, **_: object) -> None: ...

    def epoch(self, **_: object) -> None: ...

    def step(self, **_: object) -> None:
        self.steps += 1
        if self.steps == self.at:
            self.act()

    def stop(self) -> None:
        self.stopped += 1


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def train(display: object, epochs: int = 4) -> ol.TrainingResult:
    optimizer = ol.optimizer.Adam()
    cost = small_classifier(dropout=0.5).cost
    return ol.train(cost, small_rows(), optimizer=optimizer, batch_size=5, epochs=epochs, progress=display, tune=False)  # type: ignore[arg-type]


def state(result: ol.TrainingResult) -> dict[str, bytes]:
    return {name: result.parameters[name].numpy().tobytes() for name in result.parameters}


@pytest.fixture(autouse=True)
def _handlers():
    """The handlers are those from before, whatever happens, and no timer runs."""
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGALRM)
    yield
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGALRM)) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.mark.parametrize("at", [1, 3, 7])
def test_what_was_trained_until_an_interrupt_goes_on_to_the_same_bits(at):
    whole = train(False)
    display = Watching(at, interrupt)
    with pytest.raises(KeyboardInterrupt) as raised:
        train(display)
    assert isinstance(raised.value, Interrupted)
    assert str(raised.value) == f"interrupted after {at} steps; the training so far is the `result` of this exception"
    result = raised.value.result
    assert (result.steps, display.steps, display.stopped) == (at, at, 1)
    assert state(ol.train(result, small_rows(), progress=False, tune=False)) == state(whole)


def test_an_interrupt_at_the_last_step_is_not_lost():
    last = train(False).steps
    with pytest.raises(Interrupted) as raised:
        train(Watching(last, interrupt))
    assert raised.value.result.steps == last


def test_an_interrupt_that_a_library_drops_is_raised_again():
    """As Python does with what is raised in a finalizer: the third time, nothing catches it."""
    dropped = []

    def drop() -> None:
        interrupt()
        while len(dropped) < 3:
            try:
                time.sleep(60)
            except KeyboardInterrupt:
                dropped.append(time.monotonic())
        time.sleep(60)

    started = time.monotonic()
    with pytest.raises(Interrupted) as raised:
        train(Watching(2, drop))
    assert len(dropped) == 3
    assert time.monotonic() - started < 30
    assert raised.value.result.steps == 2


def test_an_interrupt_in_a_finalizer_is_raised_after_it():
    """Python would print it and forget it; pytest makes that an error."""

    class Finalized:
        def __del__(self) -> None:
            interrupt()
            interrupt()
            ended.append(True)

    ended: list[bool] = []
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt), Stopping():
        Finalized()
        assert ended == [True]
        time.sleep(60)
    assert time.monotonic() - started < 30


def test_a_second_interrupt_is_raised_at_once():
    def twice() -> None:
        interrupt()
        interrupt()
        time.sleep(60)

    started = time.monotonic()
    with pytest.raises(Interrupted):
        train(Watching(2, twice))
    assert time.monotonic() - started < 30


def test_without_patience_an_interrupt_is_raised_at_once_and_one_that_was_dropped_when_the_block_ends():
    with pytest.raises(KeyboardInterrupt), Stopping(patience=0.0):
        interrupt()
        pytest.fail("this is not reached")
    reached = False
    with pytest.raises(KeyboardInterrupt), Stopping(patience=0.0):
        try:
            interrupt()
        except KeyboardInterrupt:
            reached = True
    assert reached


def test_a_handler_of_the_programs_own_stays():
    heard = []
    before = signal.signal(signal.SIGINT, lambda *_: heard.append("interrupt"))
    try:
        assert train(Watching(2, interrupt)).steps == train(False).steps
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == ["interrupt"]


def test_in_another_thread_nothing_is_set_up():
    results: list[ol.TrainingResult] = []
    thread = threading.Thread(target=lambda: results.append(train(False)))
    thread.start()
    thread.join()
    assert results[0].steps > 0


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # outside of `Stopping`, Python forgets what a finalizer raises
def test_interrupts_at_random_moments_of_training_leave_whole_steps():
    random, scope, cost, epochs = Random(0), ol.Scope(), small_classifier(dropout=0.5).cost, 100
    adam = ol.optimizer.Adam()

    class Recording(Watching):
        states: ClassVar[dict[int, dict[str, bytes]]] = {}

        def step(self, **_: object) -> None:
            self.steps += 1
            self.states[self.steps] = {name: scope[name].numpy().tobytes() for name in scope}

    def once(display: object, **options: object) -> ol.TrainingResult:
        return ol.train(cost, small_rows(), optimizer=adam, batch_size=5, epochs=epochs, progress=display, tune=False, **options)  # type: ignore[arg-type]

    started = time.monotonic()
    once(Recording(0, None), scope=scope)
    whole, met = time.monotonic() - started, set()
    for _ in range(25):
        main = threading.main_thread().ident
        timer = threading.Timer(random.uniform(0.0, whole), lambda: signal.pthread_kill(main, signal.SIGINT))  # type: ignore[arg-type] # noqa: B023
        result = None
        try:
            timer.start()
            once(False)
            timer.join()
            time.sleep(0.01)
        except Interrupted as raised:
            result = raised.result
        except KeyboardInterrupt:  # before the first step, or after the last
            pass
        timer.join()
        if result is not None and result.steps:
            met.add(result.steps)
            kept = state(result)
            kept.pop("@EPOCH", None)  # what the epoch has come to so far, which goes on with the run
            assert kept == Recording.states[result.steps]
    assert len(met) > 3


# The command


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    prepared = tmp_path_factory.mktemp("interrupted")
    prepare(prepared)
    return prepared


@pytest.mark.parametrize("after", [0.05, 1.0, 3.0, 5.0])
def test_the_command_ends_soon_after_an_interrupt_and_leaves_a_whole_file(after, folder):
    """`python -m interrupts` does so at many moments; here the machine may be busy, so that more time is given."""
    assert try_once(folder, after, patience=20).fault == ""


@pytest.mark.skipif(sys.platform != "linux", reason="untrusted files can only be run on Linux")
def test_a_strangers_program_that_is_interrupted_while_it_trains_leaves_a_whole_file_too(folder):
    """Its progress is not shown meanwhile: it is tried later and later, until it trains."""
    outcomes = []
    for after in (3.0, 6.0, 12.0, 24.0):
        tried = try_once(folder, after, patience=20, options=["--untrusted"])
        assert tried.fault == ""
        outcomes.append(tried.outcome)
        if outcomes[-1] == "while it trained":
            break
    assert outcomes[-1] == "while it trained", outcomes


SCRIPT = """
import signal
import oarlock as ol
from classifiers import small_classifier, small_rows

class Display:
    steps = 0
    def start(self, **_): pass
    def stop(self): pass
    def epoch(self, **_): pass
    def step(self, **_):
        self.steps += 1
        if self.steps == 3:
            signal.raise_signal(signal.SIGINT)

ol.train(small_classifier().cost, small_rows(), batch_size=5, epochs=9, progress=Display())
"""


def test_a_script_that_is_interrupted_leaves_what_it_trained_and_is_told_how_to_go_on(tmp_path):
    (tmp_path / "model.py").write_text(SCRIPT)
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent.parent)!r}); sys.argv = ['oarlock', 'train', 'model.py']\n"
    code += "from oarlock.cli.entry import run\ntry:\n    run()\nexcept SystemExit as ended:\n    print(ended.code)"
    assert run_python(code, tmp_path) == (
        "\ninterrupted after 3 steps; saved model.interrupted.safetensors\n"
        "Next: oarlock train model.interrupted.safetensors --data DATA, where DATA is a .npz file of the training data, "
        "or digits:train\n130\n"
    )
    model = ol.load_model(tmp_path / "model.interrupted.safetensors")
    assert ol.train(model, small_rows(), progress=False, tune=False).steps > 3
