"""Every block of code in the documents runs, and prints what stands below it."""

import functools
import re
import runpy
from pathlib import Path

import pytest
import torch
from printed import settle
from processes import run_forked

import oarlock as ol
from oarlock.passes.pipeline import PASSES

ROOT = Path(__file__).resolve().parent.parent
# Generated pages show declarations and fragments, which do not run as programs.
GENERATED = runpy.run_path(str(ROOT / "docs/generate.py"))["PAGES"]
DOCUMENTS = sorted(
    name
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    if (name := path.relative_to(ROOT).as_posix()) not in GENERATED and "```python" in path.read_text(encoding="utf-8")
)
CHECKS = {
    # A run that was saved goes on as if it had never stopped.
    "docs/tutorial.md": """
whole = ol.train(cost, train, optimizer=ol.optimizer.Adam(0.1), epochs=12, progress=False)
assert all(whole.parameters[name].equal(longer.parameters[name]) for name in ("fc_0.w", "fc_0.b", "fc_1.w", "fc_1.b"))
""",
    # The operator of the guide passes the checks that it says come for free.
    "docs/guides/add_an_operator.md": """
import numpy as np
import oarlock as ol
rows = np.array([[3.0, 4.0], [1.0, 1.0]])
with ol.Program() as program:
    x = ol.layer.data("x", shape=[2], dtype="float64")
    scale = ol.layer.data("scale", shape=[2], dtype="float64", batch=None)
    y = unit_rows(x, scale, epsilon=0.5)
    dx, dscale = ol.gradients([ol.op.reduce_sum(ol.op.square(y))], [x, scale])
found = ol.Executor().run(program, {"x": rows, "scale": np.array([1.0, 2.0])}, [dx, dscale], scope=ol.Scope())
leaf, weight = torch.tensor(rows, requires_grad=True), torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
(unit_rows.kernel(leaf, weight, epsilon=0.5) ** 2).sum().backward()
assert np.allclose(found[0], leaf.grad) and np.allclose(found[1], weight.grad)
""",
}


def assert_printed(printed: str, shown: str) -> None:
    """That a document shows what its code prints, but for spaces and the last digit of a number."""
    expected = " ".join(shown.split())
    assert settle(" ".join(printed.split()), expected).split() == expected.split()


WHOLE = "docs/guides/practice.md"
"""The document of which each block is a program of its own."""


def blocks(document: str) -> list[tuple[str, str]]:
    return re.findall(r"^```(\w+)\n(.*?)^```$", (ROOT / document).read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("document", [name for name in DOCUMENTS if name != WHOLE])
def test_the_code_of_a_document_runs_and_prints_what_it_shows(document, tmp_path):
    found = blocks(document)
    code = [text for language, text in found if language == "python"]
    shown = [
        text
        for (language, text), (before, source) in zip(found[1:], found, strict=False)
        if (language, before) == ("text", "python") and "print(" in source
    ]
    assert code
    printed = run_forked("\n".join(code) + CHECKS.get(document, ""), tmp_path)
    assert_printed(printed, "\n".join(shown))


def programs() -> dict[str, tuple[str, str]]:
    """The programs of the guide of practice by their headings, each with what it prints."""
    pattern = r"^## ([^\n]+)\n(?:(?!^## ).)*?^```python\n(.*?)^```\n+^```text\n(.*?)^```$"
    found = re.findall(pattern, (ROOT / WHOLE).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return {heading: (code, shown) for heading, code, shown in found}


@pytest.mark.parametrize("heading", programs())
def test_a_program_of_practice_runs_alone_and_prints_what_it_shows(heading, tmp_path):
    code, shown = programs()[heading]
    assert_printed(run_forked(code, tmp_path), shown)


def test_every_program_of_practice_is_run():
    found = blocks(WHOLE)
    assert [language for language, _ in found] == ["python", "text"] * len(programs())
    assert len(programs()) == len(re.findall("^## ", (ROOT / WHOLE).read_text(encoding="utf-8"), re.MULTILINE))


def test_the_table_of_passes_has_every_pass_in_its_order():
    table = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/internals/passes.md").read_text(), re.MULTILINE)
    assert table == list(PASSES)


def test_the_table_from_pytorch_names_what_there_is():
    table = (ROOT / "README.md").read_text(encoding="utf-8").split("## From PyTorch\n")[1].split("\n[")[0]
    rows = re.findall(r"^\| (.+) \| (.+) \|$", table, re.MULTILINE)[2:]
    assert len(rows) > 8
    homes = {"ol": ol, "nn": torch.nn, "torch": torch}
    for home, names in re.findall(r"\b(ol|nn|torch)((?:\.\w+)+)", "".join(map("".join, rows))):
        found = functools.reduce(getattr, names[1:].split("."), homes[home])
        assert callable(found), f"{home}{names}"
    assert hasattr(ol.Scope().var("w"), "trainable")


def test_the_guides_name_files_that_exist():
    folders = [path for pattern in ("src/oarlock/**/README.md", "tests/README.md", "benchmarks/README.md") for path in ROOT.glob(pattern)]
    for document in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *folders]:
        for name in re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.\w+)`", document.read_text(encoding="utf-8")):
            places = (ROOT, ROOT / "src/oarlock", document.parent)
            assert any((place / name).exists() for place in places), f"{document.relative_to(ROOT)} names {name}"
