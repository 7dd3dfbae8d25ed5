"""Backends that compute the operators: kernels are functions of PyTorch's tensors, and what is PyTorch's alone stands in `torch/`."""
