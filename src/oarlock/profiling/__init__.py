"""Profiles of steps: the time of operators, source lines and waits."""

from oarlock.profiling.profiler import Profile, profile
from oarlock.profiling.totals import Total
from oarlock.runtime.recording import EnoughRecorded
from oarlock.suggestions import suggest_names

__all__ = ["EnoughRecorded", "Profile", "Total", "profile"]

suggest_names(__name__)
