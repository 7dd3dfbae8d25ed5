"""Pictures of what the examples learn, which make.py writes to `gallery/` beside this file.

Each example is run as its command does, with its own seed, until its stop rule ends it, and what its `main` returns is drawn. A test draws
each from a short run.
"""

import base64
import contextlib
import io
import os
import re
import runpy
import struct
import tempfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy

import oarlock as ol
from oarlock.drawing.canvas import Canvas
from oarlock.drawing.style import COLORS

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "examples"

WIDTH = 640
Result = Mapping[str, Any]


def png(pixels: numpy.ndarray) -> str:
    """Pixels from 0 to 1, [h w] or [h w 3], as an address that holds them."""
    data = (numpy.clip(pixels, 0, 1) * 255).round().astype("uint8")
    rows = b"".join(b"\0" + row.tobytes() for row in data)
    parts = b"\x89PNG\r\n\x1a\n"
    head = struct.pack(">IIBBBBB", data.shape[1], data.shape[0], 8, 2 if data.ndim == 3 else 0, 0, 0, 0)
    for kind, content in ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b"")):
        parts += struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    return "data:image/png;base64," + base64.b64encode(parts).decode("ascii")


class Picture(Canvas):
    """A drawing with charts, points and images."""

    def image(self, x: float, y: float, size: float, pixels: numpy.ndarray) -> None:
        height = size * pixels.shape[0] / pixels.shape[1]
        place = f'x="{x:g}" y="{y:g}" width="{size:g}" height="{height:g}"'
        self.parts.append(f'<image {place} style="image-rendering: pixelated" href="{png(pixels)}"/>')
        self.bottom = max(self.bottom, round(y + height))

    def images(self, y: float, pixels: Sequence[numpy.ndarray], each: float, captions: Sequence[str] = (), *, across: int) -> float:
        """Rows of images; return where they end."""
        step = each + (22 if captions else 6)
        for number, one in enumerate(pixels):
            left, top = 16 + (number % across) * (each + 8), y + (number // across) * step
            self.image(left, top, each, one)
            if captions:
                self.text(left, top + each + 14, captions[number], "note")
        return y + -(-len(pixels) // across) * step

    def line(self, points: Sequence[tuple[float, float]], kind: str = "ours") -> None:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{COLORS[kind][0]}" stroke-width="2"/>')

    def dot(self, x: float, y: float, radius: float, color: str) -> None:
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{color}" fill-opacity="0.6"/>')
        self.bottom = max(self.bottom, round(y + radius))

    def chart(self, y: float, values: Mapping[str, Sequence[float]], below: str, *, height: float = 140) -> float:
        """Lines over a common axis of numbers from 1; return where the chart ends."""
        every = [value for line in values.values() for value in line]
        low, high = min(every), max(every)
        spread = (high - low) or 1.0
        left, right, bottom = 70, WIDTH - 120, y + height
        for value in (low, high):
            at = bottom - (value - low) / spread * height
            self.text(left - 8, at + 4, f"{value:.3g}", "note", end=True)
            self.parts.append(f'<path d="M{left} {at:.1f}H{right}" stroke="{COLORS["line"][0]}" stroke-width="0.5"/>')
        for (label, line), kind in zip(values.items(), ("ours", "line"), strict=False):
            places = numpy.linspace(left, right, len(line)) if len(line) > 1 else [right]
            points = [(x, bottom - (value - low) / spread * height) for x, value in zip(places, line, strict=True)]
            self.line(points, kind)
            self.dot(*points[-1], 3, COLORS[kind][0])
            self.text(right + 8, points[-1][1] + 4, label, kind)
        self.text(left, bottom + 18, f"{below}, 1 to {max(map(len, values.values()))}", "note")
        return bottom + 30

    def against(self, y: float, true: numpy.ndarray, told: numpy.ndarray, names: tuple[str, str], *, side: float = 260) -> float:
        """Points, what was told over what is true, and the line where they are the same; return where the chart ends."""
        low, high = float(min(true.min(), told.min())), float(max(true.max(), told.max()))
        left, bottom, digits = 70, y + side, 0 if high >= 10 else 1

        def place(a: float, b: float) -> tuple[float, float]:
            return left + (a - low) / (high - low) * side, bottom - (b - low) / (high - low) * side

        self.parts.append(
            f'<path d="M{left} {y:g}V{bottom:g}H{left + side:g}" stroke="{COLORS["line"][0]}" stroke-width="0.5" fill="none"/>'
        )
        self.line([place(low, low), place(high, high)], "line")
        for a, b in zip(true.tolist(), told.tolist(), strict=True):
            self.dot(*place(a, b), 2.5, COLORS["ours"][0])
        for value in (low, high):
            across, up = place(value, value)
            self.text(left - 8, up + 4, f"{value:.{digits}f}", "note", end=True)
            self.text(across + 12, bottom + 18, f"{value:.{digits}f}", "note", end=True)
        self.text(left + 60, bottom + 18, names[0], "note")
        self.text(left + 8, y + 10, names[1], "note")
        self.text(left + side + 12, y + 10, "as it was", "note")
        return bottom + 30


def draw_line(result: Result) -> Picture:
    picture = Picture(WIDTH, "Diabetes after a year, as one layer tells it, over what it was")
    picture.text(16, 24, f"Patients never seen: {result['errors'][-1] * 100:.0f} off, root of the mean square", bold=True)
    picture.against(40, result["true"] * 100, result["told"] * 100, ("what it was, across", "what was told, upward"))
    return picture


def draw_shapes(result: Result) -> Picture:
    picture = Picture(WIDTH, "Images in color, and the shape that the network tells in each")
    picture.text(16, 24, f"Images never seen, and what was told: {result['accuracy'][-1]:.1%} of 300 are right", bold=True)
    y = picture.images(36, list(result["image"].transpose(0, 2, 3, 1)), 58, result["told"], across=9)
    picture.chart(y + 20, {"accuracy": result["accuracy"]}, "epochs", height=80)
    return picture


def draw_words(result: Result) -> Picture:
    picture = Picture(WIDTH, "Words, and those whose vectors are nearest to theirs")
    picture.text(16, 24, "Words of the docstrings of Python's standard library, and the nearest to them", bold=True)
    for number, (word, near) in enumerate(result["neighbours"].items()):
        picture.text(16, 50 + 20 * number, word, code=True, bold=True)
        picture.text(120, 50 + 20 * number, ", ".join(near), code=True)
    picture.chart(picture.bottom + 24, {"loss": result["loss"]}, "epochs", height=80)
    return picture


def draw_ratings(result: Result) -> Picture:
    picture = Picture(WIDTH, "Ratings of films as they are told, over what they would be without whim")
    picture.text(16, 24, f"Ratings never seen: {result['error'][-1]:.2f} off, of which whim is 0.3", bold=True)
    picture.against(40, result["true"], result["told"], ("without whim, across", "what was told, upward"))
    return picture


def draw_roles(result: Result) -> Picture:
    colors = {"giver": "#0969da", "thing": "#9a6700", "receiver": "#1a7f37", "place": "#8250df"}
    roles = list(colors)
    picture = Picture(WIDTH, "Sentences with the roles that the network tells")
    picture.text(16, 24, f"Roles asked for by the verb in capitals: F1 {result['f1'][-1]:.3f} on sentences never seen", bold=True)
    for number, (role, color) in enumerate(colors.items()):
        picture.dot(24 + 110 * number, 44, 5, color)
        picture.text(34 + 110 * number, 48, role, "note")
    for row, (words, mark, told) in enumerate(zip(result["words"], result["mark"], result["told"], strict=True)):
        x, y = 16.0, 80.0 + 26 * row
        for word, marked, tag in zip(words, mark, told, strict=True):
            wide = 7.3 * len(word)
            picture.text(x, y, word.upper() if marked else word, code=True, bold=bool(marked))
            if tag < 2 * len(roles):
                picture.parts.append(f'<rect x="{x:g}" y="{y + 4:g}" width="{wide:g}" height="3" fill="{colors[roles[tag // 2]]}"/>')
            x += wide + 7
        picture.width = max(picture.width, round(x + 16))
    return picture


def draw_language(result: Result) -> Picture:
    picture = Picture(WIDTH, "The perplexity of a language model of words, and what it writes")
    picture.text(16, 24, "Perplexity of docstrings", bold=True)
    records = result["perplexity"]
    y = picture.chart(40, {name: [record[name] for record in records] for name in ("held out", "training")}, "epochs")
    words, row = result["text"].split(), ""
    for word in [*words, None]:
        if word is None or len(row) + len(word) > 80:
            picture.text(16, y + 14, row, code=True)
            row, y = "", y + 20
        row += f"{word} "
    return picture


def draw_digits_drawn(result: Result) -> Picture:
    picture = Picture(WIDTH, "Digits that a network draws out of noise")
    picture.text(16, 24, f"Drawn: {result['likeness'][-1]:.2f} as far from real digits as these from one another", bold=True)
    y = picture.images(36, list(1 - result["image"]), 50, across=10)
    picture.chart(y + 20, {"distance": result["likeness"]}, "measurements", height=80)
    return picture


def draw_catches(result: Result) -> Picture:
    picture = Picture(WIDTH, "Balls that are caught, as the network learns")
    picture.text(16, 24, "Share of the balls that are caught, of the last 250", bold=True)
    picture.chart(40, {"caught": result["caught"]}, "hundreds of moves")
    return picture


def draw_text(result: Result) -> Picture:
    picture = Picture(WIDTH, "What a character GPT writes, and what a character costs it")
    picture.text(16, 24, 'It goes on with four spaces and "def ", each character drawn from what it says', bold=True)
    y = 46
    printable = ("".join(letter if letter.isprintable() or letter == "\n" else " " for letter in text) for text in result["text"])
    for line in "\n".join(printable).split("\n"):
        picture.text(16, y, line.replace(" ", "\u00a0"), code=True)
        y += 17
    picture.chart(y + 10, {"bits": result["bits"]}, "measurements, bits for a character held out", height=80)
    return picture


def draw_masks(result: Result) -> Picture:
    inks = numpy.array([[0.9, 0.91, 0.92], [0.04, 0.41, 0.85], [0.6, 0.4, 0.0]])
    picture = Picture(WIDTH, "Noisy images, what their pixels are of, and what the network tells")
    picture.text(16, 24, f"Noise, truth, and what was told of images never seen: mean IoU {result['measured'][-1]['iou']:.3f}", bold=True)
    rows = [(result["image"][:, 0] + 1) / 3, inks[result["label"]], inks[result["told"]]]
    y = 36.0
    for row, name in zip(rows, ("noise", "truth", "told"), strict=True):
        picture.text(16, y + 12, name, "note")
        y = picture.images(y + 16, list(row), 92, across=6)
    return picture


def draw_items(result: Result) -> Picture:
    table = result["item"] / numpy.linalg.norm(result["item"], axis=1, keepdims=True)
    by_group = table.reshape(result["groups"], -1, table.shape[1]).mean(1)
    by_group /= numpy.linalg.norm(by_group, axis=1, keepdims=True)
    picture = Picture(WIDTH, "How alike the vectors of items are that groups of users click")
    epochs = "1 epoch" if len(result["recall"]) == 1 else f"{len(result['recall'])} epochs"
    recall = f"{result['recall'][-1]:.1%} of the clicks held out are among the first 20 of 5,000 items"
    picture.text(16, 24, f"{recall}, after {epochs}", bold=True)
    y = picture.chart(40, {"recall": result["recall"]}, "epochs", height=100) if len(result["recall"]) > 1 else 30.0
    picture.text(16, y + 20, "First items of each group of clicks, by how alike their vectors are", bold=True)
    chosen = table.reshape(result["groups"], -1, table.shape[1])[:20, :5].reshape(-1, table.shape[1])
    picture.image(16, y + 32, 300, 1 - numpy.clip(chosen @ chosen.T, 0, 1))
    return picture


def draw_digits(result: Result) -> Picture:
    picture = Picture(WIDTH, "Handwritten digits, and what is read")
    picture.text(16, 24, f"Digits never seen, and what is read: {result['share']:.1%} are right; those that are not first", bold=True)
    order = numpy.argsort(result["told"] == result["label"], kind="stable")[:24]
    words = [str(told) if told == true else f"{told}, not {true}" for told, true in zip(result["told"], result["label"], strict=True)]
    picture.images(36, [1 - result["image"][place, 0] for place in order], 64, [words[place] for place in order], across=8)
    return picture


def draw_measured(result: Result) -> Picture:
    picture = Picture(WIDTH, "Loss and accuracy on data held out, as a network learns")
    picture.text(16, 24, result["title"], bold=True)
    y = picture.chart(40, {"loss": result["loss"]}, "epochs, on data held out", height=90)
    picture.chart(y + 10, {"share right": result["accuracy"]}, "epochs, on data held out", height=90)
    return picture


def draw_translations(result: Result) -> Picture:
    picture = Picture(WIDTH, "Sentences of a made-up language, and their translations")
    picture.text(16, 24, f"{result['share']:.1%} of the sentences held out are translated without a fault; some of them", bold=True)
    for number, (source, found) in enumerate(zip(result["source"], result["found"], strict=True)):
        picture.text(16, 50 + 20 * number, " ".join(source), code=True)
        picture.text(300, 50 + 20 * number, " ".join(found), code=True, bold=True)
    return picture


DRAWN: dict[str, Callable[[Result], Picture]] = {
    "fit_a_line": draw_line,
    "digits": draw_digits,
    "digits_ifelse": draw_measured,
    "sentiment": draw_measured,
    "translation": draw_translations,
    "image_classification": draw_shapes,
    "word2vec": draw_words,
    "recommender": draw_ratings,
    "semantic_roles": draw_roles,
    "language_model": draw_language,
    "char_gpt": draw_text,
    "gan": draw_digits_drawn,
    "diffusion": draw_digits_drawn,
    "unet": draw_masks,
    "dqn": draw_catches,
    "two_tower": draw_items,
}


def read_digits(example: Mapping[str, Any], **options: Any) -> Result:
    """Let the digit reader that was saved read."""
    share = example["main"](**options)
    _, test = ol.datasets.digits.split(seed=0)
    told = numpy.argmax(ol.infer(ol.load_model("digits.safetensors"), {"image": test["image"]}), axis=1)
    return {"share": share, **test, "told": told}


def measure(example: Mapping[str, Any], **options: Any) -> Result:
    """The numbers that an example prints after each epoch."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        example["main"](**options)
    found = re.findall(r"validation loss ([0-9.]+)  validation accuracy ([0-9.]+)", printed.getvalue())
    loss, accuracy = zip(*((float(one), float(other) / 100) for one, other in found), strict=True)
    return {"title": example["__doc__"].split(":")[0], "loss": loss, "accuracy": accuracy}


def translate(example: Mapping[str, Any], **options: Any) -> Result:
    """Some sentences, and what the translator that was saved makes of them."""
    share = example["main"](**options)
    pairs = example["make_pairs"](8, 99)
    found = numpy.asarray(ol.infer(ol.load_model("translation.safetensors"), {"source": pairs["source"]}))[:, 0]
    source = [[f"a{word}" for word in sentence] for sentence in pairs["source"]]
    words = [[f"b{word}" for word in sentence[: (sentence == example["END"]).argmax()]] for sentence in found]
    return {"share": share, "source": source, "found": words}


RUN: dict[str, Callable[..., Result]] = {
    "digits": read_digits,
    "digits_ifelse": measure,
    "sentiment": measure,
    "translation": translate,
}


def run(name: str, **options: object) -> Result:
    """Run an example in a folder of its own; return what its `main` returns, or what shows best what it has learnt."""
    example = runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name=name)
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        try:
            os.chdir(folder)
            return RUN[name](example, **options) if name in RUN else example["main"](**options)
        finally:
            os.chdir(before)
