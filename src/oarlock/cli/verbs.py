"""The verbs of the command line. Each is imported on demand, so that help and light verbs do not wait for PyTorch."""

import ast
import importlib
import inspect
import re
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
    """A verb before it is imported: its `module` in this folder and the `function` there, named like the module by default.

    If it `opens_program`, its output file goes to the first given parameter of `places`. `takes_words`: further arguments are passed to a
    script.
    """

    module: str
    function: str = ""
    opens_program: bool = False
    places: tuple[str, ...] = ()
    takes_words: bool = False

    @property
    def help(self) -> str:
        """The docstring of the function, parsed from its file."""
        tree = ast.parse(Path(__file__).with_name(f"{self.module}.py").read_text(encoding="utf-8"))
        named = self.function or self.module
        return next(ast.get_docstring(node) or "" for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == named)

    def load(self, name: str) -> Any:
        """Import the verb as the command `name`."""
        with interrupts_end_at_once():
            function = getattr(importlib.import_module(f"oarlock.cli.{self.module}"), self.function or self.module)
            kind = VerbCommand
            if self.opens_program:
                from oarlock.cli.untrusted_run import opens_program

                kind = opens_program(*self.places)
        alone = typer.Typer(add_completion=False)
        text = re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.getdoc(function) or "")  # rich would keep the line breaks of a paragraph
        alone.command(name, cls=kind, help=text, context_settings=_OTHER_WORDS if self.takes_words else None)(function)
        return typer.main.get_command(alone)


def _without_type(options: list[Any]) -> list[Any]:
    """Return the options of a command without the <bool> that help would show for flags."""
    for option in options:
        if getattr(option, "is_flag", False) and option.metavar is None:
            option.metavar = ""
    return options


class VerbCommand(TyperCommand):
    """An imported verb."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_type(super().get_params(ctx))


class VerbGroup(TyperGroup):
    """A group of verbs known by name. Its help parses their docstrings without importing them."""

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
    """Return the class of a group with these verbs."""
    return type("Verbs", (VerbGroup,), {"verbs": verbs})
