"""The distribution: versions of Python agree everywhere, the tested PyTorch is in the declared range, and the README has blocks to run."""

import re
import runpy
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CHECK = runpy.run_path(str(ROOT / "tools" / "check_dist.py"))


def test_classifiers_the_check_and_the_workflow_have_the_same_versions_of_python():
    classifiers = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))
    workflow = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    (matrix,) = re.findall(r"python: \[(.*)\]", workflow)
    assert classifiers == [*CHECK["VERSIONS"]] == re.findall(r"3\.\d+", matrix)
    assert PROJECT["project"]["requires-python"] == f">={classifiers[0]}"


def test_the_range_of_pytorch_is_the_tested_minor_version():
    (declared,) = (each for each in PROJECT["project"]["dependencies"] if each.startswith("torch"))
    (tested,) = re.findall(r"^torch==(\d+)\.(\d+)\.", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    major, minor = map(int, tested)
    assert declared == f"torch>={major}.{minor},<{major}.{minor + 1}"


def test_the_readme_has_blocks_that_run_outside_a_checkout():
    blocks = [*CHECK["blocks_of"]((ROOT / "README.md").read_text(encoding="utf-8"))]
    assert sum(language == "python" and bool(output) for language, _, output in blocks) >= 2
    shells = [code for language, code, _ in blocks if language == "sh" and not CHECK["NOT_INSTALLED"].search(code)]
    assert any("oarlock train" in code and "oarlock resume" in code for code in shells)


def test_blocks_are_read_with_their_output():
    text = "```python\nprint(1)\n```\n```text\n1\n```\n\n```sh\nmake demo\n```\n"
    assert [*CHECK["blocks_of"](text)] == [("python", "print(1)\n", "1\n"), ("sh", "make demo\n", "")]
    assert CHECK["NOT_INSTALLED"].search("make demo\n")
    assert not CHECK["NOT_INSTALLED"].search("oarlock train cancer.py\n")
