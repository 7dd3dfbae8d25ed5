"""Programs written as text."""

from pathlib import Path

import numpy as np
import pytest

import oarlock as ol

ROOT = Path(__file__).resolve().parent.parent

TRAINING = """program seed=7 batch_size=4 epochs=2

block main(x: float32[n, 2], y: float32[n, 1]) {
  parameter w: float32[2, 1] = constant(value=0.5)
  state sgd_0.learning_rate: float64[] = constant(value=0.125)
  read: float32[n, 1] = linear(x=x, w=w)
  error: float32[n, 1] = subtract(x=read, y=y)
  squared: float32[n, 1] = square(x=error)
  cost: float32[] = mean(x=squared, keepdim=false)

  backward:
  w@GRAD: float32[2, 1] = linear_dw(x=x, dout=error)

  update:
  w@NEXT: float32[2, 1] = sgd(param=w, grad=w@GRAD, learning_rate=sgd_0.learning_rate)

  commit:
  w <- w@NEXT
}

target cost = cost
"""


def test_a_program_written_as_text_runs_and_prints_as_it_was_written():
    program = ol.parse_program(TRAINING)
    assert program.to_text() == TRAINING
    scope = ol.init(program, ol.Scope())
    feed = {"x": np.ones((1, 2), dtype="float32"), "y": np.zeros((1, 1), dtype="float32")}
    assert ol.Executor().run(program, feed, ["cost"], scope=scope) == [1.0]
    assert scope["w"].tolist() == [[0.375], [0.375]]
    assert program.training is not None
    assert (program.training.batch_size, program.training.epochs, program.training.backend) == (4, 2, None)


def test_a_backend_stands_behind_the_epochs():
    text = TRAINING.replace("epochs=2", "epochs=2 backend=inductor")
    program = ol.parse_program(text)
    assert program.to_text() == text
    assert program.training == ol.ir.program.Training(batch_size=4, epochs=2, backend="inductor")
    assert program.to_bytes() != ol.parse_program(TRAINING).to_bytes()


def all_kinds_of_everything():
    with ol.Program(seed=2**64 - 1) as program:
        x = ol.layer.data("x", shape=["c", 4], dtype="float64")
        fixed = ol.layer.data("fixed", value=np.arange(6.0).reshape(3, 2))
        free = ol.layer.data("free", shape=[2], batch=None)
        free.stop_gradient = False
        h = ol.op.concat([x, x], axis=1)
        h = ol.op.reshape(h, shape=(-1, 4))
        held = ol.op.clip(fixed, upper=ol.op.full(shape=(), value=float("inf"), dtype="float64"))
        held.stop_gradient = True
        w = ol.layer.fc(free, 3, name="layer")
        program.main.vars["layer.b"].trainable = False
        program.main.new_var("kept", ol.DType.BOOL, (2,), persistable=True)
        program.main.new_var("unused", ol.DType.INT8, None)
        program.targets |= {"h": h, "held": held, "w": w}
    return program


def loops():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=["n", 2], batch="t", dtype="float64")
        outer = ol.rnn(reverse=True)
        with outer.step():
            row = outer.step_input(x)
            inner = ol.rnn()
            start = ol.op.full(shape=(2,), value=0.0, dtype="float64")
            with inner.step():
                total = inner.memory(init=start)
                after = inner.step_input(row) * inner.previous_memory(total)
                inner.update_memory(total, after)
            inner()
            outer.output(inner.final_memory(total))
        (dx,) = ol.gradients([ol.op.reduce_sum(outer())], [x])
        program.targets["dx"] = dx
    return program


@pytest.mark.parametrize("build", [all_kinds_of_everything, loops])
def test_what_is_printed_is_read_back_to_the_same_bytes(build):
    program = build()
    text = program.to_text(source=False)
    parsed = ol.parse_program(text)
    assert parsed.to_text() == text
    assert parsed.to_bytes(source=False) == program.to_bytes(source=False)
    assert ol.parse_program(program.to_text()).to_text() == text


def test_every_golden_text_is_read_back():
    texts = [path for path in sorted(ROOT.glob("golden/*.txt")) if path.read_text().startswith("program ")]
    assert texts
    for path in texts:
        plain = "".join(line for line in path.read_text().splitlines(keepends=True) if not line.lstrip().startswith("#"))
        assert ol.parse_program(path.read_text()).to_text() == plain, path.name


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("program seed=7", "programme seed=7", "line 1: 'program' expected\n      found 'programme seed=7 batch_size=4 epochs=2'"),
        ("seed=7", "seed=x", "line 1: a seed expected\n      found ' batch_size=4 epochs=2'"),
        ("seed=7", f"seed={2**64}", "line 1: a seed below 2**64 expected\n      found ' batch_size=4 epochs=2'"),
        ("float32[n, 2]", "float33[n, 2]", "line 3: a dtype instead of float33 expected\n      found '[n, 2], y: float32[n, 1]) {'"),
        ("float32[n, 2]", "float32", "line 3: a shape expected\n      found ', y: float32[n, 1]) {'"),
        ("(x=x, w=w)", "(x=x; w=w)", "line 6: ',' expected\n      found '; w=w)'"),
        ("keepdim=false", "keepdim=maybe", "line 9: a dtype instead of maybe expected\n      found ')'"),
        ("  commit:\n", "  commit:\n  w <-\n", "line 19: a variable expected\n      found '<- w@NEXT'"),
        ("\ntarget cost = cost", "\ntarget cost", "line 22: '=' expected\n      found the end of the line"),
        ("\ntarget cost = cost", "\ncost", "line 21: the end of the text expected\n      found 'cost'"),
        ("w@GRAD: float32[2, 1] =", "w@GRAD: float32[2, 1], b: float32[] =", "line 12: at most 1 outputs of linear_dw expected"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(old, new, message):
    with pytest.raises(ol.FormatError) as caught:
        ol.parse_program(TRAINING.replace(old, new, 1))
    assert str(caught.value).startswith(message)


def test_what_is_read_is_verified():
    with pytest.raises(ol.VerifyError, match=r'main, op 1 \(subtract\): "error" is declared as float32\[n, 2\]'):
        ol.parse_program(TRAINING.replace("error: float32[n, 1]", "error: float32[n, 2]"))
    with pytest.raises(ol.UnknownOperatorError, match='no operator "lineal"; did you mean "linear"?'):
        ol.parse_program(TRAINING.replace("linear(", "lineal("))
    with pytest.raises(ol.VerifyError, match='"wx" is not declared'):
        ol.parse_program(TRAINING.replace("w=w)", "w=wx)"))
