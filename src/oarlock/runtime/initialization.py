"""Give the persistable variables of a program their first values."""

import math
from collections.abc import Callable, Collection

import torch

from oarlock.errors import LimitError, ProgramError
from oarlock.ir.location import here
from oarlock.ir.program import Program
from oarlock.ir.var import HeldValue, Var
from oarlock.proto.limits import Limits
from oarlock.runtime import random
from oarlock.runtime.declaration_check import require_declared
from oarlock.runtime.first_matrices import MATRICES, truncated_normal
from oarlock.runtime.fork import note_threads
from oarlock.runtime.ownership import own, require_own, states_of
from oarlock.runtime.scope import Scope
from oarlock.runtime.value import to_tensor
from oarlock.runtime.workers import Workers, current_workers
from oarlock.tensor.dtype import from_bytes, to_torch

__all__ = ["init", "initial_value"]

_AT_ONCE = 2**14  # elements that are drawn together: what that takes, in float64 and int64, stays in the cache


def init(
    program: Program,
    scope: Scope,
    *,
    overwrite: bool = False,
    limits: Limits | None = None,
    only: Collection[Var] | None = None,
    workers: Workers | None = None,
) -> Scope:
    """Fill what `scope` lacks of the program's parameters and state, or of those of them that are in `only`; return `scope`.

    Each value follows from the program's seed and the variable's name, so the order plays no part. What has
    a value keeps it unless `overwrite`. Of what a program divides between workers, `init` gives the share of this one of `workers`, those
    that the process has joined unless others are given: it is drawn whole first, so that all shares are what one process would have.

    Raises ShapeError or DTypeError, before anything is filled, where a value that is there
    does not have its variable's shape and dtype; LimitError, too, for more bytes than `limits` allow; ScopeError where `scope`
    holds the state of another program's optimizer; that of a scope around it stays there, and this program gets its own. ProgramError for a
    program that is divided between another number of workers.
    """
    note_threads()
    named = None if only is None else set(only)
    chosen = [var for var in program.persistables() if named is None or var in named]
    states = set(states_of(program)).intersection(chosen)
    if not overwrite:
        require_own(program, scope, states)
    workers = current_workers() if workers is None else workers
    missing = []
    for var in chosen:
        found = scope.find_var(var.name)
        if found is not None and var in states and found is not scope.find_local_var(var.name) and found.owner != program.lineage:
            found = None  # a scope around it trains another program
        if found is None or not found.is_set or overwrite:
            missing.append(var)
            continue
        require_declared(var, found.settle(var.dtype), at_meta=True)  # where it is to be run, nobody knows
    require_divided_between(workers, chosen)
    _require_few_bytes(missing, limits or Limits())
    values = {var: initial_value(var, program.seed, workers.index) for var in missing}
    for var, value in values.items():
        scope.var(var.name).give(value, own=not isinstance(var.initializer, HeldValue))  # what others hold too is copied where it changes
    for var in chosen:
        found = scope.find_var(var.name) if var.trainable else None
        if found is not None:
            found.expect_training()
    own(program, scope, states)
    return scope


def _require_few_bytes(vars: list[Var], limits: Limits) -> None:
    """Raise LimitError where values would take more bytes than is allowed. Those that somebody holds already take none."""
    total = 0
    for var in vars:
        if isinstance(var.initializer, HeldValue):
            continue
        total += math.prod(size for size in var.whole_shape or () if isinstance(size, int)) * var.dtype.itemsize
        if total > limits.parameter_bytes:
            raise LimitError(
                f'"{var.name}": {total:,} parameter bytes, where {limits.parameter_bytes:,} are allowed',
                given=[var.describe()],
                hint="limits=Limits(parameter_bytes=...)",
            )


def require_divided_between(workers: Workers, vars: Collection[Var]) -> None:
    """Raise ProgramError where a variable is divided between another number of workers than there are."""
    for var in vars:
        if var.sharding is not None and var.sharding.workers not in (0, workers.count):
            raise ProgramError(
                f'"{var.name}" is divided between {var.sharding.workers} workers, and there {"are" if workers.count > 1 else "is"} '
                f"{workers.count}",
                location=here(),
                given=[var.describe()],
                hint=f"ol.passes.tensor_parallel(program, workers={workers.count}), applied to the program as it was written",
            )


def initial_value(var: Var, seed: int, worker: int = 0) -> torch.Tensor:
    """The initial value of `var`, of one that workers divide the share of this `worker`; a held one itself, which nobody may write to.

    Raises ProgramError where it has no initializer, or an unknown one.
    """
    sharding = var.sharding
    if sharding is None or not sharding.workers:
        return _whole_value(var, var.shape, seed)  # type: ignore[arg-type]
    if var.initializer is not None and var.initializer.type == "constant":
        return _whole_value(var, var.shape, seed)  # type: ignore[arg-type]
    size: int = var.shape[sharding.axis]  # type: ignore[index, assignment]
    whole = _whole_value(var, sharding.whole(var.shape), seed)  # type: ignore[arg-type]
    return whole.narrow(sharding.axis, worker * size, size).clone()


def _whole_value(var: Var, shape: tuple[int, ...], seed: int) -> torch.Tensor:
    initializer = var.initializer
    if initializer is None:
        raise ProgramError(f'"{var.name}" has no initializer', given=[var.describe()], hint=f'scope.set("{var.name}", value)')
    if isinstance(initializer, HeldValue):
        return to_tensor(initializer.attributes["value"])
    dtype = to_torch(var.dtype)
    attributes = initializer.attributes
    key = random.key_of(seed, "initial", var.name)
    try:
        if initializer.type == "constant":
            value = attributes["value"]
            return torch.full(shape, value if var.dtype.is_inexact else int(value), dtype=dtype)  # type: ignore[arg-type, call-overload]
        if initializer.type in ("uniform", "normal") and dtype.is_complex:
            other = random.key_of(seed, "initial", var.name, "imaginary")
            return _complex(initializer.type, shape, dtype, (key, other), **attributes)  # type: ignore[arg-type]
        if initializer.type in ("uniform", "normal"):
            return _DRAWN[initializer.type](shape, dtype, key, **attributes)  # type: ignore[arg-type]
        if initializer.type == "truncated_normal":
            return _drawn(shape, dtype, lambda count, start: truncated_normal((count,), key, start=start, **attributes))  # type: ignore[arg-type]
        if initializer.type in MATRICES:
            return MATRICES[initializer.type](shape, key, **attributes).to(dtype)
        if initializer.type == "array":
            return _array(attributes["data"], attributes["shape"], dtype)  # type: ignore[arg-type]
    except (KeyError, TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise ProgramError(f'"{var.name}" has an initializer that does not fit it: {error}', given=[var.describe()]) from error
    raise ProgramError(f'"{var.name}" has an unknown initializer "{initializer.type}"', given=[var.describe()])


def _uniform(shape: tuple[int, ...], dtype: torch.dtype, key: int, *, low: float, high: float) -> torch.Tensor:
    return _drawn(shape, dtype, lambda count, start: random.uniform((count,), key, start=start) * (high - low) + low)


def _normal(shape: tuple[int, ...], dtype: torch.dtype, key: int, *, mean: float, deviation: float) -> torch.Tensor:
    whole = math.prod(shape)
    return _drawn(shape, dtype, lambda count, start: random.normal((count,), key, start=start, whole=whole) * deviation + mean)


_DRAWN: dict[str, Callable[..., torch.Tensor]] = {"uniform": _uniform, "normal": _normal}


def _complex(kind: str, shape: tuple[int, ...], dtype: torch.dtype, keys: tuple[int, int], **attributes: float) -> torch.Tensor:
    """Complex numbers, both parts drawn alike and divided by the root of 2, so that they are on average as large as real numbers.

    A mean of normal numbers is theirs, real and undivided, as `torch.randn` and `normal_` have it.
    """
    mean = attributes.pop("mean", None)
    if mean is not None:
        attributes["mean"] = 0.0
    real, imaginary = (_DRAWN[kind](shape, torch.float64, key, **attributes) * math.sqrt(0.5) for key in keys)
    return torch.complex(real if mean is None else real + mean, imaginary).to(dtype)


def _drawn(shape: tuple[int, ...], dtype: torch.dtype, draw: Callable[[int, int], torch.Tensor]) -> torch.Tensor:
    """A tensor filled part by part, so that its float64 form never exists whole. The parts do not show in the bits."""
    value = torch.empty(shape, dtype=dtype)
    flat = value.reshape(-1)
    for start in range(0, len(flat), _AT_ONCE):
        part = flat[start : start + _AT_ONCE]
        part.copy_(draw(len(part), start))
    return value


def _array(data: bytes, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Elements in row order, little-endian."""
    expected = math.prod(shape) * dtype.itemsize
    if len(data) != expected:
        raise ValueError(f"{len(data)} bytes, where {expected} are needed")
    return from_bytes(data, shape, dtype)
