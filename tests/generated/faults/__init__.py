"""Faults that generated programs must find: each patch beside this breaks the package once, in a copy of it.

    PYTHONPATH=src:tests python -m generated.faults --count 2000 --seed 0           # all of them; --only B1 B7-03 for some

The classes are those of bugs that frameworks like this one have had: B1 gradients of loops, B2 an IfElse of which one side has
no rows, B3 NaN from a branch that was not taken, B4 values written over while others read them, B5 what is moved out of a loop, or
computed for one without a trip, B6 random numbers that should differ, B7 caches that are stale, B8 gradients that are added up,
B9 what is pruned, R1 the rows of several workers, which the law of rows (`row_law`) and `generated.workers` find.

The patches were written before the generator was tuned to anything, and are changed only where the lines around them change.
"""
