"""Weights in safetensors files, by name: one file, or a folder of Hugging Face, whose index says which file has which tensor."""

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from oarlock.errors import FormatError, LimitError, MissingFileError
from oarlock.io.container import read_once
from oarlock.io.files import read_file
from oarlock.io.tensor_file import TensorEntry, TensorFile
from oarlock.proto.limits import Limits

__all__ = ["WeightFiles"]

_SINGLE, _INDEX = "model.safetensors", "model.safetensors.index.json"
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}", re.ASCII)  # no separator, so that none leads out of the folder
_MOST_FILES = 1024
_PICKLED = (".bin", ".ckpt", ".pickle", ".pkl", ".pt", ".pth")
_CONVERT = 'where you trust the file: safetensors.torch.save_file(torch.load(FILE, weights_only=True), "model.safetensors")'


@dataclass(frozen=True)
class WeightFiles:
    """Which file holds which tensor. `path` is what was asked for, `file_of` the name of a file in `folder` for each tensor's name."""

    path: Path
    folder: Path
    file_of: Mapping[str, str]
    limits: Limits
    untrusted: bool

    @classmethod
    def find(cls, path: str | os.PathLike[str], *, limits: Limits | None = None, untrusted: bool = False) -> "WeightFiles":
        """The files at `path`: a safetensors file, the index of several, or a folder with either.

        Of a folder, `model.safetensors` is taken before `model.safetensors.index.json`, and where it has neither, the only one that there
        is. Raises MissingFileError, ReadError, LimitError, and FormatError for what is no such file, a pickle among them.
        """
        path, limits = Path(path), limits or Limits()
        file = _find_in_folder(path) if path.is_dir() else path
        if file.suffix in _PICKLED:
            raise FormatError(f'"{file.name}" is a pickle by its name, and no pickle is read: reading one can run anything', hint=_CONVERT)
        if file.suffix == ".json":
            file_of = _read_index(file, limits, untrusted)
        else:
            with TensorFile.open(file, limits=limits, untrusted=untrusted) as opened:
                file_of = dict.fromkeys(opened.entries, file.name)
        return cls(path, file.parent, file_of, limits, untrusted)

    def entries(self, names: Iterable[str]) -> dict[str, TensorEntry]:
        """The header entries of the tensors of these `names`, each of which is in `file_of`. Raises as `TensorFile.open` does."""
        found: dict[str, TensorEntry] = {}
        for file, held in self._opened(names):
            found |= {name: file.entries[name] for name in held}
        return found

    def read(self, names: Iterable[str]) -> Iterator[tuple[str, torch.Tensor]]:
        """The tensors of these `names`, file by file; nothing else is read. Raises as `TensorFile.read` does."""
        for file, held in self._opened(names):
            for name in held:
                yield name, file.read(name)

    def _opened(self, names: Iterable[str]) -> Iterator[tuple[TensorFile, list[str]]]:
        """Each file that holds some of the `names`, one open at a time, and which these are, in the order of their bytes."""
        by_file: defaultdict[str, set[str]] = defaultdict(set)
        for name in names:
            by_file[self.file_of[name]].add(name)
        for file in sorted(by_file):
            with TensorFile.open(self.folder / file, limits=self.limits, untrusted=self.untrusted) as opened:
                absent = sorted(by_file[file] - opened.entries.keys())
                if absent:
                    raise FormatError(
                        f'"{file}" does not hold what the index says that it holds: {absent[0]!r:.80}',
                        given=[f"{len(absent)} of {len(by_file[file])} tensors are not there"],
                        hint="fetch the file and the index again, of one revision",
                    )
                yield opened, [name for name in opened.entries if name in by_file[file]]


def _find_in_folder(folder: Path) -> Path:
    names = sorted(os.listdir(folder))
    for usual in (_SINGLE, _INDEX):
        if usual in names:
            return folder / usual
    for ending in (".safetensors.index.json", ".safetensors"):
        found = [name for name in names if name.endswith(ending)]
        if len(found) == 1:
            return folder / found[0]
        if found:
            raise MissingFileError(
                f'"{folder}" has {len(found)} files that end in {ending}, and nothing says which is meant',
                given=found[:12],
                hint="give the path of one of them",
            )
    pickled = [name for name in names if name.endswith(_PICKLED)]
    raise MissingFileError(
        f'there are no weights of safetensors in the folder "{folder}"',
        given=[f"{name} is a pickle, which is never read: reading one can run anything" for name in pickled[:4]],
        hint=_CONVERT if pickled else None,
    )


def _read_index(path: Path, limits: Limits, untrusted: bool) -> dict[str, str]:
    """The file of each tensor, as an index says. Raises FormatError for a name that could lead out of the folder."""
    text = read_file(path, largest=limits.header_bytes, limit="header_bytes", untrusted=untrusted)
    index = read_once(text, lambda fault: FormatError(f'"{path.name}" {fault}, which an index of weights is'))
    file_of = index.get("weight_map")
    if not isinstance(file_of, dict) or not all(isinstance(file, str) for file in file_of.values()):
        raise FormatError(f'"{path.name}" has no "weight_map" from names of tensors to names of files')
    files = set(file_of.values())
    for file in sorted(files):
        if not _FILE_NAME.fullmatch(file) or not file.endswith(".safetensors"):
            raise FormatError(
                f'"{path.name}" names the file {file!r:.80}',
                contract="a file of an index lies beside it, and is called by 1 to 128 of the characters A-Z a-z 0-9 _ - . "
                "and ends in .safetensors",
            )
    if len(files) > _MOST_FILES:
        raise LimitError(f'"{path.name}" names {len(files):,} files, where {_MOST_FILES:,} are allowed')
    return file_of
