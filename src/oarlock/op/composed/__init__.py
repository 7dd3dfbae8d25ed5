"""Functions composed of operators."""
