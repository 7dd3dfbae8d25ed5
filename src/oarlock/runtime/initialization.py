"""Initialization of a program's persistable variables."""

import math
from collections.abc import Callable, Collection, Mapping

import torch

from oarlock.errors import LimitError, ProgramError
from oarlock.ir.location import here
from oarlock.ir.program import Program
from oarlock.ir.var import HeldValue, Var
from oarlock.proto.limits import Limits
from oarlock.runtime import random
from oarlock.runtime.fork import note_threads
from oarlock.runtime.ownership import own, require_own, states_of
from oarlock.runtime.scope import Scope
from oarlock.runtime.value import to_tensor
from oarlock.runtime.value_check import require_declared
from oarlock.runtime.workers import Workers, current_workers
from oarlock.tensor.dtype import from_bytes, to_torch

__all__ = ["MATRICES", "init", "initial_value", "truncated_normal"]

_AT_ONCE = 2**14  # elements drawn together: small enough for the float64 and int64 intermediates to stay in the cache


def init(
    program: Program,
    scope: Scope,
    *,
    overwrite: bool = False,
    limits: Limits | None = None,
    only: Collection[Var] | None = None,
    workers: Workers | None = None,
) -> Scope:
    """Initialize the program's parameters and state that have no value in `scope`; with `only`, just these variables. Returns `scope`.

    Each value depends only on the program's seed and the variable's name, not on the order. Existing values are kept unless `overwrite`.
    Variables divided between workers get the shard of this worker: the complete value is drawn first, so the shards match a single-process
    run. `workers` defaults to those that the process has joined.

    Before anything is set, it raises ShapeError or DTypeError if an existing value does not match its declaration, LimitError if the values
    would exceed `limits`, ScopeError if `scope` holds the optimizer state of another program (such state in a parent scope is ignored, and
    this program gets its own), and ProgramError if the program is divided between a different number of workers.
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
            found = None  # a parent scope trains another program
        if found is None or not found.is_set or overwrite:
            missing.append(var)
            continue
        require_declared(var, found.settle(var.dtype), at_meta=True)  # the place of later runs is unknown
    require_divided_between(workers, chosen)
    _require_few_bytes(missing, limits or Limits())
    values = {var: initial_value(var, program.seed, workers.index) for var in missing}
    for var, value in values.items():
        scope.var(var.name).give(value, own=not isinstance(var.initializer, HeldValue))  # a shared value is copied on update
    for var in chosen:
        found = scope.find_var(var.name) if var.trainable else None
        if found is not None:
            found.expect_training()
    own(program, scope, states)
    return scope


def _require_few_bytes(vars: list[Var], limits: Limits) -> None:
    """Check the size of the values to allocate. Raises LimitError. Held values need no allocation."""
    total = 0
    for var in vars:
        if isinstance(var.initializer, HeldValue):
            continue
        total += math.prod(size for size in var.whole_shape or () if isinstance(size, int)) * var.dtype.itemsize
        if total > limits.parameter_bytes:
            raise LimitError(
                f'"{var.name}": {total:,} parameter bytes, but the limit is {limits.parameter_bytes:,}',
                given=[var.describe()],
                hint="limits=Limits(parameter_bytes=...)",
            )


def require_divided_between(workers: Workers, vars: Collection[Var]) -> None:
    """Check that sharded variables are divided between the actual number of workers. Raises ProgramError."""
    for var in vars:
        if var.sharding is not None and var.sharding.workers not in (0, workers.count):
            raise ProgramError(
                f'"{var.name}" is divided between {var.sharding.workers} workers, but there {"are" if workers.count > 1 else "is"} '
                f"{workers.count}",
                location=here(),
                given=[var.describe()],
                hint=f"apply ol.passes.tensor_parallel(program, workers={workers.count}) to the original program",
            )


def initial_value(var: Var, seed: int, worker: int = 0) -> torch.Tensor:
    """Return the initial value of `var`, or this `worker`'s shard of it. A held value is returned itself and must not be modified.

    Raises ProgramError for a missing or unknown initializer.
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
        raise ProgramError(f'"{var.name}" has no initializer', given=[var.describe()], hint=f'use scope.set("{var.name}", value)')
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
    """Return complex numbers: both parts have the same distribution, divided by sqrt(2) so that magnitudes match real numbers.

    The mean of normal numbers is added to the real part, undivided, as `torch.randn` and `normal_` do.
    """
    mean = attributes.pop("mean", None)
    if mean is not None:
        attributes["mean"] = 0.0
    real, imaginary = (_DRAWN[kind](shape, torch.float64, key, **attributes) * math.sqrt(0.5) for key in keys)
    return torch.complex(real if mean is None else real + mean, imaginary).to(dtype)


def _drawn(shape: tuple[int, ...], dtype: torch.dtype, draw: Callable[[int, int], torch.Tensor]) -> torch.Tensor:
    """Return a tensor filled in chunks, so that its complete float64 form is never allocated. The bits do not depend on the chunks."""
    value = torch.empty(shape, dtype=dtype)
    flat = value.reshape(-1)
    for start in range(0, len(flat), _AT_ONCE):
        part = flat[start : start + _AT_ONCE]
        part.copy_(draw(len(part), start))
    return value


def _array(data: bytes, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Return a tensor from little-endian data in row-major order."""
    expected = math.prod(shape) * dtype.itemsize
    if len(data) != expected:
        raise ValueError(f"the data has {len(data)} bytes, but needs {expected}")
    return from_bytes(data, shape, dtype)


def truncated_normal(
    shape: tuple[int, ...], key: int, *, mean: float, deviation: float, low: float, high: float, start: int = 0
) -> torch.Tensor:
    """Return normal numbers truncated to [low, high], by applying the inverse cumulative distribution to uniform numbers."""
    below, above = (math.erf((bound - mean) / deviation / math.sqrt(2.0)) for bound in (low, high))
    places = random.uniform(shape, key, start=start) * (above - below) + below
    return (torch.erfinv(places) * (deviation * math.sqrt(2.0)) + mean).clamp_(low, high)


def _orthogonal(shape: tuple[int, ...], key: int, *, gain: float) -> torch.Tensor:
    """Return orthogonal rows of length `gain`, or columns if there are fewer of them, uniformly distributed (Saxe et al., 2014).

    Rows are the first axis, columns all others. It uses the QR decomposition of normal numbers, with signs chosen to make it unique.
    """
    rows, columns = shape[0], math.prod(shape[1:])
    drawn = random.normal((max(rows, columns), min(rows, columns)), key)
    q, r = torch.linalg.qr(drawn)
    q = q * torch.where(torch.diagonal(r) < 0.0, -1.0, 1.0)
    return ((q if rows >= columns else q.T) * gain).reshape(shape)


def _identity(shape: tuple[int, ...], key: int, *, gain: float, groups: int) -> torch.Tensor:
    """Return `gain` on the diagonal, separately for each of `groups` groups of rows; for convolution filters, at the window's center."""
    value = torch.zeros(shape, dtype=torch.float64)
    rows = shape[0] // groups
    if math.prod(shape):
        place = torch.arange(min(rows, shape[1]))
        row = (torch.arange(groups)[:, None] * rows + place).flatten()
        value[(row, place.repeat(groups), *(size // 2 for size in shape[2:]))] = gain
    return value


def _sparse(shape: tuple[int, ...], key: int, *, sparsity: float, deviation: float) -> torch.Tensor:
    """Return normal numbers with the share `sparsity` of each column, rounded up, set to 0 (Martens, 2010)."""
    rows, columns = shape
    value = random.normal(shape, key) * deviation
    order = random.uniform((columns, rows), random.key_of(key, "zeros")).argsort(dim=1, stable=True)
    value.T.scatter_(1, order[:, : math.ceil(sparsity * rows)], 0.0)
    return value


MATRICES: Mapping[str, Callable[..., torch.Tensor]] = {"orthogonal": _orthogonal, "identity": _identity, "sparse": _sparse}
"""The initializers that need the whole matrix, by name. Each takes a shape, a key and its attributes."""
