"""Modules of PyTorch as programs, by way of `torch.export`."""
