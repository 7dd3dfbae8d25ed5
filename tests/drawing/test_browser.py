"""Pages in a real browser, where there is one: what runs, what folds, and that nothing is clipped or covered."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from drawing.test_hostile_programs import PAYLOADS, spoil
from drawing.test_program import PROGRAMS

import oarlock as ol

BROWSER = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium")

JUDGE = """<script>
const seen = (element) => element.checkVisibility();
const faults = new Set();
const look = (when) => {
  for (const head of document.querySelectorAll(".ol-head")) {
    if (!seen(head)) continue;
    const [box, label, words, type] = [head, ...head.children].map((part) => part.getBoundingClientRect());
    const edges = [box.left, label.left, label.right, words.left, words.right, type.left, type.right, box.right];
    if (edges.some((edge, at) => at && edge < edges[at - 1] - 1)) faults.add(`${when}: covered or clipped: ${head.textContent} ${edges}`);
    if (box.height !== 24) faults.add(`${when}: ${head.textContent} is ${box.height} high`);
  }
  for (const item of document.querySelectorAll(".ol-item")) {
    const [box, lanes] = [item, item.querySelector("svg.ol-lanes")].map((part) => part.getBoundingClientRect());
    if (seen(item) && Math.abs(box.height - lanes.height) > 1) faults.add(`${when}: lines of ${lanes.height} beside ${box.height}`);
  }
  const page = document.documentElement;
  if (page.scrollWidth > page.clientWidth) faults.add(`${when}: the page is too wide`);
};
window.addEventListener("load", () => {
  look("at first");
  const folded = [...document.querySelectorAll(".ol-op")].filter((item) => !seen(item)).length;
  document.querySelectorAll(".ol-tools button")[0].click();
  look("unfolded");
  const hidden = [...document.querySelectorAll(".ol-op")].filter((item) => !seen(item)).length;
  document.querySelectorAll(".ol-tools button")[1].click();
  const closed = [...document.querySelectorAll(".ol-op")].filter((item) => !seen(item)).length;
  const search = document.querySelector(".ol-tools input");
  search.value = "softmax_with_cross_entropy_dlogits";
  search.dispatchEvent(new Event("input"));
  const found = [...document.querySelectorAll(".ol-found")].map((item) => [item.querySelector(".ol-label").textContent, seen(item)]);
  const tip = getComputedStyle(document.querySelector(".ol-head"), "::after").content;
  const told = {faults: [...faults], folded, hidden, closed, found, tip, stolen: window.stolen ?? null, title: document.title};
  document.body.append(Object.assign(document.createElement("pre"), {id: "told", textContent: JSON.stringify(told)}));
});
</script></body>"""


def open_page(text: str, folder: Path, width: int = 1280) -> str:
    """The document that the browser has made of a page, after its scripts ran."""
    (folder / "page.html").write_text(text, encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}", f"--window-size={width},900"]
    command = [BROWSER, *options, "--dump-dom", f"file://{folder}/page.html"]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=True).stdout


def judged(text: str, folder: Path, width: int = 1280) -> dict:
    """The findings of the judge, a script that the policy of the page would not let run."""
    open_to_it = re.sub('<meta http-equiv="Content-Security-Policy"[^>]*>', "", text).replace("</body>", JUDGE)
    told = re.search(r'<pre id="told">(.*?)</pre>', open_page(open_to_it, folder, width), re.DOTALL)
    return json.loads(told[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


@pytest.mark.parametrize("width", [1280, pytest.param(500, marks=pytest.mark.slow)])
def test_nothing_is_clipped_or_covered_and_all_unfolds(width, tmp_path):
    program = PROGRAMS["classifier"]()
    told = judged(ol.draw(program).page, tmp_path, width)
    assert told["faults"] == []
    assert told["folded"] > told["hidden"] == 0
    assert told["closed"] > 0
    assert told["found"] == [["softmax_with_cross_entropy_dlogits", True]]


@pytest.mark.slow
def test_a_program_of_thousands_of_ops_is_shown(tmp_path):
    with ol.Program() as program:
        values = [ol.layer.data("x", shape=[2])]
        for number in range(5000):
            values.append(ol.op.add(values[-1], values[number // 2]))
    told = judged(ol.draw(program).page, tmp_path)
    assert told["faults"] == []
    assert told["hidden"] == 0
    assert told["folded"] == 5000


def test_the_policy_of_a_page_lets_its_script_run_and_no_other(tmp_path):
    other = "<script>document.title = 'stolen'</script></body>"
    document = open_page(ol.draw(PROGRAMS["branches"]()).page.replace("</body>", other), tmp_path)
    assert "<button>Unfold all</button>" in document
    assert re.search(r"<title>Program: \d+ ops", document)


@pytest.mark.slow
@pytest.mark.parametrize("payload", PAYLOADS, ids=range(len(PAYLOADS)))
def test_what_a_stranger_s_program_says_runs_nothing_even_without_the_policy(payload, tmp_path):
    told = judged(ol.draw(spoil(PROGRAMS["classifier"](), payload)).page, tmp_path)
    assert told["stolen"] is None
    assert told["title"].startswith("Program: ")
