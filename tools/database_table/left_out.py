"""Names without a counterpart in programs, and the reasons."""

__all__ = ["LEFT_OUT"]

_BY_REASON = {
    "complex numbers of half precision": "chalf",
    "inverses of windowed transforms, and transforms of conjugates along several axes": """
        istft stft fft.hfft2 fft.hfftn fft.ihfft2 fft.ihfftn""",
    "eigenvalues that are complex": "linalg.eig linalg.eigvals",
    "random numbers, which are ours": """
        bernoulli cauchy exponential geometric log_normal multinomial normal normal.in_place normal.number_mean rand_like randint
        randint_like randn randn_like uniform nn.functional.alpha_dropout nn.functional.dropout nn.functional.dropout2d
        nn.functional.dropout3d nn.functional.feature_alpha_dropout.with_train nn.functional.feature_alpha_dropout.without_train
        nn.functional.fractional_max_pool2d
        nn.functional.fractional_max_pool3d nn.functional.rrelu svd_lowrank pca_lowrank""",
    "memory that nobody has written": """
        empty empty_like empty_permuted empty_strided new_empty new_empty_strided resize_ resize_as_""",
    "the layout of memory, which programs do not name": """
        as_strided as_strided.partial_views as_strided_copy as_strided_scatter to_sparse""",
    "sparse tensors": "sparse.mm.reduce sparse.sampled_addmm",
    "for GPUs alone": """
        jiterator_unary jiterator_binary jiterator_4inputs_with_extra_args jiterator_binary_return_by_ref jiterator_2inputs_2outputs
        bmm.triton_optimized torch._scaled_mm torch._scaled_mm_v2 torch.ops.aten._flash_attention_forward
        torch.ops.aten._efficient_attention_forward""",
    "a part of a gradient, which is an operator of ours": """
        max_pool2d_with_indices_backward native_dropout_backward _softmax_backward_data""",
}

LEFT_OUT = {name: reason for reason, names in _BY_REASON.items() for name in names.split()}
