"""The messages for programs that cannot be run: the whole text, of which line 1 is the first of `model.py`."""

import textwrap
from pathlib import Path

import pytest
from user_scripts import last_words

MODEL = """
import numpy
import oarlock as ol
def model():
    image = ol.layer.data("image", shape=[3])
    label = ol.layer.data("label", shape=[], dtype="int64")
    logits = ol.layer.fc(image, 2)
    return ol.layer.cross_entropy(logits, label)
with ol.Program() as program:
    cost = model()
scope = ol.init(program, ol.Scope())
images, labels = numpy.zeros((4, 3), "float32"), numpy.zeros(4, "int64")
def run(feed, fetch=(cost,), scope=scope):
    return ol.Executor().run(program, feed, fetch, scope=scope)
"""

TAKES = "the program takes image: float32[n, 3], label: int64[n]"
LOSS = "softmax_with_cross_entropy_0"
IMAGE = 'model.py:4 in model      image = ol.layer.data("image", shape=[3])'
LABEL = 'model.py:5 in model      label = ol.layer.data("label", shape=[], dtype="int64")'


@pytest.fixture
def require(tmp_path: Path):
    """Run the model, then one line more; compare the whole of the error's text."""

    def compare(line: str, expected: str) -> None:
        assert last_words(MODEL + line + "\n", tmp_path) == textwrap.dedent(expected).lstrip("\n")

    return compare


def test_a_wrong_name(require):
    require(
        'run({"imgae": images, "label": labels})',
        f"""
        oarlock.FeedError: "imgae" is not an input of the program
          {TAKES}
              "imgae" fed
          Try: did you mean "image"?    (oarlock explain FeedError)
        """,
    )


@pytest.mark.parametrize(("given", "shape"), [("images[:, :2]", [4, 2]), ("images[0]", [3]), ("images[None]", [1, 4, 3])])
def test_a_wrong_shape(given, shape, require):
    require(
        f'run({{"image": {given}, "label": labels}})',
        f"""
        oarlock.FeedError: "image" must have shape [n, 3], not {shape}
          {IMAGE}
          {TAKES}
              "image" fed as float32{shape}
        """,
    )


def test_a_wrong_dtype(require):
    require(
        'run({"image": images.astype("float64"), "label": labels})',
        f"""
        oarlock.FeedError: "image" must be float32, not float64
          {IMAGE}
          {TAKES}
              "image" fed as float64[4, 3]
          Try: feed={{"image": array.astype("float32")}}    (oarlock explain FeedError)
        """,
    )


def test_text_is_no_number(require):
    require(
        'run({"image": numpy.array(["seven"]), "label": labels})',
        f"""
        oarlock.FeedError: "image": arrays of <U5 are not supported
          {IMAGE}
          {TAKES}
        """,
    )


@pytest.mark.parametrize(("feed", "fed"), [("{}", "nothing"), ('{"image": images}', '"image"')])
def test_a_feed_that_is_missing(feed, fed, require):
    name, line = ("label", LABEL) if "image" in feed else ("image", IMAGE)
    require(
        f"run({feed})",
        f"""
        oarlock.FeedError: "{name}" is not fed
          {line}
          {TAKES}
              {fed} fed
        """,
    )


def test_two_inputs_of_different_length(require):
    require(
        'run({"image": images, "label": labels[:3]})',
        f"""
        oarlock.FeedError: "label" has n = 3, but "image" has n = 4
          {LABEL}
          {TAKES}
              "label" fed as int64[3]
        """,
    )


def test_a_label_out_of_range(require):
    require(
        'run({"image": images, "label": labels + 7})',
        """
        oarlock.KernelError: softmax_with_cross_entropy: label 7 is not one of the classes 0 to 1
          model.py:7 in model      return ol.layer.cross_entropy(logits, label)
          running   main, op 1 of 3, scope main
              logits = "fc_0.out" float32[4, 2], values 0 to 0
              label  = "label" int64[4], values 7 to 7
          Try: no state was changed; fix the inputs and run the step again    (oarlock explain KernelError)
        """,
    )


def test_a_parameter_without_a_value(require):
    require(
        'run({"image": images, "label": labels}, scope=ol.Scope())',
        """
        oarlock.UnsetVarError: linear reads "fc_0.w", which has no value
          model.py:6 in model      logits = ol.layer.fc(image, 2)
              "fc_0.w"   float32[3, 2]   parameter; created at model.py:6
          Try: call ol.init(program, scope) to initialize parameters, and feed inputs by name    (oarlock explain UnsetVarError)
        """,
    )


def test_a_fetch_that_nothing_is_called(require):
    require(
        'run({"image": images, "label": labels}, ["fc_0.uot"])',
        f"""
        oarlock.UndefinedVarError: "fc_0.uot" is not visible in main
          model.py:13 in run      return ol.Executor().run(program, feed, fetch, scope=scope)
              there are: fc_0.out, fc_0.w, fc_0.b, valid_mean_0, {LOSS}.softmax, {LOSS}.loss, image, label
          Try: did you mean "fc_0.out"?    (oarlock explain UndefinedVarError)
        """,
    )


def test_a_fetch_of_another_program(require):
    require(
        'ol.Executor().run(program.clone(), {"image": images, "label": labels}, [cost], scope=scope)',
        """
        oarlock.UndefinedVarError: "main/valid_mean_0" is not a variable of this program
          model.py:14      ol.Executor().run(program.clone(), {"image": images, "label": labels}, [cost], scope=scope)
              "valid_mean_0"   float32[]   from valid_mean at model.py:7
          Try: fetch by name if the program is a copy or was loaded from a file    (oarlock explain UndefinedVarError)
        """,
    )


@pytest.mark.parametrize("fetch", ["cost", '"valid_mean_0"'])
def test_a_fetch_that_is_no_list(fetch, require):
    require(
        f'ol.Executor().run(program, {{"image": images, "label": labels}}, {fetch}, scope=scope)',
        f"""
        oarlock.ArgumentError: fetch must be a list of variables or names
          model.py:14      ol.Executor().run(program, {{"image": images, "label": labels}}, {fetch}, scope=scope)
          Try: fetch=[cost]    (oarlock explain ArgumentError)
        """,
    )


def test_a_fetch_that_is_no_variable(require):
    require(
        'run({"image": images, "label": labels}, [3])',
        """
        oarlock.ArgumentError: a fetch must be a variable or its name, not int 3
          model.py:13 in run      return ol.Executor().run(program, feed, fetch, scope=scope)
        """,
    )


@pytest.mark.parametrize("use", ["ol.init(program, scope)", 'run({"image": images, "label": labels})'])
def test_values_that_do_not_fit_their_variables(use, require):
    require(
        f'scope.set("fc_0.b", numpy.zeros(3, "float32")); {use}',
        """
        oarlock.ShapeError: "fc_0.b" is float32[3] in the scope, but float32[2] in the program
          model.py:6 in model      logits = ol.layer.fc(image, 2)
              "fc_0.b"   float32[2]   parameter; created at model.py:6
          Try: set "fc_0.b" to a value of shape (2,) and dtype float32    (oarlock explain ShapeError)
        """,
    )


def test_a_name_in_a_scope_that_is_no_text(require):
    require(
        "scope[cost]",
        """
        oarlock.ArgumentError: a variable's name must be a str, not Var <Var main/valid_mean_0 float32[]>
          model.py:14      scope[cost]
          Try: its name is "valid_mean_0"    (oarlock explain ArgumentError)
        """,
    )


def test_a_copy_of_a_scope(require):
    require(
        "import copy; copy.deepcopy(scope)",
        """
        oarlock.ScopeError: a scope cannot be copied: its variables belong to it alone
          Try: for name in scope: other.set(name, scope[name]), where other = ol.Scope()    (oarlock explain ScopeError)
        """,
    )


def test_a_run_in_a_scope_that_was_dropped(require):
    require(
        'scope.drop(); run({"image": images, "label": labels})',
        """
        oarlock.ScopeError: this scope was dropped
          model.py:13 in run      return ol.Executor().run(program, feed, fetch, scope=scope)
        """,
    )


def test_a_place_whose_device_is_none(require):
    require(
        'Place = type("Place", (ol.Place,), {"device": "nonsense:0", "__repr__": lambda self: "Place()"})\nol.Context(scope, Place())',
        """
        oarlock.ArgumentError: the device of Place is not a PyTorch device: 'nonsense:0'
          model.py:15      ol.Context(scope, Place())
          a device is a torch.device or its name: "cpu", "cuda:0"
              Place()
        """,
    )


def test_a_fault_inside_a_loop_names_the_step(tmp_path):
    script = """
    import numpy
    import oarlock as ol
    with ol.Program() as program:
        scores = ol.layer.data("scores", shape=[2, 3], batch="t")
        labels = ol.layer.data("labels", shape=[2], batch="t", dtype="int64")
        rnn = ol.rnn()
        with rnn.step():
            rnn.output(ol.layer.softmax_with_cross_entropy(rnn.step_input(scores), rnn.step_input(labels)))
        losses = rnn()
    feed = {"scores": numpy.zeros((4, 2, 3), "float32"), "labels": numpy.array([[0, 1], [2, 2], [0, 3], [0, 0]])}
    ol.Executor().run(program, feed, [losses], scope=ol.Scope())
    """
    expected = """
    oarlock.KernelError: softmax_with_cross_entropy: label 3 is not one of the classes 0 to 2
      model.py:8      rnn.output(ol.layer.softmax_with_cross_entropy(rnn.step_input(scores), rnn.step_input(labels)))
      running   main/rnn_0.body, op 0 of 1, scope main/rnn_0/2
          logits = "scores.step_0" float32[2, 3], values 0 to 0
          label  = "labels.step_0" int64[2], values 0 to 3
      Try: no state was changed; fix the inputs and run the step again    (oarlock explain KernelError)
    """
    assert last_words(script, tmp_path) == textwrap.dedent(expected).lstrip("\n")
