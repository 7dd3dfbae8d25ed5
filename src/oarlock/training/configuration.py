"""Settings with dotted names: reading them from TOML files and command lines, and writing them to a TOML file."""

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

__all__ = ["Given", "flatten", "format_toml", "read_configuration", "read_tables", "refuse_unknown"]

_LARGEST = 2**20  # bytes of a file
_PARTS, _DEEPEST = 32, 64  # parts of a key; tables inside each other
_PART = r"""(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"""(?<![A-Za-z0-9_\\-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{_PARTS}}}""")


@dataclasses.dataclass(frozen=True)
class Given:
    """A value given to a setting, and its origin. With `is_text`, it is command-line text, to be converted to the type of the setting."""

    value: object
    where: str
    is_text: bool = False


def read_configuration(path: Path | None, assignments: Sequence[str] = ()) -> dict[str, Given]:
    """Read settings by dotted names from the TOML file at `path` and from `NAME=VALUE` texts, which take precedence.

    Raises MissingFileError, LimitError, or ArgumentError for a file that is not valid TOML or a text without a name.
    """
    found: dict[str, Given] = {}
    if path is not None:
        found |= {name: Given(value, path.name) for name, value in flatten(read_tables(path)).items()}
    for text in assignments:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise ArgumentError(f"a setting must be given as NAME=VALUE, not {text!r:.60}", hint="--set train.lr=3e-4")
        found[name.strip()] = Given(value.strip(), f"--set {name.strip()}", is_text=True)
    return found


def read_tables(path: Path, *, untrusted: bool = False, follow: bool = True) -> dict[str, Any]:
    """Read a TOML file within limits on its size, the parts of a key, and the nesting of tables.

    Raises the errors of `read_file`, LimitError, and ArgumentError for a file that is not valid TOML.
    """
    data = read_file(path, largest=_LARGEST, limit="file_bytes", untrusted=untrusted, follow=follow)
    try:
        text = data.decode()
        if _LONG_KEY.search(text) is not None:  # tomllib needs memory quadratic in the parts of a key
            raise LimitError(f'"{path.name}" has a key of more than {_PARTS} parts')
        tables = tomllib.loads(text)
        _require_flat(tables, path.name)
        return tables
    except LimitError:  # also a ValueError
        raise
    except (RecursionError, MemoryError):
        raise LimitError(f'the tables or lists of "{path.name}" are nested too deeply') from None
    except ValueError as error:  # invalid TOML or UTF-8, or an integer with too many digits
        raise ArgumentError(
            f'"{path.name}" is not valid TOML: {str(error)[:200]}', hint="write settings as name = value, below [section]"
        ) from None


def _require_flat(tables: Mapping[str, object], name: str) -> None:
    """Raise LimitError for tables nested too deeply."""
    level: list[Mapping[str, object]] = [tables]
    for _ in range(_DEEPEST):
        level = [value for table in level for value in table.values() if isinstance(value, Mapping)]
        if not level:
            return
    raise LimitError(f'the tables of "{name}" are nested more than {_DEEPEST} deep')


def flatten(tables: Mapping[str, object], above: str = "") -> dict[str, object]:
    """Return the leaves of nested tables by dotted names, such as `training.batch_size`."""
    leaves: dict[str, object] = {}
    for name, value in tables.items():
        leaves |= flatten(value, f"{above}{name}.") if isinstance(value, Mapping) else {f"{above}{name}": value}
    return leaves


def refuse_unknown(given: Mapping[str, Given], known: Sequence[str], advice: str | None = None) -> None:
    """Raise ArgumentError, with similar names, for the first of `given` that is not in `known`."""
    for name, value in given.items():
        inside = [each for each in known if each.startswith(f"{name}.")]
        if name not in known and inside:
            raise ArgumentError(
                f'"{name}" is a section, but {value.where} sets it to {value.value!r:.40}',
                given=[f"settings in the section: {list_names('', inside)}"],
                hint=f"--set {inside[0]}=VALUE",
            )
        if name not in known:
            raise ArgumentError(
                f'unknown setting "{name}" in {value.where}',
                given=[f"settings: {list_names(name, known) if known else 'none'}"],
                hint=did_you_mean(name, known) or _near_last(name, known) or advice,
            )


def _near_last(name: str, known: Sequence[str]) -> str | None:
    """Return a hint for a name whose last part matches that of another setting."""
    same = [each for each in known if each.rpartition(".")[2] == name.rpartition(".")[2]]
    return f'did you mean "{same[0]}"?' if same else None


def format_toml(values: Mapping[str, object]) -> str:
    """Format values with dotted names as a TOML file for `read_configuration`. None values are omitted, because TOML has no null.

    Raises ArgumentError for a value that is not a number, text, a path, or a list of those.
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
        f'the setting "{name}" is {value!r:.60}, which cannot be written to a TOML file',
        hint="use a number, text, a path, true or false, or a list of those",
    )
