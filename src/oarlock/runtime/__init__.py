"""Values and execution."""

from oarlock.runtime.context import Context
from oarlock.runtime.executor import Executor
from oarlock.runtime.initialization import init
from oarlock.runtime.place import CPUPlace, GPUPlace
from oarlock.runtime.scope import Scope
from oarlock.runtime.variable import State, Variable

__all__ = ["CPUPlace", "Context", "Executor", "GPUPlace", "Scope", "State", "Variable", "init"]
