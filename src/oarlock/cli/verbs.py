"""The verbs of a command line: each is imported when it is first asked for, so that help and light verbs need not wait for PyTorch."""

import ast
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

from oarlock.cli.entry import interrupts_end_at_once

__all__ = ["Verb", "VerbCommand", "VerbGroup", "group_of"]

_OTHER_WORDS = {"allow_extra_args": True, "ignore_unknown_options": True}


@dataclass(frozen=True)
class Verb:
    """A verb before it is imported: its `module` in this folder, and the `function` there, which is called like it unless given.

    One that `opens_program` writes its file to the path in the first of the parameters `places` that is given. `takes_words` is for one
    that hands words of the command on to a script.
    """

    module: str
    function: str = ""
    opens_program: bool = False
    places: tuple[str, ...] = ()
    takes_words: bool = False

    @property
    def help(self) -> str:
        """The docstring of the function, read from its file."""
        tree = ast.parse(Path(__file__).with_name(f"{self.module}.py").read_text(encoding="utf-8"))
        named = self.function or self.module
        return next(ast.get_docstring(node) or "" for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == named)

    def load(self, name: str) -> Any:
        """Import the verb, as the command `name`."""
        with interrupts_end_at_once():
            function = getattr(importlib.import_module(f"oarlock.cli.{self.module}"), self.function or self.module)
            kind = VerbCommand
            if self.opens_program:
                from oarlock.cli.untrusted_run import opens_program

                kind = opens_program(*self.places)
        alone = typer.Typer(add_completion=False)
        alone.command(name, cls=kind, context_settings=_OTHER_WORDS if self.takes_words else None)(function)
        return typer.main.get_command(alone)


def _without_type(options: list[Any]) -> list[Any]:
    """The options of a command; help says <bool> beside none that is only on or off, as if a word had to follow."""
    for option in options:
        if getattr(option, "is_flag", False) and option.metavar is None:
            option.metavar = ""
    return options


class VerbCommand(TyperCommand):
    """A verb that is imported."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_type(super().get_params(ctx))


class VerbGroup(TyperGroup):
    """A group that knows its verbs by name. The help of the group reads theirs, and imports none."""

    verbs: ClassVar[Mapping[str, Verb]] = {}

    def __init__(self, *, commands: Any = None, **options: Any):
        named = {name: TyperCommand(name) for name in self.verbs}
        super().__init__(commands={**named, **(commands or {})}, **options)

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_type(super().get_params(ctx))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        for name, verb in self.verbs.items():
            self.commands[name].help = verb.help
        super().format_help(ctx, formatter)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] in self.verbs:
            self.add_command(self.verbs[args[0]].load(args[0]))
        return super().resolve_command(ctx, args)


def group_of(verbs: Mapping[str, Verb]) -> type[VerbGroup]:
    """The class of a group with these verbs."""
    return type("Verbs", (VerbGroup,), {"verbs": verbs})
