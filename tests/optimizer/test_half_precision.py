"""Parameters in half precision: every step is computed so that an epsilon that float16 does not hold keeps its meaning."""

import numpy
import pytest
import torch

import oarlock as ol

ours = ol.optimizer
MAKERS = {
    "adagrad": lambda: ours.Adagrad(0.1),
    "adam": lambda: ours.Adam(0.1),
    "amsgrad": lambda: ours.Adam(0.1, amsgrad=True),
    "adamax": lambda: ours.Adamax(0.1),
    "adadelta": lambda: ours.Adadelta(1.0),
    "nadam": lambda: ours.NAdam(0.1),
    "radam": lambda: ours.RAdam(0.1),
    "rmsprop": lambda: ours.RMSProp(0.1, centered=True, momentum=0.5),
    "lamb": lambda: ours.Lamb(0.1),
    "lion": lambda: ours.Lion(0.1, weight_decay=0.1),
    "ftrl": lambda: ours.Ftrl(0.1),
}


def trained(optimizer: ol.optimizer.Optimizer, dtype: str, gradients: list[list[float]]) -> tuple[torch.Tensor, ol.Program]:
    """A parameter of ones after steps by given gradients, and the program."""
    with ol.Program() as program:
        given = ol.layer.data("g", [3], batch=None, dtype=dtype)
        w = ol.layer.create_parameter([3], name="w", dtype=dtype, initializer=ol.layer.initializer.constant(1.0))
        optimizer.apply([(w, given)])
    scope = ol.init(program, ol.Scope())
    step = ol.Executor().prepare(program, [], scope=scope)
    for each in gradients:
        step({"g": torch.tensor(each, dtype=getattr(torch, dtype))})
    return scope["w"], program


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", MAKERS)
def test_an_element_without_a_gradient_stays_a_number_and_the_others_go_where_float32_goes(name, dtype):
    gradients = [[0.0, 0.5, -0.01], [0.0, 0.25, -0.02], [0.0, -1.0, 0.5]]
    found, program = trained(MAKERS[name](), dtype, gradients)
    expected, _ = trained(MAKERS[name](), "float32", gradients)
    assert found.dtype is getattr(torch, dtype)
    numpy.testing.assert_allclose(found.float(), expected, rtol=0, atol=0.02 if dtype == "bfloat16" else 0.004)
    kept = [var.dtype for var in program.persistables() if var.name.startswith("w")]
    assert set(kept) == {ol.DType.of(dtype)}


@pytest.mark.parametrize("make", [lambda: ours.NAdam(0.1, lazy=True), lambda: ours.Adam(0.1, amsgrad=True, lazy=True)])
def test_so_do_rows_of_a_table(make):
    with ol.Program(seed=0) as program:
        ids = ol.layer.data("ids", [], dtype="int64")
        rows = ol.layer.embedding(ids, (5, 2), dtype="float16", sparse=True, name="words")
        cost = ol.op.reduce_sum(ol.op.square(ol.layer.dropout(rows, 0.0)) * ol.layer.data("weight", [1], dtype="float16"))
        make().minimize(cost)
    scope = ol.init(program, ol.Scope())
    before = scope["words.w"].clone()
    step = ol.Executor().prepare(program, [cost], scope=scope)
    for _ in range(2):
        step({"ids": numpy.array([1, 3]), "weight": numpy.array([[0.0], [1.0]], "float16")})
    assert torch.equal(scope["words.w"][[0, 1, 2, 4]], before[[0, 1, 2, 4]])
    assert torch.isfinite(scope["words.w"]).all()
    assert not torch.equal(scope["words.w"][3], before[3])
