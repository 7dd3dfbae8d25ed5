"""Curves of runs: in a terminal, as SVG, as PNG."""

from oarlock.plotting.chart import Chart, Curve
from oarlock.plotting.plot import Plot

__all__ = ["Chart", "Curve", "Plot"]
