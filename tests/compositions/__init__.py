"""Random compositions of all operators: what passes and plans make of them is what the interpreter gives.

    PYTHONPATH=src:tests python -m compositions --seed 0 --count 10000

The programs of `generated` have few operators and an evaluator of their own. These have every operator that is declared, each with
attributes of its cases or near them, on variables that other operators made, in a straight line, in the steps of a loop and in branches of
rows. That an operator computes the right thing is for its own cases; here it is held to do so beside any other one: all fetched and the
last one alone, with their gradients, with all passes, with none and with some, each time as the interpreter.
"""

from compositions.checking import check
from compositions.making import Composition, make

__all__ = ["Composition", "check", "make"]
