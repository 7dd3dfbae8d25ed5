"""A few names of PyTorch's operator database; `tools/operator_database.py` runs all. It is private, so a sample may change with PyTorch."""

import importlib
import sys
import warnings
from pathlib import Path

import pytest
import torch

import oarlock as ol

NAMES = ("add", "sum", "cumsum", "stack", "diagonal", "matmul", "nn.functional.elu", "nn.functional.pad.reflect")


@pytest.fixture(scope="module")
def command():
    folder = str(Path(__file__).resolve().parents[2] / "tools")
    sys.path.insert(0, folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield importlib.import_module("operator_database")
    sys.path.remove(folder)


@pytest.mark.parametrize("name", NAMES)
def test_samples_of_a_name_pass_forward_and_backward_and_bad_ones_are_refused(command, name):
    result = command.run(command.entries()[name], torch.float64)
    assert result.samples > 0
    assert result.samples == result.forward == result.first == result.second, result.reasons
    written = [reason for reason in result.error_reasons if not reason.startswith(("out=", "refused when it runs"))]
    assert written == []


def test_a_wrong_call_a_wrong_gradient_and_a_wrong_second_gradient_are_seen(command, monkeypatch):
    def judged(call):
        monkeypatch.setitem(command.TABLE, "exp", call)
        return command.run(command.entries()["exp"], torch.float64)

    def half_way(x):
        y = ol.op.exp(x)
        return (y + ol.op.stop_gradient(y)) * 0.5

    def first_order_alone(x):
        y = ol.op.exp(x)
        return ol.op.stop_gradient(y) * (x - ol.op.stop_gradient(x)) + ol.op.stop_gradient(y)

    assert judged(ol.op.expm1).forward < 3
    assert judged(half_way).forward == 3
    assert judged(half_way).first < 3
    assert (judged(first_order_alone).first, judged(first_order_alone).second < 3) == (3, True)
    assert judged(ol.op.exp).second == 3


def test_no_name_is_both_in_the_table_and_left_out_and_all_are_pytorchs(command):
    assert not command.TABLE.keys() & command.LEFT_OUT.keys()
    assert command.TABLE.keys() | command.LEFT_OUT.keys() <= command.entries().keys()
