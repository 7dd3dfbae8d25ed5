"""The random state of a program: the number of runs that have drawn, declared by its first random op."""

from oarlock.ir.attribute import Sizes
from oarlock.ir.dtype import DType
from oarlock.ir.names import DRAWS, next_name
from oarlock.ir.operation import Role
from oarlock.ir.program import Program
from oarlock.ir.var import Initializer

__all__ = ["count_draws"]


def count_draws(program: Program) -> None:
    """Make each training run of `program` increment `@RANDOM`, int64[], so that the next one draws different numbers.

    It is separate from the step counter: programs without an optimizer draw new numbers too, and later training continues the count.
    """
    main = program.main
    if main.find_var(DRAWS) is not None:
        return
    zero = Initializer("constant", {"value": 0.0})
    count = main.new_var(DRAWS, DType.INT64, (), persistable=True, stop_gradient=True, initializer=zero)
    one, following = (main.new_var(name, DType.INT64, (), stop_gradient=True) for name in (f"{DRAWS}@ONE", next_name(DRAWS)))
    with program.write_as(Role.FORWARD):
        main.append("full", {}, {"y": [one]}, {"shape": Sizes(()), "value": 1.0, "dtype": DType.INT64})
        main.append("add", {"x": [count], "y": [one]}, {"z": [following]}, {})
    main.commit(count, following, role=Role.FORWARD)
