"""Programs, tables and ragged values, as a notebook shows them."""

from xml.etree import ElementTree

import numpy
import pytest
from drawing.markup import Element, read_html
from drawing.test_hostile_programs import PAYLOADS, spoil
from drawing.test_program import PROGRAMS, SVG, classifier

import oarlock as ol
from oarlock.drawing.table import table_html


def texts(element: Element) -> list[list[str]]:
    return [[cell.text for cell in row.children] for row in element.all() if row.tag == "tr"]


def drawn_texts(svg: str) -> list[str | None]:
    return [text.text for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_a_program_is_shown_as_it_is_drawn():
    program = classifier()
    assert program._repr_html_() == ol.draw(program).html
    assert program._repr_svg_() == ol.draw(program).svg
    assert ol.draw(program)._repr_html_() == ol.draw(program).html
    assert ol.draw(program)._repr_svg_() == ol.draw(program).svg


def test_a_block_is_shown_as_it_is_drawn():
    block = PROGRAMS["branches"]().blocks[1]
    assert block._repr_html_() == ol.draw(block).html
    assert len(read_html(block._repr_html_()).of_class("item", "op")) == 1


def test_of_a_very_large_program_a_notebook_holds_the_picture_alone():
    with ol.Program() as program:
        x = program.main.new_var("x0", ol.DType.FLOAT32, (2,))
        program.main.inputs.append(x)
        for number in range(5001):
            y = program.main.new_var(f"x{number + 1}", ol.DType.FLOAT32, (2,))
            program.main.append("tanh", {"x": [x]}, {"y": [y]}, {})
            x = y
    assert program._repr_html_() is None
    assert len(ElementTree.fromstring(program._repr_svg_()).findall(f".//{SVG}g")) < 150


def test_a_summary_is_shown_as_a_table():
    with ol.Program() as program:
        ol.layer.fc(ol.layer.data("x", shape=[2]), 3, name="only")
    tree = read_html(ol.summary(program)._repr_html_())
    assert texts(tree) == [
        ["layer", "operators", "output", "trainable", "frozen", "memory", "multiply-adds"],
        ["only", "linear", "float32[n, 3]", "9", "", "36 B", "6"],
    ]
    assert [p.text for p in tree.all() if p.tag == "p"] == [
        "9 trainable and 0 frozen numbers in 36 B, 0 B of state\n6 multiply-adds forward, for n = 1"
    ]


@pytest.mark.parametrize("payload", PAYLOADS, ids=range(len(PAYLOADS)))
def test_what_a_program_says_is_text_in_its_summary(payload):
    program = spoil(classifier(), payload)
    for block in program.blocks:
        for var in block.vars.values():
            var.shape = (2,) * len(var.shape or ())
    tree = read_html(ol.summary(program)._repr_html_())
    assert {element.tag for element in tree.all()[1:]} == {"div", "style", "table", "thead", "tbody", "tr", "th", "td", "p"}


def test_a_table_aligns_numbers_and_escapes_texts():
    tree = read_html(table_html(["<a>", "b"], [["</td>", '"1'], ["x", "2"]], numbers=[1], note="<p>"))
    assert texts(tree) == [["<a>", "b"], ["</td>", '"1'], ["x", "2"]]
    assert [cell.text for cell in tree.of_class("number")] == ["b", '"1', "2"]
    assert [p.text for p in tree.all() if p.tag == "p"] == ["<p>"]


def test_ragged_values_are_shown_row_by_row():
    rows = ol.Ragged.from_lists([[1.5, 2.0], [], [3.0]], dtype="float32")
    assert drawn_texts(rows._repr_svg_()) == ["Ragged float32[3, ?]: 3 rows", "0", "1.5", "2", "1", "empty", "2", "3"]
    assert rows._repr_html_() == rows._repr_svg_()


def test_rows_of_rows_and_rows_of_vectors_are_shown_in_short():
    nested = ol.Ragged.from_lists([[[1, 2], []], [[3] * 9]], levels=2)
    assert drawn_texts(nested._repr_svg_())[1:] == ["0", "[1, 2]", "[]", "1", "[3, 3, 3, 3..."]
    vectors = ol.Ragged.from_lists([numpy.full((1, 3), 1 / 3)])
    assert drawn_texts(vectors._repr_svg_()) == ["Ragged float64[1, ?, 3]: 1 row", "0", "[0.3333, 0...."]


def test_of_many_rows_and_long_ones_the_first_are_shown():
    many = ol.Ragged.from_lists([list(range(100))] * 50)
    shown = drawn_texts(many._repr_svg_())
    assert shown.count("+ 84") == 20
    assert shown[-1] == "and 30 more rows"
    assert drawn_texts(ol.Ragged.from_lists([])._repr_svg_()) == ["Ragged float32[0, ?]: 0 rows"]
