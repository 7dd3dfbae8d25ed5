"""`oarlock datasets`: list the data sets that can be given by name."""

import inspect
from typing import Annotated

import typer
from rich.console import Console

from oarlock.datasets.by_name import GROUPS
from oarlock.errors import DataError
from oarlock.suggestions import did_you_mean

__all__ = ["datasets"]


def datasets(name: Annotated[str | None, typer.Argument(help="Data set to describe.")] = None) -> None:
    """List the data sets that [bold]--data[/] accepts by name, or describe one: columns, rows, source, licence.

    [bold]--data iris:train[/] selects the training rows, [bold]iris:test[/] the test rows, [bold]iris:all[/] both.
    """
    console = Console(highlight=False, soft_wrap=True)
    data_sets = {data_set.name: data_set for group in GROUPS.values() for data_set in group}
    if name is None:
        width = max(map(len, data_sets))
        for title, group in GROUPS.items():
            console.print(f"{title}:")
            for data_set in group:
                console.print(f"  [bold]{data_set.name:<{width}}[/]  ", end="")
                console.print((data_set.__doc__ or "").splitlines()[0], markup=False)
        console.print("\nNext: [bold]oarlock datasets iris[/] describes one.")
        return
    if name not in data_sets:
        raise DataError(f'there is no data set "{name}"', hint=did_you_mean(name, data_sets) or "oarlock datasets lists them")
    about = data_sets[name].DESCRIPTION
    console.print(inspect.getdoc(data_sets[name]), markup=False)
    lines = [("columns", ", ".join(f"{column} {kind}" for column, kind in about.columns.items()))]
    lines += [("rows", ", ".join(f"{name}:{part} {count:,}" for part, count in about.rows.items()) or "depends on the Python version")]
    lines += [(title, ", ".join(names)) for title, names in (("features", about.features), ("classes", about.classes)) if names]
    lines += [("source", about.source), ("licence", about.licence)]
    console.print()
    for title, text in lines:
        console.print(f"{title:<9}{text}", markup=False)
