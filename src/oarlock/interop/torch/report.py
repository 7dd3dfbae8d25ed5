"""The report of an import: the operators that replace each operator of the module."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Report"]


@dataclass(frozen=True)
class Report:
    """The number of occurrences of each PyTorch overload, and the operators that replace it."""

    counts: Mapping[tuple[str, tuple[str, ...]], int]

    @property
    def native(self) -> int:
        """Return the number of nodes that became one operator or none."""
        return sum(count for (_, operators), count in self.counts.items() if len(operators) <= 1)

    @property
    def composed(self) -> int:
        """Return the number of nodes that became several operators."""
        return sum(count for (_, operators), count in self.counts.items() if len(operators) > 1)

    def __str__(self) -> str:
        lines = [f"{self.native + self.composed} nodes: {self.native} native, {self.composed} composed"]
        width = max((len(overload) for overload, _ in self.counts), default=0)
        for (overload, operators), count in sorted(self.counts.items(), key=lambda item: (-item[1], item[0])):
            kind = "native  " if len(operators) <= 1 else "composed"
            made = Counter(operators)
            text = ", ".join(f"{number} {operator}" if number > 1 else operator for operator, number in made.items()) or "nothing to do"
            lines.append(f"{count:6}  {overload:{width}}  {kind}  {text}")
        return "\n".join(lines)
