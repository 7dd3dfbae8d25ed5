"""A region of a plan that PyTorch's compiler has compiled, once for each way in which what it is given lies in memory."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch

from oarlock.backend.torch.private import compile_graph, fake_tensors, has_compiler, same_storage
from oarlock.errors import OarlockError, ProgramError
from oarlock.runtime.plan.by_signature import BySignature, Function
from oarlock.runtime.plan.regions import Region, Training

__all__ = ["CompiledRegion"]


class CompiledRegion(BySignature):
    """A region that is compiled.

    Before: `a = tanh_1(x)`, `b = exp_2(a)`. After: `[b] = region_3(None, x)`, where one loop computes both.

    The kernels of the ops, none in a variant that writes over something, are recorded on tensors without values, and what was recorded is
    compiled. What was recorded holds for a signature. No two inputs are one tensor where kernels are recorded, so it does not matter
    whether they are later. A result that shares memory with an input or another result, and does not where kernels compute it, is
    copied: the plan may write over it.

    Sums are rounded in another order, and what is computed of one number after another may be rounded less often.

    Kernels that cannot be recorded are run as they are.
    """

    def _make(self, context: Training, given: Sequence[Any]) -> Function:
        threads = torch.get_num_threads()
        made: list[Function] = []
        failed: list[Exception] = []

        def work() -> None:
            try:
                compiled = _compile(self._region, self._run, context, given, self._known, threads)
                made.append(compiled or self._by_kernels(context))
            except Exception as error:
                failed.append(error)

        thread = threading.Thread(target=work)  # here autograd's layers are left out, which record what kernels write over
        thread.start()
        thread.join()
        for error in failed:
            raise error
        return made[0]


def _compile(
    region: Region,
    run: Callable[[Training, Sequence[Any]], list[Any]],
    context: Training,
    given: Sequence[Any],
    known: Sequence[int],
    threads: int,
) -> Function | None:
    """One function for what is like `given`; None where the kernels cannot be recorded. Raises ProgramError."""
    from torch.fx.experimental.proxy_tensor import make_fx

    count, written = len(region.reads), len(region.writes)
    tensors, shapes = given[:count], given[count:]
    bools = {number: bool(given[number]) for number in known}
    left: list[torch.Size] = []
    shared: set[tuple[int, int]] = set()  # results and what they share memory with by nature: inputs, and the results after these

    def record(*tensors: torch.Tensor) -> list[torch.Tensor]:
        held = [torch.tensor(bools[number]) if number in bools else tensor for number, tensor in enumerate(tensors)]
        results = run(context, [*held, *shapes])
        left[:] = results[written:]
        return results[:written]

    with torch.no_grad():
        try:
            with fake_tensors() as mode:
                examples = [torch.empty_strided(each.shape, each.stride(), dtype=each.dtype, device=each.device) for each in tensors]
                results = record(*examples)
            shared.update(_sharing(results, examples, same_storage))
            graph = make_fx(record, tracing_mode="fake")(*examples)
        except Exception:  # what it is does not matter: the kernels will tell
            return None
        del results, mode
        try:
            _require_compiler(tensors)
            compiled = compile_graph(graph, [*examples], threads=threads)
            computed = compiled(*tensors)
        except OarlockError:
            raise
        except Exception as error:
            run(context, given)  # which raises where it is the op that fails
            raise ProgramError(
                f"PyTorch's compiler failed: {type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}",
                running=f"{region.ops[0].block.path}, ops {region.start} to {region.stop - 1} of its plan",
                hint='leave out backend="inductor": the plan computes the same',
            ) from error
    found = _sharing(computed, tensors, lambda tensor: tensor.untyped_storage().data_ptr())
    copied = sorted({number for number, other in found - shared})
    shapes_left = tuple(left)

    def function(*given: Any) -> Sequence[Any]:
        results = compiled(*given[:count])
        if copied:
            results = list(results)
            for number in copied:
                results[number] = results[number].clone()
        return [*results, *shapes_left] if shapes_left else results

    return function


def _sharing(
    results: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], memory: Callable[[torch.Tensor], int]
) -> set[tuple[int, int]]:
    """Each result that lies in the memory of an input, or of a result before it, with the number of that one: inputs come first."""
    found: set[tuple[int, int]] = set()
    lie = [memory(each) for each in inputs]
    for number, result in enumerate(results):
        mine = memory(result)
        if result.numel():
            found.update((number, other) for other, memory_of_other in enumerate(lie) if memory_of_other == mine)
        lie.append(mine)
    return found


def _require_compiler(tensors: Sequence[torch.Tensor]) -> None:
    """Raise ProgramError where PyTorch finds no C++ compiler, which it needs for what lies where the host does."""
    if any(tensor.is_cpu for tensor in tensors) and not has_compiler():
        raise ProgramError(
            "there is no C++ compiler here, by which PyTorch's compiler makes what runs",
            hint='install g++ or clang++, or name one in the environment variable CXX; or leave out backend="inductor"',
        )
