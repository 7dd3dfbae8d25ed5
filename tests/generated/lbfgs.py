"""L-BFGS around the loops and branches of a program: it evaluates them again in a loop of its own, and goes where PyTorch's goes."""

from random import Random

import numpy
import torch
from tolerances import GENERATED_GRADIENTS

import oarlock as ol
from generated.evaluator import evaluate
from generated.making import Case
from generated.running import Arrays, DisagreementError, feed_of, require_close, scope_of
from oarlock.ir.traversal import walk
from oarlock.passes.pipeline import PASSES

__all__ = ["check_lbfgs"]

ITERATIONS = 2
RATE = 0.1


def check_lbfgs(case: Case, random: Random) -> bool:
    """Take a step of a program's parameters; return whether it has any. Raises DisagreementError.

    The step is compared with that of `torch.optim.LBFGS` on another evaluator, by the interpreter, without passes, with all of them
    and with a random subset. What draws random numbers is left out.
    """
    program = case.program.clone()
    with program:
        parts = [ol.op.reduce_sum(ol.op.square(program.main.var(name))) for name, _ in case.targets]
        cost = ol.op.multiply(ol.op.sum(parts), ol.op.full(shape=(), value=0.05, dtype="float64"))
    data, search = program.to_bytes(source=False), random.choice((None, "strong_wolfe"))
    wanted = [var for var in program.parameters() if var.trainable]
    pairs = [(var, gradient) for var, gradient in zip(wanted, ol.gradients([cost], wanted), strict=True) if gradient is not None]
    if not pairs or any(op.type == "dropout" for op in walk(program.main)):
        return False
    ol.optimizer.LBFGS(RATE, iterations=ITERATIONS, line_search=search).apply(pairs, cost)
    read = ol.Program.from_bytes(program.to_bytes(source=False))  # which verifies it
    if read.to_text(source=False) != program.to_text(source=False):
        raise DisagreementError("L-BFGS", "it is written and read as another program")
    names = [var.name for var, _ in pairs]
    try:
        expected = _by_torch(data, case.arrays, names, cost.name, search)
    except (LookupError, ValueError, RuntimeError):  # other parameters lead where values are refused
        return False
    some = tuple(name for name in PASSES if random.random() < 0.5)
    executors = {
        "by the interpreter": ol.Executor(interpret=True, check=True),
        "without passes": ol.Executor(passes=(), poison=True),
        "with all passes": ol.Executor(poison=True),
        f"with {', '.join(some)}": ol.Executor(passes=some, poison=True),
    }
    for what, executor in executors.items():
        scope = scope_of(program, case.arrays)
        executor.run(program, feed_of(program, case.arrays), [cost.name], scope=scope, training=True)
        for name in names:
            require_close("L-BFGS", f'"{name}" {what}', scope[name].numpy(), expected[name], GENERATED_GRADIENTS)  # type: ignore[attr-defined]
    return True


def _by_torch(data: bytes, arrays: Arrays, names: list[str], cost: str, search: str | None) -> dict[str, numpy.ndarray]:
    """The parameters after a step of PyTorch's optimizer, whose closure is the other evaluator."""
    parameters = {name: torch.tensor(arrays[name], dtype=torch.float64, requires_grad=True) for name in names}
    optimizer = torch.optim.LBFGS(list(parameters.values()), lr=RATE, max_iter=ITERATIONS, history_size=10, line_search_fn=search)

    def closure() -> torch.Tensor:
        moved = {**arrays, **{name: value.detach().numpy().copy() for name, value in parameters.items()}}
        found = evaluate(data, moved, {cost: numpy.ones(())}, names)
        for name, value in parameters.items():
            gradient = found.gradients[name]
            value.grad = torch.zeros_like(value) if gradient is None else gradient.detach().reshape(value.shape)
        return found.values[cost].detach()

    optimizer.step(closure)  # type: ignore[arg-type]
    return {name: value.detach().numpy() for name, value in parameters.items()}
