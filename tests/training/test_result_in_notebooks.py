"""The result of training, as a notebook shows it: a table of epochs and their curves."""

from xml.etree import ElementTree

from drawing.markup import read_html

import oarlock as ol
from oarlock.training import EpochRecord, TrainingResult


def result(epochs: int) -> TrainingResult:
    history = [
        EpochRecord(number, {"loss": 1 / number}, {"loss": 2 / number, "</td>": 0.5}, 10 * number) for number in range(1, epochs + 1)
    ]
    return TrainingResult(ol.Program(), ol.Scope(), history, 10 * epochs)


def test_a_result_is_a_table_of_epochs_above_their_curves():
    html = result(3)._repr_html_()
    tree = read_html(html)
    assert [[cell.text for cell in row.children] for row in tree.all() if row.tag == "tr"] == [
        ["epoch", "step", "loss", "validation loss", "validation </td>"],
        ["1", "10", "1", "2", "0.5"],
        ["2", "20", "0.5", "1", "0.5"],
        ["3", "30", "0.3333", "0.6667", "0.5"],
    ]
    assert [p.text for p in tree.all() if p.tag == "p"] == ["30 steps"]
    assert html.endswith(result(3)._repr_svg_())
    ElementTree.fromstring(result(3)._repr_svg_())


def test_of_many_epochs_the_last_are_in_the_table():
    tree = read_html(result(50)._repr_html_())
    assert len([row for row in tree.all() if row.tag == "tr"]) == 21
    assert [p.text for p in tree.all() if p.tag == "p"] == ["500 steps, 30 earlier epochs"]


def test_before_an_epoch_is_over_there_are_no_curves():
    assert result(0)._repr_svg_() is None
    assert [row.children[0].text for row in read_html(result(0)._repr_html_()).all() if row.tag == "tr"] == ["epoch"]
