"""Programs drawn by `ol.draw`: each op once, nested as the blocks are, and well-formed."""

import re
from collections import Counter
from xml.etree import ElementTree

import numpy
import pytest
from drawing.markup import Element, read_html
from sample_programs import nested_loops, running_sum

import oarlock as ol

SVG = "{http://www.w3.org/2000/svg}"


def classifier() -> ol.Program:
    """A network with layers in one another, its gradient and its updates."""
    with ol.Program(seed=0) as program:
        image = ol.layer.data("image", shape=[8])
        label = ol.layer.data("label", shape=[], dtype="int64")
        hidden = image
        for number in range(2):
            for part in ("in", "out"):
                hidden = ol.layer.fc(hidden, 8, act="relu", name=f"stack.{number}.{part}")
        logits = ol.layer.fc(hidden, 3, name="head")
        cost = ol.layer.mean(ol.layer.softmax_with_cross_entropy(logits, label))
        program.targets = {"loss": cost}
        ol.optimizer.Adam(1e-3).minimize(cost)
    return program


def branches() -> ol.Program:
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3])
        way = ol.ifelse()
        with way.true_block():
            way.output(ol.op.tanh(x))
        with way.false_block():
            way.output(ol.op.exp(x))
        program.targets = {"y": way(ol.op.reduce_sum(x, axis=1) > 0)}
    return program


PROGRAMS = {make.__name__: make for make in (classifier, branches, nested_loops, running_sum)}


@pytest.fixture(params=PROGRAMS)
def program(request: pytest.FixtureRequest) -> ol.Program:
    return PROGRAMS[request.param]()


def operators(program: ol.Program) -> Counter[str]:
    return Counter(op.type for block in program.blocks for op in block.ops)


def label(item: Element) -> str:
    return item.of_class("label")[0].text


def test_a_page_has_every_op_once(program):
    tree = read_html(ol.draw(program).page)
    assert Counter(label(item) for item in tree.of_class("item", "op")) == operators(program)


def test_a_page_is_nested_as_the_blocks_are(program):
    def nested(block):
        return [[nested(inner) for inner in op.blocks] for op in block.ops if op.blocks]

    def boxes(element: Element, found: list) -> list:
        for child in element.children:
            own = found
            if "block" in child.classes or ("op" in child.classes and child.of_class("block")):  # a block, or an op that owns some
                own = []
                found.append(own)
            boxes(child, own)
        return found

    assert boxes(read_html(ol.draw(program).html), []) == nested(program.main)


def test_every_id_of_a_page_is_there_once_and_every_link_leads_to_one(program):
    elements = read_html(ol.draw(program).page).all()
    ids = Counter(element.attributes["id"] for element in elements if "id" in element.attributes)
    links = {element.attributes["href"] for element in elements if element.tag == "a"}
    assert max(ids.values()) == 1
    assert links
    assert links <= {f"#{name}" for name in ids}


def test_two_programs_in_one_page_share_no_id():
    ids = [re.findall(r' id="([^"]*)"', ol.draw(make()).html) for make in (classifier, branches)]
    assert not set(ids[0]) & set(ids[1])


def test_a_picture_has_every_op_once_where_all_is_open(program):
    tree = ElementTree.fromstring(ol.draw(program, depth=20).svg)
    items = [group for group in tree.iter(f"{SVG}g") if group.find(f"{SVG}title") is not None]
    labels = [group.find(f"{SVG}text").text for group in items]
    assert Counter(label for label in labels if label in operators(program)) == operators(program)


def test_sections_are_the_roles_of_ops():
    tree = read_html(ol.draw(classifier()).html)
    titles = [(section.of_class("section")[0].children[0].children[0].text) for section in tree.of_class("section")]
    assert titles == ["forward", "backward", "update", "commit"]
    assert [section.attributes.get("open", "closed") for section in tree.of_class("section")] == [None, "closed", "closed", "closed"]


def test_layers_fold_by_their_names():
    tree = read_html(ol.draw(classifier(), depth=1).html)
    forward = tree.of_class("section")[0]
    layers = [(label(item), "open" in item.children[1].attributes) for item in forward.of_class("item", "layer")]
    assert layers == [("stack", True), ("stack.0", False), ("stack.1", False)]


def test_a_line_says_what_it_reads_and_defines_and_of_what_type():
    tree = read_html(ol.draw(classifier()).html)
    first = next(item for item in tree.of_class("item", "op") if label(item) == "linear")
    words = [(element.text, element.classes[0]) for element in first.of_class("words")[0].children]
    assert words == [
        ("image", "value"),
        ("\u2026in.w", "parameter"),
        ("\u2026in.b", "parameter"),
        ("\u2192", "note"),
        ("\u2026in.out", "value"),
    ]
    assert first.of_class("type")[0].text == "float32[n, 8]"


def test_the_author_s_line_and_all_types_are_told_of_what_is_pointed_at():
    tree = read_html(ol.draw(classifier()).html)
    first = next(item for item in tree.of_class("item", "op") if label(item) == "linear")
    lines = first.of_class("head")[0].attributes["data-tip"].split("\n")
    assert re.fullmatch(r"[a-z/]*test_program.py:\d+ in classifier", lines[0])
    assert lines[1:] == [
        '    hidden = ol.layer.fc(hidden, 8, act="relu", name=f"stack.{number}.{part}")',
        "",
        "linear",
        "  x       image           float32[n, 8]",
        "  w       stack.0.in.w    float32[8, 8]  parameter",
        "  bias    stack.0.in.b    float32[8]  parameter",
        "  -> out  stack.0.in.out  float32[n, 8]",
    ]
    assert "test_program.py" not in ol.draw(classifier(), source=False).page
    assert "test_program.py" not in ol.draw(classifier(), source=False).svg


def test_the_size_of_a_program_and_how_it_is_trained_stand_above():
    program = classifier()
    program.training = ol.ir.Training(batch_size=32, epochs=1)
    heading = read_html(ol.draw(program).html).of_class("header")[0].children
    assert [part.text for part in heading[:2]] == ["Program", "75 ops in 1 block; 315 parameters, 1.2 KiB; batch size 32, 1 epoch"]


def test_very_many_ops_in_a_row_are_divided():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2])
        for _ in range(160):
            x = ol.op.tanh(x)
    tree = read_html(ol.draw(program).html)
    assert [label(item) for item in tree.of_class("item", "layer")] == ["ops 1 to 50", "ops 51 to 100", "ops 101 to 150", "ops 151 to 160"]
    assert len(tree.of_class("item", "op")) == 160


def test_feeds_and_targets_are_marked():
    tree = read_html(ol.draw(classifier()).html)
    assert [item.of_class("words")[0].children[0].text for item in tree.of_class("item", "feed")] == ["image", "label"]
    assert [item.of_class("words")[0].children[0].text for item in tree.of_class("item", "target")] == ["loss"]


def test_a_block_is_drawn_alone():
    program = nested_loops()
    inner = next(block for block in program.blocks if block.parent is not None and block.parent.parent is not None)
    tree = read_html(ol.draw(inner).html)
    assert Counter(label(item) for item in tree.of_class("item", "op")) == {"multiply": 1, "add": 1, "tanh": 1}
    assert [row.children[0].text for row in tree.all() if row.tag == "tr"] == ["decay"]
    heading = tree.of_class("header")[0].children
    assert [part.text for part in heading[:2]] == [f"Block {inner.path}", "3 ops in 1 block; 3 parameters, 12 B"]


def test_the_default_program_is_drawn_where_none_is_given():
    assert ol.draw().svg == ol.draw(ol.default_program()).svg


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3,), "draw takes a program, not int"),
        ((ol.Program(), -1), "draw: depth is a whole number from 0, not -1"),
    ],
)
def test_what_is_no_program_is_refused(arguments, message):
    with pytest.raises(ol.ArgumentError, match=message):
        ol.draw(arguments[0], **({"depth": arguments[1]} if len(arguments) > 1 else {}))


def test_of_a_parameter_is_told_how_it_starts_and_of_data_how_much_they_are():
    with ol.Program() as program:
        held = ol.initializer.array(numpy.zeros((2, 3), "float32"))
        ol.layer.create_parameter([2, 3], name="w", initializer=held)
        ol.layer.create_parameter([2], name="b", initializer=ol.initializer.constant(0.5))
    tree = read_html(ol.draw(program, source=False).html)
    assert [row.attributes["title"] for row in tree.all() if row.tag == "tr"] == [
        "w: float32[2, 3]  parameter\nstarts as array\n  data = 24 bytes\n  shape = [2, 3]\n24 B",
        "b: float32[2]  parameter\nstarts as constant\n  value = 0.5\n8 B",
    ]
