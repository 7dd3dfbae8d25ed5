"""docs/reference/language.md, followed by hand: an implementation that shares no code with ours gives the same bits."""

import hashlib
import math
import re
import struct
from pathlib import Path

import numpy
import pytest
from fuzz.draft import Draft

import oarlock as ol
from oarlock.ir.content_hash import content_hash
from oarlock.proto import program_pb2 as wire
from oarlock.proto.limits import Limits

PAGE = (Path(__file__).parent.parent.parent / "docs" / "reference" / "language.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page() -> dict:
    """The functions that the page gives."""
    names: dict = {"print": lambda *values: None}
    exec(re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1], names)
    return names


def test_first_values_follow_from_the_page_alone(page):
    with ol.Program(seed=2**64 - 1) as program:
        x = ol.layer.data("x", shape=[3])
        ol.layer.fc(x, 4, name="out")
    var = program.main.var("out.w")
    value = ol.init(program, ol.Scope())["out.w"].numpy().reshape(-1)
    low, high = var.initializer.attributes["low"], var.initializer.attributes["high"]
    key = page["key"](2**64 - 1, "initial", "out.w")
    assert value.tolist() == [float(numpy.float32(page["u"](key, i) * (high - low) + low)) for i in range(12)]


def test_normal_first_values_follow_from_the_page_but_for_the_last_bits(page):
    with ol.Program(seed=5) as program:
        ol.layer.conv2d(ol.layer.data("x", shape=[1, 4, 4]), filters=2, size=3, name="conv")
    deviation = program.main.var("conv.w").initializer.attributes["deviation"]
    value = ol.init(program, ol.Scope())["conv.w"].numpy().reshape(-1)
    key, n = page["key"](5, "initial", "conv.w"), 18
    expected = [math.sqrt(-2 * math.log1p(-page["u"](key, i))) * math.cos(2 * math.pi * page["u"](key, n + i)) for i in range(n)]
    numpy.testing.assert_allclose(value, numpy.array(expected) * deviation, rtol=1e-6)


def test_what_dropout_drops_follows_from_the_page_at_the_top_and_in_a_loop(page):
    with ol.Program(seed=7) as program:
        xs = ol.layer.data("xs", shape=[5], batch="t")
        top = ol.layer.dropout(xs, rate=0.5)
        loop = ol.rnn()
        with loop.step():
            loop.output(ol.layer.dropout(loop.step_input(xs), rate=0.5))
        inside = loop()
    ids = [op.attributes["random_id"] for block in program.blocks for op in block.ops if op.type == "dropout"]
    scope = ol.init(program, ol.Scope())
    scope.set("@RANDOM", numpy.int64(12))
    at_top, stacked = ol.Executor().run(program, {"xs": numpy.ones((2, 5), "float32")}, [top, inside], scope=scope, training=True)
    key = page["key"](7, "op", ids[0], 12, "main")
    assert at_top.reshape(-1).tolist() == [2.0 * (page["u"](key, i) >= 0.5) for i in range(10)]
    name = program.blocks[1].name.partition(".")[0]
    for trip in range(2):
        key = page["key"](7, "op", ids[1], 12, str(trip), name, "main")
        assert stacked[trip].tolist() == [2.0 * (page["u"](key, i) >= 0.5) for i in range(5)]


def test_a_file_written_by_hand_is_read_and_written_the_same(tmp_path):
    program = wire.ProgramFile()
    program.program.version = 2
    main = program.program.blocks.add(name="main", inputs=["x"])
    main.vars.add(name="x", dtype=wire.FLOAT32, stop_gradient=True).shape.sizes.add(symbol="n")
    weight = main.vars.add(name="w", dtype=wire.FLOAT32, persistable=True, parameter=True, trainable=True)
    weight.shape.SetInParent()
    main.vars.add(name="y", dtype=wire.FLOAT32).shape.sizes.add(symbol="n")
    op = main.ops.add(type="multiply")
    op.inputs.add(name="x", vars=["x"])
    op.inputs.add(name="y", vars=["w"])
    op.outputs.add(name="z", vars=["y"])
    program.program.targets.add(label="y", var="y")
    data = Draft(program, {"w": ("F32", [], struct.pack("<f", 3.0))}).to_bytes()
    path = tmp_path / "hand.safetensors"
    path.write_bytes(data)
    model = ol.load_model(path)
    assert ol.infer(model, {"x": numpy.array([1.0, 2.0], "float32")}).tolist() == [3.0, 6.0]
    text = (
        "program seed=0\n\nblock main(x: float32[n]) {\n  parameter w: float32[]\n  y: float32[n] = multiply(x=x, y=w)\n}\n\ntarget y = y\n"
    )
    assert model.program.to_text() == text
    assert content_hash(model.program) == hashlib.sha256(text.encode()).hexdigest()
    ol.save_model(model, path)
    header = data[8 : 8 + int.from_bytes(data[:8], "little")]
    assert re.search(rb'"oarlock": "(1 \w+)"', header)[1] in path.read_bytes()


def test_the_page_gives_every_limit():
    section = PAGE[PAGE.index("## 11.") : PAGE.index("## 12.")]
    assert [name for name in (*vars(Limits()), *vars(ol.RunLimits())) if f"`{name}`" not in section] == []
