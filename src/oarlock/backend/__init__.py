"""Backends that compute operators: variants of PyTorch kernels in `torch/`, NumPy kernels in `numpy/`."""
