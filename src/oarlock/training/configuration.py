"""Settings by dotted names, as a file of TOML and a command line give them; and a file of TOML as a run leaves it."""

import dataclasses
import json
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from oarlock.errors import ArgumentError, LimitError
from oarlock.io.files import read_file
from oarlock.suggestions import did_you_mean, list_names

__all__ = ["Given", "format_toml", "read_configuration", "read_tables", "refuse_unknown"]

_LARGEST = 2**20  # bytes of a file
_PARTS, _DEEPEST = 32, 64  # parts of a key; tables inside each other
_PART = r"""(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"""(?<![A-Za-z0-9_\\-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{_PARTS}}}""")


@dataclasses.dataclass(frozen=True)
class Given:
    """A value that is given to a setting, and where; with `is_text` the text of a command line, which gets its type from the setting."""

    value: object
    where: str
    is_text: bool = False


def read_configuration(path: Path | None, assignments: Sequence[str] = ()) -> dict[str, Given]:
    """The settings in the file of TOML at `path` and in `NAME=VALUE` texts, by dotted names; the later of two counts.

    Raises MissingFileError, LimitError, or ArgumentError for a file that is no TOML, and for a text without a name.
    """
    found: dict[str, Given] = {}
    if path is not None:
        found |= {name: Given(value, path.name) for name, value in _flat(read_tables(path))}
    for text in assignments:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise ArgumentError(f"a setting is given as NAME=VALUE, not as {text!r:.60}", hint="--set train.lr=3e-4")
        found[name.strip()] = Given(value.strip(), f"--set {name.strip()}", is_text=True)
    return found


def read_tables(path: Path, *, untrusted: bool = False, follow: bool = True) -> dict[str, Any]:
    """The content of a file of TOML, within bounds: of its size, of the parts of a key, and of tables inside each other.

    Raises what `read_file` does, LimitError, and ArgumentError for a file that is no TOML.
    """
    data = read_file(path, largest=_LARGEST, limit="file_bytes", untrusted=untrusted, follow=follow)
    try:
        text = data.decode()
        if _LONG_KEY.search(text) is not None:  # Python's reader takes memory by the square of the parts of a key
            raise LimitError(f'"{path.name}" has a key of more than {_PARTS} parts')
        tables = tomllib.loads(text)
        _require_flat(tables, path.name)
        return tables
    except LimitError:  # a ValueError too
        raise
    except (RecursionError, MemoryError):
        raise LimitError(f'"{path.name}" has too many tables or lists inside each other') from None
    except ValueError as error:  # of the reader, of UTF-8, or of a number of too many digits
        raise ArgumentError(
            f'"{path.name}" is no TOML: {str(error)[:200]}', hint="settings are written as name = value, below [section]"
        ) from None


def _require_flat(tables: Mapping[str, object], name: str) -> None:
    """Raise LimitError for tables inside each other deeper than settings are."""
    level: list[Mapping[str, object]] = [tables]
    for _ in range(_DEEPEST):
        level = [value for table in level for value in table.values() if isinstance(value, Mapping)]
        if not level:
            return
    raise LimitError(f'"{name}" has more than {_DEEPEST} tables inside each other')


def _flat(tables: Mapping[str, object], above: str = "") -> list[tuple[str, object]]:
    """The leaves of nested tables by dotted names."""
    return [
        leaf
        for name, value in tables.items()
        for leaf in (_flat(value, f"{above}{name}.") if isinstance(value, Mapping) else [(f"{above}{name}", value)])
    ]


def refuse_unknown(given: Mapping[str, Given], known: Sequence[str], advice: str | None = None) -> None:
    """Raise ArgumentError for the first of `given` that is not among `known`; it names those that are near."""
    for name, value in given.items():
        inside = [each for each in known if each.startswith(f"{name}.")]
        if name not in known and inside:
            raise ArgumentError(
                f'"{name}" is a section of settings, which {value.where} sets to {value.value!r:.40}',
                given=[f"in it are: {list_names('', inside)}"],
                hint=f"--set {inside[0]}=VALUE",
            )
        if name not in known:
            raise ArgumentError(
                f'there is no setting "{name}", which {value.where} gives',
                given=[f"there are: {list_names(name, known)}" if known else "there are none"],
                hint=did_you_mean(name, known) or _near_last(name, known) or advice,
            )


def _near_last(name: str, known: Sequence[str]) -> str | None:
    """The hint for a name whose last part is that of another, in another section or in none."""
    same = [each for each in known if each.rpartition(".")[2] == name.rpartition(".")[2]]
    return f'did you mean "{same[0]}"?' if same else None


def format_toml(values: Mapping[str, object]) -> str:
    """Values by dotted names as a file of TOML, which `read_configuration` reads; None, which TOML has not, is left out.

    Raises ArgumentError for a value that is neither a number, text, a path, nor a list of those.
    """
    sections: dict[str, list[str]] = {"": []}
    for name, value in values.items():
        section, _, last = name.rpartition(".")
        if value is not None:
            sections.setdefault(section, []).append(f"{_key(last)} = {_literal(name, value)}")
    texts = [
        ("" if not name else f"[{'.'.join(map(_key, name.split('.')))}]\n") + "\n".join(lines) for name, lines in sections.items() if lines
    ]
    return "\n\n".join(texts) + "\n" if texts else ""


def _key(name: str) -> str:
    return name if name and all(letter.isascii() and (letter.isalnum() or letter in "-_") for letter in name) else _quoted(name)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _literal(name: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return repr(float(value)) if math.isfinite(value) else str(float(value))
    if isinstance(value, str | Path):
        return _quoted(str(value))
    if isinstance(value, list | tuple):
        return f"[{', '.join(_literal(name, item) for item in value)}]"
    raise ArgumentError(
        f'the setting "{name}" is {value!r:.60}, which no file of settings holds',
        hint="a number, text, a path, true or false, or a list of those",
    )
