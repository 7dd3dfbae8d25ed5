"""The page of a run: what it says, that all of it is text, and that it is there whatever the folder lacks."""

import base64
import hashlib
import html.parser
import io
import json
import math
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
import safetensors.torch
import torch
from processes import run_module, run_oarlock
from typer.testing import CliRunner

import oarlock as ol
from oarlock.cli import main
from oarlock.drawing.details import memory_text
from oarlock.report.markup import seconds_text, time_text
from oarlock.report.page import draw_report
from oarlock.report.prediction import find_compared, read_sample
from oarlock.report.samples import as_pixels
from oarlock.training.run_record import RunRecord

HOSTILE = "</script></title><img src=x onerror=alert(1)>\"'&\x1b[2J\u202e{{7*7}}"
RANDOM = numpy.random.default_rng(0)


class Page(html.parser.HTMLParser):
    """The elements of a page with their attributes, its text, and the texts of its headings."""

    def __init__(self, text: str):
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"script", "style"} & set(self.open):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def images(folder: Path, **options) -> ol.TrainingResult:
    """A run on pictures of two classes, a bright upper half and a bright lower one."""
    label = numpy.arange(24) % 2
    image = numpy.zeros((24, 1, 8, 8), "float32")
    image[label == 0, :, :4], image[label == 1, :, 4:] = 1.0, 1.0
    rows = {"image": image, "label": label.astype("int64")}
    with ol.Program(seed=0):
        pixels, true = ol.layer.data("image", [1, 8, 8]), ol.layer.data("label", [], dtype="int64")
        logits = ol.layer.fc(ol.layer.flatten(pixels), 2)
        cost = ol.layer.cross_entropy(logits, true)
        show = {"accuracy": ol.layer.accuracy(logits, true)}
    given = {"validate": rows, "show": show, "epochs": 3, "batch_size": 8, "optimizer": ol.optimizer.Adam(0.01), "progress": False}
    return ol.train(cost, rows, run=folder, **given | options)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "pictures"
    images(folder)
    return folder


@pytest.fixture
def run(kept, tmp_path) -> Path:
    """A copy of the run, to be spoilt."""
    return shutil.copytree(kept, tmp_path / "pictures")


def test_a_report_says_what_the_run_was(kept):
    page, record = Page(draw_report(kept)), RunRecord.read(kept)
    assert page.open == []
    last = record.history[-1]
    for said in (
        "pictures finished epochs 3 of 3 steps 9",
        "Curves training validation",
        f"validation loss {last.validation['loss']:.4g}",
        "Rows of the validation data, and the prediction after step 9.",
        "softmax_with_cross_entropy",
        "epochs 3 batch size 8 data dict metrics loss, accuracy seed 0 parameters 130",
        f"program {record.program_hash[:16]}",
        f"torch {torch.__version__}",
        "newest, best validation loss, used for the predictions",
    ):
        assert said in page.text, said
    assert sum("data-chart" in attributes for _, attributes in page.elements) == 2
    assert "pictures - run" in page.text


def test_pictures_stand_beside_what_is_predicted_for_them(kept):
    sample = read_sample(RunRecord.read(kept))
    assert sample.true.tolist() == [0, 1, 1, 0, 1, 0, 0, 1]
    assert sample.classes.tolist() == sample.true.tolist()  # three epochs are enough for these
    assert ((sample.certainty > 0.5) & (sample.certainty < 1)).all()
    page = Page(draw_report(kept))
    shown = [attributes["src"] for tag, attributes in page.elements if tag == "img"]
    assert len(shown) == 8
    image = pytest.importorskip("PIL.Image")
    first = numpy.asarray(image.open(io.BytesIO(base64.b64decode(shown[0].partition(",")[2]))))
    assert (first == numpy.repeat([255, 0], 4)[:, None]).all()
    assert first.shape == (8, 8)


def test_the_page_is_whole_in_itself_and_lets_nothing_else_run(kept):
    text = draw_report(kept)
    page = Page(text)
    assert [tag for tag, _ in page.elements].count("script") == 1
    policy = next(attributes["content"] for tag, attributes in page.elements if attributes.get("http-equiv"))
    script = re.search("<script>(.*)</script>", text, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'" in policy
    for tag, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("src", "href", "xlink:href", "action", "data", "srcset"):
            assert attributes.get(name, "#").startswith(("#", "data:image/png;base64,")), (tag, name)
    assert set(re.findall(r"@import|url\(|https?://[^\"]*", text)) == {"http://www.w3.org/2000/svg"}  # a name, which nobody opens


def test_whatever_a_folder_says_is_text(run):
    about = json.loads((run / "run.json").read_text())
    about |= {"data": HOSTILE, "command": [HOSTILE], "seed": HOSTILE, "working_folder": HOSTILE, HOSTILE: {HOSTILE: [HOSTILE]}}
    about |= {"targets": [HOSTILE], "program": HOSTILE, "started": HOSTILE, "environment": {HOSTILE: HOSTILE}}
    about["training"][HOSTILE] = HOSTILE
    (run / "config.toml").write_text(f"[{json.dumps(HOSTILE)}]\nlr = {json.dumps(HOSTILE)}\n")
    (run / "run.json").write_text(json.dumps(about))
    lines = [
        {"step": 10, "epoch": 4, "rows": 8, HOSTILE: 1.0, "time": HOSTILE},
        {"step": 10, "epoch": 4, "training": {HOSTILE: math.nan}, "validation": {HOSTILE: -math.inf}},
        {"step": 10, "environment": {HOSTILE: HOSTILE}, "epochs": HOSTILE},
    ]
    with open(run / "metrics.jsonl", "a") as log:
        log.writelines(json.dumps(line) + "\n" for line in lines)
    columns = safetensors.torch.load_file(run / "sample.validation.safetensors")
    safetensors.torch.save_file(columns | {HOSTILE: torch.zeros(8, 3)}, run / "sample.validation.safetensors")
    hostile = run.rename(run.with_name(HOSTILE.replace("/", "|")))
    text = draw_report(hostile)
    page = Page(text)
    assert page.open == []
    assert [tag for tag, _ in page.elements].count("script") == 1
    assert all(attributes.get("src") != "x" for _, attributes in page.elements)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert page.text.count("onerror=alert(1)") > 14


@pytest.mark.parametrize(
    "lost", ["checkpoints", "program.txt", "metrics.jsonl", "sample.validation.safetensors", "lock", "all but run.json"]
)
def test_what_a_folder_lacks_is_left_out(lost, run):
    for path in list(run.iterdir()):
        if path.name == lost or (lost.startswith("all") and path.name != "run.json"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    page = Page(draw_report(run))
    assert page.open == []
    assert ("No metrics yet." in page.text) == (lost in ("metrics.jsonl", "all but run.json"))
    assert ("The folder has no readable program." in page.text) == (lost == "all but run.json")
    assert ("have no predictions: the run has no checkpoint yet." in page.text) == (lost == "checkpoints")
    assert ("stopped; continue with oarlock resume" in page.text) == (lost in ("metrics.jsonl", "all but run.json"))


@pytest.mark.parametrize(
    "name", ["program.txt", "metrics.jsonl", "sample.validation.safetensors", "checkpoints/step-000000009/model.safetensors"]
)
def test_what_is_spoilt_in_a_folder_is_said_or_passed_over(name, run):
    data = bytearray((run / name).read_bytes())
    for place in range(0, len(data), 7):
        data[place] ^= 0x55
    (run / name).write_bytes(data)
    page = Page(draw_report(run))
    assert page.open == []
    assert ("lines of the log cannot be read" in page.text) == (name == "metrics.jsonl")
    spoilt = name.endswith("safetensors")
    assert ("have no predictions" in page.text) == spoilt or name.startswith("sample")


def test_rows_that_do_not_fit_the_program_are_no_end_of_the_report(run):
    safetensors.torch.save_file({"image": torch.zeros(3, 5)}, run / "sample.validation.safetensors")
    assert "have no predictions: " in Page(draw_report(run)).text


def test_a_sample_with_more_rows_than_a_run_keeps_is_cut(run):
    rows = {"image": torch.zeros(500, 1, 8, 8), "label": torch.zeros(500, dtype=torch.int64)}
    safetensors.torch.save_file(rows, run / "sample.validation.safetensors")
    assert draw_report(run).count("<img ") == 64
    shutil.rmtree(run / "checkpoints")
    assert draw_report(run).count("<img ") == 64


def test_a_killed_run_has_a_report(tmp_path):
    images(tmp_path / "run", steps=4, validate=None)
    with open(tmp_path / "run/metrics.jsonl", "a") as log:
        log.write('{"step": 5, "epoch": 2, "rows": 8, "loss": NaN}\n{"step": 6, "ep')
    page = Page(draw_report(tmp_path / "run"))
    assert "run stopped; continue with oarlock resume epochs 1 of 3 steps 5" in page.text
    assert "training: 1 of 5 values are not finite, the first nan at step 5" in page.text
    assert "Rows of the training data, and the prediction after step 3." in page.text  # after its best epoch


def test_a_program_of_numbers_compares_them(tmp_path):
    x = RANDOM.normal(size=(20, 3)).astype("float32")
    with ol.Program(seed=0):
        a, b = ol.layer.data("x", [3]), ol.layer.data("y", [1])
        cost = ol.layer.mse(ol.layer.fc(ol.layer.fc(a, 4, act="tanh") + 0.0, 1), b)
    ol.train(cost, {"x": x, "y": x[:, :1]}, run=tmp_path / "run", progress=False)
    sample = read_sample(RunRecord.read(tmp_path / "run"))
    assert sample.classes is None
    assert numpy.array_equal(sample.true, sample.columns["y"])
    model = ol.load_model(tmp_path / "run/checkpoints/step-000000001/model.safetensors")
    predicted = find_compared(model.program).predicted
    assert numpy.array_equal(sample.values, ol.infer(predicted, {"x": sample.columns["x"]}, model.scope))
    page = Page(draw_report(tmp_path / "run"))
    assert "x true predicted" in page.text


def test_ragged_rows_are_shown_one_by_one(tmp_path):
    rows = [[1, 2, 3], [4], [], [5, 6]]
    with ol.Program(seed=0):
        words, label = ol.layer.data("words", [], dtype="int64", ragged=1), ol.layer.data("label", [], dtype="int64")
        cost = ol.layer.cross_entropy(ol.layer.fc(ol.layer.sequence_pool(ol.layer.embedding(words, (8, 4)), "sum"), 2), label)
    ol.train(cost, {"words": rows, "label": [0, 1, 0, 1]}, run=tmp_path / "run", progress=False)
    assert "<tr><td>1, 2, 3</td>" in draw_report(tmp_path / "run")
    assert "<tr><td></td>" in draw_report(tmp_path / "run")


def compared(build) -> tuple[str, str, str] | None:
    with ol.Program(seed=0) as program:
        x, y, label = ol.layer.data("x", [4]), ol.layer.data("y", [4]), ol.layer.data("label", [], dtype="int64")
        program.targets = {"loss": build(x, y, label)}
    found = find_compared(program)
    return None if found is None else (found.predicted.name, found.true.name, found.scores)


def test_where_a_program_predicts_is_told_by_its_loss():
    layer = ol.layer
    assert compared(lambda x, y, label: layer.cross_entropy(layer.fc(x, 3, name="head"), label)) == ("head.out", "label", "logits")
    assert compared(lambda x, y, label: layer.mse(layer.fc(x, 4, name="head"), y)) == ("head.out", "y", "")
    residual = compared(lambda x, y, label: layer.mse(layer.fc(x + layer.fc(x, 4), 4, name="head"), y))
    assert residual == ("head.out", "y", "")
    assert compared(lambda x, y, label: layer.mean(x)) is None
    assert compared(lambda x, y, label: layer.mean(layer.fc(x, 3))) is None


def test_arrays_that_look_like_images_become_pixels():
    grey = numpy.linspace(0, 1, 2 * 5 * 6).reshape(2, 5, 6).astype("float32")
    assert as_pixels(grey).shape == (2, 5, 6)
    assert as_pixels(grey[:, None]).shape == (2, 5, 6)
    assert as_pixels(numpy.zeros((2, 3, 5, 6), "float32")).shape == (2, 5, 6, 3)
    assert as_pixels(numpy.zeros((2, 5, 6, 3), "uint8")).shape == (2, 5, 6, 3)
    assert as_pixels(numpy.full((1, 4, 4), 200, "uint8")).max() == 200
    assert as_pixels(numpy.array([[[-1.0, 1.0] * 2] * 4]))[0, 0].tolist() == [0, 255, 0, 255]
    assert as_pixels(numpy.array([[[numpy.nan, 1.0] * 2] * 4]))[0, 0].tolist() == [0, 255, 0, 255]
    assert as_pixels(numpy.zeros((1, 512, 300))).shape == (1, 128, 100)
    for shape in ((2, 3), (2, 3, 8), (0, 8, 8), (2, 5, 8, 8), (1, 1000, 8), (1, 1, 1, 8, 8)):
        assert as_pixels(numpy.zeros(shape)) is None, shape


def test_times_and_sizes_are_read_at_a_glance():
    assert [seconds_text(value) for value in (41e-6, 0.0032, 3.21, 75, 7500, 400_000, None, math.nan)] == [
        "41 µs", "3.2 ms", "3.21 s", "1 min 15 s", "2 h 05 min", "4 d 15 h", None, None,
    ]  # fmt: skip
    assert [memory_text(value) for value in (0, 1023, 1536, 5 * 2**20, 3 * 2**41)] == ["0 B", "1023 B", "1.5 KiB", "5.0 MiB", "6.0 TiB"]
    assert [time_text(value) for value in (0, 1e300, "now", True)] == ["1970-01-01 00:00:00 UTC", None, None, None]


def test_the_command_writes_the_page_into_the_folder_or_where_it_is_told(run, tmp_path):
    done = CliRunner().invoke(main.app, ["report", str(run)])
    assert (done.exit_code, done.output) == (0, f"saved {run}/report.html\n")
    assert (run / "report.html").read_text() == draw_report(run)
    CliRunner().invoke(main.app, ["report", str(run), "--out", str(tmp_path / "page.html"), "--smooth", "0", "--log"])
    assert (tmp_path / "page.html").read_text() == draw_report(run, smooth=0.0, log=True)
    done = CliRunner().invoke(main.app, ["report", str(tmp_path / "nothing")])
    assert str(done.exception) == f'there is no folder "{tmp_path / "nothing"}"'
    done = CliRunner().invoke(main.app, ["report", str(run), "--out", str(tmp_path / "nothing/page.html")])
    assert str(done.exception) == f'there is no folder "{tmp_path / "nothing"}"'


def test_the_command_draws_curves_in_the_terminal_or_into_a_file(run, tmp_path):
    done = CliRunner().invoke(main.app, ["plot", str(run), "--metric", "loss"])
    assert (done.exit_code, done.output.splitlines()[0]) == (0, "a training   b validation")
    assert "accuracy" not in done.output
    done = CliRunner().invoke(main.app, ["plot", str(run), "--out", str(tmp_path / "curves.svg"), "--log", "--smooth", "0"])
    assert done.output == f"saved {tmp_path / 'curves.svg'}\n"
    assert (tmp_path / "curves.svg").read_text() == ol.training.plot(run, log=True, smooth=0.0)._repr_svg_()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the limits of the child are those of Linux")
def test_a_stranger_s_folder_is_read_in_a_child(run, tmp_path):
    done = run_module(tmp_path, "report", "pictures", "--untrusted", "--out", "page.html")
    assert done.returncode == 0, done.stderr
    assert "Rows of the validation data, and the prediction after step 9." in Page((tmp_path / "page.html").read_text()).text
    (run / "program.txt").unlink()
    (run / "metrics.jsonl").rename(tmp_path / "log")
    (run / "metrics.jsonl").symlink_to(tmp_path / "log")
    done = run_oarlock(tmp_path, "report", "pictures", "--untrusted", "--out", "other.html")
    assert done.returncode == 1
    assert "is a symbolic link, which is not allowed for an untrusted file" in done.stderr
    assert not (tmp_path / "other.html").exists()


BROWSER = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)
POINTS = """<script>
for (const chart of document.querySelectorAll("svg[data-chart]")) {
  const box = chart.getBoundingClientRect();
  chart.dispatchEvent(new PointerEvent("pointermove", {clientX: box.right - 20, clientY: box.top + 50}));
}
const wide = document.documentElement.scrollWidth <= document.documentElement.clientWidth;
document.body.append(wide ? "nothing is clipped" : "something is too wide");
</script></body>"""


@pytest.mark.skipif(BROWSER is None, reason="no Chromium")
@pytest.mark.parametrize("width", [pytest.param(1280, marks=pytest.mark.slow), 500])
def test_a_browser_shows_the_values_under_the_pointer_and_clips_nothing(width, kept, tmp_path):
    text = re.sub('<meta http-equiv="Content-Security-Policy"[^>]*>', "", draw_report(kept, smooth=0.0)).replace("</body>", POINTS)
    (tmp_path / "page.html").write_text(text)
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},900"]
    done = subprocess.run([BROWSER, *options, "--dump-dom", f"file://{tmp_path}/page.html"], capture_output=True, text=True, timeout=100)
    tips = re.findall(r'<div class="tip" style="top: [\d.]+px; left: [\d.]+px;">(.*?)</div></div>', done.stdout)
    last = RunRecord.read(kept).history[-1]
    assert [re.findall(r"validation <b>([\d.]+)</b> at step 9", tip) for tip in tips] == [
        [f"{last.validation['loss']:.4g}"],
        [f"{last.validation['accuracy']:.4g}"],
    ]
    assert "nothing is clipped" in done.stdout
