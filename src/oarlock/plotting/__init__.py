"""Curves of runs, drawn in a terminal, as SVG, PNG or PDF."""

from oarlock.plotting.chart import Chart, Curve
from oarlock.plotting.plot import Plot

__all__ = ["Chart", "Curve", "Plot"]
