"""The NumPy backend: slow and simple, an independent check of the PyTorch kernels."""
