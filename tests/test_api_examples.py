"""The examples in docstrings of the public names, as the generated reference shows them: each runs after the code that it assumes."""

import re
import runpy
from pathlib import Path

import pytest

REFERENCE = runpy.run_path(str(Path(__file__).parent.parent / "docs" / "generate.py"))
PAGE = "\n".join(REFERENCE["make_page"](f"docs/reference/{name}.md") for name in [*REFERENCE["AREAS"], "optimizers"])
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
EXAMPLES = [text for text in BLOCKS if not re.match(r"@|(def|class) ", text)]  # the others are declarations

BEFORE = """
import io
import numpy
import torch
import oarlock as ol
from oarlock.registry import Case, Catalogue, GradCheck, operator
"""

MODEL = """
with ol.Program() as program:
    x = ol.layer.data("x", shape=[2])
    label = ol.layer.data("label", shape=[], dtype="int64")
    logits = ol.layer.fc(x, 3)
    predict = ol.layer.softmax(logits)
    cost = ol.layer.mean(ol.layer.softmax_with_cross_entropy(logits, label))
data = {"x": numpy.ones((4, 2), "float32"), "label": numpy.zeros(4, "int64")}
scope = ol.init(program, ol.Scope())
"""

GRANTED = {
    "drawing = ol.draw(program)": MODEL + "from pathlib import Path",
    "ended = ol.run_untrusted(": MODEL
    + """
ol.save_model(predict, scope, "model.safetensors")
numpy.savez("rows.npz", x=data["x"])
""",
    "builder = ol.NetBuilder(net)": """
net = ol.Net()
image = ol.NetBuilder(net).add_op("data", name="image", shape=[9])
scope = ol.Scope()
scope.set("image", numpy.ones((4, 9), "float32"))
""",
    "Case(": "",
    "GradCheck(": "",
    "matrix_transpose.gradient_programs(": """
@operator("x: float[*b m n] -> y: float[*b n m]", catalogue=Catalogue())
def matrix_transpose(x):
    return x.mT.contiguous()
""",
    "from oarlock.testing import check_operator": """
@operator("x: float[*b] -> y: float[*b]", catalogue=Catalogue(), cases=[Case(x=[1.0, -1.0], y=[2.0, -2.0]), GradCheck(x=(2, 3))])
def my_operator(x):
    return x * 2.0
my_operator.gradient_programs(x=lambda dy: dy * 2.0)
""",
    "accuracy = ol.metric.accuracy(": MODEL + "train = test = data",
    "ol.data.read(": """
numpy.savetxt("table.csv", [[1, 2, 0], [3, 4, 1]], "%d", ",", header="width,height,kind", comments="")
frame = {"x": numpy.ones((4, 2), "float32")}
augment = dict
""",
    "ol.evaluate({": MODEL
    + """
with program:
    f1 = ol.metric.f1(logits, label)
result, test, path = ol.train(cost, data, run="runs/digits", progress=False), data, "measured.safetensors"
ol.save_model(cost, result, path)
""",
    "settings = ol.settings({": "",
    "ol.train(cost, data, loggers=[": MODEL
    + """
class Printed:
    def begin(self, settings, step):
        pass
    def log(self, step, values):
        pass
    def end(self, summary):
        pass
""",
    "with ol.at_place(1):": 'x = ol.layer.data("x", shape=[4])',
    "with ol.profile(": MODEL + "optimizer = ol.optimizer.Adam()",
    "ol.optimizer.SGD(ol.optimizer.schedule.WarmUp(": "",
    "optimizer = ol.optimizer.Groups(": MODEL,
    'ol.passes.mixed_precision(program, "float16")': MODEL,
    'small = ol.quantize(ol.load_model("predict.safetensors"))': MODEL + 'ol.save_model(predict, scope, "predict.safetensors")',
    "step = executor.prepare(": MODEL + "executor, batches = ol.Executor(), [data, data]",
    "try:\n    result = ol.train(": MODEL
    + """
import _thread, threading
data = {"x": numpy.ones((20_000, 2), "float32"), "label": numpy.zeros(20_000, "int64")}
ol.train(cost, data, epochs=1, progress=False)  # what is imported and compiled once
threading.Timer(0.3, _thread.interrupt_main).start()
""",
    'ol.training.plot("runs/one", "runs/two")': MODEL
    + """
for name in ("runs/one", "runs/two"):
    ol.train(cost, data, run=name, progress=False)
""",
    "print(result.plot())": MODEL + "result = ol.train(cost, data, progress=False)",
    "from oarlock import inference": MODEL
    + """
with ol.Program() as program:
    image = ol.layer.data("image", shape=[2])
    predict = ol.layer.softmax(ol.layer.fc(image, 3))
ol.save_model(predict, ol.init(program, ol.Scope()), "digits.safetensors")
images = data["x"]
""",
    "x = ol.variable.tensor(": "",
    "model = ol.from_torch(net, image)": """
path = "model.safetensors"
class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(5, 2)
    def forward(self, image=None, ids=None):
        return image * 2.0 if ids is None else self.table(ids)
net, image, ids = Tagger(), torch.ones(3, 2), torch.zeros(2, 3, dtype=torch.int64)
torch.export.save(torch.export.export(net, (image,)), "model.pt2")
""",
    "net.load_state_dict(ol.to_torch_state(model))": """
net = torch.nn.Linear(2, 1)
model = ol.from_torch(net, torch.ones(3, 2), dynamic="n")
with ol.Program():
    x = ol.layer.data("x", shape=[2])
    cost = ol.layer.mean(model(x))
    ol.optimizer.SGD(0.1).minimize(cost)
data = {"x": numpy.ones((4, 2), "float32")}
""",
}
"""The lines that an example takes for granted, by the text that it begins with."""

WRITTEN_OUT = {
    "builder = ol.NetBuilder(net)": ("...", 'cost = builder.add_op("mean", input=hidden)'),
    "model = ol.from_torch(net, image)": ('model = ol.from_torch(net, {"ids"', 'other = ol.from_torch(net, {"ids"'),  # it shows three ways
}
"""The lines that an example leaves out."""

AFTER = {
    "drawing = ol.draw(program)": 'assert Path("program.html").stat().st_size > Path("program.svg").stat().st_size > 1000',
    "ended = ol.run_untrusted(": "assert predicted.shape == (4, 3)",
    "optimizer = ol.optimizer.Groups(": "assert len(optimizer.minimize(cost)) == 2",
    "settings = ol.settings({": 'assert settings == {"hidden": 32, "train": {"lr": 1e-3, "epochs": 20}}',
    "step = executor.prepare(": "assert cost.shape == ()",
    "try:\n    result = ol.train(": "assert isinstance(result, ol.TrainingResult)",
    "x = ol.variable.tensor(": "assert x.estimated is False",
}

MARKS = {
    "run_untrusted": pytest.mark.slow,
    # An interrupt may be raised, and lost, in the callback of a weak reference.
    "KeyboardInterrupt": pytest.mark.filterwarnings("default::pytest.PytestUnraisableExceptionWarning"),
}
"""The marks of the examples, by a word in them."""


def beginning(example: str) -> str:
    return next((text for text in GRANTED if example.startswith(text)), example)


def test_each_example_is_known_and_each_that_is_known_is_there():
    assert sorted(map(beginning, EXAMPLES)) == sorted(GRANTED)


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(text, id=re.sub(r"\W+", "-", text[:24]).strip("-"), marks=[mark for word, mark in MARKS.items() if word in text])
        for text in EXAMPLES
    ],
)
def test_an_example_runs(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    known = beginning(example)
    names: dict[str, object] = {}
    exec(BEFORE + GRANTED[known], names)
    exec(example.replace(*WRITTEN_OUT.get(known, ("", ""))), names)
    exec(AFTER.get(known, ""), names)
