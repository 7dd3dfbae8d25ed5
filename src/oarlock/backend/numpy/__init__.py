"""NumPy, as a second backend: slow, plain, and another opinion about what operators compute."""
