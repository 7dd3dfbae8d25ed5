"""Drawings of programs, without a library: nested boxes in SVG and HTML."""

from oarlock.drawing.program import ProgramDrawing, draw

__all__ = ["ProgramDrawing", "draw"]
