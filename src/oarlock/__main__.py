"""`python -m oarlock`."""

from oarlock.cli.main import run

run()
