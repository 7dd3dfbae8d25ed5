"""`python -m oarlock`."""

from oarlock.cli.entry import run

run()
