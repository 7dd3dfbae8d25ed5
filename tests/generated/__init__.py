"""Generated programs, checked three ways: another evaluator with PyTorch's autograd, finite differences, and files.

    PYTHONPATH=src:tests python -m generated --seed 0 --count 10000                 # three hours; one with --quick
    PYTHONPATH=src:tests python -m generated --seed 0 --first 2000 --count 1000     # a part of these

Beside these, runs of the same program are held against each other: by the interpreter and by plans, of the whole and of parts
(`parts`), by executors that were used before (`reusing`), with dropout (`randomness`), over steps of training (`training`): there
after every pass alone and, of every tenth program, after every two of them. `--quick` tries a few passes and one of the other ways
for each program.
What several sequences of passes make alike is run once (`rewriting`), and the interpreter once for all of them.
The command ends with how many programs each pass did something to, among all of them and alone, and fails where there is none.

Each program follows from the seed and its number alone; `--only 1234` makes, prints and checks that one again. What fails
is made smaller and written to `tests/generated/kept`, where a test runs it from then on.
"""
