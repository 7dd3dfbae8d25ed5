"""The options of `oarlock train`, which the section `train` of a configuration can also set."""

from dataclasses import dataclass, field, fields
from pathlib import Path

__all__ = ["OPTIONS", "TrainOptions"]


@dataclass(frozen=True)
class TrainOptions:
    """The options of `oarlock train` by name, None if not given. `oarlock train --help` explains each."""

    data: str | None = None
    validate: str | None = None
    validate_every: int | None = None
    columns: list[str] = field(default_factory=list)
    epochs: int | None = None
    batch_size: int | None = None
    optimizer: str | None = None
    lr: float | None = None
    steps: int | None = None
    seed: int | None = None
    save: Path | None = None
    run: Path | None = None
    save_every: int | None = None
    log: list[str] = field(default_factory=list)
    backend: str | None = None
    place: str | None = None
    shard_optimizer: bool | None = None
    sync_batch_norm: bool | None = None

    @property
    def given(self) -> dict[str, object]:
        """The given options by name."""
        return {name: getattr(self, name) for name in OPTIONS if getattr(self, name) not in (None, [])}


OPTIONS = tuple(field.name for field in fields(TrainOptions))
