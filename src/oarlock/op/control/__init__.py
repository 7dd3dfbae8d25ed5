"""Operators that own blocks."""
