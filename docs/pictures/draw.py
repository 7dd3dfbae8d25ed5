"""Pictures that are the same wherever they are drawn, which make.py writes beside this file.

`program.svg` is a program and the scopes of one of its runs; `classifier.svg`, `branches.svg` and `char_gpt.svg` are drawn programs.
`step_times.svg` is a chart of the table of step times in
`docs/benchmarks/2026-11.md`, which is the home of its figures. A test says when a picture is not what this writes.
"""

import re
import runpy
from pathlib import Path

import numpy

import oarlock as ol
from oarlock.drawing.canvas import Canvas
from oarlock.drawing.style import HEAD
from oarlock.drawing.svg import FrameBox

HERE = Path(__file__).resolve().parent
FIGURES = HERE.parent / "benchmarks" / "2026-11.md"
WORKLOADS = HERE.parents[1] / "benchmarks" / "workloads" / "__init__.py"

ROW = 20


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
        program.targets = {"cost": cost}
        ol.optimizer.SGD(0.1).minimize(cost)
    return program, cost


def draw_program() -> str:
    program, cost = write_program()
    scope = ol.init(program, ol.Scope())
    feed = {"words": numpy.ones((3, 4), "float32"), "start": numpy.zeros(4, "float32")}
    boxes = [FrameBox(frame, depth=9) for frame in ol.draw(program, source=False).outline.frames]
    width = max(box.width for box in boxes)
    drawing = Canvas(width + 476, "A program as nested blocks, and the nested scopes of one run of it")
    drawing.text(16, 24, "The program: nested blocks of operators", bold=True)
    end, beside = 36.0, []
    for box in boxes:
        box.paint(drawing, 16, end, width)
        beside += [end + top + HEAD for top, inner in zip(box.tops, box.inner, strict=True) if inner]  # the blocks of loops
        end += box.height + 8
    end -= 8
    side = width + 32  # where the scopes begin

    drawing.text(side, 24, "One run over three words: nested scopes of values", bold=True)
    with ol.Executor().run(program, feed, [cost], scope=scope, keep_scopes=True)[1] as scopes:
        paths = list(scopes)
        loops = [path for path in paths if path.count("/") == 1]
        drawing.box(side, 36, 428, end - 36, "outer", outlined="line", round=4)
        drawing.text(side + 10, 53, "your scope: " + ", ".join(scope), code=True, bold=True)
        drawing.text(side + 10, 72, "kept from step to step", "note")
        drawing.box(side + 12, 84, 404, end - 138, "page", outlined="line", round=4)
        drawing.text(side + 10, end - 32, "At the end of the step, the commits write the new", "note")
        drawing.text(side + 10, end - 14, "values of @STEP and u into your scope.", "note")
        drawing.text(side + 22, 101, "main: words, start, mean_0, ...", code=True, bold=True)
        drawing.text(side + 22, 120, "dropped when the run ends", "note")
        for loop, y in zip(loops, beside, strict=True):
            trips = [path for path in paths if path.startswith(loop + "/")]
            block = next(inner for op in program.main.ops for inner in op.blocks if inner.name == f"{loop.split('/')[1]}.body")
            computed = [var.name for op in block.ops for vars in op.outputs.values() for var in vars]
            height = 52 + ROW * (len(computed) + 1)
            drawing.box(side + 24, y, 380, height, "inner", outlined="line", round=4)
            drawing.text(
                side + 34, y + 18, loop.split("/")[1] + (": last word first" if "@GRAD" in loop else ": a scope for each word"), code=True
            )
            for number, trip in enumerate(trips):
                left = side + 34 + number * 122
                drawing.box(left, y + 30, 116, height - 40, "page", outlined="line", round=4)
                drawing.text(left + 8, y + 48, trip.split("/")[2], code=True, bold=True)
                for place, name in enumerate(name for name in computed if name in list(scopes[trip])):
                    drawing.text(left + 8, y + 50 + ROW * (place + 1), name, code=True)
    return drawing.svg()


def read_step_times(document: str) -> list[tuple[str, float, str, float]]:
    """Workload, our milliseconds, the best peer and its milliseconds: of each row of the table in a document."""
    names = dict(re.findall(r'"([WI]\d+)": \w+\.(\w+),', WORKLOADS.read_text(encoding="utf-8")))
    rows = re.findall(r"^\| ([WI]\d+) \| ([\d.]+) \| (\D[^|]*) ([\d.]+) \| [\d.]+ \|", document, re.MULTILINE)
    return [(f"{row} {names[row].replace('_', ' ')}", float(ours), peer, float(best)) for row, ours, peer, best in rows]


def draw_step_times(document: str | None = None) -> str:
    rows = read_step_times(FIGURES.read_text(encoding="utf-8") if document is None else document)
    left, unit = 190, 240
    drawing = Canvas(960, "Time of a step, beside the fastest other framework")
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


def draw_classifier() -> str:
    """A classifier of digits, its gradients and its updates."""
    with ol.Program(seed=0) as program:
        image, label = ol.layer.data("image", [64]), ol.layer.data("label", [], dtype="int64")
        hidden = ol.layer.fc(image, 32, act="relu", name="hidden")
        logits = ol.layer.fc(hidden, 10, name="logits")
        cost = ol.layer.cross_entropy(logits, label)
        program.targets = {"loss": cost, "accuracy": ol.layer.accuracy(ol.layer.softmax(logits), label)}
        ol.optimizer.SGD(0.1).minimize(cost)
    return ol.draw(program, source=False).svg


def draw_branches() -> str:
    """Rows that take one of two networks each."""
    with ol.Program(seed=0) as program:
        pixels = ol.layer.data("pixels", [64])
        bright = ol.op.reduce_sum(pixels, axis=1) > 20
        networks = ol.ifelse()
        with networks.true_block():
            networks.output(ol.layer.fc(pixels, 10, name="bright"))
        with networks.false_block():
            networks.output(ol.layer.fc(ol.layer.fc(pixels, 32, act="tanh", name="dark.first"), 10, name="dark.second"))
        program.targets = {"logits": networks(bright)}
    return ol.draw(program, source=False).svg


def draw_char_gpt() -> str:
    """The network of the example, with one of its two blocks open."""
    example = runpy.run_path(str(HERE.parents[1] / "examples" / "char_gpt.py"))
    with ol.Program(seed=0) as program:
        program.targets = {"logits": example["gpt"](ol.layer.data("ids", [64], dtype="int64"))}
    return ol.draw(program, depth=2, source=False).svg


PICTURES = {
    "program.svg": draw_program,
    "classifier.svg": draw_classifier,
    "branches.svg": draw_branches,
    "char_gpt.svg": draw_char_gpt,
    "step_times.svg": draw_step_times,
}
