import hashlib
import os
import subprocess
import sys
from pathlib import Path

import oarlock as ol
from oarlock.ir.location import Location, here

SOURCES = Path(ol.__file__).parent.parent

MODEL = """
import hashlib
import sys

import oarlock as ol
from parts.tower import tower

with ol.Program(seed=3) as program:
    image = ol.layer.data("image", shape=[6])
    cost = tower(image)
    ol.optimizer.Adam().minimize(cost)

sys.stdout.write(program.to_bytes().hex())
"""

TOWER = """
import oarlock as ol


def tower(x):
    steps = ol.layer.reshape(x, shape=[-1, 3, 2])
    loop = ol.rnn()
    with loop.step():
        loop.output(ol.layer.fc(loop.step_input(steps), 4, act="tanh"))
    return ol.layer.mean(loop())
"""


def build(folder: Path, *, hash_seed: str) -> bytes:
    """Write the model into `folder`, run it there in a process of its own, and return the program's bytes."""
    (folder / "parts").mkdir(parents=True)
    (folder / "model.py").write_text(MODEL, encoding="utf-8")
    (folder / "parts" / "tower.py").write_text(TOWER, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(SOURCES), "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [sys.executable, str(folder / "model.py")], capture_output=True, text=True, check=True, cwd=folder.parent, env=environment
    )
    return bytes.fromhex(done.stdout)


def test_two_processes_in_two_directories_write_the_same_bytes(tmp_path):
    first = build(tmp_path / "one", hash_seed="1")
    second = build(tmp_path / "another place" / "deeper", hash_seed="2")
    assert hashlib.sha256(first).hexdigest() == hashlib.sha256(second).hexdigest()
    assert str(tmp_path).encode() not in first
    assert os.path.expanduser("~").encode() not in first
    read = ol.Program.from_bytes(first)
    places = {op.location.file for block in read.blocks for op in block.ops} | {var.location.file for var in read.main.vars.values()}
    assert places == {"model.py", "parts/tower.py"}


def test_a_location_is_the_users_line():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[4])
        y = ol.layer.fc(x, 2)
    line = here().line - 1
    assert (x.location.line, x.location.function, x.location.text) == (
        line - 1,
        "test_a_location_is_the_users_line",
        'x = ol.layer.data("x", shape=[4])',
    )
    assert {op.location for op in program.main.ops} == {y.location}
    assert y.location.line == line
    assert y.location.text == "y = ol.layer.fc(x, 2)"


def test_what_one_line_makes_has_one_location_between_them_built_or_read():
    """A large program is made by few lines: fewer objects are fewer for Python's collector to walk, again and again."""
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[4])
        for _ in range(3):
            x = ol.layer.tanh(x)
    for each in (program, ol.Program.from_bytes(program.to_bytes())):
        held = [op.location for op in each.main.ops] + [op.writes[0].location for op in each.main.ops]
        assert len({id(location) for location in held}) == 1
        assert held[0] == x.location


def test_a_gradient_op_stands_where_its_forward_op_stands():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[4])
        y = ol.op.tanh(x)
        ol.gradients([y], [x])
    forward, start, backward = program.main.ops
    assert (backward.type, backward.location) == ("tanh_dx", forward.location)
    assert start.location.text == "ol.gradients([y], [x])"


def test_a_location_prints_as_an_editor_reads_it():
    assert str(Location("parts/tower.py", 3, "tower", "x = 1")) == "parts/tower.py:3 in tower      x = 1"
    assert str(Location("model.py", 3, "<module>", "")) == "model.py:3"


def test_a_package_whose_path_begins_like_ours_is_the_users(tmp_path):
    """`oarlock_models` beside `oarlock` is no part of it."""
    neighbour = Path(ol.__file__).parent.with_name("oarlock_models") / "model.py"
    names = {"here": here, "__name__": "oarlock_models.model"}
    exec(compile("place = here()", str(neighbour), "exec"), names)
    assert (names["place"].file, names["place"].line) == ("oarlock_models/model.py", 1)


def test_a_line_of_any_length_is_cut():
    names = {"here": here}
    exec(compile("place = here()", "<made up>", "exec"), names)
    assert names["place"].text == ""
    with ol.Program():
        x = ol.layer.data("x", shape=[4])
        y = ol.op.relu(x)  # xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx  # noqa: E501  # fmt: skip
    assert len(y.location.text) == 200
