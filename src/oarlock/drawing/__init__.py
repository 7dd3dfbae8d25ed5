"""Drawings of programs as nested boxes, in SVG and HTML, with only the standard library."""

from oarlock.drawing.program import ProgramDrawing, draw

__all__ = ["ProgramDrawing", "draw"]
