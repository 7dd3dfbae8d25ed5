"""A stack of no trips is empty, and beside that as large as its type says, whatever tells the sizes."""

import numpy as np
import pytest

import oarlock as ol
from oarlock.registry import parse_program

EXECUTORS = {
    "interpreter": ol.Executor(interpret=True),
    "plan_without_passes": ol.Executor(passes=()),
    "plan": ol.Executor(),
}
SEQUENCES = [[[1.0, 2.0, 3.0]], [[4.0, 5.0, 6.0]]]


def sums_of_sequences(trips: str) -> tuple[ol.Program, list[ol.Var]]:
    """In each trip the sum of each sequence, [n, 3], where only row splits, int64[n+1], tell n; and what is computed of the stack."""
    with ol.Program() as program:
        r = ol.layer.data("r", [3], dtype="float64", ragged=1)
        s = ol.layer.data("s", [], dtype="float64", batch=None)
        if trips == "while":
            loop = ol.while_loop(s < 0.0, max_trips=5)
            with loop.block():
                pooled = ol.layer.sequence_pool(r * s, "sum")
                after = s + 1.0
                loop.carry(s, after)
                loop.update_condition(after < 0.0)
                loop.output(pooled)
            _, every = loop()
        else:
            steps = ol.layer.data("steps", [], dtype="float64", batch="t")
            rnn = ol.rnn()
            with rnn.step():
                rnn.output(ol.layer.sequence_pool(r * rnn.step_input(steps), "sum"))
            every = rnn()
        total = ol.op.reduce_sum(every, axis=0)
        number = ol.op.reduce_sum(total + 1.0)
        (slope,) = ol.gradients([ol.op.reduce_sum(ol.op.square(total + 1.0))], [r])
    return program, [every, total, number, slope]


@pytest.mark.parametrize("trips", ["while", "rnn"])
@pytest.mark.parametrize("name", EXECUTORS)
def test_sizes_of_a_stack_are_told_by_row_splits(name: str, trips: str):
    program, wanted = sums_of_sequences(trips)
    fed = {"r": SEQUENCES, "s": 1.0} if trips == "while" else {"r": SEQUENCES, "steps": np.zeros(0)}
    every, total, number, slope = EXECUTORS[name].run(program, fed, wanted, scope=ol.Scope())
    assert every.shape == (0, 2, 3)
    assert np.array_equal(total, np.zeros((2, 3)))
    assert number == 6.0
    assert np.array_equal(slope, np.zeros((2, 3)))


CUTS = {
    "n+1": ("x: int64[n+1]", "y: int64[n] = sequence_lengths(splits=x)", np.array([0, 2, 3, 3]), (3,)),
    "2*n": ("x: float32[2*n, 3]", "y: float32[n, 6] = reshape(x=x, shape=shape[-1, 6])", np.ones((8, 3), "float32"), (4, 6)),
    "n*t": ("x: float32[n*t]", "y: float32[n*t] = relu(x=x)", np.ones(7, "float32"), (7,)),
    "n-1": ("x: float32[n-1]", "y: float32[n-1] = relu(x=x)", np.ones(5, "float32"), (5,)),
}


@pytest.mark.parametrize("form", CUTS)
@pytest.mark.parametrize("name", EXECUTORS)
def test_sizes_of_a_stack_are_told_by_sums_and_products(name: str, form: str):
    """A branch that does not run returns `[0, n]`, where all that it would read is `[2*n]`, or `[0, n*t]` of what is `[n*t]`."""
    declared, op, x, expected = CUTS[form]
    type = op.partition(" =")[0].removeprefix("y: ")
    program = parse_program(f"""program seed=0
        block main({declared}, go: bool[]) {{
          [every: {type.replace("[", "[ran, ")}] = conditional_block(values=[], free=[x], when=go, body={{once}})
            block once() -> (y) {{
              {op}
            }}
        }}
        target every = every""")
    for go in (False, True):
        (every,) = EXECUTORS[name].run(program, {"x": x, "go": np.array(go)}, ["every"], scope=ol.Scope())
        assert every.shape == (int(go), *expected)


@pytest.mark.parametrize("name", EXECUTORS)
def test_a_size_that_only_a_block_tells_is_0_where_it_has_not_run(name: str):
    """And one less than that is 0 too."""
    program = parse_program("""program seed=0
        block main(c: bool[n], go: bool[]) {
          [every: int64[ran, k-1]] = conditional_block(values=[], free=[c], when=go, body={once})
            block once() -> (y) {
              r: int64[k] = nonzero(condition=c, value=true)
              y: int64[k-1] = slice(x=r, axis=0, start=1)
            }
        }
        target every = every""")
    for go, shape in ((False, (0, 0)), (True, (1, 2))):
        fed = {"c": np.array([True, False, True, True]), "go": np.array(go)}
        assert EXECUTORS[name].run(program, fed, ["every"], scope=ol.Scope())[0].shape == shape
