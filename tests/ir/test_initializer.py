"""Initial values in a file are checked before any is made."""

import pytest
import torch

import oarlock as ol
from oarlock.ir import Initializer
from oarlock.ir.initializer import verify_initializers
from oarlock.ir.program import Program

F32, I8, BOOL, U8 = ol.DType.FLOAT32, ol.DType.INT8, ol.DType.BOOL, ol.DType.UINT8


def holding(kind: str, dtype: ol.DType = F32, sizes: tuple[int, ...] = (2,), **attributes: object) -> Program:
    program = ol.Program()
    program.main.new_var("w", dtype, sizes, persistable=True, initializer=Initializer(kind, attributes))
    return program


@pytest.mark.parametrize(
    "program",
    [
        holding("constant", value=0.5),
        holding("constant", I8, value=-128.0),
        holding("constant", U8, value=255.0),
        holding("constant", BOOL, value=1.0),
        holding("uniform", low=0.0, high=1.0),
        holding("normal", mean=0.0, deviation=1.0),
        holding("truncated_normal", mean=0.0, deviation=1.0, low=-1.0, high=float("inf")),
        holding("orthogonal", sizes=(2, 3, 0), gain=1.0),
        holding("identity", sizes=(4, 3, 2), gain=1.0, groups=2),
        holding("sparse", sizes=(2, 0), sparsity=0.5, deviation=1.0),
        holding("array", data=b"\0" * 8, shape=(2,)),
        holding("array", I8, (0, 3), data=b"", shape=(0, 3)),
    ],
)
def test_these_fit(program):
    verify_initializers(program)
    ol.init(program, ol.Scope())


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (holding("exec"), 'unknown initializer "exec"'),
        (holding("constant"), "constant needs the attribute value"),
        (holding("constant", value=1.0, more=1.0), "constant has no attribute more"),
        (holding("constant", value=1), "attribute value of constant must be float, not int"),
        (holding("constant", I8, value=128.0), "128.0 is not a valid int8"),
        (holding("constant", I8, value=0.5), "0.5 is not a valid int8"),
        (holding("constant", I8, value=float("nan")), "nan is not a valid int8"),
        (holding("constant", BOOL, value=2.0), "2.0 is not a valid bool"),
        (holding("constant", U8, value=-1.0), "-1.0 is not a valid uint8"),
        (holding("uniform", I8, low=0.0, high=1.0), "uniform produces floats, but the variable is int8"),
        (holding("orthogonal", gain=1.0), "orthogonal needs 2 axes or more, but the variable has 1"),
        (holding("sparse", sizes=(2, 2, 2), sparsity=0.5, deviation=1.0), "sparse needs 2 axes, but the variable has 3"),
        (holding("sparse", sizes=(2, 2), sparsity=1.5, deviation=1.0), "sparsity must be from 0 to 1"),
        (holding("identity", sizes=(3, 2), gain=1.0, groups=2), "3 rows cannot be divided into 2 groups"),
        (holding("identity", sizes=(3, 2), gain=1.0, groups=0), "3 rows cannot be divided into 0 groups"),
        (holding("orthogonal", I8, (2, 2), gain=1.0), "orthogonal produces floats, but the variable is int8"),
        (
            holding("truncated_normal", mean=0.0, deviation=1.0, low=1.0, high=1.0),
            "truncated_normal needs deviation > 0 and low < high",
        ),
        (holding("array", data=b"\0" * 8, shape=(1, 2)), "an array of shape [1, 2] does not fit float32[2]"),
        (holding("array", data=b"\0" * 8, shape=(3,)), "an array of shape [3] does not fit float32[2]"),
        (holding("array", data=b"\0" * 8, shape=(-2,)), "the shape of an array must be non-negative integers"),
        (holding("array", data=b"\0" * 7, shape=(2,)), "the array has 7 bytes, but needs 8"),
    ],
)
def test_these_do_not_fit(program, message):
    with pytest.raises(ol.VerifyError) as caught:
        verify_initializers(program)
    assert caught.value.message == f'main: variable "w" has an invalid initializer: {message}'


# How much


def test_more_bytes_than_allowed_are_refused_before_any_is_made():
    program = holding("normal", sizes=(2**20, 2**20), mean=0.0, deviation=1.0)
    scope = ol.Scope()
    with pytest.raises(ol.LimitError) as caught:
        ol.init(program, scope)
    assert caught.value.message == '"w": 4,398,046,511,104 parameter bytes, but the limit is 4,294,967,296'
    assert caught.value.hint == "limits=Limits(parameter_bytes=...)"
    assert len(scope) == 0


def test_the_limit_is_the_callers_and_what_is_there_does_not_count():
    program = holding("constant", value=1.0)
    with pytest.raises(ol.LimitError):
        ol.init(program, ol.Scope(), limits=ol.Limits(parameter_bytes=7))
    scope = ol.init(program, ol.Scope(), limits=ol.Limits(parameter_bytes=8))
    ol.init(program, scope, limits=ol.Limits(parameter_bytes=0))


def test_the_values_of_an_imported_module_do_not_count_since_it_holds_them():
    model = ol.from_torch(torch.nn.Linear(3, 2), torch.ones(1, 3))
    scope = ol.init(model.program, ol.Scope(), limits=ol.Limits(parameter_bytes=0))
    assert scope["weight"].equal(model.scope["weight"])


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        ("uniform", {"low": -1.0, "high": 1.0}),
        ("normal", {"mean": 0.5, "deviation": 2.0}),
        ("truncated_normal", {"mean": 0.5, "deviation": 2.0, "low": 0.0, "high": 1.0}),
    ],
)
def test_the_parts_in_which_values_are_drawn_do_not_show(kind, attributes, monkeypatch):
    program = holding(kind, sizes=(7, 11), **attributes)
    whole = ol.init(program, ol.Scope())["w"]
    monkeypatch.setattr("oarlock.runtime.initialization._AT_ONCE", 10)
    assert ol.init(program, ol.Scope())["w"].equal(whole)
