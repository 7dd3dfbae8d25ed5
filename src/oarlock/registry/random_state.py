"""The random state of a program: a count of the runs that drew, which its first random op declares."""

from oarlock.ir.attribute import Sizes
from oarlock.ir.dtype import DType
from oarlock.ir.names import DRAWS, next_name
from oarlock.ir.operation import Role
from oarlock.ir.program import Program
from oarlock.ir.var import Initializer

__all__ = ["count_draws"]


def count_draws(program: Program) -> None:
    """Let each run of `program` that trains count `@RANDOM`, int64[], up, so that the next one draws other numbers.

    It is apart from the step counter: a program without an optimizer draws anew too, and one that is trained later begins
    where it drew last.
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
