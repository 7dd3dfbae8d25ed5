"""Random interleavings of runs, reads, holds, writes and exceptions: nothing that somebody holds changes, and weights are right.

    PYTHONPATH=src:tests python -m interleavings --seed 0 --count 2000

Number `n` of a seed is the same whatever the count; `--only n` repeats it and prints what was done.
"""
