"""The session in trial.md is typed again: each command prints the output below it."""

import re
import shlex
from pathlib import Path

import pytest
import tolerances

PAGE = Path(__file__).parent / "trial.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w])")


def comparable(text: str) -> tuple[str, list[float]]:
    """Return the words and the numbers of a text, without charts, speeds, the best of equal epochs and the list of options."""
    text = re.sub(r"  [\d,]+ rows/s  \d+ s left", "", text)
    text = re.sub(r"\b[0-9a-f]{8}\b", "HASH", text)
    lines = [line.rstrip() for line in text.splitlines() if not re.match(r"[\d. ]*[│┤└]|[ \d]+$|time  |best | +there are: ", line)]
    words = re.sub(r" {2,}", "  ", NUMBER.sub("#", "\n".join(lines)))
    return words, [float(number) for number in NUMBER.findall("\n".join(lines))]


@pytest.mark.parametrize("last", ["## Stop and resume", pytest.param("", marks=pytest.mark.slow)], ids=["up to there", "to its end"])
def test_each_command_of_the_session_prints_the_output_below_it(last, tmp_path, monkeypatch, oarlock, request):
    monkeypatch.chdir(tmp_path)
    update = request.config.getoption("--update-golden") and not last
    page = PAGE.read_text(encoding="utf-8")
    written = []
    for kind, text in BLOCK.findall(page.split(last)[0] if last else page):
        if kind != "console":
            name, _, content = text.removeprefix("# ").partition("\n")
            Path(name).write_text(content)
            if name == "write.py":
                exec(compile(content, name, "exec"), {})
            continue
        printed = []
        for command, shown in (each.split("\n", 1) for each in re.split(r"^\$ oarlock ", text, flags=re.MULTILINE)[1:]):
            ended = oarlock(*shlex.split(command))
            said = "".join(f"{line.rstrip()}\n" for line in (ended.output + ended.error).splitlines()).rstrip("\n") + "\n"
            difference = find_difference(said.strip(), shown.strip())
            assert update or not difference, f"oarlock {command}: {difference}"
            printed.append(f"$ oarlock {command}\n" + (said.lstrip() if difference else shown.strip() + "\n" * bool(shown.strip())))
        written.append("\n".join(printed))
    if update:
        blocks = iter(written)
        PAGE.write_text(BLOCK.sub(lambda found: f"```console\n{next(blocks)}```" if found[1] == "console" else found[0], page), "utf-8")
    if not last:
        assert Path("curves.svg").read_text().startswith("<svg")
        assert "</html>" in Path("runs/cancer-1/report.html").read_text()


def find_difference(said: str, shown: str) -> str:
    """Return the difference of two outputs, or "" if they agree."""
    (words, numbers), (expected_words, expected_numbers) = comparable(said), comparable(shown)
    if words != expected_words:
        return f"{said}\nbut the page has\n{shown}"
    pairs = zip(numbers, expected_numbers, strict=True)
    return ", ".join(f"{number} for {expected}" for number, expected in pairs if not tolerances.close(number, expected, tolerances.TRIAL))
