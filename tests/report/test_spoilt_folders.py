"""Folders of runs that are spoilt at random: each is shown, or refused by an error of ours."""

import json
import random
import shutil
from pathlib import Path

import pytest
from classifiers import small_classifier, small_rows

import oarlock as ol
from oarlock.report.page import draw_report
from oarlock.training.run_comparison import RunComparison

STRANGE = [None, True, -1, 0, 10**30, 1e308, float("nan"), float("inf"), "x", "\ud800\x00", [], [[]], {}, {"a": {"b": []}}, 2**63]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, made = tmp_path_factory.mktemp("runs") / "run", small_classifier()
    ol.train(made.cost, small_rows(), validate=small_rows(), show={"accuracy": made.accuracy}, epochs=3, run=folder, progress=False)
    return folder


def changed(value: object, chance: random.Random) -> object:
    """A value of JSON with some of its parts replaced, renamed or left out."""
    if chance.random() < 0.15:
        return chance.choice(STRANGE)
    if isinstance(value, dict):
        kept = [name for name in value if chance.random() < 0.95]
        return {name if chance.random() < 0.95 else str(chance.random()): changed(value[name], chance) for name in kept}
    return [changed(each, chance) for each in value] if isinstance(value, list) else value


def spoil(folder: Path, chance: random.Random) -> None:
    """Change one to three files: what their JSON says, or some of their bytes, or where they end."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    for path in chance.sample(files, chance.randint(1, 3)):
        if path.suffix in (".json", ".jsonl") and chance.random() < 0.7:
            pieces = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
            path.write_text("".join(json.dumps(changed(json.loads(piece), chance)) + "\n" for piece in pieces))
            continue
        data = bytearray(path.read_bytes())
        for _ in range(chance.randint(1, 8)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        path.write_bytes(data[: chance.randrange(len(data))] if chance.random() < 0.2 else data)


@pytest.mark.parametrize("seeds", [range(10), pytest.param(range(10, 300), marks=pytest.mark.slow)], ids=["some", "many"])
def test_a_spoilt_folder_is_shown_or_refused(seeds, kept, tmp_path):
    shown = 0
    for seed in seeds:
        folder = shutil.copytree(kept, tmp_path / str(seed))
        spoil(folder, random.Random(seed))
        RunComparison.read([folder])
        try:
            assert draw_report(folder).endswith("</html>\n")
            shown += 1
            str(ol.training.plot(folder))
        except ol.OarlockError:
            pass
    assert shown > len(seeds) / 3
