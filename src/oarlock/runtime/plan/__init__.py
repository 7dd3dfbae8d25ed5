"""Plans: programs as straight-line Python, prepared once, run many times."""

from oarlock.runtime.plan.plan import Given, Plan

__all__ = ["Given", "Plan"]
