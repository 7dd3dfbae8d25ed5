"""Test cases of operators as data: tests run them, and documentation shows them."""

from dataclasses import dataclass

__all__ = ["Case", "GradCheck", "Rejects"]


class Case:
    """Inputs, attributes and expected outputs, by slot name.

        Case(x=[-1.0, 2.0], y=[0.0, 2.0])

    A list is a value. For a variadic slot, a tuple contains one value per tensor. Floating values are tested in float64 and float32.
    """

    def __init__(self, **values: object):
        self.values = values

    def __repr__(self) -> str:
        return f"Case({', '.join(f'{name}={value!r}' for name, value in self.values.items())})"


class GradCheck:
    """Arguments for which every gradient is compared with finite differences, in float64.

        GradCheck(logits=(4, 3), label=[0, 2, -100, 1])

    A tuple of numbers is a shape, filled with seeded random numbers between `low` and `high`; a list is a value; a list of tuples fills a
    variadic slot. A check without inputs takes the shapes from the signature, with the given attributes, once for each number of leading
    axes. An operator with gradients but without checks gets ``GradCheck()`` if its signature and attribute defaults determine the
    arguments.
    """

    def __init__(self, *, low: float = -1.0, high: float = 1.0, **values: object):
        self.low = low
        self.high = high
        self.values = values

    def __repr__(self) -> str:
        return f"GradCheck({', '.join(f'{name}={value!r}' for name, value in self.values.items())})"


@dataclass(frozen=True)
class Rejects:
    """Arguments that the operator rejects, with a message that contains `message`. Values are given as in GradCheck."""

    message: str
    values: dict[str, object]

    def __init__(self, message: str, **values: object):
        object.__setattr__(self, "message", message)
        object.__setattr__(self, "values", values)
