"""Tensors as kernels meet them: dtypes, how elements lie in memory, rows, stacks, steps of optimizers."""
