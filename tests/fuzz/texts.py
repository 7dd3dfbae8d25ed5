"""Texts of strangers, spoilt: a table as CSV, and the settings, the description and the log of a run."""

import json
from collections.abc import Callable
from pathlib import Path
from random import Random

import oarlock as ol
from fuzz.judging import require_readable
from oarlock.cli.runs import _rows
from oarlock.data.csv_file import read_csv
from oarlock.training.run_comparison import RunComparison
from oarlock.training.run_plot import plot_runs

__all__ = ["judge_text", "make_text"]

_ABOUT = {"program": "0" * 64, "id": "a", "training": {"batch_size": 4, "epochs": 3}, "command": ["oarlock", "train"]}
_LOG = [
    {"step": 0, "epochs": 3, "environment": {"python": "3.11"}, "time": 1.0},
    {"step": 1, "epoch": 1, "rows": 4, "loss": 0.5, "time": 2.0},
    {"step": 1, "epoch": 1, "training": {"loss": 0.5}, "validation": {"loss": 0.25}, "time": 3.0},
    {"step": 3, "ended": True, "time": 4.0},
]
_SEEDS = {
    "rows.csv": b'width,height,kind\n1,2.5,"a, b"\n-3,1e10,"c ""d"""\n',
    "config.toml": b'seed = 3\n[train]\nlr = 1e-3\nnames = ["a", "b"]\n[train.more."x y"]\nz = 2020-01-01\n',
    "run.json": json.dumps(_ABOUT, indent=1).encode(),
    "metrics.jsonl": "".join(json.dumps(line) + "\n" for line in _LOG).encode(),
}
_PIECES = [
    b"a.", b"[", b"{", b'"', b"'", b'"a".', b"a = {", b"[a.b]\n", b"[[a]]\n", b"9", b"1,", b"\n", b"\r", b"\0", b"\xff",
    b"\xf0\x9f\x98\x80", b"\\u0041", b"e400", b"NaN", b"null", b'{"step": 1, "rows": 1e999, "x": 1}\n', b'"""', b"-", b"#", b"x=1\n",
    b"\x1b[2J", b'{"a":', b",,,,", b"\t", b" ",
]  # fmt: skip


def make_text(random: Random) -> tuple[str, bytes]:
    """A name of a file and its content, with pieces put in, repeated up to a million bytes, moved or left out."""
    name = random.choice(sorted(_SEEDS))
    data = bytearray(_SEEDS[name])
    for _ in range(random.choice([1, 1, 2, 4])):
        at, change = random.randrange(len(data) + 1), random.randrange(5)
        if change < 2:
            piece = random.choice(_PIECES) if change else data[at : at + random.randrange(1, 40)]
            count = random.choice([1, 2, 40, 5000, 10**6 // max(1, len(piece))])
            data[at:at] = bytes(piece) * count + (random.choice(_PIECES) if random.random() < 0.5 else b"")
        elif change == 2:
            del data[at : at + random.choice([1, 5, 10**9])]
        elif change == 3:
            data[at : at + 4] = random.randbytes(4)
        else:
            start = random.randrange(len(data) + 1)
            data[at:at] = data[start : start + 50]
        if len(data) > 2 * 10**6:
            break
    return name, name.encode() + b"\n" + bytes(data)


def judge_text(folder: Path, data: bytes) -> str:
    """The outcome of a text: "read", or the class of an error of ours. Raises every other error."""
    name, _, content = data.partition(b"\n")
    judge: Callable[[Path, str, bytes], None] = _judge_rows if name == b"rows.csv" else _judge_run
    try:
        judge(folder, name.decode(), content)
    except (ol.DataError, ol.FeedError, ol.FormatError, ol.LimitError, ol.ArgumentError) as error:
        require_readable(error)
        return f"{name.decode()}: {type(error).__name__}"
    return f"{name.decode()}: read"


def _judge_rows(folder: Path, name: str, content: bytes) -> None:
    (folder / name).write_bytes(content)
    table = read_csv(folder / name)
    for column in table.names:
        table.column(column)


def _judge_run(folder: Path, name: str, content: bytes) -> None:
    run = folder / "run"
    run.mkdir(exist_ok=True)
    for each, good in _SEEDS.items():
        (run / each).write_bytes(content if each == name else good)
    found = RunComparison.read([run])
    for error in found.broken.values():
        raise error
    _rows(found)
    str(plot_runs(found.runs))
