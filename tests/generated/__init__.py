"""Generated programs, checked three ways: another evaluator with PyTorch's autograd, finite differences, and files.

    PYTHONPATH=src:tests python -m generated --seed 0 --count 10000

Each program follows from the seed and its number alone; `--only 1234` makes, prints and checks that one again. What fails
is made smaller and written to `tests/generated/kept`, where a test runs it from then on.
"""
