"""Every picture of README.md and of the documents, made again: `make pictures`, or `python docs/pictures/make.py [NAME ...]`.

Names are those of the files here without `.svg`. Those of draw.py take a second each, `demo` ten: it trains examples/digits.py as README.md
says, and draws its curves. Those of the gallery (gallery.py) take ten minutes together on one core, each until the stop rule of its example
holds: `gallery/char_gpt` and `gallery/language_model` three minutes each, `gallery/gan` and `gallery/diffusion` one, the others seconds.
Those of runs (runs.py) take seconds; `runs/report` is a PNG, which Chromium takes, and stays as it is without.

What is drawn of a training run has other bits on another machine, so nobody can compare it. Its picture ends with a digest of
the code that it is of; a test says when that code has changed since.
"""

import hashlib
import inspect
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import oarlock as ol

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))
import draw  # noqa: E402  they stand beside this file
import gallery  # noqa: E402
import runs  # noqa: E402


def draw_demo() -> str:
    """The curves of the demo, by the commands of README.md."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "oarlock", "train", "examples/digits.py", "--run", f"{folder}/digits"]
        subprocess.run([*command, "--path", f"{folder}/digits.safetensors"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
        ol.training.plot(f"{folder}/digits").save(f"{folder}/demo.svg")
        return Path(folder, "demo.svg").read_text(encoding="utf-8")


def draw_of_gallery(example: str) -> str:
    return gallery.DRAWN[example](gallery.run(example)).svg()


def source_of(name: str) -> tuple[str, str]:
    """The path of the example that a trained picture is of, and a digest of it and of the functions that run and draw it."""
    if name.startswith("runs/"):
        return "docs/pictures/runs.py", hashlib.sha256((HERE / "runs.py").read_bytes()).hexdigest()[:16]
    stem = "digits" if name == "demo" else name.removeprefix("gallery/")
    example, functions = f"examples/{stem}.py", [draw_demo if name == "demo" else gallery.DRAWN[stem]]
    if name != "demo" and stem in gallery.RUN:
        functions.append(gallery.RUN[stem])
    code = "".join([(ROOT / example).read_text(encoding="utf-8"), *map(inspect.getsource, functions)])
    return example, hashlib.sha256(code.encode()).hexdigest()[:16]


def stamped(svg: str, name: str) -> str:
    """A picture with a last line that says what it is of."""
    example, digest = source_of(name)
    return f"{svg.rstrip()}\n<!-- {example} {digest} -->\n"


TRAINED: dict[str, Callable[[], str]] = {"demo": draw_demo, "runs/curves": runs.draw_curves} | {
    f"gallery/{example}": lambda example=example: draw_of_gallery(example) for example in gallery.DRAWN
}
"""Pictures that are of a training run."""
MAKERS: dict[str, Callable[[], str]] = {name.removesuffix(".svg"): function for name, function in draw.PICTURES.items()} | TRAINED
"""All of them; the others are the same wherever they are drawn."""

PHOTOGRAPHED: dict[str, Callable[[], bytes | None]] = {"runs/report": runs.photograph_report}
"""Pictures of pages, as PNG; None where there is no browser."""


def file_of(name: str) -> Path:
    return HERE / f"{name}.{'png' if name in PHOTOGRAPHED else 'svg'}"


def make(name: str) -> Path:
    """Make a picture, and return its file."""
    path = file_of(name)
    path.parent.mkdir(exist_ok=True)
    if name in PHOTOGRAPHED:
        taken = PHOTOGRAPHED[name]()
        if taken is None:
            sys.exit(f"{path.relative_to(ROOT)} is taken by Chromium, which is not there")
        path.write_bytes(taken)
        return path
    svg = MAKERS[name]()
    path.write_text(stamped(svg, name) if name in TRAINED else svg, encoding="utf-8", newline="\n")
    return path


if __name__ == "__main__":
    known = [*MAKERS, *PHOTOGRAPHED]
    unknown = sorted(set(sys.argv[1:]) - set(known))
    if unknown:
        sys.exit(f"there is no picture {', '.join(unknown)}: {', '.join(known)}")
    for name in sys.argv[1:] or known:
        print(f"wrote {make(name).relative_to(ROOT)}", flush=True)
