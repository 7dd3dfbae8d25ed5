"""The report of a run: one page that stands alone."""
