"""The command that runs a script: its options, and its values for `ol.settings` and `ol.train` there."""

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeVar

from oarlock.errors import ArgumentError
from oarlock.training.configuration import Given, format_toml, refuse_unknown
from oarlock.training.records import TrainingResult
from oarlock.training.run_folder import Run
from oarlock.training.setting_types import Setting, convert, declared_by

__all__ = ["OPTIONS", "PASSED", "Invocation", "TrainOptions", "current_invocation", "settings"]


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


Shown = Literal["live", "plain", "quiet"]
_SECTION = "train"
_OPTION_NAMES = tuple(f"{_SECTION}.{name}" for name in OPTIONS)
PASSED = ("epochs", "steps", "seed")  # passed as arguments to a script that calls `ol.train`
_NOT_KEPT = ("run", "steps")  # a resumed run uses its own folder, and trains to its end


class Invocation:
    """A command while it runs: a context manager that makes it the current invocation.

    `command`: its words. `given`: settings by dotted names. `given_options`: options of the command line. `progress`: the progress
    display, or None to choose by the output. `is_script`: a script is running. `settings`: the settings declared by the script. `trains`:
    whether the script called `ol.train`. `folder`: its run folder. `on_declared` is called after the script declared settings; `on_result`
    receives the training result before the command to resume is printed.
    """

    def __init__(
        self,
        command: Sequence[str] = (),
        given: Mapping[str, Given] | None = None,
        given_options: Mapping[str, object] | None = None,
        progress: Shown | None = None,
    ):
        self.command = list(command)
        self.given = dict(given or {})
        self.given_options = {name: value for name, value in (given_options or {}).items() if value not in (None, [])}
        self.progress: Shown | None = progress
        self.settings: dict[str, object] = {}
        self.trains = self.is_script = False
        self.folder: Path | None = None
        self.on_declared: Callable[[], object] = lambda: None
        self.on_result: Callable[[TrainingResult], object] = lambda result: None

    def __enter__(self) -> "Invocation":
        _in_use.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _in_use.remove(self)

    def declare(self, declared: Mapping[str, Setting]) -> dict[str, object]:
        """Return the values of the settings that a script declares.

        If the script declares a setting `train.epochs` or `epochs`, the option `--epochs` sets it. Raises ArgumentError for an unknown
        setting or a value of the wrong type.
        """
        options = _OPTION_NAMES if self.command else ()
        theirs = {name: given for name, given in self.given.items() if name in declared or name not in options}
        for name, value in list(self.given_options.items()):
            dotted = next((each for each in (f"{_SECTION}.{name}", name) if each in declared), None)
            if dotted is not None:
                theirs[dotted] = Given(value, _option(name), is_text=not isinstance(value, list))
                del self.given_options[name]
        refuse_unknown(theirs, [*declared, *options])
        values = {name: setting.default for name, setting in declared.items()}
        values |= {name: convert(name, declared[name], given) for name, given in theirs.items()}
        format_toml(values)  # raises if a value cannot be stored
        self.settings = {**(self.settings if self.command else {}), **values}  # without a command, only the latest declaration counts
        self.on_declared()
        return values

    def has(self, option: str) -> bool:
        """Return whether the command sets an option, on its command line or in its section; a setting of the script does not count."""
        dotted = f"{_SECTION}.{option}"
        return option in self.given_options or (dotted in self.given and dotted not in self.settings)

    def options(self) -> TrainOptions:
        """Return the options of the command line and, if absent there, of its section. Raises ArgumentError for an undeclared setting."""
        left = {name: given for name, given in self.given.items() if name not in self.settings}
        known = declared_by(TrainOptions(), f"{_SECTION}.")
        refuse_unknown(left, list(known), "declare custom settings with ol.settings(...) in the script")
        values = {name.partition(".")[2]: convert(name, known[name], given) for name, given in left.items()}
        return TrainOptions(**{**values, **self.given_options})  # type: ignore[arg-type]

    def run_of(self, run: Run | str | os.PathLike[str] | None) -> Run | str | os.PathLike[str] | None:
        """Return the run folder for a call of `ol.train`: the given one, or that of the command.

        Raises ArgumentError if the command has options that the script must set itself.
        """
        if not self.is_script:
            return run
        self.trains = True
        options = self.options()
        passed = [name for name in PASSED if name in self.given_options and not self.settings]
        refused = [name for name in options.given if name not in ("run", "save_every", *passed)]
        if refused:
            raise ArgumentError(
                f"{_option(refused[0])} needs a saved program, or a script that defines a model without training it; "
                "this script calls ol.train",
                hint="declare ol.settings(...) in the script, and change them with --set NAME=VALUE",
            )
        own = None if run is None else Path(run.folder if isinstance(run, Run) else run)
        if own is not None and ((options.run or own).resolve() != own.resolve() or options.save_every is not None):
            raise ArgumentError(f'--{"run" if options.run else "save-every"} conflicts with the run folder that the script sets: "{own}"')
        if options.run is None and options.save_every is not None:
            raise ArgumentError("--save-every needs a run folder", hint="--run runs/one")
        self.folder = own or options.run
        return run if options.run is None or own is not None else Run(options.run, options.save_every)

    @property
    def in_effect(self) -> dict[str, object]:
        """All settings and options by dotted names, for a new run."""
        dropped = (*_NOT_KEPT, *PASSED) if self.is_script else _NOT_KEPT
        given = self.options().given if self.command else {}
        options = {f"{_SECTION}.{name}": value for name, value in given.items() if name not in dropped}
        return {**options, **self.settings}


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


_in_use = [Invocation()]  # the first one is for scripts that Python runs directly


def current_invocation() -> Invocation:
    """Return the current invocation."""
    return _in_use[-1]


Settings = TypeVar("Settings")


def settings(defaults: Settings) -> Settings:
    """Declare the settings of a script: return `defaults`, with the values given on the command line.

        settings = ol.settings({"hidden": 32, "train": {"lr": 1e-3, "epochs": 20}})

    `oarlock train script.py --config train.toml --set train.lr=3e-4` sets them by name, from a TOML file and individually; if Python runs
    the script directly, the defaults apply. `defaults` is a dict or a dataclass instance, possibly nested. The result has the same
    structure and types: those that a dataclass declares, or those of the values in a dict. A run folder stores the settings, and `oarlock
    resume` uses them again. Call it once in a script, before training.

    Raises ArgumentError for an undeclared setting, and for a value of the wrong type.
    """
    return _with(defaults, current_invocation().declare(declared_by(defaults)))


def _with(defaults: Any, values: Mapping[str, object], above: str = "") -> Any:
    """Return a copy of `defaults` with the values."""
    is_dict = isinstance(defaults, Mapping)
    names = list(defaults) if is_dict else [field.name for field in dataclasses.fields(defaults) if field.init]
    found = {}
    for name in names:
        value = defaults[name] if is_dict else getattr(defaults, name)
        dotted = f"{above}{name}"
        found[name] = values[dotted] if dotted in values else _with(value, values, f"{dotted}.")
    return found if is_dict else dataclasses.replace(defaults, **found)
