"""Recomputation: gradients compute forward values again rather than keep them."""
