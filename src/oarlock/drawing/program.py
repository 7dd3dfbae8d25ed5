"""`draw`: a program as nested boxes, in SVG or HTML."""

import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from oarlock.drawing.details import bytes_of, count_text, describe_var, elements_of, memory_text, plain, type_of
from oarlock.drawing.escaping import escaped
from oarlock.drawing.html import frames_html, page
from oarlock.drawing.outline import Frame, Outline, count_ops
from oarlock.drawing.style import css_variables
from oarlock.drawing.svg import draw_frames
from oarlock.errors import ArgumentError
from oarlock.garbage_collection import collection_paused
from oarlock.ir.block import Block
from oarlock.ir.block_stack import default_program
from oarlock.ir.location import here
from oarlock.ir.program import Program

__all__ = ["ProgramDrawing", "draw"]

_STYLE = (Path(__file__).parent / "program.css").read_text(encoding="utf-8")
_SEEN = 60  # items of a section initially visible in a page, approximately
_DRAWN = 150  # items of a section visible in an image
_NOTEBOOK = 5_000  # the most ops to show as HTML in a notebook
_DEEPEST = 12
_FOLDED = ("backward", "update", "keep", "count", "commit")  # sections that are initially closed
_LEGEND = (
    '<span class="ol-legend">\u25bc input \u2002\u25cb op \u2002\u25cf with parameters \u2002'
    "\u25a0 layer, or op with blocks \u2002\u25c6 output</span>"
)


@dataclass(frozen=True, eq=False)
class ProgramDrawing:
    """A drawing of a program, which notebooks display.

    `svg` is an image; `html` an element with its style, for any page, which is collapsible without a script; `page` a self-contained page.
    `depth` is the number of nested layers and blocks that are initially open, fixed in an image; None chooses it by the size of the
    program.
    """

    outline: Outline
    depth: int | None = None

    @cached_property
    def svg(self) -> str:
        """The picture as SVG, with the inner blocks folded."""
        return draw_frames(self.outline.frames, self._title(), self._depths(_DRAWN)).svg()

    @cached_property
    def html(self) -> str:
        """The drawing as HTML for a page or a notebook, with blocks that open and close."""
        folded = frozenset(_FOLDED) if self.depth is None else frozenset()
        body = frames_html(self.outline.frames, self._prefix, self._depths(_SEEN), folded)
        style = css_variables(".oarlock") + _STYLE
        return f'<style>{style}</style>\n<div class="oarlock">{self._header()}{body}{self._parameters()}</div>\n'

    @property
    def page(self) -> str:
        """The drawing as a whole HTML page."""
        return page(self._title(), self.html)

    def _repr_html_(self) -> str | None:
        """Return the HTML, or None for a large program, for which a notebook shows the image."""
        return self.html if self.outline.ops <= _NOTEBOOK else None

    def _repr_svg_(self) -> str:
        return self.svg

    @cached_property
    def _prefix(self) -> str:
        """The prefix of the ids of this program in a page, which differs between programs."""
        texts = "\n".join(item.details for frame in self.outline.frames for item in frame.items)
        return f"{zlib.crc32(texts.encode(errors='replace')):08x}-"

    def _depths(self, most: int) -> list[int]:
        """Return the number of nested frames to open in each section: `depth`, or as many as show about `most` items."""
        if self.depth is not None:
            return [self.depth] * len(self.outline.frames)
        return [max(depth for depth in range(_DEEPEST) if not depth or _seen(frame, depth) <= most) for frame in self.outline.frames]

    def _title(self) -> str:
        program = self.outline.block.program
        name = "Program" if self.outline.block.parent is None else f"Block {self.outline.block.path}"
        blocks = self.outline.blocks
        parameters = [var for var in self.outline.persistables if var.parameter]
        parts = [f"{count_ops(self.outline.ops)} in {blocks:,} block{'s' if blocks > 1 else ''}"]
        if parameters:
            parts.append(f"{count_text(elements_of(parameters))} parameters, {memory_text(bytes_of(parameters))}")
        drive = program.training
        if drive is not None:
            parts.append(f"batch size {drive.batch_size:,}, {drive.epochs:,} epoch{'s' if drive.epochs != 1 else ''}")
        return plain(f"{name}: {'; '.join(parts)}")

    def _header(self) -> str:
        name, _, rest = self._title().partition(": ")
        return f'<div class="ol-header"><b>{escaped(name)}</b><span>{escaped(rest)}</span>{_LEGEND}</div>'

    def _parameters(self) -> str:
        """Return a table of the persistable variables."""
        if not self.outline.persistables:
            return ""
        rows = []
        for var in self.outline.persistables:
            kind = "state" if not var.parameter else "parameter" if var.trainable else "frozen"
            start = "" if var.initializer is None else plain(var.initializer.type, 40)
            cells = f'<td class="ol-{"state" if kind == "state" else "parameter"}">{escaped(plain(var.name))}</td><td>{kind}</td>'
            cells += f'<td>{escaped(type_of(var))}</td><td class="ol-right">{memory_text(bytes_of([var]))}</td><td>{escaped(start)}</td>'
            title = escaped(describe_var(var, source=self.outline.source))
            rows.append(f'<tr id="{self._prefix}{self.outline.anchors[var]}" title="{title}">{cells}</tr>')
        head = f"<b>parameters and state</b> <i>{len(rows):,}</i>"
        return f'<details class="ol-table"><summary>{head}</summary><table><tbody>{"".join(rows)}</tbody></table></details>'


def _seen(frame: Frame, depth: int) -> int:
    """Return the number of visible items if `depth` nested frames are open."""
    if frame.level > depth:
        return 0
    return len(frame.items) + sum(_seen(inner, depth) for item in frame.items for inner in item.frames)


def draw(program: Program | Block | None = None, *, depth: int | None = None, source: bool = True) -> ProgramDrawing:
    """Draw a program, or one of its blocks, as nested boxes: each line is an op, with lines from the definition of a value to its readers.

    Forward, backward and update ops are separate sections; loops, branches and layers are nested boxes. Tooltips show source lines (unless
    `source` is False), types and attributes. `depth` limits the number of nested layers and blocks that are initially open. The default is
    the default program. Raises ArgumentError.

        drawing = ol.draw(program)
        Path("program.svg").write_text(drawing.svg, encoding="utf-8")
        Path("program.html").write_text(drawing.page, encoding="utf-8")
    """
    block = default_program().main if program is None else program.main if isinstance(program, Program) else program
    if not isinstance(block, Block):
        raise ArgumentError(f"draw takes a program, not {type(program).__name__}", location=here(), hint="ol.draw(model.program)")
    if depth is not None and (not isinstance(depth, int) or depth < 0):
        raise ArgumentError(f"draw: depth is a whole number from 0, not {depth!r:.60}", location=here())
    with collection_paused():
        return ProgramDrawing(Outline(block, source=source), depth)
