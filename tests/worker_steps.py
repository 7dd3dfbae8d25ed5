"""Steps of several workers, which are threads, beside the same steps of one that has the rows of all."""

from collections.abc import Callable, Mapping, Sequence

import numpy
from thread_workers import run_together

import oarlock as ol
from oarlock.passes import data_parallel

__all__ = ["Batches", "Steps", "require_equal", "require_same", "steps_alone", "steps_together", "with_whole_state"]

Batches = Sequence[Sequence[dict]]
"""For each step, what each worker is fed."""

Steps = tuple[list, dict[str, numpy.ndarray]]
"""The values of the targets, step by step, and the persistable variables in the end."""


def _joined(feeds: Sequence[dict]) -> dict:
    """The feeds of all workers as one."""
    whole = {}
    for name in feeds[0]:
        items = [feed[name] for feed in feeds]
        whole[name] = [row for item in items for row in item] if isinstance(items[0], list) else numpy.concatenate(items)
    return whole


def _steps(program: ol.Program, feeds: Sequence[dict], executor: ol.Executor) -> Steps:
    scope = ol.Scope()
    ol.init(program, scope)
    values = [executor.run(program, feed, list(program.targets), scope=scope) for feed in feeds]
    return values, {var.name: numpy.asarray(scope[var.name]) for var in program.persistables()}


def steps_alone(build: Callable[[], ol.Program], batches: Batches, *, interpret: bool = False) -> Steps:
    return _steps(build(), [_joined(feeds) for feeds in batches], ol.Executor(interpret=interpret))


def steps_together(
    build: Callable[[], ol.Program], batches: Batches, *, interpret: bool = False, rewrite: Callable[[ol.Program], object] = data_parallel
) -> list[Steps]:
    """The same of each worker, where the program is rewritten for workers."""

    def work(workers) -> Steps:
        program = build()
        rewrite(program)
        return _steps(program, [feeds[workers.index] for feeds in batches], ol.Executor(interpret=interpret, workers=workers))

    return run_together(len(batches[0]), work)


def require_same(alone: Steps, together: Sequence[Steps], within: float = 1e-12) -> None:
    """Raise AssertionError where a worker has other targets than one worker, in any step, or other parameters and state in the end."""
    values, state = alone
    for others, own in together:
        for expected, found in zip(values, others, strict=True):
            for one, other in zip(expected, found, strict=True):
                numpy.testing.assert_allclose(other, one, rtol=within, atol=within)
        for name, value in state.items():
            numpy.testing.assert_allclose(own[name], value, rtol=within, atol=within, err_msg=name)


def require_equal(build: Callable[[], ol.Program], batches: Batches) -> None:
    """The same, of plans and of the interpreter."""
    for interpret in (True, False):
        require_same(steps_alone(build, batches, interpret=interpret), steps_together(build, batches, interpret=interpret))


def with_whole_state(together: Sequence[Steps], kept: Mapping[str, tuple[int, ...]]) -> list[Steps]:
    """The steps of each worker, with what is kept in shares put together."""
    whole = {}
    for name, shape in kept.items():
        elements, shares = int(numpy.prod(shape)), [state[name] for _, state in together]
        assert {share.shape for share in shares} == {(-(-elements // len(shares)),)}
        whole[name] = numpy.concatenate(shares)[:elements].reshape(shape)
    return [(values, {**state, **whole}) for values, state in together]
