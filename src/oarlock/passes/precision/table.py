"""The precision in which each operator is computed, and why: the one table of `mixed_precision`.

An operator that stands in neither list is computed in float32: what sums many elements (losses, norms, softmax, means), what takes small
differences or wide ranges (exponentials, logarithms, powers), what an optimizer does, and all operators of users. So it is in
PyTorch's autocast.
"""

__all__ = ["FOLLOWING", "REDUCED"]

REDUCED: dict[str, str] = {
    **dict.fromkeys(("linear", "matmul"), "products of many numbers: kernels add in float32 and round each sum once"),
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), "the same"),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), "the same"),
    "scaled_dot_product_attention": "two products, with a softmax between that the kernel computes in float32",
}
"""The operators that are computed in the reduced dtype, whatever their inputs are."""

FOLLOWING: dict[str, str] = {
    **dict.fromkeys(
        ("add", "subtract", "multiply", "neg", "abs", "sign", "maximum", "minimum", "where", "clip"), "rounds each element once"
    ),
    **dict.fromkeys(("relu", "leaky_relu", "hardtanh", "hardsigmoid", "hardswish"), "piecewise linear: rounds each element once"),
    **dict.fromkeys(("sigmoid", "tanh", "gelu", "silu", "mish", "elu"), "smooth and bounded by its input: rounds each element once"),
    "dropout": "multiplies by 0 or one number",
    **dict.fromkeys(
        ("assign", "move", "stop_gradient", "optimization_barrier", "broadcast_to", "broadcast_to_like", "match_last_axis", "match_shape"),
        "copies elements",
    ),
    **dict.fromkeys(("reshape", "reshape_like", "flatten", "view", "transpose", "matrix_transpose"), "moves elements"),
    **dict.fromkeys(("concat", "stack", "split", "split_like", "slice", "narrow", "pad", "tile", "flip", "roll"), "moves elements"),
    **dict.fromkeys(("diagonal", "tril", "triu", "windows", "repeat_interleave", "gather", "index", "take_along_axis"), "moves elements"),
    **dict.fromkeys(("max_pool1d", "max_pool2d", "max_pool3d"), "chooses elements"),
}
"""The operators that are computed in the dtype of their inputs: the reduced one where all of these are, but for single numbers."""
