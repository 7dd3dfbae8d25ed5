"""The state of a run of which each worker keeps a share: in its scope while it trains, and in a file of its own of each checkpoint."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import safetensors
import safetensors.torch
import torch

from oarlock.errors import FormatError
from oarlock.io.container import as_declared, as_stored
from oarlock.io.files import read_file
from oarlock.io.model import Model, read_model
from oarlock.ir.size import Shape
from oarlock.ir.var import Var
from oarlock.proto.limits import Limits
from oarlock.registry.catalogue import standard
from oarlock.runtime.scope import Scope, lock_of_writing
from oarlock.runtime.workers import Workers
from oarlock.tensor.shares import join_shares, share_of, share_size

__all__ = ["MODEL", "Shares", "load_checkpoint"]

MODEL = "model.safetensors"
_SHARE = re.compile(r"share-(\d{1,6})-of-(\d{1,6})\.safetensors")


class Shares:
    """Variables of which each of the workers keeps a share, by name, with the shapes of what is whole; none where nothing is divided."""

    def __init__(self, workers: Workers | None = None, shapes: Mapping[str, Shape] | None = None):
        self._workers = workers or Workers()
        self._shapes = {name: tuple(map(int, shape)) for name, shape in (shapes or {}).items()}  # type: ignore[arg-type]

    def __bool__(self) -> bool:
        return bool(self._shapes)

    @property
    def names(self) -> frozenset[str]:
        """The names of the variables."""
        return frozenset(self._shapes)

    @property
    def files(self) -> list[str]:
        """The files of a checkpoint that hold the shares, in the order of the workers."""
        return [f"share-{index}-of-{self._workers.count}.safetensors" for index in range(self._workers.count)] if self else []

    @property
    def own_file(self) -> str:
        """The file that holds the shares of this worker."""
        return self.files[self._workers.index]

    def take(self, scope: Scope) -> None:
        """Let a scope that holds whole values hold this worker's shares of them."""
        for name in self._shapes:
            held = _held(scope, name)
            scope.var(name).give(share_of(held, self._workers.count, self._workers.index), own=True)

    def join(self, scope: Scope) -> None:
        """Let a scope that holds shares hold the whole values: all workers do so together. Raises WorkerError."""
        for name, shape in self._shapes.items():
            held = _held(scope, name)
            shares = self._workers.all_gather(held, [len(held)] * self._workers.count, 0)
            scope.var(name).give(join_shares(shares.view(self._workers.count, -1), shape), own=True)

    def held(self, scope: Scope) -> dict[str, torch.Tensor]:
        """The shares of this worker, over which a run may write as soon as `lock_of_writing` is given back."""
        return {name: _held(scope, name).detach() for name in self._shapes}

    def copied(self, scope: Scope) -> dict[str, torch.Tensor]:
        """Copies of this worker's shares, in the memory of the processor."""
        with lock_of_writing(scope):
            return {name: as_stored(_held(scope, name).detach()).to("cpu", copy=True) for name in self._shapes}


def _held(scope: Scope, name: str) -> torch.Tensor:
    held = scope.var(name).held
    assert isinstance(held, torch.Tensor), "a variable that persists has a value while a run trains"
    return held


def load_checkpoint(folder: Path, *, untrusted: bool = False) -> Model:
    """The program and the values in the folder of a checkpoint; what workers had shares of is put together, whatever their number was.

    Raises what `ol.load_model` does, and FormatError where a share is missing or does not fit.
    """
    import oarlock.op.update  # noqa: F401  training programs use its operators

    return read_model(folder / MODEL, standard, elsewhere=_reader(folder, untrusted), untrusted=untrusted)


def _reader(folder: Path, untrusted: bool) -> Callable[[Var], torch.Tensor | None]:
    """A function that puts a variable together from the shares in a folder; it returns None where there are none of it."""
    found = {match.groups(): path for path in folder.iterdir() if (match := _SHARE.fullmatch(path.name))} if folder.is_dir() else {}
    counts = {int(count) for _, count in found}
    if not found:
        return lambda var: None
    count = max(counts)
    if len(counts) > 1 or sorted(int(index) for index, _ in found) != list(range(count)):
        raise FormatError(f'"{folder}" does not hold the shares of all workers', given=sorted(path.name for path in found.values()))
    shares = [_read(found[str(index), str(count)], untrusted) for index in range(count)]

    def read(var: Var) -> torch.Tensor | None:
        parts = [share.get(var.name) for share in shares]
        if all(part is None for part in parts):
            return None
        assert var.shape is not None
        shape = tuple(map(int, var.shape))  # type: ignore[arg-type]
        elements = torch.Size(shape).numel()
        parts = [None if part is None else as_declared(part, var.dtype) for part in parts]
        if not all(part is not None and part.dtype == parts[0].dtype and part.shape == (share_size(elements, count),) for part in parts):  # type: ignore[union-attr]
            raise FormatError(f'the {count} shares of "{var.name}" in "{folder}" do not fit', given=[var.describe()])
        return join_shares(torch.stack(parts), shape)  # type: ignore[arg-type]

    return read


def _read(path: Path, untrusted: bool) -> dict[str, torch.Tensor]:
    data = read_file(path, largest=Limits().file_bytes, limit="file_bytes", untrusted=untrusted)
    try:
        return safetensors.torch.load(data)
    except (safetensors.SafetensorError, ValueError, KeyError) as error:
        raise FormatError(f'"{path}" is not a safetensors file, or is cut short', given=[str(error)]) from error
