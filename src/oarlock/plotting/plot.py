"""`Plot`: the charts of runs."""

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
    """Charts, one per metric. They print as text, display as SVG in a notebook, and `save` writes a file."""

    charts: tuple[Chart, ...]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the charts to a `.svg` file or, with matplotlib (the extra `plot`), to a `.png` or `.pdf` file.

        Raises ArgumentError for another suffix or if matplotlib is not installed, MissingFileError or WriteError.
        """
        write_file(path, self.content(Path(path).suffix))

    def content(self, suffix: str) -> bytes:
        """Return the content of a file with this suffix: `.svg`, `.png` or `.pdf`. Raises ArgumentError."""
        kind = suffix.lower().removeprefix(".")
        if kind == "svg":
            return self._repr_svg_().encode()
        if kind not in _IMAGES:
            raise ArgumentError(f"a plot can be saved as .png, .svg or .pdf, not as {suffix!r:.20}")
        return draw_image(self.charts, kind)

    def show(self, console: Console | None = None, *, height: int = 12) -> None:
        """Print the charts in the width of the terminal, in color if it has colors."""
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
