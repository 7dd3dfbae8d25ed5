"""Generated programs, checked three ways: another evaluator with PyTorch's autograd, finite differences, and files.

    PYTHONPATH=src:tests python -m generated --seed 0 --count 10000

Beside these, runs of the same program are held against each other: by the interpreter and by plans, of the whole and of parts
(`parts`), by executors that were used before (`reusing`), with dropout (`randomness`), over steps of training (`training`): there
after every pass alone and, of every tenth program, after every two of them. `--quick` tries a few of these for each program.
The command ends with how many programs each pass did something to, and fails where there is none.

Each program follows from the seed and its number alone; `--only 1234` makes, prints and checks that one again. What fails
is made smaller and written to `tests/generated/kept`, where a test runs it from then on.
"""
