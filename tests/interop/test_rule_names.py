"""A rule uses the operator of ours that is called as what it stands for, and no name of an earlier version."""

from interop.rule_names import names_in, our_name

import oarlock as ol
import oarlock.interop.onnx.import_rules
from oarlock.interop.onnx.rule import rules as onnx_rules
from oarlock.interop.torch.rules.registry import load_rules
from oarlock.old_names import OLD_OPERATORS
from oarlock.registry import standard

TORCH, ONNX = "oarlock.interop.torch.rules", "oarlock.interop.onnx.import_rules"

_TOLD = "sizes may be told by the run alone: written with the rules' own forms, which ours refuses"
_PLACES = "places below 0 and sizes that the run tells are written as index_put and index take them"
EXCEPTIONS = {
    **dict.fromkeys(
        ("broadcast_tensors", "channel_shuffle", "chunk", "eye", "flatten", "hstack", "linspace", "meshgrid", "numel", "one_hot",
         "pixel_shuffle", "pixel_unshuffle", "squeeze", "tensor_split", "unbind", "unflatten", "unsqueeze", "vstack", "Flatten", "Squeeze",
         "Unsqueeze", "GatherND", "ScatterND"),
        _TOLD,
    ),
    **dict.fromkeys(
        ("index_add", "index_copy", "index_fill", "index_select", "masked_scatter", "masked_select", "scatter_reduce", "select_scatter",
         "slice_scatter", "take"),
        _PLACES,
    ),
    **dict.fromkeys(("moveaxis", "swapaxes", "diag_embed"), "one transpose, or one choice, from axes that are counted already"),
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), "the name is made of the number of axes"),
    **dict.fromkeys(("dot", "gather", "nonzero", "scatter_add", "sum", "Sum", "unfold", "view.dtype"), "ours of that name is another"),
    **dict.fromkeys(("matmul", "linalg_matmul"), "matrix_product takes vectors and broadcasts, as theirs; matmul does not"),
    **dict.fromkeys(("addmm", "cross_entropy_loss"), "passes write it of the linear, or cross_entropy, that the rule writes"),
    "batch_norm": "whether statistics are the batch's is known: composed for inference, by the layer's rule for training",
    "bernoulli.p": "of nothing but a number: dropout's draw",
    "repeat_interleave.self_Tensor": "counts are a tensor, where ours takes a number",
    "scaled_dot_product_attention": "attention_by_head, which has PyTorch's order of axes",
    "float_power.Tensor_Scalar": "a number is known: roots and squares by their own operators, in float64",
    "Dropout": "in inference its input itself",
    "Mean": "of several tensors, where ours is along axes",
    **dict.fromkeys(("ReduceMax", "ReduceMin", "ReduceProd"), "called through a table, axis by axis"),
    "OneHot": "the values are two inputs, and so is the count",
    "TopK": "along an axis: top_k_along",
    "Resize": "written as products with matrices where its many modes need it",
    "MaxUnpool": "ONNX counts places over all images and channels, ours in each",
    "LpPool": "ONNX pads unevenly, and its ceil_mode",
    "Gemm": "transposes are attributes, and so are factors, beside linear",
    "STFT": "windows are inputs, and its result is of parts",
    "PRelu": "slopes broadcast as NumPy has it, where ours are one for each channel",
    "Selu": "both of its numbers are attributes: elu",
}  # fmt: skip
"""Names whose rules write other operators, and why."""


def uses():
    """The name of each rule, its function, and the package that it belongs to."""
    for overload, rule in sorted(load_rules().items()):
        if overload.startswith("aten."):
            yield overload.removeprefix("aten."), rule.function, TORCH
    for type, found in sorted(onnx_rules.items()):
        for rule in found:
            yield type, rule.function, ONNX


def test_a_rule_uses_the_operator_of_its_name():
    lacking, unused = set(), set(EXCEPTIONS)
    for name, function, package in uses():
        ours = our_name(name.partition(".")[0])
        if ours is not None and ours not in names_in(function, package):
            excepted = {name, name.partition(".")[0]} & EXCEPTIONS.keys()
            unused -= excepted
            lacking |= set() if excepted else {f"{name} does not use {ours}"}
    assert lacking == set()
    assert unused == set(), "they are no exceptions"


def test_no_rule_uses_a_name_of_an_earlier_version():
    old = {name for name in OLD_OPERATORS if standard.find(name) is None and not callable(vars(ol.op).get(name))}
    found = {name: sorted(names_in(function, package) & old) for name, function, package in uses()}
    assert {name: names for name, names in found.items() if names} == {}


def test_names_are_found_through_tables_and_functions_that_are_called():
    rules = load_rules()
    assert "erfc" in names_in(rules["aten.special_erfc.default"].function, TORCH)
    assert "elu" not in names_in(rules["aten.relu.default"].function, TORCH)
    assert {"linear", "matrix_product"} <= names_in(rules["aten.linear.default"].function, TORCH)
    assert our_name("special_i0e") == "i0e"
    assert our_name("LogSoftmax") == "log_softmax"
    assert our_name("batch_normalization") is None, "a file is no operator"
