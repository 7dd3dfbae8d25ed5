"""The models of the gallery: each trains for a moment, its picture is drawn of that, and two follow their twins in PyTorch.

Until their stop rules: `make pictures`, or -m slow. For 100 steps: `python tests/examples/follow_pytorch.py`.
"""

import importlib.util
import re
import runpy
from pathlib import Path
from xml.etree import ElementTree

import numpy
import pytest
from tolerances import FOLLOWED

import oarlock as ol

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLES = ROOT / "examples"


def module_of(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


gallery = module_of(ROOT / "docs" / "pictures" / "gallery.py")
twins = module_of(Path(__file__).parent / "follow_pytorch.py")


def load(name):
    """The names that an example defines, without running it."""
    return runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name=name)


SHORT = {
    "fit_a_line": {"epochs": 2},
    "digits": {"epochs": 1},
    "digits_ifelse": {"epochs": 1},
    "image_classification": {"epochs": 1, "rows": 64},
    "word2vec": {"epochs": 1, "files": 4, "words": 100},
    "recommender": {"epochs": 1, "rows": 300},
    "semantic_roles": {"epochs": 1, "rows": 100},
    "language_model": {"epochs": 2, "files": 4, "words": 100},
    "char_gpt": {"steps": 2, "files": 4},
    "gan": {"epochs": 1},
    "diffusion": {"epochs": 1, "every": 1},
    "unet": {"epochs": 1, "rows": 32},
    "dqn": {"rounds": 100},
    "two_tower": {"epochs": 1, "rows": 2000},
}


MADE_UP = {
    "sentiment": {"title": "Sentences", "loss": (0.7, 0.1), "accuracy": (0.5, 0.9)},
    "translation": {"share": 0.9, "source": [["a1", "a2"]], "found": [["b1", "b2"]]},
}
"""Results of what other tests train until its stop rule holds."""


@pytest.mark.parametrize("name", gallery.DRAWN)
def test_an_example_trains_for_a_moment_and_its_picture_is_drawn(name, capsys):
    drawn = gallery.DRAWN[name](MADE_UP[name] if name in MADE_UP else gallery.run(name, **SHORT[name])).svg()
    assert ElementTree.fromstring(drawn).tag == "{http://www.w3.org/2000/svg}svg"
    assert len(drawn) > 800


def test_each_picture_of_the_gallery_is_there_and_shown():
    shown = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    pictures = {path.stem for path in (ROOT / "docs" / "pictures" / "gallery").glob("*.svg")}
    assert pictures == set(gallery.DRAWN)
    assert set(re.findall(r"pictures/gallery/(\w+)\.svg", shown)) == pictures
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(re.findall(r"\.\./examples/(\w+)\.py", shown))


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_has_less_than_150_lines_and_its_first_say_how_it_is_run(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) < 150
    assert any(re.match(r"(oarlock train|python|node) examples/", line) for line in lines[:8])


REACHED = {
    "fit_a_line": lambda result: result["errors"][-1] < 0.6,
    "digits": lambda result: result["share"] > 0.97,
    "digits_ifelse": lambda result: result["loss"][-1] < 0.2,
    "sentiment": lambda result: result["loss"][-1] < 0.2,
    "translation": lambda result: result["share"] > 0.95,
    "image_classification": lambda result: result["accuracy"][-1] > 0.9,
    "word2vec": lambda result: result["loss"][-1] < 5.0,
    "recommender": lambda result: result["error"][-1] < 0.5,
    "semantic_roles": lambda result: result["f1"][-1] > 0.97,
    "language_model": lambda result: result["perplexity"][-1]["held out"] < 200,
    "char_gpt": lambda result: result["bits"][-1] < 2.6,
    "gan": lambda result: result["likeness"][-1] < 1.15,
    "diffusion": lambda result: result["likeness"][-1] < 1.4,
    "unet": lambda result: result["measured"][-1]["iou"] > 0.93,
    "dqn": lambda result: result["caught"][-1] > 0.97,
    "two_tower": lambda result: result["recall"][-1] > 0.49,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", gallery.DRAWN)
def test_an_example_learns_until_its_stop_rule_holds(name, capsys):
    assert REACHED[name](gallery.run(name))


@pytest.mark.parametrize("name", twins.MODELS)
def test_a_model_follows_its_twin_in_pytorch(name):
    ours, theirs, apart = twins.follow(name, steps=4, rows=2)
    assert ours[-1] != ours[0]
    numpy.testing.assert_allclose(ours, theirs, rtol=0, atol=FOLLOWED)
    assert apart < FOLLOWED


def test_the_cache_of_the_character_gpt_changes_nothing():
    """Each step of the loop, with its caches, says what the whole text says at once."""
    example = load("char_gpt")
    size, rows = example["CONTEXT"], 2
    with ol.Program(seed=3) as program:
        ids = ol.layer.data("ids", [size], dtype="int64")
        at_once = example["gpt"](ids)
        caches = [ol.op.full_batch_size_like(ids, shape=(size, example["WIDTH"]), value=0.0) for _ in range(2 * example["LAYERS"])]
        place = ol.op.full(shape=(), value=0.0, dtype="int64")
        loop = ol.while_loop(place < 5, max_trips=5)
        with loop.block():
            now = ol.op.reduce_sum(ids * ol.op.cast(ol.op.equal(ol.op.arange(stop=(size,), dtype="int64"), place), dtype="int64"), axis=1)
            logits, following = example["step"](now, place, caches)
            for cache, value in zip(caches, following, strict=True):
                loop.carry(cache, value)
            loop.carry(place, place + 1)
            loop.output(logits)
            loop.update_condition(place + 1 < 5)
        by_steps = loop()[-1]
    text = numpy.random.default_rng(0).integers(0, 128, (rows, size))
    whole, stepped = ol.Executor().run(program, {"ids": text}, [at_once, by_steps], scope=ol.init(program, ol.Scope()))
    numpy.testing.assert_allclose(stepped.transpose(1, 0, 2), whole[:, :5], rtol=1e-4, atol=1e-5)


def test_what_the_character_gpt_is_given_it_leaves_as_it_is(tmp_path, capsys):
    path = tmp_path / "gpt.safetensors"
    load("char_gpt")["main"](steps=1, files=3, path=str(path))
    lines = load("char_gpt")["write_on"](ol.load_model(path), "import numpy", 3)
    assert [line[:12] for line in lines] == ["import numpy"] * 3
    assert len(set(lines)) == 3, "each row is drawn by itself"


def test_a_ball_that_is_followed_is_caught():
    games = load("dqn")["Catch"](64, 0)
    rewards = []
    for _ in range(30):
        reward, ended = games.move(1 + numpy.sign(games.column + games.drift - games.paddle))
        rewards += reward[ended].tolist()
        games.begin(ended)
    assert len(rewards) > 200
    assert numpy.mean(numpy.array(rewards) > 0) > 0.7


def test_the_programs_of_the_gan_share_parameters_and_change_only_their_own():
    example = load("gan")
    programs, scope = example["write"](0, 1e-2), ol.Scope()
    for program, _ in programs.values():
        ol.init(program, scope, only=program.parameters())
    before = {name: scope[name].clone() for name in scope}
    program, cost = programs["drawing"]
    inside = ol.init(program, scope.new_scope())
    ol.Executor().run(program, {"noise": numpy.ones((4, 16), "float32")}, cost, scope=inside)
    changed = {name for name, value in before.items() if not bool((scope[name] == value).all())}
    assert changed == {name for name in before if name.startswith("drawing.")}
