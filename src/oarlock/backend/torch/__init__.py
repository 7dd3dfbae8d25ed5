"""PyTorch, as kernels and plans use it."""
