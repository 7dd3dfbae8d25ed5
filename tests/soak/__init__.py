"""Training for a long time: nothing may grow.

    PYTHONPATH=src:tests python -m soak --steps 100000 --seed 0

`model.py` is what is trained: loops of every kind, on sequences whose lengths change from step to step. After 1,000 steps,
memory may grow by 1 MiB per 10,000 steps, and the numbers of scopes, tensors, threads and open files by nothing.
"""
