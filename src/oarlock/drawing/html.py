"""An outline as HTML: nested boxes that are collapsible by `<details>`, and a whole page around them."""

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path

from oarlock.drawing.escaping import escaped
from oarlock.drawing.lines import gutter_width, lane_lines
from oarlock.drawing.outline import Frame, Item, Word, count_ops
from oarlock.drawing.style import css_variables

__all__ = ["frames_html", "page"]


def frames_html(frames: Sequence[Frame], prefix: str, depths: Sequence[int], folded: frozenset[str] = frozenset()) -> str:
    """Return the frames as HTML. Those nested deeper than their entry of `depths`, or with titles in `folded`, are initially closed.

    `prefix` begins every id, so that several drawings fit into one page.
    """
    parts: list[str] = []
    for frame, depth in zip(frames, depths, strict=True):
        _Painter(parts, prefix, depth, folded).frame(frame)
    return "".join(parts)


class _Painter:
    def __init__(self, parts: list[str], prefix: str, depth: int, folded: frozenset[str]):
        self.parts, self.prefix, self.depth, self.folded = parts, prefix, depth, folded

    def frame(self, frame: Frame) -> None:
        write = self.parts.append
        if frame.kind == "layer":
            self._body(frame)
            return
        opened = "" if frame.title in self.folded or frame.level > self.depth else " open"
        write(f'<details class="ol-{frame.kind} ol-{frame.role}"{opened}>')
        write(f"<summary><b>{escaped(frame.title)}</b> <i>{count_ops(frame.ops)}</i></summary>")
        self._body(frame)
        write("</details>")

    def _body(self, frame: Frame) -> None:
        write = self.parts.append
        label = min(max((len(item.label) for item in frame.items), default=0), 22)
        write(f'<div class="ol-body" style="--g:{gutter_width(frame.lanes)}px;--l:{label + 1}ch">')
        for item in frame.items:
            self._item(item, frame)
        write("</div>")

    def _item(self, item: Item, frame: Frame) -> None:
        write = self.parts.append
        write(f'<div class="ol-item ol-{item.kind}" id="{self.prefix}{item.anchor}">')
        write(_gutter(item, frame.lanes))
        head = (
            f'<b class="ol-label">{escaped(item.label)}</b><span class="ol-words">{"".join(self._word(word) for word in item.words)}</span>'
            f'<span class="ol-type">{escaped(item.result)}</span>'
        )
        tip = f'data-tip="{escaped(item.details)}" tabindex="0"'
        if item.kind == "layer":
            opened = " open" if frame.level < self.depth else ""
            write(f'<details class="ol-layer"{opened}><summary class="ol-head" {tip}>{head}</summary>')
            for inner in item.frames:
                self.frame(inner)
            write("</details>")
        else:
            write(f'<div class="ol-head" {tip}>{head}</div>')
            for inner in item.frames:
                self.frame(inner)
        write("</div>")

    def _word(self, word: Word) -> str:
        if word.anchor:
            return f'<a class="ol-{word.kind}" href="#{self.prefix}{word.anchor}">{escaped(word.text)}</a> '
        return f'<span class="ol-{word.kind}">{escaped(word.text)}</span> '


def _gutter(item: Item, lanes: int) -> str:
    return f'<svg class="ol-lanes" aria-hidden="true" width="{gutter_width(lanes)}" height="100%">{lane_lines(item)}</svg>'


_SCRIPT = (Path(__file__).parent / "program.js").read_text(encoding="utf-8")
_STYLE = css_variables("body") + "body{margin:0;padding:16px 20px 220px;background:var(--page)}"


def page(title: str, content: str) -> str:
    """Return an HTML page. Its policy allows no requests, and no script except the one with the given digest."""
    digest = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escaped(title)}</title><style>{_STYLE}</style></head>\n<body>{content}<script>{_SCRIPT}</script></body></html>\n"
    )
