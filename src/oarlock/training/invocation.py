"""The command that runs a script: what it gives to `ol.settings` and `ol.train` there, and what it learns of them."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from oarlock.errors import ArgumentError
from oarlock.training.configuration import Given, format_toml, refuse_unknown
from oarlock.training.options import OPTIONS, TrainOptions
from oarlock.training.records import TrainingResult
from oarlock.training.run_folder import Run
from oarlock.training.setting_types import Setting, convert, declared_by

__all__ = ["PASSED", "Invocation", "current_invocation"]

Shown = Literal["live", "plain", "quiet"]
_SECTION = "train"
_OPTION_NAMES = tuple(f"{_SECTION}.{name}" for name in OPTIONS)
PASSED = ("epochs", "steps", "seed")  # to a script that trains by itself, as its own arguments
_NOT_KEPT = ("run", "steps")  # a run that goes on is in its folder, and goes on to its end


class Invocation:
    """A command, from its start to its end: a context manager, inside which it is the one in use.

    `command` are its words, `given` settings by dotted names, `asked` options of the command line, `progress` how progress is shown, None
    as the output tells. `is_script` says whether a script runs; what that declares is in `settings`, `trains` tells whether it called
    `ol.train`, and `folder` where its run is kept. `on_declared` is called when the script has declared settings; `on_result` is given
    what is trained, before the run says how it goes on.
    """

    def __init__(
        self,
        command: Sequence[str] = (),
        given: Mapping[str, Given] | None = None,
        asked: Mapping[str, object] | None = None,
        progress: Shown | None = None,
    ):
        self.command = list(command)
        self.given = dict(given or {})
        self.asked = {name: value for name, value in (asked or {}).items() if value not in (None, [])}
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
        """The values of the settings that a script declares. Raises ArgumentError for one given that is not there, or not of its type.

        An option such as `--epochs` is that of a setting `train.epochs`, or `epochs`, where the script declares one.
        """
        options = _OPTION_NAMES if self.command else ()
        theirs = {name: given for name, given in self.given.items() if name in declared or name not in options}
        for name, value in list(self.asked.items()):
            dotted = next((each for each in (f"{_SECTION}.{name}", name) if each in declared), None)
            if dotted is not None:
                theirs[dotted] = Given(value, _option(name), is_text=not isinstance(value, list))
                del self.asked[name]
        refuse_unknown(theirs, [*declared, *options])
        values = {name: setting.default for name, setting in declared.items()}
        values |= {name: convert(name, declared[name], given) for name, given in theirs.items()}
        format_toml(values)  # which refuses what no file holds
        self.settings = {**(self.settings if self.command else {}), **values}  # those of the script that declared last, without a command
        self.on_declared()
        return values

    def has(self, option: str) -> bool:
        """Whether the command has an option: on its line or in its section, and not as a setting of the script's own."""
        dotted = f"{_SECTION}.{option}"
        return option in self.asked or (dotted in self.given and dotted not in self.settings)

    def options(self) -> TrainOptions:
        """The options of the command: those of its line, else of its section. Raises ArgumentError for a setting that nothing declares."""
        left = {name: given for name, given in self.given.items() if name not in self.settings}
        known = declared_by(TrainOptions(), f"{_SECTION}.")
        refuse_unknown(left, list(known), "ol.settings(...) in the script declares settings of its own")
        values = {name.partition(".")[2]: convert(name, known[name], given) for name, given in left.items()}
        return TrainOptions(**{**values, **self.asked})  # type: ignore[arg-type]

    def run_of(self, run: Run | str | os.PathLike[str] | None) -> Run | str | os.PathLike[str] | None:
        """The folder of a call of `ol.train`: its own, or else that of the command. Raises ArgumentError where the command is to train."""
        if not self.is_script:
            return run
        self.trains = True
        options = self.options()
        passed = [name for name in PASSED if name in self.asked and not self.settings]
        refused = [name for name in options.given if name not in ("run", "save_every", *passed)]
        if refused:
            raise ArgumentError(
                f"{_option(refused[0])} is for a saved program, or for a script that makes a model and leaves training to the command; "
                "this one trains by itself",
                hint="ol.settings(...) in the script, and --set NAME=VALUE, change what it trains with",
            )
        own = None if run is None else Path(run.folder if isinstance(run, Run) else run)
        if own is not None and ((options.run or own).resolve() != own.resolve() or options.save_every is not None):
            raise ArgumentError(
                f'--{"run" if options.run else "save-every"} is given, and the script names the folder of its run itself: "{own}"'
            )
        if options.run is None and options.save_every is not None:
            raise ArgumentError("--save-every is for a run in a folder", hint="--run runs/one")
        self.folder = own or options.run
        return run if options.run is None or own is not None else Run(options.run, options.save_every)

    @property
    def in_effect(self) -> dict[str, object]:
        """All settings and options by dotted names, as a new run begins with them."""
        dropped = (*_NOT_KEPT, *PASSED) if self.is_script else _NOT_KEPT
        given = self.options().given if self.command else {}
        options = {f"{_SECTION}.{name}": value for name, value in given.items() if name not in dropped}
        return {**options, **self.settings}


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


_in_use = [Invocation()]  # the first one is that of a script which Python runs


def current_invocation() -> Invocation:
    """The one in use."""
    return _in_use[-1]
