"""Plans: programs as straight-line Python, prepared once, run many times."""

from oarlock.runtime.plan.plan import Plan, PlanInput

__all__ = ["Plan", "PlanInput"]
