"""State that is split among workers: each keeps a share in its scope while training, and in its own file of each checkpoint."""

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
    """Variables of which each worker keeps a share, by name, with their full shapes; empty if nothing is split."""

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
        """The checkpoint files of the shares, in the order of the workers."""
        return [f"share-{index}-of-{self._workers.count}.safetensors" for index in range(self._workers.count)] if self else []

    @property
    def own_file(self) -> str:
        """The file of this worker's shares."""
        return self.files[self._workers.index]

    def take(self, scope: Scope) -> None:
        """Replace the full values in a scope by this worker's shares."""
        for name in self._shapes:
            held = _held(scope, name)
            scope.var(name).give(share_of(held, self._workers.count, self._workers.index), own=True)

    def join(self, scope: Scope) -> None:
        """Replace the shares in a scope by the full values. All workers must call it together. Raises WorkerError."""
        for name, shape in self._shapes.items():
            held = _held(scope, name)
            shares = self._workers.all_gather(held, [len(held)] * self._workers.count, 0)
            scope.var(name).give(join_shares(shares.view(self._workers.count, -1), shape), own=True)

    def held(self, scope: Scope) -> dict[str, torch.Tensor]:
        """Return the shares of this worker without copying. A run may overwrite them when `lock_of_writing` is released."""
        return {name: _held(scope, name).detach() for name in self._shapes}

    def copied(self, scope: Scope) -> dict[str, torch.Tensor]:
        """Return copies of this worker's shares in CPU memory."""
        with lock_of_writing(scope):
            return {name: as_stored(_held(scope, name).detach()).to("cpu", copy=True) for name in self._shapes}


def _held(scope: Scope, name: str) -> torch.Tensor:
    held = scope.var(name).held
    assert isinstance(held, torch.Tensor), "a persistable variable has a value during training"
    return held


def load_checkpoint(folder: Path, *, untrusted: bool = False) -> Model:
    """Load the program and values of a checkpoint folder, joining the shares of any number of workers.

    Raises the errors of `ol.load_model`, and FormatError if a share is missing or does not fit.
    """
    import oarlock.op.update  # noqa: F401  registers the operators of training programs

    return read_model(folder / MODEL, standard, elsewhere=_reader(folder, untrusted), untrusted=untrusted)


def _reader(folder: Path, untrusted: bool) -> Callable[[Var], torch.Tensor | None]:
    """Return a function that joins the shares of a variable in a folder, or returns None if it has none."""
    found = {match.groups(): path for path in folder.iterdir() if (match := _SHARE.fullmatch(path.name))} if folder.is_dir() else {}
    counts = {int(count) for _, count in found}
    if not found:
        return lambda var: None
    count = max(counts)
    if len(counts) > 1 or sorted(int(index) for index, _ in found) != list(range(count)):
        raise FormatError(f'"{folder}" does not contain the shares of all workers', given=sorted(path.name for path in found.values()))
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
            raise FormatError(f'the {count} shares of "{var.name}" in "{folder}" do not match its shape or dtype', given=[var.describe()])
        return join_shares(torch.stack(parts), shape)  # type: ignore[arg-type]

    return read


def _read(path: Path, untrusted: bool) -> dict[str, torch.Tensor]:
    data = read_file(path, largest=Limits().file_bytes, limit="file_bytes", untrusted=untrusted)
    try:
        return safetensors.torch.load(data)
    except (safetensors.SafetensorError, ValueError, KeyError) as error:
        raise FormatError(f'"{path}" is not a valid safetensors file, or is truncated', given=[str(error)]) from error
