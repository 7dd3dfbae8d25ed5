"""The report of a run: one page that stands alone."""

from oarlock.report.page import draw_report

__all__ = ["draw_report"]
