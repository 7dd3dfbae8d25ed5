"""SIGKILL at random instants of a run that is kept in a folder, inside its saves too: what goes on ends with the bits of the unbroken run.

PYTHONPATH=src:tests python -m kills --seed 0 --count 200
"""
