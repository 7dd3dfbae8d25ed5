"""`oarlock runs`: the runs in a folder, side by side."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from oarlock.errors import MissingFileError
from oarlock.training.checkpoint import find_checkpoints

__all__ = ["runs"]


def runs(folder: Annotated[Path, typer.Argument(help="The folder that holds the folders of runs.")] = Path("runs")) -> None:
    """List the runs in a folder: how far each is, and what its last epoch measured."""
    if not folder.is_dir():
        raise MissingFileError(f'there is no folder "{folder}"')
    found = sorted(path.parent for path in folder.glob("*/run.json"))
    records = {path: _last_epoch(path / "metrics.jsonl") for path in found}
    labels = list(dict.fromkeys(label for record in records.values() for label in _values(record)))
    table = Table("run", "program", "epochs", "step", *labels, box=None, pad_edge=False)
    for path, record in records.items():
        about = json.loads((path / "run.json").read_text(encoding="utf-8"))
        values = _values(record)
        steps = list(find_checkpoints(path / "checkpoints"))
        table.add_row(
            path.name,
            about["program"][:8],
            f"{record.get('epoch', 0)}/{about['training']['epochs']}",
            str(steps[-1]) if steps else "0",
            *(f"{values[label]:.4g}" if label in values else "" for label in labels),
        )
    Console(soft_wrap=True, highlight=False).print(table if found else f"no run in {folder}")


def _last_epoch(log: Path) -> dict:
    """The record of the last epoch in a log; empty without one."""
    found: dict = {}
    for line in log.read_text(encoding="utf-8").splitlines() if log.is_file() else []:
        try:
            entry = json.loads(line)
        except ValueError:  # cut short
            continue
        if "training" in entry:
            found = entry
    return found


def _values(record: dict) -> dict[str, float]:
    validation = {f"validation {label}": value for label, value in record.get("validation", {}).items()}
    return record.get("training", {}) | validation
