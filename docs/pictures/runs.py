"""The pictures of docs/guides/runs.md: curves of two runs on handwritten digits, and the page of one of them, as Chromium shows it."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest import mock

import oarlock as ol
from oarlock.report.page import draw_report

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def train(folder: Path, optimizer: ol.optimizer.Optimizer, epochs: int = 8) -> Path:
    """Train on the digits, and keep the run in `folder`."""
    train_rows, test_rows = ol.datasets.digits.split(0)
    with ol.Program(seed=0):
        image = ol.layer.data("image", [1, 8, 8])
        label = ol.layer.data("label", [], dtype="int64")
        hidden = ol.layer.conv2d(image, filters=16, size=3, padding=1, act="relu")
        logits = ol.layer.fc(ol.layer.flatten(ol.layer.pool2d(hidden, size=2)), 10)
        cost = ol.layer.mean(ol.layer.softmax_with_cross_entropy(logits, label))
        show = {"accuracy": ol.layer.accuracy(logits, label)}
    with mock.patch.object(sys, "argv", ["digits.py"]):  # the command that a report shows
        ol.train(cost, train_rows, validate=test_rows, optimizer=optimizer, show=show, epochs=epochs, run=folder, progress=False)
    return folder


def draw_curves(epochs: int = 8) -> str:
    """The curves of both runs."""
    with tempfile.TemporaryDirectory() as made:
        adam = train(Path(made, "adam"), ol.optimizer.Adam(1e-3), epochs)
        momentum = train(Path(made, "momentum"), ol.optimizer.Momentum(0.02), epochs)
        return ol.training.plot(adam, momentum, smooth=0.8)._repr_svg_()


def photograph_report() -> bytes | None:
    """The top of the page of one of them, as PNG; None where there is no Chromium."""
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        return None
    with tempfile.TemporaryDirectory() as made:
        page, picture = Path(made, "page.html"), Path(made, "page.png")
        page.write_text(draw_report(train(Path(made, "adam"), ol.optimizer.Adam(1e-3)), smooth=0.8), encoding="utf-8")
        options = ["--headless", "--no-sandbox", "--hide-scrollbars", "--window-size=1100,1360", f"--screenshot={picture}"]
        subprocess.run([browser, *options, page.as_uri()], check=True, capture_output=True, timeout=120)  # noqa: S603  a page of ours
        return picture.read_bytes()
