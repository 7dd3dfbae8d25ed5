"""`ol.variable`: variables of the current scope, as proposed in the Framework document.

x = ol.variable.tensor("x", numpy.random.randn(200, 100), estimated=True)
x.estimated = False
"""

import numpy

from oarlock.ir.operation import Op
from oarlock.registry.declaration import Operator
from oarlock.runtime.current_scope import current_scope
from oarlock.runtime.scope import Scope
from oarlock.runtime.variable import Variable
from oarlock.suggestions import no_attribute

__all__ = ["bool_", "float_", "half", "int_", "new", "operation", "scope", "string", "tensor"]


def new(name: str) -> Variable:
    """Create a variable of unknown type."""
    return current_scope().var(name)


def tensor(name: str, value: object = None, *, estimated: bool | None = None) -> Variable:
    """Create a variable for a tensor; `value` is an array, stored in its own dtype."""
    variable = new(name)
    if value is not None:
        current_scope().set(name, value)
    if estimated is not None:
        variable.estimated = estimated
    return variable


def int_(name: str, value: int) -> Variable:
    """Create a variable that holds an integer."""
    return _holding(name, int(value))


def float_(name: str, value: float) -> Variable:
    """Create a variable that holds a float."""
    return _holding(name, float(value))


def half(name: str, value: float) -> Variable:
    """Create a variable that holds a 16-bit float, a `numpy.float16`."""
    return _holding(name, numpy.float16(value))


def bool_(name: str, value: bool) -> Variable:
    """Create a variable that holds True or False."""
    return _holding(name, bool(value))


def string(name: str, value: str) -> Variable:
    """Create a variable that holds text."""
    return _holding(name, str(value))


def operation(name: str, op: Op | Operator) -> Variable:
    """Create a variable that holds an operation."""
    return _holding(name, op)


def scope(name: str, value: Scope) -> Variable:
    """Create a variable that holds a scope."""
    return _holding(name, value)


def _holding(name: str, value: object) -> Variable:
    variable = new(name)
    variable.value = value
    return variable


def __getattr__(name: str) -> object:
    """Return `ol.variable.int`, `float` or `bool`, which cannot be module globals because they would hide the builtins."""
    found = {"int": int_, "float": float_, "bool": bool_}.get(name)
    if found is None:
        raise no_attribute(__name__, name, __all__)
    return found
