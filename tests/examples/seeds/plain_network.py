"""Issue 3129, a plain network.

predict = paddle.layer.fc( paddle.layer.data(name="x"), output_size = 100)
cost = paddle.layer.mse( predict, paddle.layer.data(name="y"))
parameters = paddle.train(cost)
paddle.save_model(cost, paddle.datasets.mnist.train(), parameters, "filename");
p = paddle.load_model(predict, "filename")
paddle.infer(predict, ...
"""

import tempfile
from pathlib import Path

import numpy

import oarlock as paddle

rows = numpy.linspace(-1, 1, 32, dtype="float32").reshape(8, 4)
dataset = {"x": rows, "y": numpy.tile(rows.sum(1, keepdims=True), (1, 100))}  # paddle.datasets.mnist is not on every machine

with paddle.Program():
    predict = paddle.layer.fc(paddle.layer.data(name="x", shape=[4]), output_size=100)
    cost = paddle.layer.mse(predict, paddle.layer.data(name="y", shape=[100]))
parameters = paddle.train(cost, dataset, optimizer=paddle.optimizer.SGD(10.0), epochs=200, batch_size=8, progress=False)
with tempfile.TemporaryDirectory() as folder:
    filename = Path(folder) / "filename"
    paddle.save_model(cost, dataset, parameters, filename)
    p = paddle.load_model(predict, filename)
assert numpy.abs(paddle.infer(p, {"x": rows}) - dataset["y"]).max() < 0.1
assert numpy.array_equal(paddle.infer(predict, {"x": rows}, parameters), paddle.infer(p, {"x": rows}))
