"""`data_parallel`, `tensor_parallel`: the program that several workers run together, each on its own rows, or on the same ones."""

from collections.abc import Mapping
from types import MappingProxyType

from oarlock.errors import ArgumentError, ProgramError
from oarlock.ir.location import here
from oarlock.ir.program import Program
from oarlock.ir.traversal import walk
from oarlock.ir.var import Var
from oarlock.passes.parallel.analysis import Analysis
from oarlock.passes.parallel.input_rows import placements_of_inputs
from oarlock.passes.parallel.local_statistics import keep_statistics_local
from oarlock.passes.parallel.placement import REPLICATED, Placement, shares
from oarlock.passes.parallel.writing import Way, Writing
from oarlock.registry.catalogue import standard
from oarlock.registry.range_check import require_count

__all__ = ["data_parallel", "tensor_parallel"]

_BUCKET = 25.0  # MiB; PyTorch's DistributedDataParallel takes as much


def data_parallel(program: Program, *, bucket_megabytes: float = _BUCKET, sync_batch_norm: bool = True, rows: str | None = None) -> int:
    """Let several workers run `program` together, each on rows of its own; return how many collective ops it has then.

    Before                                   After
        loss: float[n] = ...                     loss: float[n] = ...
        cost = mean(loss)                        total = all_reduce(reduce_sum(loss))
                                                 cost = divide(total, rows of all workers)
        w@GRAD = linear_dw(x, dy)                w@GRAD = all_reduce(linear_dw(x, dy))
        w@NEXT = sgd(w, w@GRAD, rate)            w@NEXT = sgd(w, w@GRAD, rate)

    It computes, within rounding, what one worker would of the rows of all, laid one after another in the order of the workers: a mean is
    over all of them, however many each has, none too; batch normalization takes the statistics of all, dropout drops what it would drop
    there. Parameters, their state and metrics are the same bits on every worker.

    Each worker is fed its own rows of the inputs that have rows, and the same as the others of all other inputs. `rows` is the size that
    counts them, along whichever axis: by default a size that leads an input, and of two such sizes of one input, as in [t, n, d], `n`.
    A fetch of rows gives the worker's own, numbered from 0 where they are numbers of rows; a fetch of a sum over rows, such as a cost,
    the sum over all workers. A sum that only other sums read is not exchanged: its part on each worker is called `NAME.part`, and fetching
    `NAME` raises UndefinedVarError, unless it is a target.

    Legal for every program: each variable is replicated, sharded by rows or a partial sum, as the signatures of the operators tell (Xu et
    al., 2021, "GSPMD"), and what no rule covers is computed whole by every worker, on gathered inputs. Gradients are summed in buckets of
    at most `bucket_megabytes`, as soon as they are there. Call it after `minimize`, once; `program` is changed. Raises ProgramError for a
    program that exchanges tensors already, has no rows, or has an input whose rows are not clear, ArgumentError for what is no program and
    for `rows` that no input has.

    Without `sync_batch_norm`, batch normalization takes the statistics of each worker's rows alone, and nobody waits for the others there;
    the running statistics move by the mean of the workers that have rows. That is no longer what one worker computes.
    """
    _require_undivided(program, "data_parallel")
    if not bucket_megabytes > 0:
        raise ArgumentError(f"bucket_megabytes is a number above 0, not {bucket_megabytes!r:.40}", location=here())
    ways: dict[str, Way] = {} if sync_batch_norm else {"sync_batch_norm": keep_statistics_local}
    return _write(program, placements_of_inputs(program, rows), bucket_megabytes, ways)


def tensor_parallel(program: Program, *, workers: int) -> int:
    """Divide the parameters of `program` that are declared in shares between `workers`; return how many collective ops it has then.

    Before                                        After, of 4 workers
        parameter a.w: [8, 64] shard(axis=1)          parameter a.w: [8, 16] shard(axis=1, workers=4)
        h: [n, 64] = linear(x, a.w)                   h: [n, 16] = linear(x, a.w)
        r: [n, 64] = relu(h)                          r: [n, 16] = relu(h)
        parameter b.w: [64, 8] shard(axis=0)          parameter b.w: [16, 8] shard(axis=0, workers=4)
        y: [n, 8] = linear(r, b.w)                    y: [n, 8] = all_reduce(linear(r, b.w))

    All workers are fed the same, and compute, within rounding, what one would. Each holds its share of these parameters and of what an
    optimizer keeps beside them, and computes of the rest what it needs for that. What is in shares, and is needed whole, is gathered.

    Legal for every program: how values follow from shares is told by the signatures of the operators (Shoeybi et al., 2019, "Megatron-LM",
    are the pattern; Xu et al., 2021, "GSPMD", the way), and what no rule covers is computed by every worker on whole values. Call it after
    `minimize`, once; `program` is changed. Raises ProgramError for a program that exchanges tensors already, or declares no shares, or
    where `workers` do not divide what they are to share; ArgumentError for what is no program, or no number of workers.
    """
    _require_undivided(program, "tensor_parallel")
    count = require_count("tensor_parallel: workers", workers)
    given = placements_of_parameters(program, count)
    if not given:
        raise ProgramError(
            "no parameter of this program is declared in shares",
            location=here(),
            hint='ol.layer.fc(x, 4096, shard="columns") declares one; ol.passes.data_parallel divides the rows of every program',
        )
    return _write(program, given | dict.fromkeys(program.main.inputs, REPLICATED), _BUCKET)


def _require_undivided(program: object, name: str) -> None:
    if not isinstance(program, Program):
        raise ArgumentError(f"{name} takes a program, not {program!r:.60}", location=here())
    if any(operator.effects == "collective" or operator.on_workers for operator in (standard.get(op.type) for op in walk(program.main))):
        raise ProgramError("the workers of this program exchange tensors already", location=here(), hint=f"call {name} once")


def _write(program: Program, given: dict[Var, Placement], bucket_megabytes: float, ways: Mapping[str, Way] = MappingProxyType({})) -> int:
    analysis = Analysis(standard)
    analysis.run(program.main, given)
    return Writing(program, analysis, int(bucket_megabytes * 2**20), ways).run()


def placements_of_parameters(program: Program, workers: int) -> dict[Var, Placement]:
    """Where what is declared in shares is. Raises ProgramError where so many workers do not divide it, or it is divided already."""
    found: dict[Var, Placement] = {}
    for var in program.persistables():
        if var.sharding is None:
            continue
        axis, already = var.sharding
        size: int = (var.shape or ())[axis]  # type: ignore[assignment]
        if already:
            raise ProgramError(f'"{var.name}" is divided between workers already', location=here(), given=[var.describe()])
        if size % workers:
            raise ProgramError(
                f'"{var.name}" is to be in equal shares along axis {axis}, and {workers} workers do not divide {size}',
                location=here(),
                given=[var.describe()],
                hint=f"{size + -size % workers} is the next size that they divide",
            )
        found[var] = shares(axis, workers)
    return found
