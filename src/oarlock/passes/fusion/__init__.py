"""Fusion: fewer, larger ops."""
