"""The patches, and a strict reader of them: a hunk goes where its lines stand, exactly and once, or nowhere."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["FAULTS", "Fault", "PatchError", "apply"]

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@.*")


class PatchError(Exception):
    """A patch does not fit the source, or is none."""


@dataclass(frozen=True)
class Fault:
    """One patch file: `B1: what is broken.`, an empty line, and a unified diff against `src`."""

    path: Path

    @property
    def name(self) -> str:
        """`B1-03-gradient-loop-runs-the-same-way`."""
        return self.path.stem

    @property
    def kind(self) -> str:
        """The class, `B1`."""
        return self._header[0]

    @property
    def sentence(self) -> str:
        return self._header[1]

    @property
    def _header(self) -> tuple[str, str]:
        kind, _, sentence = self.path.read_text(encoding="utf-8").partition("\n")[0].partition(": ")
        return kind, sentence


FAULTS = [Fault(path) for path in sorted(Path(__file__).parent.glob("*.patch"))]


def apply(fault: Fault, root: Path) -> list[Path]:
    """Apply a patch to the files under `root`, all of it or nothing; return the files. Raises PatchError."""
    changed: dict[Path, list[str]] = {}
    for file, before, after in _hunks(fault):
        path = root / file
        if path not in changed:
            changed[path] = path.read_text(encoding="utf-8").splitlines()
        lines = changed[path]
        places = [start for start in range(len(lines) - len(before) + 1) if lines[start : start + len(before)] == before]
        if len(places) != 1:
            raise PatchError(f"{fault.name}: a hunk fits {len(places)} places of {file}, where it must fit one")
        lines[places[0] : places[0] + len(before)] = after
    if not changed:
        raise PatchError(f"{fault.name}: there is no hunk in it")
    for path, lines in changed.items():
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return list(changed)


def _hunks(fault: Fault) -> Iterator[tuple[str, list[str], list[str]]]:
    """Each hunk: the file, the lines that stand there, the lines to put in their place."""
    lines = iter(fault.path.read_text(encoding="utf-8").splitlines())
    file = None
    for line in lines:
        if line.startswith("+++ b/"):
            file = line.removeprefix("+++ b/")
        elif line.startswith("@@"):
            header = _HUNK.fullmatch(line)
            if header is None or file is None:
                raise PatchError(f"{fault.name}: {line!r} begins no hunk")
            yield file, *_sides(fault, lines, *(int(count or 1) for count in header.groups()))


def _sides(fault: Fault, lines: Iterator[str], removed: int, added: int) -> tuple[list[str], list[str]]:
    """The lines of one hunk before and after, as many as its header says. Raises PatchError."""
    before: list[str] = []
    after: list[str] = []
    while len(before) < removed or len(after) < added:
        line = next(lines, "")
        if line[:1] not in (" ", "-", "+"):
            raise PatchError(f"{fault.name}: a hunk ends before its lines do")
        if line[0] != "+":
            before.append(line[1:])
        if line[0] != "-":
            after.append(line[1:])
    return before, after
