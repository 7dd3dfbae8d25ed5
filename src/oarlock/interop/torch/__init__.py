"""PyTorch modules as programs, imported through `torch.export`."""
