"""Tensor functions shared by kernels: dtypes, memory formats, rows, stacks and optimizer steps."""
