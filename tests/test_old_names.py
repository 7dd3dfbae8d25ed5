"""Old names: in Python they work, with a warning at the user's line that names the new one."""

import ast
import re
from pathlib import Path

import numpy
import pytest
import torch

import oarlock as ol
import oarlock.op.update
from oarlock.backend.torch.variants import variants_of
from oarlock.old_names import (
    OLD_ATTRIBUTES,
    OLD_DECLARATIONS,
    OLD_FUNCTIONS,
    OLD_KEYWORDS,
    OLD_OPERATORS,
    OLD_PASSES,
    OLD_REGISTRY_FUNCTIONS,
    OLD_SLOTS,
    OLD_VARIANTS,
)
from oarlock.op import compositions
from oarlock.registry import Catalogue, operator, standard
from oarlock.registry.creator import append_op


def every_operator() -> dict[str, object]:
    return {**standard.operators, **standard.gradient_operators, **standard.fused_operators}


def test_each_old_name_stands_for_one_that_there_is():
    known = every_operator()
    assert set(OLD_OPERATORS.values()) <= set(known)
    assert not set(OLD_OPERATORS) & set(known)
    for names, kinds in ((OLD_SLOTS, ("inputs", "outputs")), (OLD_ATTRIBUTES, ())):
        for type, renaming in names.items():
            found = known[OLD_OPERATORS.get(type, type)]
            today = {slot.name for kind in kinds for slot in getattr(found.signature, kind)} if kinds else set(found.attributes)
            assert set(renaming.values()) <= today, type
            assert not set(renaming) & today, type
    assert all(hasattr(ol, name) for name in OLD_FUNCTIONS.values())


def test_every_operator_of_version_1_has_a_name_today():
    for line in (Path(__file__).parent / "golden" / "v1" / "operators.txt").read_text().splitlines():
        (type,), inputs, outputs, attributes = (part.split() for part in line.split("|"))
        today = every_operator()[OLD_OPERATORS.get(type, type)]
        slots = OLD_SLOTS.get(type, {})
        assert [slots.get(name, name) for name in inputs] == [slot.name for slot in today.signature.inputs][: len(inputs)], type
        assert all(slot.optional for slot in today.signature.inputs[len(inputs) :]), f"an op of {type} from a file lacks an input"
        assert [slots.get(name, name) for name in outputs] == [slot.name for slot in today.signature.outputs], type
        known = {OLD_ATTRIBUTES.get(type, {}).get(name, name) for name in attributes}
        assert known <= set(today.attributes), type
        later = [spec for name, spec in today.attributes.items() if name not in known]
        assert all(spec.added_later or spec.default is None for spec in later), f"an op of {type} from a file lacks an attribute"


def test_documents_examples_and_docstrings_use_none():
    root = Path(__file__).parents[1]
    texts = [root / "README.md", root / "CONTRIBUTING.md", *(path for folder in ("docs", "src") for path in (root / folder).rglob("*.md"))]
    texts += [*(root / "examples").rglob("*.py"), *(root / "benchmarks").rglob("*.py")]
    gone = [name for name in OLD_OPERATORS if name not in ol.op.__all__]  # some are functions of another meaning now
    names = "|".join([*gone, *OLD_FUNCTIONS, *OLD_REGISTRY_FUNCTIONS])
    called = re.compile(rf"(?<![.\w])({names})\(|ol\.(op\.)?({names})\b|passes=\([^)]*\"({'|'.join(OLD_PASSES)})\"")
    assert not {f"{path.relative_to(root)}: {found.group()}" for path in texts for found in called.finditer(path.read_text("utf-8"))}
    modules = [path for path in (root / "src").rglob("*.py") if path.name not in ("old_names.py", "earlier_versions.py")]
    docstrings = [(path, node.value) for path in modules for node in ast.walk(ast.parse(path.read_text("utf-8"))) if is_text(node)]
    assert not {f"{path.relative_to(root)}: {found.group()}" for path, text in docstrings for found in called.finditer(text)}


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def test_an_operator_by_its_old_name():
    with ol.Program():
        x = ol.layer.data("x", shape=[2])
        with pytest.warns(DeprecationWarning, match='^the operator "fill_like" is called "full_like" now$') as warned:
            y = ol.op.fill_like(x, value=2.0)
    assert y.op.type == "full_like"
    assert warned[0].filename == __file__


def test_a_function_of_today_may_have_the_old_name_of_an_operator():
    assert {name for name in OLD_OPERATORS if name in compositions.__all__} == {"put", "take"}
    with ol.Program():
        taken = ol.op.take(ol.layer.data("x", shape=[2, 3]), ol.layer.data("index", shape=[2], batch=None, dtype="int64"))
    feed = {"x": numpy.arange(6, dtype="float32").reshape(1, 2, 3), "index": numpy.array([5, 1])}
    assert ol.Executor().run(taken.op.block.program, feed, [taken], scope=ol.Scope())[0].tolist() == [5.0, 1.0]


def test_an_op_by_the_old_name_of_its_operator():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2])
        with pytest.warns(DeprecationWarning, match='^the operator "negative" is called "neg" now$'):
            op = append_op(program.main, "negative", {"x": x})
    assert op.type == "neg"


@pytest.mark.parametrize(
    ("call", "old", "new"),
    [
        (lambda x: ol.op.reduce_sum(x, axis=1, keep=True), "keep", "keepdim"),
        (lambda x: ol.op.split(x, parts=2, axis=1)[0], "parts", "sections"),
        (lambda x: ol.op.layer_norm(x, gain=ol.layer.create_parameter([2], name="g")), "gain", "scale"),
    ],
    ids=["reduce_sum", "split", "layer_norm"],
)
def test_a_keyword_by_its_old_name(call, old, new):
    with ol.Program():
        x = ol.layer.data("x", shape=[2])
        with pytest.warns(DeprecationWarning, match=f'"{old}" is called "{new}" now$') as warned:
            y = call(x)
    assert warned[0].filename == __file__
    assert new in {**y.op.inputs, **y.op.attributes}


def test_a_function_by_its_old_name():
    with pytest.warns(DeprecationWarning, match='^the function "tune_process" is called "configure_process" now$'):
        assert ol.tune_process is ol.configure_process


def test_the_rate_of_an_optimizer():
    with pytest.warns(DeprecationWarning, match='^the keyword "rate" is called "learning_rate" now$') as warned:
        optimizers = [ol.optimizer.SGD(rate=0.5), ol.optimizer.Momentum(rate=0.5), ol.optimizer.Adam(rate=0.5)]
    with pytest.warns(DeprecationWarning, match='^the attribute of an optimizer "rate" is called "learning_rate" now$') as read:
        assert [optimizer.rate for optimizer in optimizers] == [0.5, 0.5, 0.5]
    assert {each.filename for each in [*warned, *read]} == {__file__}


def test_a_step_of_an_optimizer_of_ones_own():
    class Plain(ol.optimizer.Optimizer):
        def update(self, step, parameter, gradient):
            with pytest.warns(DeprecationWarning, match='^the attribute of a step "rate" is called "learning_rate" now$') as warned:
                step.commit(parameter, ol.op.sgd(parameter, gradient, step.rate))
            assert warned[0].filename == __file__

    with ol.Program() as program:
        w = ol.layer.create_parameter([2], name="w")
        Plain(0.1).minimize(ol.op.reduce_sum(w))
    assert [op.type for op in program.main.ops].count("sgd") == 1


def test_row_splits_in_old_words():
    with ol.Program() as program:
        ol.layer.data("x", shape=[2], batch="t")
        with pytest.warns(DeprecationWarning, match='^the keyword "partitions" is called "row_splits_of" now$') as written:
            splits = program.main.new_var("splits", ol.DType.INT64, ["n"], partitions="t")
    with pytest.warns(DeprecationWarning, match='^the attribute of a variable "partitions" is called "row_splits_of" now$') as read:
        assert splits.partitions == splits.row_splits_of == "t"
    assert {each.filename for each in [*written, *read]} == {__file__}
    with pytest.warns(DeprecationWarning, match='^the attribute of a variable "partitions" is called "row_splits_of" now$') as changed:
        splits.partitions = None
    assert splits.row_splits_of is None
    assert changed[0].filename == __file__


def test_a_declaration_in_old_words():
    def same(x):
        return torch.clone(x)

    with pytest.warns(DeprecationWarning, match='^the keyword "(views|may_fail)" is called "(aliases|checks_values)" now$') as warned:
        declared = operator("x: float[*b] -> y: float[*b]", views=("x",), may_fail=True, catalogue=Catalogue())(same)
    assert (declared.aliases, declared.checks_values) == (("x",), True)
    assert [each.filename for each in warned] == [__file__, __file__]
    with pytest.warns(DeprecationWarning, match='^the attribute of an operator "infer_with" is called "infer_shape" now$'):
        assert declared.infer_with == declared.infer_shape
    assert all(hasattr(declared, name) for name in OLD_DECLARATIONS.values())


@pytest.mark.parametrize("name", OLD_VARIANTS)
def test_a_variant_declared_by_an_old_method(name):
    @operator("x: int64[] -> y: int64[]", catalogue=Catalogue())
    def next_one(x):
        return torch.add(x, 1)

    def function(x, **_):
        return x

    message = f'the method "{name}" of an operator is the function "{OLD_VARIANTS[name]}" of oarlock.backend.torch.variants now'
    with pytest.warns(DeprecationWarning, match=f"^{re.escape(message)}$") as warned:
        method = getattr(next_one, name)
    assert warned[0].filename == __file__
    variants = variants_of(next_one)
    if name == "comes_to":
        method("torch.add(x, 1)", form=function)
        assert [each.text for each in variants._expressions[function]] == ["torch.add(x, 1)"]
        return
    arguments = {"in_place": ["x"], "packed": ["x", torch.neg]}.get(name)
    assert (method(function) if arguments is None else method(*arguments)(function)) is function
    found = {
        "as_number": lambda: variants.number,
        "in_place": lambda: variants.in_place["x",],
        "into": lambda: variants.out,
        "on_host": lambda: variants.host,
        "packed": lambda: variants.prepacked["x"][1],
    }
    assert found[name]() is function


def test_a_function_of_the_registry_by_its_old_name():
    with pytest.warns(DeprecationWarning, match='^the function "joint" is called "fused_backward" now$') as warned:
        assert ol.registry.joint is ol.registry.fused_backward
    assert warned[0].filename == __file__
    with pytest.raises(AttributeError, match="^module 'oarlock.registry' has no attribute 'joints'; "):
        ol.registry.joints


def test_text_in_old_names_is_a_program_of_today():
    text = """program seed=0

block main(x: float32[n, 2], splits: int64[k+1] partitions n) {
  state sgd_0.rate: float64[] = constant(value=0.1)
  parameter g: float32[2] = constant(value=1.0)
  fill_0: float32[2] = fill(dtype=float32, shape=shape[2], value=1.0)
  [y: float32[n, 2], m: float32[n, 1], r: float32[n, 1]] = layer_norm(x=x, gain=g, offset=fill_0, epsilon=1e-05)
  total: float32[2] = reduce_sum(x=y, axis=0, keep=false)
  g_next: float32[2] = sgd(param=g, grad=total, rate=sgd_0.rate)
}
"""
    text = text.replace("[y: float32[n, 2], m: float32[n, 1], r: float32[n, 1]]", "y: float32[n, 2], m: float32[n, 1], r: float32[n, 1]")
    program = ol.parse_program(text)
    assert [op.type for op in program.main.ops] == ["full", "layer_norm", "reduce_sum", "sgd"]
    _, norm, total, update = program.main.ops
    assert {"scale", "bias"} <= set(norm.inputs)
    assert total.attributes["keepdim"] is False
    assert "learning_rate" in update.inputs
    assert program.main.find_var("splits").row_splits_of == "n"
    feed = {"x": numpy.ones((3, 2), "float32"), "splits": numpy.array([0, 3])}
    assert ol.Executor().run(program, feed, ["total"], scope=ol.init(program, ol.Scope()), training=False)[0].tolist() == [3.0, 3.0]


def test_an_operator_of_ones_own_may_have_an_old_name():
    catalogue = Catalogue()
    for known in standard:
        catalogue.add(known)

    @operator("x: float[*b] -> y: float[*b]", catalogue=catalogue)
    def take(x):
        return torch.tanh(x)

    with ol.Program() as program:
        take(ol.layer.data("x", shape=[2]))
    assert [op.type for op in ol.parse_program(program.to_text(), catalogue=catalogue).main.ops] == ["take"]


def test_every_keyword_is_found_by_the_new_type():
    assert OLD_KEYWORDS["split"] == {"parts": "sections"}
    assert OLD_KEYWORDS["nonzero"] == {"holds": "value"}
