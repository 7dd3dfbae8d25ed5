"""The verbs that describe operators, errors and data sets: `ops`, `explain` and `datasets`.

Explaining an error needs no PyTorch, so the other verbs import it themselves.
"""

import inspect
from typing import Annotated

import typer
from rich.console import Console

from oarlock import errors
from oarlock.cli.options import Imports, import_operators
from oarlock.errors import ArgumentError, DataError
from oarlock.suggestions import did_you_mean

__all__ = ["datasets", "explain", "ops"]


def ops(name: Annotated[str | None, typer.Argument(help="Operator to describe.")] = None, imports: Imports = None) -> None:
    """List the operators, or describe one: signature, arguments, attributes, gradients, examples."""
    import oarlock.op.update  # noqa: F401  registers all operators
    from oarlock.registry.catalogue import standard
    from oarlock.registry.page import format_page

    for module in imports or ():
        import_operators(module)
    console = Console(highlight=False, soft_wrap=True)
    if name is not None:
        console.print(format_page(standard.get(name)), markup=False, end="")
        return
    operators = list(standard)
    width = max(len(operator.type) for operator in operators)
    for operator in operators:
        first = operator.doc.splitlines()[0].replace("``", "") if operator.doc else ""
        console.print(f"[bold]{operator.type:<{width}}[/]  ", end="")
        console.print(first, markup=False)


def explain(name: Annotated[str | None, typer.Argument(help="Error class, such as ShapeError.")] = None) -> None:
    """Explain an Oarlock error, with its cause and its fix, or list all of them."""
    if name is None:
        typer.echo(inspect.getdoc(errors))
        return
    if name not in errors.__all__:
        raise ArgumentError(f'there is no error class "{name}"', contract=", ".join(errors.__all__))
    typer.echo(f"{name}\n\n{inspect.getdoc(getattr(errors, name))}")


def datasets(name: Annotated[str | None, typer.Argument(help="Data set to describe.")] = None) -> None:
    """List the data sets that [bold]--data[/] accepts by name, or describe one: columns, rows, source, licence.

    [bold]--data iris:train[/] selects the training rows, [bold]iris:test[/] the test rows, [bold]iris:all[/] both.
    """
    from oarlock.datasets.by_name import GROUPS

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
