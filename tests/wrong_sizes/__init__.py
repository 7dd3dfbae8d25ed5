"""Wrong sizes: every operator, slot and axis with a size that does not fit, which a symbol hides until the run.

    PYTHONPATH=src:tests python -m wrong_sizes --seed 0 --count 20000

Each trial takes one use of an operator - its stated cases, gradients, fused operators, loops, branches, updates, twins of PyTorch - and
changes the size of one axis of one argument. The program does not show it: the size is a symbol of an input, a symbol known only from
values, or the number of a parameter beside symbols. Child processes run the program by every executor, in memory that is filled with two
different bytes before it is used.
"""
