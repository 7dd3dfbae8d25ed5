"""Weights in safetensors files by name: a single file, or a Hugging Face folder whose index maps tensors to files."""

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
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}", re.ASCII)  # no separators, so that all files are inside the folder
_MOST_FILES = 1024
_PICKLED = (".bin", ".ckpt", ".pickle", ".pkl", ".pt", ".pth")
_CONVERT = 'if you trust the file, convert it: safetensors.torch.save_file(torch.load(FILE, weights_only=True), "model.safetensors")'


@dataclass(frozen=True)
class WeightFiles:
    """Weight files by tensor. `path` is the requested path; `file_of` maps the name of each tensor to a file in `folder`."""

    path: Path
    folder: Path
    file_of: Mapping[str, str]
    limits: Limits
    untrusted: bool

    @classmethod
    def find(cls, path: str | os.PathLike[str], *, limits: Limits | None = None, untrusted: bool = False) -> "WeightFiles":
        """Find the files at `path`: a safetensors file, the index of several, or a folder with either.

        In a folder, `model.safetensors` takes precedence over `model.safetensors.index.json`, and these over a single file with another
        name. Raises MissingFileError, ReadError, LimitError, or FormatError for other files, including pickles.
        """
        path, limits = Path(path), limits or Limits()
        file = _find_in_folder(path) if path.is_dir() else path
        if file.suffix in _PICKLED:
            raise FormatError(
                f'"{file.name}" is a pickle by its name, and pickles are not read: reading one can run arbitrary code', hint=_CONVERT
            )
        if file.suffix == ".json":
            file_of = _read_index(file, limits, untrusted)
        else:
            with TensorFile.open(file, limits=limits, untrusted=untrusted) as opened:
                file_of = dict.fromkeys(opened.entries, file.name)
        return cls(path, file.parent, file_of, limits, untrusted)

    def entries(self, names: Iterable[str]) -> dict[str, TensorEntry]:
        """Return the header entries of the tensors `names`, which must be in `file_of`. Raises the errors of `TensorFile.open`."""
        found: dict[str, TensorEntry] = {}
        for file, held in self._opened(names):
            found |= {name: file.entries[name] for name in held}
        return found

    def read(self, names: Iterable[str]) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield the tensors `names` file by file; nothing else is read. Raises the errors of `TensorFile.read`."""
        for file, held in self._opened(names):
            for name in held:
                yield name, file.read(name)

    def _opened(self, names: Iterable[str]) -> Iterator[tuple[TensorFile, list[str]]]:
        """Yield each file that contains some of the `names`, one open at a time, with those names in file order."""
        by_file: defaultdict[str, set[str]] = defaultdict(set)
        for name in names:
            by_file[self.file_of[name]].add(name)
        for file in sorted(by_file):
            with TensorFile.open(self.folder / file, limits=self.limits, untrusted=self.untrusted) as opened:
                absent = sorted(by_file[file] - opened.entries.keys())
                if absent:
                    raise FormatError(
                        f'"{file}" lacks a tensor that the index lists in it: {absent[0]!r:.80}',
                        given=[f"{len(absent)} of {len(by_file[file])} tensors are missing"],
                        hint="download the file and the index again, from the same revision",
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
                f'"{folder}" has {len(found)} files that end in {ending}',
                given=found[:12],
                hint="give the path of one of them",
            )
    pickled = [name for name in names if name.endswith(_PICKLED)]
    raise MissingFileError(
        f'there are no safetensors weights in the folder "{folder}"',
        given=[f"{name} is a pickle, which is never read: reading one can run arbitrary code" for name in pickled[:4]],
        hint=_CONVERT if pickled else None,
    )


def _read_index(path: Path, limits: Limits, untrusted: bool) -> dict[str, str]:
    """Return the file of each tensor from an index. Raises FormatError for a name that could lead out of the folder."""
    text = read_file(path, largest=limits.header_bytes, limit="header_bytes", untrusted=untrusted)
    index = read_once(text, lambda fault: FormatError(f'the weight index "{path.name}" {fault}'))
    file_of = index.get("weight_map")
    if not isinstance(file_of, dict) or not all(isinstance(file, str) for file in file_of.values()):
        raise FormatError(f'"{path.name}" has no valid "weight_map" from tensor names to file names')
    files = set(file_of.values())
    for file in sorted(files):
        if not _FILE_NAME.fullmatch(file) or not file.endswith(".safetensors"):
            raise FormatError(
                f'"{path.name}" names the file {file!r:.80}',
                contract="a file of an index is in the same folder, and its name has 1 to 128 of the characters A-Z a-z 0-9 _ - . "
                "and ends in .safetensors",
            )
    if len(files) > _MOST_FILES:
        raise LimitError(f'"{path.name}" names {len(files):,} files, but the limit is {_MOST_FILES:,}')
    return file_of
