"""The pictures of README.md, written as SVG beside this file: `python docs/pictures/draw.py`.

`program.svg` is a program and the scopes of one of its runs. `step_times.svg` is a chart of the table of step times in
`docs/benchmarks/2026-11.md`, which is the home of its figures. A test says when a picture is not what this writes.
"""

import re
from html import escape
from pathlib import Path

import numpy

import oarlock as ol
from oarlock.ir.block import Block
from oarlock.ir.operation import Op

HERE = Path(__file__).resolve().parent
FIGURES = HERE.parent / "benchmarks" / "2026-11.md"
WORKLOADS = HERE.parents[1] / "benchmarks" / "workloads" / "__init__.py"

COLORS = {  # by class: on a light page, on a dark one
    "page": ("#ffffff", "#0d1117"),
    "outer": ("#f6f8fa", "#161b22"),
    "inner": ("#ddf4ff", "#0c2d4d"),
    "line": ("#8c959f", "#6e7681"),
    "text": ("#1f2328", "#e6edf3"),
    "note": ("#59636e", "#9198a1"),
    "ours": ("#0969da", "#4493f8"),
    "peer": ("#afb8c1", "#545d68"),
}
ROW = 20


class Drawing:
    """An SVG of a given width, whose height is what was drawn. Its colors follow the reader's scheme; its page is opaque."""

    def __init__(self, width: int, title: str):
        self.width, self.title, self.bottom = width, title, 0
        self.parts: list[str] = []

    def box(self, x: float, y: float, width: float, height: float, kind: str, *, outlined: bool = False) -> None:
        border = f' stroke="{COLORS["line"][0]}"' if outlined else ""
        shape = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
        self.parts.append(f'<rect class="{kind}" {shape} rx="{4 if outlined else 0}" fill="{COLORS[kind][0]}"{border}/>')
        self.bottom = max(self.bottom, round(y + height))

    def text(
        self, x: float, y: float, words: str, kind: str = "text", *, code: bool = False, bold: bool = False, end: bool = False
    ) -> None:
        font = "ui-monospace, Menlo, Consolas, monospace" if code else "system-ui, Helvetica, Arial, sans-serif"
        weight, anchor = ' font-weight="600"' if bold else "", ' text-anchor="end"' if end else ""
        place = f'x="{x:g}" y="{y:g}" font-family="{font}" font-size="12"{weight}{anchor}'
        self.parts.append(f'<text class="{kind}" {place} fill="{COLORS[kind][0]}">{escape(words)}</text>')
        self.bottom = max(self.bottom, round(y + 6))

    def svg(self) -> str:
        height = self.bottom + 12
        size = f'width="{self.width}" height="{height}"'
        dark = " ".join(f".{kind} {{ fill: {color} }}" for kind, (_, color) in COLORS.items())
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {self.width} {height}" role="img">',
            f"<title>{escape(self.title)}</title>",
            f"<style>@media (prefers-color-scheme: dark) {{ {dark} }}</style>",
            f'<rect class="page" {size} rx="6" fill="{COLORS["page"][0]}"/>',
            *self.parts,
            "</svg>",
        ]
        return "\n".join(lines) + "\n"


def write_program() -> tuple[ol.Program, ol.Var]:
    """A recurrent network of one line, its gradient and its update."""
    with ol.Program(seed=0) as program:
        words = ol.layer.data("words", shape=[4], batch="t")
        start = ol.layer.data("start", shape=[4], batch=None)
        u = ol.layer.create_parameter([4], name="u")
        rnn = ol.rnn()
        with rnn.step():
            state = rnn.memory(init=start)
            after = ol.op.tanh(rnn.step_input(words) + rnn.previous_memory(state) * u)
            rnn.update_memory(state, after)
            rnn.output(after)
        cost = ol.layer.mean(rnn())
        ol.optimizer.SGD(0.1).minimize(cost)
    return program, cost


def line_of(op: Op, *, commits: bool, longest: int = 58) -> str:
    """An op as it prints, without types and attributes, cut at an argument."""
    outputs, inputs = ([var.name for vars in slots.values() for var in vars] for slots in (op.outputs, op.inputs))
    if commits:
        return f"{outputs[0]} <- {inputs[0]}"
    head = f"{', '.join(outputs if len(outputs) < 3 else [outputs[0], '...'])} = {op.type}("
    shown = list(inputs)
    while shown and len(head + ", ".join(shown)) > longest:
        shown.pop()
    return head + ", ".join([*shown, "..."] if len(shown) < len(inputs) else shown) + ")"


def draw_block(drawing: Drawing, block: Block, x: float, y: float, width: float) -> float:
    """Draw a block and those inside it; return where it ends."""
    place = len(drawing.parts)
    inputs = ", ".join(var.name for var in block.inputs)
    title = f"block {block.name}({inputs})"
    drawing.text(x + 10, y + 17, title if len(title) < 58 else f"block {block.name}(...)", code=True, bold=True)
    row, part = y + ROW + 4, "forward"
    for op in block.ops:
        commits = any(op is last for last in block.tail)
        now = "commit" if commits else op.role.name.lower()
        if now != part and block.parent is None:
            drawing.text(x + 10, row + 18, f"{now}:", "note", code=True)
            row, part = row + ROW + 4, now
        drawing.text(x + 10, row + 14, line_of(op, commits=commits), code=True)
        row += ROW
        for inner in op.blocks:
            row = draw_block(drawing, inner, x + 24, row + 2, width - 36) + 6
    box = Drawing(0, "")
    box.box(x, y, width, row + 6 - y, "outer" if block.parent is None else "inner", outlined=True)
    drawing.parts[place:place] = box.parts
    drawing.bottom = max(drawing.bottom, box.bottom)
    return row + 6


def draw_program() -> str:
    program, cost = write_program()
    scope = ol.init(program, ol.Scope())
    feed = {"words": numpy.ones((3, 4), "float32"), "start": numpy.zeros(4, "float32")}
    drawing = Drawing(960, "A program as nested blocks, and the nested scopes of one run of it")
    drawing.text(16, 24, "The program: nested blocks of operators", bold=True)
    end = draw_block(drawing, program.main, 16, 36, 480)

    drawing.text(516, 24, "One run over three words: nested scopes of values", bold=True)
    with ol.Executor().run(program, feed, [cost], scope=scope, keep_scopes=True)[1] as scopes:
        paths = list(scopes)
        loops = [path for path in paths if path.count("/") == 1]
        drawing.box(516, 36, 428, end - 36, "outer", outlined=True)
        drawing.text(526, 53, "your scope: " + ", ".join(scope), code=True, bold=True)
        drawing.text(526, 72, "kept from step to step", "note")
        drawing.box(528, 84, 404, end - 138, "page", outlined=True)
        drawing.text(526, end - 32, "At the end of the step, the commits write the new", "note")
        drawing.text(526, end - 14, "values of @STEP and u into your scope.", "note")
        drawing.text(538, 101, "main: words, start, mean_0, ...", code=True, bold=True)
        drawing.text(538, 120, "dropped when the run ends", "note")
        y = 134.0
        for loop in loops:
            trips = [path for path in paths if path.startswith(loop + "/")]
            block = next(inner for op in program.main.ops for inner in op.blocks if inner.name == f"{loop.split('/')[1]}.body")
            computed = [var.name for op in block.ops for vars in op.outputs.values() for var in vars]
            height = 52 + ROW * (len(computed) + 1)
            drawing.box(540, y, 380, height, "inner", outlined=True)
            drawing.text(
                550, y + 18, loop.split("/")[1] + (": last word first" if "@GRAD" in loop else ": a scope for each word"), code=True
            )
            for number, trip in enumerate(trips):
                left = 550 + number * 122
                drawing.box(left, y + 30, 116, height - 40, "page", outlined=True)
                drawing.text(left + 8, y + 48, trip.split("/")[2], code=True, bold=True)
                for place, name in enumerate(name for name in computed if name in list(scopes[trip])):
                    drawing.text(left + 8, y + 50 + ROW * (place + 1), name, code=True)
            y += height + 14
    return drawing.svg()


def read_step_times(document: str) -> list[tuple[str, float, str, float]]:
    """Workload, our milliseconds, the best peer and its milliseconds: of each row of the table in a document."""
    names = dict(re.findall(r'"([WI]\d+)": \w+\.(\w+),', WORKLOADS.read_text(encoding="utf-8")))
    rows = re.findall(r"^\| ([WI]\d+) \| ([\d.]+) \| (\D[^|]*) ([\d.]+) \| [\d.]+ \|", document, re.MULTILINE)
    return [(f"{row} {names[row].replace('_', ' ')}", float(ours), peer, float(best)) for row, ours, peer, best in rows]


def draw_step_times(document: str | None = None) -> str:
    rows = read_step_times(FIGURES.read_text(encoding="utf-8") if document is None else document)
    left, unit = 190, 240
    drawing = Drawing(960, "Time of a step, beside the fastest other framework")
    drawing.text(16, 24, "Time of a step on two CPU cores. Shorter is faster. W: training; I: inference.", bold=True)
    drawing.box(left, 40, 12, 12, "ours")
    drawing.text(left + 18, 50, "Oarlock")
    drawing.box(left + 90, 40, 12, 12, "peer")
    drawing.text(left + 108, 50, "the fastest other framework that was measured on this workload, drawn as 1")
    y = 66
    for name, ours, peer, best in rows:
        drawing.text(left - 10, y + 18, name, end=True)
        drawing.box(left, y, unit * ours / best, 12, "ours")
        drawing.text(left + unit * ours / best + 6, y + 10, f"{ours:g} ms", "note")
        drawing.box(left, y + 13, unit, 12, "peer")
        drawing.text(left + unit + 6, y + 23, f"{peer}, {best:g} ms", "note")
        y += 32
    drawing.text(16, y + 14, f"How this was measured, and where Oarlock is slower: docs/benchmarks/{FIGURES.name}", "note")
    return drawing.svg()


PICTURES = {"program.svg": draw_program, "step_times.svg": draw_step_times}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (HERE / name).write_text(draw(), encoding="utf-8")
        print(f"wrote docs/pictures/{name}")
