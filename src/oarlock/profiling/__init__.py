"""The profile of steps: operators, lines and waits, and how long each takes."""

from oarlock.profiling.profiler import Profile, profile
from oarlock.profiling.totals import Total
from oarlock.runtime.recording import EnoughRecorded
from oarlock.suggestions import suggest_names

__all__ = ["EnoughRecorded", "Profile", "Total", "profile"]

suggest_names(__name__)
