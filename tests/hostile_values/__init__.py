"""Hostile values: every operator, on numbers and shapes that an enemy would feed it, or leave in its state.

    PYTHONPATH=src:tests python -m hostile_values --seed 0 --count 4000

Each trial takes one use of an operator - its stated cases, its gradients, fused operators, loops - and spoils it: integers far out or
just out of what they number, row splits that wrap around, floats that are no numbers, state of another shape or dtype than declared,
attributes. It is run by the interpreter, by a plan, by a plan without passes and within limits, in a child process that says what it is
about to do. A child that dies by a signal, or hangs, names the trial and the executor; an exception that is none of ours is a failure
too. Memory written beyond its end is found by the allocator of the C library where that can check it.
"""
