"""`oarlock datasets`: the data sets that a name is enough for."""

import inspect
from typing import Annotated

import typer
from rich.console import Console

from oarlock.datasets.by_name import GROUPS
from oarlock.errors import DataError
from oarlock.suggestions import did_you_mean

__all__ = ["datasets"]


def datasets(name: Annotated[str | None, typer.Argument(help="A data set, to print what it holds.")] = None) -> None:
    """List the data sets that [bold]--data[/] takes by name, or print what one holds: columns, rows, source, licence.

    [bold]--data iris:train[/] is what to train on, [bold]iris:test[/] what to test on, [bold]iris:all[/] both.
    """
    console = Console(highlight=False, soft_wrap=True)
    modules = {module.__name__.rpartition(".")[2]: module for group in GROUPS.values() for module in group}
    if name is None:
        width = max(map(len, modules))
        for title, group in GROUPS.items():
            console.print(f"{title}:")
            for module in group:
                label = module.__name__.rpartition(".")[2]
                console.print(f"  [bold]{label:<{width}}[/]  ", end="")
                console.print((module.__doc__ or "").splitlines()[0], markup=False)
        console.print("\nNext: [bold]oarlock datasets iris[/] prints what it holds.")
        return
    if name not in modules:
        raise DataError(f'there is no data set "{name}"', hint=did_you_mean(name, modules) or "oarlock datasets lists them")
    about = modules[name].DESCRIPTION
    console.print(inspect.getdoc(modules[name]), markup=False)
    lines = [("columns", ", ".join(f"{column} {kind}" for column, kind in about.columns.items()))]
    lines += [
        ("rows", ", ".join(f"{name}:{part} {count:,}" for part, count in about.rows.items()) or "as many as the Python that runs has")
    ]
    lines += [(title, ", ".join(names)) for title, names in (("features", about.features), ("classes", about.classes)) if names]
    lines += [("source", about.source), ("licence", about.licence)]
    console.print()
    for title, text in lines:
        console.print(f"{title:<9}{text}", markup=False)
