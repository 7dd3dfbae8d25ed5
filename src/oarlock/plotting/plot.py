"""`Plot`: the charts of one or several runs."""

import os
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from oarlock.errors import ArgumentError
from oarlock.io.atomic_write import write_file
from oarlock.plotting.chart import Chart
from oarlock.plotting.image import draw_image
from oarlock.plotting.svg import draw_picture
from oarlock.plotting.terminal import draw_text

__all__ = ["Plot"]

_IMAGES = ("png", "pdf")


@dataclass(frozen=True, repr=False)
class Plot:
    """Charts, one for each metric. `print` shows them as text, a notebook as SVG, and `save` writes a file."""

    charts: tuple[Chart, ...]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the charts to a `.svg`, or to a `.png` or `.pdf` by matplotlib, the extra `plot`.

        Raises ArgumentError for another suffix, or where matplotlib is missing; MissingFileError and WriteError as every writing does.
        """
        write_file(path, self.content(Path(path).suffix))

    def content(self, suffix: str) -> bytes:
        """The content of a file with this suffix: `.svg`, `.png` or `.pdf`. Raises ArgumentError."""
        kind = suffix.lower().removeprefix(".")
        if kind == "svg":
            return self._repr_svg_().encode()
        if kind not in _IMAGES:
            raise ArgumentError(f"a plot is saved as .png, .svg or .pdf, not as {suffix!r:.20}")
        return draw_image(self.charts, kind)

    def show(self, console: Console | None = None, *, height: int = 12) -> None:
        """Print the charts in the width of a terminal, in its colors if it has some."""
        console = console or Console()
        colors = console.color_system is not None and not console.no_color
        narrow = console.options.ascii_only
        text = draw_text(self.charts, width=min(console.width, 100), height=height, colors=colors, ascii_only=narrow)
        console.print(text, end="", soft_wrap=True, highlight=False)

    def __str__(self) -> str:
        return draw_text(self.charts).plain

    def __repr__(self) -> str:
        return f"<Plot of {', '.join(chart.label for chart in self.charts)}>"

    def _repr_svg_(self) -> str:
        return draw_picture(self.charts)
