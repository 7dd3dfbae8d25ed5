"""`oarlock ops`: list and describe operators."""

from typing import Annotated

import typer
from rich.console import Console

import oarlock.op
import oarlock.op.update  # noqa: F401  registers the update operators, which are listed too
from oarlock.cli.imported_operators import Imports, import_operators
from oarlock.registry.catalogue import standard
from oarlock.registry.page import format_page

__all__ = ["ops"]


def ops(name: Annotated[str | None, typer.Argument(help="Operator to describe.")] = None, imports: Imports = None) -> None:
    """List the operators, or describe one: signature, arguments, attributes, gradients, examples."""
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
