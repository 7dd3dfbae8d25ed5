"""Check the built distributions as a user would: install the wheel outside the checkout and run the README from there.

    python tools/check_dist.py dist                      each Python from 3.11 to 3.14 found on this machine
    python tools/check_dist.py dist --python python3.12  this one only

Each Python gets a bare environment in a temporary folder: the wheel with the extra `datasets`, and the newest dependencies that it allows.
Then the blocks of the README run in order. Python blocks must print the output that follows them, and those that begin with a file name are
written to that file. Shell blocks with pip, make or the folder examples/, which only a checkout has, are left out.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
PACKED = ("py.typed", "__init__.pyi", "op/__init__.pyi", "proto/program.proto", "drawing/program.css")
"""Files of the package that are not Python, and which the wheel must have."""
NOT_INSTALLED = re.compile(r"^\s*(?:pip|make) |examples/", re.MULTILINE)


def find_pythons() -> dict[str, str]:
    """Return the interpreters that start, by version: those on PATH, then those of pyenv. A shim of a missing version does not start."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    folders = [*os.environ["PATH"].split(os.pathsep), *(str(path) for path in sorted(pyenv.glob("*/bin")))]
    found = {}
    for version in VERSIONS:
        for folder in folders:
            path = shutil.which(f"python{version}", path=folder)
            if path and version not in found and subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0:
                found[version] = path
    return found


def check_files(dist: Path) -> Path:
    """Check the contents of the wheel and the sdist; return the wheel."""
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    names = zipfile.ZipFile(wheel).namelist()
    lacking = [name for name in PACKED if f"oarlock/{name}" not in names]
    strange = [name for name in names if not re.match(r"oarlock[/-]", name)]
    if lacking or strange:
        raise SystemExit(f"{wheel.name} lacks {lacking} and should not have {strange}")
    with tarfile.open(sdist) as archive:
        members = {name.partition("/")[2] for name in archive.getnames()}
    lacking = [
        name for name in ("README.md", "LICENSE", "CHANGELOG.md", "pyproject.toml", "src/oarlock/__init__.py") if name not in members
    ]
    if lacking:
        raise SystemExit(f"{sdist.name} lacks {lacking}")
    return wheel


def blocks_of(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the code blocks of a document: language, text, and the block of output that follows directly, or ""."""
    found = re.findall(r"^```(\w+)\n(.*?)^```\n(?:```text\n(.*?)^```)?", text, re.MULTILINE | re.DOTALL)
    return ((language, code, output) for language, code, output in found if language != "text")


def run_story(readme: str, binaries: Path, folder: Path) -> int:
    """Run the README's blocks in `folder`; return the number of blocks run."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    environment["PATH"] = f"{binaries}{os.pathsep}{environment['PATH']}"
    count = 0
    for language, code, output in blocks_of(readme):
        script = re.match(r"# (\w+\.py)\n", code)
        if language == "python" and script:
            (folder / script[1]).write_text(code, encoding="utf-8")
            continue
        if language == "python":
            command = [str(binaries / "python"), "-c", code]
        elif language == "sh" and not NOT_INSTALLED.search(code):
            command = ["bash", "-euo", "pipefail", "-c", code]
        else:
            continue
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        if done.returncode or (output and done.stdout.split() != output.split()):
            raise SystemExit(f"{code}\nexited with {done.returncode} and printed\n{done.stdout}{done.stderr}\ninstead of\n{output}")
        count += 1
    return count


def check_python(python: str, wheel: Path, readme: str) -> str:
    """Install the wheel into a bare environment of `python` and run the README's story; return a line that says so."""
    with tempfile.TemporaryDirectory(prefix="oarlock-dist-") as name:
        folder = Path(name)
        binaries = folder / "environment" / "bin"
        subprocess.run([python, "-m", "venv", folder / "environment"], check=True)
        install = [binaries / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{wheel.resolve()}[datasets]"]
        subprocess.run(install, check=True, cwd=folder)
        (folder / "work").mkdir()
        place = "import oarlock, sys, torch; print(oarlock.__file__); print(sys.version.split()[0], 'torch', torch.__version__)"
        checked = subprocess.run([binaries / "python", "-I", "-c", place], check=True, cwd=folder, capture_output=True, text=True)
        where, versions = checked.stdout.splitlines()
        if not Path(where).is_relative_to(folder):
            raise SystemExit(f"oarlock was imported from {where}")
        count = run_story(readme, binaries, folder / "work")
        return f"Python {versions}: installed {wheel.name}, ran {count} blocks of the README"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("dist", type=Path, help="folder with one wheel and one sdist")
    parser.add_argument("--python", action="append", help="an interpreter to use instead of all that are found")
    options = parser.parse_args()
    wheel = check_files(options.dist)
    readme = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")
    pythons = options.python or [*find_pythons().values()]
    if not pythons:
        raise SystemExit("no Python from 3.11 to 3.14 was found")
    for python in pythons:
        print(check_python(python, wheel, readme), flush=True)
    if not options.python:
        missing = [version for version in VERSIONS if version not in find_pythons()]
        print(f"not on this machine, left to the workflow's matrix: {', '.join(missing)}" if missing else "all versions were checked")
    return 0


if __name__ == "__main__":
    sys.exit(main())
