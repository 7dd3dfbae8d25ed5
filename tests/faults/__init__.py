"""Rules of the verifier, and what tests once failed to notice, broken one by one in a copy of the package, to see that the tests fail.

    PYTHONPATH=src:tests python -m faults                 # all of them; --only 3 5 for some

Each fault is a place in a file and what to put there. A fault that no test notices is a rule that no test shows.
"""
