"""The messages for arguments that a layer, a function of variables, an optimizer or an operator does not take."""

import pytest

import oarlock as ol
from oarlock.optimizer.optimizer import Options

SCRIPT = """
    import oarlock as ol
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[4])
        {call}
    """

FC = (
    "fc(input, size=None, *, output_size=None, act=None, scale=1.0, bias=True, initializer=None, weight=None, "
    "params=None, shard=None, name=None)"
)

MESSAGES = {
    'y = ol.layer.fc(x, 10, atc="relu")': """
        oarlock.ArgumentError: fc: no argument atc
          model.py:4      y = ol.layer.fc(x, 10, atc="relu")
          {fc}
              "x"   float32[n, 4]   fed; declared at model.py:3
          Try: did you mean "act"?    (oarlock explain ArgumentError)
        """,
    'y = ol.fc(x, 10, "relu")': """
        oarlock.ArgumentError: fc: 3 arguments given, but it takes input and size
          model.py:4      y = ol.fc(x, 10, "relu")
          {fc}
              "x"   float32[n, 4]   fed; declared at model.py:3
          Try: pass the others by name: output_size=...    (oarlock explain ArgumentError)
        """,
    "y = ol.layer.fc(size=10)": """
        oarlock.ArgumentError: fc: input is missing
          model.py:4      y = ol.layer.fc(size=10)
          {fc}
        """,
    "y = ol.layer.mse(x, x, y=x)": """
        oarlock.ArgumentError: mse: y is given twice
          model.py:4      y = ol.layer.mse(x, x, y=x)
          mse(x, y)
              "x"   float32[n, 4]   fed; declared at model.py:3
        """,
    "y = ol.layer.attention(x, heads=2)": """
        oarlock.ArgumentError: attention: key and value are missing
          model.py:4      y = ol.layer.attention(x, heads=2)
          attention(query, key, value, *, heads=1, causal=False)
              "x"   float32[n, 4]   fed; declared at model.py:3
        """,
    "y = ol.op.softplus(x, betta=2.0)": """
        oarlock.ArgumentError: softplus: no attribute or input betta; its attributes: beta, threshold
          model.py:4      y = ol.op.softplus(x, betta=2.0)
          softplus(x: float[*b], beta=1.0, threshold=20.0) -> y: float[*b]
              x = "x"   float32[n, 4]   fed; declared at model.py:3
          Try: did you mean "beta"?    (oarlock explain ArgumentError)
        """,
    "y = ol.layer.softmax(x, dim=-1)": """
        oarlock.ArgumentError: softmax: no attribute or input dim; its attributes: axis
          model.py:4      y = ol.layer.softmax(x, dim=-1)
          softmax(x: float[...s], axis=None) -> y: float[...s]
              x = "x"   float32[n, 4]   fed; declared at model.py:3
          Try: did you mean "axis"?    (oarlock explain ArgumentError)
        """,
    "y = ol.op.squeeze()": """
        oarlock.ArgumentError: squeeze: x is missing
          model.py:4      y = ol.op.squeeze()
          squeeze(x, *axes)
        """,
    "rule = ol.layer.initializer.uniform(0.0, hihg=1.0)": """
        oarlock.ArgumentError: uniform: no argument hihg
          model.py:4      rule = ol.layer.initializer.uniform(0.0, hihg=1.0)
          uniform(low, high)
          Try: did you mean "high"?    (oarlock explain ArgumentError)
        """,
    "step = ol.optimizer.Momentum(lr=0.1)": """
        oarlock.ArgumentError: Momentum: no argument lr
          model.py:4      step = ol.optimizer.Momentum(lr=0.1)
          Momentum(learning_rate=0.01, mu=0.9, *, nesterov=False, dampening=0.0, {options})
          Try: did you mean "learning_rate"?    (oarlock explain ArgumentError)
        """,
    "pairs = ol.optimizer.SGD(0.1).minimize(cots=x)": """
        oarlock.ArgumentError: SGD.minimize: no argument cots
          model.py:4      pairs = ol.optimizer.SGD(0.1).minimize(cots=x)
          SGD.minimize(cost, parameters=None)
              "x"   float32[n, 4]   fed; declared at model.py:3
          Try: did you mean "cost"?    (oarlock explain ArgumentError)
        """,
    'executor = ol.Executor(backnd="numpy")': """
        oarlock.ArgumentError: Executor: no argument backnd
          model.py:4      executor = ol.Executor(backnd="numpy")
          Executor(place=None, *, catalogue=..., check=False, limits=None, interpret=False, passes=..., poison=False, backend=None, workers=None)
          Try: did you mean "backend"?    (oarlock explain ArgumentError)
        """,  # noqa: E501
}
OPTIONS = ", ".join(f"{name}=..." for name in Options.__annotations__)


@pytest.mark.parametrize("call", MESSAGES)
def test_arguments_that_are_not_taken(call, require):
    require(SCRIPT.replace("{call}", call), MESSAGES[call].replace("{options}", OPTIONS).replace("{fc}", FC))


def test_a_function_that_fails_by_itself_fails_as_it_did():
    def activation(x):
        raise TypeError("not of ours")

    with ol.Program():
        x = ol.layer.data("x", shape=[4])
        with pytest.raises(TypeError, match="^not of ours$"):
            ol.layer.fc(x, 2, act=activation)


def test_what_is_refused_has_written_nothing():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[4])
        before = program.to_bytes()
        with pytest.raises(ol.ArgumentError):
            ol.layer.fc(x, 2, sise=3)
    assert program.to_bytes() == before


def test_an_optimizer_of_ones_own_takes_what_all_take_and_refuses_the_rest():
    class Mine(ol.optimizer.SGD):
        def __init__(self, learning_rate, **options):
            super().__init__(learning_rate, **options)

    assert Mine(0.1, weight_decay=0.5).weight_decay == 0.5
    with pytest.raises(ol.ArgumentError, match="^Mine: no argument weight_dcay\n"):
        Mine(0.1, weight_dcay=0.5)
