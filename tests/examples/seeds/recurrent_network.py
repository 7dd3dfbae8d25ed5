"""Issue 3129, "A Recurrent Network", both of its listings.

accum = paddle.framework.tensor()
cost = paddle.layer.mse(
    paddle.layer.fc(
        paddle.layer.rnn(
            input = paddle.layer.fc(x),
            step_net = paddle.layer.fc(paddle.layer.add_to(accum, NULL), output_size=100),
            concat_output=true)),
    y)
paddle.train(cost, ...)

Here we use NULL as the placeholder of the input of the step net. And, without consuming the output of the RNNOp:

paddle.layer.rnn(input = paddle.layer.fc(x), step_net = ..., concat_output=true)
cost = paddle.layer.mse(paddle.layer.fc(memory), y)
"""

import numpy

import oarlock as paddle

random = numpy.random.default_rng(0)
features = [random.normal(size=(length, 3)).astype("float32") for length in (2, 4, 1, 3)]

with paddle.Program(seed=1):
    x = paddle.layer.data(name="features", shape=[3], ragged=1)
    y = paddle.layer.data(name="labels", shape=[1], batch="features.t")  # a label for each step
    accum = paddle.framework.tensor()
    cost = paddle.layer.mse(
        paddle.layer.fc(
            paddle.layer.rnn(
                input=paddle.layer.fc(x, 8),
                step_net=lambda: paddle.layer.fc(paddle.layer.add_to(accum, None), output_size=100),
                concat_output=True,
            ),
            1,
        ),
        y,
    )
    labels = [numpy.cumsum(row[:, :1], axis=0) for row in features]
    history = paddle.train(cost, {"features": features, "labels": labels}, epochs=60, progress=False).history
assert history[-1].training["loss"] < history[0].training["loss"] / 4

with paddle.Program(seed=1):
    x = paddle.layer.data(name="features", shape=[3], ragged=1)
    y = paddle.layer.data(name="labels", shape=[1])  # a label for each sequence
    memory = paddle.framework.tensor()
    paddle.layer.rnn(
        input=paddle.layer.fc(x, 8),
        step_net=lambda: paddle.layer.fc(paddle.layer.add_to(memory, None), output_size=100),
        concat_output=True,
    )
    cost = paddle.layer.mse(paddle.layer.fc(memory, 1), y)
    labels = numpy.array([row[:, :1].sum(0) for row in features])
    history = paddle.train(cost, {"features": features, "labels": labels}, epochs=60, progress=False).history
assert history[-1].training["loss"] < history[0].training["loss"] / 4
