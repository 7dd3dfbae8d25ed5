"""The PyTorch backend: variants of kernels for use by plans."""
